r"""The messages that tell of memory, as patterns over text without blanks (see clean.squeezed).

They are those of PyTorch's c10/cuda/CUDACachingAllocator.cpp, SGLang's model_executor and mem_cache, and
vLLM's v1/worker/gpu_worker.py and v1/core/kv_cache_utils.py, held against logs that people published
with issues. Without blanks, since terminals wrap lines anywhere, also inside numbers.
"""

from __future__ import annotations

import re
from dataclasses import replace

from cfglint.features.diagnose.incident import (  # fmt: skip
    CUDA,
    HOST,
    SGLANG_POOL,
    TORCH,
    VLLM_FREE,
    VLLM_LENGTH,
    VLLM_POOL,
    Incident,
    Process,
)
from cfglint.features.diagnose.units import AMOUNT, GB, NUMBER, amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_REACH = 4000  # characters that one message may have: dozens of processes
_TORCH = re.compile(
    rf"(CUDA|HIP|XPU)outofmemory\.(?:Triedtoallocate(?:morethan1EBmemory|{AMOUNT})\.?)?"
    rf"|Triedtoallocate{AMOUNT}(?=\(GPU\d|\.GPU\d)"  # quoted without its head
)
_OLD = re.compile(
    rf"\((?:GPU|XPU)(\d+);{AMOUNT}totalcapacity;(?:{AMOUNT}alreadyallocated;)?{AMOUNT}free;"
    rf"(?:{AMOUNT}allowed;)?(?:{AMOUNT}(?:reservedintotalbyPyTorch|cached))?"
)
_NEW = re.compile(rf"(?:GPU|XPU)(\d+)hasatotalcapaci?tyof{AMOUNT}(?:ofwhich{AMOUNT}isfree)?")
_PROCESS = re.compile(rf"Process(\d{{1,10}}|<unknown>)has{AMOUNT}memoryinuse")
_OWN = re.compile(rf"[Ii]ncludingnon-PyTorchmemory,thisprocesshas{AMOUNT}memoryinuse")
_ALLOCATED = re.compile(
    rf"Oftheallocatedmemory{AMOUNT}isallocatedbyPyTorch(?:,with{AMOUNT}allocatedinprivatepools)?"
)
_CACHED = re.compile(rf"{AMOUNT}isreservedbyPyTorchbutunallocated")


def _torch(found: re.Match[str], text: str) -> Incident | None:
    tail = text[found.end() : found.end() + _REACH]
    again = _TORCH.search(tail)
    if again is not None:
        tail = tail[: again.start()]
    number, unit = found[2] or found[4], found[3] or found[5]
    asked = amount(number, unit) if number else None
    one = Incident(TORCH, 0, asked=asked, device=found[1] or "CUDA")
    old = _OLD.match(tail)
    if old is not None:
        gpu, *numbers = old.groups()
        pairs = [
            amount(numbers[i], numbers[i + 1]) if numbers[i] else None for i in range(0, len(numbers), 2)
        ]
        capacity, allocated, free, _, reserved = pairs
        cached = reserved - allocated if reserved is not None and allocated is not None else None
        # What PyTorch 1 reserved is the process but for its context: no process is named.
        return replace(one, gpu=int(gpu), capacity=capacity, free=free, allocated=allocated, cached=cached)
    new = _NEW.search(tail)
    if new is None:
        return replace(one, kind=CUDA) if asked is None else one
    gpu, cap, cap_unit, free_number, free_unit = new.groups()
    processes = [
        Process(int(m[1]) if m[1].isdigit() else None, amount(m[2], m[3])) for m in _PROCESS.finditer(tail)
    ]
    own = _OWN.search(tail)
    if own is not None:
        processes.append(Process(None, amount(own[1], own[2]), own=True))
    handed = _ALLOCATED.search(tail)
    kept = _CACHED.search(tail)
    return replace(
        one,
        gpu=int(gpu),
        capacity=amount(cap, cap_unit),
        free=amount(free_number, free_unit) if free_number else None,
        processes=tuple(processes),
        allocated=amount(handed[1], handed[2]) if handed else None,
        pools=amount(handed[3], handed[4]) if handed and handed[3] else None,
        cached=amount(kept[1], kept[2]) if kept else None,
    )


def _gib(number: str | None) -> int | None:
    return amount(number, "GiB") if number else None


