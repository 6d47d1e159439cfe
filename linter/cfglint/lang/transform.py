"""lark's tree to ours: the children of each of the grammar's rules become one frozen node."""

from __future__ import annotations

import re
from typing import Any

from lark import Token, Tree

from cfglint.lang import tree as t

MAX_DEPTH = 60  # of expressions; more is a mistake or an attack, and every later pass recurses


class RuleTextError(Exception):
    """What is wrong with a text, at an offset."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


class Transformer:
    """Turns lark's tree into ours; recursion is bounded by the bracket depth and by `_deep`."""

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
            return getattr(self, node.data)(node, span)
        finally:
            self.depth -= 1

    def all(self, nodes: Any) -> tuple[Any, ...]:
        return tuple(self.build(n) for n in nodes)

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

    def string(self, node: Any, span: t.Span) -> t.Text:
        return t.Text(_unquote(node.children[0]), span=span)

    def truth(self, node: Any, span: t.Span) -> t.Truth:
        return t.Truth(str(node.children[0]) == "true", span=span)

    def null(self, node: Any, span: t.Span) -> t.Null:  # noqa: ARG002
        return t.Null(span=span)

    def version(self, node: Any, span: t.Span) -> t.Version:
        return t.Version(version_numbers(str(node.children[0])[1:]), span=span)

    def name(self, node: Any, span: t.Span) -> t.Name:
        return t.Name(_name(node.children[0]), span=span)

    def path(self, node: Any, span: t.Span) -> t.Path:
        return t.Path(path_steps(str(node.children[0])), span=span)

    def has(self, node: Any, span: t.Span) -> t.Has:
        return t.Has(self.build(node.children[0]), span=span)

    def list_of(self, node: Any, span: t.Span) -> t.ListOf:
        return t.ListOf(self.all(node.children), span=span)

    def field(self, node: Any, span: t.Span) -> tuple[str, Any]:  # noqa: ARG002
        return str(node.children[0]), self.build(node.children[1])

    def record(self, node: Any, span: t.Span) -> t.RecordOf:
        return t.RecordOf(self.all(node.children), span=span)

    def not_(self, node: Any, span: t.Span) -> t.Not:
        return t.Not(self.build(node.children[0]), span=span)

    def disjunction(self, node: Any, span: t.Span) -> t.Junction:
        return t.Junction("or", self.all(node.children), span=span)

    def conjunction(self, node: Any, span: t.Span) -> t.Junction:
        return t.Junction("and", self.all(node.children), span=span)

    def negative(self, node: Any, span: t.Span) -> Any:
        sign, operand = node.children
        inner = self.build(operand)
        return inner if str(sign) == "+" else t.Negative(inner, span=span)

    def sum(self, node: Any, span: t.Span) -> t.Sum:
        return t.Sum(self._operated(node, "+"), span=span)

    def product(self, node: Any, span: t.Span) -> t.Product:
        return t.Product(self._operated(node, "*"), span=span)

    def _operated(self, node: Any, first: str) -> tuple[tuple[str, Any], ...]:
        operators = [first, *(str(c) for c in node.children[1::2])]
        return tuple(zip(operators, self.all(node.children[0::2]), strict=True))

    def compare(self, node: Any, span: t.Span) -> t.Compare:
        return t.Compare(self.all(node.children[0::2]), tuple(str(c) for c in node.children[1::2]), span=span)

    def range(self, node: Any, span: t.Span) -> t.Range:
        return t.Range(self.build(node.children[0]), self.build(node.children[2]), span=span)

    def member(self, node: Any, span: t.Span) -> t.Member:
        item, container = self.all(node.children)
        return t.Member(item, container, node.data == "not_member", span=span)

    not_member = member

    def like(self, node: Any, span: t.Span) -> t.Like:
        subject, pattern = self.all(node.children)
        return t.Like(subject, pattern, node.data == "not_like", span=span)

    not_like = like

    def if_(self, node: Any, span: t.Span) -> t.If:
        return t.If(*self.all(node.children), span=span)

    def quantified(self, node: Any, span: t.Span) -> t.Quantifier:
        kind, variable, source, body = node.children
        return t.Quantifier(str(kind), _name(variable), self.build(source), self.build(body), span=span)

    def call(self, node: Any, span: t.Span) -> t.Call:
        return t.Call(str(node.children[0]), self.all(node.children[1:]), span=span)

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
        low = high = unit = None
        for part in rest:
            if part.data == "limits":
                low, high = (
                    self.build(part.children[0]),
                    None if len(part.children) < 3 else self.build(part.children[2]),
                )
            else:
                unit = str(part.children[0])
        return t.TypeOf(str(name), (), unit, low, high, span=span)

    def one_of(self, node: Any, span: t.Span) -> t.TypeOf:
        spelled = (
            tuple(_unquote(w) if w.type == "STRING" else str(w) for w in m.children) for m in node.children
        )
        return t.TypeOf("one", tuple(spelled), span=span)

    def fact(self, node: Any, span: t.Span) -> t.Fact:
        name, kind, *about = node.children
        return t.Fact(_name(name), self.build(kind), _unquote(about[0]) if about else "", span=span)

    def knob(self, node: Any, span: t.Span) -> t.Knob:
        name, domain, *rest = node.children
        low = high = step = keeping = None
        partners: tuple[str, ...] = ()
        values: tuple[Any, ...] = ()
        if domain.data == "step":
            low, high, step = (self.build(c) for c in domain.children if not isinstance(c, Token))
        elif domain.data in ("halving", "doubling"):
            low = self.build(domain.children[0])
        elif domain.data == "values":
            only = self.build(domain.children[0])
            values = only.items if isinstance(only, t.ListOf) else (only,)
        moves = []
        for part in rest:
            if part.data == "keeping":
                keeping, *others = map(str, part.children)
                partners = tuple(others)
            else:
                moves.append(self.build(part))
        return t.Knob(
            str(name),
            str(domain.data).removesuffix("_value"),
            low,
            high,
            step,
            values,
            keeping,
            tuple(moves),
            partners,
            span=span,
        )

    def move(self, node: Any, span: t.Span) -> t.Move:
        direction, cost, per_step, unsafe, effect = "any", 0.0, False, False, ""
        kind, see, per_halving = "", "", False
        to: tuple[Any, ...] = ()
        when = None
        bounds: tuple[float | None, float | None] = (None, None)
        for part in node.children:
            if isinstance(part, Token):
                effect = _unquote(part)
            elif part.data == "direction":
                direction = str(part.children[0])
            elif part.data == "value":
                to = self.all(part.children)
            elif part.data == "condition":
                when = self.build(part.children[0])
            elif part.data == "number":
                cost = self.build(part).value
            elif part.data == "loss":
                kind = str(part.children[0])
                bounds = self._share(part) if len(part.children) > 1 else bounds
            elif part.data == "source":
                see = _unquote(part.children[0])
            else:
                per_step = per_step or part.data == "per_step"
                per_halving = per_halving or part.data == "per_halving"
                unsafe = unsafe or part.data == "unsafe"
        more = (kind, *bounds, see, per_halving, to, when)
        return t.Move(direction, cost, per_step, unsafe, effect, *more, span=span)

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
        names = tuple(_name(p) for p in parameters[0].children) if parameters else ()
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

    def framework(self, node: Any, span: t.Span) -> t.Framework:
        return t.Framework(str(node.children[0]), self.all(node.children[1:]), span=span)

    def detect(self, node: Any, span: t.Span) -> t.Detect:
        return t.Detect(self.build(node.children[0]), span=span)

    def setting(self, node: Any, span: t.Span) -> t.Setting:
        key, value = node.children
        return t.Setting(str(key), _unquote(value) if value.type == "STRING" else str(value), span=span)

    def names(self, node: Any, span: t.Span) -> t.NamesAreKeys:  # noqa: ARG002
        return t.NamesAreKeys(span=span)

    def sections(self, node: Any, span: t.Span) -> t.SectionsAreJobs:  # noqa: ARG002
        return t.SectionsAreJobs(span=span)

    def tied(self, node: Any, span: t.Span) -> t.Tie:
        name, path, *citation = node.children
        return t.Tie(str(name), self.build(path), _unquote(citation[0]) if citation else "", span=span)

    def file(self, node: Any, span: t.Span) -> t.NamesFile:
        return t.NamesFile(self.build(node.children[1]), span=span)

    def since(self, node: Any, span: t.Span) -> t.Since:
        version, *when = node.children
        number = t.Version(version_numbers(str(version)[1:]))
        return t.Since(number, self.build(when[0]) if when else None, span=span)

    def binding(self, node: Any, span: t.Span) -> t.Binding:
        name, source, *clauses = node.children
        given: dict[str, Any] = {}
        for clause in clauses:
            kind = {"null_is": "null"}.get(str(clause.data), str(clause.data))
            if kind in given:
                raise RuleTextError(_start(clause), f"{kind} is said twice")
            children = [c for c in clause.children if not isinstance(c, Token)]
            given[kind] = self.build(children[0])
            if kind == "default" and isinstance(clause.children[-1], Token):
                given["citation"] = _unquote(clause.children[-1])
        return t.Binding(str(name), self.build(source), span=span, **given)

    def one_scope(self, node: Any, span: t.Span) -> t.Scope:
        name, *rest = node.children
        numbers = [t.Version(version_numbers(str(v)[1:])) for v in rest[1::2]]
        return t.Scope(str(name), tuple(zip(map(str, rest[0::2]), numbers, strict=True)), span=span)

    def given(self, node: Any, span: t.Span) -> tuple[Any, Any]:  # noqa: ARG002
        return self.build(node.children[0]), self.build(node.children[1])

    def example(self, node: Any, span: t.Span) -> t.Example:
        kind, *given = node.children
        return t.Example(str(kind), self.all(given), span=span)

    def bare(self, node: Any, span: t.Span) -> t.Rule:
        condition, requirement = self.arrow(node.children[0])
        return t.Rule("", "", "error", (), condition, requirement, span=span)

    def arrow(self, node: Any) -> tuple[Any, Any]:
        expressions = [self.build(c) for c in node.children if not isinstance(c, Token)]
        return (None, expressions[0]) if len(expressions) == 1 else (expressions[0], expressions[1])

    def rule(self, node: Any, span: t.Span) -> t.Rule:
        code, name, level, *rest = node.children
        scope: tuple[Any, ...] = ()
        once: dict[str, Any] = {}
        see: list[str] = []
        after: list[str] = []
        examples: list[t.Example] = []
        said_at = t.NO_SPAN
        for part in rest:
            kind = str(part.data)
            if kind == "scope":
                scope = self.all(part.children)
            elif kind == "see":
                see.append(_unquote(part.children[0]))
            elif kind == "next":
                after.append(_unquote(part.children[0]))
            elif kind == "example":
                examples.append(self.build(part))
            elif kind in once:
                raise RuleTextError(
                    _start(part), f"a rule has one {'requirement' if kind == 'arrow' else kind}"
                )
            elif kind == "arrow":
                once[kind] = self.arrow(part)
            elif kind == "at":
                once[kind] = self.build(part.children[0])
            else:
                once[kind] = _unquote(part.children[0])
                if kind == "say":
                    said_at = (part.children[0].start_pos, part.children[0].end_pos)
        if "arrow" not in once:
            raise RuleTextError(span[0], f"rule {code} has no requirement; write CONDITION -> REQUIREMENT")
        condition, requirement = once["arrow"]
        return t.Rule(
            str(code), str(name), str(level), scope, condition, requirement,
            once.get("say", ""), once.get("why", ""), tuple(see), once.get("at"), tuple(examples), said_at,
            tuple(after), span=span,
        )  # fmt: skip


