"""A config file and its documents as records, and what a job asks for that is part of them."""

from __future__ import annotations

from cfglint.document.tree import Alias, Mapping, target, walk
from cfglint.record import Record, field
from cfglint.text import LineIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.tree import Node, Scalar
    from cfglint.errors import DocumentError

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
    file: File = field(init=False)
    index: int = 0
    key: Scalar | None = None
    whole: Document = field(init=False)
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
