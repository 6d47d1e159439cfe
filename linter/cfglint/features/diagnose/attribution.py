"""Who held what when memory ran out: the processes of an incident, put to the engine and the trainer."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cfglint.features.diagnose.incident import TORCH, Incident, Log
from cfglint.features.diagnose.moments import TRAINING, WHEN
from cfglint.hardware.catalogue import gpus
from cfglint.hardware.target import Target, gpu_facts
from cfglint.lang.values import interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GIB = 2**30
ENGINE, TRAINER, OTHER = "engine", "trainer", "other"
# Of the capacity: an engine holds its share, and context, graphs and workspaces (A40: 0.8 asked, 0.818 held).
NEAR = 0.05
_CONTEXT = 2.5 * GIB  # what a process holds beside PyTorch's memory at most: context, NCCL, cuBLAS
_ONE_FAILURE = 2_000  # lines between the ranks of one failure
_ALIKE = 0.1  # GiB by which drivers differ in what they leave usable of one product, at most


@dataclass(frozen=True, slots=True)
class Holder:
    """One process on the GPU. ``role`` is engine, trainer or other, ``died`` the one that asked for more.

    ``name`` is how reports call it, ``needed`` the least that it needed, ``why`` what the role was told from.
    """

    role: str
    name: str
    pid: int | None
    held: int | None
    died: bool = False
    needed: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure: the incidents of its ranks, the first of which is told in full."""

    incidents: tuple[Incident, ...]

    @property
    def first(self) -> Incident:
        """The incident that is told in full."""
        return self.incidents[0]


@dataclass(frozen=True, slots=True)
class Share:
    """The share that the engine was given: its value, the engine's name, and where that is said."""

    value: float
    engine: str | None
    said: str


def failures(incidents: Sequence[Incident]) -> tuple[Failure, ...]:
    """Put the ranks of one failure together; a message that was printed twice counts once.

    PyTorch's texts come first: they carry the account that a later `CUDA error` or a killed process lacks.
    """
    found: list[list[Incident]] = []
    seen: list[Incident] = []
    for one in sorted(incidents, key=lambda i: i.kind != TORCH or i.capacity is None):
        if any(one.same(other) for other in seen if other.path == one.path):
            continue
        seen.append(one)
        last = found[-1] if found else None
        if last is not None and _together(last, one):
            last.append(one)
        else:
            found.append([one])
    return tuple(Failure(tuple(group)) for group in found)


def _together(group: Sequence[Incident], one: Incident) -> bool:
    first = group[0]
    apart = {(i.source, i.gpu) for i in group}
    return (
        first.kind == one.kind
        and first.path == one.path
        and one.line - first.line <= _ONE_FAILURE
        and (one.source, one.gpu) not in apart
        and (bool(one.source) or one.gpu != first.gpu)
        and one.kind == TORCH
    )


def share_of(log: Log, incident: Incident) -> Share | None:
    """Return the share that an engine's own lines name, None where none do."""
    note = log.last("mem_fraction", incident)
    return Share(note.value, note.engine, f"{note.path}:{note.line}") if note is not None else None


def holders(one: Incident, share: Share | None, *, trains: bool = False) -> tuple[Holder, ...]:
    """Return the processes of an incident with their roles, the largest first.

    ``trains`` says that a config is at hand, whose trainer may be the one that died.
    """
    known = list(one.processes)
    own = next((p for p in known if p.own), None) or _own(one)
    if own is None and one.allocated is not None and not known:
        return _without_processes(one)
    others = [p for p in known if p is not own]
    own_is_engine = one.engine is not None and one.moment not in ("backward", "optimizer step")
    engine = None
    if share is not None and not own_is_engine and one.capacity:
        asked = share.value * one.capacity
        near = [p for p in others if p.held is not None and abs(p.held - asked) <= NEAR * one.capacity]
        engine = min(near, key=lambda p: abs((p.held or 0) - asked), default=None)
    rest = [p for p in others if p is not engine]
    if own is None and engine is not None and len(rest) == 1:
        own = rest[0]  # the two processes of the job; the engine does not ask for more once it serves
    result = []
    for p in known:
        needed = (p.held + (one.asked or 0)) if p is own and p.held is not None else None
        if p is engine and share is not None and p.held is not None and one.capacity:
            name = _engine_name(share.engine)
            why = f"{p.held / one.capacity:.2f} of the GPU, and {share.said} asks for {share.value:g}"
            result.append(Holder(ENGINE, name, p.pid, p.held, why=why))
        elif p is own:
            result.append(
                replace(
                    _died(one, trains=trains, beside=engine is not None),
                    pid=p.pid,
                    held=p.held,
                    needed=needed,
                )
            )
        else:
            result.append(Holder(OTHER, "another process", p.pid, p.held))
    return tuple(sorted(result, key=lambda h: -(h.held or 0)))


