"""The first place of a track that serves: by bisection where the gaps move in one direction along it."""

from __future__ import annotations

import math
from itertools import islice, pairwise

from cfglint.record import Record, field
from cfglint.repair.tracks import SHORT, Track

_NOISE = 1e-9  # of a gap, which comes of how it is computed
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ONWARD = 64  # places tried after the first that serves, where that one does harm there


class Progress(Record):
    """What a place of a track gives: the goals' truth together, and by how much each bound is missed.

    ``bounded`` says whether those goals hold that are made of bounds alone.
    """

    truth: object
    measure: Callable[[], tuple[float, ...]]
    bounded: bool = False
    _gaps: tuple[float, ...] | None = field(default=None, init=False)

    @property
    def holds(self) -> bool:
        """Whether the rule holds for certain."""
        return self.truth is True

    @property
    def gaps(self) -> tuple[float, ...]:
        """The gaps, measured when they are first asked for."""
        if self._gaps is None:
            self._gaps = self.measure()
        return self._gaps


class _Disorder(Exception):  # noqa: N818 (no error: it tells the search to scan)
    """The gaps do not move in one direction along a track."""


def first(
    track: Track, read: Callable[[int], Progress], present: Progress | None, last: int
) -> tuple[int | None, bool]:
    """Return the first place up to ``last`` that holds, and whether it was found by bisection.

    ``present`` is what is read without the track, None where not all is bounds.
    """
    if len(track) > SHORT and present is not None:
        try:
            return _bisected(len(track), read, present), True
        except _Disorder:
            pass
    return next((i for i in track.scan() if i <= last and read(i).holds), None), False


def _bisected(count: int, read: Callable[[int], Progress], present: Progress) -> int | None:
    near = read(0)
    if near.holds:
        return 0
    middle, end = read(count // 2), read(count - 1)
    seen = (present, near, middle, end)
    if not all(map(math.isfinite, (gap for place in seen for gap in place.gaps))):
        raise _Disorder
    if not _ordered(seen):
        if _ordered(seen[::-1]) and not middle.holds and not end.holds:
            return None  # farther away means worse
        raise _Disorder
    low, high = (0, count // 2) if middle.holds else (count // 2, count - 1)
    if not end.holds:
        between = (count // 4, count // 2, 3 * count // 4, 7 * count // 8)
        if middle.holds or not _ordered((near, *map(read, between), end)):
            raise _Disorder
        return None
    worse, better = read(low), read(high)
    while high - low > 1:
        i = (low + high) // 2
        here = read(i)
        if not _ordered((worse, here, better)):
            raise _Disorder
        if here.holds:
            high, better = i, here
        else:
            low, worse = i, here
    return high


def _ordered(seen: Sequence[Progress]) -> bool:
    """Whether no gap grows from one place to the next."""
    return all(
        before >= after
        for near, far in pairwise(seen)
        for before, after in zip(near.gaps, far.gaps, strict=True)
    )


def serving(
    track: Track, start: int, *, bisected: bool, holds: Callable[[int], bool], harms: Callable[[int], bool]
) -> int | None:
    """Return the first place from ``start``, which was ``bisected`` or not, that holds and harms nothing."""
    if bisected:
        return _onward(len(track), start, lambda i: holds(i) and not harms(i))
    holding = (i for i in track.scan() if i >= start and holds(i))
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


def less(a: float, b: float) -> bool:
    """Whether a gap is smaller than another by more than the noise of its computation."""
    return b - a > _NOISE * max(abs(a), abs(b), 1)
