"""Tracks: the values that a knob may take, in lines that lead away from the present one, the nearest first.

Where a knob names its domain, every value of it is a candidate. Where it may take any value, candidates are
solved from the broken requirement: the other side of an equality or a bound, the root of a linear one, the
members of a list, and whole numbers around the present value (divisibility).

A requirement made of bounds is nearly always monotone in a knob: a long track is then bisected. What the
search sees tells whether that holds; where it does not, or where it is not a bound, the track is scanned.

The nouns of this room, each of which rests on the one before:

* ``Option``: one knob moved to one value, with all that this brings along and costs.
* ``Track``: the options of a knob in one direction.
* ``Repair``: options that together reach some goals, and the edits that make them (options.py).
* ``Fix``: what a finding tells of a repair (findings.py).
"""

from __future__ import annotations

import math
from functools import partial
from itertools import chain, takewhile
from math import isqrt

from cfglint.engine.knobs import always, literal, move_of, never, tidy, word_of
from cfglint.lang import tree as t
from cfglint.lang.compile import CompileError
from cfglint.lang.types import Type, is_number
from cfglint.record import Record, field, replace
from cfglint.repair.grid import Grid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from cfglint.engine.describe import Evaluator
    from cfglint.engine.knobs import Holds
    from cfglint.facts import Steps, Values
    from cfglint.repair.invert import Written

    Sample: TypeAlias = Callable[[], Sequence[int]]

NEIGHBOURS, _EACH, _EIGHTH = (
    1024,
    128,
    8,
)  # whole numbers on either side: each of the near ones, then each eighth
SHORT = 16  # values of a track that are simply tried one after the other
OF_ITSELF = ("values", "halving", "doubling")  # domains whose values rest on no requirement
RISKS = {"none": 1, "numerics": 3, "optimization": 6, "data": 20}  # what a point counts for; the worst last
UNSAFE = 1_000  # points; no repair that keeps the results costs that much
UNPRICED = t.Move("any", 1)  # a move of which a knob says nothing
UNSOLVABLE = (CompileError, ZeroDivisionError, OverflowError)
_NEAR = 128  # steps of a fine domain tried on either side where bisection does not apply
_FAR = 1e18
_HALVINGS = 40
_MEMORY = "gpu.vram"
_HALVINGS_OF_RESULTS = 2  # a length below a quarter makes it another job; what costs time alone may go on


class Option(Record):
    """One knob moved to a value: the facts that change with it, what is in the file, and what is lost.

    ``risk`` is what its moves may change of the results: none, numerics, optimization or data (`RISKS`);
    ``results`` what it surely changes if it is made alone: another move may make up for that.
    ``effects`` are the knobs' own words; ``places`` are the definitions that are written, with the values.
    ``writable`` is false where no edit of the file can do it. ``steps`` is how far the value is from the
    present one, ``asked`` whether the requirement itself names it. ``several`` commands read what it moves.
    ``exchanged`` are partners that make up for the move, with what they were and the keys that say them;
    ``followers`` are facts that say the same as one of them, before and after it; ``unbalanced`` says that
    other commands need partners of their own (in_step.py). ``factors`` are definitions of which it is to be
    the product, whatever they are.
    """

    knob: str
    steps: float
    asked: bool
    facts: dict[str, object]
    written: list[Written]
    cost: float
    risk: str
    effects: list[str]
    places: list[tuple[object, object]] = field(factory=list)
    writable: bool = True
    results: str = "none"
    several: bool = False
    unbalanced: bool = False
    exchanged: dict[str, tuple[object, set[Steps]]] = field(factory=dict)
    followers: set[str] = field(factory=set)
    factors: frozenset[object] = frozenset()

    @property
    def weight(self) -> float:
        """What options are compared by: any safe change is better than one that may change results."""
        return self.cost * RISKS[worse(self.risk, self.results)] + UNSAFE * self.unsafe

    @property
    def unsafe(self) -> bool:
        """Whether results may change, if nothing makes up for it."""
        return worse(self.risk, self.results) != "none"

    def says(self, facts: Mapping[str, object]) -> bool:
        """Whether it moves the same facts to the same values; two that are not known may differ."""
        mine = self.facts
        same = (
            mine[name] is value or (mine[name] == value) is True
            for name, value in facts.items()
            if name in mine
        )
        return mine.keys() == facts.keys() and all(same)

    def telling(self, values: Sequence[object]) -> Option:
        """Return the option with other values in the file."""
        written = [replace(each, value=value) for each, value in zip(self.written, values, strict=True)]
        places = [(key, each.value) for (key, _), each in zip(self.places, written, strict=True)]
        return replace(self, written=written, places=places)