_WORDS_OF_THE_LANGUAGE = frozenset(
    {"and", "or", "not", "in", "like", "if", "then", "else", "match", "has", "true", "false", "null", "mod"}
    | {"all", "any", "sum", "count", "min", "max"}
)


def _name(token: Token) -> str:
    if token in _WORDS_OF_THE_LANGUAGE:
        raise RuleTextError(token.start_pos or 0, f"{str(token)!r} is a word of the language and no name")
    return str(token)


def _start(node: Any) -> int:
    return int(node.meta.start_pos) if isinstance(node, Tree) and not node.meta.empty else 0


def _unquote(token: str) -> str:
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), str(token)[1:-1])


def version_numbers(text: str) -> tuple[int, ...]:
    """Return ``"1.0.4"`` as ``(1, 0, 4)``; zeros at the end do not count."""
    numbers = [int(part) for part in text.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def path_steps(text: str) -> tuple[str | int, ...]:
    """Return ``$.a[*].b[0]`` as ``("a", "*", "b", 0)``."""
    steps: list[str | int] = []
    for quoted, plain, index, every in re.findall(r'\."([^"]*)"|\.([\w-]+)|\[(\d+)\]|\[(\*)\]', text):
        steps.append(int(index) if index else (quoted or plain or every))
    return tuple(steps)
