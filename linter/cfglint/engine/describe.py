"""Values in words, and where each comes from: a line, a default, the catalogue."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from cfglint.document.spoken import spoken
from cfglint.document.trace import Trace
from cfglint.engine.entries import bindings_in, blocks_of, lets_in
from cfglint.lang import tree as t
from cfglint.lang.compile import Function, Names
from cfglint.lang.runtime import NAMESPACE
from cfglint.lang.tree import paths_in, references_in, walk
from cfglint.lang.types import ANY, MEMORY, PLAIN, UNITS, Type, show_number
from cfglint.lang.values import INF, Interval, Open, Unknown, needs_of, parts
from cfglint.record import Record, remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cfglint.engine.entries import Blocks
    from cfglint.facts import Steps, Values
    from cfglint.lang.symbols import Symbols
    from cfglint.lang.values import Number

_SHOWN = 8  # items of a list
_WORDS = {True: "true", False: "false", None: "null"}


class Evaluator:
    """Evaluates any expression of the language on the values of a file; compiled once each.

    ``own_lets`` are what a framework derives for itself.
    """

    def __init__(self, symbols: Symbols, own_lets: Mapping[str, t.Let] | None = None) -> None:
        self.symbols = symbols
        self.names = Names(symbols, own_lets)
        self._compiled: dict[tuple[t.Expr, tuple[str, ...]], tuple[Any, Type]] = {}

    def __call__(
        self, node: t.Expr, values: Values, variables: Mapping[str, object] | None = None
    ) -> tuple[object, Type]:
        """Return the value of ``node`` and its type."""
        bound = variables or {}
        function, kind = self.compiled(node, tuple(bound))
        return function(values, *bound.values()), kind

    def compiled(self, node: t.Expr, bound: tuple[str, ...] = ()) -> tuple[Callable[..., Any], Type]:
        """Return the function of ``node``, of the values and the ``bound`` variables, and its type."""
        key = (node, bound)
        if key not in self._compiled:
            emitter = Function(self.names, {name: (f"x_{name}", ANY) for name in bound})
            atom, kind = emitter.value(node)
            emitter.line(f"return {atom}")
            namespace: dict[str, Any] = {**NAMESPACE, "INF": INF}
            exec(emitter.finish("F", ", ".join(["V", *(f"x_{name}" for name in bound)])), namespace)  # noqa: S102
            self._compiled[key] = (namespace["F"], kind)
        return self._compiled[key]

    def type_of(self, name: str) -> Type:
        """Return a name's type."""
        return self.names.type_of(name) or ANY

    def is_word(self, node: t.Expr) -> bool:
        """Whether a name is an enumeration's member."""
        return isinstance(node, t.Name) and self.names.type_of(node.name) is None


# ── values in words: 44.42 GiB ─────────────────────────────────────────────────────────────────────────────
def show_value(value: object, kind: Type, *, unit: str | None = None) -> str:
    """Return a value as reports print it; in ``unit``, if one is given."""
    if isinstance(value, (int, float, Interval)) and not isinstance(value, bool):
        return _number(value, kind, unit or _unit(kind))
    if isinstance(value, (Open, Unknown)):
        return "?" if value.needs else "undecided"
    if isinstance(value, (list, tuple)):
        return _version(value) if kind.kind == "version" else f"[{_items(value)}]"
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    return "a mapping" if hasattr(value, "keys") else str(value) or '""'


def _number(value: Number, kind: Type, unit: str | None) -> str:
    low, high, needs = parts(value)
    if low == -INF or high == INF:
        return "?" if needs else "any number"
    if kind.dimension == MEMORY and low < 0:
        return _short(value, unit)
    if kind.tenths:
        return f"{low:.1f}" if low == high else f"{low:.1f}–{high:.1f}"
    return show_number(value, kind.dimension if kind.kind == "number" else PLAIN, unit)


def _short(memory: Number, unit: str | None) -> str:
    """Print a memory that may be below zero: nothing holds that, but so much may be missing."""
    low, high, _ = parts(memory)
    if high > 0:
        return "at most " + show_number(high, MEMORY, unit)
    return f"none ({show_number(Interval(-high, -low), MEMORY, unit)} short)"


def _version(numbers: list[Any] | tuple[Any, ...]) -> str:
    return "newest" if INF in numbers else "v" + ".".join(map(str, numbers))


def _items(values: list[Any] | tuple[Any, ...]) -> str:
    shown = ", ".join(show_value(value, ANY) for value in values[:_SHOWN])
    return shown + ", …" if len(values) > _SHOWN else shown


def _unit(kind: Type) -> str | None:
    """Return the unit that a fact was declared in, unless numbers are printed in it anyway."""
    if kind.unit in (None, "GiB", "s", "B") or UNITS[kind.unit][1] != kind.dimension:
        return None
    return kind.unit


