"""Rules as text: expressions and whole rules, which read back as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.lang import tree as t

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

# How tightly each kind of expression binds; an operand that binds less tightly needs brackets.
_LOOSE, _OR, _AND, _NOT, _COMPARE, _RANGE, _SUM, _PRODUCT, _UNARY, _ATOM = range(10)
_BINDS: dict[type[t.Node], int] = {
    t.If: _LOOSE,
    t.Quantifier: _LOOSE,
    t.Not: _NOT,
    t.Compare: _COMPARE,
    t.Member: _COMPARE,
    t.Like: _COMPARE,
    t.Range: _RANGE,
    t.Sum: _SUM,
    t.Product: _PRODUCT,
    t.Negative: _UNARY,
}
_JUNCTIONS = {"or": _OR, "and": _AND}


def quote(text: str) -> str:
    """Return ``text`` as a string of the language."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def number(value: float) -> str:
    """Return a number as the language writes it, exactly."""
    if isinstance(value, int):
        return str(value)
    return repr(float(value)).removesuffix(".0") if value < 1e16 else repr(value)


def path(steps: Sequence[str | int]) -> str:
    """Return ``$.a[*].b`` for ``("a", "*", "b")``."""
    out = "$"
    for step in steps:
        if isinstance(step, int) or step == "*":
            out += f"[{step}]"
        elif step.replace("-", "a").isidentifier() and step.isascii() and not step.startswith("-"):
            out += f".{step}"
        else:
            out += f'."{step}"'
    return out


def version(node: t.Version) -> str:
    """Return ``v1.2``."""
    return "v" + (".".join(map(str, node.numbers)) or "0")


_ATOMS: dict[type[t.Node], Callable[[Any], str]] = {
    t.Number: lambda node: number(node.value) + (f" {node.unit}" if node.unit else ""),
    t.Text: lambda node: quote(node.value),
    t.Truth: lambda node: "true" if node.value else "false",
    t.Null: lambda _: "null",
    t.Version: version,
    t.Name: lambda node: node.name,
    t.Path: lambda node: path(node.steps),
    t.Has: lambda node: f"has({path(node.path.steps)})",
}


def show(node: t.Expr, names: Callable[[t.Expr], str | None] = lambda _: None) -> str:
    """Return the text of an expression; ``names`` may give other words for some of its parts."""
    return _Printer(names).at(node, _LOOSE)


def _is_in_table(node: t.Expr) -> bool:
    """Whether this is ``x in table NAME``."""
    return isinstance(node, t.Call) and node.function.endswith(f".{t.LISTS}") and len(node.arguments) == 1


def _binds(node: t.Expr) -> int:
    if isinstance(node, t.Junction):
        return _JUNCTIONS[node.operator]
    return _COMPARE if _is_in_table(node) else _BINDS.get(type(node), _ATOM)


