r"""What a log can say of memory: the known messages, as patterns over text without blanks.

The messages are those of PyTorch's c10/cuda/CUDACachingAllocator.cpp, SGLang's model_executor and mem_cache,
and vLLM's v1/worker/gpu_worker.py and v1/core/kv_cache_utils.py, held against logs that people published
with issues. Without blanks, since terminals wrap lines anywhere, also inside numbers. The groups of a pattern
are named after the fields of an incident that they give.
"""

from __future__ import annotations

import re

from cfglint.record import Value, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    Admits: TypeAlias = Callable[[str, int], bool]  # whether to read what is of a kind and at an offset

# Kinds of incidents. Those of the host and `cuda` carry no account of who held what.
TORCH = "torch"  # PyTorch's allocator: capacity, processes, allocated, reserved
CUDA = "cuda"  # the CUDA runtime, cuBLAS or NCCL: that memory ran out, and nothing more
SGLANG_POOL = "sglang-pool"  # SGLang does not start: nothing is left for its KV cache
VLLM_FREE = "vllm-free"  # vLLM does not start: others hold what it needs
VLLM_POOL = "vllm-pool"  # vLLM does not start: nothing is left for its KV cache
VLLM_LENGTH = "vllm-length"  # vLLM does not start: one request of full length is larger than its KV cache
HOST = "host"  # the machine's own memory
KILLED = "killed"  # a process was killed, most often for the machine's own memory
KINDS = {
    TORCH: "PyTorch's out-of-memory message",
    CUDA: "CUDA, cuBLAS and NCCL out of memory",
    SGLANG_POOL: "SGLang's start-up errors",
    VLLM_FREE: "vLLM's start-up errors",
    HOST: "host memory exhaustion and killed processes",
}


class Process(Value):
    """A process that a message names: bytes that it held; ``own`` is the one that raised the error.

    ``pid`` is None where the message does not say, ``held`` None where the driver did not (WDDM).
    """

    pid: int | None
    held: int | None
    own: bool = False


class Incident(Value):
    """One failure, in bytes; None is what the message does not say. Equal are two prints of one message.

    ``asked`` is the allocation that failed, ``allocated`` what PyTorch had handed out in the process that
    raised the error, ``cached`` what it had reserved beside that, ``pools`` the part of it in private pools.
    For engines: ``fraction`` of the capacity was asked for, ``kv_needed`` and ``kv_available`` are of the KV
    cache, ``tokens`` and ``tokens_that_fit`` the tokens that were wanted and those that fit. ``source`` is
    the part of the prefix that tells ranks apart; ``where`` the frame of the traceback that ``moment`` was
    read from; ``library`` the one that ran out where no more is said.
    """

    kind: str
    path: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)
    source: str = ""
    gpu: int | None = None
    capacity: int | None = None
    free: int | None = None
    asked: int | None = None
    allocated: int | None = None
    cached: int | None = None
    pools: int | None = field(default=None, compare=False)
    processes: tuple[Process, ...] = ()
    fraction: float | None = None
    kv_needed: int | None = None
    kv_available: int | None = None
    tokens: int | None = None
    tokens_that_fit: int | None = field(default=None, compare=False)
    engine: str | None = field(default=None, compare=False)
    moment: str | None = field(default=None, compare=False)
    where: str = field(default="", compare=False)
    library: str = field(default="", compare=False)

    @property
    def at(self) -> str:
        """Where it is: ``train.log:231``."""
        return f"{self.path}:{self.line}"

    @property
    def fullness(self) -> int:
        """How much is told; of two accounts of one message the fuller one counts."""
        told = (*type(self).compared_(self), self.moment, self.engine)
        return sum(value not in (None, (), "") for value in told)


