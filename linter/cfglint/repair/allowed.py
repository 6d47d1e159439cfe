"""Which moves a search may make."""

from __future__ import annotations

from cfglint.record import Value
from cfglint.repair.search import LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cfglint.repair.tracks import Option, Track


class Allowed(Value):
    """Which moves a search may make; ``without`` are knobs that stay."""

    unsafe: bool = True
    display: bool = False
    without: frozenset[str] = frozenset()
    limit: int = LIMIT

    def admits(self, option: Option) -> bool:
        """Whether a move may be made."""
        return (self.unsafe or option.risk == "none") and (self.display or option.writable)

    def over(self, tracks: Iterable[Track]) -> list[Track]:
        """Return the tracks that may be used, with the places of them that may.

        What changes results by itself may be made up for, where that is allowed (Search.keeping).
        """
        able = (each.begun() for each in tracks if each.knob.name not in self.without)
        admitted = (track.where(self.admits).begun() for track in able if track is not None)
        return [track for track in admitted if track is not None]


SAFE, ANY, SHOWN = Allowed(unsafe=False), Allowed(), Allowed(display=True)


def uncut(tracks: Iterable[Track]) -> list[Track]:
    """Return tracks without the moves that cut the data: nobody makes them to fit a GPU."""
    whole = (track.where(lambda option: option.risk != "data").begun() for track in tracks)
    return [track for track in whole if track is not None]