def worse(*risks: str) -> str:
    """Return the worst of some risks."""
    return max(risks, key=list(RISKS).index, default="none")


class Track(Record):
    """Values of a knob that lead away from the ``old`` one, as options worked out when they are asked for.

    ``move`` tells what a step costs; a step is as long as ``step``, or from one value to the next where that
    is None, the first one counting ``first``. ``sample`` gives the places of a track that is too long to be
    scanned; ``asked`` are the values that the requirement itself names; ``spelling`` is how the knob writes
    the value.

    What a search sees: ``reaches`` are the numbers of the goals that the track leads towards. It is
    ``straight`` if no gap grows along it, ``plain`` if it also has to do with no other goals than bounds.
    ``farthest`` is where the gaps are smallest, None where that is not known.
    """

    knob: t.Knob
    old: object
    values: Sequence[object]
    move: t.Move
    first: int = 1
    step: float | None = None
    sample: Sample | None = None
    asked: frozenset[object] = frozenset()
    spelling: object = None
    number: int = 0
    make: Callable[[Track, int], Option | None] | None = None
    reaches: frozenset[int] = frozenset()
    straight: bool = False
    plain: bool = False
    farthest: Option | None = None
    _options: dict[int, Option | None] = field(factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def option(self, i: int) -> Option | None:
        """Return the option at a place; None if the value is not available."""
        if i not in self._options:
            self._options[i] = self.make(self, i) if self.make is not None else None
        return self._options[i]

    def cost_before(self, i: int) -> float:
        """Return what the last available option before a place costs; nothing where there is none."""
        options = (self.option(at) for at in range(i - 1, -1, -1))
        return next((option.cost for option in options if option is not None), 0.0)

    def begun(self) -> Track | None:
        """Return the track from its first available value on, a short one up to its last.

        Of a long one the first are looked at, and those that the requirement names: the GPUs of all machines
        have to be a multiple of these.
        """
        asked = (i for i, value in enumerate(self.values) if value in self.asked) if self.asked else ()
        for i in chain(range(min(len(self), SHORT)), asked):
            if self.option(i) is not None:
                return self._up_to_last(self._after(i) if i else self)
        return None

    @staticmethod
    def _up_to_last(track: Track) -> Track:
        count = last = len(track)
        while count <= SHORT and last > 1 and track.option(last - 1) is None:
            last -= 1
        values = [track.values[i] for i in range(last)] if last < count else track.values
        return track if last == count else replace(track, values=values, sample=None)

    def _after(self, start: int) -> Track:
        sample, values = self.sample, self.values
        rest = values.after(start) if isinstance(values, Grid) else list(values)[start:]
        places = None if sample is None else (lambda: [i - start for i in sample() if i >= start])

        def make(_: Track, i: int) -> Option | None:
            return self.option(i + start)

        return replace(self, values=rest, sample=places, first=self.first + start, make=make, _options={})

    def where(self, admits: Callable[[Option], bool]) -> Track:
        """Return the track with the options alone that are admitted."""

        def make(_: Track, i: int) -> Option | None:
            option = self.option(i)
            return option if option is not None and admits(option) else None

        return replace(self, make=make, _options={})

    def options(self, start: int = 0) -> list[Option]:
        """Return the available options, from a place on."""
        return [option for i in range(start, len(self)) if (option := self.option(i)) is not None]

    def weight(self, i: int) -> float:
        """Return an option's weight; infinite if it is not available."""
        option = self.option(i)
        return option.weight if option is not None else math.inf

    def scan(self) -> Sequence[int]:
        """Return the places to be tried one after the other."""
        return self.sample() if self.sample is not None else range(len(self))

    def steps(self, i: int) -> float:
        """Return how many steps away a place is."""
        if self.knob.domain in ("halving", "doubling"):
            return halvings(self.old, self.values[i])
        if self.step is None:
            return self.first + i
        return abs(self.values[i] - self.old) / self.step  # type: ignore[operator, no-any-return]

    def cost(self, i: int) -> float:
        """Return what the value at a place costs."""
        if self.move.per_halving:
            return self.move.cost * halvings(self.old, self.values[i])
        return self.move.cost * (self.steps(i) if self.move.per_step else 1)


def risk_of(move: t.Move) -> str:
    """Return what a move puts at risk by itself."""
    return move.risk if move.unsafe else "none"


# ── the values of a knob ───────────────────────────────────────────────────────────────────────────────
class Broken(Record):
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

    def tracks(self) -> list[Track]:
        """Return the tracks that have a value."""
        return [track for track in self._tracks() if len(track)]

    def _tracks(self) -> Iterator[Track]:
        knob, old = self.knob, self.old
        if knob.domain == "values":
            values = [literal(node, self.kind) for node in knob.values]
            for i, (node, value) in enumerate(zip(knob.values, values, strict=True)):
                if value != old and values.index(value) == i:
                    yield self._track([value], first=i + 1, spelling=word_of(node))
        elif not is_number(old):
            for value in dict.fromkeys(v for v in self._solved() if type(v) is type(old) and v != old):
                yield self._track([value])
        elif knob.domain == "step":
            yield from self._steps(old)
        elif knob.domain in ("halving", "doubling"):
            track = self._track(self._chain(old))
            yield self._within_reason(track) if knob.domain == "halving" else track
        else:
            yield from self._around(old)

    def _track(self, values: Sequence[object], **rest: Any) -> Track:
        move = None
        if len(values):
            move = move_of(self.knob, self.old, values[0], self.kind, self.holds, always)
        if move is None and self.knob.moves:  # it is not moved that way
            values = ()
        return Track(self.knob, self.old, values, move or UNPRICED, **rest)

    def _within_reason(self, track: Track) -> Track:
        """Leave out the values that would make it another job."""
        if track.move.unsafe and track.move.kind != "time":
            track.values = [n for n in track.values if halvings(self.old, n) <= _HALVINGS_OF_RESULTS]
        return track

    def _steps(self, old: float) -> Iterator[Track]:
        """Yield the steps of the domain below the present value, and those above."""
        domain = (self.knob.low, self.knob.high, self.knob.step)
        low, high, step = (self.kind.worth(n) for n in domain if n is not None)
        last = round((high - low) / step)
        here = min(max(round((old - low) / step), 0), last)
        value = tidy(low + here * step)
        for sign in (-1, 1):
            if sign < 0 and self._by_halves(old):
                values = [n for n in self._chain(old) if (n - low) % step == 0]
                yield self._track(values, step=step)
                continue
            first = here if (value - old) * sign > 0 else here + sign
            grid = Grid(low, step, first, sign, last)
            yield self._track(grid, step=step, sample=partial(self._sample, grid))

    def _by_halves(self, old: float) -> bool:
        """Whether a knob with steps goes down by what people write: parts of the value, and powers of two."""
        move = move_of(self.knob, old, old - 1, self.kind, self.holds)
        return self.kind.whole and move is not None and move.per_halving

    def _sample(self, grid: Grid) -> Sequence[int]:
        """Return places of a track that has too many to try all.

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
        """Return what is doubled or halved, as far as the limit; where numbers are whole, other parts, too.

        A micro-batch has to divide something else, which its own parts divide as well. Powers of two are
        what people write.
        """
        assert self.knob.low is not None
        limit = self.kind.worth(self.knob.low)
        if value < 0:
            return []
        if self.knob.domain != "doubling" and self.kind.whole:
            whole = int(value)
            parts = {part for i in range(1, isqrt(whole) + 1) if whole % i == 0 for part in (i, whole // i)}
            powers = {2**i for i in range(whole.bit_length())}
            return sorted((n for n in parts | powers if limit <= n < value), reverse=True)
        factor = 0.5 if self.knob.domain == "halving" else 2
        chain = (tidy(value * factor**i) for i in range(1, _HALVINGS))
        return list(takewhile(lambda n: n >= limit if factor < 1 else n <= limit, chain))

    def _around(self, old: float) -> Iterator[Track]:
        """Yield what the requirement asks for, and whole numbers around, above and below."""
        kind = self.kind
        numbers = {v for v in self._solved() if is_number(v)}
        if kind.whole:
            finite = (v for v in numbers if abs(v) < _FAR)
            numbers = {whole for v in finite for whole in (math.floor(v), math.ceil(v))}
        asked = frozenset(numbers)
        if kind.whole:
            numbers.update(old + d for d in range(-_EACH, _EACH + 1))
            lowest = -(-int(old - NEIGHBOURS) // _EIGHTH) * _EIGHTH
            numbers.update(range(lowest, int(old + NEIGHBOURS) + 1, _EIGHTH))
            numbers.update(2**i for i in range(int(max(old, 0)).bit_length()))  # what people write
        fitting = self._left(sorted(v for v in numbers if kind.low <= v <= kind.high))
        yield self._track([v for v in fitting if v > old], step=1, asked=asked)
        below = self._track([v for v in reversed(fitting) if v < old], step=1, asked=asked)
        names = {node.name for node in t.walk(self.requirement) if isinstance(node, t.Name)}
        yield self._within_reason(below) if _MEMORY in names else below

    def _left(self, values: list[float]) -> list[float]:
        """Return the values that a move that way may leave, as far as it compares them with the target.

        Of several conditions that hold together, those count that ask for nothing else.
        """
        conditions = [
            (move.direction, [part for part in t.conjuncts(move.leaving) if self._is_own(part)])
            for move in self.knob.moves
            if move.leaving is not None
        ]
        told = all(parts for _, parts in conditions)
        if not conditions or len(conditions) < len(self.knob.moves) or not told:
            return values
        here = self.with_value(self.old)
        tests = [(way, [self.evaluator.compiled(part)[0] for part in parts]) for way, parts in conditions]
        names = {name for _, parts in conditions for part in parts for name in _names(part)}
        there = here.but({})
        target = {**there, **{name: here[name] for name in names}}  # worked out once
        old = self.old if is_number(self.old) else 0

        def leaves(value: float) -> bool:
            there.clear()  # of what the last value led to
            there.update(target)
            there[self.knob.name] = value
            ways = ("any", "up" if value > old else "down")
            return any(way in ways and all(test(there) is True for test in each) for way, each in tests)

        return [value for value in values if leaves(value)]

    def _is_own(self, node: t.Expr) -> bool:
        return all(name == self.knob.name or name.startswith("gpu.") for name in _names(node))

    def _solved(self) -> Iterator[object]:
        """Yield values that make one comparison of the requirement just hold."""
        for node in t.walk(self.requirement):
            try:
                values = list(self._of(node))
            except UNSOLVABLE:  # a part that has no value here solves nothing
                continue
            yield from values

    def _of(self, node: t.Expr) -> Iterator[object]:
        here = self.with_value(self.old)
        match node:
            case t.Compare(operands=(left, right)):
                yield from self._other_side(left, right, here)
                yield from self._other_side(right, left, here)
                yield from self._root(left, right, here)
            case t.Member(item=item, container=t.ListOf(items)):
                kind = self.evaluator(item, here)[1]
                yield from (literal(item, kind) for item in items)
            case t.Member(container=t.Range(low, high)):
                yield from (self.kind.worth(n) for n in (low, high) if isinstance(n, t.Number))
            case t.Name(self.knob.name):
                yield True
            case t.Not(t.Name(self.knob.name)):
                yield False

    def _other_side(self, own: t.Expr, limit: t.Expr, here: Values) -> Iterator[object]:
        """Yield what the knob is compared with, where one side is the knob itself."""
        if own != t.Name(self.knob.name):
            return
        if self.kind.kind == "enum" and isinstance(limit, (t.Name, t.Number, t.Truth, t.Null)):
            yield literal(limit, self.kind)
        elif isinstance(limit, t.Number):
            yield tidy(self.kind.worth(limit))
        else:
            yield self.evaluator(limit, here)[0]

    def _root(self, left: t.Expr, right: t.Expr, here: Values) -> Iterator[object]:
        """Yield where the two sides meet, taking their difference as linear in the knob."""
        old = self.old
        if not is_number(old):
            return
        gap = t.Sum((("+", left), ("-", right)))
        step = 1 if isinstance(old, int) else max(abs(old) * 0.01, 1e-6)
        at_old = self.evaluator(gap, here)[0]
        after = self.evaluator(gap, self.with_value(old + step))[0]
        if isinstance(at_old, (int, float)) and isinstance(after, (int, float)) and after != at_old:
            root = old - at_old * step / (after - at_old)
            yield from (int(root // 1), int(-(-root // 1))) if isinstance(old, int) else (tidy(root),)


def _names(node: t.Expr) -> set[str]:
    return {each.name for each in t.walk(node) if isinstance(each, t.Name)}


def priced(knob: t.Knob, move: t.Move, kind: Type, old: object, new: object) -> float:
    """Return the cost of a move of ``knob``, its steps counted as the knob's domain has them."""
    if move.per_halving:
        return move.cost * halvings(old, new)
    if not move.per_step or not isinstance(old, (int, float)) or not isinstance(new, (int, float)):
        return move.cost
    if knob.domain in ("halving", "doubling"):
        return move.cost * halvings(old, new)
    return move.cost * abs(new - old) / (kind.worth(knob.step) if knob.step is not None else 1)


def halvings(old: object, new: object) -> float:
    """Return how often a number was halved or doubled; 1 for what is not a number above zero."""
    if isinstance(old, (int, float)) and isinstance(new, (int, float)) and old > 0 and new > 0:
        return abs(math.log2(new / old))
    return 1
