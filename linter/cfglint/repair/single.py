"""The single move that comes nearest to a goal, where no moves reach it for certain."""

from __future__ import annotations

from cfglint.lang.values import needs_of
from cfglint.repair.found import Repair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cfglint.repair.search import Search
    from cfglint.repair.tracks import Track

_COARSE = 48  # places of a track that are looked at


def nearest(search: Search, tracks: Iterable[Track]) -> Repair | None:
    """Return the single move after which the goals may hold: safe ones first, then by overshoot.

    They may hold for certain, where another rule may be broken then.
    """
    ways: list[tuple[tuple[object, ...], Repair]] = []
    for track in tracks:
        places = track.scan()
        for i in sorted({*places[:: len(places) // _COARSE + 1], places[-1]}):
            option = track.option(i)
            if option is None or search.spent():
                continue
            progress = search.progress((option,))
            if progress.truth is not False and not needs_of(progress.truth):
                repair = Repair((option,), sure=False)
                over = max((0.0, *progress.gaps))
                ways.append(((option.unsafe, over, repair.price, track.number), repair))
    ordered = (repair for _, repair in sorted(ways, key=lambda way: way[0]))
    return next((repair for repair in ordered if not search.harms(repair.options, surely=True)), None)
