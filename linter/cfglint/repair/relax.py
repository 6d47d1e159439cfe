"""A repair of many moves: all that may help is moved as far as it goes, and what is not needed taken back.

The exact search (search.py) goes over sets of tracks. Where a need is the largest of several parts, each of
which takes moves of its own, the sets are too many for it. What is found here is a repair in which no move
can be left out and none can stop earlier; the exact search then looks for a cheaper one.
"""

from __future__ import annotations

from operator import gt, lt

from cfglint.lang.types import MEMORY
from cfglint.record import Record, replace
from cfglint.repair.found import Repair
from cfglint.repair.tracks import SHORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Protocol

    from cfglint.repair.along import Progress
    from cfglint.repair.tracks import Option, Track
    from cfglint.repair.trials import Goal, Trials

    class Search(Protocol):
        """What is asked of a search (search.py): its goals, and what stands in the way."""

        trials: Trials
        goals: list[Goal]

        @property
        def bounds(self) -> bool:
            """Whether the goals are made of bounds alone."""

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


_ROUNDS = 2  # times that what may help is asked
_PLACES = 8  # places of a long track that are looked at
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


def beside(search: Search, tracks: Sequence[Track], given: tuple[Option, ...]) -> Repair | None:
    """Return ``given`` with moves beside it after which the bounds hold; None where no such are found."""
    able = [track for track in tracks if track.move.kind != "memory" or track.move.direction != "any"]
    far = utmost(search, able, given)
    if far is None:
        return None
    ends = {option.knob: option.facts for option in far[1]}
    lasts = {track.knob.name: _Moved(track, len(track) - 1) for track in tracks if _ends_at(track, ends)}
    moved = list(lasts.values())
    if not _mends(search, moved, given):
        moved = _with_another(search, tracks, moved, given)
    if not moved:
        return None
    for one in sorted(moved, key=lambda one: -one.option.weight):
        rest = [other for other in moved if other is not one]
        if rest and _mends(search, rest, given):
            moved = rest
    for k in range(len(moved)):
        moved[k] = _nearest(search, moved[k], [one for one in moved if one is not moved[k]], given)
    return Repair((*given, *_options(moved)))


def _with_another(
    search: Search, tracks: Sequence[Track], moved: Sequence[_Moved], given: Sequence[Option]
) -> list[_Moved]:
    """Return moves with one more, after which nothing else breaks; none where there is no such."""
    taken = {one.track.knob.name for one in moved}
    for track in sorted(tracks, key=lambda track: (track.weight(0), track.number)):
        last = len(track) - 1
        if track.knob.name in taken or track.option(last) is None or search.spent():
            continue
        if _mends(search, [*moved, _Moved(track, last)], given):
            return [*moved, _Moved(track, last)]
    return []


def cut(track: Track, admits: Callable[[Option], bool]) -> Track | None:
    """Return what is admitted of a track, of a long one up to the last of some places; none where none is."""
    if len(track) <= SHORT:
        return track.where(admits).begun()
    last = len(track) - 1
    for i in sorted({last - last * k // _PLACES for k in range(_PLACES)} | {0}, reverse=True):
        option = track.option(i)
        if option is not None and admits(option):
            return replace(track, values=[track.values[k] for k in range(i + 1)], sample=None)
    return None


def _ends_at(track: Track, ends: Mapping[str, dict[str, object]]) -> bool:
    last = track.option(len(track) - 1)
    return last is not None and track.knob.name in ends and last.says(ends[track.knob.name])


def utmost(
    search: Search, tracks: Iterable[Track], given: tuple[Option, ...] = ()
) -> tuple[float, tuple[Option, ...]] | None:
    """Return the bytes missing at worst with knobs moved as far as that helps, and those moves.

    ``given`` are moved anyway. None where the goals are not bounds on memory.
    """
    evaluator = search.trials.run.finder.evaluator
    here = [search.trials.values(goal.judged, {}) for goal in search.goals]
    nodes = [(node, own) for goal, own in zip(search.goals, here, strict=True) for node in goal.gaps]
    if not search.bounds or any(evaluator(node, own)[1].dimension != MEMORY for node, own in nodes):
        return None

    def lack(options: Iterable[Option]) -> float:
        return max(search.progress((*given, *options)).gaps)

    taken = {option.knob for option in given}
    ends: dict[str, Option] = {}
    lasts = filter(None, (track.option(len(track) - 1) for track in tracks if track.knob.name not in taken))
    # The dear ones only make up what is left. A part that is not the largest now may be, once the others have
    # shrunk, and what was no help may be one then: it is asked twice.
    waiting = sorted(lasts, key=lambda option: option.weight)
    for _ in range(_ROUNDS):
        for last in [option for option in waiting if option not in ends.values()]:
            beside = [end for knob, end in ends.items() if knob != last.knob and search.possible((end, last))]
            if (lack([*beside, last]), -len(beside)) <= (lack(ends.values()), 1 - len(ends)):
                ends = {end.knob: end for end in (*beside, last)}
        if lack(ends.values()) <= 0:
            break
    best = lack(ends.values())
    for knob in sorted(ends, key=lambda knob: -ends[knob].weight):
        if lack(end for name, end in ends.items() if name != knob) <= max(best, 0):
            del ends[knob]
    return best, tuple(ends.values())


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
        if _leads_away(before.gaps, after.gaps):
            continue
        moved.append(end)
        if _mends(search, moved):
            return moved
    return None


def _leads_away(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether a move leaves more of the largest gap, or of some gap and less of none."""
    if max(after, default=0) > max(before, default=0):
        return True
    return any(map(gt, after, before)) and not any(map(lt, after, before))


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


def _nearest(search: Search, one: _Moved, others: Sequence[_Moved], given: Sequence[Option] = ()) -> _Moved:
    """Return a track where it is moved only as far as it must."""
    low, high = -1, one.i
    while high - low > 1:
        middle = (low + high) // 2
        there = _Moved(one.track, middle)
        if one.track.option(middle) is not None and _mends(search, [*others, there], given):
            high = middle
        else:
            low = middle
    return _Moved(one.track, high)


def _mends(search: Search, moved: Sequence[_Moved], given: Sequence[Option] = ()) -> bool:
    options = [*given, *_options(moved)]
    return search.possible(options) and search.mends(options)


def _options(moved: Sequence[_Moved]) -> list[Option]:
    return [one.option for one in moved]
