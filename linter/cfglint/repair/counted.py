"""Repairs a job of which nobody says how many GPUs it runs on as `fit` judges it: on as many as it takes."""

from __future__ import annotations

from cfglint.engine.cases import cases_of
from cfglint.hardware.target import count_facts
from cfglint.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.find import Found
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Judged

ASSUMED = "assumed"


def counted(run: Run, judgements: Sequence[Judged], found: Sequence[Found]) -> Run | None:
    """Return a run on that many GPUs where an error has no sure fix; None where their number is known."""
    if len(judgements) != 1 or not any(map(is_doubtful, found)):
        return None
    judged = judgements[0]
    gpus, target = cases_of(judged.values)[0].gpus, judged.target
    if gpus is None or target is None or target.count is not None:
        return None
    facts = {**target.facts, **count_facts(gpus, 1, ASSUMED)}
    within = run.but(targets=(replace(target, facts=facts, count=gpus, nodes=1),), named=True)
    within.fixes = run.fixes
    return within


def is_doubtful(each: Found) -> bool:
    """Whether an error about memory has no fix that is sure to be enough."""
    finding = each.finding
    doubtful = finding.fix is None or finding.fix.certainty != "sure"
    return finding.level == "error" and finding.code.startswith("MEM") and doubtful
