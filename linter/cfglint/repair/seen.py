"""What a track tells a search that looks at its start, its middle and its end."""

from __future__ import annotations

from itertools import pairwise
from math import isfinite

from cfglint.record import replace
from cfglint.repair.along import less
from cfglint.repair.together import combined
from cfglint.repair.tracks import SHORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.repair.relax import Search
    from cfglint.repair.tracks import Option, Track
    from cfglint.repair.trials import Goal


def seen(search: Search, track: Track, others: tuple[Option, ...] = ()) -> Track:
    """Return a track with what its start, its middle and its end tell, with others moved."""
    count = len(track)
    end = track.option(count - 1)
    if count > 2 and end is not None and search.bounds and not _is_switch(search, track):
        gaps = search.progress((*others, end)).gaps
        if gaps == search.progress(others).gaps and all(map(isfinite, gaps)):
            return track  # where it ends, nothing has changed
    options = [option for i in sorted({0, count // 2, count - 1}) if (option := track.option(i))]
    moved = [some for some in (others, *((*others, option) for option in options)) if _goes(some)]
    along = [search.progress(some) for some in moved]
    reaches, loose, straight = set(), False, True
    start = 0
    for number, goal in enumerate(search.goals):
        own = slice(start, start + len(goal.gaps))
        start = own.stop
        if track.knob.name in goal.switches or (
            not goal.bounds
            and (search.trials.touches(goal, options[0].facts) or (others and _turns(search, goal, moved)))
        ):
            reaches.add(number)
            loose = True
        if not goal.bounds:
            continue
        for near, far in pairwise(progress.gaps[own] for progress in along):
            for a, b in zip(near, far, strict=True):
                straight = straight and isfinite(a) and isfinite(b) and not less(a, b)
                if less(b, a) or (not isfinite(a) and (isfinite(b) or not others)):
                    reaches.add(number)
    farthest = track.option(count - 1) if straight or count == 1 else _farthest(search, track)
    if count > 1 and _is_switch(search, track):
        farthest = None  # what switches a rule off may stand anywhere along it
    return replace(
        track,
        reaches=frozenset(reaches),
        straight=straight,
        plain=straight and not loose,
        farthest=farthest,
    )


def places_of(track: Track) -> list[Option]:
    """Return the options of a short track; of a long one those at some of its places."""
    count = len(track)
    far = (2**k for k in range(4, count.bit_length()))
    places = range(count) if count <= SHORT else (*range(0, SHORT, 4), *far)
    return [option for i in places if i < count and (option := track.option(i))]


def _goes(options: Sequence[Option]) -> bool:
    return combined(options) is not None


def _is_switch(search: Search, track: Track) -> bool:
    return any(track.knob.name in goal.switches for goal in search.goals)


def _turns(search: Search, goal: Goal, moved: Sequence[Sequence[Option]]) -> bool:
    """Whether a goal holds after some moves, and not after others: its rule may say nothing before."""
    known = [facts for options in moved if (facts := combined(options)) is not None]
    trials = search.trials
    truths = (goal.truth(trials, trials.values(goal.judged, facts), facts) for facts in known)
    return len({truth is True for truth in truths}) > 1


def _farthest(search: Search, track: Track) -> Option | None:
    """Return the best of some places of a long track that leads to and fro; a short one is left open."""
    if len(track) <= SHORT or not search.bounds:
        return None
    return min(places_of(track), key=lambda option: max(search.progress((option,)).gaps), default=None)
