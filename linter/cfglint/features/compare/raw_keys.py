"""The keys of two files of one framework that differ, as they are written: what no fact stands for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfglint.document.tree import ABSENT, Missing, Scalar, dotted
from cfglint.document.tree import Mapping as MappingNode
from cfglint.document.tree import Sequence as SequenceNode
from cfglint.document.view import BudgetError, MappingView
from cfglint.engine.describe import show_value
from cfglint.lang import tree as t
from cfglint.lang.tree import paths_in
from cfglint.lang.types import ANY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from cfglint.document.view import View
    from cfglint.facts import Steps
    from cfglint.lang.symbols import Symbols

_MOST = 20_000  # keys of a file that are looked at; real configs have some hundreds
_DEEPEST = 60
_DEEPEST_VALUE = 5  # of a mapping that a reference leads to; its own keys are compared where they stand
# Whoever compares two files in public does not mean to publish what is under such a key.
_SECRET = re.compile(r"(?i)(^|[_-])(api_?key|secret|password|passwd|token)$")
_HIDDEN = "(hidden)"


@dataclass(frozen=True, slots=True)
class Key:
    """A key with the values of both files as reports print them, None where a file does not have it.

    ``top`` is then the highest key that this file lacks.
    """

    key: str
    a: str | None
    b: str | None
    top: str = ""


def spelled(view: View, path: Steps) -> str:
    """Return the text of the reference that stands at a path, nothing where none does."""
    view.refill()
    node = _node(view, path) if "*" not in path else None
    return node.text if isinstance(node, Scalar) and "${" in node.text else ""


def leaves(view: View) -> dict[Steps, tuple[str, object]]:
    """Return the values of a file by their paths: the text of a reference (else nothing) and the value."""
    found: dict[Steps, tuple[str, object]] = {}
    for path in _paths(view, (), 0):
        found[path] = spelled(view, path), view.get(path)
        if len(found) >= _MOST:
            break
    return found


def _node(view: View, path: Steps) -> object:
    try:
        return view.place(path)[0]
    except (BudgetError, RecursionError):
        return None


def _paths(view: View, path: Steps, depth: int) -> Iterator[Steps]:
    view.refill()
    node = _node(view, path)
    if isinstance(node, MappingNode) and depth < _DEEPEST:
        names = view.keys(path)
        for name in names:
            yield from _paths(view, (*path, name), depth + 1)
        if names or not path:
            return
    if isinstance(node, SequenceNode) and depth < _DEEPEST:
        count = len(node.items)
        inner = [_node(view, (*path, i)) for i in range(count)]
        if any(isinstance(item, (MappingNode, SequenceNode)) for item in inner):
            for i in range(count):
                yield from _paths(view, (*path, i), depth + 1)
            return
    if path:
        yield path


def keys(a: View, b: View, told: Collection[Steps]) -> list[Key]:
    """Return the keys whose values differ, in A's order and then B's, without those of ``told``.

    A reference that both files spell alike is the same, wherever it leads: what differs there is told there.
    """
    left, right = leaves(a), leaves(b)
    found = []
    for path in dict.fromkeys((*left, *right)):
        one, other = left.get(path), right.get(path)
        if one is not None and other is not None and _same(one, other):
            continue
        if covered(path, told):
            continue
        lacking = b if other is None else a if one is None else None
        top = dotted(_top(lacking, path)) if lacking is not None else ""
        found.append(Key(dotted(path), _shown(path, one), _shown(path, other), top))
    return found


def _same(one: tuple[str, object], other: tuple[str, object]) -> bool:
    if one[0] and one[0] == other[0]:
        return True
    (_, a), (_, b) = one, other
    if isinstance(a, Missing) or isinstance(b, Missing):
        return isinstance(a, Missing) and isinstance(b, Missing) and one[0] == other[0]
    return type(a) is type(b) and _plain(a, 0) == _plain(b, 0)


def _plain(value: object, depth: int) -> object:
    """Return a value without the view that it is seen through."""
    if depth >= _DEEPEST_VALUE:
        return None
    if isinstance(value, MappingView):
        return {name: _plain(value.get(name), depth + 1) for name in value.keys()}  # noqa: SIM118
    if isinstance(value, list):
        return [_plain(item, depth + 1) for item in value]
    return (value.why if isinstance(value, Missing) else value), type(value)


def _top(view: View, path: Steps) -> Steps:
    """Return the shortest beginning of a path that a file does not have."""
    for length in range(1, len(path)):
        if not view.has(path[:length]):
            return path[:length]
    return path


def _shown(path: Steps, leaf: tuple[str, object] | None) -> str | None:
    if leaf is None:
        return None
    text, value = leaf
    names = [part for part in path if isinstance(part, str)]
    if names and _SECRET.search(names[-1]) and isinstance(value, str) and value:
        return _HIDDEN
    if isinstance(value, Missing) or value is ABSENT:
        return text or "???"
    return text if text and isinstance(value, MappingView) else show_value(value, ANY)


def covered(path: Steps, told: Collection[Steps]) -> bool:
    """Whether a key, or one that it is part of, is among ``told``; ``*`` stands for any part."""
    return any(
        len(known) <= len(path) and all(k in ("*", p) for k, p in zip(known, path, strict=False))
        for known in told
    )


def read_by(symbols: Symbols, framework: str | None) -> set[Steps]:
    """Return the keys that a framework's bindings read, and those that it is recognised by."""
    found: set[Steps] = set()
    for entry in (e for node in symbols.frameworks.get(framework or "", ()) for e in node.entries):
        if isinstance(entry, (t.Binding, t.Detect)):
            found.update(paths_in(entry.source if isinstance(entry, t.Binding) else entry.condition))
    return found
