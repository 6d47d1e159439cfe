"""Which way a knob or a value of the file moves a rule's result: by evaluating with it one step away."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfglint.engine.describe import show_value
from cfglint.lang import tree as t
from cfglint.lang.show import show
from cfglint.lang.tree import walk
from cfglint.lang.units import UNITS
from cfglint.lang.values import Interval, needs_of, parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cfglint.engine.evaluation_scope import Bound
    from cfglint.facts import Values
    from cfglint.lang.pack import CompiledRule
    from cfglint.lang.types import Type

_SMALL = 16  # whole numbers below move by one, unless they are powers of two
_MOST_VALUES = 4  # values of a knob that lists them
_MOST_RESULTS = 3
_EXACT = 10  # decimal digits; a sum of steps is not always a short float


@dataclass(frozen=True, slots=True)
class Effect:
    """How one quantity of the requirement changes; ``name`` is its expression."""

    name: str
    before: str
    after: str
    direction: str  # raises, lowers or changes
    amount: str  # without a sign; empty where it is no plain number

    def words(self) -> str:
        """Return ``lowers need.total by 2.2 GiB (36.2 GiB -> 34 GiB)``."""
        by = f" by {self.amount}" if self.amount else ""
        return f"{self.direction} {self.name}{by} ({self.before} -> {self.after})"


@dataclass(frozen=True, slots=True)
class Move:
    """A leaf with another value: what that changes, and what becomes of the rule.

    ``direction`` is down, up, or empty for a value that is no number. ``turns`` says that the verdict is
    another one than before.
    """

    direction: str
    to: str
    effects: tuple[Effect, ...]
    verdict: str
    turns: bool

    def words(self) -> str:
        """Return ``down to 0.75 lowers need.total by 2.2 GiB (…), and the rule holds``."""
        end = f"then the rule {'is ' * (self.verdict == 'undecided')}{self.verdict}" if self.turns else ""
        head = f"{self.direction} to {self.to}" if self.direction else f"{self.to}:"
        if not self.effects:
            return f"{head.rstrip(':')}: {end or _STILL.get(self.verdict, self.verdict)}"
        if self.direction:
            told = "; ".join(effect.words() for effect in self.effects)
        else:
            told = "; ".join(f"{e.name} {e.before} -> {e.after}" for e in self.effects)
        return f"{head} {told}" + (f", and {end}" if end else "")


_BAD = ("breaks", "may break")  # where it is told that a step of the quantity itself does not help
_STILL = {
    "breaks": "still breaks", "may break": "may still break", "holds": "still holds",
    "undecided": "still undecided", "does not apply": "still does not apply",
}  # fmt: skip


def verdict_of(truth: object) -> str:
    """Return a rule's result in a word or two."""
    if truth is None:
        return "does not apply"
    if isinstance(truth, bool):
        return "holds" if truth else "breaks"
    return "undecided" if needs_of(truth) else "may break"


class Meter:
    """Reads the quantities of one rule's requirement off any facts."""

    def __init__(self, rule: t.Rule, compiled: CompiledRule, scope: Bound) -> None:
        self.compiled = compiled
        self.scope = scope
        self.results = _quantities(rule.requirement, scope)
        self.verdict = verdict_of(compiled.test(scope.values))

    def moves(
        self, name: str, old: object, kind: Type, knob: t.Knob | None, put: Callable[[object], Values]
    ) -> tuple[Move, ...]:
        """Return what happens with ``name`` a step away; nothing where that changes nothing.

        ``put`` gives the facts with another value in its place.
        """
        found = []
        for direction, value in _steps(old, kind, knob):
            values = put(value)
            verdict = verdict_of(self.compiled.test(values))
            effects = tuple(self._effects(name, values))
            turns = verdict != self.verdict
            own = (
                knob is not None and self.verdict in _BAD and any(show(node) == name for node in self.results)
            )
            if effects or turns or own:
                found.append(Move(direction, show_value(value, kind), effects, verdict, turns))
        return tuple(found)

    def _effects(self, name: str, values: Values) -> Iterator[Effect]:
        from dataclasses import replace

        other = replace(self.scope, values=values)
        for node in self.results:
            if show(node) == name:
                continue  # a step of the quantity itself
            before, kind = self.scope.value(node)
            after, _ = other.value(node)
            shown = show_value(before, kind), show_value(after, kind)
            if shown[0] == shown[1]:
                continue
            yield Effect(show(node), *shown, *_change(before, after, kind))


