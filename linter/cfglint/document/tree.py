"""A config file as records: documents, nodes with the span of their own spelling, paths, and the walks."""

from __future__ import annotations

import re
from bisect import bisect_right

from cfglint.record import Record, Value, field
from cfglint.text import LineIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from cfglint.errors import DocumentError

    Node: TypeAlias = "Scalar | Mapping | Sequence | Alias"
    Path: TypeAlias = "tuple[str | int | All, ...]"
    Place: TypeAlias = "tuple[Node | Computed | None, Path]"

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 200  # of collections in each other
MAX_NODES = 1_000_000
SCRIPTS = (".sh", ".bash", ".sbatch", ".slurm")
# The words of which one stands in every script that launches a job.
STARTERS = (
    "python", "torchrun", "deepspeed", "accelerate", "tune", "llamafactory-cli", "trl", "axolotl", "vllm",
    "sglang", "rl @", "vllm-openai",
)  # fmt: skip
BOM = b"\xef\xbb\xbf"
BREAK = "\r\n|[\n\r\x85\u2028\u2029]"  # the line breaks of YAML; a text, since compiling takes its time
_MARK = r"#[ \t]*cfglint:[ \t]*(ignore(?:-file)?)[ \t]*\[([^\]\r\n]*)\]"


# ── nodes ──────────────────────────────────────────────────────────────────────────────────────────────────
class Scalar(Record):
    """A scalar as it was spelled.

    ``text`` is the decoded value (quotes and escapes gone), ``[start, end)`` the span of the value itself,
    without anchor, tag or comment; a value left empty (``key:``) has ``start == end``.
    ``style`` is ``""`` for plain, else one of ``' " | >``. ``origin`` is None for text of the file, else
    says where the value came from (``--set sglang.mem_fraction_static=0.5``).
    """

    text: str
    start: int
    end: int
    style: str = ""
    tag: str | None = None
    anchor: str | None = None
    origin: str | None = None


class Built(Scalar):
    """A scalar whose text is put together from parts, as a shell does it; ``reads`` are their definitions.

    ``cut`` is where the text begins that goes with the scalar when it is taken away (a flag without value),
    -1 where it cannot be.
    """

    reads: tuple[Scalar, ...] = field(default=(), kw_only=True)
    cut: int = field(default=-1, kw_only=True)


class Sought(Built):
    """The config of a Hydra application, which need not be here; ``places`` are where it would be, in order.

    ``choices`` are the overrides that may choose a group: key, and name (None where it is not known).
    """

    places: tuple[str, ...] = field(kw_only=True)
    choices: tuple[tuple[str, str | None], ...] = field(kw_only=True)


class Unread(Scalar):
    """A scalar whose value the file alone does not tell; ``text`` is how it is spelled, ``why`` says why."""

    tag: str | None = "!unread"
    why: str = field(kw_only=True)
    needs: tuple[str, ...] = field(default=(), kw_only=True)


class Entry(Record):
    """One ``key: value`` of a mapping."""

    key: Scalar
    value: Node


class _Collection(Record):
    start: int
    flow: bool = field(kw_only=True)
    tag: str | None = field(default=None, kw_only=True)
    anchor: str | None = field(default=None, kw_only=True)
    end: int = field(default=-1, kw_only=True)

    def __post_init__(self) -> None:
        if self.end < 0:
            self.end = self.start


class Mapping(_Collection):
    """A mapping. ``entries`` is keyed by the key's text, in the file's order; of duplicates the last wins.

    ``merges`` holds what ``<<`` names, in the order of precedence. ``flow`` is true for ``{…}``.
    """

    entries: dict[str, Entry] = field(factory=dict, kw_only=True)
    merges: list[Node] = field(factory=list, kw_only=True)


class Sequence(_Collection):
    """A sequence; ``flow`` is true for ``[…]``."""

    items: list[Node] = field(factory=list, kw_only=True)


class Alias(Record):
    """``*name``: stands for ``target``, and has a span of its own."""

    name: str
    target: Node
    start: int
    end: int


class Missing(Value):
    """A value that cannot be known: the names that it needs, and why.

    ``kind`` is one of ``"" missing absent cycle env resolver malformed budget unread``.
    """

    needs: tuple[str, ...]
    why: str
    kind: str = field(default="", compare=False)


