"""The sections of a document whose top-level mappings are jobs of their own, each as a document."""

from __future__ import annotations

from cfglint.document.document import Document
from cfglint.document.tree import Alias, Mapping, walk
from cfglint.document.yaml_tree import Parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.tree import Node


def sections(whole: Document) -> list[Document]:
    """Return the mappings at the top, in their order; none where something else stands there, too."""
    root = whole.root
    if not isinstance(root, Mapping) or root.merges or not root.entries:
        return []
    nodes: list[tuple[str, Node]] = []
    for name, entry in root.entries.items():
        node = entry.value
        if not isinstance(node.target if isinstance(node, Alias) else node, Mapping):
            return []
        nodes.append((name, node))
    found = [_section(whole, name, node) for name, node in nodes]
    _lend(found, nodes)
    return found


def _section(whole: Document, name: str, node: Node) -> Document:
    assert isinstance(whole.root, Mapping)
    key = whole.root.entries[name].key
    parsed = Parsed(node.start)
    parsed.end = node.end
    parsed.root = node.target if isinstance(node, Alias) else node
    parsed.duplicates = [pair for pair in whole.duplicates if node.start <= pair[0].start < node.end]
    last = key  # of a name that stands twice, the later section is the one that counts
    for later, first in reversed(whole.duplicates):
        if later is last:
            parsed.duplicates.append((later, first))
            last = first
    part = Document(whole.file, whole.index, parsed)
    part.key = key
    part.whole = whole
    return part


def _lend(found: list[Document], nodes: list[tuple[str, Node]]) -> None:
    """Note for each section what others read of it, through an alias or a merge."""
    read: list[tuple[int, tuple[int, int]]] = []
    for number, (_, node) in enumerate(nodes):
        targets = [inner.target for inner in walk(node) if isinstance(inner, Alias)]
        read += [(number, (target.start, target.end)) for target in targets]
    for number, part in enumerate(found):
        part.lent = tuple(dict.fromkeys(span for reader, span in read if reader != number))
