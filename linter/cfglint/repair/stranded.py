"""Says why nothing is proposed where errors without a fix keep a job from running on a target."""

from __future__ import annotations

from cfglint.lang.values import INF, needs_of
from cfglint.record import replace
from cfglint.repair.reason import Reason
from cfglint.repair.shortage import at_most, values_told
from cfglint.repair.together import combined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.subject import Judged
    from cfglint.repair.allowed import Allowed
    from cfglint.repair.solve import Solver
    from cfglint.repair.trials import Group

BY_HAND = "cfglint has no setting to move for {}: change by hand what the message names"
_PARTS = (("trainer.memory", "trains"), ("engine.memory", "generates"))
NOWHERE = "; no other hardware was found on which the job runs"
_UNJUDGED = "; on which other hardware the job runs is not known, as its memory is not judged"


def stranded_told(codes: Sequence[str], told: str, own: str) -> str:
    """Say why nothing is proposed where errors on account of which a job does not run have no fix.

    ``told`` is what stands against their fix, ``own`` the code of the finding that says so.
    """
    if [code.partition(" ")[0] for code in codes] == [own]:
        return told or BY_HAND.format("this rule")
    others = [code for code in codes if code.partition(" ")[0] != own]
    have, they = ("has", "it") if len(others) == 1 else ("have", "them")
    return f"{', '.join(others)} {have} to be mended as well: {told or BY_HAND.format(they)}"


def nowhere(judged: Judged) -> str:
    """Say that no other hardware is told, and why where nobody knows what the job takes."""
    from cfglint.engine.cases import TOTAL, cases_of
    from cfglint.engine.memory import LACKING, bounds_of, memory_of
    from cfglint.engine.together import asked_together

    if judged.target is None:
        return NOWHERE
    if judged.values[LACKING] is True:
        parts = (name for name, there in _PARTS if judged.values[there] is True)
        needs = [bounds_of(judged.values[name]) for name in parts]
        known = all(need is not None and need[1] < INF for need in needs)
        return NOWHERE if needs and known else _UNJUDGED
    memory = memory_of(judged.values, judged.target, narrow="")[0]
    missing = needs_of(cases_of(judged.values)[0].values[TOTAL])
    if memory.verdict != "unknown" and not missing:
        return NOWHERE
    ask = memory.ask or asked_together(judged.values, missing)  # too much here; elsewhere, nobody knows
    return f"{_UNJUDGED}: {ask}" if ask else _UNJUDGED


def moved_by_hand(solver: Solver, group: Group, allowed: Allowed) -> Reason:
    """Say which moves satisfy a rule that no edit of the file can make, and what the job then takes."""
    way = solver.anyhow(replace(solver.search(group.goals), limit=allowed.limit), group.goals, allowed)
    if way is None or not way.written:
        return Reason()
    judged = group.goals[0].judged
    if not solver.trials.short(judged, combined(way.options) or {}):
        text = f"change by hand what no edit of this file reaches: {values_told(way)}"
        return Reason(text, by_hand=True)
    memory = at_most(solver, way, judged)
    return replace(memory, text=f"with {values_told(way)} this rule holds, but {memory.text}", way=True)