class Computed(Record):
    """A computed value in a node's place: a text put together, an environment variable, or a Missing."""

    value: object


# ── paths ──────────────────────────────────────────────────────────────────────────────────────────────────
class All:
    """In a path: every item of a list, every value of a mapping."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ALL"


class Absent:
    """Nothing stands at the path."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ALL = All()
ABSENT = Absent()


def dotted(path: Path) -> str:
    """Return ``a.b[0].c``."""
    parts: list[str] = []
    for part in path:
        if isinstance(part, str):
            parts.append(f".{part}" if parts else part)
        else:
            parts.append("[*]" if isinstance(part, All) else f"[{part}]")
    return "".join(parts)


def split_key(text: str) -> list[str]:
    """Return the keys of ``a.b[0]``; an empty text is one empty key."""
    if "[" not in text:
        return text.split(".")
    keys: list[str] = []
    for i, piece in enumerate(text.split(".")):
        head, *brackets = piece.split("[")
        if head or not brackets or (i > 0 and not brackets):
            keys.append(head)
        keys.extend(b.rstrip("]") for b in brackets)
    return keys


def number_of(part: object) -> int | None:
    """Return the number that a part of a path is, or that a key of a reference spells."""
    if isinstance(part, str) and len(part) < 10 and part.isascii() and part.removeprefix("-").isdigit():
        return int(part)
    return part if isinstance(part, int) else None


def number_in(items: list[Any], part: object) -> int | None:
    """Return which of some items a part of a path means; a negative number counts from the end."""
    index = number_of(part)
    return None if index is None or not -len(items) <= index < len(items) else index % len(items)


# ── walks ──────────────────────────────────────────────────────────────────────────────────────────────────
def target(node: Node | None) -> Node | None:
    """Return what an alias stands for, and any other node itself."""
    return node.target if isinstance(node, Alias) else node


def child(node: Node | None, part: object) -> Node | None:
    """Return the node under a key, or at a number; what a mapping merges counts."""
    node = target(node)
    if isinstance(node, Mapping) and isinstance(part, str):
        entry = effective(node).get(part)
        return None if entry is None else entry.value
    if isinstance(node, Sequence) and isinstance(part, int) and 0 <= part < len(node.items):
        return node.items[part]
    return None


def descend(root: Node | None, path: Path) -> list[Node]:
    """Return the nodes on the way down a path, the root first, as far as the text itself writes them."""
    nodes = [] if root is None else [root]
    for part in path if nodes else ():
        node = nodes[-1]
        if isinstance(node, Mapping) and isinstance(part, str) and part in node.entries:
            nodes.append(node.entries[part].value)
        elif isinstance(node, Sequence) and isinstance(part, int) and 0 <= part < len(node.items):
            nodes.append(node.items[part])
        else:
            break
    return nodes


def walk(root: Node | None) -> list[Node]:
    """Return all nodes below ``root``, itself first, from the last to the first; aliases are not entered."""
    nodes: list[Node] = []
    waiting: list[Node] = [] if root is None else [root]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if isinstance(node, Mapping):
            waiting.extend(entry.value for entry in node.entries.values())
            waiting.extend(node.merges)
        elif isinstance(node, Sequence):
            waiting.extend(node.items)
    return nodes


def nodes_with_paths(root: Node | None) -> list[tuple[Path, Node]]:
    """Return every node with the path of its definition, in the file's order; aliases are not entered."""
    nodes: list[tuple[Path, Node]] = []
    waiting: list[tuple[Path, Node]] = [] if root is None else [((), root)]
    while waiting:
        path, node = waiting.pop()
        nodes.append((path, node))
        if isinstance(node, Mapping):
            waiting.extend(reversed([((*path, k), e.value) for k, e in node.entries.items()]))
            waiting.extend((path, merge) for merge in node.merges if not isinstance(merge, Alias))
        elif isinstance(node, Sequence):
            waiting.extend(reversed([((*path, i), item) for i, item in enumerate(node.items)]))
    return nodes


