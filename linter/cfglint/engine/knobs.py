"""A knob's values: which lie one step away, what such a step does to a rule, what a knob says of a change."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeGuard

from cfglint.engine.describe import show_value
from cfglint.lang import tree as t
from cfglint.lang.show import show
from cfglint.lang.tree import walk
from cfglint.lang.types import ANY, Type, is_number
from cfglint.lang.values import Interval, needs_of, parts
from cfglint.record import Record, Value, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cfglint.engine.evaluation_scope import Bound
    from cfglint.facts import Values
    from cfglint.lang.pack import CompiledRule
    from cfglint.lang.values import Number

    Judge = Callable[[t.Expr], object]  # the truth of a condition
    Holds = Callable[[t.Expr], bool]

_PERCENT = 100
_NOTABLE = 2  # points: a fifth of a training step's time (rules/knobs.rules)
_PLACES = 6
_SMALL = 16  # whole numbers below move by one, unless they are powers of two
_MOST_VALUES = 4  # values of a knob that lists them
_MOST_RESULTS = 3
_EXACT = 10  # decimal digits; a product of a step and a unit is not always a short float
_BAD = ("breaks", "may break")  # where it is told that a step of the quantity itself does not help
_STILL = {
    "breaks": "still breaks", "may break": "may still break", "holds": "still holds",
    "undecided": "still undecided", "does not apply": "still does not apply",
}  # fmt: skip


# ── what a knob says of a change ───────────────────────────────────────────────────────────────────────────
class Effect(Value):
    """What a change does; ``to`` is ``b`` for the way from A to B, ``a`` for the way back.

    ``kind`` (time, throughput, memory, quality, host), the percents ``low`` to ``high`` and the source
    ``see`` are there where the knob states them. ``notable`` says that it costs speed worth a first line.
    """

    to: str
    text: str
    kind: str = ""
    low: float | None = None
    high: float | None = None
    see: str = ""
    notable: bool = False


class Between(Value):
    """A knob's way between two values; ``before`` and ``after`` judge conditions at its ends."""

    knob: t.Knob
    old: object
    new: object
    kind: Type
    before: Judge
    after: Judge

    @property
    def back(self) -> Between:
        """The way back."""
        return Between(self.knob, self.new, self.old, self.kind, self.after, self.before)


def effects(change: Between) -> Iterator[Effect]:
    """Yield what the knob says of a way, and of the way back."""
    kind, knob = change.kind, change.knob
    for way, to in ((change, "b"), (change.back, "a")):
        old = way.old
        if "none" in kind.members and old != "none" and old in _listed(knob.values, kind):
            continue  # what full checkpointing costs is said against none, and not against selective
        move = _offered(way)
        if move is not None and (move.effect or move.kind):
            slow = move.kind == "time" and move.cost >= _NOTABLE
            notable = move.kind == "throughput" or slow or move.low is not None
            low, high = _percent(move.low), _percent(move.high)
            yield Effect(to, move.effect, move.kind, low, high, move.see, notable)


def _percent(share: float | None) -> float | None:
    return None if share is None else round(share * _PERCENT, _PLACES)


def alters_results(change: Between) -> bool:
    """Whether a way between two values is marked as changing results, in either direction."""
    ways = (_offered(change), _offered(change.back))
    return any(move is not None and move.unsafe for move in ways)


def _offered(change: Between) -> t.Move | None:
    """Return the move that speaks of a change to a value which the knob would give."""
    knob, old, new, kind = change.knob, change.old, change.new, change.kind
    if any(isinstance(value, Interval) or needs_of(value) for value in (old, new)):
        return None  # nobody knows how far the way is
    if knob.domain == "values" and new not in _listed(knob.values, kind):
        return None
    if {"halving": "up", "doubling": "down"}.get(knob.domain) == _direction(old, new):
        return None

    def found(admits: Callable[[object], bool]) -> t.Move | None:
        def holds(condition: t.Expr) -> bool:
            return admits(change.before(condition))

        def leaves(condition: t.Expr) -> bool:
            return admits(change.after(condition))

        return move_of(knob, old, new, kind, holds, leaves)

    return found(lambda truth: truth is True) or found(lambda truth: truth is not False)


