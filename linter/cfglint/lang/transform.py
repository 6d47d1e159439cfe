"""lark's tree to ours: the children of each of the grammar's rules become one frozen node."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from lark import Token, Tree

from cfglint.lang import tree as t

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 60  # of expressions; more is a mistake or an attack, and every later pass recurses


class RuleTextError(Exception):
    """What is wrong with a text, at an offset."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


_NO_NAMES = words("and or not in like if then else match has true false null mod all any sum count min max")
# The children of these make the node's fields, in their order; of the second, all but the first make a tuple,
# of the third, all.
_NODES: dict[str, Callable[..., t.Node]] = {
    "detect": t.Detect,
    "fact": t.Fact,
    "file": t.NamesFile,
    "has": t.Has,
    "if_": t.If,
    "name": t.Name,
    "names": t.NamesAreKeys,
    "not_": t.Not,
    "null": t.Null,
    "path": t.Path,
    "quantified": t.Quantifier,
    "range": t.Range,
    "sections": t.SectionsAreJobs,
    "setting": t.Setting,
    "since": t.Since,
    "string": t.Text,
    "tied": t.Tie,
    "truth": t.Truth,
}
_HEADED: dict[str, Callable[..., t.Node]] = {"call": t.Call, "example": t.Example, "framework": t.Framework}
_LISTED: dict[str, Callable[..., t.Node]] = {
    "conjunction": partial(t.Junction, "and"),
    "disjunction": partial(t.Junction, "or"),
    "list_of": t.ListOf,
    "record": t.RecordOf,
}
_EMPTY = words("FILE NAMES_ARE_KEYS NULL RANGE SECTIONS_ARE_JOBS")