class _Printer:
    """Prints what is no atom by the method of its name."""

    def __init__(self, names: Callable[[t.Expr], str | None]) -> None:
        self.names = names

    def at(self, node: t.Expr, least: int) -> str:
        """Print a part where what binds less tightly than ``least`` needs brackets."""
        name = self.names(node)
        if name is not None:
            return name
        atom = _ATOMS.get(type(node))
        if atom is not None:
            return atom(node)
        text: str = getattr(self, "_" + type(node).__name__.lower())(node)
        return f"({text})" if _binds(node) < least else text

    def _list(self, nodes: Sequence[t.Expr]) -> str:
        return ", ".join(self.at(n, _LOOSE) for n in nodes)

    def _chain(self, parts: Sequence[tuple[str, t.Expr]], least: int) -> str:
        first = self.at(parts[0][1], least)
        return first + "".join(f" {operator} {self.at(e, least)}" for operator, e in parts[1:])

    def _not(self, node: t.Not) -> str:
        return f"not {self.at(node.operand, _NOT)}"

    def _junction(self, node: t.Junction) -> str:
        level = _JUNCTIONS[node.operator]
        return f" {node.operator} ".join(self.at(o, level + 1) for o in node.operands)

    def _negative(self, node: t.Negative) -> str:
        return f"-{self.at(node.operand, _UNARY)}"

    def _sum(self, node: t.Sum) -> str:
        return self._chain(node.terms, _PRODUCT)

    def _product(self, node: t.Product) -> str:
        return self._chain(node.factors, _UNARY)

    def _compare(self, node: t.Compare) -> str:
        return self._chain(tuple(zip(("", *node.operators), node.operands, strict=True)), _RANGE)

    def _range(self, node: t.Range) -> str:
        return f"{self.at(node.low, _SUM)} .. {self.at(node.high, _SUM)}"

    def _listof(self, node: t.ListOf) -> str:
        return f"[{self._list(node.items)}]"

    def _recordof(self, node: t.RecordOf) -> str:
        return "{" + ", ".join(f"{k}: {self.at(v, _LOOSE)}" for k, v in node.fields) + "}"

    def _member(self, node: t.Member) -> str:
        word = "not in" if node.negated else "in"
        return f"{self.at(node.item, _RANGE)} {word} {self.at(node.container, _RANGE)}"

    def _like(self, node: t.Like) -> str:
        word = "not like" if node.negated else "like"
        return f"{self.at(node.subject, _RANGE)} {word} {self.at(node.pattern, _RANGE)}"

    def _if(self, node: t.If) -> str:
        condition, then, other = (self.at(part, _LOOSE) for part in (node.condition, node.then, node.other))
        return f"if {condition} then {then} else {other}"

    def _choice(self, node: t.Choice) -> str:
        arms = [
            f"{' or '.join(self.at(p, _ATOM) for p in patterns)}: {self.at(value, _LOOSE)}"
            for patterns, value in node.arms
        ]
        if node.other is not None:
            arms.append(f"else: {self.at(node.other, _LOOSE)}")
        return f"match {self.at(node.subject, _OR)} {{{', '.join(arms)}}}"

    def _call(self, node: t.Call) -> str:
        if _is_in_table(node):
            table = node.function.removesuffix(f".{t.LISTS}")
            return f"{self.at(node.arguments[0], _RANGE)} in table {table}"
        return f"{node.function}({self._list(node.arguments)})"

    def _quantifier(self, node: t.Quantifier) -> str:
        head = f"{node.kind} {node.variable} in {self.at(node.source, _OR)}"
        return f"{head}: {self.at(node.body, _LOOSE)}"


def show_rule(rule: t.Rule) -> str:
    """Return the text of a rule, without a newline at its end; of one without a code, what it requires."""
    required = show(rule.requirement)
    arrow = required if rule.condition is None else f"{show(rule.condition)} -> {required}"
    if not rule.code:
        return arrow
    scope = f" for {', '.join(map(_scope, rule.scope))}" if rule.scope else ""
    lines = [f"rule {rule.code} {rule.name} {rule.level}{scope} {{", arrow]
    lines += [_say(say) for say in rule.says]
    lines += [f"why {quote(rule.why)}"] if rule.why else []
    lines += [f"see {quote(s)}" for s in rule.see]
    lines += [f"next {quote(s)}" for s in rule.next]
    if rule.at is not None:
        lines.append(f"at {show(rule.at)}")
    for example in rule.examples:
        given = ", ".join(f"{show(k)}: {show(v)}" for k, v in example.given)
        lines.append(f"{example.kind} {{{given}}}")
    return "\n  ".join(lines) + "\n}"


def _say(say: t.Say) -> str:
    when = f" when {show(say.when)}" if say.when is not None else ""
    texts = (
        part.replace("{", "{{").replace("}", "}}") if isinstance(part, str) else f"{{{show(part)}}}"
        for part in say.parts
    )
    return f"say{when} {quote(''.join(texts))}"


def _scope(scope: t.Scope) -> str:
    return scope.framework + "".join(f" {operator} {version(v)}" for operator, v in scope.operators)
