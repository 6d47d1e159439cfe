"""The values that a knob may take, the cheapest first.

Where a knob names its domain, every value of it is a candidate. Where it may take any value, candidates are
solved from the broken requirement: the other side of an equality or a bound, the root of a linear one, the
members of a list, and whole numbers around the present value (divisibility).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from cfglint.dsl import tree as t
from cfglint.dsl.build import walk
from cfglint.dsl.compile import CompileError
from cfglint.dsl.units import UNITS
from cfglint.repair.inverse import tidy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cfglint.dsl.types import Type
    from cfglint.engine.describe import Evaluator
    from cfglint.facts import Values

NEIGHBOURS = 1024  # whole numbers tried on either side
_NEAR = 128  # steps of a fine domain tried on either side
_FAR = 1e18
_HALVINGS = 40
V = TypeVar("V")
_UNSOLVABLE = (CompileError, ZeroDivisionError, OverflowError)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value for a knob, what it costs, whether results may change, and its effect in words.

    ``spelling`` is how the knob itself writes the value.
    """

    value: object
    cost: float
    unsafe: bool
    effect: str
    spelling: object = None


@dataclass(frozen=True, slots=True)
class Broken:
    """A requirement that does not hold while ``knob`` is worth ``old``; ``with_value`` tries another."""

    knob: t.Knob
    old: object
    kind: Type
    requirement: t.Expr
    evaluator: Evaluator
    with_value: Callable[[object], Values]

    def candidates(self) -> list[Candidate]:
        """Return candidate values, the safe before the unsafe, then the cheapest, then the nearest."""
        if self.knob.domain == "values":
            values = [_literal(v, self.kind) for v in self.knob.values]
            return self._priced([v for v in values if v != self.old], lambda v: values.index(v) + 1)
        if isinstance(self.old, bool) or not isinstance(self.old, (int, float)):
            return self._priced([v for v in self._solved() if type(v) is type(self.old)], lambda _: 1)
        old = self.old
        if self.knob.domain == "step":
            grid, start, step = self._grid(old)
            return self._priced(grid, lambda v: abs(v - start) / step)
        if self.knob.domain in ("halving", "doubling"):
            chain = self._chain(old)
            return self._priced(chain, lambda v: chain.index(v) + 1)
        numbers = [v for v in self._solved() if isinstance(v, (int, float)) and not isinstance(v, bool)]
        if self.kind.whole:
            numbers += [v for d in range(1, NEIGHBOURS + 1) for v in (old + d, old - d)]
        return self._priced(
            [v for v in numbers if self.kind.low <= v <= self.kind.high], lambda v: abs(v - old)
        )

    def _priced(self, values: Sequence[V], steps: Callable[[V], float]) -> list[Candidate]:
        priced = []
        spellings = {_literal(node, self.kind): _written(node) for node in self.knob.values}
        for value in dict.fromkeys(v for v in values if v != self.old):
            move = self._move(value)
            cost = move.cost * (steps(value) if move.per_step else 1)
            spelling = spellings.get(value)
            candidate = Candidate(value, cost, move.unsafe, move.effect, spelling)
            priced.append((move.unsafe, cost, steps(value), candidate))
        return [candidate for *_, candidate in sorted(priced, key=lambda p: p[:3])]

    def _move(self, new: object) -> t.Move:
        direction = "any"
        if isinstance(self.old, (int, float)) and isinstance(new, (int, float)):
            direction = "down" if new < self.old else "up"
        return next((m for m in self.knob.moves if m.direction in (direction, "any")), t.Move("any", 1))

    def _grid(self, old: float) -> tuple[list[float], float, float]:
        """Return steps of the domain, where in it the present value stands, and the step.

        A fine domain has too many to try: those near the present value, those beside a solved one, and ever
        wider strides to the ends, which tell whether there is any at all.
        """
        knob = self.knob
        assert knob.low is not None
        assert knob.high is not None
        assert knob.step is not None
        low, high, step = (_constant(n, self.kind) for n in (knob.low, knob.high, knob.step))
        last = round((high - low) / step)
        here = min(max(round((old - low) / step), 0), last)
        near = range(max(0, here - _NEAR), min(last, here + _NEAR) + 1)
        strides = (here + sign * 2**k for k in range(last.bit_length() + 1) for sign in (-1, 1))
        solved = [(v - low) / step for v in self._solved() if isinstance(v, (int, float)) and abs(v) < _FAR]
        beside = (whole for place in solved for whole in (math.floor(place), math.ceil(place)))
        chosen = {i for i in (*near, *strides, *beside, 0, last) if 0 <= i <= last}
        return [tidy(low + i * step) for i in sorted(chosen)], min(max(old, low), high), step

    def _chain(self, value: float) -> list[float]:
        """Halve or double as long as the limit allows; whole numbers stay whole."""
        assert self.knob.low is not None
        limit = _constant(self.knob.low, self.kind)
        halving = self.knob.domain == "halving"
        chain: list[float] = []
        for _ in range(_HALVINGS):
            halved = value // 2 if self.kind.whole else value / 2
            value = halved if halving else value * 2
            if value < limit if halving else value > limit:
                break
            chain.append(value)
        return chain

    def _solved(self) -> Iterator[object]:
        """Yield values that make one comparison of the requirement just hold."""
        for node in walk(self.requirement):
            try:
                values = list(self._of(node))
            except _UNSOLVABLE:  # a part that has no value here solves nothing
                continue
            yield from values

    def _of(self, node: t.Expr) -> Iterator[object]:
        here = self.with_value(self.old)
        if isinstance(node, t.Compare) and len(node.operands) == 2:
            yield from self._other_side(*node.operands, here)
            yield from self._root(*node.operands, here)
        elif isinstance(node, t.Member) and isinstance(node.container, t.ListOf):
            kind = self.evaluator(node.item, here)[1]
            yield from (_literal(item, kind) for item in node.container.items)
        elif isinstance(node, t.Member) and isinstance(node.container, t.Range):
            yield from (
                _constant(n, self.kind)
                for n in (node.container.low, node.container.high)
                if isinstance(n, t.Number)
            )
        elif node == t.Name(self.knob.name):
            yield True
        elif node == t.Not(t.Name(self.knob.name)):
            yield False

    def _other_side(self, left: t.Expr, right: t.Expr, here: Values) -> Iterator[object]:
        for own, other in ((left, right), (right, left)):
            if own != t.Name(self.knob.name):
                continue
            if self.kind.kind == "enum" and isinstance(other, (t.Name, t.Number, t.Truth, t.Null)):
                yield _literal(other, self.kind)
            elif isinstance(other, t.Number):
                yield tidy(_constant(other, self.kind))
            else:
                yield self.evaluator(other, here)[0]

    def _root(self, left: t.Expr, right: t.Expr, here: Values) -> Iterator[object]:
        """Yield where the two sides meet, taking their difference as linear in the knob."""
        old = self.old
        if not isinstance(old, (int, float)) or isinstance(old, bool):
            return
        gap = t.Sum((("+", left), ("-", right)))
        step = 1 if isinstance(old, int) else max(abs(old) * 0.01, 1e-6)
        at_old = self.evaluator(gap, here)[0]
        after = self.evaluator(gap, self.with_value(old + step))[0]
        if isinstance(at_old, (int, float)) and isinstance(after, (int, float)) and after != at_old:
            root = old - at_old * step / (after - at_old)
            yield from (int(root // 1), int(-(-root // 1))) if isinstance(old, int) else (tidy(root),)


def _constant(node: t.Number, kind: Type) -> float:
    return node.value * (UNITS[node.unit][0] if node.unit is not None else kind.factor)


def _literal(node: t.Expr, kind: Type) -> object:
    """Return what a literal is worth: of an enumeration, the member that it spells."""
    written = _written(node)
    if kind.kind == "enum":
        word = "null" if written is None else str(written).lower()
        return dict(kind.spellings).get(word, written)
    return _constant(node, kind) if isinstance(node, t.Number) else written


def _written(node: t.Expr) -> object:
    return node.name if isinstance(node, t.Name) else getattr(node, "value", None)
