"""The names that rule files define together, and which of them are derived from which."""

from __future__ import annotations

import os
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from cfglint.errors import Complaint, did_you_mean
from cfglint.lang import tree as t
from cfglint.lang.types import ANY, NAMED, OTHER_NAMES, Type, from_tree
from cfglint.record import Record, field, fields
from cfglint.text import LineIndex

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any


MAX_CHAIN = 60  # names that build on each other; every step costs frames of Python's stack
_DEEP = 20  # lets within lets


class Source(Record):
    """One rule file: its path, text and statements; what does not parse, and the names which that defines."""

    path: str
    text: str
    statements: tuple[t.Statement, ...]
    mistakes: tuple[Complaint, ...] = ()
    broken: frozenset[str] = frozenset()
    index: LineIndex | None = None

    def complain(self, span: t.Span, message: str) -> Complaint:
        """Return a complaint about ``span`` of this file."""
        self.index = self.index or LineIndex(self.text)
        line, column = self.index.position(min(span[0], len(self.text)))
        return Complaint(self.path, line, column, message)


class Symbols(Record):
    """What is defined so far; rule files are added in turn, and a later let goes before an earlier one."""

    facts: dict[str, t.Fact] = field(factory=dict)
    types: dict[str, Type] = field(factory=dict)
    knobs: dict[str, t.Knob] = field(factory=dict)
    lets: dict[str, t.Let] = field(factory=dict)
    functions: dict[str, t.Let] = field(factory=dict)
    roles: dict[str, t.Role] = field(factory=dict)
    registries: dict[str, t.Registry] = field(factory=dict)
    frameworks: dict[str, list[t.Framework]] = field(factory=dict)
    rules: dict[str, t.Rule] = field(factory=dict)
    packs: dict[str, t.Pack] = field(factory=dict)  # by the path of the file that says so
    where: dict[str, str] = field(factory=dict)  # "rule MEM101" -> "rules/memory/model.rules:12"
    let_types: dict[str, Type] = field(factory=dict)

    def copy(self) -> Symbols:
        """Return a copy that can grow without changing this one."""
        return self.plus(Symbols())

    def plus(self, own: Symbols) -> Symbols:
        """Return these symbols with those of a further layer, which go before them."""
        return Symbols(*({**getattr(self, name), **getattr(own, name)} for name in fields(self)))

    def beyond(self, below: Symbols) -> Symbols:
        """Return what a layer has put in beside the symbols below it, or in their place."""

        def own(name: str) -> dict[str, Any]:
            known = getattr(below, name)
            return {key: node for key, node in getattr(self, name).items() if known.get(key) is not node}

        return Symbols(*map(own, fields(self)))

    def add(self, source: Source, builtin: Collection[str] = ()) -> Iterator[Complaint]:
        """Add the definitions of a file; yields a complaint for all that is defined twice or wrongly.

        ``builtin`` are the functions of the language, which no file defines.
        """
        for node in source.statements:
            match node:
                case t.Pack():
                    if source.path in self.packs:
                        yield source.complain(node.span, "a file is of one pack, and says so once")
                    self.packs[source.path] = node
                case t.Fact():
                    yield from self._add_fact(source, node)
                case t.Knob(name):
                    yield from self._once(source, node, f"knob {name}")
                    self.knobs[name] = node
                case t.Let():
                    yield from self._add_let(source, node, builtin)
                case t.Role(name):
                    yield from self._once(source, node, f"role {name}")
                    self.roles[name] = node
                    for let in node.lets():
                        yield from self._once(source, let, f"let {let.name}")
                        self.lets[let.name] = let
                        self.let_types.pop(let.name, None)
                case t.Registry(prefix):
                    yield from self._once(source, node, f"registry {prefix}")
                    self.registries[prefix] = node
                case t.Framework(name):
                    self._note(source, node, f"framework {name}")
                    # A later file's bindings go first: a user's own rules know better.
                    self.frameworks[name] = [node, *self.frameworks.get(name, ())]
                case t.Rule():
                    yield from self._add_rule(source, node)

    def _add_let(self, source: Source, node: t.Let, builtin: Collection[str]) -> Iterator[Complaint]:
        name, function = node.name, bool(node.parameters)
        yield from self._once(source, node, f"let {name}")
        if name in builtin and function:
            yield source.complain(node.span, f"{name} is a function of the language")
        taken = name in self.functions
        if function != taken and (taken or name in self.lets):
            yield source.complain(node.span, f"{name} is {'a name' if function else 'a function'} already")
        (self.functions if function else self.lets)[name] = node
        self.let_types.pop(name, None)

    def _add_rule(self, source: Source, node: t.Rule) -> Iterator[Complaint]:
        if node.code in self.rules:
            place = self.where[f"rule {node.code}"]
            yield source.complain(node.span, f"the code {node.code} is already used at {place}")
            return
        self._note(source, node, f"rule {node.code}")
        for i, example in enumerate(node.examples):
            self._note(source, example, f"example {node.code} {i}")
        self.rules[node.code] = node

    def _add_fact(self, source: Source, node: t.Fact) -> Iterator[Complaint]:
        kind = ANY
        try:
            kind = from_tree(node.type)
        except KeyError:
            meant = OTHER_NAMES.get(node.type.name.lower())
            near = f"; did you mean {meant!r}?" if meant else did_you_mean(node.type.name, NAMED)
            listed = near or f"; known are {', '.join(NAMED)} and one of …"
            yield source.complain(node.type.span, f"unknown type {node.type.name!r}{listed}")
        except ValueError as error:
            yield source.complain(node.type.span, str(error))
        key = f"fact {node.name}"
        if (
            key in self.where and self.types[node.name] != kind
        ):  # rules that are compiled already rely on its type
            yield source.complain(
                node.span, f"{key} is declared twice, with another type at {self.where[key]}"
            )
            return
        yield from self._once(source, node, key)
        self.types[node.name] = kind
        self.facts[node.name] = node

    def _note(self, source: Source, node: t.Statement | t.Example, key: str) -> None:
        complaint = source.complain(node.span, "")
        self.where[key] = f"{complaint.path}:{complaint.line}"

    def _once(self, source: Source, node: t.Statement, key: str) -> Iterator[Complaint]:
        path = self.where.get(key, "").rpartition(":")[0]
        if path == source.path:  # another file may replace a definition on purpose, one file never does
            yield source.complain(node.span, f"{key} is defined twice; first at {self.where[key]}")
        self._note(source, node, key)

    def pack_at(self, path: str) -> t.Pack | None:
        """Return the pack of a rule file: its own, else that of its folder, or of one above."""
        if path in self.packs:
            return self.packs[path]
        while path:
            path = os.path.dirname(path)
            packs = [pack for file, pack in self.packs.items() if os.path.dirname(file) == path]
            if packs or not os.path.basename(path):
                return packs[0] if len(packs) == 1 else None
        return None

    def derivations(self) -> dict[str, list[t.Expr]]:
        """Return what lets derive each name from, and what frameworks put in their place."""
        bodies: dict[str, list[t.Expr]] = {name: [let.body] for name, let in self.lets.items()}
        for nodes in self.frameworks.values():
            for entry in (e for node in nodes for e in node.entries):
                if isinstance(entry, t.Let):
                    bodies.setdefault(entry.name, []).append(entry.body)
        return bodies

    def names(self) -> Iterable[str]:
        """Return every name that an expression may use."""
        return (*self.types, *self.lets, *self.functions)


