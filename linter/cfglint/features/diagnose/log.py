r"""Reads a log line by line, whatever its size: takes prefixes off, and keeps what lies around telling lines.

Prefixes are those of docker compose (``trainer-1  | ``), of timestamps, torchrun (``[rank0]:``), mpirun, srun
(``3: ``), ray (``(TrainActor pid=123)``), of vLLM's and SGLang's loggers, and of Python's levels. They stack:
``2025-11-22T16:40:43.207Z [rank0]: (Worker pid=7) ERROR …``. The traceback before an error tells the moment
of the job that it fell into, in the memory model's words.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from functools import cache
from itertools import accumulate

from cfglint.features.diagnose.messages import KILLED, KINDS, Incident, Note, incidents, killed, notes
from cfglint.record import Record, Value, field, fields, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeAlias

    Numbered: TypeAlias = list[tuple[int, str]]  # lines with their numbers in the file


class Log(Value):
    """All that was found, in the order of the lines."""

    incidents: tuple[Incident, ...] = ()
    notes: tuple[Note, ...] = ()
    lines: int = 0
    products: tuple[str, ...] = ()  # lines that name a GPU
    cut: tuple[str, ...] = ()  # sentences on what was not read

    def __add__(self, after: Log) -> Log:
        """Return what this log and the next one tell."""
        return Log(*(getattr(self, name) + getattr(after, name) for name in fields(self)))

    def last(self, name: str, before: Incident) -> Note | None:
        """Return the last note of a name; of an incident's own file, the last before it."""
        named = (note for note in reversed(self.notes) if note.name == name)
        return next((n for n in named if n.path != before.path or n.line <= before.line), None)


# ── the program's part of a line ────────────────────────────────────────────────────────────────────────
_CODES = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_TIME = r"(?:\d{1,2}:\d\d:\d\d(?:[.,:]\d+)?)"
_DATE = r"(?:\d{4}[-/]?\d\d[-/]?\d\d|\d\d[-/]\d\d(?:[-/]\d{2,4})?)"
_PREFIX = re.compile(
    "|".join(
        (
            r"[\w./-]{1,80}\s{0,20}\|\s",  # docker compose
            rf"\[?{_DATE}[T \-]+{_TIME}(?:Z|[+-]\d\d:?\d\d)?(?:\s+[TDPE]P\d+)*\]?:?(?=\s|$)",
            rf"\[{_TIME}\]",
            r"\[(?P<rank>(?:default|rank|trainer|worker|r)[ _:]?\d{1,5})\]:?",
            r"\[(?:\d+,)?(?P<mpi>\d{1,5})\]<(?:stdout|stderr)>:?",
            r"\((?P<actor>[\w.:<>-]{0,80}\s?pid=\d{1,10})(?:, ip=[\w.:]+)?\)",
            r"(?P<srun>\d{1,4}): ",
            r"(?:TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL)(?::|\s+(?=\d\d-\d\d |\[))",
            r"\[[\w./ -]{1,60}\.(?:py|cpp|cc):\d+\]:?",
            r"[E>](?:\s{2,}|\s(?=File|\w*Error))",  # pytest and quotes
            r"[│|](?=\s)",  # rich's boxes
        )
    )
)  # fmt: skip
_SPACE = str.maketrans("", "", " \t\r\n\v\f\x00\x85\xa0\u200b\u2028\u2029")
_PREFIXES = 12  # of one line


def clean(raw: bytes) -> tuple[str, str]:
    """Return the part of the prefix that tells sources apart, and the line without prefixes and colours."""
    text = raw.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _CODES.sub("", text)
    text = text.strip()
    sources = []
    for _ in range(_PREFIXES):
        prefix = _PREFIX.match(text)
        if prefix is None or not prefix.end():
            break
        sources += [part.strip() for part in prefix.groups() if part]
        if prefix.group().rstrip().endswith("|"):
            sources += [name for name in [prefix.group().rstrip(" |")] if name and name != "│"]
        text = text[prefix.end() :].lstrip()
    if text.endswith("│"):
        text = text[:-1].rstrip()
    return " ".join(sources), text


