"""What makes a job fit after first moves have brought it to the GPUs that there are: judged once more there.

The exact search looks at both at once, and may have no time left for what only helps together. So the first
moves are written, the edited text is judged as any other, and what mends its memory is added to them.
"""

from __future__ import annotations

from cfglint.record import replace
from cfglint.repair.allowed import SAFE
from cfglint.repair.found import Repair
from cfglint.repair.solve import Solver, solving
from cfglint.repair.tighter import completed, furthest
from cfglint.repair.together import combined, distinct
from cfglint.repair.trials import MEMORY
from cfglint.repair.turns import turned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.engine.subject import Judged
    from cfglint.repair.search import Search
    from cfglint.repair.trials import Goal


def afterwards(
    solver: Solver, goals: Sequence[Goal], judged: Judged, first: Repair | None = None
) -> Repair | None:
    """Return safe moves that reach goals, with what then mends the memory, which may be enough.

    ``first`` are moves that reach them whatever memory is then taken.
    """
    moving = tuple(goal for goal in goals if not goal.code.startswith(MEMORY))
    if first is None and moving:
        search = replace(solver.search(moving), keeping=True, lenient=True)
        first = solver.first.get(moving) or solver.anyhow(search, moving, SAFE)
        first = first or _with_company(solver, search)
    patch = None if first is None else solver.writer(judged).patch(first.written)
    after = None if patch is None else solver.trials.judged_after(patch.edits)
    new = next((one for one in after or () if one.target == judged.target), None)
    if first is None or new is None:
        return None
    with solving(solver.trials.run, (new,)) as there:
        second = next(filter(None, _ways(there, new)), None)
    if second is None:
        return None
    options = distinct((*first.options, *second.options))
    if combined(options) is None:
        return None
    return solver.written(solver.as_one(Repair(options, sure=False), judged), tuple(goals))


def _with_company(solver: Solver, search: Search) -> Repair | None:
    """Return a move that reaches the goals with what other rules then ask for, whatever memory is taken."""
    heedless = replace(search, heedless=True, exhausted=False, refused=set(), _start=-1)
    heedless.pursue(search.goals)
    for track in SAFE.over(solver.tracks(search.goals)):
        option = track.option(0)
        if option is not None and heedless.progress((option,)).holds:
            whole = completed(solver, heedless, (option,))
            if whole is not None:
                return Repair(whole, sure=False)
    return None


def _ways(solver: Solver, judged: Judged) -> Iterator[Repair | None]:
    broken = (v.rule for v in judged.verdicts if v.truth is False and v.rule.level == "error")
    codes = dict.fromkeys(rule.code for rule in broken if rule.code.startswith("MEM"))
    goals = tuple(goal for code in codes for goal in solver.goals(code))
    if goals:
        yield solver.likely(goals)
        yield turned(solver, goals, SAFE)
        yield furthest(solver, goals, SAFE)
