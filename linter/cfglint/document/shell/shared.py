"""What the commands of a script have in common: the GPUs, and the definitions that several of them read."""

from __future__ import annotations

from collections import Counter

from cfglint.document.shell.processes import whole
from cfglint.document.tree import (
    Alias,
    Composite,
    Document,
    Entry,
    Mapping,
    Node,
    Scalar,
    Sequence,
    Several,
    target,
    walk,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeGuard


def part(launches: list[Document]) -> None:
    """Tell commands of the GPUs that they share, and which definitions several of them read."""
    roots = [launch.root for launch in launches if isinstance(launch.root, Mapping)]
    heads = [head for root in roots if isinstance(head := root.entries["launch"].value, Mapping)]
    _count_together([] if any(launch.repeated for launch in launches) else heads)
    if len(roots) < 2:
        return
    for head in heads:
        _keep_visible(head)
    _keep_lists(heads)
    readers: dict[tuple[int, int], int] = {}
    for root in roots:
        for key in {(n.start, n.end) for n in walk(root) if type(n) is Scalar and n.end > n.start}:
            readers[key] = readers.get(key, 0) + 1
    shared = {key for key, number in readers.items() if number > 1}
    sums = Counter(at for root in roots for at in {node.ending for node in walk(root) if _is_sum(node)})
    for root in roots:
        _close(root, shared)
        for node in walk(root):
            if _is_sum(node) and sums[node.ending] > 1:  # of a function, or a loop
                node.ending, node.product = (-1, -1), False


def _is_sum(node: Node) -> TypeGuard[Composite]:
    """Whether a command says a number by an expansion that an edit can replace."""
    return isinstance(node, Composite) and node.ending[0] >= 0 and node.text.isdecimal()


def _count_together(heads: list[Mapping]) -> None:
    """Add up what all start, beside each other or not; nothing where one is unknown."""
    started = [head.entries.get("processes") for head in heads]
    counts = [whole(entry.value) for entry in started if entry is not None]
    known = [count for count in counts if count is not None]
    if len(known) < len(heads):
        return
    for head, entry in zip(heads, started, strict=True):
        assert entry is not None
        place = entry.value
        head.entries["together"] = Entry(entry.key, Composite(str(sum(known)), place.start, place.end))


def _keep_visible(head: Mapping) -> None:
    """Leave the list of GPUs as it is, where other commands may have the rest, or the same list."""
    for key in ("visible_gpus", "visible_least"):
        entry = head.entries.get(key)
        if entry is not None and isinstance(entry.value, Composite):
            value = entry.value
            head.entries[key] = Entry(entry.key, Composite(value.text, value.start, value.end))


def _keep_lists(heads: list[Mapping]) -> None:
    """Leave a variable's list of GPUs as it is where several commands are told it."""
    entries = [entry for head in heads if (entry := head.entries.get("processes")) is not None]
    lists = [node for entry in entries if isinstance(node := target(entry.value), Composite) and node.counts]
    places = Counter((node.start, node.end) for node in lists)
    for node in lists:
        node.counts = places[node.start, node.end] == 1


def _close(root: Mapping, shared: set[tuple[int, int]]) -> None:
    closed: dict[int, Several] = {}
    for holder in walk(root):
        if isinstance(holder, Mapping):
            for entry in holder.entries.values():
                value = entry.value
                if type(value) is Scalar and (value.start, value.end) in shared:
                    entry.value = closed[id(value)] = Several(value.text, value.start, value.end)
        elif isinstance(holder, Sequence):
            holder.items = [
                Several(item.text, item.start, item.end)
                if type(item) is Scalar and (item.start, item.end) in shared
                else item
                for item in holder.items
            ]
    for node in walk(root):
        if isinstance(node, Alias) and id(node.target) in closed:
            node.target = closed[id(node.target)]
