"""What to try next where a job still runs out of memory after a repair: further moves, the cheapest first.

What a rule itself names (`next`, such as a setting of the environment) costs nothing and goes first.
A repair is computed with the model's own bounds; a run may still need more (fragmentation, a longer answer
than ever before). Each further step takes at least `_WORTH` off the need, on top of the repair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.lang.values import INF
from cfglint.repair.search import Search
from cfglint.repair.write import titled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.repair.goals import Found
    from cfglint.repair.options import Option, Track
    from cfglint.repair.solve import Repair, Solver

_WORTH = 1 << 29  # bytes; less is lost in the noise of an allocator
_MOST = 4
_PREFIX = "MEM1"  # the rules about what a GPU must hold; MEM2 are about an engine's own share


def escalation(solver: Solver, repair: Repair) -> tuple[str, ...]:
    """Return further steps in words; none where the repair is not about memory."""
    goals = [goal for goal in repair.goals if goal.compiled.code.startswith(_PREFIX) and goal.bounds]
    if not goals or not repair.found.options:
        return ()
    search = Search(solver.trials, goals, ())
    now = _worst(search, repair.found.options)
    steps: dict[str, tuple[tuple[object, ...], Option]] = {}
    for track in solver.tracks(goals):
        for extra, option in _further(search, repair.found, track, now):
            price = option.unsafe, extra, track.number
            if track.knob.name not in steps or price < steps[track.knob.name][0]:
                steps[track.knob.name] = price, option
    ordered = sorted(steps.values(), key=lambda step: step[0])
    outside = dict.fromkeys(text for goal in goals for text in goal.rule.next)
    return *outside, *(titled(option.written, solver.trials.subject.view) for _, option in ordered[:_MOST])


def _further(search: Search, found: Found, track: Track, now: float) -> Iterator[tuple[float, Option]]:
    """Yield the first place of a track, beyond what the repair has, that takes something off the need."""
    others = tuple(option for option in found.options if option.knob != track.knob.name)
    own = next((option for option in found.options if option.knob == track.knob.name), None)
    stride = 1
    i = 0
    while i < len(track):
        option = track.option(i)
        beyond = option is not None and option.writable and (own is None or option.cost > own.cost)
        if option is not None and beyond and _worst(search, (*others, option)) <= now - _WORTH:
            yield option.cost - (own.cost if own is not None else 0), option
            return
        i, stride = i + stride, stride * 2 if beyond else stride


def _worst(search: Search, options: Sequence[Option]) -> float:
    return max(search.reading(options).gaps, default=INF)
