"""A config file as records: documents, nodes with the span of their own spelling, paths, and the walks.

Every run imports this: what few documents need is in compose.py and trace.py.
"""

from __future__ import annotations

from cfglint.record import Record, Value, field
from cfglint.text import LineIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from cfglint.document.job import Job
    from cfglint.errors import DocumentError

    MaybeNode = TypeVar("MaybeNode", "Node", "Node | None")

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 200  # of collections in each other
MAX_NODES = 1_000_000
MAX_REFERENCES = 50  # in a row, or in each other
DEEPEST_PATH = 200
_LONGEST_REFERENCE = 1_000
SCRIPTS = (".sh", ".bash", ".sbatch", ".slurm")
PROGRAMS = (".py", ".ipynb")
BOM = b"\xef\xbb\xbf"


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

    # Written by hand, as Entry's: any run makes many, and record.py would write the same when it starts.
    def __init__(  # noqa: PLR0913 (as many as there are fields)
        self,
        text: str,
        start: int,
        end: int,
        style: str = "",
        tag: str | None = None,
        anchor: str | None = None,
        origin: str | None = None,
    ) -> None:
        self.text = text
        self.start = start
        self.end = end
        self.style = style
        self.tag = tag
        self.anchor = anchor
        self.origin = origin


class Off(Scalar):
    """What a flag without value is worth where it is not given: it is known, and not there."""


class Several(Scalar):
    """A scalar that several commands of a script, or configs of a program, read: an edit is for all."""


class Composite(Scalar):
    """A scalar whose text is put together from parts, as a shell does it; ``reads`` are their definitions.

    ``cut`` is where the text begins that goes with the scalar when it is taken away (a flag without value),
    -1 where it cannot be. ``counts`` says that it is the length of a list of the first numbers: ``0,1,2``.
    ``flag`` is the flag of a program whose default it is, ``ending`` of a path's end, or of a sum. ``there``
    is the other script that says it, by its name, with its text, and the place in it. ``product`` says that
    it is the product of what it reads, and of nothing else.
    """

    reads: tuple[Scalar, ...] = field(default=(), kw_only=True)
    ending: tuple[int, int] = field(default=(-1, -1), kw_only=True)
    cut: int = field(default=-1, kw_only=True)
    counts: bool = field(default=False, kw_only=True)
    flag: str = field(default="", kw_only=True)
    there: tuple[str, str, int] | None = field(default=None, kw_only=True)
    product: bool = field(default=False, kw_only=True)

    @property
    def editable(self) -> bool:
        """Whether an edit of its file can make it another value."""
        here = self.there is None
        return here and (self.cut >= 0 or self.counts or self.ending[0] >= 0)


class HydraRef(Composite):
    """The config of a Hydra application, which need not be here; ``places`` are where it would be, in order.

    ``choices`` are the overrides that may choose a group: key, and name (None where it is not known).
    """

    places: tuple[str, ...] = field(kw_only=True)
    choices: tuple[tuple[str, str | None], ...] = field(kw_only=True)


class FunctionRef(Composite):
    """A config that a function of a program returns: its name is the text, ``places`` as of a HydraRef."""

    places: tuple[str, ...] = field(kw_only=True)


class Unresolved(Scalar):
    """A scalar whose value the file alone does not say; ``text`` is how it is spelled, ``why`` says why.

    ``tail`` is what it surely ends with, of a path whose beginning is not known.
    """

    tag: str | None = "!unread"
    why: str = field(kw_only=True)
    needs: tuple[str, ...] = field(default=(), kw_only=True)
    tail: str = field(default="", kw_only=True)


