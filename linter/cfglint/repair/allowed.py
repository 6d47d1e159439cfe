"""Which moves a search may make."""

from __future__ import annotations

from cfglint.record import Value
from cfglint.repair.search import LIMIT
from cfglint.repair.tracks import risk_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cfglint.repair.tracks import Option, Track
    from cfglint.repair.trials import Goal
    from cfglint.repair.write import Writer

_RECOMPUTES, _NOTHING = "gradient_checkpointing", "none"
_ADAPTS = "lora_rank"


class Allowed(Value):
    """Which moves a search may make; ``without`` are knobs that stay."""

    unsafe: bool = True
    display: bool = False
    without: frozenset[str] = frozenset()
    limit: int = LIMIT

    def admits(self, option: Option) -> bool:
        """Whether a move may be made."""
        return (self.unsafe or option.risk == "none") and (self.display or option.writable)

    def _may_admit(self, track: Track) -> bool:
        """Whether a track may have a move that is admitted, as far as its price tells: making one is work."""
        if track.knob.name in self.without:
            return False
        risky = all(move.leaving is None for move in track.knob.moves) and risk_of(track.move) != _NOTHING
        return self.unsafe or not risky

    def over(self, tracks: Iterable[Track]) -> list[Track]:
        """Return the tracks that may be used, with the places of them that may.

        What changes results by itself may be made up for, where that is allowed (Search.keeping).
        """
        able = (each.begun() for each in tracks if self._may_admit(each))
        admitted = (track.where(self.admits).begun() for track in able if track is not None)
        return [track for track in admitted if track is not None]


SAFE, ANY, SHOWN = Allowed(unsafe=False), Allowed(), Allowed(display=True)


def uncut(tracks: Iterable[Track]) -> list[Track]:
    """Return tracks without the moves that cut the data: nobody makes them to fit a GPU."""
    whole = (track.where(lambda option: option.risk != "data").begun() for track in tracks)
    return [track for track in whole if track is not None]


def to_the_point(tracks: Iterable[Track], goals: Iterable[Goal], writer: Writer) -> Iterator[Track]:
    """Yield tracks, but those that nobody would take for what is broken.

    Where memory is lacking, recomputing is not stopped, unless another rule asks for that; adapters are for
    memory, also where it stands against what mends another rule, or where a rule names them.
    """
    broken, origins = [goal for goal in goals if not goal.held], writer.origins
    others = [goal.rule.requirement for goal in broken if not goal.code.startswith("MEM")]
    asked = any(_RECOMPUTES in origins.derivation(origins.names_in(each)) for each in others)
    lacking = len(others) < len(broken)
    adapted = any(
        goal.code.startswith("MEM") or _ADAPTS in origins.names_in(goal.rule.requirement) for goal in goals
    )
    for track in tracks:
        if track.knob.name == _ADAPTS and not adapted:
            continue
        if track.knob.name != _RECOMPUTES or asked or not lacking:
            yield track
        elif whole := track.where(lambda option: option.facts.get(_RECOMPUTES) != _NOTHING).begun():
            yield whole
