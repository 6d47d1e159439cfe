"""The hardware on which a config would run as it is: more of the same GPUs, or the smallest other one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.engine.judge import judge
from cfglint.facts import missing
from cfglint.findings import Fix
from cfglint.hardware.catalogue import GIB, gpus
from cfglint.hardware.target import count_facts, gpu_facts
from cfglint.repair.solve import to_mend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.engine.subject import Judged
    from cfglint.hardware.catalogue import Gpu
    from cfglint.repair.goals import Goal
    from cfglint.repair.trials import Trials

_TIMES = (2, 4, 8)
_MIB = 1 << 20


def elsewhere(trials: Trials, goal: Goal) -> Fix | None:
    """Return where a config runs as it is; None where the rule has nothing to do with the target."""
    one = goal.one
    model, vram = one.values.given.get("gpu.model"), one.values.given.get("gpu.vram")
    if one.target is None or not isinstance(model, str) or not isinstance(vram, int):
        return None
    if trials.run.without_target(goal.compiled, one):
        return None
    places = [place for place in (_more(trials, goal, model), _other(trials, goal, model, vram)) if place]
    if not places:
        return None
    return Fix(
        0, "run it as it is on " + ", or on ".join(places), (), applicability="display",
        effect="no value of the file changes", target=one.name,
    )  # fmt: skip


def _more(trials: Trials, goal: Goal, model: str) -> str | None:
    """Return the least multiple of the GPUs that the config has now."""
    count, nodes = goal.one.values["gpu.count"], goal.one.values["gpu.nodes"]
    if not isinstance(count, int) or not isinstance(nodes, int) or count % nodes:
        return None
    for times in _TIMES:
        more = {name: fact for name, (fact, _) in count_facts(count // nodes * times, nodes, "").items()}
        if _runs(trials, goal, more):
            return f"{model}:{count * times}"
    return None


def _other(trials: Trials, goal: Goal, model: str, vram: int) -> str | None:
    """Return the GPU with the least memory, of the same maker and not smaller than this one."""
    vendor = goal.one.values.given.get("gpu.vendor")
    for gpu in _by_size(gpu for gpu in gpus() if gpu.vendor == vendor and gpu.name != model):
        assert gpu.usable_mib is not None
        if gpu.usable_mib * _MIB >= vram and _runs(trials, goal, _facts(trials, goal.one, gpu)):
            return f"{gpu.name} ({gpu.usable_mib * _MIB / GIB:.2f} GiB)"
    return None


def _by_size(some: Iterator[Gpu]) -> list[Gpu]:
    known = [gpu for gpu in some if gpu.usable_mib is not None]
    return sorted(known, key=lambda gpu: (gpu.usable_mib, gpu.name))


def _facts(trials: Trials, one: Judged, gpu: Gpu) -> dict[str, object]:
    """Return what another GPU gives; what is not known of it is missing, whatever the present one has."""
    facts = {name: fact for name, (fact, _) in gpu_facts(gpu).items() if name in trials.run.pack.facts}
    for name in one.values.given:
        counted = name in ("gpu.count", "gpu.nodes", "gpu.per_node")
        if name.startswith("gpu.") and name not in facts and not counted and name in trials.run.pack.facts:
            facts[name] = missing(name, trials.run.pack.facts[name])
    return facts


def _runs(trials: Trials, goal: Goal, facts: dict[str, object]) -> bool:
    """Whether the rule holds there, and no error stands or may stand against the config."""
    values = trials.values(goal.one, facts)
    if goal.compiled.test(values) not in (True, None):  # engine and trainer may no longer share a GPU
        return False
    found = judge(trials.rules(goal.one), values)
    return not any(verdict.rule.level == "error" and to_mend(verdict) for verdict in found)
