"""Parts of a job that take turns: a switch that makes one rule fall silent and lets another one speak.

Beside a trainer, an inference engine keeps its memory; one that sleeps gives it back, and then another rule
says what both need. The exact search meets that rule only once the switch is made, and may have no time left.
"""

from __future__ import annotations

from math import isfinite

from cfglint.engine.memory import GIB
from cfglint.record import replace
from cfglint.repair.found import Repair
from cfglint.repair.together import combined
from cfglint.repair.trials import MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.repair.allowed import Allowed
    from cfglint.repair.search import Search
    from cfglint.repair.solve import Solver
    from cfglint.repair.tracks import Option, Track
    from cfglint.repair.trials import Goal

_WORTH = GIB / 4  # bytes that a move has to take off what is missing
_MOVES = 7


def turned(solver: Solver, goals: Sequence[Goal], allowed: Allowed) -> Repair | None:
    """Return moves with a switch after which another rule judges the memory; they may be enough."""
    for switch in _switches(goals, _usable(solver, goals, allowed)):
        facts = combined((switch,)) or {}
        codes = {rule.code for judged in solver.watched for rule in solver.trials.harmed(judged, facts)}
        then = [goal for code in sorted(codes) for goal in solver.of(code)]
        own = (*(goal for goal in goals if switch.knob not in goal.switches), *then)
        if not then:
            continue
        search = replace(solver.search(own), keeping=not allowed.unsafe, lenient=True)
        options = _steepest(search, _usable(solver, own, allowed), (switch,))
        if _reached(search, options):
            return solver.written(Repair(_needed(search, options), sure=False), goals)
    return None


def _usable(solver: Solver, goals: Sequence[Goal], allowed: Allowed) -> list[Track]:
    def admits(option: Option) -> bool:
        return option.risk == "none" and (allowed.unsafe or option.results == "none")

    usable = (track.where(admits).begun() for track in allowed.over(solver.tracks(goals)))
    return [track for track in usable if track is not None]


def _switches(goals: Sequence[Goal], tracks: Sequence[Track]) -> Iterator[Option]:
    names = {name for goal in goals for name in goal.switches}
    for track in tracks:
        option = track.option(0) if track.knob.name in names else None
        if option is not None and option.writable:
            yield option


def _steepest(search: Search, tracks: Sequence[Track], options: tuple[Option, ...]) -> tuple[Option, ...]:
    """Add the move that takes most off what is missing, and again, while one takes off something."""
    ends = [(track, i) for track in tracks for i in sorted({0, len(track) // 2, len(track) - 1})]
    moves = [option for track, i in ends if (option := track.option(i)) is not None and option.writable]
    for _ in range(_MOVES):
        now = _missing(search, options)
        ways = [
            (_missing(search, together), move.weight, together)
            for move in moves
            if move.knob != options[0].knob
            and search.possible(together := (*(o for o in options if o.knob != move.knob), move))
        ]
        better = sorted(
            (way for way in ways if way[0] <= now - _WORTH), key=lambda way: (round(way[0] / _WORTH), way[1])
        )
        chosen = next((way[2] for way in better if not _breaks(search, way[2])), None)
        if now <= 0 or chosen is None:
            break
        options = chosen
    return options


def _breaks(search: Search, options: tuple[Option, ...]) -> bool:
    """Whether moves surely break a rule that is not about memory: of that, others may still take off."""
    facts = combined(options) or {}
    harmed = (rule for judged in search.watched for rule in search.trials.harmed(judged, facts, surely=True))
    return any(not rule.code.startswith(MEMORY) for rule in harmed)


def _needed(search: Search, options: tuple[Option, ...]) -> tuple[Option, ...]:
    for option in sorted(options[1:], key=lambda option: -option.weight):
        fewer = tuple(other for other in options if other is not option)
        missing = _missing(search, options)
        if _reached(search, fewer) and _missing(search, fewer) <= (missing + _WORTH if missing else 0.0):
            options = fewer
    return options


def _reached(search: Search, options: tuple[Option, ...]) -> bool:
    return (
        search.possible(options) and search.progress(options).truth is not False and not search.harms(options)
    )


def _missing(search: Search, options: tuple[Option, ...]) -> float:
    return sum(gap for gap in search.progress(options).gaps if isfinite(gap) and gap > 0)
