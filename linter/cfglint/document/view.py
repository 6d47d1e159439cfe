"""The values of a document as the loader sees them: aliases, merges, ``${…}`` and overrides applied.

A place is a node and the path at which it is defined, since relative interpolation starts from there.
"""

from __future__ import annotations

from cfglint.document.evaluate import evaluate
from cfglint.document.interpolation import MAX_DEPTH
from cfglint.document.overrides import Overlay, read_override
from cfglint.document.places import (
    ABSENT,
    ALL,
    DEEPEST_PATH,
    BudgetError,
    Record,
    Value,
    dotted,
    index_of,
    mandatory,
    over_budget,
)
from cfglint.document.scalars import JSON, TOML, Missing, resolve
from cfglint.document.tree import Alias, Mapping, Scalar, Sequence, effective

TYPE_CHECKING = False
if TYPE_CHECKING:
    import collections.abc
    from typing import Any

    from cfglint.document.defects import Defects
    from cfglint.document.document import Document
    from cfglint.document.layers import Layers, Source
    from cfglint.document.places import All, Path, Place
    from cfglint.document.scalars import Dialect
    from cfglint.document.trace import Trace
    from cfglint.document.tree import Entry, Node

__all__ = ["ABSENT", "ALL", "Missing", "Record", "View", "dotted"]

# What following aliases and references may cost, so that ten lines cannot mean a billion values: in one
# call, in all, and in a call when that is spent.
_CALL_BUDGET = 20_000
_WHOLE_BUDGET = 300_000
_LEAST_BUDGET = 1_000


