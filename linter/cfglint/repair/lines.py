"""Lines of values, the nearest first, and the search for the first that serves.

A requirement made of bounds is nearly always monotone in a knob: a long line is then bisected. What the
search sees tells whether that holds; where it does not, or where it is no bound, the line is scanned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from cfglint.repair.inverse import tidy

if TYPE_CHECKING:
    from collections.abc import Callable

    from cfglint.lang import tree as t

SHORT = 16  # values of a line that are simply tried one after the other
_ONWARD = 64  # places tried behind the first that serves, where that one does harm elsewhere


class Grid(Sequence[float]):
    """Every ``step`` from the place ``first`` on, up or down by ``sign``, to the end of the domain."""

    __slots__ = ("first", "low", "sign", "size", "step")

    def __init__(self, low: float, step: float, first: int, sign: int, last: int) -> None:
        self.low = low
        self.step = step
        self.first = first
        self.sign = sign
        self.size = max(0, last - first + 1 if sign > 0 else first + 1)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: int) -> float:  # type: ignore[override]
        return tidy(self.low + (self.first + self.sign * i) * self.step)

    def place(self, value: float) -> float:
        """Return where ``value`` would stand, a whole number where it does."""
        return ((value - self.low) / self.step - self.first) * self.sign


@dataclass(frozen=True, slots=True)
class Line:
    """Values that lead away from the present one in one direction, with what a step costs.

    ``sample`` gives the places of a line that is too long to be scanned; ``asked`` are the values that the
    requirement itself names; ``spelling`` is how the knob writes the value.
    """

    values: Sequence[object]
    steps: Callable[[int], float]
    move: t.Move
    sample: Callable[[], Sequence[int]] | None = None
    asked: frozenset[object] = frozenset()
    spelling: object = None
    old: object = None

    def scan(self) -> Sequence[int]:
        """Return the places to be tried one after the other."""
        return self.sample() if self.sample is not None else range(len(self.values))

    def cost(self, i: int) -> float:
        """Return what the value at a place costs."""
        if self.move.per_halving:
            return self.move.cost * halvings(self.old, self.values[i])
        return self.move.cost * (self.steps(i) if self.move.per_step else 1)


def halvings(old: object, new: object) -> float:
    """Return how often a number was halved or doubled; 1 for what is no number above zero."""
    if isinstance(old, (int, float)) and isinstance(new, (int, float)) and old > 0 and new > 0:
        return abs(math.log2(new / old))
    return 1


class Reading:
    """What a place of a line gives: the goals' truth together, and by how much each bound is missed.

    ``bounded`` says whether those goals hold that are made of bounds alone.
    """

    __slots__ = ("_gaps", "_measure", "bounded", "truth")

    def __init__(
        self, truth: object, measure: Callable[[], tuple[float, ...]], *, bounded: bool = False
    ) -> None:
        self.truth = truth
        self.bounded = bounded
        self._measure = measure
        self._gaps: tuple[float, ...] | None = None

    @property
    def holds(self) -> bool:
        """Whether the rule holds for certain."""
        return self.truth is True

    @property
    def gaps(self) -> tuple[float, ...]:
        """The gaps, measured when they are first asked for."""
        if self._gaps is None:
            self._gaps = self._measure()
        return self._gaps


@dataclass(frozen=True, slots=True)
class First:
    """The first place of a line that serves, None where there is none.

    ``bisected`` says that it was not found by scanning, ``nearing`` that the gaps shrink all along the line.
    """

    place: int | None
    bisected: bool = False
    nearing: bool = False


class _Disorder(Exception):  # noqa: N818 (no error: it tells the search to scan)
    """The gaps do not move in one direction along a line."""


def first(line: Line, read: Callable[[int], Reading], present: Reading | None, last: int) -> First:
    """Return the first place up to ``last`` that holds; ``present`` is None where not all is bounds."""
    if len(line.values) > SHORT and present is not None:
        try:
            return _bisected(len(line.values), read, present)
        except _Disorder:
            pass
    return First(next((i for i in line.scan() if i <= last and read(i).holds), None))


def _bisected(count: int, read: Callable[[int], Reading], present: Reading) -> First:
    near = read(0)
    if near.holds:
        return First(0, bisected=True)
    middle, end = read(count // 2), read(count - 1)
    readings = (present, near, middle, end)
    if not all(map(math.isfinite, (gap for reading in readings for gap in reading.gaps))):
        raise _Disorder
    if not _ordered(readings):
        if _ordered(readings[::-1]) and not middle.holds and not end.holds:
            return First(None, bisected=True)  # farther away means worse
        raise _Disorder
    low, high = (0, count // 2) if middle.holds else (count // 2, count - 1)
    if not end.holds:
        between = (count // 4, count // 2, 3 * count // 4, 7 * count // 8)
        if middle.holds or not _ordered((near, *map(read, between), end)):
            raise _Disorder
        return First(None, bisected=True, nearing=True)
    worse, better = read(low), read(high)
    while high - low > 1:
        i = (low + high) // 2
        reading = read(i)
        if not _ordered((worse, reading, better)):
            raise _Disorder
        if reading.holds:
            high, better = i, reading
        else:
            low, worse = i, reading
    return First(high, bisected=True, nearing=True)


def _shrinks(one: Reading, other: Reading) -> bool:
    return all(a >= b for a, b in zip(one.gaps, other.gaps, strict=True))


def _ordered(readings: Sequence[Reading]) -> bool:
    """Whether no gap grows from one reading to the next."""
    return all(_shrinks(one, other) for one, other in pairwise(readings))


def serving(
    line: Line, found: First, holds: Callable[[int], bool], harms: Callable[[int], bool]
) -> int | None:
    """Return the first place from the one found on that holds and does no harm."""
    assert found.place is not None
    if found.bisected:
        return _onward(len(line.values), found.place, lambda i: holds(i) and not harms(i))
    start = found.place
    holding = (i for i in line.scan() if i >= start and holds(i))
    return next((i for i in islice(holding, _ONWARD) if not harms(i)), None)


def _onward(count: int, start: int, serves: Callable[[int], bool]) -> int | None:
    """Try the next places, then ever wider strides; of a stride that serves, the nearest that does."""
    end = min(count, start + _ONWARD)
    for i in range(start, end):
        if serves(i):
            return i
    last, stride = end - 1, 1
    while last < count - 1:
        i = min(last + stride, count - 1)
        if serves(i):
            while i - last > 1:
                middle = (last + i) // 2
                last, i = (last, middle) if serves(middle) else (middle, i)
            return i
        last, stride = i, stride * 2
    return None
