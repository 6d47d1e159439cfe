"""Who held what when memory ran out, and what an incident's own numbers advise without a config."""

from __future__ import annotations

import math
import re

from cfglint.engine.memory import GIB
from cfglint.features.diagnose import messages
from cfglint.features.diagnose.log import CAPTURE, LOADING, TRAINING, WHEN, Log
from cfglint.hardware.catalogue import gpus
from cfglint.hardware.target import Target, gpu_facts
from cfglint.lang.types import is_number
from cfglint.lang.values import interval
from cfglint.record import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cfglint.features.diagnose.messages import Incident, Process

ENGINE, TRAINER, OTHER = "engine", "trainer", "other"
# Of the capacity: an engine holds its share, and context, graphs and workspaces (A40: 0.8 asked, 0.818 held).
NEAR = 0.05
_CONTEXT = 2.5 * GIB  # what a process holds beside PyTorch's memory at most: context, NCCL, cuBLAS
_ONE_FAILURE = 2_000  # lines between the ranks of one failure
_ALIKE = 0.1  # GiB by which drivers differ in what they leave usable of one product, at most
_MUCH = 0.1  # of the GPU, reserved and not used


class Holder(Value):
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


class Share(Value):
    """The share that the engine was given: its value, the engine's name, and where that is said."""

    value: float
    engine: str | None
    source: str


# ── failures ────────────────────────────────────────────────────────────────────────────────────────────
def failures(incidents: Sequence[Incident]) -> list[list[Incident]]:
    """Put the ranks of one failure together; a message that was printed twice counts once.

    PyTorch's texts come first: they carry the account that a later `CUDA error` or a killed process lacks.
    """
    groups: list[list[Incident]] = []
    seen: set[tuple[str, Incident]] = set()
    ranks: set[tuple[str, int | None]] = set()  # of the last group
    for incident in sorted(incidents, key=lambda i: i.kind != messages.TORCH or i.capacity is None):
        if (incident.path, incident) in seen:
            continue
        seen.add((incident.path, incident))
        rank = incident.source, incident.gpu
        if groups and rank not in ranks and _one_failure(groups[-1][0], incident):
            groups[-1].append(incident)
        else:
            groups.append([incident])
            ranks.clear()
        ranks.add(rank)
    return groups


def _one_failure(first: Incident, incident: Incident) -> bool:
    """Whether an incident is that of another rank."""
    return (
        first.kind == incident.kind == messages.TORCH
        and first.path == incident.path
        and incident.line - first.line <= _ONE_FAILURE
        and (bool(incident.source) or incident.gpu != first.gpu)
    )


# ── processes ───────────────────────────────────────────────────────────────────────────────────────────
def share_of(log: Log, incident: Incident) -> Share | None:
    """Return the share that an engine's own lines name, None where none do."""
    note = log.last("mem_fraction", incident)
    return Share(note.value, note.engine, f"{note.path}:{note.line}") if note is not None else None


def holders(incident: Incident, share: Share | None, *, trains: bool = False) -> tuple[Holder, ...]:
    """Return the processes of an incident with their roles, the largest first.

    ``trains`` says that a config is at hand, whose trainer may be the one that died.
    """
    processes = incident.processes
    if incident.allocated is not None and not processes:
        return _without_processes(incident)
    own = _own(incident)
    others = [process for process in processes if process is not own]
    engine = _engine_beside(incident, share, others)
    rest = [process for process in others if process is not engine]
    if own is None and engine is not None and len(rest) == 1:
        own = rest[0]  # the two processes of the job; the engine does not ask for more once it serves
    accounts = []
    for process in processes:
        pid, held = process.pid, process.held
        if process is own:
            accounts.append(_died(incident, pid, held, trains=trains, beside=engine is not None))
        elif process is engine and share is not None:
            part = (held or 0) / (incident.capacity or 1)
            why = f"{part:.2f} of the GPU; {share.source} asks for {share.value:g}"
            accounts.append(Holder(ENGINE, _engine_name(share.engine), pid, held, why=why))
        else:
            accounts.append(Holder(OTHER, "another process", pid, held))
    return tuple(sorted(accounts, key=lambda holder: -(holder.held or 0)))