class View:
    """One document under one dialect, with overrides and an environment (None: no variable is known).

    ``layers`` are the other files that it is composed of; ``beneath`` is how the YAML ones of them are read,
    where the document itself is of another form. ``resolvers`` are those that the framework registers.
    """

    __slots__ = (
        "_active",
        "_defects",
        "_followed",
        "_given",
        "_left",
        "_merged",
        "_present",
        "_values",
        "_whole",
        "beneath",
        "cyclic",
        "dialect",
        "document",
        "environ",
        "hung",
        "interpolates",
        "layers",
        "origins",
        "resolvers",
        "root",
        "sources",
        "unread",
        "uses",
    )

    def __init__(
        self,
        document: Document,
        dialect: Dialect,
        overrides: collections.abc.Sequence[str] = (),
        environ: collections.abc.Mapping[str, str] | None = None,
        layers: Layers | None = None,
        beneath: Dialect | None = None,
        resolvers: collections.abc.Sequence[str] = (),
    ) -> None:
        self.document = document
        self.dialect = dialect
        self.beneath = beneath or dialect
        self.resolvers = resolvers
        self.environ = environ
        self.root = document.root
        self.origins: dict[int, str] = {}
        self.layers = layers
        self.interpolates = dialect.interpolates
        self.sources: dict[int, Source] | None = None
        self.hung: dict[int, Node] | None = None
        self.unread: dict[Path, str] | None = None
        if layers is not None:
            self.root = layers.root
            self.sources = layers.sources
            self.hung = layers.hung or None
            self.unread = layers.unread or None
            self.interpolates = self.interpolates or self.beneath.interpolates
        if overrides:
            overlay = Overlay(self.root, self.hung)
            for text in overrides:
                overlay.apply(read_override(text))
            self.root = overlay.root
            self.origins = overlay.origins
            if self.sources is not None:
                self.sources = overlay.sources(self.sources)
        self.cyclic: set[Path] = set()
        self._values: dict[Path, object] = {}
        self._present: dict[Path, bool] = {}
        self._followed: dict[Path, Place] = {}
        self._merged: dict[int, dict[str, Entry]] = {}
        self._active: list[Path] = []
        self._given = self._left = _CALL_BUDGET
        self._whole = _WHOLE_BUDGET
        self._defects: Defects | None = None
        # Filled by `trace`: the paths that read a definition, by its id.
        self.uses: dict[int, list[Path]] | None = None

    def get(self, path: Path) -> object:
        """Return the value at ``path``: native, a list, a Record, ABSENT or Missing."""
        try:
            return self._values[path]
        except KeyError:
            pass
        self.refill()
        try:
            value = self._get(path)
        except (BudgetError, RecursionError):
            value = over_budget()
        self._values[path] = value
        return value

    def refill(self) -> bool:
        """Begin a call: book what the last one used, give this its own budget; false where all is used up."""
        self._whole -= self._given - max(self._left, 0)
        self._given = self._left = _CALL_BUDGET if self._whole > 0 else _LEAST_BUDGET
        return self._whole > 0

    def has(self, path: Path) -> bool:
        """Tell whether something stands at ``path``, be it null or of unknown value."""
        known = self._present.get(path)
        if known is None:
            self.refill()
            try:
                known = bool(self.get(path)) if ALL in path else self.place(path)[0] is not None
            except (BudgetError, RecursionError):
                known = True
            self._present[path] = known
        return known

    def awaits(self, path: Path) -> str | None:
        """Return the file that is not here and may have the key at ``path``, which no other file has."""
        if self.unread is None or ALL in path:
            return None
        self.refill()
        try:
            node, _ = self.place(path)
        except (BudgetError, RecursionError):
            return None
        absent = isinstance(node, Value) and isinstance(node.value, Missing) and node.value.kind == "unread"
        return node.value.needs[0] if absent else None  # type: ignore[union-attr]

    def hangs(self, path: Path) -> tuple[Source, Path] | None:
        """Return the file that hangs on the way to ``path``, and the path in it; None where none does."""
        for depth in range(1, len(path)) if self.hung is not None else ():
            node, _ = self.place(path[:depth])
            held = self.hung.get(id(node)) if self.hung is not None else None
            source = None if held is None else self.source(held)
            if source is not None:
                return source, path[depth:]
        return None

    def keys(self, path: Path) -> list[str]:
        """Return the keys of the mapping at ``path``; none where there is no mapping."""
        self.refill()
        try:
            node, _ = self.follow(*self.place(path))
        except (BudgetError, RecursionError):
            return []
        if self.hung is not None:
            node = self.hung.get(id(node), node)
        return list(self.entries(node)) if isinstance(node, Mapping) else []

    def trace(self, path: Path) -> Trace:
        """Return where the value at ``path`` is defined, and the way there."""
        from cfglint.document.trace import trace

        self.refill()
        return trace(self, path)

    def references(self, node: Node) -> tuple[str, ...]:
        """Return the other paths whose value comes from ``node``'s definition."""
        from cfglint.document.trace import references

        self.refill()
        return references(self, node)

    def defects(self) -> Defects:
        """Return what is wrong with the document as such; CFG rules report it."""
        if self._defects is None:
            from cfglint.document.defects import find_defects

            self._defects = find_defects(self)
        return self._defects

    # --- places -------------------------------------------------------------------------------------------

    def entries(self, mapping: Mapping) -> dict[str, Entry]:
        """Return the entries of ``mapping`` with what it merges."""
        if not mapping.merges:
            return mapping.entries
        known = self._merged.get(id(mapping))
        if known is None:
            known = self._merged[id(mapping)] = effective(mapping)
            self.spend(len(known))
        return known

    def spend(self, cost: int) -> None:
        """Take ``cost`` from the budget; raises BudgetError where nothing is left."""
        self._left -= cost
        if self._left < 0:
            raise BudgetError

    def place(self, path: Path) -> Place:
        """Return the node at ``path`` and its own path; a reference at the very end is not followed.

        The node is None where nothing is there, a Value with a Missing where that is not known.
        """
        node: Any = self.root
        at: Path = ()
        for part in path:
            kind = node.__class__
            if kind is Scalar:
                node, at = self.follow(node, at)
                kind = node.__class__
            if kind is Mapping:
                entries = node.entries if not node.merges else self.entries(node)
                entry = entries.get(part)  # type: ignore[arg-type] # a number finds nothing
                if entry is None:
                    return None if self.unread is None else self._elsewhere((*at, part)), at
                node = entry.value
                at = (*at, part)
            elif kind is Sequence:
                index = part if part.__class__ is int else index_of(part)
                count = len(node.items)
                if index is None or not -count <= index < count:
                    return None, at
                index %= count
                node = node.items[index]
                at = (*at, index)
            elif kind is Value:
                node, at = self._inside(node, part, at)
                if node is None or (node.__class__ is Value and isinstance(node.value, Missing)):
                    return node, at
            elif kind is Scalar and node.text == "???" and self.interpolates:
                return Value(mandatory(at)), at
            elif self.hung is not None and id(node) in self.hung:
                held = self.hung[id(node)]
                if not isinstance(held, Mapping) or part not in self.entries(held):
                    return None, at
                node = self.entries(held)[part].value
                at = (*at, part)
            else:
                return None, at
            if node.__class__ is Alias:
                node = node.target
        return node, at

    def source(self, node: object) -> Source | None:
        """Return how the file that ``node`` stands in came in; None for the document's own."""
        return None if self.sources is None else self.sources.get(id(node))

    def dialect_of(self, node: Node) -> Dialect:
        """Return how the file that ``node`` stands in is read."""
        source = self.source(node)
        if source is None:
            return self.dialect
        form = source.file.format
        return JSON if form == "json" else TOML if form == "toml" else self.beneath

    def _elsewhere(self, path: Path) -> Value | None:
        """Return what an absent key is where a file that may define it is not here."""
        for prefix, name in (self.unread or {}).items():
            shorter = min(len(prefix), len(path))
            if prefix[:shorter] == path[:shorter]:
                return Value(Missing((name,), f"{name}, which may say it, is not here", "unread"))
        return None

    def _inside(self, value: Value, part: str | int | All, at: Path) -> Place:
        """Step into a computed list; its mappings are those of the file."""
        found = value.value
        if isinstance(found, Missing):
            return value, at
        if isinstance(found, Record) and isinstance(part, str):
            return self.place((*found.path, part))
        index = part if isinstance(part, int) else index_of(part)
        if isinstance(found, list) and index is not None and -len(found) <= index < len(found):
            return Value(found[index]), (*at, index)
        return None, at

    def follow(self, node: Node | Value | None, at: Path) -> Place:
        """Return where a reference leads in the end; any other place leads to itself."""
        if node.__class__ is not Scalar or not self.interpolates or "${" not in node.text:
            return node, at
        known = self._followed.get(at)
        if known is not None:
            return known
        active = self._active
        if at in active:
            circle = [*active[active.index(at) :], at]
            self.cyclic.update(circle)
            names = " -> ".join(dotted(p) for p in circle)
            return Value(Missing((), f"interpolation cycle {names}", "cycle")), at
        if len(active) >= MAX_DEPTH:
            return Value(Missing((), f"more than {MAX_DEPTH} references in a row", "budget")), at
        self.spend(1)
        active.append(at)
        try:
            place = evaluate(self, node, at)
        finally:
            active.pop()
        self._followed[at] = place
        return place

    # --- values -------------------------------------------------------------------------------------------

    def _get(self, path: Path) -> object:
        if ALL in path:
            return self._expand(path)
        node, at = self.place(path)
        if node is None:
            return ABSENT
        node, at = self.follow(node, at)
        return self.value(node, at, path, 0)

    def value(self, node: Any, at: Path, path: Path, depth: int = 0) -> object:
        """Return the value of a place; ``path`` is the one that was asked for."""
        kind = node.__class__
        if kind is Scalar:
            value = resolve(node, self.dialect if self.sources is None else self.dialect_of(node))
            return mandatory(at) if value == "???" and self.interpolates else value
        if kind is Value:
            return node.value
        if kind is Mapping:
            return Record(self, path)
        if kind is not Sequence:  # the scalars of a script
            return resolve(node, self.dialect)  # never of another file
        if depth >= MAX_DEPTH:
            return Missing((), f"lists nested more than {MAX_DEPTH} deep", "budget")
        values: list[object] = []
        self.spend(len(node.items))
        for i, item in enumerate(node.items):
            inner = item.target if item.__class__ is Alias else item
            inner, inner_at = self.follow(inner, (*at, i))
            values.append(self.value(inner, inner_at, (*path, i), depth + 1))
        return values

    def _expand(self, path: Path) -> object:
        where = path.index(ALL)
        prefix, rest = path[:where], path[where + 1 :]
        node, at = self.place(prefix)
        node, at = self.follow(node, at)
        names: collections.abc.Iterable[str | int]
        held = None if self.hung is None else self.hung.get(id(node))
        if isinstance(node, Mapping):
            names = self.entries(node)
        elif isinstance(held, Mapping):
            names = self.entries(held)
        elif isinstance(node, Sequence):
            names = range(len(node.items))
        elif isinstance(node, Value) and isinstance(node.value, Missing):
            return node.value
        else:
            return ABSENT
        if len(path) > DEEPEST_PATH:
            return over_budget()
        values: list[object] = []
        for name in names:
            self.spend(1)
            value = self._get((*prefix, name, *rest))
            if value is ABSENT:
                continue
            if isinstance(value, list) and ALL in rest:
                self.spend(len(value))
                values.extend(value)
            else:
                values.append(value)
        return values