# ── where a value comes from ───────────────────────────────────────────────────────────────────────────────
class Origin(Record):
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
        self.blocks = blocks_of(symbols, framework)
        self.bindings = bindings_in(self.blocks)
        self.own_lets = lets_in(self.blocks)
        self._named = _namer(symbols, self.blocks)
        self._origins: dict[str, Origin] = {}
        self._leaves: dict[str, Sequence[str]] = {}

    def of(self, name: str) -> Origin:
        """Return the origin of a name's value."""
        origin = self._origins.get(name)
        if origin is None:
            if name in self.values.given:
                origin = Origin("target", self.sources.get(name, "given"))
            else:
                origin = self._bound(name) or self._stated(name) or self._derived(name) or self._other(name)
            self._origins[name] = origin
        return origin

    def key(self, name: str) -> str:
        """Return the key that a fact is read from, or would be; the fact's own name where there is none."""
        paths = self.of(name).paths or next(
            (paths for *_, paths, _ in self.values.possible(name) if paths), ()
        )
        binding = self.of(name).binding
        if not paths and binding is not None and isinstance(binding.source, t.Name):  # it is another one
            return self.key(binding.source.name)
        return spoken(paths[0]) if paths else name

    def read_from(self, name: str) -> Steps | None:
        """Return the one key whose value a fact is, or would be; None for what is computed."""
        origin = self.of(name)
        source = None if origin.binding is None else origin.binding.source
        if isinstance(source, t.Path):
            return source.steps
        view = self.values.view
        present = [path for path in dict.fromkeys(origin.paths) if view is not None and view.has(path)]
        if view is None or len(present) != 1 or self.names_in(source):
            return None
        return present[0] if (view.get(present[0]) == self.values[name]) is True else None

    def _bound(self, name: str) -> Origin | None:
        """Return the origin of what the framework binds to a key."""
        compiled = self.values.bindings.get(name)
        chosen = self.values.alternatives_in_force(compiled) if compiled is not None else ()
        if compiled is None or not chosen:
            return None
        node = self.bindings[name][compiled.index(chosen[0][0])]
        paths, view = paths_in(node.source), self.values.view
        present = [path for path in paths if view is not None and view.has(path)]
        if present:
            return Origin("file", self._line(present[0]), paths, self.names_in(node.source), node)
        if not paths:
            return Origin("derived", "derived", (), self.names_in(node.source), node)
        if not self.values.own:
            return Origin("default", "its default in the program is not known", paths, (), node)
        return Origin("default", self._default(node), paths, (), node)

    def _stated(self, name: str) -> Origin | None:
        """Return the origin of what the file gives by the fact's own name."""
        path = self.values.key_of(name)
        if path is None:
            return None
        return Origin("file", self._line(path), (path,), (), t.Binding(name, t.Path(path)))

    def _derived(self, name: str) -> Origin | None:
        """Return the origin of what a let computes."""
        let = self.own_lets.get(name) or self.symbols.lets.get(name)
        if let is None:
            return None
        uses, paths = self.names_in(let.body), paths_in(let.body)
        if name not in self.symbols.types or not self.values.named or name in self.bindings:
            return Origin("derived", self._only_place(paths, uses), paths, uses)
        # The file may give the fact by its own name: a repair writes it there.
        key = tuple(name.split("."))
        binding = t.Binding(name, t.Path(key))
        if name in self.own_lets and not uses and not paths:
            return Origin("default", self._default(binding), (key,), (), binding)
        if name in self.symbols.knobs:
            return Origin("derived", "derived", (key, *paths), uses, binding)
        return Origin("derived", "derived", paths, uses)

    def _other(self, name: str) -> Origin:
        """Return the origin of what neither the file nor a rule gives."""
        prefix = name.partition(".")[0]
        if prefix in self.symbols.registries and not needs_of(self.values[name]):
            return Origin("registry", self._registry(prefix))
        if prefix in ("framework", "document") and prefix != name:
            return Origin("file", "this file")
        return Origin("missing", "not known")

    def _registry(self, prefix: str) -> str:
        """Say what told a registry's row: the table itself, where it knows that."""
        registry = self.symbols.registries[prefix]
        source_of = getattr(self.values.tables.get(registry.table), "source_of", None)
        for key in registry.keys if source_of is not None else ():
            wanted = self.values[key]
            source = source_of(wanted) if type(wanted) in (str, int, float) else ""  # type: ignore[misc]
            if source:
                return str(source)
        return f"{registry.table} registry"

    def _only_place(self, paths: tuple[Steps, ...], uses: tuple[str, ...]) -> str:
        """Say where a name's one key stands, if that is in another file."""
        trace = self.trace(paths[0]) if len(set(paths)) == 1 and not uses else None
        return trace.where if trace is not None and trace.present and trace.source is not None else "derived"

    def _default(self, node: t.Binding) -> str:
        return f"default of {self.framework}" + (f" ({node.citation})" if node.citation else "")

    def _line(self, path: Steps) -> str:
        trace = self.trace(path)
        return "this file" if trace is None else trace.where

    def trace(self, path: Steps) -> Trace | None:
        """Return where the value at a path is defined."""
        view = self.values.view
        return None if view is None or "*" in path else Trace(view, path)

    def names_in(self, node: t.Expr | None) -> tuple[str, ...]:
        """Return the facts and lets that an expression names, in its order."""
        return () if node is None else self._named(node)

    def leaves(self, name: str) -> Sequence[str]:
        """Return the names at the bottom of a derivation: those with a value of their own."""
        leaves = self._leaves.get(name)
        if leaves is None:
            names = [(each, self.of(each)) for each in self.derivation((name,))]
            leaves = [each for each, origin in names if origin.kind != "derived" or origin.paths]
            self._leaves[name] = leaves
        return leaves

    def derivation(self, names: Iterable[str]) -> Iterator[str]:
        """Yield names and all that they are derived from, each once."""
        seen: set[str] = set()
        waiting = deque(names)
        while waiting:
            current = waiting.popleft()
            if current not in seen:
                seen.add(current)
                yield current
                waiting += self.of(current).uses

    def with_leaves(self, names: Iterable[str]) -> dict[str, None]:
        """Return names, each before its leaves, and each where it comes first."""
        told: dict[str, None] = {}
        for name in names:
            told[name] = None
            told.update(dict.fromkeys(self.leaves(name)))
        return told

    def read_by(self, node: t.Expr) -> Iterator[Steps]:
        """Yield the paths that an expression reads or asks for, itself and by the names in it."""
        seen: set[str] = set()
        waiting = [node]
        while waiting:
            part = waiting.pop()
            yield from (each.steps for each in walk(part) if isinstance(each, t.Path))
            for name in self.names_in(part):
                yield from self.of(name).paths
                let = self.own_lets.get(name) or self.symbols.lets.get(name)
                if let is not None and name not in seen:
                    waiting.append(let.body)
                seen.add(name)