def _vllm_free(m: re.Match[str], _: str) -> Incident:
    gpu, free, total, fraction, wanted = m.groups()
    return Incident(
        VLLM_FREE, 0, gpu=int(gpu) if gpu else None, free=_gib(free), capacity=_gib(total),
        fraction=float(fraction), asked=_gib(wanted), engine="vllm",
    )  # fmt: skip


def _vllm_serve(m: re.Match[str], text: str) -> Incident:
    longest = re.search(r"[Ee]stimatedmaximummodellengthis(\d{1,9})", text[m.end() : m.end() + 400])
    return Incident(
        VLLM_LENGTH, 0, tokens=int(m[1]), needed=_gib(m[2]), available=_gib(m[3]),
        longest=int(longest[1]) if longest else None, engine="vllm",
    )  # fmt: skip


def _vllm_length(m: re.Match[str], _: str) -> Incident:
    return Incident(VLLM_LENGTH, 0, tokens=int(m[1]), longest=int(m[2]), engine="vllm")


def _sglang_pool(m: re.Match[str], text: str) -> Incident:
    near = text[m.start() : m.end() + 120]
    said = re.search(r"mem_fraction_static=(0?\.\d{1,6}|1\.0)|mem-fraction-static=(0?\.\d{1,6})", near)
    return Incident(SGLANG_POOL, 0, fraction=float(said[1] or said[2]) if said else None, engine="sglang")


def _host(m: re.Match[str], _: str) -> Incident:
    return Incident(HOST, 0, asked=int(m[1]))


def _plain(kind: str, detail: str, engine: str | None = None) -> Callable[[re.Match[str], str], Incident]:
    return lambda _, __: Incident(kind, 0, detail=detail, engine=engine)


def _node(m: re.Match[str], _: str) -> Incident:
    return Incident(HOST, 0, detail="ray", available=_gib(m[1]), capacity=_gib(m[2]))


def _kernel(m: re.Match[str], _: str) -> Incident:
    return Incident(HOST, 0, detail="kernel", pid=int(m[1]))


# A message names its pattern by words that no wrapping can hide once blanks are gone.
_MESSAGES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], Incident | None]], ...] = (
    (_TORCH, _torch),
    (
        re.compile(
            rf"Freememoryondevice(?:[a-z]+:(\d+))?\({NUMBER}/{NUMBER}GiB\)onstartupislessthan"
            rf"desiredGPUmemoryutilization\({NUMBER},{NUMBER}GiB\)"
        ),
        _vllm_free,
    ),
    (
        re.compile(
            rf"Toserveatleastonerequestwiththemodels?'smaxseqlen\((\d{{1,9}})\),?\(?{GB}KVcacheisneeded,"
            rf"whichislargerthantheavailableKVcachememory\({GB}\)"
        ),
        _vllm_serve,
    ),
    (
        re.compile(
            r"Themodel'smaxseqlen\((\d{1,9})\)islargerthanthemaximumnumberoftokensthatcanbestored"
            r"inKVcache\((\d{1,9})\)"
        ),
        _vllm_length,
    ),
    (re.compile(r"Noavailablememoryforthecacheblocks"), _plain(VLLM_POOL, "", "vllm")),
    (re.compile(r"Notenoughmemory\.?Pleasetrytoincrease(?:the)?--mem-fraction-static"), _sglang_pool),
    (re.compile(r"LoadedweightsleavenoGPUmemoryfortheKVcache"), _sglang_pool),
    (re.compile(r"DefaultCPUAllocator:can'tallocatememory:youtriedtoallocate(\d{1,20})bytes"), _host),
    (re.compile(rf"Memoryonthenode\([^()]{{0,200}}\)was{GB}/{GB}"), _node),
    (re.compile(r"Outofmemory:Killedprocess(\d{1,10})"), _kernel),
    (re.compile(r"oom[-_]kill(?:event|er)?|OOMKilled|srun:error:.{0,80}OutOfMemory"), _plain(HOST, "cgroup")),
    (re.compile(r"NCCL.{0,200}?(?:outofmemory|FailedtoCUDAcalloc)"), _plain(CUDA, "NCCL")),
    (re.compile(r"CUBLAS_STATUS_ALLOC_FAILED"), _plain(CUDA, "cuBLAS")),
    (
        re.compile(r"(?:CUDA|HIP)error:outofmemory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation"),
        _plain(CUDA, "CUDA"),
    ),
)
# Told of one line, and only where nothing else tells why: launchers end their processes so, too.
_KILLED = re.compile(
    r"^(?:\S+:line\d+:)?\d*Killed(?:[\s(].*|python.*|torchrun.*)?$|exit(?:ed|ing)?(?:with)?(?:code|status|code:|status:)?:?\(?(?:-9|137)\b"
    r"|exitcode:?-9\b|[Ss]ignal:?9\(SIGKILL\)|\(SIGKILL\)receivedbyPID|SignalNo\.9"
)


