"""A smaller micro-batch with more accumulation, where nobody knows what a job takes of the GPUs that it gets.

Of such a job no rule about memory says anything, and whoever moves it tries that first.
"""

from __future__ import annotations

from cfglint.engine.memory import bounds_of
from cfglint.lang.values import INF
from cfglint.repair.exchange import COUNTS_MICRO
from cfglint.repair.price import regroups
from cfglint.repair.results import risk_to_results
from cfglint.repair.together import combined
from cfglint.repair.write import titled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.engine.subject import Judged
    from cfglint.repair.found import Repair
    from cfglint.repair.solve import Solver

_MICRO, _STEPS = "micro_batch_size", "grad_accum"


def smaller(solver: Solver, repair: Repair, judged: Judged) -> tuple[str, ...]:
    """Return in words how half of a micro-batch keeps a batch; nothing where the job's memory is known."""
    facts = combined(repair.options) or {}
    if repair.patch is None or not regroups(facts):
        return ()
    after = solver.trials.values(judged, facts)
    need, micro, steps = bounds_of(after["trainer.likely"]), after[_MICRO], after[_STEPS]
    halved = (
        not judged.subject.view.has(COUNTS_MICRO)
        and isinstance(micro, int)
        and isinstance(steps, int)
        and micro % 2 == 0
    )
    if not halved or after["trains"] is not True or (need is not None and need[1] < INF):
        return ()
    new = {_MICRO: micro // 2, _STEPS: steps * 2}  # type: ignore[operator]
    if risk_to_results(solver.trials, judged, {**facts, **new}) != repair.results:
        return ()
    writer = solver.writer(judged)
    ways = [writer.writes(name, value) for name, value in new.items()]
    keys = [written for way in ways if way is not None for written in way.keys]
    if any(way is None for way in ways) or writer.patch(keys) is None:
        return ()
    return (titled(keys, judged.subject.view),)
