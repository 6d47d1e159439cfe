"""One config as it is compared: its facts with where they come from, and its keys as they are written."""

from __future__ import annotations

import re

from cfglint.document.tree import ABSENT, Missing, Scalar, dotted
from cfglint.document.tree import Mapping as MappingNode
from cfglint.document.tree import Sequence as SequenceNode
from cfglint.document.view import BudgetError, MappingView, View
from cfglint.engine.describe import Origin, Origins, show_value
from cfglint.lang import tree as t
from cfglint.lang.tree import paths_in
from cfglint.lang.types import ANY, Type
from cfglint.lang.values import Interval, Open, Unknown, needs_of, parts
from cfglint.record import Record, Value
from cfglint.text import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from cfglint.engine.run import Run
    from cfglint.engine.subject import Subject
    from cfglint.facts import Steps, Values
    from cfglint.hardware.target import Target
    from cfglint.lang.symbols import Symbols

_MOST = 20_000  # keys of a file that are looked at; real configs have some hundreds
_DEEPEST = 60
_DEEPEST_VALUE = 5  # of a mapping that a reference leads to; its own keys are compared where they stand
# Whoever compares two files in public does not mean to publish what is under such a key.
_SECRET = re.compile(r"(?i)(^|[_-])(api_?key|secret|password|passwd|token)$")
_HIDDEN = "(hidden)"
_TOGETHER = 3  # keys of a section that only one file has, from which on the section is told instead
NOT_SET = "-"


def told(value: str | None) -> str:
    """Return a value as reports print it, a dash where a config does not give it."""
    return NOT_SET if value is None else shown(value)


# ── facts ───────────────────────────────────────────────────────────────────────────────────────────────
class FactSide(Value):
    """A fact in one of the configs: ``value`` as reports print it, None where the config does not give it.

    ``kind`` is file, default, fixed (by the framework), derived, target, registry or missing; ``key`` and
    ``line`` say where in the file, ``source`` says it in words.
    """

    value: str | None
    kind: str
    source: str
    key: str | None = None
    line: int | None = None

    @property
    def shown(self) -> str:
        """The value, a dash where the config does not give the fact."""
        return told(self.value)

    @property
    def place(self) -> str:
        """Where the value comes from, with its key."""
        if self.kind == "missing":
            return "not set"
        return f"{shown(self.key)} {self.at}" if self.key and self.kind == "file" else shown(self.source)

    @property
    def at(self) -> str:
        """Where the value comes from, where its key is told."""
        return shown(self.source) or ("this file" if self.kind == "file" else "")


class Reading(Record):
    """One config's facts with their origins."""

    subject: Subject
    symbols: Symbols
    values: Values
    origins: Origins

    def fact(self, name: str, kind: Type) -> FactSide:
        """Return a fact as this config gives it."""
        if is_unknown(self.values[name]):
            return FactSide(None, "missing", "not set")
        origin, view = self.origins.of(name), self.subject.view
        text, binding = show_value(self.values[name], kind), origin.binding
        written = [path for path in origin.paths if "*" not in path and view.has(path)]
        if origin.kind == "file":
            return self._from_file(text, origin, written[0] if written else None)
        if origin.kind == "default" and binding is not None:
            key = dotted(origin.paths[0]) if origin.paths else None
            return FactSide(text, self._default_kind(binding.default), origin.source, key)
        if origin.kind == "derived" and not origin.uses and not written:
            return FactSide(text, "fixed", f"set by {self.subject.framework or 'the rules'}")
        return FactSide(text, origin.kind, origin.source)

    def _from_file(self, text: str, origin: Origin, path: Steps | None) -> FactSide:
        if path is None:
            return FactSide(text, "file", origin.source)
        kind, source = "file", origin.source
        null = origin.binding.null if origin.binding is not None else None
        if null is not None and self.subject.view.get(path) is None:
            kind = self._default_kind(null)
            source = f"null, {source}" if kind == "default" else source
        return FactSide(text, kind, source, dotted(path) or None, self._line(path))

    def _default_kind(self, expression: t.Expr | None) -> str:
        """Return whether a default, or what null stands for, is what other facts come to."""
        return "derived" if self.origins.names_in(expression) else "default"

    def _line(self, path: Steps) -> int | None:
        trace = self.origins.trace(path)
        if trace is None or not trace.present or any(step.kind == "override" for step in trace.steps):
            return None
        return self.subject.document.file.lines.position(trace.own_span[0])[0]

    def reference(self, name: str) -> str:
        """Return the text of the reference (``${…}``) that a fact's key is, nothing where it is not one."""
        path = next(iter(self.read(name)), None)
        return reference(self.subject.view, path) if path is not None else ""

    def read(self, name: str) -> tuple[Steps, ...]:
        """Return the keys that a fact's value is read from."""
        return self.origins.of(name).paths


def reading(run: Run, subject: Subject, target: Target | None) -> Reading:
    """Return the facts, keys and findings of one config on one target."""
    judged = run.on(target, subject)
    return Reading(subject, run.finder.symbols, judged.values, run.finder.origins(judged))


def is_unknown(value: object) -> bool:
    """Whether a value rests on names that are missing."""
    return isinstance(value, (Interval, Open, Unknown)) and bool(needs_of(value))


