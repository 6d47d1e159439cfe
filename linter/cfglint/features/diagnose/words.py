"""Sentences and rows that the forms of a diagnosis share. Memory in GiB of 2^30 bytes."""

from __future__ import annotations

from cfglint.features.diagnose.attribution import ENGINE, GIB, OTHER, TRAINER
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
from cfglint.features.diagnose.log_advice import gib as sized
from cfglint.features.diagnose.moments import WHEN
from cfglint.features.fit.words import DASH, INF, spread
from cfglint.report.order import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.features.diagnose.attribution import Holder
    from cfglint.features.diagnose.compute import Diagnosis, Judgement, Told
    from cfglint.features.diagnose.incident import Incident
    from cfglint.features.diagnose.measured import Prediction

Row = tuple[str, str, str, str]


def bare(value: float) -> str:
    """Return bytes in GiB, without the unit."""
    return f"{value / GIB:.2f}"


def headline(told: Told) -> str:
    """Return what happened, in one sentence."""
    one = told.failure.first
    words = {
        TORCH: _torch, VLLM_FREE: _vllm_free, VLLM_LENGTH: _vllm_length, SGLANG_POOL: _sglang, HOST: _host,
    }  # fmt: skip
    if one.kind in words:
        return words[one.kind](told)
    if one.kind == VLLM_POOL:
        return "vLLM did not start: weights and a prefill step leave nothing of its share for the KV cache"
    if one.kind == CUDA:
        return f"{one.detail} ran out of GPU memory{_when(one)}; the message does not say who held it"
    assert one.kind == KILLED
    return "a process was killed from outside (signal 9), which is mostly for the machine's own memory"


def _torch(told: Told) -> str:
    one = told.failure.first
    asked = f" while asking for {sized(one.asked)} more" if one.asked else ""
    if one.capacity is None:
        return f"PyTorch ran out of GPU memory{asked}{_when(one)}; the message is cut off"
    gpu = f"GPU {one.gpu} ({sized(one.capacity)})" if one.gpu is not None else sized(one.capacity)
    others = [h for h in told.holders if not h.died and h.held]
    died = next((h for h in told.holders if h.died), None)
    parts = [f"{held(h)} held {bare(h.held or 0)}" for h in others[:3]]
    if len(others) > 3:
        parts.append(f"{len(others) - 3} others {bare(sum(h.held or 0 for h in others[3:]))}")
    if died is not None:
        beside = "" if others else "alone on it, "
        with_ = f" with {bare(died.held)}" if died.held is not None else ""
        parts.append(f"{beside}{died.name} died{with_}{asked}{_when(one)}")
    else:
        parts.append(f"PyTorch ran out of memory{asked}{_when(one)}")
    return f"{gpu}: {', '.join(parts)}"


def held(holder: Holder) -> str:
    """Return a process as sentences call it."""
    if holder.role == OTHER and holder.pid is not None:
        return f"process {holder.pid}"
    return holder.name


def _when(one: Incident) -> str:
    return f", {WHEN[one.moment]}" if one.moment is not None else ""


def _vllm_free(told: Told) -> str:
    one = told.failure.first
    return (
        f"vLLM did not start: it wanted {sized(one.asked or 0)} ({one.fraction:g} of "
        f"{sized(one.capacity or 0)}), and "
        f"{sized(one.free or 0)} were free"
    )


def _vllm_length(told: Told) -> str:
    one = told.failure.first
    if one.needed is not None and one.available is not None:
        return (
            f"vLLM did not start: one request of {one.tokens:,} tokens takes {sized(one.needed)} of KV "
            f"cache, and there are "
            f"{sized(one.available)}"
        )
    return (
        f"vLLM did not start: its KV cache holds {one.longest:,} tokens, one request may have {one.tokens:,}"
    )


def _sglang(told: Told) -> str:
    one = told.failure.first
    share = f"{one.fraction:g}" if one.fraction else "mem_fraction_static"
    return f"SGLang did not start: within {share} of the GPU, the weights leave nothing for the KV cache"


