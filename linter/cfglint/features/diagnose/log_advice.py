"""What an incident's own numbers advise, without a config: sentences to read, nothing to apply."""

from __future__ import annotations

import math

from cfglint.engine.memory import GIB
from cfglint.features.diagnose import messages
from cfglint.features.diagnose.attribution import ENGINE, OTHER
from cfglint.features.diagnose.log import CAPTURE, LOADING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.features.diagnose.attribution import Holder, Share
    from cfglint.features.diagnose.log import Log
    from cfglint.features.diagnose.messages import Incident

_MUCH = 0.1  # of the GPU, reserved and not used
# Of kinds whose numbers play no part.
_FIXED = {
    messages.VLLM_POOL: (
        "raise gpu_memory_utilization, or shrink the weights of one GPU (tensor parallelism, a quantized "
        "checkpoint) or the prefill step (max_num_batched_tokens); a smaller share only makes it worse"
    ),
    messages.CUDA: (
        "the message does not say who held what: `cfglint verify` or nvidia-smi beside the running job does; "
        "look for a process that an earlier run left behind"
    ),
    messages.KILLED: (
        "dmesg and the job's memory limit tell whether memory it was; fewer workers that load data, less "
        "offload to the host, or a larger limit"
    ),
}


def gib(value: float) -> str:
    """Return bytes as GiB with two decimals, below one GiB as MiB."""
    if value >= GIB or not value:
        return f"{value / GIB:.2f} GiB"
    return f"{value / 2**20:.0f} MiB" if value >= 2**20 else f"{value:,.0f} bytes"


def advice(incident: Incident, holders: Sequence[Holder], share: Share | None, log: Log) -> Iterator[str]:
    """Yield what to do about an incident."""
    if incident.kind in _FIXED:
        yield _FIXED[incident.kind]
    elif incident.kind == messages.TORCH:
        yield from _torch(incident, holders, share)
    else:
        yield from _BY_KIND[incident.kind](incident, log)


def _torch(incident: Incident, holders: Sequence[Holder], share: Share | None) -> Iterator[str]:
    capacity, asked, cached = incident.capacity, incident.asked or 0, incident.cached
    if capacity is None:
        yield "the message is cut off: who held what stands in the rest of it"
        return
    if asked > capacity:
        yield (
            f"{gib(asked)} in one tensor is more than the GPU has: a shape is wrong, or something grows with "
            "the square of the sequence"
        )
        return
    if cached is not None and incident.asked is not None and (cached >= asked or cached > _MUCH * capacity):
        yield (
            f"PyTorch held {gib(cached)} in pieces that it could not use: "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (from PyTorch 2.1 on) lets it join them"
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
            f"{died.name} needs {gib(died.needed or died.held)} of {gib(capacity)} by itself, or more: "
            "smaller micro-batches, checkpointing, sharding or offload"
        )


def _beside(
    incident: Incident, holder: Holder, part: float, lack: float, share: Share | None
) -> Iterator[str]:
    """Advise on a process that held a part of the GPU beside the one that died for lack of memory."""
    if holder.role == ENGINE and share is not None:
        most = math.floor((share.value - lack / (incident.capacity or 1)) * 100 - 1e-9) / 100
        yield (
            f"{holder.name} held {part:.0%} of the GPU: give it {max(most, 0):g} or less instead of "
            f"{share.value:g}; that is what this allocation lacked, and later moments may want more"
        )
    elif holder.role == OTHER and not incident.processes:
        yield f"{holder.name} held {gib(holder.held or 0)}: nvidia-smi beside the job names them"
    elif holder.role == OTHER:
        name = f"process {holder.pid}" if holder.pid is not None else holder.name
        yield (
            f"{name} held {part:.0%} of the GPU: lower its share if it is the job's inference engine, end it "
            f"if an earlier run left it; at least {gib(lack)} more must be free"
        )


def _engine(incident: Incident) -> str:
    """An engine that ran out itself: what to change hangs on whether its pool was there already."""
    if incident.moment == LOADING:
        return "the weights do not fit: more tensor parallelism, or a quantized checkpoint"
    key = "mem_fraction_static" if incident.engine == "sglang" else "gpu_memory_utilization"
    captures = incident.moment == CAPTURE
    graphs = ", or capture graphs for smaller batches (cuda_graph_max_bs)" if captures else ""
    return (
        f"lower {key}: the pool of the KV cache leaves too little for what comes after it{graphs}; "
        "smaller prefill steps help too"
    )


def _sglang(incident: Incident, log: Log) -> Iterator[str]:
    before, weights = log.last("free at start", incident), log.last("weights", incident)
    fraction = f"; {incident.fraction:g} was too little" if incident.fraction else ""
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
            f"instead of {incident.fraction:g}, or free the GPU first (the trainer, or what an earlier "
            "run left)"
        )


def _vllm_length(incident: Incident, log: Log) -> Iterator[str]:
    fits = f" to {incident.tokens_that_fit:,} tokens or fewer" if incident.tokens_that_fit else ""
    yield f"lower max_model_len{fits} from {incident.tokens:,}, to what prompt and answer need"
    if incident.kv_needed is not None and incident.kv_available is not None:
        note = log.last("mem_fraction", incident)
        now = f" ({note.value:g} now)" if note is not None else ""
        more = gib(incident.kv_needed - incident.kv_available)
        yield f"or raise gpu_memory_utilization{now} by what comes to {more} more"


def _host(incident: Incident, _: Log) -> Iterator[str]:
    used, capacity = incident.kv_available, incident.capacity
    size = f" ({gib(used)} of {gib(capacity)} in use)" if used and capacity else ""
    yield (
        "less offload to the host, fewer workers that load data, weights loaded by one rank at a time, or a "
        f"larger limit for the job{size}"
    )


_BY_KIND = {
    messages.SGLANG_POOL: _sglang,
    messages.VLLM_FREE: _vllm_free,
    messages.VLLM_LENGTH: _vllm_length,
    messages.HOST: _host,
}