@remembered
def _namers(_symbols: Symbols) -> dict[int, tuple[object, Callable[[t.Expr], tuple[str, ...]]]]:
    return {}


def _namer(symbols: Symbols, blocks: Blocks) -> Callable[[t.Expr], tuple[str, ...]]:
    """Return what tells the names in an expression of a framework, and remembers them for all its files."""
    known = _namers(symbols)
    if id(blocks) not in known:
        known[id(blocks)] = blocks, remembered(partial(_names_in, symbols, lets_in(blocks)))
    return known[id(blocks)][1]


def _names_in(symbols: Symbols, own_lets: Mapping[str, t.Let], node: t.Expr | None) -> tuple[str, ...]:
    """Return the facts and lets that an expression names, in its order."""
    if node is None:
        return ()
    types, lets, functions = symbols.types, symbols.lets, symbols.functions
    parts = references_in(node)
    names = dict.fromkeys(
        part.name
        for part in parts
        if isinstance(part, t.Name) and (part.name in types or part.name in lets or part.name in own_lets)
    )
    for part in parts:
        if isinstance(part, t.Call) and part.function in functions:
            names |= dict.fromkeys(_names_in(symbols, own_lets, functions[part.function].body))
        elif isinstance(part, t.Quantifier) and part.source == t.Name("roles"):
            for role in symbols.roles.values():
                fields = (f"{role.name}.{key}" for key, _ in role.fields)
                names |= dict.fromkeys((*_names_in(symbols, own_lets, role.when), *fields))
    return tuple(names)


# ── which names a rule rests on, and where the file has what they are read from ─────────────────────────────
def names_of(rule: t.Rule, origins: Origins) -> Iterable[str]:
    """Return the names that a rule rests on, and the leaves of each."""
    return origins.with_leaves((*origins.names_in(rule.requirement), *origins.names_in(rule.condition)))


def paths_of(names: Iterable[str], origins: Origins) -> Iterable[Steps]:
    """Return the paths that names and their leaves are read from, each once."""
    return dict.fromkeys(path for leaf in origins.with_leaves(names) for path in origins.of(leaf).paths)


def traces(paths: Iterable[Steps], origins: Origins) -> Iterator[Trace]:
    """Yield how paths are reached, but for those that no file can have."""
    for path in paths:
        trace = origins.trace(path)
        if trace is not None:
            yield trace
