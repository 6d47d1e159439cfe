"""A document that other files are part of: laid beneath it (its own keys win), or hung at a key.

Every node keeps the span of its own spelling in its own file: `Layers.sources` says of a foreign node
which file that is, and by which key it came in.
"""

from __future__ import annotations

from cfglint.document.tree import Alias, Entry, Mapping, Scalar, Sequence, effective

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.document import File
    from cfglint.document.places import Path
    from cfglint.document.tree import Node

MAX_FILES = 100


class Source:
    """How a file came in: ``node`` names it, under ``key``, in ``by``'s file (None: the config's own).

    ``hung`` tells a file that hangs at the key from one that lies beneath, whose keys the config overrides.
    """

    __slots__ = ("by", "file", "hung", "key", "node")

    def __init__(
        self, file: File, node: Scalar, key: str, by: Source | None = None, *, hung: bool = False
    ) -> None:
        self.file = file
        self.node = node
        self.key = key
        self.by = by
        self.hung = hung

    @property
    def first(self) -> Source:
        """The step that leaves the config itself."""
        return self if self.by is None else self.by.first


class Trouble:
    """A file that was named and does not come in; ``kind`` is ``broken``, ``cycle`` or ``missing``."""

    __slots__ = ("by", "key", "kind", "name", "node", "note")

    def __init__(self, kind: str, node: Scalar, key: str, note: str, by: Source | None = None) -> None:
        self.kind = kind
        self.node = node
        self.name = node.text
        self.key = key
        self.note = note
        self.by = by


class Layers:
    """A document's tree with that of other files; the trees of the files themselves stay as they are.

    ``unread`` names the files that are not here, each by the path below which it would put its keys: what is
    absent there is not known. ``hung`` are the roots of files that hang at a scalar, by its id.
    """

    __slots__ = ("_kept", "files", "hung", "root", "sources", "troubles", "unread")

    def __init__(self, root: Node | None) -> None:
        self.root = root
        self.files: list[Source] = []
        self.sources: dict[int, Source] = {}
        self.hung: dict[int, Node] = {}
        self.troubles: list[Trouble] = []
        self.unread: dict[Path, str] = {}
        self._kept: list[Node] = []  # an id in `sources` may not come again on another node

    def adopt(self, root: Node, source: Source) -> None:
        """Note of a file's nodes where they come from."""
        sources = self.sources
        waiting: list[Node] = [root]
        while waiting:
            node = waiting.pop()
            if id(node) in sources:
                continue
            sources[id(node)] = source
            if isinstance(node, Mapping):
                for entry in node.entries.values():
                    sources[id(entry.key)] = source
                    waiting.append(entry.value)
                waiting.extend(node.merges)
            elif isinstance(node, Sequence):
                waiting.extend(node.items)
        self._kept.append(root)

    def lay(self, upper: Node | None, lower: Node | None) -> Node | None:
        """Return one tree of two: mappings are joined, and else the upper one's value holds."""
        if upper is None:
            return lower
        above, below = _target(upper), _target(lower)
        if isinstance(above, Scalar) and above.text == "???" and below is not None:
            return lower  # to OmegaConf a value that is still to be set, which sets nothing
        if not isinstance(above, Mapping) or not isinstance(below, Mapping):
            return upper
        joined = self.like(above)
        joined.entries = dict(effective(below))
        for name, entry in effective(above).items():
            old = joined.entries.get(name)
            joined.entries[name] = (
                entry if old is None else Entry(entry.key, self._laid(entry.value, old.value))
            )
        return joined

    def like(self, node: Mapping | None) -> Mapping:
        """Return an empty mapping in the place of ``node``, of the same file."""
        if node is None:
            return Mapping(0, flow=True)
        fresh = Mapping(node.start, flow=node.flow, tag=node.tag, anchor=node.anchor)
        fresh.end = node.end
        source = self.sources.get(id(node))
        if source is not None:
            self.sources[id(fresh)] = source
        self._kept.append(fresh)
        return fresh

    def own(self, holder: Mapping, source: Source | None) -> None:
        """Note that a mapping made for a package stands in the file (None: the config's) that asks for it."""
        self._kept.append(holder)
        if source is not None:
            self.sources[id(holder)] = source
            for entry in holder.entries.values():
                self.sources[id(entry.key)] = source

    def _laid(self, upper: Node, lower: Node) -> Node:
        found = self.lay(upper, lower)
        assert found is not None
        return found


def _target(node: Node | None) -> Node | None:
    return node.target if isinstance(node, Alias) else node


def enter(layers: Layers, source: Source) -> Node | None:
    """Take a file in and return its tree; None, and a trouble, where it does not parse."""
    document = source.file.documents[0]
    layers.files.append(source)
    if document.error is not None:
        at = source.file.lines.position(document.error.offset or 0)
        note = f"{source.file.path}:{at[0]}:{at[1]}: {document.error}"
        layers.troubles.append(Trouble("broken", source.node, source.key, note, source.by))
        return None
    root = document.root if document.root is not None else Mapping(0, flow=True)
    layers.adopt(root, source)
    return root
