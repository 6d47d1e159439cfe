"""The number that shows that a job cannot run on a target whatever its file says.

It is no reason where the framework can send to the host, or pack into 4 bits, what does not fit the GPUs.
"""

from __future__ import annotations

from cfglint.document.spoken import spoken
from cfglint.engine.memory import GIB, bounds_of, memory_of
from cfglint.lang.values import INF, equal
from cfglint.repair.found import Repair
from cfglint.repair.hopeless import APART, laid_wider, too_large
from cfglint.repair.options import Options
from cfglint.repair.price import overfills_host
from cfglint.repair.shortage import beyond_host, values_told
from cfglint.repair.sized import beyond, in_fewer_bits
from cfglint.repair.together import combined
from cfglint.repair.trials import MEMORY
from cfglint.repair.write import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from cfglint.engine.subject import Judged
    from cfglint.facts import Values
    from cfglint.repair.solve import Solver
    from cfglint.repair.trials import Group
    from cfglint.repair.write import Way

    Told: TypeAlias = Callable[[Judged, Values], str]

_BITS, _ON_HOST = "quantization", "on the host they would take"
_WOULD = "would have them on the host"
_SMALLER = (("offload_optimizer", True), ("offload_params", True), (_BITS, "4"))  # what may make it fit


def in_vain(solver: Solver, group: Group, *, laid: bool = True, states: bool = False) -> str:
    """Return the number that shows that a job cannot run on a target whatever is moved; nothing without one.

    With ``laid``, also of GPUs, not only of memory; with ``states``, of memory that the host could have, too.
    """
    memory = group.code.startswith(MEMORY)
    for goal in group.goals:
        if goal.compiled.level != "error" or not goal.broken or not solver.rests_on_target(goal):
            continue
        numbers = too_large(goal.judged.values, states=states or memory)
        numbers = numbers and _escapes(solver, goal.judged, numbers, _too_large)
        floor = "" if numbers else beyond(goal.judged, goal.judged.values)
        numbers = numbers or (floor and _escapes(solver, goal.judged, floor, beyond))
        if not numbers and laid and not memory and (wider := laid_wider(goal.judged.values)):
            large = too_large(goal.judged.values, states=True)
            large = large and _escapes(solver, goal.judged, large, _too_large)  # which no layout changes
            numbers = large or "; ".join(filter(None, (wider, _also_too_large(goal.judged))))
        if numbers:
            return numbers + beyond_host(solver, goal.judged)
    return ""


def held(judged: Judged, after: Values) -> str:
    """Say what a job takes on other GPUs by what only a name tells of its size, or that nobody knows it."""
    if told := beyond(judged, after) or too_large(after, states=True):
        return told
    blind = judged.target and memory_of(after, judged.target, asks=False)[0].verdict == "unknown"
    return "whether the GPUs then hold the job is not known" if blind else ""


def _also_too_large(judged: Judged) -> str:
    """Say that a trainer takes more than a GPU has, even on as many as the job is laid out for."""
    need, vram = bounds_of(judged.values["trainer.memory"]), bounds_of(judged.values["gpu.vram"])
    if need is None or vram is None or not vram[1] < need[0] <= need[1] < INF:
        return ""
    size = f"{need[0] / GIB:.0f}–{need[1] / GIB:.0f} of {vram[1] / GIB:.1f} GiB"
    return f"even on as many, the trainer needs {size}"


def _too_large(_: Judged, values: Values) -> str:
    return too_large(values, states=True)


def _escapes(solver: Solver, judged: Judged, numbers: str, told_of: Told) -> str:
    """Return a number that stands whatever the file sends to the host, or has in fewer bits; else nothing.

    ``told_of`` makes it of other values.
    """
    writer, values, told, least = solver.writer(judged), judged.values, "", ""
    options = Options(solver.trials, judged, writer)
    for name, worth in _SMALLER:
        if equal(values[name], worth) is True or (name == _BITS and values["lora"] is not True):
            continue
        way = writer.writes(name, worth)
        facts = None if way is None else options.read_with(name, worth, way)  # one file may say it all
        if way is None or facts is None:
            continue
        after = solver.trials.values(judged, facts)
        if kept := _kept_off(solver, judged, way, facts) if name != _BITS else "":
            numbers += kept if _WOULD not in numbers else ""
            continue
        told = told_of(judged, after)
        if not told and not overfills_host(solver.trials, judged, facts):
            return ""
        need = bounds_of(after["need.host"])
        if not told and need is not None and not beyond_host(solver, judged) and _ON_HOST not in numbers:
            numbers += f"; {_ON_HOST} at least {need[0] / GIB:,.0f} GiB of a machine's own, which is too much"
        if name == _BITS and told:
            numbers += f"; in 4 bits, {told}"
    for moves in in_fewer_bits(solver, judged):
        told = told_of(judged, solver.trials.values(judged, combined(moves) or {}))
        if not told:
            return ""
        least = f"; with {values_told(Repair(moves))}, {told}"
    return numbers + (least if told not in numbers and APART not in told else "")


def _kept_off(solver: Solver, judged: Judged, way: Way, facts: Mapping[str, object]) -> str:
    """Say which rules keep a job's states off the host, where the file could send them there."""
    harmed = solver.trials.harmed(judged, facts, surely=True)
    broken = [rule.code for rule in harmed if rule.level != "info" and not rule.code.startswith(MEMORY)]
    if not broken:
        return ""
    keys = " and ".join(f"{spoken(each.path)} {shown(each.value)}" for each in way.keys)
    return f"; {keys} {_WOULD}, but {', '.join(solver.named(broken))} would break"
