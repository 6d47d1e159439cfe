"""What a log says of memory: incidents (something ran out), and notes (what an engine said that it holds)."""

from __future__ import annotations

from dataclasses import dataclass

# Kinds of incidents. Those of the host and `cuda` carry no account of who held what.
TORCH = "torch"  # PyTorch's allocator: capacity, processes, allocated, reserved
CUDA = "cuda"  # the CUDA runtime, cuBLAS or NCCL: that memory ran out, and nothing more
SGLANG_POOL = "sglang-pool"  # SGLang does not start: nothing is left for its KV cache
VLLM_FREE = "vllm-free"  # vLLM does not start: others hold what it wants
VLLM_POOL = "vllm-pool"  # vLLM does not start: nothing is left for its KV cache
VLLM_LENGTH = "vllm-length"  # vLLM does not start: one request of full length is larger than its KV cache
HOST = "host"  # the machine's own memory
KILLED = "killed"  # a process was killed, most often for the machine's own memory
KINDS = {
    TORCH: "PyTorch's out-of-memory text",
    CUDA: "CUDA, cuBLAS and NCCL out of memory",
    SGLANG_POOL: "SGLang's start-up errors",
    VLLM_FREE: "vLLM's start-up errors",
    HOST: "the host's memory and killed processes",
}


@dataclass(frozen=True, slots=True)
class Process:
    """A process that a message names: bytes that it held; ``own`` is the one that raised the error.

    ``pid`` is None where the message does not tell, ``held`` None where the driver did not (WDDM).
    """

    pid: int | None
    held: int | None
    own: bool = False


@dataclass(frozen=True, slots=True)
class Incident:
    """One failure, in bytes; None is what the message does not say.

    ``asked`` is the allocation that failed, ``allocated`` what PyTorch had handed out in the process that
    raised the error, ``cached`` what it had reserved beside that, ``pools`` the part of it in private pools.
    For engines: ``fraction`` of the capacity was asked for, ``needed`` and ``available`` are of the KV cache,
    ``tokens`` and ``longest`` the tokens that were wanted and those that fit. ``source`` is the part of the
    prefix that tells ranks apart; ``where`` the frame of the traceback that ``moment`` was read from.
    """

    kind: str
    line: int
    path: str = ""
    source: str = ""
    gpu: int | None = None
    capacity: int | None = None
    free: int | None = None
    asked: int | None = None
    allocated: int | None = None
    cached: int | None = None
    pools: int | None = None
    processes: tuple[Process, ...] = ()
    fraction: float | None = None
    needed: int | None = None
    available: int | None = None
    tokens: int | None = None
    longest: int | None = None
    engine: str | None = None
    moment: str | None = None
    where: str = ""
    device: str = "CUDA"
    pid: int | None = None
    detail: str = ""

    @property
    def at(self) -> str:
        """Where it stands: ``train.log:231``."""
        return f"{self.path}:{self.line}"

    def same(self, other: Incident) -> bool:
        """Whether both say the same: a message that was printed twice."""
        return self.facts() == other.facts()

    def facts(self) -> tuple[object, ...]:
        """All that the message itself says."""
        return (
            self.kind, self.source, self.gpu, self.capacity, self.free, self.asked, self.allocated,
            self.cached, self.processes, self.fraction, self.needed, self.available, self.tokens,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Note:
    """One line in which an engine or a trainer says what it holds: a name of the list in messages.py."""

    name: str
    line: int
    path: str
    value: float
    engine: str | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Log:
    """All that was found, in the order of the lines."""

    incidents: tuple[Incident, ...] = ()
    notes: tuple[Note, ...] = ()
    lines: int = 0
    products: tuple[str, ...] = ()  # lines that name a GPU

    def last(self, name: str, before: Incident | None = None) -> Note | None:
        """Return the last note of a name; ``before`` an incident of the same file where it is given."""
        found = [
            note
            for note in self.notes
            if note.name == name and (before is None or note.path != before.path or note.line <= before.line)
        ]
        return found[-1] if found else None
