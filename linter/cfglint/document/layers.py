"""What a document's tree is made of beside its own file: other files, and overrides on the command line.

A file is laid beneath the document (its own keys win), or hung at a key; an override ``a.b=c`` lies over it.
Every node keeps the span of its own spelling in its own file: `Layers.sources` says of a foreign node
which file that is, and by which key it came in. No tree that was parsed is changed.
"""

from __future__ import annotations

from cfglint.budget import spend
from cfglint.document.tree import (
    MAX_DEPTH,
    Entry,
    File,
    Mapping,
    Node,
    Path,
    Scalar,
    Sequence,
    child,
    effective,
    number_in,
    split_key,
    target,
    walk,
)
from cfglint.document.yaml import parse_yaml
from cfglint.errors import UsageError
from cfglint.record import Record, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence as Listed


_FILES = "files laid over each other"
BY_SET = "--set "  # before the text of an override, where a value comes from one


class Source(Record):
    """How a file came in: ``node`` names it, under ``key``, in ``by``'s file (None: the config's own).

    ``hung`` tells a file that hangs at the key from one that lies beneath, whose keys the config overrides.
    """

    file: File
    node: Scalar
    key: str
    by: Source | None = None
    hung: bool = field(default=False, kw_only=True)

    @property
    def first(self) -> Source:
        """The step that leaves the config itself."""
        return self if self.by is None else self.by.first


class Trouble(Record):
    """A file that was named and does not come in.

    ``kind`` is ``broken``, ``cycle``, ``missing`` or ``outside``.
    """

    kind: str
    node: Scalar
    key: str
    note: str
    by: Source | None = None


class Way(Record):
    """How a framework's files make one config: ``composes`` is ``""``, ``parents`` or ``hydra``.

    ``files`` are the keys that name a file each, and how it is read; ``knows`` are the files, as defaults
    lists name them, that come with the framework: where they are not here, absent keys are what its bindings
    say of them.
    """

    composes: str = ""
    files: Listed[tuple[Path, str]] = ()
    knows: Listed[str] = ()