class Note(Value):
    """One line in which an engine says what it holds: a name of the list below."""

    name: str
    line: int
    path: str
    value: float
    engine: str


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────
_UNITS = {
    "bytes": 1, "byte": 1, "B": 1,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50,
    # Both engines divide by powers of two and write GB (sglang common.py, vllm mem_utils.py).
    "KB": 2**10, "kB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40,
}  # fmt: skip
_ABSURD = 2**62  # 2^64 - 1 is NVML's "not available"; no machine has this much
_NUMBER = r"\d{1,20}(?:\.\d{1,9})?"
_GPU = r"(?P<gpu>\d{1,4})"
_UNIT = r"(?:bytes|byte|[KMGTP]iB|[kKMGT]B|B)"
_SHARE = r"0?\.\d{1,6}"
# Of groups with these names; all others are memory, in GiB where no unit is beside.
_NUMBERS = {"gpu": int, "tokens": int, "tokens_that_fit": int, "bytes": int, "fraction": float}


def _amount(name: str) -> str:
    """Return the pattern of a number with its unit."""
    return f"(?P<{name}>{_NUMBER})(?P<{name}_unit>{_UNIT})"


def _gib(name: str, unit: str = "Gi?B") -> str:
    """Return the pattern of a number of GiB, which engines also write as GB."""
    return f"(?P<{name}>{_NUMBER}){unit}"


def amount(number: str, unit: str) -> int | None:
    """Return bytes; None for NVML's mark of what it does not know."""
    value = float(number) * _UNITS[unit]
    return round(value) if value < _ABSURD else None


def _fields(match: re.Match[str] | None) -> dict[str, Any]:
    """Return the numbers of a match by the names of its groups; nothing without a match."""
    texts = {} if match is None else {name: text for name, text in match.groupdict().items() if text}
    return {
        name: _NUMBERS[name](text) if name in _NUMBERS else amount(text, texts.get(f"{name}_unit", "GiB"))
        for name, text in texts.items()
        if not name.endswith("_unit")
    }


# ── PyTorch ─────────────────────────────────────────────────────────────────────────────────────────────
_REACH = 4000  # characters that one message may have: dozens of processes
_TORCH = (
    rf"(?:CUDA|HIP|XPU)outofmemory\.(?:Triedtoallocate(?:morethan1EBmemory|{_amount('asked')})\.?)?"
    rf"|Triedtoallocate{_amount('quoted')}(?=\(GPU\d|\.GPU\d)"  # without its head
)
_OLD = (
    rf"\((?:GPU|XPU){_GPU};{_amount('capacity')}totalcapacity;(?:{_amount('allocated')}alreadyallocated;)?"
    rf"{_amount('free')}free;(?:{_NUMBER}{_UNIT}allowed;)?"
    rf"(?:{_amount('reserved')}(?:reservedintotalbyPyTorch|cached))?"
)
_NEW = rf"(?:GPU|XPU){_GPU}hasatotalcapaci?tyof{_amount('capacity')}(?:ofwhich{_amount('free')}isfree)?"
_PROCESS = rf"Process(?P<pid>\d{{1,10}}|<unknown>)has{_amount('held')}memoryinuse"
_OWN = rf"[Ii]ncludingnon-PyTorchmemory,thisprocesshas{_amount('held')}memoryinuse"
_ALLOCATED = (
    rf"Oftheallocatedmemory{_amount('allocated')}isallocatedbyPyTorch"
    rf"(?:,with{_amount('pools')}allocatedinprivatepools)?"
)
_CACHED = rf"{_amount('cached')}isreservedbyPyTorchbutunallocated"


