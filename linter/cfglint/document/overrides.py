"""Command-line overrides, ``a.b=c``, laid over a document without touching it."""

from __future__ import annotations

from cfglint.document.interpolation import split_key
from cfglint.document.tree import Alias, Entry, Mapping, Scalar, Sequence, effective, walk
from cfglint.document.yaml_tree import parse_yaml
from cfglint.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.layers import Source
    from cfglint.document.tree import Node


class Override:
    """One override, read: ``value`` is None where it deletes the key."""

    __slots__ = ("keys", "origin", "value")

    def __init__(self, keys: list[str], value: Node | None, origin: str) -> None:
        self.keys = keys
        self.value = value
        self.origin = origin


def read_override(text: str) -> Override:
    """Read ``a.b=c``, ``+a.b=c``, ``++a.b=c`` or ``~a.b``; raises UsageError."""
    origin = f"--set {text}"
    deletes = text.startswith("~")
    path, equals, value = text.removeprefix("~").partition("=")
    if not deletes:
        path = path.removeprefix("+").removeprefix("+")
    path = path.strip()
    keys = split_key(path)
    if not path or not all(keys):
        raise UsageError(f"{origin}: no key; write KEY=VALUE, such as actor.optimizer.lr=1e-6")
    if deletes:
        return Override(keys, None, origin)
    if not equals:
        raise UsageError(f"{origin}: no value; write {path}=VALUE, or ~{path} to remove the key")
    documents = parse_yaml(value)
    parsed = documents[0]
    if parsed.error is not None or len(documents) > 1:
        raise UsageError(f"{origin}: the value is not valid YAML; quote it, as in {path}='\"text\"'")
    root = parsed.root if parsed.root is not None else Scalar("", 0, 0)
    return Override(keys, _stamp(root, origin), origin)


def _stamp(root: Node, origin: str) -> Node:
    """Say of every node where it came from; its spans would point into another text."""
    for node in walk(root):
        node.start = node.end = 0
        if isinstance(node, Scalar):
            node.origin = origin
    return root


class Overlay:
    """A document's root with overrides laid over it; only the mappings on the way to them are copied."""

    __slots__ = ("_copied", "_copies", "hung", "origins", "root")

    def __init__(self, root: Node | None, hung: dict[int, Node] | None = None) -> None:
        self.root = root
        self.hung = hung or {}  # by a scalar's id, the root of the file that it names
        self.origins: dict[int, str] = {}
        # By id, and kept: the id of a node that is dropped could come again on a node of the document.
        self._copies: dict[int, Node] = {}
        self._copied: dict[int, int] = {}

    def apply(self, override: Override) -> None:
        """Set or delete one key."""
        holder = self.root = self._copy(self.root)
        *parents, last = override.keys
        for depth, key in enumerate(parents):
            child = self._child(holder, key)
            if override.value is None and not isinstance(child, (Mapping, Sequence)):
                return
            fresh = self._copy(child)
            if not isinstance(child, (Mapping, Sequence)):
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
            index = _index(holder, last)
            if index is not None:
                del holder.items[index]

    def _child(self, holder: Mapping | Sequence, key: str) -> Node | None:
        if isinstance(holder, Sequence):
            index = _index(holder, key)
            child = None if index is None else holder.items[index]
        else:
            entry = effective(holder).get(key)
            child = None if entry is None else entry.value
        child = child.target if isinstance(child, Alias) else child
        return self.hung.get(id(child), child)

    def _put(self, holder: Mapping | Sequence, key: str, value: Node, path: str, override: Override) -> None:
        if isinstance(holder, Sequence):
            index = _index(holder, key)
            if index is None:
                raise UsageError(
                    f"{override.origin}: the list at {path.rpartition('.')[0]} has {len(holder.items)} items,"
                    f" and {key!r} is none of their numbers"
                )
            holder.items[index] = value
            return
        old = holder.entries.get(key)
        if old is not None:
            holder.entries[key] = Entry(old.key, value)
        else:
            holder.entries[key] = Entry(Scalar(key, 0, 0, '"', origin=override.origin), value)

    def _copy(self, node: Node | None) -> Mapping | Sequence:
        """Return a mapping or list that may be changed; what is neither gives way to an empty mapping."""
        if isinstance(node, (Mapping, Sequence)) and id(node) in self._copies:
            return node
        copy: Mapping | Sequence
        if isinstance(node, Mapping):
            copy = Mapping(node.start, flow=node.flow, tag=node.tag, anchor=node.anchor)
            copy.entries = dict(node.entries)
            copy.merges = list(node.merges)
            copy.end = node.end
        elif isinstance(node, Sequence):
            copy = Sequence(node.start, flow=node.flow, tag=node.tag, anchor=node.anchor)
            copy.items = list(node.items)
            copy.end = node.end
        else:
            copy = Mapping(0, flow=True)
        self._copies[id(copy)] = copy
        self._copied[id(copy)] = id(node)
        return copy

    def sources(self, known: dict[int, Source]) -> dict[int, Source]:
        """Return where nodes come from, with the copies that were made of them."""
        return known | {copy: known[node] for copy, node in self._copied.items() if node in known}


def _index(sequence: Sequence, key: str) -> int | None:
    digits = key.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 9:
        return None
    index = int(key)
    if index < 0:
        index += len(sequence.items)
    return index if 0 <= index < len(sequence.items) else None
