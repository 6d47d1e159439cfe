"""A repair of many moves: all that may help is moved as far as it goes, and what is not needed taken back.

The exact search (search.py) goes over sets of tracks. Where a need is the largest of several parts, each of
which takes moves of its own, the sets are too many for it. What is found here is a repair in which no move
can be left out and none can stop earlier; the exact search then looks for a cheaper one.
"""

from __future__ import annotations

from cfglint.record import Record
from cfglint.repair.options import Repair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from cfglint.repair.tracks import Option, Progress, Track

    class Search(Protocol):
        """What is asked of a search (search.py): its goals, and what stands in the way."""

        def spent(self) -> bool:
            """Whether it has used up its trials."""

        def progress(self, options: Sequence[Option]) -> Progress:
            """Return what becomes of the goals with some options."""

        def harms(self, options: Sequence[Option]) -> bool:
            """Whether they break what held."""

        def possible(self, options: Sequence[Option]) -> bool:
            """Whether they can be made together."""

        def mends(self, options: Sequence[Option]) -> bool:
            """Whether they reach the goals and break nothing."""


_SAMPLE = 6  # places of a track that are tried for how far it may be moved


class _Moved(Record):
    """A track that is moved to the place ``i``."""

    track: Track
    i: int

    @property
    def option(self) -> Option:
        option = self.track.option(self.i)
        assert option is not None
        return option


def relaxed(search: Search, tracks: Sequence[Track]) -> Repair | None:
    """Return moves after which the goals hold and nothing is harmed; None where no such are found."""
    moved = _reached(search, sorted(tracks, key=lambda track: (track.weight(0), track.number)))
    if moved is None:
        return None
    for one in sorted(moved, key=lambda one: -one.option.weight):
        rest = [other for other in moved if other is not one]
        if rest and _mends(search, rest):
            moved = rest
    for k in range(len(moved)):
        moved[k] = _nearest(search, moved[k], [one for one in moved if one is not moved[k]])
    return Repair(tuple(one.option for one in moved))


def _reached(search: Search, tracks: Sequence[Track]) -> list[_Moved] | None:
    """Move one track after the other as far as it goes, the cheapest first, until the goals hold."""
    moved: list[_Moved] = []
    for track in tracks:
        if search.spent():
            return None
        if any(one.track.knob.name == track.knob.name for one in moved):
            continue
        before = search.progress(_options(moved))
        end = _farthest(search, track, moved)
        if end is None:
            continue
        after = search.progress(_options([*moved, end]))
        if max(after.gaps, default=0) > max(before.gaps, default=0):  # it leads away
            continue
        moved.append(end)
        if _mends(search, moved):
            return moved
    return None


def _farthest(search: Search, track: Track, moved: Sequence[_Moved]) -> _Moved | None:
    """Return a track where it is moved as far as it does no harm; of some places, those far away first."""
    last = len(track) - 1
    for i in sorted({last - last * k // _SAMPLE for k in range(_SAMPLE)} | {0}, reverse=True):
        option = track.option(i)
        if option is not None and search.possible([*_options(moved), option]):
            one = _Moved(track, i)
            if not search.harms(_options([*moved, one])):
                return one
    return None


def _nearest(search: Search, one: _Moved, others: Sequence[_Moved]) -> _Moved:
    """Return a track where it is moved only as far as it must."""
    low, high = -1, one.i
    while high - low > 1:
        middle = (low + high) // 2
        there = _Moved(one.track, middle)
        if one.track.option(middle) is not None and _mends(search, [*others, there]):
            high = middle
        else:
            low = middle
    return _Moved(one.track, high)


def _mends(search: Search, moved: Sequence[_Moved]) -> bool:
    options = _options(moved)
    return search.possible(options) and search.mends(options)


def _options(moved: Sequence[_Moved]) -> list[Option]:
    return [one.option for one in moved]