def never(_: t.Expr) -> bool:
    """Take no condition for fulfilled."""
    return False


def always(_: t.Expr) -> bool:
    """Take each condition for fulfilled."""
    return True


def move_of(
    knob: t.Knob, old: object, new: object, kind: Type, holds: Holds = never, leaves: Holds = never
) -> t.Move | None:
    """Return what moving a knob to this value, or in this direction, costs: the first move that fits.

    ``holds`` tells of conditions now, ``leaves`` of those after the move.
    """
    directions = (_direction(old, new), "any")
    for move in knob.moves:
        fits = new in _listed(move.to, kind) if move.to else move.direction in directions
        now = move.when is None or holds(move.when)
        if fits and now and (move.leaving is None or leaves(move.leaving)):
            return move
    return None


def move_of_all(keys: Iterable[tuple[t.Knob | None, object, object]], holds: Holds) -> t.Move | None:
    """Return the move that each of several keys makes from its old to its new value, where it is one."""
    moves = [move_of(knob, old, new, ANY, holds) if knob is not None else None for knob, old, new in keys]
    return moves[0] if moves and all(move == moves[0] for move in moves) else None


def _direction(old: object, new: object) -> str:
    if not is_number(old) or not is_number(new):
        return "any"
    return "down" if new < old else "up"


def _listed(nodes: Iterable[t.Expr], kind: Type) -> list[Any]:
    """Return a knob's listed values."""
    return [literal(node, kind) for node in nodes]


def literal(node: t.Expr, kind: Type) -> object:
    """Return what a literal is worth: of an enumeration, the member that it spells."""
    if isinstance(node, t.Negative) and isinstance(node.operand, t.Number):
        return -kind.worth(node.operand)
    word = word_of(node)
    if kind.kind == "enum":
        return dict(kind.spellings).get("null" if word is None else str(word).lower(), word)
    return kind.worth(node) if isinstance(node, t.Number) else word


def word_of(node: t.Expr) -> object:
    """Return what is in a file for a literal: a name is a word."""
    if isinstance(node, t.Negative) and isinstance(node.operand, t.Number):
        return -node.operand.value
    return node.name if isinstance(node, t.Name) else getattr(node, "value", None)


def tidy(value: float) -> float:
    """Return 0.45 for 0.45000000000000001 and 4 for 4.0."""
    if isinstance(value, int):
        return value
    rounded = round(value, _EXACT)
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 2**53 else rounded


# ── values one step away ───────────────────────────────────────────────────────────────────────────────────
def _steps(old: Any, kind: Type, knob: t.Knob | None) -> Iterator[tuple[str, object]]:
    """Yield the values one step away, each with its direction."""
    if knob is not None and knob.domain == "values":
        for value in [value for value in _listed(knob.values, kind) if value != old][:_MOST_VALUES]:
            number = _is_quantity(old) and _is_quantity(value)
            yield ("down" if value < old else "up") if number else "", value
    elif isinstance(old, bool):
        yield "", not old
    elif isinstance(old, (int, float)):
        low, high, around = _around(old, kind, knob)
        below, above = (min(max(tidy(value), low), high) for value in around)
        if below < old:
            yield "down", below
        if above > old:
            yield "up", above