class Layers(Record):
    """A document's tree with that of other files; the trees of the files themselves stay as they are.

    ``unread`` names the files that are not here, each by the path below which it would put its keys: what is
    absent there is not known. ``hung`` are the roots of files that hang at a scalar, by its id. ``based``
    says that the config of the program that a launch starts is among the files. ``read`` are the overrides
    that were read already, by their texts: a file hangs at the very node of one that names it. ``lost`` tells
    of a file that an override names and that is nowhere. ``beneath`` is what Hydra composed for the program
    of a launch, before its overrides.
    """

    root: Node | None
    read: dict[str, Override] = field(factory=dict, kw_only=True)
    based: bool = field(default=False, init=False)
    files: list[Source] = field(factory=list, init=False)
    sources: dict[int, Source] = field(factory=dict, init=False)
    hung: dict[int, Node] = field(factory=dict, init=False)
    troubles: list[Trouble] = field(factory=list, init=False)
    unread: dict[Path, str] = field(factory=dict, init=False)
    lost: str = field(default="", init=False)
    beneath: Node | None = field(default=None, init=False)
    _kept: list[Node] = field(factory=list, init=False)  # an id may not come again on another node

    def overlaid(self, path: Path) -> Node | None:
        """Return the tree with the overrides of what is at a path laid over it."""
        over = [each for each in self.read.values() if tuple(each.keys) == path[: len(each.keys)]]
        if not over:
            return self.root
        overlay = Overlay(self.root, self.hung)
        for each in over:
            overlay.apply(each)
        return overlay.root

    def refuse_missing(self) -> None:
        """Refuse an override that names a file which is nowhere. Raises UsageError."""
        if self.lost:
            raise UsageError(self.lost)

    def refuse(self, node: Scalar, key: str, name: str, by: Source | None = None) -> None:
        """Note a file, or a folder of files, that is not read since it is outside the repository."""
        self.troubles.append(Trouble("outside", node, key, name, by))

    def enter(self, source: Source, dialect: str = "") -> Node | None:
        """Take a file in and return its tree; None for a program, and with a trouble if it does not parse."""
        if not source.file.documents:
            return None
        document = source.file.documents[0]
        self.files.append(source)
        if document.error is not None and not (dialect == "hjson" and document.error is document.lax):
            line, column = source.file.lines.position(document.error.offset or 0)
            note = f"{source.file.path}:{line}:{column}: {document.error}"
            self.troubles.append(Trouble("broken", source.node, source.key, note, source.by))
            return None
        root = document.root if document.root is not None else Mapping(0, flow=True)
        self.adopt(root, source)
        self.unread |= document.unread or {}
        return root

    def adopt(self, root: Node, source: Source) -> None:
        """Note of a file's nodes where they come from."""
        self._kept.append(root)
        nodes = walk(root)
        spend(len(nodes), _FILES)
        for node in nodes:
            self.sources.setdefault(id(node), source)  # of a file that came in twice, the first way counts
            for entry in node.entries.values() if isinstance(node, Mapping) else ():
                self.sources.setdefault(id(entry.key), source)

    def lay(self, upper: Node | None, lower: Node | None) -> Node | None:
        """Return one tree of two: mappings are joined, and else the upper one's value holds."""
        if upper is None:
            return lower
        above, below = target(upper), target(lower)
        if isinstance(above, Scalar) and above.text == "???" and below is not None:
            return lower  # to OmegaConf a value that is still to be set, which sets nothing
        if not isinstance(above, Mapping) or not isinstance(below, Mapping):
            return upper
        entries = dict(effective(below))
        spend(5 + len(entries) + 2 * len(above.entries), _FILES)
        for name, entry in effective(above).items():
            old = entries.get(name)
            value = entry.value if old is None else self.lay(entry.value, old.value)
            entries[name] = entry if value is None or value is entry.value else Entry(entry.key, value)
        return self.like(above, entries)

    def like(self, node: Mapping | None, entries: dict[str, Entry] | None = None) -> Mapping:
        """Return a mapping of some entries in the place of ``node``, of the same file."""
        if node is None:
            return Mapping(0, flow=True)
        fresh = replace(node, entries=entries or {}, merges=[])
        source = self.sources.get(id(node))
        if source is not None:
            self.sources[id(fresh)] = source
        self._kept.append(fresh)
        return fresh

    def without(self, node: Mapping, *names: str) -> Mapping:
        """Return a mapping in the place of ``node``, with what it merges and without some of its keys."""
        spend(5 + len(node.entries), _FILES)
        return self.like(node, {name: entry for name, entry in effective(node).items() if name not in names})

    def own(self, holder: Mapping, source: Source | None) -> None:
        """Note that a mapping made for a package is in the file (None: the config's) that asks for it."""
        self._kept.append(holder)
        if source is not None:
            self.sources[id(holder)] = source
            for entry in holder.entries.values():
                self.sources[id(entry.key)] = source


# ── overrides ──────────────────────────────────────────────────────────────────────────────────────────────
class Override(Record):
    """One override, read: ``value`` is None where it deletes the key."""

    keys: list[str]
    value: Node | None
    origin: str


