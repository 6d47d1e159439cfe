"""What an incident's own numbers advise, without a config: sentences to read, nothing to apply."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cfglint.features.diagnose.attribution import ENGINE, GIB, OTHER, Holder, Share
from cfglint.features.diagnose.incident import (
    CUDA,
    HOST,
    KILLED,
    SGLANG_POOL,
    TORCH,
    VLLM_FREE,
    VLLM_LENGTH,
    VLLM_POOL,
)
from cfglint.features.diagnose.moments import CAPTURE, LOADING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.features.diagnose.incident import Incident, Log

_MUCH = 0.1  # of the GPU, reserved and not used


_NO_BLOCKS = (
    "raise gpu_memory_utilization, or shrink the weights of one GPU (tensor parallelism, a quantized "
    "checkpoint) or "
    "the prefill step (max_num_batched_tokens); a smaller share only makes it worse"
)
_UNTOLD = (
    "the message does not say who held what: `cfglint verify` or nvidia-smi beside the running job "
    "does; look for a "
    "process that an earlier run left behind"
)
_KILLED_BY = (
    "dmesg and the job's memory limit tell whether memory it was; fewer workers that load data, less "
    "offload to the "
    "host, or a larger limit"
)


def gib(value: float) -> str:
    """Return bytes as GiB with two decimals, below one GiB as MiB."""
    if value >= GIB or not value:
        return f"{value / GIB:.2f} GiB"
    return f"{value / 2**20:.0f} MiB" if value >= 2**20 else f"{value:,.0f} bytes"


def advice(one: Incident, held: Sequence[Holder], share: Share | None, log: Log) -> list[str]:
    """Return what to do about an incident."""
    by_kind = {
        TORCH: lambda: list(_torch(one, held, share)),
        SGLANG_POOL: lambda: list(_sglang(one, log)),
        VLLM_FREE: lambda: list(_vllm_free(one)),
        VLLM_LENGTH: lambda: list(_vllm_length(one, log)),
        VLLM_POOL: lambda: [_NO_BLOCKS],
        CUDA: lambda: [_UNTOLD],
        HOST: lambda: list(_host(one)),
        KILLED: lambda: [_KILLED_BY],
    }  # fmt: skip
    return by_kind[one.kind]()


def _torch(one: Incident, held: Sequence[Holder], share: Share | None) -> Iterator[str]:
    capacity, asked, free = one.capacity, one.asked, one.free
    if capacity is None:
        yield "the message is cut off: who held what stands in the rest of it"
        return
    died = next((h for h in held if h.died), None)
    if asked is not None and asked > capacity:
        yield (
            f"{gib(asked)} in one tensor is more than the GPU has: a shape is wrong, or something grows "
            f"with the square "
            "of the sequence"
        )
        return
    if (
        one.cached is not None
        and asked is not None
        and (one.cached >= asked or one.cached > _MUCH * capacity)
    ):
        yield (
            f"PyTorch held {gib(one.cached)} in pieces that it could not use: "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (from PyTorch 2.1 on) lets it join them"
        )
    lack = max(0, (asked or 0) - (free or 0))
    for holder in held:
        if holder.died or holder.held is None or holder.held < _MUCH * capacity:
            continue
        part = f"{holder.held / capacity:.0%} of the GPU"
        if holder.role == ENGINE and share is not None:
            most = math.floor((share.value - lack / capacity) * 100 - 1e-9) / 100
            yield (
                f"{holder.name} held {part}: give it {max(most, 0):g} or less instead of {share.value:g}; "
                "that is what this allocation lacked, and later moments may want more"
            )
        elif holder.role == OTHER and not one.processes:
            yield f"{holder.name} held {gib(holder.held)}: nvidia-smi beside the job names them"
        elif holder.role == OTHER:
            name = f"process {holder.pid}" if holder.pid is not None else holder.name
            yield (
                f"{name} held {part}: lower its share if it is the job's inference engine, end it if an "
                f"earlier run "
                f"left it; at least {gib(lack)} more must be free"
            )
    if died is not None and died.role == ENGINE:
        yield from _engine(one)
    elif died is not None and died.held is not None and died.held + lack > 0.9 * capacity:
        yield (
            f"{died.name} needs {gib(died.needed or died.held)} of {gib(capacity)} by itself, or more: "
            f"smaller "
            "micro-batches, checkpointing, sharding or offload"
        )


def _engine(one: Incident) -> Iterator[str]:
    """An engine that ran out itself: what to change hangs on whether its pool was there already."""
    if one.moment == LOADING:
        yield "the weights do not fit: more tensor parallelism, or a quantized checkpoint"
        return
    key = "mem_fraction_static" if one.engine == "sglang" else "gpu_memory_utilization"
    graphs = ", or capture graphs for smaller batches (cuda_graph_max_bs)" if one.moment == CAPTURE else ""
    yield (
        f"lower {key}: the pool of the KV cache leaves too little for what comes after it{graphs}; "
        f"smaller prefill steps help too"
    )


def _sglang(one: Incident, log: Log) -> Iterator[str]:
    before, weights = log.last("free at start", one), log.last("weights", one)
    said = f"; {one.fraction:g} was too little" if one.fraction else ""
    if before is not None and weights is not None and before.value > 0:
        least = weights.value / before.value
        yield (
            f"raise mem_fraction_static above {math.ceil(least * 100) / 100:g}{said}: the weights take "
            f"{weights.value:.2f} of "
            f"the {before.value:.2f} GiB that were free"
        )
        return
    yield f"raise mem_fraction_static{said}, or shrink the weights of one GPU; a smaller share makes it worse"


def _vllm_free(one: Incident) -> Iterator[str]:
    if not one.capacity or one.free is None:
        return
    most = math.floor(one.free / one.capacity * 100) / 100
    yield (
        f"other processes held {gib(one.capacity - one.free)}: give vLLM {most:g} or less instead of "
        f"{one.fraction:g}, or "
        "free the GPU first (the trainer, or what an earlier run left)"
    )


def _vllm_length(one: Incident, log: Log) -> Iterator[str]:
    fits = f" to {one.longest:,} tokens or fewer" if one.longest else ""
    yield f"lower max_model_len{fits} from {one.tokens:,}, to what prompt and answer need"
    if one.needed is not None and one.available is not None:
        more = gib(one.needed - one.available)
        note = log.last("mem_fraction", one)
        now = f" ({note.value:g} now)" if note is not None else ""
        yield f"or raise gpu_memory_utilization{now} by what comes to {more} more"


def _host(one: Incident) -> Iterator[str]:
    size = f" ({gib(one.available)} of {gib(one.capacity)} in use)" if one.available and one.capacity else ""
    yield (
        f"less offload to the host, fewer workers that load data, weights loaded by one rank at a time, "
        f"or a larger limit for "
        f"the job{size}"
    )
