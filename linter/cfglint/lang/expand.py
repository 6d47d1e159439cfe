"""What a rule file says once of many statements: sections, prefixes, sources, tables, repetition.

`Statements` reads the statements of a file in turn and yields them as if each were written out in full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lark import Token

from cfglint.lang import tree as t
from cfglint.lang.shorthand import RuleTextError, repeated, start_of, with_given
from cfglint.lang.transform import Transformer
from cfglint.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Statements(Transformer):
    """Reads a file's statements; what it says of those that follow holds until it says otherwise."""

    scope: tuple[t.Scope, ...] = ()  # of the section
    where: t.Expr | None = None
    examples_have: tuple[Any, ...] = ()

    def read(self, nodes: Iterable[Any]) -> Iterator[t.Statement]:
        """Yield the statements of lark's nodes, written out in full."""
        for node in nodes:
            match node.data:
                case "prefix":
                    self.prefix = str(node.children[0])
                case "source":
                    *name, base = self.children(node)
                    self.sources[name[0] if name else ""] = base
                case "section":
                    self._open(node)
                case "given_all":
                    self.examples_have = self.build(node)
                case "each":
                    yield from self.read(repeated(node))
                case "table":
                    yield from self._table(node)
                case _:
                    yield from self._placed(self.build(node))

    def _open(self, node: Any) -> None:
        """Begin a section: ``for FRAMEWORK where CONDITION``."""
        self.scope, self.where, self.examples_have = (), None, ()
        scopes = []
        for part in node.children:
            if part.data == "where":
                self.where = self.build(part.children[0])
            elif part.data == "one_scope":
                scopes.append(self.build(part))
        self.scope = tuple(scopes)

    def _placed(self, statement: Any) -> Iterator[t.Statement]:
        """Yield a statement with what its section says of it, after the facts that it declares."""
        if isinstance(statement, t.Rule):
            yield self._in_section(statement)
        elif isinstance(statement, t.Framework):
            facts = [entry for entry in statement.entries if isinstance(entry, t.Fact)]
            yield from facts
            rest = tuple(entry for entry in statement.entries if not isinstance(entry, t.Fact))
            yield replace(statement, entries=rest) if facts else statement
        else:
            yield statement

    def _in_section(self, rule: t.Rule) -> t.Rule:
        """Return a rule with its section's scope, condition and what is given to its examples."""
        scope = rule.scope or self.scope
        if any(not each.framework for each in scope):
            if not self.scope:
                raise RuleTextError(
                    rule.span[0], f"{rule.code} names versions; write `for FRAMEWORK` before them"
                )
            limits = scope[0].operators
            scope = tuple(replace(each, operators=(*each.operators, *limits)) for each in self.scope)
        examples = tuple(with_given(example, self.examples_have) for example in rule.examples)
        return replace(rule, scope=scope, condition=_both(self.where, rule.condition), examples=examples)

    def _table(self, node: Any) -> Iterator[t.Let]:
        """Yield a function for each column of a table, and one that tells which values its rows are for."""
        name, *rest = node.children
        table, key, span = self.named(name), t.Name("key"), (start_of(node), node.meta.end_pos)
        columns = self.children(rest.pop(0)) if rest and rest[0].data == "columns" else []
        rows = [self._row(row, len(columns)) for row in rest]
        listed = t.ListOf(tuple(key for keys, _ in rows for key in keys))
        yield t.Let(f"{table}.{t.LISTS}", ("key",), t.Member(key, listed, span=span), span=span)
        for i, column in enumerate(columns):
            arms = tuple((keys, cell) for keys, cells in rows if keys and (cell := cells[i]) is not None)
            other = next((cells[i] for keys, cells in rows if not keys), None)
            yield t.Let(f"{table}.{column}", ("key",), t.Choice(key, arms, other, span=span), span=span)

    def _row(self, row: Any, columns: int) -> tuple[tuple[t.Expr, ...], list[t.Expr | None]]:
        """Return what a row is for (nothing: ``else``), and its cells (None: ``_``)."""
        keys, *cells = row.children
        if len(cells) != columns:
            raise RuleTextError(
                start_of(row), f"this row has {len(cells)} of {columns} cells, one for each column"
            )
        built = (
            None if isinstance(cell.children[0], Token) else self.build(cell.children[0]) for cell in cells
        )
        return self.all(keys.children), list(built)


def _both(first: t.Expr | None, second: t.Expr | None) -> t.Expr | None:
    """Return what holds where both conditions do."""
    if first is None or second is None:
        return second if first is None else first
    operands: list[t.Expr] = []
    for each in (first, second):
        flat = isinstance(each, t.Junction) and each.operator == "and"
        operands += each.operands if flat else (each,)  # type: ignore[union-attr]
    return t.Junction("and", tuple(operands), span=second.span)
