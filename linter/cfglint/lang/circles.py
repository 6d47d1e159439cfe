"""Which names are derived from which, so that circles are told and lets are typed from the ground up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.lang import tree as t

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cfglint.lang.symbols import Symbols

MAX_CHAIN = 60  # names that build on each other; every step costs frames of Python's stack


def uses(node: t.Expr, symbols: Symbols) -> set[str]:
    """Return the names and functions that an expression asks for, those of roles included."""
    found: set[str] = set()
    for part in t.walk(node):
        if isinstance(part, t.Name):
            found.add(part.name)
        elif isinstance(part, t.Call):
            found.add(part.function)
        elif isinstance(part, t.Quantifier) and part.source == t.Name("roles"):
            for role in symbols.roles.values():
                if role.when is not None:
                    found |= uses(role.when, symbols)
                found |= {f"{role.name}.{key}" for key, _ in role.fields}
    return found


class Graph:
    """Names by what they are derived from."""

    def __init__(self, symbols: Symbols, framework: str | None = None) -> None:
        self.symbols = symbols
        self.edges: dict[str, set[str]] = {}
        nodes: Sequence[t.Framework] = symbols.frameworks.get(framework, ()) if framework is not None else ()
        entries = [entry for node in nodes for entry in node.entries]
        own = {entry.name for entry in entries if isinstance(entry, t.Let)}
        for let in (*symbols.lets.values(), *symbols.functions.values()):
            if let.name not in own:
                self._note(let.name, let.body)
        for entry in entries:
            if isinstance(entry, t.Binding):
                self._note(entry.name, entry.source, entry.when, entry.default, entry.null)
            elif isinstance(entry, t.Let):
                self._note(entry.name, entry.body)
        for prefix, registry in symbols.registries.items():
            for name in symbols.types:
                derived = name in symbols.lets or name in own  # a let goes before the table
                if name.startswith(f"{prefix}.") and name not in registry.keys and not derived:
                    self.edges.setdefault(name, set()).update(registry.keys)

    def _note(self, name: str, *expressions: t.Expr | None) -> None:
        for expression in expressions:
            if expression is not None:
                self.edges.setdefault(name, set()).update(uses(expression, self.symbols))

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
        """Return the names, each after those that it is derived from, as far as there are no circles."""
        order: list[str] = []
        seen: set[str] = set()
        for start in self.edges:
            stack = [(start, iter(self.edges[start]))] if start not in seen else []
            seen.add(start)
            while stack:
                name, rest = stack[-1]
                step = next(rest, None)
                if step is None:
                    stack.pop()
                    order.append(name)
                elif step in self.edges and step not in seen:
                    seen.add(step)
                    stack.append((step, iter(self.edges[step])))
        return order

    def heights(self) -> Mapping[str, int]:
        """Return how many steps each name stands above what is given. Only where there are no circles."""
        heights: dict[str, int] = {}
        for name in self.order():
            heights[name] = 1 + max((heights.get(other, 0) for other in self.edges[name]), default=0)
        return heights