class Transformer:
    """Turns lark's tree into ours; recursion is bounded by the bracket depth and by ``depth``."""

    def __init__(self) -> None:
        self.depth = 0

    def build(self, node: Any) -> Any:
        self.depth += 1
        if self.depth > MAX_DEPTH + 8:  # a statement has a few levels of its own
            raise RuleTextError(
                _start(node), f"this is nested more than {MAX_DEPTH} deep; give its parts names with let"
            )
        span = (node.meta.start_pos, node.meta.end_pos) if not node.meta.empty else t.NO_SPAN
        try:
            if node.data in _NODES:
                names = node.data in ("fact", "name", "quantified")
                return _NODES[node.data](*self.children(node, names=names), span=span)
            if node.data in _HEADED:
                head, *rest = self.children(node)
                return _HEADED[node.data](head, tuple(rest), span=span)
            if node.data in _LISTED:
                return _LISTED[node.data](self.all(node.children), span=span)
            return getattr(self, node.data)(node, span)
        finally:
            self.depth -= 1

    def all(self, nodes: Any) -> tuple[Any, ...]:
        return tuple(self.build(n) for n in nodes)

    def children(self, node: Any, *, names: bool = False) -> list[Any]:
        """Build a node's children; ``names`` says that its names may not be words of the language."""
        values = {**_VALUES, "NAME": _name} if names else _VALUES
        return [
            values.get(child.type, str)(child) if isinstance(child, Token) else self.build(child)
            for child in node.children
            if not isinstance(child, Token) or child.type not in _EMPTY
        ]

    # expressions
    def number(self, node: Any, span: t.Span) -> t.Number:
        digits, *unit = node.children
        text = str(digits).replace("_", "")
        if len(text) > 40:
            raise RuleTextError(span[0], "this number is too long")
        value = int(text) if text.isdigit() else float(text)
        if value > 1e300:
            raise RuleTextError(span[0], "this number is too large")
        return t.Number(value, str(unit[0]) if unit else None, span=span)

    def version(self, node: Any, span: t.Span) -> t.Version:
        return t.Version(_version(node.children[0]).numbers, span=span)

    def field(self, node: Any, span: t.Span) -> tuple[Any, ...]:  # noqa: ARG002
        return tuple(self.children(node))

    given = field

    def negative(self, node: Any, span: t.Span) -> Any:
        sign, operand = self.children(node)
        return operand if sign == "+" else t.Negative(operand, span=span)

    def sum(self, node: Any, span: t.Span) -> t.Sum:
        return t.Sum(self._operated(node, "+"), span=span)

    def product(self, node: Any, span: t.Span) -> t.Product:
        return t.Product(self._operated(node, "*"), span=span)

    def _operated(self, node: Any, first: str) -> tuple[tuple[str, Any], ...]:
        operators = [first, *map(str, node.children[1::2])]
        return tuple(zip(operators, self.all(node.children[0::2]), strict=True))

    def compare(self, node: Any, span: t.Span) -> t.Compare:
        return t.Compare(self.all(node.children[0::2]), tuple(map(str, node.children[1::2])), span=span)

    def member(self, node: Any, span: t.Span) -> t.Member | t.Like:
        word = str(node.data).removeprefix("not_")
        kind = t.Member if word == "member" else t.Like
        subject, rest = self.all(node.children)
        return kind(subject, rest, word != node.data, span=span)

    not_member = like = not_like = member

    def choice(self, node: Any, span: t.Span) -> t.Choice:
        subject, *arms = node.children
        cases: list[tuple[tuple[Any, ...], Any]] = []
        other = None
        for arm in arms:
            if other is not None:
                raise RuleTextError(_start(arm), "no arm can follow else")
            if arm.data == "otherwise":
                other = self.build(arm.children[0])
            else:
                cases.append((self.all(arm.children[:-1]), self.build(arm.children[-1])))
        return t.Choice(self.build(subject), tuple(cases), other, span=span)

    # statements
    def plain_type(self, node: Any, span: t.Span) -> t.TypeOf:
        name, *rest = node.children
        given: dict[str, Any] = {}
        for part in rest:
            if part.data == "limits":
                given |= zip(("low", "high"), self.children(part), strict=False)
            else:
                given["unit"] = str(part.children[0])
        return t.TypeOf(str(name), **given, span=span)

    def one_of(self, node: Any, span: t.Span) -> t.TypeOf:
        spelled = (
            tuple(_unquote(w) if w.type == "STRING" else str(w) for w in m.children) for m in node.children
        )
        return t.TypeOf("one", tuple(spelled), span=span)

    def knob(self, node: Any, span: t.Span) -> t.Knob:
        name, domain, *rest = node.children
        given: dict[str, Any] = {}
        if domain.data == "values":
            only = self.build(domain.children[0])
            given["values"] = only.items if isinstance(only, t.ListOf) else (only,)
        else:
            given |= zip(("low", "high", "step"), self.children(domain), strict=False)
        if rest and rest[0].data == "keeping":
            given["keeping"], *partners = map(str, rest.pop(0).children)
            given["partners"] = tuple(partners)
        kind = str(domain.data).removesuffix("_value")
        return t.Knob(str(name), kind, moves=self.all(rest), **given, span=span)

    def move(self, node: Any, span: t.Span) -> t.Move:
        given: dict[str, Any] = {}
        for part in node.children:
            if isinstance(part, Token):
                given["effect"] = _unquote(part)
            elif part.data == "value":
                given["to"] = self.all(part.children)
            elif part.data == "condition":
                given["when"] = self.build(part.children[0])
            elif part.data == "number":
                given["cost"] = self.build(part).value
            elif part.data == "loss":
                given["kind"] = str(part.children[0])
                if len(part.children) > 1:
                    given["low"], given["high"] = self._share(part)
            elif part.data == "source":
                given["see"] = _unquote(part.children[0])
            else:  # down or up, per step, per halving, unsafe
                given[str(part.data)] = str(part.children[0]) if part.children else True
        return t.Move(**given, span=span)

    def _share(self, node: Any) -> tuple[float, float]:
        """Return how much is lost: two numbers in percent, or as shares of one."""
        low, high = (self.build(part) for part in node.children[1:] if not isinstance(part, Token))
        units = {low.unit, high.unit} - {None}
        if units - {"%"} or low.value > high.value:
            raise RuleTextError(
                _start(node), "what is lost is a share, from a lower to a higher one, such as 20 .. 30 %"
            )
        return tuple(n.value / 100 if units else n.value for n in (low, high))

    def let(self, node: Any, span: t.Span) -> t.Let:
        name, *parameters, body = node.children
        names = tuple(map(_name, parameters[0].children)) if parameters else ()
        return t.Let(_name(name), names, self.build(body), span=span)

    def role(self, node: Any, span: t.Span) -> t.Role:
        name, *rest = node.children
        when = None
        if rest and rest[0].data == "role_when":
            when = self.build(rest.pop(0).children[0])
        return t.Role(_name(name), when, self.all(rest), span=span)

    def registry(self, node: Any, span: t.Span) -> t.Registry:
        prefix, table, *keys = map(str, node.children)
        return t.Registry(prefix, table, tuple(keys), span=span)

    def binding(self, node: Any, span: t.Span) -> t.Binding:
        name, source, *clauses = node.children
        given: dict[str, Any] = {}
        for clause in clauses:
            kind = {"null_is": "null"}.get(clause.data, str(clause.data))
            if kind in given:
                raise RuleTextError(_start(clause), f"{kind} is said twice")
            children = [c for c in clause.children if not isinstance(c, Token)]
            given[kind] = self.build(children[0])
            if kind == "default" and isinstance(clause.children[-1], Token):
                given["citation"] = _unquote(clause.children[-1])
        return t.Binding(str(name), self.build(source), span=span, **given)

    def one_scope(self, node: Any, span: t.Span) -> t.Scope:
        name, *rest = self.children(node)
        return t.Scope(name, tuple(zip(rest[0::2], rest[1::2], strict=True)), span=span)

    def bare(self, node: Any, span: t.Span) -> t.Rule:
        condition, requirement = self.arrow(node.children[0])
        return t.Rule("", "", "error", (), condition, requirement, span=span)

    def arrow(self, node: Any) -> tuple[Any, Any]:
        *condition, requirement = (self.build(c) for c in node.children if not isinstance(c, Token))
        return condition[0] if condition else None, requirement

    def rule(self, node: Any, span: t.Span) -> t.Rule:
        code, name, level, *rest = node.children
        given: dict[str, Any] = {"scope": ()}
        lists: dict[str, list[Any]] = {"see": [], "next": [], "examples": []}
        arrow = None
        for part in rest:
            kind = str(part.data)
            if kind == "scope":
                given[kind] = self.all(part.children)
            elif kind == "example":
                lists["examples"].append(self.build(part))
            elif kind in lists:
                lists[kind].append(_unquote(part.children[0]))
            elif kind in given or (kind == "arrow" and arrow is not None):
                raise RuleTextError(
                    _start(part), f"a rule has one {'requirement' if kind == 'arrow' else kind}"
                )
            elif kind == "arrow":
                arrow = self.arrow(part)
            else:  # say, why, at
                (given[kind],) = self.children(part)
                if kind == "say":
                    given["said_at"] = (part.children[0].start_pos, part.children[0].end_pos)
        if arrow is None:
            raise RuleTextError(span[0], f"rule {code} has no requirement; write CONDITION -> REQUIREMENT")
        given |= {"condition": arrow[0], "requirement": arrow[1]}
        given |= {kind: tuple(each) for kind, each in lists.items()}
        return t.Rule(str(code), str(name), str(level), **given, span=span)


def _name(token: Token) -> str:
    if token in _NO_NAMES:
        raise RuleTextError(token.start_pos or 0, f"{str(token)!r} is a word of the language and no name")
    return str(token)


def _start(node: Any) -> int:
    return int(node.meta.start_pos) if isinstance(node, Tree) and not node.meta.empty else 0


def _unquote(token: str) -> str:
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), str(token)[1:-1])


def _version(token: str) -> t.Version:
    """Return ``v1.0.4`` as (1, 0, 4); zeros at the end do not count."""
    numbers = [int(part) for part in token[1:].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return t.Version(tuple(numbers))


def _steps(token: str) -> tuple[str | int, ...]:
    """Return ``$.a[*].b[0]`` as ``("a", "*", "b", 0)``."""
    pieces = re.findall(r'\."([^"]*)"|\.([\w-]+)|\[(\d+)\]|\[(\*)\]', token)
    return tuple(int(index) if index else quoted or plain or every for quoted, plain, index, every in pieces)


_VALUES: dict[str, Callable[[str], Any]] = {
    "STRING": _unquote,
    "PATH": _steps,
    "VERSION": _version,
    "TRUE": lambda _: True,
    "FALSE": lambda _: False,
}