def incidents(text: str) -> Iterator[tuple[int, Incident]]:
    """Yield the incidents that a text without blanks tells, with the offset of each."""
    taken: list[tuple[int, int]] = []
    for pattern, make in _MESSAGES:
        for found in pattern.finditer(text):
            if any(start <= found.start() < end for start, end in taken):
                continue
            one = make(found, text)
            if one is not None:
                taken.append((found.start(), found.end() + (200 if one.kind == TORCH else 0)))
                yield found.start(), one


def killed(text: str) -> bool:
    """Whether one line without blanks says that a process was killed."""
    return _KILLED.search(text) is not None


# ── notes: what engines and trainers say of themselves ─────────────────────────────────────────────────
# SGLang and vLLM write GB for 2^30 bytes, AReaL's device.py too.
_NOTES: tuple[tuple[str, str | None, re.Pattern[str]], ...] = (
    ("weights", "sglang", re.compile(rf"Loadweightend\..{{0,400}}?memusage={NUMBER}")),
    ("free after weights", "sglang", re.compile(rf"Loadweightend\..{{0,300}}?availmem={NUMBER}")),
    ("free at start", "sglang", re.compile(rf"Loadweightbegin\.availmem={NUMBER}")),
    ("tokens", "sglang", re.compile(r"KVCacheisallocated\..{0,80}?#tokens:(\d{1,12})")),
    ("K cache", "sglang", re.compile(rf"KVCacheisallocated\..{{0,120}}?Ksize:{NUMBER}GB")),
    ("V cache", "sglang", re.compile(rf"KVCacheisallocated\..{{0,160}}?Vsize:{NUMBER}GB")),
    ("KV cache", "sglang", re.compile(rf"KVCacheisallocated\..{{0,120}}?KVsize:{NUMBER}GB")),
    ("free after pool", "sglang", re.compile(rf"Memorypoolend\.availmem={NUMBER}")),
    ("before graphs", "sglang", re.compile(rf"[Cc]apture(?:cuda|CUDA)graphbegin\..{{0,90}}?mem={NUMBER}")),
    ("graphs", "sglang", re.compile(rf"Capture(?:cuda|CUDA)graphend\..{{0,80}}?memusage={NUMBER}")),
    ("tokens", "sglang", re.compile(r"max_total_num_tokens=(\d{1,12})")),
    ("mem_fraction", "sglang", re.compile(r"mem[_-]fraction[_-]static['\"]?[=:,]['\"]?(0?\.\d{1,6}|1\.0)")),
    ("weights", "vllm", re.compile(rf"[Mm]odelloadingtook{GB}")),
    ("KV cache", "vllm", re.compile(rf"AvailableKVcachememory:{GB}")),
    ("tokens", "vllm", re.compile(r"GPUKVcachesize:([\d,]{1,16})tokens")),
    ("graphs", "vllm", re.compile(rf"[Gg]raphcapturingfinishedin\d{{1,6}}secs,took{GB}")),
    ("mem_fraction", "vllm", re.compile(r"gpu[_-]memory[_-]utilization['\"]?[=:,]['\"]?(0?\.\d{1,6}|1\.0)")),
    ("device used", None, re.compile(rf"devicememoryused/total\(GB\):{NUMBER}/")),
    ("trainer reserved", None, re.compile(rf"memoryreserved\(GB\):{NUMBER}")),
    ("trainer allocated", None, re.compile(rf"memoryallocated\(GB\):{NUMBER}")),
    ("trainer reserved", None, re.compile(rf"Max_CA{NUMBER}GB")),
    ("trainer allocated", None, re.compile(rf"Max_MA{NUMBER}GB")),
)  # fmt: skip


def notes(text: str) -> Iterator[tuple[int, str, str | None, float]]:
    """Yield what a text without blanks notes: offset, name, engine, and the number (GiB, tokens, a share)."""
    for name, engine, pattern in _NOTES:
        for found in pattern.finditer(text):
            yield found.start(), name, engine, float(found[1].replace(",", "") or 0)