def _torch(match: re.Match[str], text: str) -> Incident:
    """Return what a message of PyTorch says, of version 1 or later."""
    tail = text[match.end() : match.end() + _REACH]
    following = re.search(_TORCH, tail)
    if following is not None:
        tail = tail[: following.start()]
    head = _fields(match)
    asked = head.get("asked", head.get("quoted"))
    old = re.match(_OLD, tail)
    if old is not None:
        account = _fields(old)
        reserved, allocated = account.pop("reserved", None), account.get("allocated")
        # What PyTorch 1 reserved is the process but for its context: no process is named.
        cached = reserved - allocated if reserved is not None and allocated is not None else None
        return Incident(TORCH, asked=asked, cached=cached, **account)
    new = re.search(_NEW, tail)
    if new is None:
        return Incident(CUDA if asked is None else TORCH, asked=asked)
    processes = [
        Process(int(m["pid"]) if m["pid"].isdigit() else None, amount(m["held"], m["held_unit"]))
        for m in re.finditer(_PROCESS, tail)
    ]
    own = re.search(_OWN, tail)
    if own is not None:
        processes.append(Process(None, _fields(own)["held"], own=True))
    account = _fields(new) | _fields(re.search(_ALLOCATED, tail)) | _fields(re.search(_CACHED, tail))
    return Incident(TORCH, asked=asked, processes=tuple(processes), **account)


# ── engines, libraries, the host ────────────────────────────────────────────────────────────────────────
class Message(Value):
    """A message by words that no wrapping can hide once blanks are gone, and the incident that it tells of.

    ``beside`` finds more in the characters of the message and the ``reach`` characters after it. A message
    that begins up to ``reach`` characters before its telling ``end`` is looked for there alone.
    """

    kind: str
    words: str
    engine: str | None = None
    library: str = ""
    beside: str | None = None
    reach: int = 0
    end: str | None = None

    def incident(self, match: re.Match[str], text: str) -> Incident:
        """Return what a text says at a place where the words were found."""
        account = _fields(match)
        if self.beside is not None:
            account |= _fields(re.search(self.beside, text[match.start() : match.end() + self.reach]))
        asked = account.pop("bytes", account.pop("asked", None))
        return Incident(self.kind, asked=asked, engine=self.engine, library=self.library, **account)


class _Allocator(Message):
    """PyTorch's, which says much more after its first words."""

    def incident(self, match: re.Match[str], text: str) -> Incident:
        """Return what the message says."""
        return _torch(match, text)


_LONGEST = r"[Ee]stimatedmaximummodellengthis(?P<tokens_that_fit>\d{1,9})"
_FRACTION = rf"(?P<fraction>(?<=mem_fraction_static=)(?:{_SHARE}|1\.0)|(?<=mem-fraction-static=){_SHARE})"
_NO_MEMORY = "(?:outofmemory|FailedtoCUDAcalloc)"
_MESSAGES = (
    _Allocator(TORCH, _TORCH),
    Message(
        VLLM_FREE,
        rf"Freememoryondevice(?:[a-z]+:{_GPU})?\({_gib('free', '')}/{_gib('capacity', 'GiB')}\)"
        rf"onstartupislessthandesiredGPUmemoryutilization"
        rf"\((?P<fraction>{_NUMBER}),{_gib('asked', 'GiB')}\)",
        "vllm",
    ),
    Message(
        VLLM_LENGTH,
        rf"Toserveatleastonerequestwiththemodels?'smaxseqlen\((?P<tokens>\d{{1,9}})\),?\(?{_gib('kv_needed')}"
        rf"KVcacheisneeded,whichislargerthantheavailableKVcachememory\({_gib('kv_available')}\)",
        "vllm",
        beside=_LONGEST,
        reach=400,
    ),
    Message(
        VLLM_LENGTH,
        r"Themodel'smaxseqlen\((?P<tokens>\d{1,9})\)islargerthanthemaximumnumberoftokensthatcanbestored"
        r"inKVcache\((?P<tokens_that_fit>\d{1,9})\)",
        "vllm",
    ),
    Message(VLLM_POOL, r"Noavailablememoryforthecacheblocks", "vllm"),
    Message(
        SGLANG_POOL,
        r"Notenoughmemory\.?Pleasetrytoincrease(?:the)?--mem-fraction-static"
        r"|LoadedweightsleavenoGPUmemoryfortheKVcache",
        "sglang",
        beside=_FRACTION,
        reach=120,
    ),
    Message(HOST, r"DefaultCPUAllocator:can'tallocatememory:youtriedtoallocate(?P<bytes>\d{1,20})bytes"),
    Message(HOST, rf"Memoryonthenode\([^()]{{0,200}}\)was{_gib('kv_available')}/{_gib('capacity')}"),
    Message(HOST, r"Outofmemory:Killedprocess\d{1,10}"),
    Message(HOST, r"oom[-_]kill(?:event|er)?|OOMKilled|srun:error:.{0,80}OutOfMemory"),
    Message(CUDA, rf"NCCL.{{0,200}}?{_NO_MEMORY}", library="NCCL", reach=204, end=_NO_MEMORY),
    Message(CUDA, r"CUBLAS_STATUS_ALLOC_FAILED", library="cuBLAS"),
    Message(
        CUDA,
        r"(?:CUDA|HIP)error:outofmemory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation",
        library="CUDA",
    ),
)
# Told of one line, and only where nothing else tells why: launchers end their processes so, too.
_KILLED = (
    r"^(?:\S+:line\d+:)?\d*Killed(?:[\s(].*|python.*|torchrun.*)?$"
    r"|exit(?:ed|ing)?(?:with)?(?:code|status|code:|status:)?:?\(?(?:-9|137)\b"
    r"|exitcode:?-9\b|[Ss]ignal:?9\(SIGKILL\)|\(SIGKILL\)receivedbyPID|SignalNo\.9"
)


