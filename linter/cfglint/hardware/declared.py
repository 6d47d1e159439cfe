"""The target that a job itself asks for, such as ``#SBATCH --gpus=rtx_4090:4``."""

from __future__ import annotations

from cfglint.errors import HardwareError
from cfglint.hardware.target import parse_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.shell.job import Job
    from cfglint.hardware.target import Target


def declared(job: Job | None) -> Target | None:
    """Return the target of a batch job; None where it names no GPU that the catalogue knows."""
    if job is None or not job.kind:
        return None
    nodes = job.count("nodes") or 1
    per_node = job.count("gpus_per_node")
    total = job.count("gpus")
    if per_node is None and total is not None:
        per_node, nodes = total, 1  # nothing says how they are spread
    name = job.kind
    if per_node:
        name += f":{per_node}x{nodes}" if nodes > 1 else f":{per_node}"
    try:
        target = parse_target(name)
    except HardwareError:
        return None
    counts = {"gpu.count", "gpu.per_node", "gpu.nodes"}
    for fact in counts & target.facts.keys():
        target.facts[fact] = (target.facts[fact][0], "#SBATCH")
    return target