def read_override(text: str) -> Override:
    """Read ``a.b=c``, ``+a.b=c``, ``++a.b=c`` or ``~a.b``; raises UsageError."""
    origin = f"{BY_SET}{text}"
    deletes = text.startswith("~")
    path, equals, value = text.removeprefix("~").partition("=")
    if not deletes:
        path = path.removeprefix("+").removeprefix("+")
    path = path.strip()
    keys = split_key(path)
    if not path or not all(keys):
        raise UsageError(f"{origin}: no key; write KEY=VALUE, such as actor.optimizer.lr=1e-6")
    if len(keys) > MAX_DEPTH:
        raise UsageError(f"{origin[:60]}…: the key has {len(keys):,} parts, more than {MAX_DEPTH}")
    if deletes:
        return Override(keys, None, origin)
    if not equals:
        raise UsageError(f"{origin}: no value; write {path}=VALUE, or ~{path} to remove the key")
    documents = parse_yaml(value)
    document = documents[0]
    if document.error is not None or len(documents) > 1:
        raise UsageError(f"{origin}: the value is not valid YAML; quote it, as in {path}='\"text\"'")
    root = document.root if document.root is not None else Scalar("", 0, 0)
    for node in walk(root):  # its spans would point into another text
        node.start = node.end = 0
        if isinstance(node, Scalar):
            node.origin = origin
    return Override(keys, root, origin)


class Overlay(Record):
    """A document's root with overrides laid over it; only the mappings on the way to them are copied."""

    root: Node | None
    hung: dict[int, Node] = field(factory=dict)  # by a scalar's id, the root of the file that it names
    origins: dict[int, str] = field(factory=dict, init=False)
    # By id, and kept: the id of a node that is dropped could come again on a node of the document.
    _copies: dict[int, tuple[Node, int]] = field(factory=dict, init=False)  # and the id of the original

    def apply(self, override: Override) -> None:
        """Set or delete one key."""
        holder = self.root = self._copy(self.root)
        *parents, last = override.keys
        for depth, key in enumerate(parents):
            inner = self._inside(holder, key)
            if override.value is None and not isinstance(inner, (Mapping, Sequence)):
                return
            fresh = self._copy(inner)
            if not isinstance(inner, (Mapping, Sequence)):
                self.origins[id(fresh)] = override.origin
            self._put(holder, key, fresh, ".".join(override.keys[: depth + 1]), override)
            holder = fresh
        if override.value is not None:
            if not isinstance(override.value, Scalar):
                self.origins[id(override.value)] = override.origin
            self._put(holder, last, override.value, ".".join(override.keys), override)
        elif isinstance(holder, Mapping):
            holder.entries = dict(effective(holder))
            holder.merges = []
            holder.entries.pop(last, None)
        else:
            index = number_in(holder.items, last)
            if index is not None:
                del holder.items[index]

    def _inside(self, holder: Mapping | Sequence, key: str) -> Node | None:
        part = number_in(holder.items, key) if isinstance(holder, Sequence) else key
        node = target(child(holder, part))
        return self.hung.get(id(node), node)

    def _put(self, holder: Mapping | Sequence, key: str, value: Node, path: str, override: Override) -> None:
        if isinstance(holder, Sequence):
            index = number_in(holder.items, key)
            if index is None:
                raise UsageError(
                    f"{override.origin}: the list at {path.rpartition('.')[0]} has {len(holder.items)} items,"
                    f" and {key!r} is not one of their indices"
                )
            holder.items[index] = value
            return
        old = holder.entries.get(key)
        name = Scalar(key, 0, 0, '"', origin=override.origin) if old is None else old.key
        holder.entries[key] = Entry(name, value)

    def _copy(self, node: Node | None) -> Mapping | Sequence:
        """Return a mapping or list that may be changed; what is neither gives way to an empty mapping."""
        if isinstance(node, (Mapping, Sequence)) and id(node) in self._copies:
            return node
        copy: Mapping | Sequence = Mapping(0, flow=True)
        if isinstance(node, Mapping):
            copy = replace(node, entries=dict(node.entries), merges=list(node.merges))
        elif isinstance(node, Sequence):
            copy = replace(node, items=list(node.items))
        self._copies[id(copy)] = copy, id(node)
        return copy

    def sources(self, originals: dict[int, Source]) -> dict[int, Source]:
        """Return where nodes come from, with the copies that were made of them."""
        return originals | {
            copy: originals[node] for copy, (_, node) in self._copies.items() if node in originals
        }