# ── the moment, by the traceback ────────────────────────────────────────────────────────────────────────
LOSS, BACKWARD, STEP, FORWARD = "loss", "backward", "optimizer step", "forward"
LOADING, CAPTURE, POOL = "loading", "graph capture", "KV cache allocation"
SYNC, GENERATE = "weight update", "generation"
TRAINING = (LOSS, BACKWARD, STEP, FORWARD)
WHEN = {
    LOSS: "at the loss", BACKWARD: "in the backward pass", STEP: "at the optimizer step",
    FORWARD: "in the forward pass",
    LOADING: "while loading", CAPTURE: "while capturing graphs", POOL: "while allocating the KV cache",
    SYNC: "while updating weights", GENERATE: "while generating",
}  # fmt: skip
# The first whose words are in a frame. A pass that checkpointing repeats runs inside the backward pass, a
# step of the optimizer may run inside either, and an engine captures graphs with the forward pass's code.
_MOMENTS = (
    (STEP, re.compile(
        r"optimizer\.step|optim\.step|/optim/\w+\.py|_init_group|exp_avg|optimizer_step|"
        r"\bopt\.step\("
    )),
    (BACKWARD, re.compile(r"\.backward\(|run_backward|_engine_run_backward|\bin backward\b|manual_backward")),
    (CAPTURE, re.compile(
        r"capture_model|cuda_graph_runner|\bin capture\b|capture_one|_dummy_run.{0,200}graph|graph_capture"
    )),
    (POOL, re.compile(
        r"init_memory_pool|memory_pool\.py|initialize_kv_cache|_allocate_kv_cache|init_kv_cache|"
        r"kv_cache_configurator|initialize_cache|_create_buffers"
    )),
    (SYNC, re.compile(
        r"update_weights|sync_weights|init_weights_update_group|broadcast_weights|"
        r"_update_bucket_weights"
    )),
    (LOSS, re.compile(
        r"cross_entropy|log_softmax|logsumexp|lm_head|logits|gather_logprobs|compute_loss|loss_fn|"
        r"\bloss = "
    )),
    (LOADING, re.compile(
        r"from_pretrained|load_weights|load_model\b|load_state_dict|model_loader|create_weights|"
        r"_load_pretrained|\.to\(device|\.cuda\(\)"
    )),
    (GENERATE, re.compile(
        r"\.generate\(|\bin generate\b|_sample\(|forward_batch_generation|execute_model|run_batch"
    )),
    (FORWARD, re.compile(r"\bin forward\b|forward_call\(|\.forward\(|self\.model\(|model\(\*\*")),
)  # fmt: skip
_ENGINES = (
    ("sglang", re.compile(r"[/\\]sglang[/\\]|sglang::|\bsglang\.srt")),
    ("vllm", re.compile(r"[/\\]vllm[/\\]|\bvllm\.v1|vllm::")),
)
_START = "Traceback (most recent call last)"
_NO_FRAME = re.compile(r"^[\s^~]*$")


class _Told(Value):
    """What one line of a traceback tells."""

    is_start: bool
    is_frame: bool
    moments: tuple[str, ...]
    engine: str | None


@cache
def _told(line: str) -> _Told:
    """Look at a line once, however many errors come after it."""
    return _Told(
        _START in line,
        _NO_FRAME.match(line) is None,
        tuple(name for name, words in _MOMENTS if words.search(line)),
        next((name for name, words in _ENGINES if words.search(line)), None),
    )


def traceback_before(lines: list[str]) -> list[str]:
    """Return the lines of the last traceback that begins in ``lines``, which end with an error."""
    start = next((i for i in range(len(lines) - 1, -1, -1) if _told(lines[i]).is_start), -1)
    frames = [line for line in lines[start + 1 :] if _told(line).is_frame]
    # Its head may be further up; frames alone will do.
    return frames if start >= 0 or any(line.startswith("File ") for line in frames) else []


def moment(frames: list[str]) -> tuple[str | None, str]:
    """Return the moment and the line that tells it; None where no frame does."""
    telling: dict[str, str] = {}
    own: dict[str, str] = {}
    for line in frames:
        for name in _told(line).moments:
            telling.setdefault(name, line)
            if not line.startswith("File "):
                own.setdefault(name, line)
    for name, _ in _MOMENTS:
        if name in telling:
            # The job's own code tells a person more than the library's that it ends in.
            return name, own.get(name, telling[name])
    return None, ""


def engine_of(frames: list[str]) -> str | None:
    """Return the inference engine whose code raised the error, None where none did.

    A trainer that calls an engine in its own process has both; the engine counts, as its memory is meant.
    """
    return next((engine for line in reversed(frames) if (engine := _told(line).engine)), None)