def _host(told: Told) -> str:
    one = told.failure.first
    asked = f" while asking for {sized(one.asked)}" if one.asked else ""
    return f"the machine's own memory ran out{asked}, not the GPU's"


def where(one: Incident) -> str:
    """Return where it stands: ``train.log:231 [rank0]``."""
    source = f" [{shown(one.source)}]" if one.source else ""
    return f"{shown(one.at)}{source}"


def rows(told: Told, judgement: Judgement | None, *, dash: str = DASH) -> list[Row]:
    """Return who, held, predicted and a remark, for each process; then what was free, and the whole."""
    one = told.failure.first
    found = []
    for holder in told.holders:
        name = held(holder)
        if holder.pid is not None and holder.role != OTHER:
            name += f", process {holder.pid}"
        prediction = judgement.predictions.get(holder.role) if judgement is not None else None
        amount = bare(holder.held) if holder.held is not None else "?"
        found.append((name, amount, _predicted(prediction, dash), _remark(holder, prediction)))
    if found and one.free is not None:
        found.append(("free", bare(one.free), "", ""))
    if found and one.capacity is not None:
        found.append(("capacity", bare(one.capacity), "", ""))
    return found


def _predicted(prediction: Prediction | None, dash: str) -> str:
    return spread(prediction.span, dash=f" {dash} ") if prediction is not None else ""


def _remark(holder: Holder, prediction: Prediction | None) -> str:
    if holder.died and holder.needed is not None:
        least = f"needed {bare(holder.needed)} or more"
        if prediction is None or prediction.span.high == INF:
            return least
        low, high = prediction.span.low * GIB, prediction.span.high * GIB
        if holder.needed < low:
            return f"{least}; died on the way to its peak"
        return f"{least}: {'inside' if holder.needed <= high else 'more than'} the estimate"
    if holder.held is None:
        return "the driver does not tell"
    if prediction is None:
        return ""
    if prediction.needs and prediction.span.high == INF:
        return "no estimate: wants " + ", ".join(map(shown, prediction.needs[:3]))
    low, high = prediction.span.low * GIB, prediction.span.high * GIB
    if holder.held < low - GIB / 200:
        return f"{bare(low - holder.held)} less than the estimate"
    return (
        "inside the estimate"
        if holder.held <= high + GIB / 200
        else f"{bare(holder.held - high)} above the estimate"
    )


def inside(told: Told) -> list[str]:
    """Return what PyTorch told of the process that died, and from what roles were read."""
    one = told.failure.first
    lines = []
    if one.allocated is not None:
        pools = f" ({sized(one.pools)} of it in CUDA graphs' pools)" if one.pools else ""
        cached = f", and kept {sized(one.cached)} that it could not use" if one.cached else ""
        lines.append(f"PyTorch had handed out {sized(one.allocated)}{pools}{cached}")
    lines += [f"{held(h)}: {shown(h.why)}" for h in told.holders if h.why and h.role in (ENGINE, TRAINER)]
    if one.where:
        lines.append(f"told by: {shown(one.where[:160])}")
    return lines


def ranks(told: Told) -> list[str]:
    """Return one line for each further rank of the failure, and for a message that came again."""
    lines = []
    for one in told.failure.incidents[1:]:
        gpu = f"GPU {one.gpu}" if one.gpu is not None else "a GPU"
        own = next((p.held for p in one.processes if p.own), None)
        with_ = f" with {bare(own)}" if own is not None else ""
        asked = f" asking for {sized(one.asked)}" if one.asked else ""
        lines.append(f"also on {gpu}{with_}{asked}: {where(one)}")
    return lines


def again(found: Diagnosis) -> list[str]:
    """Return one line for each failure after the first."""
    return [f"{where(told.failure.first)}: {headline(told)}" for told in found.told[1:]]
