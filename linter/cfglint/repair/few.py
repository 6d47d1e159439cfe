"""Far fewer GPUs than a job asks for: nobody waits for a few to do it, so no fix is offered."""

from __future__ import annotations

from cfglint.hardware.target import count_facts
from cfglint.lang.types import is_number
from cfglint.repair.trials import MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.engine.subject import Judged
    from cfglint.repair.trials import Goal, Trials

_LEAST = 16  # times as many as there are: a rule of thumb, which the message says
_ASKED = ("num_gpus", "gpus_needed")


def asked_of(judged: Judged) -> int:
    """Return how many GPUs a job asks for, where there are far fewer; else 0.

    A launcher's own file says nothing of the job.
    """
    values = judged.values
    there, model = values["gpu.count"], values["model_path"]
    if not is_number(there) or not (judged.subject.is_launch or isinstance(model, str)):
        return 0
    asked = max((int(number) for name in _ASKED if is_number(number := values[name])), default=0)
    return asked if asked > _LEAST * there else 0


def is_of_number(trials: Trials, goal: Goal, asked: int) -> bool:
    """Whether a rule is broken by the number of GPUs alone: on as many as the job asks for, it holds."""
    if goal.code.startswith(MEMORY):
        return False
    nodes = goal.judged.values["num_nodes"]
    machines = int(nodes) if is_number(nodes) and asked % max(1, nodes) == 0 else 1
    facts = {name: fact for name, (fact, _) in count_facts(asked // machines, machines, "").items()}
    return goal.compiled.test(trials.values(goal.judged, facts)) in (True, None)


def too_few(judged: Judged, asked: int) -> str:
    """Say that a job asks for far more GPUs than there are."""
    there = int(judged.values["gpu.count"])  # type: ignore[call-overload]
    told = "there is 1" if there == 1 else f"there are {there}"
    work = f"on {'it' if there == 1 else 'these'} the same work takes about {asked / there:.0f} times as long"
    limit = f"more than {_LEAST} times is not proposed (a rule of thumb)"
    return f"the job asks for {asked} GPUs, and {told}: {work}; {limit}"