def _own(incident: Incident) -> Process | None:
    """Return the process that raised the error, told by its memory where no message names it.

    In a container processes have other numbers. It holds what PyTorch reserved and a context beside.
    """
    named = next((process for process in incident.processes if process.own), None)
    if named is not None or incident.allocated is None:
        return named
    reserved = incident.allocated + (incident.cached or 0)
    fitting = [
        p for p in incident.processes if p.held is not None and -GIB / 50 <= p.held - reserved <= _CONTEXT
    ]
    return fitting[0] if len(fitting) == 1 else None


def _engine_died(incident: Incident) -> bool:
    return incident.engine is not None and incident.moment not in ("backward", "optimizer step")


def _engine_beside(incident: Incident, share: Share | None, others: Sequence[Process]) -> Process | None:
    """Return the process that holds about the engine's share, where it is not the engine that died."""
    if share is None or not incident.capacity or _engine_died(incident):
        return None
    asked, most = share.value * incident.capacity, NEAR * incident.capacity
    near = [p for p in others if p.held is not None and abs(p.held - asked) <= most]
    return min(near, key=lambda p: abs((p.held or 0) - asked), default=None)


def _died(
    incident: Incident, pid: int | None, held: int | None, *, trains: bool = False, beside: bool = False
) -> Holder:
    """Return the process that died, with the role that its code, its moment or the others tell."""
    role, name, why = OTHER, "the process", ""
    if _engine_died(incident):
        role, name, why = ENGINE, _engine_name(incident.engine), "its code raised the error"
    elif incident.moment in TRAINING or beside or trains:
        role, name, why = TRAINER, "the trainer", "no engine's code raised the error"
        if incident.moment in TRAINING:
            why = f"the error was raised {WHEN[incident.moment]}"
        elif beside:
            why = "it asked for memory beside the engine"
    needed = None if held is None else held + (incident.asked or 0)
    return Holder(role, name, pid, held, died=True, needed=needed, why=why)


