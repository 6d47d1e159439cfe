"""The values that a knob may take, in lines that lead away from the present one, the nearest first.

Where a knob names its domain, every value of it is a candidate. Where it may take any value, candidates are
solved from the broken requirement: the other side of an equality or a bound, the root of a linear one, the
members of a list, and whole numbers around the present value (divisibility).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cfglint.engine.knobs import move_of, never
from cfglint.lang import tree as t
from cfglint.lang.build import walk
from cfglint.lang.compile import CompileError
from cfglint.lang.units import UNITS
from cfglint.repair.inverse import tidy
from cfglint.repair.lines import Grid, Line, halvings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cfglint.engine.describe import Evaluator
    from cfglint.engine.knobs import Holds
    from cfglint.facts import Values
    from cfglint.lang.types import Type

NEIGHBOURS = 1024  # whole numbers tried on either side
_NEAR = 128  # steps of a fine domain tried on either side where bisection does not apply
_FAR = 1e18
_HALVINGS = 40
UNPRICED = t.Move("any", 1)  # a move of which a knob says nothing
UNSOLVABLE = (CompileError, ZeroDivisionError, OverflowError)


@dataclass(frozen=True, slots=True)
class Broken:
    """A requirement that does not hold while ``knob`` is worth ``old``; ``with_value`` tries another.

    ``holds`` tells whether a condition holds now.
    """

    knob: t.Knob
    old: object
    kind: Type
    requirement: t.Expr
    evaluator: Evaluator
    with_value: Callable[[object], Values]
    holds: Holds = never

    def lines(self) -> list[Line]:
        """Return the lines of values."""
        return [line for line in self._lines() if len(line.values)]

    def _lines(self) -> Iterator[Line]:
        knob, old = self.knob, self.old
        if knob.domain == "values":
            values = [_literal(v, self.kind) for v in knob.values]
            for i, (node, value) in enumerate(zip(knob.values, values, strict=True)):
                if value != old and values.index(value) == i:
                    yield self._line([value], _always(i + 1), spelling=_written(node))
        elif isinstance(old, bool) or not isinstance(old, (int, float)):
            for value in dict.fromkeys(v for v in self._solved() if type(v) is type(old) and v != old):
                yield self._line([value], _always(1))
        elif knob.domain == "step":
            yield from self._steps(old)
        elif knob.domain in ("halving", "doubling"):
            chain = self._chain(old)
            yield self._line(chain, lambda i: i + 1)
        else:
            yield from self._around(old)

    def _line(
        self,
        values: Sequence[object],
        steps: Callable[[int], float],
        sample: Callable[[], Sequence[int]] | None = None,
        asked: frozenset[object] = frozenset(),
        spelling: object = None,
    ) -> Line:
        move = move_of(self.knob, self.old, values[0], self.kind, self.holds) if len(values) else None
        move = move or UNPRICED
        return Line(values, steps, move, sample, asked, spelling, self.old)

    def _steps(self, old: float) -> Iterator[Line]:
        """Yield the steps of the domain below the present value, and those above."""
        knob = self.knob
        assert knob.low is not None
        assert knob.high is not None
        assert knob.step is not None
        low, high, step = (_constant(n, self.kind) for n in (knob.low, knob.high, knob.step))
        last = round((high - low) / step)
        here = min(max(round((old - low) / step), 0), last)
        value = tidy(low + here * step)
        for sign in (-1, 1):
            first = here if (value - old) * sign > 0 else here + sign
            grid = Grid(low, step, first, sign, last)
            yield self._line(grid, _distance(grid, old, step), partial(self._sample, grid))

    def _sample(self, grid: Grid) -> Sequence[int]:
        """Return places of a line that has too many to try all.

        Those near the present value, those beside a solved one, and ever wider strides to the end, which
        tell whether there is any at all.
        """
        count = len(grid)
        if count <= _NEAR:
            return range(count)
        strides = (2**k for k in range(_NEAR.bit_length(), count.bit_length()))
        solved = (v for v in self._solved() if isinstance(v, (int, float)) and abs(v) < _FAR)
        places = (grid.place(v) for v in solved)
        beside = (whole for place in places for whole in (math.floor(place), math.ceil(place)))
        return sorted({i for i in (*range(_NEAR), *strides, *beside, count - 1) if 0 <= i < count})

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

    def _around(self, old: float) -> Iterator[Line]:
        """Yield what the requirement asks for, and whole numbers around, above and below."""
        kind = self.kind
        numbers = {v for v in self._solved() if isinstance(v, (int, float)) and not isinstance(v, bool)}
        if kind.whole:
            finite = (v for v in numbers if abs(v) < _FAR)
            numbers = {whole for v in finite for whole in (math.floor(v), math.ceil(v))}
        asked = frozenset(numbers)
        if kind.whole:
            numbers.update(old + d for d in range(-NEIGHBOURS, NEIGHBOURS + 1))
        fitting = sorted(v for v in numbers if kind.low <= v <= kind.high)
        above, below = [v for v in fitting if v > old], [v for v in reversed(fitting) if v < old]
        for line in (above, below):
            yield self._line(line, _distance(line, old, 1), asked=asked)

    def _solved(self) -> Iterator[object]:
        """Yield values that make one comparison of the requirement just hold."""
        for node in walk(self.requirement):
            try:
                values = list(self._of(node))
            except UNSOLVABLE:  # a part that has no value here solves nothing
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


def priced(knob: t.Knob, move: t.Move, kind: Type, old: object, new: object) -> float:
    """Return the cost of a move of ``knob``, its steps counted as the knob's domain has them."""
    if move.per_halving:
        return move.cost * halvings(old, new)
    if not move.per_step or not isinstance(old, (int, float)) or not isinstance(new, (int, float)):
        return move.cost
    if knob.domain in ("halving", "doubling"):
        return move.cost * halvings(old, new)
    return move.cost * abs(new - old) / (_constant(knob.step, kind) if knob.step is not None else 1)


def _always(steps: int) -> Callable[[int], float]:
    return lambda _: steps


def _distance(line: Sequence[float], start: float, step: float) -> Callable[[int], float]:
    return lambda i: abs(line[i] - start) / step


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