def _around(old: float, kind: Type, knob: t.Knob | None) -> tuple[float, float, tuple[float, float]]:
    """Return the bounds of a number, and what lies a step below and above it.

    Where nothing says how long a step is, sizes double, and others move by a tenth.
    """
    if knob is not None and knob.domain == "step" and knob.low and knob.high and knob.step:
        low, high, step = map(kind.worth, (knob.low, knob.high, knob.step))
        return low, high, (old - step, old + step)
    if knob is not None and knob.domain in ("halving", "doubling"):
        return kind.low, kind.high, (old // 2 if kind.whole else old / 2, old * 2)
    if not (kind.whole or isinstance(old, int)):
        return kind.low, kind.high, (old * 0.9, old * 1.1)
    size = int(old)
    if size > 1 and size & (size - 1) == 0:
        return kind.low, kind.high, (size // 2, size * 2)
    step = 1 if abs(size) < _SMALL else abs(size) // 10
    return kind.low, kind.high, (size - step, size + step)


# ── what a step does to a rule ─────────────────────────────────────────────────────────────────────────────
_MORE = {"raises": "more", "lowers": "less", "changes": ""}


class Change(Record):
    """How one quantity of the requirement changes; ``name`` is its expression."""

    name: str
    before: str
    after: str
    direction: str  # raises, lowers or changes
    amount: str  # without a sign; empty where it is not a plain number

    def words(self, *, known: bool = False) -> str:
        """Return ``lowers need.total by 2.2 GiB (36.2 GiB -> 34 GiB)``.

        Where name and value are ``known``, that is ``2.2 GiB less, 34 GiB in all``.
        """
        if known:
            more = f"{self.amount} {_MORE[self.direction]}, " if self.amount else ""
            return f"{more}{self.after} in all"
        by = f" by {self.amount}" if self.amount else ""
        return f"{self.direction} {self.name}{by} ({self.before} -> {self.after})"


class Move(Record):
    """A leaf with another value: what that changes, and what becomes of the rule.

    ``direction`` is down, up, or empty for a value that is not a number. ``turns`` says that the verdict is
    another one than before.
    """

    direction: str
    to: str
    effects: tuple[Change, ...]
    verdict: str
    turns: bool

    def words(self, *, known: bool = False) -> str:
        """Return ``down to 0.75 lowers need.total by 2.2 GiB (…), and then the rule holds``.

        ``known`` leaves out what it changes, and the value before.
        """
        end = f"then the rule {'is ' * (self.verdict == 'undecided')}{self.verdict}" if self.turns else ""
        head = f"{self.direction} to {self.to}" if self.direction else f"{self.to}:"
        if not self.effects:
            return f"{head.rstrip(':')}: {end or _STILL.get(self.verdict, self.verdict)}"
        if self.direction:
            changes = "; ".join(change.words(known=known) for change in self.effects)
        else:
            was = "" if known else "{0.name} {0.before} -> "
            changes = "; ".join(was.format(change) + change.after for change in self.effects)
        colon = ":" if known and self.direction else ""
        return f"{head}{colon} {changes}" + (f", and {end}" if end else "")


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
        own = knob is not None and self.verdict in _BAD and any(show(node) == name for node in self.results)
        moves = []
        for direction, value in _steps(old, kind, knob):
            values = put(value)
            verdict = verdict_of(self.compiled.test(values))
            changes = tuple(self._changes(name, values))
            turns = verdict != self.verdict
            if changes or turns or own:
                moves.append(Move(direction, show_value(value, kind), changes, verdict, turns))
        return tuple(moves)

    def _changes(self, name: str, values: Values) -> Iterator[Change]:
        moved = replace(self.scope, values=values)
        for node in self.results:
            if show(node) == name:
                continue  # a step of the quantity itself
            before, kind = self.scope.value(node)
            after, _ = moved.value(node)
            shown = show_value(before, kind), show_value(after, kind)
            if shown[0] != shown[1]:
                yield Change(show(node), *shown, *_difference(before, after, kind))


def _difference(before: object, after: object, kind: Type) -> tuple[str, str]:
    if not _is_quantity(before) or not _is_quantity(after):
        return "changes", ""
    (low, high, _), (lower, higher, _) = parts(before), parts(after)
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


def _is_quantity(value: object) -> TypeGuard[Number]:
    return is_number(value) or isinstance(value, Interval)


def _quantities(requirement: t.Expr, scope: Bound) -> Sequence[t.Expr]:
    """Return the sides of the requirement's comparisons that are numbers and no constants."""
    inside = {
        id(part)
        for quantifier in walk(requirement)
        if isinstance(quantifier, t.Quantifier)
        for part in walk(quantifier)
        if part is not quantifier
    }
    quantities: dict[t.Expr, None] = {}
    for node in walk(requirement):
        if not isinstance(node, (t.Compare, t.Member)) or id(node) in inside:
            continue
        for side in node.operands if isinstance(node, t.Compare) else (node.item,):
            named = any(isinstance(part, (t.Name, t.Path)) for part in walk(side))
            if named and not scope.is_word(side) and _is_quantity(scope.value(side)[0]):
                quantities[side] = None
    return list(quantities)[:_MOST_RESULTS]