def _without_processes(incident: Incident) -> tuple[Holder, ...]:
    """PyTorch 1 names no process: it reserved for its own; what is neither that nor free is the rest's."""
    held = (incident.allocated or 0) + (incident.cached or 0)
    died = _died(incident, None, held)
    if incident.capacity is None or incident.free is None:
        return (died,)
    rest = incident.capacity - incident.free - held
    return (died, *([Holder(OTHER, "contexts and other processes", None, rest)] if rest >= GIB // 10 else []))


def _engine_name(engine: str | None) -> str:
    return {"sglang": "SGLang", "vllm": "vLLM"}.get(engine or "", "the engine")


# ── the GPU ─────────────────────────────────────────────────────────────────────────────────────────────
def gpu_of(capacity: int, at: str, products: Sequence[str] = ()) -> tuple[Target, str]:
    """Return the target whose usable memory a log states, and a sentence on how it was found.

    The GPU of the catalogue that has it, within what drivers differ by; of several the one that ``products``,
    lines of the log, name. Where that leaves several or none, a target with the measured memory and, as
    ranges, the figures of those that it may be.
    """
    size = f"{capacity / GIB:.2f}"
    near = [
        gpu
        for gpu in gpus()
        if gpu.usable_mib is not None
        and gpu.mig is None
        and abs(gpu.usable_mib / 1024 - capacity / GIB) <= _ALIKE
    ]
    named = [gpu for gpu in near if any(_names_it(line, gpu.product) for line in products)]
    measured = capacity, f"measured in {at}"
    chosen = named if len(named) == 1 else near
    if len(chosen) == 1:
        (gpu,) = chosen
        facts = gpu_facts(gpu)
        if f"{(gpu.usable_mib or 0) / 1024:.2f}" != size:
            facts["gpu.vram"] = measured
        how = "named in the log" if chosen is named else "the only GPU with that much memory"
        return Target(gpu.name, gpu.product, facts), f"{size} GiB: checked for {gpu.name}, {how}"
    name = f"a GPU with {size} GiB"
    facts = _hull([gpu_facts(gpu) for gpu in near])
    facts |= {"gpu.vram": measured, "gpu.name": (name, f"measured in {at}")}
    if near:
        how = f"{size} GiB: {_names(gpu.name for gpu in near)}; checked for what they have in common"
    else:
        how = f"no GPU of the catalogue has {size} GiB usable; checked for that size alone"
    return Target(f"{size}gib", name, facts), f"{how}; choose one with --gpu"


def _names_it(line: str, product: str) -> bool:
    name = rf"(?<![\w-]){re.escape(product)}(?![\w-])(?! (?:Ti|SUPER|Laptop|D|Max-Q)\b)"
    return re.search(name, line) is not None


def _hull(several: Sequence[dict[str, tuple[object, str]]]) -> dict[str, tuple[object, str]]:
    """Return the facts that all have: the same, or numbers between the least and the most."""
    facts: dict[str, tuple[object, str]] = {}
    for name in set.intersection(*map(set, several)) if several else ():
        values = [facts_of_one[name][0] for facts_of_one in several]
        numbers = [value for value in values if is_number(value)]
        if all(value == values[0] for value in values):
            facts[name] = several[0][name]
        elif len(numbers) == len(values):
            hull = interval(float(min(numbers)), float(max(numbers)))
            facts[name] = (hull, "catalogue: of several GPUs")
    return facts


def _names(names: Iterable[str]) -> str:
    listed = list(names)
    if len(listed) == 2:
        return " or ".join(listed)
    more = f" or {len(listed) - 4} others" if len(listed) > 4 else ""
    return ", ".join(listed[:4]) + more


# ── advice: sentences to read, nothing to apply ──────────────────────────────────────────────────────────
def gib(value: float) -> str:
    """Return bytes as GiB with two decimals, below one GiB as MiB."""
    if value >= GIB or not value:
        return f"{value / GIB:.2f} GiB"
    return f"{value / 2**20:.0f} MiB" if value >= 2**20 else f"{value:,.0f} bytes"


def advice(incident: Incident, holders: Sequence[Holder], share: Share | None, log: Log) -> Iterator[str]:
    """Yield what to do about an incident."""
    words = _ADVICE.get(incident.kind)
    if words is None:
        yield from _torch(incident, holders, share)
    else:
        yield from (words,) if isinstance(words, str) else words(incident, log)


def _torch(incident: Incident, holders: Sequence[Holder], share: Share | None) -> Iterator[str]:
    capacity, asked, cached = incident.capacity, incident.asked or 0, incident.cached
    if capacity is None:
        yield "the message is cut off: the missing part says who held what"
        return
    if asked > capacity:
        yield (
            f"{gib(asked)} in one tensor is more than the GPU has: a shape is wrong, or something grows with "
            "the square of the sequence"
        )
        return
    if cached is not None and incident.asked is not None and (cached >= asked or cached > _MUCH * capacity):
        yield (
            f"PyTorch cached {gib(cached)} in fragments that it could not use: "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (PyTorch 2.1 and later) lets it merge them"
        )
    lack = max(0, asked - (incident.free or 0))
    for holder in holders:
        if not holder.died and holder.held is not None and holder.held >= _MUCH * capacity:
            yield from _beside(incident, holder, holder.held / capacity, lack, share)
    died = next((holder for holder in holders if holder.died), None)
    if died is not None and died.role == ENGINE:
        yield _engine(incident)
    elif died is not None and died.held is not None and died.held + lack > 0.9 * capacity:
        yield (
            f"{died.name} needs {gib(died.needed or died.held)} of {gib(capacity)} or more on its own: "
            "use smaller micro-batches, checkpointing, sharding or offload"
        )


def _beside(
    incident: Incident, holder: Holder, part: float, lack: float, share: Share | None
) -> Iterator[str]:
    """Advise on a process that held a part of the GPU beside the one that died for lack of memory."""
    if holder.role == ENGINE and share is not None:
        most = math.floor((share.value - lack / (incident.capacity or 1)) * 100 - 1e-9) / 100
        yield (
            f"{holder.name} held {part:.0%} of the GPU: give it {max(most, 0):g} or less instead of "
            f"{share.value:g}; that covers this allocation; later ones may need more"
        )
    elif holder.role == OTHER and not incident.processes:
        yield f"{holder.name} held {gib(holder.held or 0)}: run nvidia-smi during the job to name them"
    elif holder.role == OTHER:
        name = f"process {holder.pid}" if holder.pid is not None else holder.name
        yield (
            f"{name} held {part:.0%} of the GPU: lower its share if it is the job's inference engine, or "
            f"end it if it is left over from an earlier run; at least {gib(lack)} more must be free"
        )


def _engine(incident: Incident) -> str:
    """Advise on an engine that ran out of memory itself, before or after it had its KV cache pool."""
    if incident.moment == LOADING:
        return "the weights do not fit: more tensor parallelism, or a quantized checkpoint"
    key = "mem_fraction_static" if incident.engine == "sglang" else "gpu_memory_utilization"
    captures = incident.moment == CAPTURE
    graphs = ", or capture graphs for smaller batches (cuda_graph_max_bs)" if captures else ""
    return (
        f"lower {key}: the KV cache pool leaves too little for the rest{graphs}; "
        "smaller prefill steps help too"
    )


def _sglang(incident: Incident, log: Log) -> Iterator[str]:
    before, weights = log.last("free at start", incident), log.last("weights", incident)
    fraction = f"; {incident.fraction:g} was too small" if incident.fraction else ""
    if before is not None and weights is not None and before.value > 0:
        least = math.ceil(weights.value / before.value * 100) / 100
        yield (
            f"raise mem_fraction_static above {least:g}{fraction}: the weights take {weights.value:.2f} of "
            f"the {before.value:.2f} GiB that were free"
        )
    else:
        yield (
            f"raise mem_fraction_static{fraction}, or shrink the weights of one GPU; "
            "a smaller share makes it worse"
        )


def _vllm_free(incident: Incident, _: Log) -> Iterator[str]:
    if incident.capacity and incident.free is not None:
        most = math.floor(incident.free / incident.capacity * 100) / 100
        yield (
            f"other processes held {gib(incident.capacity - incident.free)}: give vLLM {most:g} or less "
            f"instead of {incident.fraction:g}, or free the GPU first (the trainer, or what is left of an "
            "earlier run)"
        )


def _vllm_length(incident: Incident, log: Log) -> Iterator[str]:
    fits = f" to {incident.tokens_that_fit:,} tokens or fewer" if incident.tokens_that_fit else ""
    yield f"lower max_model_len{fits} from {incident.tokens:,}, to what prompt and answer need"
    if incident.kv_needed is not None and incident.kv_available is not None:
        note = log.last("mem_fraction", incident)
        now = f" ({note.value:g} now)" if note is not None else ""
        more = gib(incident.kv_needed - incident.kv_available)
        yield f"or raise gpu_memory_utilization{now} by what {more} more takes"


def _host(incident: Incident, _: Log) -> Iterator[str]:
    used, capacity = incident.kv_available, incident.capacity
    size = f" ({gib(used)} of {gib(capacity)} in use)" if used and capacity else ""
    yield (
        "offload less to the host, use fewer data-loading workers, load weights on one rank at a time, or "
        f"raise the job's memory limit{size}"
    )


# For each kind of incident but PyTorch's own: the sentence, or what makes sentences of its numbers.
_ADVICE: dict[str, str | Callable[[Incident, Log], Iterator[str]]] = {
    messages.VLLM_POOL: (
        "raise gpu_memory_utilization, or shrink the weights of one GPU (tensor parallelism, a quantized "
        "checkpoint) or the prefill step (max_num_batched_tokens); a smaller share only makes it worse"
    ),
    messages.CUDA: (
        "the message does not say who held what: `cfglint verify` or nvidia-smi during the job shows it; "
        "look for a process left over from an earlier run"
    ),
    messages.KILLED: (
        "check dmesg and the job's memory limit; if it was memory, use fewer data-loading workers, offload "
        "less to the host, or raise the limit"
    ),
    messages.SGLANG_POOL: _sglang,
    messages.VLLM_FREE: _vllm_free,
    messages.VLLM_LENGTH: _vllm_length,
    messages.HOST: _host,
}