# ── lines that may tell of memory ───────────────────────────────────────────────────────────────────────
# Words of which wrapping leaves at least one whole in some line of every message. Plain bytes, looked for in
# whole pieces of the file: a log of 200 MB takes seconds. What they let through is read with care.
_WORDS = (
    b"ut of mem", b"utofmem", b"t of memory", b"OutOfMem", b"Of Memory", b"ried to", b"in use.", b"is free",
    b"PyTorch", b"unalloc", b"capacity", b"capacty", b"already all", b"Process ", b"avail mem",
    b"mem usage", b"Load weight", b"KV Cache", b"KV cache", b"cache blocks", b"graph", b"fraction",
    b"utilization", b"max_total_num", b"max seq len", b"loading took", b"enough mem", b"ree memory on",
    b"on startup", b"leave no GPU", b"memory reserved", b"memory used", b"Max_MA",
    b"Memory on the node", b"NVIDIA ", b"illed", b"SIGKILL", b"exitcode", b"exit code", b"exit status",
    b"ignal", b"oom-kill", b"oom_kill", b"OOMKilled", b"ALLOC_FAILED", b"OUT_OF_MEMORY", b"MemoryAlloc",
    b"can't alloc", b"CUDA calloc", b"increase",
)  # fmt: skip
_BEFORE, _AFTER = 160, 60  # lines kept before and after one of interest
_WINDOW, _WIDE = 600, 1 << 20  # lines that are read together at most, and their bytes
_PRODUCTS, _LINE = 64, 400  # lines that name a GPU, and their characters
_LONGEST = 1 << 16  # bytes of a line that are looked at; binary garbage has no line breaks
_MOST = 1_000  # messages of one kind that are read


def read(chunks: Iterable[bytes], path: str) -> Log:
    """Return what a log says. ``chunks`` are its bytes, in pieces of any size."""
    reader = _Reader(path)
    number = 0
    for number, (line, telling) in enumerate(_lines(chunks), 1):
        reader.take(number, line, telling=telling)
    reader.close()
    return reader.log(number)


