"""Where a fact's value comes from: a line of the file, a default, the catalogue, or other facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfglint.document.trace import Trace
from cfglint.lang import tree as t
from cfglint.lang.build import paths_in, walk
from cfglint.lang.values import needs_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cfglint.facts import Steps, Values
    from cfglint.lang.symbols import Symbols


@dataclass(frozen=True, slots=True)
class Origin:
    """``kind`` is file, default, target, derived, registry or missing; ``source`` says it in words.

    ``paths`` are the keys that a binding reads (present or not), ``uses`` the names that it is derived from,
    ``binding`` the binding in force, if one is.
    """

    kind: str
    source: str
    paths: tuple[Steps, ...] = ()
    uses: tuple[str, ...] = ()
    binding: t.Binding | None = None


class Origins:
    """Origins of the facts of one document on one target."""

    def __init__(
        self, symbols: Symbols, values: Values, sources: Mapping[str, str], framework: str | None
    ) -> None:
        self.symbols = symbols
        self.values = values
        self.sources = sources
        self.framework = framework
        self.bindings: dict[str, list[t.Binding]] = {}
        self.own_lets: dict[str, t.Let] = {}
        for node in symbols.frameworks.get(framework or "", ()):
            for entry in node.entries:
                if isinstance(entry, t.Binding):
                    self.bindings.setdefault(entry.name, []).append(entry)
                elif isinstance(entry, t.Let):
                    self.own_lets.setdefault(entry.name, entry)  # a user's block stands first, and wins
        self._known: dict[str, Origin] = {}

    def of(self, name: str) -> Origin:
        """Return the origin of a name's value."""
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> Origin:
        values = self.values
        if name in values.given:
            return Origin("target", self.sources.get(name, "given"))
        bound = self._bound(name)
        if bound is not None:
            return bound
        path = values.key_of(name)
        if path is not None:
            return Origin("file", self._line(path), (path,), (), t.Binding(name, t.Path(path)))
        let = self.own_lets.get(name) or self.symbols.lets.get(name)
        if let is not None:
            return self._derived(let)
        prefix = name.partition(".")[0]
        if prefix in self.symbols.registries and not needs_of(values[name]):
            return Origin("registry", self._row_told(prefix))
        if name.startswith(("framework.", "document.")):
            return Origin("file", "this file")
        return Origin("missing", "not known")

    def _row_told(self, prefix: str) -> str:
        """Say what told a registry's row: the table itself, where it knows that."""
        registry = self.symbols.registries[prefix]
        look_up = self.values.tables.get(registry.table)
        source_of = getattr(look_up, "source_of", None)
        for key in registry.keys if source_of is not None else ():
            wanted = self.values[key]
            source = source_of(wanted) if type(wanted) in (str, int, float) else ""  # type: ignore[misc]
            if source:
                return str(source)
        return f"{registry.table} registry"

    def _derived(self, let: t.Let) -> Origin:
        uses, paths = self._names(let.body), paths_in(let.body)
        if let.name not in self.symbols.types or not self.values.named or let.name in self.bindings:
            return Origin("derived", self._elsewhere(paths, uses), paths, uses)
        # The file may give the fact by its own name: a repair writes it there.
        key = tuple(let.name.split("."))
        binding = t.Binding(let.name, t.Path(key))
        if let.name in self.own_lets and not uses and not paths:
            return Origin("default", self._default(binding), (key,), (), binding)
        if let.name in self.symbols.knobs:
            return Origin("derived", "derived", (key, *paths), uses, binding)
        return Origin("derived", "derived", paths, uses)

    def _elsewhere(self, paths: tuple[Steps, ...], uses: tuple[str, ...]) -> str:
        """Say where a name's one key stands, if that is in another file."""
        trace = self.trace(paths[0]) if len(set(paths)) == 1 and not uses else None
        return trace.where if trace is not None and trace.present and trace.source is not None else "derived"

    def _bound(self, name: str) -> Origin | None:
        compiled = self.values.bindings.get(name)
        if compiled is None:
            return None
        chosen = self.values.alternatives_in_force(compiled)
        if not chosen:
            return None
        node = self.bindings[name][compiled.index(chosen[0][0])]
        paths = paths_in(node.source)
        view = self.values.view
        present = [path for path in paths if view is not None and view.has(path)]
        if present or not paths:
            uses = self._names(node.source)
            if not present:
                return Origin("derived", "derived", (), uses, node)
            return Origin("file", self._line(present[0]), paths, uses, node)
        return Origin("default", self._default(node), paths, (), node)

    def _default(self, node: t.Binding) -> str:
        told = f"default of {self.framework}"
        return f"{told} ({node.citation})" if node.citation else told

    def _line(self, path: Steps) -> str:
        trace = self.trace(path)
        if trace is None:
            return "this file"
        return trace.where

    def trace(self, path: Steps) -> Trace | None:
        """Return where the value at a path is defined."""
        view = self.values.view
        if view is None or "*" in path:
            return None
        return Trace(view, path)

    def _names(self, node: t.Expr) -> tuple[str, ...]:
        known = (self.symbols.types, self.symbols.lets)
        found = dict.fromkeys(
            n.name for n in walk(node) if isinstance(n, t.Name) and any(n.name in k for k in known)
        )
        for part in walk(node):
            if isinstance(part, t.Call) and part.function in self.symbols.functions:
                found |= dict.fromkeys(self._names(self.symbols.functions[part.function].body))
            elif isinstance(part, t.Quantifier) and part.source == t.Name("roles"):
                found |= dict.fromkeys(self._of_roles())
        return tuple(found)

    def _of_roles(self) -> Iterator[str]:
        """Yield the names that an expression over all roles asks for."""
        for role in self.symbols.roles.values():
            if role.when is not None:
                yield from self._names(role.when)
            yield from (f"{role.name}.{key}" for key, _ in role.fields)

    def names_in(self, node: t.Expr | None) -> tuple[str, ...]:
        """Return the facts and lets that an expression names, in its order."""
        return () if node is None else self._names(node)

    def leaves(self, name: str) -> Iterator[str]:
        """Yield the names at the bottom of a derivation: those with a value of their own."""
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            current = waiting.pop(0)
            if current in seen:
                continue
            seen.add(current)
            origin = self.of(current)
            if origin.uses:
                waiting += origin.uses
            if origin.kind != "derived" or origin.paths:
                yield current