class Entry(Record):
    """One ``key: value`` of a mapping."""

    key: Scalar
    value: Node

    def __init__(self, key: Scalar, value: Node) -> None:
        self.key = key
        self.value = value


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
    tail: str = field(default="", compare=False)  # of a path, what is known of its end


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
    """Nothing is at the path."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ALL = All()
ABSENT = Absent()
Node = Scalar | Mapping | Sequence | Alias
Path = tuple[str | int | All, ...]
Place = tuple[Node | Computed | None, Path]


def dotted(path: Path) -> str:
    """Return ``a.b[0].c``."""
    parts: list[str] = []
    for part in path:
        if isinstance(part, str):
            parts.append(f".{part}" if parts else part)
        else:
            parts.append("[*]" if isinstance(part, All) else f"[{part}]")
    return "".join(parts)


def missing(why: str, kind: str) -> Computed:
    """Return a place whose value cannot be known."""
    return Computed(Missing((), why, kind))


def mandatory(at: Path) -> Missing:
    """Return what ``???`` is."""
    return Missing((dotted(at),), f"{dotted(at)} is '???': the user must set it", "missing")


def over_budget() -> Missing:
    """Return what is left where a document stands for too many values."""
    return Missing(
        (), "the file's aliases and references expand to more values than cfglint follows", "budget"
    )


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
def target(node: MaybeNode) -> MaybeNode:
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


def plain_reference(text: str) -> list[str] | None:
    """Return the keys of a text that is ``${a.b}`` and no more, as most references are; None of any other."""
    inner = text[2:-1]
    if text[-1:] != "}" or len(text) > _LONGEST_REFERENCE or text[:2] != "${":
        return None
    if not inner.replace(".", "").replace("_", "").isalnum():
        return None
    keys = inner.split(".")
    return keys if all(keys) and len(keys) <= DEEPEST_PATH else None


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
class Document(Record):
    """One document of a file. With ``error`` set, ``root`` is what came before it, and may be None.

    A command that a file launches is a document of the form ``shell`` (``listed``: its words are items of a
    list), part of a ``job``. ``over`` are the scalars that name files which it is laid over (a launch's
    ``--config``), ``folder`` is where the command runs, seen from where its script does; ``elsewhere`` says
    that nobody knows it. ``lax`` is what JSON forbids and hjson takes. A section of a document is one
    itself: ``key`` is its name, ``whole`` the document that it is in, ``lent`` the spans of definitions in
    it that other sections read. ``overrun`` says why it is not judged, ``claimed`` which other frameworks'
    keys it has. ``unread`` says below which paths absent keys may be set, and why; ``vendored`` says that
    the repository of a command holds its framework's package, ``vouched`` that somebody names the framework
    that reads it, ``foreign`` that its program may differ from the framework's as it was released, ``away``
    that it surely is another, ``repeated`` that it may be run several times; ``declares`` tells whether code
    of its project declares an argument, or a choice of it, ``has_field`` whether its framework's classes
    there have one in a section, ``default_in`` what it is worth there, ``names`` whether any of it may ask
    for one, ``reads_at`` whether it does so in one section alone, ``asks_for`` whether it may for one that
    the config lacks, ``composed`` whether a program of its own has Hydra compose it where its framework
    does not, ``base_of`` whose defaults it is, ``used`` whether its project uses its package, ``generated``
    whether a program of it writes the file anew, ``started`` with how many processes its project's scripts
    start what reads it, ``strange`` flags that its program lacks, ``lost`` its program where that is not
    here, ``alone`` whether its program takes nothing beside its config, ``shelved`` which files of
    DeepSpeed may take its one's place, ``siblings`` what lies beside its config, ``makes_optimizer``
    whether a switch does so in its project, ``behind`` a script's commands, and from which on they follow;
    ``replaced`` are the keys that a launch gives itself; ``sites`` where a program's calls are, ``asked``
    gives the trainer where some flags are given; ``flags`` names all.
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
    folder: str = ""
    job: Job | None = None
    file: File = field(init=False, compare=False)
    index: int = 0
    key: Scalar | None = None
    whole: Document = field(init=False, compare=False)
    lent: tuple[tuple[int, int], ...] = ()
    words: list[Any] = field(factory=list, compare=False)  # of a command (shell.words.Word)
    outer: list[Any] = field(factory=list, compare=False)  # of what was given the command to run
    behind: tuple[list[Any], int] = field(
        default=([], 0), init=False, compare=False
    )  # a script's, from which on
    unread: dict[Path, str] | None = field(default=None, compare=False)
    sites: dict[Path, Any] | None = field(default=None, compare=False)
    program: Any = field(default=None, compare=False)  # of a command (follow.Started)
    flags: frozenset[str] = field(default=frozenset(), init=False, compare=False)
    asked: Callable[[dict[str, object]], Document | None] | None = field(
        default=None, init=False, compare=False
    )
    followed: bool = field(default=False, init=False, compare=False)
    vendored: bool = field(default=False, init=False, compare=False)
    vouched: bool = field(default=False, init=False, compare=False)
    foreign: bool = field(default=False, init=False, compare=False)
    away: bool = field(default=False, init=False, compare=False)
    repeated: bool = field(default=False, init=False, compare=False)
    declares: Callable[..., bool] | None = field(default=None, init=False, compare=False)
    has_field: Callable[[str, str], bool] | None = field(default=None, init=False, compare=False)
    default_in: Callable[[str], object] | None = field(default=None, init=False, compare=False)
    names: Callable[[str], bool] | None = field(default=None, init=False, compare=False)
    reads_at: Callable[[str, str], bool] | None = field(default=None, init=False, compare=False)
    asks_for: Callable[[str], bool] | None = field(default=None, init=False, compare=False)
    namesake: Callable[[], str] | None = field(default=None, init=False, compare=False)
    composed: Callable[[], bool] | None = field(default=None, init=False, compare=False)
    base_of: Callable[[], str] | None = field(default=None, init=False, compare=False)
    used: Callable[[], bool] | None = field(default=None, init=False, compare=False)
    generated: Callable[[], bool] | None = field(default=None, init=False, compare=False)
    makes_optimizer: Callable[[str], bool | None] | None = field(default=None, init=False, compare=False)
    started: Callable[[str], list[Any]] | None = field(default=None, init=False, compare=False)
    strange: Callable[[], list[Any]] | None = field(default=None, init=False, compare=False)
    lost: Callable[[], Scalar | None] | None = field(default=None, init=False, compare=False)
    alone: Callable[[], bool] | None = field(default=None, init=False, compare=False)
    shelved: Callable[[], dict[str, object]] | None = field(default=None, init=False, compare=False)
    siblings: Callable[[str], list[File]] | None = field(default=None, init=False, compare=False)
    elsewhere: bool = field(default=False, init=False, compare=False)
    replaced: frozenset[str] = field(default=frozenset(), init=False, compare=False)
    loader: str = field(default="", init=False)
    overrun: str = field(default="", init=False)
    claimed: tuple[str, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        self.whole = self

    @property
    def takes_no_more(self) -> bool:
        """Whether a command's program takes nothing beside the file that it is given."""
        return self.alone is not None and self.alone()

    def taken_by(self, dialect: str) -> None:
        """Forget a mistake that is none to a loader: hjson takes comments and a comma too many."""
        self.loader = dialect
        if self.error is self.lax and dialect == "hjson":
            self.error = None

    def owns(self, start: int, end: int) -> bool:
        """Whether what is there is this document's alone, and no other section's as well."""
        return self.key is None or (
            self.start <= start
            and end <= self.end
            and not any(first <= start and end <= last for first, last in self.lent)
        )


class File(Record):
    """A decoded file; ``text`` is without its byte order mark, and its line ends are as they were.

    ``scripts`` is what gave the texts of scripts that this one runs; an edited version needs it again.
    """

    path: str
    text: str
    format: str
    bom: bool = field(default=False, kw_only=True)
    scripts: Callable[[str], str | None] | None = field(default=None, kw_only=True, compare=False)
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
