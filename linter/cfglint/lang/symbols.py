"""The names that rule files define together: facts, knobs, lets, roles, registries, frameworks and rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.errors import Complaint, did_you_mean
from cfglint.lang import tree as t
from cfglint.lang.builtin import FUNCTIONS as BUILTIN
from cfglint.lang.types import ANY, NAMED, Type, from_tree
from cfglint.record import Record, field
from cfglint.text import LineIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cfglint.lang.message import Parts


class Source(Record):
    """One rule file: its path, text and statements."""

    path: str
    text: str
    statements: tuple[t.Statement, ...]
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
    where: dict[str, str] = field(factory=dict)  # "rule MEM101" -> "rules/memory.rules:12"
    let_types: dict[str, Type] = field(factory=dict)
    messages: dict[str, Parts] = field(factory=dict)  # by their texts, split (message.py)

    def copy(self) -> Symbols:
        """Return a copy that can grow without changing this one."""
        return Symbols(
            dict(self.facts), dict(self.types), dict(self.knobs), dict(self.lets), dict(self.functions),
            dict(self.roles), dict(self.registries), {k: list(v) for k, v in self.frameworks.items()},
            dict(self.rules), dict(self.where), dict(self.let_types),
            dict(self.messages),
        )  # fmt: skip

    def add(self, source: Source) -> Iterator[Complaint]:
        """Add the definitions of a file; yields a complaint for all that is defined twice or wrongly."""
        for node in source.statements:
            match node:
                case t.Fact(name):
                    yield from self._add_fact(source, node)
                case t.Knob(name):
                    yield from self._once(source, node, f"knob {name}")
                    self.knobs[name] = node
                case t.Let(name, parameters):
                    yield from self._once(source, node, f"let {name}")
                    if name in BUILTIN and parameters:
                        yield source.complain(node.span, f"{name} is a function of the language")
                    if bool(parameters) != (name in self.functions) and (
                        name in self.functions or name in self.lets
                    ):
                        yield source.complain(
                            node.span, f"{name} is {'a name' if parameters else 'a function'} already"
                        )
                    (self.functions if parameters else self.lets)[name] = node
                    self.let_types.pop(name, None)
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
                    self.frameworks.setdefault(name, []).insert(0, node)
                case t.Rule(code=code):
                    if code in self.rules:
                        place = self.where[f"rule {code}"]
                        yield source.complain(node.span, f"the code {code} is taken, at {place}")
                    else:
                        self._note(source, node, f"rule {code}")
                        for i, example in enumerate(node.examples):
                            self._note(source, example, f"example {code} {i}")
                        self.rules[code] = node

    def _add_fact(self, source: Source, node: t.Fact) -> Iterator[Complaint]:
        kind = ANY
        try:
            kind = from_tree(node.type)
        except KeyError:
            near = did_you_mean(node.type.name, NAMED)
            known = near or f"; known are {', '.join(NAMED)} and one of …"
            yield source.complain(node.type.span, f"no type is named {node.type.name!r}{known}")
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

    def derivations(self) -> dict[str, list[t.Expr]]:
        """Return what lets derive each name from, and what frameworks put in their place."""
        found: dict[str, list[t.Expr]] = {name: [let.body] for name, let in self.lets.items()}
        for nodes in self.frameworks.values():
            for entry in (e for node in nodes for e in node.entries):
                if isinstance(entry, t.Let):
                    found.setdefault(entry.name, []).append(entry.body)
        return found

    def names(self) -> Iterable[str]:
        """Return every name that an expression may use."""
        return (*self.types, *self.lets, *self.functions)