# ── what is derived from what ──────────────────────────────────────────────────────────────────────────────
_ROLES = "roles"  # whether each role is there, and what it has: an expression over roles asks for all of that


def uses(node: t.Expr) -> set[str]:
    """Return the names and functions that an expression asks for."""
    names: set[str] = set()
    for part in t.walk(node):
        if isinstance(part, t.Name):
            names.add(part.name)
        elif isinstance(part, t.Call):
            names.add(part.function)
    return names


def trail(names: Sequence[str]) -> str:
    """Return names that lead to each other in words; of many, those at the ends."""
    shown = [*names[:_SHOWN], f"… ({len(names) - 2 * _SHOWN} more)", *names[-_SHOWN:]]
    return " -> ".join(shown if len(names) > 2 * _SHOWN + 1 else names)


_SHOWN = 5  # at either end
_NOTHING: frozenset[str] = frozenset()


class Graph:
    """Names by what they are derived from.

    A framework's graph takes what stands outside of its block from the ``shared`` one, that of no framework.
    """

    def __init__(self, symbols: Symbols, framework: str | None = None, shared: Graph | None = None) -> None:
        self.symbols = symbols
        self.edges: dict[str, frozenset[str]] = {}
        nodes: Sequence[t.Framework] = symbols.frameworks.get(framework, ()) if framework is not None else ()
        entries = [entry for node in nodes for entry in node.entries]
        own = {entry.name for entry in entries if isinstance(entry, t.Let)}
        for let in (*symbols.lets.values(), *symbols.functions.values()):
            if let.name in own:
                continue
            if shared is None:
                self._note(let.name, let.body)
            else:
                self.edges[let.name] = shared.edges[let.name]
        for entry in entries:
            if isinstance(entry, t.Binding):
                self._note(entry.name, entry.source, entry.when, entry.default, entry.null)
            elif isinstance(entry, t.Let):
                self._note(entry.name, entry.body)
        for role in symbols.roles.values():
            self._note(_ROLES, role.when, *(t.Name(f"{role.name}.{key}") for key, _ in role.fields))
        for prefix, registry in symbols.registries.items():
            for name in symbols.types:
                derived = name in symbols.lets or name in own  # a let goes before the table
                if name.startswith(f"{prefix}.") and name not in registry.keys and not derived:
                    self.edges[name] = self.edges.get(name, _NOTHING).union(registry.keys)

    def _note(self, name: str, *expressions: t.Expr | None) -> None:
        for expression in expressions:
            if expression is not None:
                self.edges[name] = self.edges.get(name, _NOTHING) | uses(expression)

    def circles(self) -> Iterator[list[str]]:
        """Yield the circles found, as lists of names that begin and end with the same one."""
        done: set[str] = set()
        for start in sorted(self.edges):
            if start in done:
                continue
            trail = [start]
            stack = [iter(sorted(self.edges[start]))]
            while stack:
                step = next(stack[-1], None)
                if step is None:
                    stack.pop()
                    done.add(trail.pop())
                elif step in trail:
                    yield [*trail[trail.index(step) :], step]
                elif step in self.edges and step not in done:
                    trail.append(step)
                    stack.append(iter(sorted(self.edges[step])))

    def order(self) -> list[str]:
        """Return the names, each after those that it is derived from. Only where there are no circles."""
        return [name for name in TopologicalSorter(self.edges).static_order() if name in self.edges]

    def heights(self) -> Mapping[str, int]:
        """Return how many steps each name stands above what is given. Only where there are no circles."""
        heights: dict[str, int] = {}
        for name in self.order():
            heights[name] = 1 + max((heights.get(below, 0) for below in self.edges[name]), default=0)
        return heights


def signs(condition: t.Expr, lets: Mapping[str, t.Let], depth: int = 0) -> frozenset[str] | None:
    """Return keys of which a file must have one for ``condition`` to be true; None where that is not plain.

    What compares a key that is absent is open, and so not true.
    """
    match condition:
        case t.Has(t.Path(steps)) | t.Like(t.Path(steps)) if steps and isinstance(steps[0], str):
            return frozenset({steps[0]})
        case t.Compare(operands):
            keys = [signs(t.Has(each), lets) for each in operands if isinstance(each, t.Path)]
            return keys[0] if keys else None
        case t.Junction("and", operands):
            each = [s for operand in operands if (s := signs(operand, lets, depth)) is not None]
            return min(each, key=lambda s: (len(s), sorted(s)), default=None)
        case t.Junction("or", operands):
            ways = [signs(operand, lets, depth) for operand in operands]
            return None if None in ways else frozenset[str]().union(*(way or () for way in ways))
        case t.Name(name) if name in lets and depth < _DEEP and not lets[name].parameters:
            return signs(lets[name].body, lets, depth + 1)
    return None