def _lines(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield lines, and whether one of the words is in them."""
    rest = b""
    for chunk in chunks:
        data = rest + chunk if rest else chunk
        end = data.rfind(b"\n") + 1
        yield from _marked(data[:end])
        rest = data[end:][-_LONGEST:]  # of a line without end the last part is kept
    if rest:
        yield from _marked(rest)


def _marked(data: bytes) -> Iterator[tuple[bytes, bool]]:
    hits = sorted(_hits(data))
    hits.append(len(data) + 1)
    at = next_hit = 0
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for line in lines:
        end = at + len(line)
        telling = hits[next_hit] <= end
        while hits[next_hit] <= end:
            next_hit += 1
        at = end + 1
        # One line of the file, though a terminal would show several: progress bars end theirs with a carriage
        # return alone. The end counts: messages that follow a bar are there.
        yield line[-_LONGEST:].replace(b"\r", b" "), telling


def _hits(data: bytes) -> Iterator[int]:
    """Yield where words are, each once in a line."""
    for word in _WORDS:
        at = data.find(word)
        while at >= 0:
            yield at
            end = data.find(b"\n", at)
            at = data.find(word, end) if end >= 0 else -1


class _Reader(Record):
    """The lines of interest, gathered into windows, and what was found in them."""

    path: str
    before: deque[tuple[int, bytes]] = field(factory=lambda: deque(maxlen=_BEFORE), init=False)
    window: list[tuple[int, bytes]] = field(factory=list, init=False)
    quiet: int = field(default=0, init=False)  # lines since the last one of interest
    width: int = field(default=0, init=False)  # of the window, in bytes
    unread: int = field(default=0, init=False)  # the first line that no window had
    incidents: dict[tuple[int, str], Incident] = field(factory=dict, init=False)  # by line and source
    notes: dict[tuple[object, ...], Note] = field(factory=dict, init=False)
    death: Incident | None = field(default=None, init=False)
    products: dict[str, None] = field(factory=dict, init=False)
    counts: dict[str, int] = field(factory=dict, init=False)  # messages by kind
    limits: dict[str, int] = field(factory=dict, init=False)  # by kind, the line from which on none is read
    cut_lines: int = field(default=0, init=False)

    def take(self, number: int, line: bytes, *, telling: bool) -> None:
        """Go on by one line."""
        self.cut_lines += telling and len(line) == _LONGEST
        if self.window:
            self.window.append((number, line))
            self.width += len(line)
            self.quiet = 0 if telling else self.quiet + 1
            if self.quiet >= _AFTER or len(self.window) >= _WINDOW or self.width >= _WIDE:
                self.close()
        elif telling:
            self.window = [*self._latest(), (number, line)]
            self.width = sum(len(line) for _, line in self.window)
            self.before.clear()
            self.quiet = 0
        else:
            self.before.append((number, line))

    def _latest(self) -> list[tuple[int, bytes]]:
        """Return the lines before a window, which others may have had, as far as they leave it room."""
        sizes = accumulate(len(line) for _, line in reversed(self.before))
        kept = sum(size <= _WIDE // 4 for size in sizes)
        return list(self.before)[-kept:] if kept else []

    def close(self) -> None:
        """Read the window; its end stays at hand, for a message that continues after it."""
        if self.window:
            for source, lines in self._streams().items():
                self._search(source, lines)
            self.unread = self.window[-1][0] + 1
            _told.cache_clear()
        self.before.extend(self.window[-_BEFORE:])
        self.window = []

    def log(self, lines: int) -> Log:
        """Return all that was found in so many lines."""
        by_line = sorted(self.incidents.values(), key=lambda i: i.line)
        if not by_line and self.death is not None:
            by_line = [self.death]
        noted = sorted(self.notes.values(), key=lambda note: note.line)
        return Log(tuple(by_line), tuple(noted), lines, tuple(self.products), tuple(self._cut()))

    def _cut(self) -> Iterator[str]:
        """Yield what was not read."""
        names = ", ".join(dict.fromkeys(KINDS.get(kind, kind) for kind in sorted(self.limits)))
        if names:
            yield (
                f"{self.path}: of each kind of message only the first {_MOST:,} were read; there are more of "
                f"these: {names}"
            )
        if self.cut_lines:
            yield (
                f"{self.path}: {self.cut_lines:,} lines are longer than {_LONGEST // 1024} KiB; of each, the "
                "end was read"
            )

    def _admits(self, kind: str, line: int) -> bool:
        """Whether a message is to be read: of each kind the first ones are."""
        if line >= self.limits.get(kind, line + 1):
            return False
        if line >= self.unread:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            if self.counts[kind] > _MOST:
                self.limits[kind] = line
                return False
        return True

    def _streams(self) -> dict[str, Numbered]:
        """Return the window's lines by the source that printed them."""
        streams: dict[str, Numbered] = {}
        source = ""
        for number, raw in self.window:
            own, text = clean(raw)
            source = own or source  # a wrapped line goes on without its prefix
            if not own and text.startswith(("Traceback", "File ")):
                source = ""
            if "NVIDIA" in text and len(self.products) < _PRODUCTS:
                self.products[text[:_LINE]] = None
            if text:
                streams.setdefault(source, []).append((number, text))
        return streams

    def _search(self, source: str, lines: Numbered) -> None:
        """Look for messages in lines without their blanks: as they read wherever they were wrapped."""
        parts = [text.translate(_SPACE) for _, text in lines]
        starts, size = [], 0
        for part in parts:
            starts.append(size)
            size += len(part)
        text = "".join(parts)

        def place(offset: int) -> int:
            return bisect_right(starts, offset) - 1

        def admits(kind: str, offset: int) -> bool:
            return self._admits(kind, lines[place(offset)][0])

        for offset, message in incidents(text, admits):
            at = place(offset)
            frames = traceback_before([line for _, line in lines[: at + 1]])
            when, where = moment(frames)
            incident = replace(
                message, line=lines[at][0], path=self.path, source=source, moment=when, where=where[:_LINE],
                engine=message.engine or engine_of(frames),
            )  # fmt: skip
            # A text of the window's last lines is read again, whole, with the next window.
            earlier = self.incidents.get((incident.line, source))
            if earlier is None or incident.fullness >= earlier.fullness:
                self.incidents[incident.line, source] = incident
        for offset, name, engine, value in notes(text, admits):
            number = lines[place(offset)][0]
            self.notes[name, engine, number] = Note(name, number, self.path, value, engine)
        if self.death is None:
            dead = next((n for (n, _), part in zip(lines, parts, strict=True) if killed(part)), None)
            self.death = None if dead is None else Incident(KILLED, self.path, dead, source)