def alike(a: object, b: object) -> bool:
    """Whether two values are worth the same; what is not set differs from nothing that is not set."""
    if is_unknown(a) or is_unknown(b):
        return is_unknown(a) and is_unknown(b)
    if isinstance(a, Interval) or isinstance(b, Interval):
        numbers = isinstance(a, (int, float, Interval)) and isinstance(b, (int, float, Interval))
        return numbers and parts(a)[:2] == parts(b)[:2]  # type: ignore[arg-type]
    return a == b


# ── keys ────────────────────────────────────────────────────────────────────────────────────────────────
class Key(Value):
    """A key with the values of both files as reports print them, None where a file does not have it.

    ``top`` is then the highest key that this file lacks.
    """

    key: str
    a: str | None
    b: str | None
    top: str = ""


class Leaf(Value):
    """What is at a path: the text of a reference (else nothing) and the value."""

    reference: str
    value: object


def reference(view: View, path: Steps) -> str:
    """Return the text of the reference that is at a path, nothing where none does."""
    view.refill()
    node = _node(view, path) if "*" not in path else None
    return node.text if isinstance(node, Scalar) and "${" in node.text else ""


def leaves(view: View) -> dict[Steps, Leaf]:
    """Return the values of a file by their paths."""
    by_path: dict[Steps, Leaf] = {}
    for path in _paths(view, (), 0):
        by_path[path] = Leaf(reference(view, path), view.get(path))
        if len(by_path) >= _MOST:
            break
    return by_path


def _node(view: View, path: Steps) -> object:
    try:
        return view.place(path)[0]
    except (BudgetError, RecursionError):
        return None


def _paths(view: View, path: Steps, depth: int) -> Iterator[Steps]:
    view.refill()
    node = _node(view, path)
    below: list[Steps] = []
    if isinstance(node, MappingNode) and depth < _DEEPEST:
        below = [(*path, name) for name in view.keys(path)]
    elif isinstance(node, SequenceNode) and depth < _DEEPEST:
        items = [(*path, i) for i in range(len(node.items))]
        nested = any(isinstance(_node(view, item), (MappingNode, SequenceNode)) for item in items)
        below = items if nested else []
    for inner in below:
        yield from _paths(view, inner, depth + 1)
    if path and not below:
        yield path


def keys(a: View, b: View, covering: Collection[Steps]) -> list[Key]:
    """Return the keys whose values differ, in A's order and then B's, without those of ``covering``.

    A reference that both files spell alike is the same, wherever it leads: what differs there is told there.
    """
    in_a, in_b = leaves(a), leaves(b)
    differing = []
    for path in dict.fromkeys((*in_a, *in_b)):
        left, right = in_a.get(path), in_b.get(path)
        if covered(path, covering) or (left is not None and right is not None and _same(left, right)):
            continue
        lacking = b if right is None else a if left is None else None
        top = dotted(_top(lacking, path)) if lacking is not None else ""
        differing.append(Key(dotted(path), _shown(path, left), _shown(path, right), top))
    return differing


def _same(a: Leaf, b: Leaf) -> bool:
    if a.reference and a.reference == b.reference:
        return True
    if isinstance(a.value, Missing) and isinstance(b.value, Missing):
        return a.reference == b.reference
    return type(a.value) is type(b.value) and _plain(a.value, 0) == _plain(b.value, 0)


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
    beginnings = (path[:length] for length in range(1, len(path)))
    return next((beginning for beginning in beginnings if not view.has(beginning)), path)


def _shown(path: Steps, leaf: Leaf | None) -> str | None:
    if leaf is None:
        return None
    text, value = leaf.reference, leaf.value
    names = [part for part in path if isinstance(part, str)]
    if names and _SECRET.search(names[-1]) and isinstance(value, str) and value:
        return _HIDDEN
    if isinstance(value, Missing) or value is ABSENT:
        return text or "???"
    return text if text and isinstance(value, MappingView) else show_value(value, ANY)


def listed(differing: Sequence[Key], *, whole: bool) -> list[tuple[str, str, str]]:
    """Return keys with both values as reports print them.

    A section that only one file has is one line where it has several keys, unless ``whole`` asks for all.
    """
    sections: dict[str, list[Key]] = {}
    for key in differing:
        sections.setdefault(key.top or key.key, []).append(key)
    lines: list[tuple[str, str | None, str | None]] = []
    for top, members in sections.items():
        if len(members) >= _TOGETHER and not whole:
            number = f"{len(members):,} keys"
            lines.append((top, None, number) if members[0].a is None else (top, number, None))
        else:
            lines += [(key.key, key.a, key.b) for key in members]
    return [(shown(name), told(a), told(b)) for name, a, b in lines]


def covered(path: Steps, covering: Collection[Steps]) -> bool:
    """Whether a key, or one that it is part of, is among ``covering``; ``*`` stands for any part."""
    return any(
        len(cover) <= len(path) and all(c in ("*", p) for c, p in zip(cover, path, strict=False))
        for cover in covering
    )


def read_by(symbols: Symbols, framework: str | None) -> set[Steps]:
    """Return the keys that a framework's bindings read, and those that it is recognised by."""
    read: set[Steps] = set()
    for entry in (entry for node in symbols.frameworks.get(framework or "", ()) for entry in node.entries):
        if isinstance(entry, t.Binding):
            read.update(paths_in(entry.source))
        elif isinstance(entry, t.Detect):
            read.update(paths_in(entry.condition))
    return read