def _change(before: object, after: object, kind: Type) -> tuple[str, str]:
    if not _is_number(before) or not _is_number(after):
        return "changes", ""
    (low, high, _), (lower, higher, _) = parts(before), parts(after)  # type: ignore[arg-type]
    if lower >= low and higher >= high:
        direction = "raises"
    elif lower <= low and higher <= high:
        direction = "lowers"
    else:
        return "changes", ""
    by = abs(higher - high)
    if not math.isfinite(by) or by == 0:
        return direction, ""
    exact = isinstance(before, (int, float)) and isinstance(after, (int, float))
    return direction, f"{'' if exact else 'about '}{show_value(by, kind)}"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, Interval)) and not isinstance(value, bool)


def _quantities(requirement: t.Expr, scope: Bound) -> Sequence[t.Expr]:
    """Return the sides of the requirement's comparisons that are numbers and no constants."""
    inside = {
        id(part)
        for q in walk(requirement)
        if isinstance(q, t.Quantifier)
        for part in walk(q)
        if part is not q
    }
    found: dict[t.Expr, None] = {}
    for node in walk(requirement):
        sides: tuple[t.Expr, ...] = ()
        if isinstance(node, t.Compare) and id(node) not in inside:
            sides = node.operands
        elif isinstance(node, t.Member) and id(node) not in inside:
            sides = (node.item,)
        for side in sides:
            named = any(isinstance(n, (t.Name, t.Path)) for n in walk(side))
            if named and not scope.is_word(side) and _is_number(scope.value(side)[0]):
                found[side] = None
    return list(found)[:_MOST_RESULTS]


def _steps(old: object, kind: Type, knob: t.Knob | None) -> Iterator[tuple[str, object]]:
    """Yield the values one step away, each with its direction."""
    if knob is not None and knob.domain == "values":
        values = [_literal(node, kind) for node in knob.values]
        for value in [v for v in values if v != old][:_MOST_VALUES]:
            number = _is_number(old) and _is_number(value)
            yield ("down" if value < old else "up") if number else "", value  # type: ignore[operator]
        return
    if isinstance(old, bool):
        yield "", not old
        return
    if not isinstance(old, (int, float)):
        return
    low, high = kind.low, kind.high
    if knob is not None and knob.domain == "step" and knob.low and knob.high and knob.step:
        low, high, step = (_constant(n, kind) for n in (knob.low, knob.high, knob.step))
        around = [old - step, old + step]
    elif knob is not None and knob.domain in ("halving", "doubling"):
        around = [old // 2 if kind.whole else old / 2, old * 2]
    else:
        around = _around(old, whole=kind.whole or isinstance(old, int))
    for direction, value in zip(("down", "up"), around, strict=True):
        within = min(max(_rounded(value), low), high)
        if (within < old) if direction == "down" else (within > old):
            yield direction, within


def _around(old: float, *, whole: bool) -> list[float]:
    """Return a step down and up where nothing says how long one is: sizes double, others move by a tenth."""
    if not whole:
        return [old * 0.9, old * 1.1]
    size = int(old)
    if size > 1 and size & (size - 1) == 0:
        return [size // 2, size * 2]
    step = 1 if abs(size) < _SMALL else abs(size) // 10
    return [size - step, size + step]


def _rounded(value: float) -> float:
    if isinstance(value, int):
        return value
    rounded = round(value, _EXACT)
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 2**53 else rounded


def _constant(node: t.Number, kind: Type) -> float:
    return node.value * (UNITS[node.unit][0] if node.unit is not None else kind.factor)


def _literal(node: t.Expr, kind: Type) -> object:
    """Return a knob's listed value: a word is the enumeration's member that it spells."""
    if isinstance(node, t.Number) and kind.kind != "enum":
        return _constant(node, kind)
    word = show(node) if not isinstance(node, t.Text) else node.value
    if kind.kind == "enum":
        return dict(kind.spellings).get(word.lower(), word)
    return getattr(node, "value", word)
