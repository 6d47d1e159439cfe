"""One of the GPUs that are there, for a job that runs on no more: it is told how to start it there.

A config that nothing launches takes all GPUs of its machine. Where its errors are none on a single one, no
edit is needed.
"""

from __future__ import annotations

from cfglint.engine.memory import memory_of
from cfglint.findings import Fix
from cfglint.hardware.target import parse_target
from cfglint.lang.types import is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.subject import Judged
    from cfglint.repair.trials import Goal, Trials

_MOST = 8  # GPUs that are tried


def one_here(trials: Trials, judged: Judged, goals: Sequence[Goal]) -> Fix | None:
    """Return how to start a job on one of a machine's GPUs, where it runs there, or may; else None."""
    given = judged.values.given
    count, model, nodes = (given.get(f"gpu.{name}") for name in ("count", "model", "nodes"))
    about_gpus = goals and not any(goal.code.startswith(("MEM", "BAT")) for goal in goals)
    if not about_gpus or not is_number(count) or count < 2 or nodes != 1 or not isinstance(model, str):
        return None
    if judged.subject.document.format == "shell" or not _hold(trials, judged, goals, 1):  # it says how many
        return None
    if any(_hold(trials, judged, goals, number) for number in range(2, min(int(count), _MOST) + 1)):
        return None  # sizes that do not go with so many GPUs: nobody takes one for that
    alone = trials.run.but(targets=(parse_target(f"{model}:1"),), named=True)
    (there,) = alone.judged(judged.subject)
    errors = [v for v in there.verdicts if v.truth is False and v.rule.level == "error"]
    memory = memory_of(there.values, there.target, asks=False)[0] if there.target is not None else None
    if errors or memory is None or memory.verdict not in ("fits", "tight"):
        return None
    need = f"{memory.need_gib.low:.0f}–{memory.need_gib.high:.0f} of {memory.capacity_gib or 0:.1f} GiB"
    may = ", where it may fit" if memory.verdict == "tight" else ""
    title = f"start it on one of the {int(count)} GPUs here, by CUDA_VISIBLE_DEVICES=0{may} ({need})"
    return Fix(0, title, (), applicability="display", target=judged.target.name if judged.target else None)


def _hold(trials: Trials, judged: Judged, goals: Sequence[Goal], number: int) -> bool:
    """Whether rules hold on so many GPUs."""
    some = {"gpu.count": number, "gpu.per_node": number}
    return all(goal.compiled.test(trials.values(judged, some)) in (True, None) for goal in goals)