def _matches(words: str, text: str, end: str | None = None, reach: int = 0) -> Iterator[re.Match[str]]:
    """Yield where words are in a text; those with an ``end`` in the ``reach`` characters before it."""
    if end is None:
        yield from re.finditer(words, text)
        return
    start, pattern = 0, re.compile(words)
    for last in re.finditer(end, text):
        match = pattern.search(text, max(start, last.start() - reach), last.end())
        if match is not None:
            start = match.end()
            yield match


def incidents(text: str, admits: Admits) -> Iterator[tuple[int, Incident]]:
    """Yield the incidents that a text without blanks tells and ``admits`` takes, with the offset of each."""
    taken = bytearray(len(text))
    for message in _MESSAGES:
        for match in _matches(message.words, text, message.end, message.reach):
            start, end = match.span()
            if taken[start]:
                continue
            incident = message.incident(match, text) if admits(message.kind, start) else None
            if (message if incident is None else incident).kind == TORCH:
                end = min(end + 200, len(text))  # what it says of CUDA besides is no other message
            taken[start:end] = b"\1" * (end - start)
            if incident is not None:
                yield start, incident


def killed(text: str) -> bool:
    """Whether one line without blanks says that a process was killed."""
    return re.search(_KILLED, text) is not None


# ── notes: what engines say of themselves ──────────────────────────────────────────────────
class _Saying(Value):
    """What an engine says of itself: the words, with a number. ``end`` and ``reach`` are as of a message."""

    name: str
    engine: str
    words: str
    end: str | None = None
    reach: int = 0


_NOTES = (
    _Saying(
        "weights",
        "sglang",
        rf"Loadweightend\..{{0,400}}?memusage=({_NUMBER})",
        end=rf"memusage={_NUMBER}",
        reach=414,
    ),
    _Saying("free at start", "sglang", rf"Loadweightbegin\.availmem=({_NUMBER})"),
    _Saying("mem_fraction", "sglang", rf"mem[_-]fraction[_-]static['\"]?[=:,]['\"]?({_SHARE}|1\.0)"),
    _Saying("weights", "vllm", rf"[Mm]odelloadingtook({_NUMBER})Gi?B"),
    _Saying("mem_fraction", "vllm", rf"gpu[_-]memory[_-]utilization['\"]?[=:,]['\"]?({_SHARE}|1\.0)"),
)


def notes(text: str, admits: Admits) -> Iterator[tuple[int, str, str, float]]:
    """Yield what a text without blanks notes: offset, name, engine, and the number (GiB, a share)."""
    for saying in _NOTES:
        for match in _matches(saying.words, text, saying.end, saying.reach):
            if admits(saying.name, match.start()):
                yield match.start(), saying.name, saying.engine, float(match[1])
