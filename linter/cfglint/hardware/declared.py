"""The targets that a job asks for, such as ``#SBATCH --gpus=rtx_4090:4`` or ``accelerators: A100-80GB:8``."""

from __future__ import annotations

from cfglint.errors import HardwareError
from cfglint.hardware.target import Target, count_facts, parse_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.shell.job import Job


def declared(job: Job | None) -> list[Target]:
    """Return the targets of a job, several where any of some GPUs will do.

    One that names no GPU that the catalogue knows, but how many, has a number of GPUs and nothing else.
    """
    if job is None:
        return []
    kinds = [(job.kind, job.many), *job.others]
    found = [_named(job, kind, many) for kind, many in kinds if kind]
    targets = {target.name: target for target in found if target is not None}
    if targets:
        return list(targets.values())
    return _counted(job)


def _spread(job: Job, per_node: int | None) -> tuple[int | None, int]:
    """Return GPUs in a node, and nodes; what nothing spreads is taken as one node."""
    nodes, total = job.count("nodes") or 1, job.count("gpus")
    per_node = per_node if per_node is not None else job.count("gpus_per_node")
    return (total, 1) if per_node is None and total is not None else (per_node, nodes)


def _named(job: Job, kind: str, many: int | None) -> Target | None:
    per_node, nodes = _spread(job, many)
    name = kind
    if per_node:
        name += f":{per_node}x{nodes}" if nodes > 1 else f":{per_node}"
    try:
        target = parse_target(name)
        if not per_node and nodes > 1 and target.count:  # a cloud's machine says how many it has
            target = parse_target(f"{name}:{target.count}x{nodes}")
    except HardwareError:
        return None
    for fact in {"gpu.count", "gpu.per_node", "gpu.nodes"} & target.facts.keys():
        target.facts[fact] = (target.facts[fact][0], job.source)
    return target


def _counted(job: Job) -> list[Target]:
    per_node, nodes = _spread(job, None)
    if not per_node:
        return []
    total = per_node * nodes
    facts = count_facts(per_node, nodes, job.source)
    return [Target(f"gpu:{total}", "any GPU", facts, count=total, nodes=nodes)]