def _own(one: Incident) -> object:
    """Return the process that raised the error where none says so: in a container their numbers differ.

    It holds what PyTorch reserved and a context beside.
    """
    if one.allocated is None:
        return None
    reserved = one.allocated + (one.cached or 0)
    fitting = [p for p in one.processes if p.held is not None and -GIB / 50 <= p.held - reserved <= _CONTEXT]
    return fitting[0] if len(fitting) == 1 else None


def _died(one: Incident, *, trains: bool, beside: bool) -> Holder:
    if one.engine is not None and one.moment not in ("backward", "optimizer step"):
        return Holder(
            ENGINE, _engine_name(one.engine), None, None, died=True, why="its code raised the error"
        )
    if one.moment in TRAINING:
        return Holder(
            TRAINER, "the trainer", None, None, died=True, why=f"the error was raised {WHEN[one.moment]}"
        )
    if beside or trains:
        return Holder(
            TRAINER,
            "the trainer",
            None,
            None,
            died=True,
            why="it asked for memory beside the engine" if beside else "no engine's code raised the error",
        )
    return Holder(OTHER, "the process", None, None, died=True)


def _without_processes(one: Incident) -> tuple[Holder, ...]:
    """PyTorch 1 names no process: it reserved for its own; what is neither that nor free is the rest's."""
    held = (one.allocated or 0) + (one.cached or 0)
    died = replace(_died(one, trains=False, beside=False), held=held, needed=held + (one.asked or 0))
    if one.capacity is None or one.free is None:
        return (died,)
    rest = one.capacity - one.free - held
    if rest < GIB // 10:
        return (died,)
    return (died, Holder(OTHER, "contexts and other processes", None, rest))


def _engine_name(engine: str | None) -> str:
    return {"sglang": "SGLang", "vllm": "vLLM"}.get(engine or "", "the engine")


def gpu_of(capacity: int, at: str, products: Sequence[str] = ()) -> tuple[Target, str]:
    """Return the target whose usable memory a log states, and a sentence on how it was found.

    The GPU of the catalogue that has it, within what drivers differ by; of several the one that ``products``,
    lines of the log, name. Where that leaves several or none, a target with the measured memory and, as
    ranges, the figures of those that it may be.
    """
    gib = capacity / GIB
    whole = [g for g in gpus() if g.usable_mib is not None and g.mig is None]
    near = [g for g in whole if abs((g.usable_mib or 0) / 1024 - gib) <= _ALIKE]
    named = [g for g in near if any(_names_it(line, g.product) for line in products)]
    measured = capacity, f"measured in {at}"
    chosen = named if len(named) == 1 else near
    if len(chosen) == 1:
        (one,) = chosen
        facts = gpu_facts(one)
        if round((one.usable_mib or 0) / 1024, 2) != round(gib, 2):
            facts["gpu.vram"] = measured
        how = "which the log names" if chosen is named else "the one GPU with so much"
        return Target(one.name, one.product, facts), f"{gib:.2f} GiB: judged for {one.name}, {how}"
    name = f"a GPU with {gib:.2f} GiB"
    facts = {
        **_hull([gpu_facts(one) for one in near]),
        "gpu.vram": measured,
        "gpu.name": (name, f"measured in {at}"),
    }
    why = (
        f"{gib:.2f} GiB: {_names(g.name for g in near)}"
        if near
        else f"no GPU of the catalogue has {gib:.2f} GiB usable"
    )
    return (
        Target(f"{gib:.2f}gib", name, facts),
        f"{why}; judged for what they share, --gpu names it"
        if near
        else f"{why}; judged for that memory, --gpu names it",
    )


def _names_it(line: str, product: str) -> bool:
    return (
        re.search(rf"(?<![\w-]){re.escape(product)}(?![\w-])(?! (?:Ti|SUPER|Laptop|D|Max-Q)\b)", line)
        is not None
    )


def _hull(several: Sequence[dict[str, tuple[object, str]]]) -> dict[str, tuple[object, str]]:
    """Return the facts that all have: the same, or numbers between the least and the most."""
    facts: dict[str, tuple[object, str]] = {}
    for name in set.intersection(*(set(one) for one in several)) if several else ():
        values = [one[name][0] for one in several]
        if all(value == values[0] for value in values):
            facts[name] = several[0][name]
        elif all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
            numbers = [float(value) for value in values if isinstance(value, (int, float))]
            facts[name] = (interval(min(numbers), max(numbers)), "catalogue: of several GPUs")
    return facts


def _names(names: Iterable[str]) -> str:
    found = list(names)
    return (
        ", ".join(found[:4]) + (f" or {len(found) - 4} others" if len(found) > 4 else "")
        if len(found) != 2
        else " or ".join(found)
    )
