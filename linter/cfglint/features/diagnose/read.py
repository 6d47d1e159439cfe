"""Reads a log line by line, whatever its size: keeps what lies around lines that may tell of memory."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import replace

from cfglint.features.diagnose.clean import clean, squeezed
from cfglint.features.diagnose.incident import KILLED, Incident, Log, Note
from cfglint.features.diagnose.messages import incidents, killed, notes
from cfglint.features.diagnose.moments import engine_of, moment, traceback_before

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
_WINDOW = 600  # lines that are read together at most
_PRODUCTS, _LINE = 64, 400  # lines that name a GPU, and their characters
_LONGEST = 1 << 16  # bytes of a line that are looked at; binary garbage has no line breaks


def read(chunks: Iterable[bytes], path: str) -> Log:
    """Return what a log tells. ``chunks`` are its bytes, in pieces of any size."""
    reader = _Reader(path)
    number = 0
    for line, interesting in _lines(chunks):
        number += 1
        reader.take(number, line, interesting=interesting)
    reader.close()
    return reader.log(number)


def _lines(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield lines, and whether one of the words stands in them."""
    rest = b""
    for chunk in chunks:
        data = rest + chunk if rest else chunk
        end = data.rfind(b"\n") + 1
        yield from _marked(data[:end])
        rest = data[end:]
        if len(rest) > _LONGEST:
            rest = rest[-_LONGEST:]  # a line without end: its last part is kept
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
        interesting = hits[next_hit] <= end
        while hits[next_hit] <= end:
            next_hit += 1
        at = end + 1
        # One line of the file, though a terminal would show several: progress bars end theirs with a carriage
        # return alone. The end counts: messages that follow a bar stand there.
        yield line[-_LONGEST:].replace(b"\r", b" "), interesting


def _hits(data: bytes) -> Iterator[int]:
    for word in _WORDS:
        at = data.find(word)
        while at >= 0:
            yield at
            at = data.find(word, at + 1)


class _Reader:
    """The lines of interest, gathered into windows, and what was found in them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.before: deque[tuple[int, bytes]] = deque(maxlen=_BEFORE)
        self.window: list[tuple[int, bytes]] = []
        self.quiet = 0  # lines since the last one of interest
        self.found: dict[tuple[object, ...], Incident] = {}
        self.notes: dict[tuple[object, ...], Note] = {}
        self.deaths: list[Incident] = []
        self.products: dict[str, None] = {}

    def take(self, number: int, line: bytes, *, interesting: bool) -> None:
        """Go on by one line."""
        if self.window:
            self.window.append((number, line))
            self.quiet = 0 if interesting else self.quiet + 1
            if self.quiet >= _AFTER or len(self.window) >= _WINDOW:
                self.close()
        elif interesting:
            self.window = [*self.before, (number, line)]
            self.before.clear()
            self.quiet = 0
        else:
            self.before.append((number, line))

    def close(self) -> None:
        """Read the window; its end stays at hand, for a message that goes on behind it."""
        if self.window:
            self._search(self.window)
        self.before.extend(self.window[-_BEFORE:])
        self.window = []

    def log(self, lines: int) -> Log:
        """Return all that was found in so many lines."""
        found = sorted(self.found.values(), key=lambda one: one.line) or self.deaths[:1]
        said = sorted(self.notes.values(), key=lambda note: note.line)
        return Log(tuple(found), tuple(said), lines, tuple(self.products))

    def _search(self, window: list[tuple[int, bytes]]) -> None:
        streams: dict[str, list[tuple[int, str]]] = {}
        source = ""
        for number, raw in window:
            own, text = clean(raw)
            source = own or source  # a wrapped line goes on without its prefix
            if not own and text.startswith(("Traceback", "File ")):
                source = ""
            if "NVIDIA" in text and len(self.products) < _PRODUCTS:
                self.products[text[:_LINE]] = None
            if text:
                streams.setdefault(source, []).append((number, text))
        for name, lines in streams.items():
            self._stream(name, lines)

    def _stream(self, source: str, lines: list[tuple[int, str]]) -> None:
        parts = [squeezed(text) for _, text in lines]
        starts, size = [], 0
        for part in parts:
            starts.append(size)
            size += len(part)
        text = "".join(parts)
        for offset, one in incidents(text):
            at = bisect_right(starts, offset) - 1
            # A text of the window's last lines is read again, whole, with the next window.
            frames = traceback_before([line for _, line in lines[: at + 1]])
            when, where = moment(frames)
            full = replace(
                one, line=lines[at][0], path=self.path, source=source, moment=when, where=where,
                engine=one.engine or engine_of(frames),
            )  # fmt: skip
            self._keep(full)
        for offset, name, engine, value in notes(text):
            number = lines[bisect_right(starts, offset) - 1][0]
            self.notes[name, engine, number] = Note(name, number, self.path, value, engine, source)
        for (number, _), part in zip(lines, parts, strict=True):
            if killed(part):
                self.deaths.append(Incident(KILLED, number, self.path, source))

    def _keep(self, one: Incident) -> None:
        """Keep the fuller account of each line's incident."""
        key = one.line, one.source
        known = self.found.get(key)
        if known is None or _told(one) >= _told(known):
            self.found[key] = one


def _told(one: Incident) -> int:
    return sum(value not in (None, (), "") for value in (*one.facts(), one.moment, one.engine))
