"""What repairs reach together, and what one reaches besides its own goals."""

from __future__ import annotations

from cfglint.repair.price import regroups
from cfglint.repair.together import combined
from cfglint.repair.trials import MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cfglint.repair.options import Repair
    from cfglint.repair.solve import Solver
    from cfglint.repair.tracks import Option
    from cfglint.repair.trials import Group


def also_reaching(solver: Solver, repair: Repair, groups: Sequence[Group]) -> Repair:
    """Return a repair that gives a job other GPUs with what it reaches besides of memory's rules."""
    if not regroups(combined(repair.options) or {}):
        return repair
    goals = [goal for group in groups if group.code.startswith(MEMORY) for goal in group.goals]
    if not goals or not solver.mends(repair.options, [*repair.goals, *goals]):
        return repair
    return solver.written(repair, [*repair.goals, *goals]) or repair


def distinct(options: Iterable[Option]) -> tuple[Option, ...]:
    """Return each move once; nothing where a knob would go to two values."""
    distinct: dict[str, Option] = {}
    for option in options:
        if option.knob in distinct and distinct[option.knob].facts != option.facts:
            return ()
        distinct[option.knob] = option
    return tuple(distinct.values())
