"""Far fewer GPUs than a job asks for: nobody waits for a few to do it, so no fix is offered."""

from __future__ import annotations

from cfglint.lang.types import is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.engine.subject import Judged

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


def too_few(judged: Judged, asked: int) -> str:
    """Say that a job asks for far more GPUs than there are."""
    there = int(judged.values["gpu.count"])  # type: ignore[call-overload]
    told = "there is 1" if there == 1 else f"there are {there}"
    work = f"on {'it' if there == 1 else 'these'} the same work takes about {asked / there:.0f} times as long"
    limit = f"more than {_LEAST} times is not proposed (a rule of thumb)"
    return f"the job asks for {asked} GPUs, and {told}: {work}; {limit}"
