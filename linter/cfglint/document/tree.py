"""The tree of a config file: every node keeps the span of its own spelling.

Plain classes with slots, not dataclasses: a file has hundreds of nodes, and importing dataclasses alone
costs a fifth of a clean run.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


class Scalar:
    """A scalar as it was spelled.

    ``text`` is the decoded value (quotes and escapes gone), ``[start, end)`` the span of the value itself,
    without anchor, tag or comment; a value left empty (``key:``) has ``start == end``.
    ``style`` is ``""`` for plain, else one of ``' " | >``. ``origin`` is None for text of the file, else
    says where the value came from (``--set sglang.mem_fraction_static=0.5``).
    """

    __slots__ = ("anchor", "end", "origin", "start", "style", "tag", "text")

    def __init__(
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


class Built(Scalar):
    """A scalar whose text is put together from parts, as a shell does it; ``reads`` are their definitions.

    ``cut`` is where the text begins that goes with the scalar when it is taken away (a flag without value),
    -1 where it cannot be.
    """

    __slots__ = ("cut", "reads")

    def __init__(
        self, text: str, start: int, end: int, *, reads: tuple[Scalar, ...] = (), cut: int = -1
    ) -> None:
        super().__init__(text, start, end)
        self.reads = reads
        self.cut = cut


class Sought(Built):
    """The config of a Hydra application, which need not be here; ``places`` are where it would be, in order.

    ``choices`` are the overrides that may choose a group: key, and name (None where it is not known).
    """

    __slots__ = ("choices", "places")

    def __init__(
        self,
        text: str,
        start: int,
        end: int,
        places: tuple[str, ...],
        choices: tuple[tuple[str, str | None], ...],
    ) -> None:
        super().__init__(text, start, end)
        self.places = places
        self.choices = choices


class Unread(Scalar):
    """A scalar whose value the file alone does not tell; ``text`` is how it is spelled, ``why`` says why."""

    __slots__ = ("needs", "why")

    def __init__(self, text: str, start: int, end: int, *, why: str, needs: tuple[str, ...] = ()) -> None:
        super().__init__(text, start, end, "", "!unread")
        self.why = why
        self.needs = needs


class Entry:
    """One ``key: value`` of a mapping."""

    __slots__ = ("key", "value")

    def __init__(self, key: Scalar, value: Node) -> None:
        self.key = key
        self.value = value


class Mapping:
    """A mapping. ``entries`` is keyed by the key's text, in the file's order; of duplicates the last wins.

    ``merges`` holds what ``<<`` names, in the order of precedence. ``flow`` is true for ``{…}``.
    """

    __slots__ = ("anchor", "end", "entries", "flow", "merges", "start", "tag")

    def __init__(self, start: int, *, flow: bool, tag: str | None = None, anchor: str | None = None) -> None:
        self.entries: dict[str, Entry] = {}
        self.merges: list[Node] = []
        self.start = start
        self.end = start
        self.flow = flow
        self.tag = tag
        self.anchor = anchor


class Sequence:
    """A sequence; ``flow`` is true for ``[…]``."""

    __slots__ = ("anchor", "end", "flow", "items", "start", "tag")

    def __init__(self, start: int, *, flow: bool, tag: str | None = None, anchor: str | None = None) -> None:
        self.items: list[Node] = []
        self.start = start
        self.end = start
        self.flow = flow
        self.tag = tag
        self.anchor = anchor


class Alias:
    """``*name``: stands for ``target``, and has a span of its own."""

    __slots__ = ("end", "name", "start", "target")

    def __init__(self, name: str, target: Node, start: int, end: int) -> None:
        self.name = name
        self.target = target
        self.start = start
        self.end = end


if TYPE_CHECKING:
    Node: TypeAlias = Scalar | Mapping | Sequence | Alias


def walk(root: Node) -> list[Node]:
    """Return all nodes below ``root``, itself first; aliases are listed, not entered."""
    found: list[Node] = []
    waiting: list[Node] = [root]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if isinstance(node, Mapping):
            waiting.extend(entry.value for entry in node.entries.values())
            waiting.extend(node.merges)
        elif isinstance(node, Sequence):
            waiting.extend(node.items)
    return found


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