def effective(mapping: Mapping) -> dict[str, Entry]:
    """Return the entries of ``mapping`` with what it merges; its own win, then the earlier merge."""
    if not mapping.merges:
        return mapping.entries
    entries: dict[str, Entry] = {}
    seen: set[int] = set()
    waiting: list[Node] = [mapping]
    while waiting:
        node = waiting.pop()
        if node.__class__ is Alias:
            node = node.target
        if id(node) in seen:
            continue  # reached twice, it has nothing new: what came first has won
        seen.add(id(node))
        if node.__class__ is Sequence:
            waiting.extend(reversed(node.items))
        elif node.__class__ is Mapping:
            for name, entry in node.entries.items():
                entries.setdefault(name, entry)
            waiting.extend(reversed(node.merges))
    return entries


# ── files and documents ────────────────────────────────────────────────────────────────────────────────────
class Job(Record):
    """GPUs and nodes that a job asks for; a figure is a value and its span, absent where none is said.

    ``source`` names who is asked. ``many`` is how many GPUs of its ``kind`` a node has, where kinds differ in
    that; ``others`` are further kinds that would do, with their numbers (None: as many as ``figures`` say). A
    command is run ``everywhere`` where each node gets it, and not the first alone.
    """

    source: str = "#SBATCH"
    kind: str = ""  # of GPU, as the cluster calls it
    many: int | None = None
    others: list[tuple[str, int | None]] = field(factory=list)
    memory_mib: int | None = None  # that each GPU has at least (gpumem)
    figures: dict[str, tuple[int, int, int]] = field(factory=dict)
    everywhere: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.everywhere = self.source != "#SBATCH"

    def say(self, name: str, value: int, start: int, end: int) -> None:
        """Set a figure."""
        self.figures[name] = value, start, end

    def add_up(self) -> None:
        """Work out GPUs in all from those of a node, or those of a node from all."""
        nodes = self.count("nodes")
        per_node, total = self.count("gpus_per_node"), self.count("gpus")
        if total is None and per_node is not None and (nodes is not None or "nodes" not in self.figures):
            self.say("gpus", per_node * (nodes or 1), *self.figures["gpus_per_node"][1:])
        elif total is not None and per_node is None and nodes and total % nodes == 0:
            self.say("gpus_per_node", total // nodes, *self.figures["gpus"][1:])

    def count(self, name: str) -> int | None:
        """Return a figure, such as ``gpus``, ``gpus_per_node``, ``nodes``, ``tasks_per_node``."""
        figure = self.figures.get(name)
        return figure[0] if figure is not None else None


def line_end(text: str, at: int) -> int:
    """Return where the line around an offset ends, to YAML."""
    match = re.compile(BREAK).search(text, at)
    return len(text) if match is None else match.start()


class Document(Record):
    """One document of a file. With ``error`` set, ``root`` is what stood before it, and may be None.

    A command that a file launches is a document of the form ``shell`` (``listed``: its words are items of a
    list), with the ``job`` that it is part of. ``over`` are the scalars that name files which the document
    is laid over (a launch's ``--config``). ``lax`` is the first thing that JSON forbids and hjson takes.
    A section of a document is one itself: ``key`` is its name, ``whole`` the document that it stands in,
    ``lent`` the spans of definitions in it that other sections read.
    """

    start: int
    end: int = 0
    root: Node | None = None
    error: DocumentError | None = None
    lax: DocumentError | None = None
    duplicates: list[tuple[Scalar, Scalar]] = field(factory=list)
    format: str = ""  # until the file's own is put in
    listed: bool = False
    over: tuple[Scalar, ...] = ()
    job: Job | None = None
    file: File = field(init=False, compare=False)
    index: int = 0
    key: Scalar | None = None
    whole: Document = field(init=False, compare=False)
    lent: tuple[tuple[int, int], ...] = ()
    _loader: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self.whole = self

    def taken_by(self, dialect: str) -> None:
        """Forget a mistake that is none to a loader: hjson takes comments and a comma too many."""
        self._loader = dialect
        if self.error is self.lax and dialect == "hjson":
            self.error = None

    def again(self, file: File) -> Document | None:
        """Return this document in an edited version of its file; None where it cannot be found in it."""
        if len(file.documents) != len(self.file.documents):
            return None
        edited = file.documents[self.index]
        edited.taken_by(self._loader)
        if edited.error is not None:
            return None
        if self.key is None:
            return edited
        return next((part for part in edited.sections() if part.key.text == self.key.text), None)  # type: ignore[union-attr]

    def owns(self, start: int, end: int) -> bool:
        """Whether what stands there is this document's alone, and no other section's as well."""
        return self.key is None or (
            self.start <= start
            and end <= self.end
            and not any(first <= start and end <= last for first, last in self.lent)
        )

    def suppressions(self) -> list[tuple[int, tuple[str, ...]]]:
        """Return ``(line, codes)`` for each ``# cfglint: ignore[…]``; line 0 is the whole file.

        A comment alone on its line counts for the next one.
        """
        text = self.file.text
        if self.format == "json" or "cfglint:" not in text:
            return []
        script = self.format == "shell"  # its documents are commands, and comments stand around them
        spans = [] if script else self._scalar_spans()
        first, last = (0, len(text)) if script else (self.start, self.end)
        suppressed: list[tuple[int, tuple[str, ...]]] = []
        for mark in re.compile(_MARK).finditer(text, first, last):
            at = mark.start()
            line, column = self.file.lines.position(at)
            before = text[at - column + 1 : at]
            # A comment is preceded by a blank, or is itself within one.
            if before and not before.endswith((" ", "\t")) and "#" not in before:
                continue
            around = bisect_right(spans, (at, len(text))) - 1
            if around >= 0 and at < spans[around][1]:
                continue
            codes = tuple(code.strip() for code in mark.group(2).split(",") if code.strip())
            if codes:
                alone = not before.strip()
                suppressed.append((0 if mark.group(1) == "ignore-file" else line + alone, codes))
        return suppressed

    def _scalar_spans(self) -> list[tuple[int, int]]:
        """Return the spans in which ``#`` starts no comment; a block scalar's header line may have one."""
        text = self.file.text
        spans: list[tuple[int, int]] = []
        for node in walk(self.root):
            if isinstance(node, Mapping):
                spans.extend((e.key.start, e.key.end) for e in node.entries.values())
            elif isinstance(node, Scalar) and node.end > node.start:
                start = line_end(text, node.start) if node.style in ("|", ">") else node.start
                spans.append((start, node.end))
        return sorted(spans)

    def sections(self) -> list[Document]:
        """Return the mappings at the top as documents; none where something else stands there, too."""
        root = self.root
        if not isinstance(root, Mapping) or root.merges:
            return []
        nodes = [entry.value for entry in root.entries.values()]
        if not all(isinstance(target(node), Mapping) for node in nodes):
            return []
        parts = [self._section(entry.key, entry.value) for entry in root.entries.values()]
        reads = [{(n.target.start, n.target.end): 0 for n in walk(s) if isinstance(n, Alias)} for s in nodes]
        for part in parts:  # what others read of it, through an alias or a merge
            lent = [
                span
                for reader, spans in zip(parts, reads, strict=True)
                if reader is not part
                for span in spans
            ]
            part.lent = tuple(dict.fromkeys(lent))
        return parts

    def _section(self, key: Scalar, node: Node) -> Document:
        part = Document(
            node.start, node.end, target(node), format=self.file.format, index=self.index, key=key
        )
        part.file, part.whole = self.file, self
        part.duplicates = [pair for pair in self.duplicates if node.start <= pair[0].start < node.end]
        last = key  # of a name that stands twice, the later section is the one that counts
        for later, first in reversed(self.duplicates):
            if later is last:
                part.duplicates.append((later, first))
                last = first
        return part


class File(Record):
    """A decoded file; ``text`` is without its byte order mark, and its line ends are as they were."""

    path: str
    text: str
    format: str
    bom: bool = field(default=False, kw_only=True)
    documents: list[Document] = field(factory=list, init=False)
    _lines: LineIndex | None = field(default=None, init=False)

    @property
    def lines(self) -> LineIndex:
        """Line and column of an offset."""
        if self._lines is None:
            self._lines = LineIndex(self.text)
        return self._lines

    def encode(self, text: str) -> bytes:
        """Return ``text``, an edited version of this file's, as the bytes to write."""
        data = text.encode("utf-8")
        return BOM + data if self.bom else data
