"""Tree to rule text; ``parse(show(tree)) == tree`` for every tree that the parser can give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.lang import tree as t

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# How tightly each kind of expression binds; an operand that binds less tightly needs brackets.
_LOOSE, _OR, _AND, _NOT, _COMPARE, _RANGE, _SUM, _PRODUCT, _UNARY, _ATOM = range(10)


def quote(text: str) -> str:
    """Return ``text`` as a string of the language."""
    return (
        '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
    )


def number(value: float) -> str:
    """Return a number as the language writes it, exactly."""
    return (
        str(value)
        if isinstance(value, int)
        else repr(float(value)).removesuffix(".0")
        if value < 1e16
        else repr(value)
    )


def path(steps: Sequence[str | int]) -> str:
    """Return ``$.a[*].b`` for ``("a", "*", "b")``."""
    out = "$"
    for step in steps:
        if isinstance(step, int):
            out += f"[{step}]"
        elif step == "*":
            out += "[*]"
        elif step.replace("-", "a").isidentifier() and step.isascii() and not step.startswith("-"):
            out += f".{step}"
        else:
            out += f'."{step}"'
    return out


def _version(version: t.Version) -> str:
    return "v" + (".".join(map(str, version.numbers)) or "0")


def _kind(node: t.Expr) -> int:
    match node:
        case t.If() | t.Quantifier():
            return _LOOSE
        case t.Junction(operator="or"):
            return _OR
        case t.Junction():
            return _AND
        case t.Not():
            return _NOT
        case t.Compare() | t.Member() | t.Like():
            return _COMPARE
        case t.Range():
            return _RANGE
        case t.Sum():
            return _SUM
        case t.Product():
            return _PRODUCT
        case t.Negative():
            return _UNARY
        case _:
            return _ATOM


def show(node: t.Expr, names: Callable[[t.Expr], str | None] = lambda _: None) -> str:
    """Return the text of an expression; ``names`` may give other words for some of its parts."""
    return _Printer(names).at(node, _LOOSE)


class _Printer:
    def __init__(self, names: Callable[[t.Expr], str | None]) -> None:
        self.names = names

    def at(self, node: t.Expr, least: int) -> str:
        other = self.names(node)
        if other is not None:
            return other
        text = self.plain(node)
        return f"({text})" if _kind(node) < least else text

    def list(self, nodes: Sequence[t.Expr]) -> str:
        return ", ".join(self.at(n, _LOOSE) for n in nodes)

    def plain(self, node: t.Expr) -> str:
        match node:
            case t.Number(value, unit):
                return number(value) + (f" {unit}" if unit else "")
            case t.Text(value):
                return quote(value)
            case t.Truth(value):
                return "true" if value else "false"
            case t.Null():
                return "null"
            case t.Version():
                return _version(node)
            case t.Name(name):
                return name
            case t.Path(steps):
                return path(steps)
            case t.Has(inner):
                return f"has({path(inner.steps)})"
            case t.Not(operand):
                return f"not {self.at(operand, _NOT)}"
            case t.Junction(operator, operands):
                level = _OR if operator == "or" else _AND
                return f" {operator} ".join(self.at(o, level + 1) for o in operands)
            case t.Negative(operand):
                return f"-{self.at(operand, _UNARY)}"
            case t.Sum(terms):
                return self._chain(terms, _PRODUCT)
            case t.Product(factors):
                return self._chain(factors, _UNARY)
            case t.Compare(operands, operators):
                rest = (f" {o} {self.at(e, _RANGE)}" for o, e in zip(operators, operands[1:], strict=True))
                return self.at(operands[0], _RANGE) + "".join(rest)
            case t.Range(low, high):
                return f"{self.at(low, _SUM)} .. {self.at(high, _SUM)}"
            case t.ListOf(items):
                return f"[{self.list(items)}]"
            case t.RecordOf(fields):
                return "{" + ", ".join(f"{k}: {self.at(v, _LOOSE)}" for k, v in fields) + "}"
            case t.Member(item, container, negated):
                return f"{self.at(item, _RANGE)} {'not ' * negated}in {self.at(container, _RANGE)}"
            case t.Like(subject, pattern, negated):
                return f"{self.at(subject, _RANGE)} {'not ' * negated}like {self.at(pattern, _RANGE)}"
            case t.If(condition, then, other):
                branches = f"then {self.at(then, _LOOSE)} else {self.at(other, _LOOSE)}"
                return f"if {self.at(condition, _LOOSE)} {branches}"
            case t.Choice(subject, arms, other):
                parts = [
                    f"{' or '.join(self.at(p, _ATOM) for p in ps)}: {self.at(e, _LOOSE)}" for ps, e in arms
                ]
                if other is not None:
                    parts.append(f"else: {self.at(other, _LOOSE)}")
                return f"match {self.at(subject, _OR)} {{{', '.join(parts)}}}"
            case t.Call(function, arguments):
                return f"{function}({self.list(arguments)})"
            case t.Quantifier(kind, variable, source, body):
                return f"{kind} {variable} in {self.at(source, _OR)}: {self.at(body, _LOOSE)}"

    def _chain(self, parts: Sequence[tuple[str, t.Expr]], least: int) -> str:
        first = self.at(parts[0][1], least)
        return first + "".join(f" {operator} {self.at(e, least)}" for operator, e in parts[1:])


def _arrow(rule: t.Rule) -> str:
    left = f"{show(rule.condition)} -> " if rule.condition is not None else ""
    return left + show(rule.requirement)


def _word(word: str) -> str:
    return word if word.isidentifier() and word.isascii() and word not in ("of", "or") else quote(word)


def _type(node: t.TypeOf) -> str:
    if node.members:
        return "one of " + ", ".join(" or ".join(_word(w) for w in spellings) for spellings in node.members)
    text = node.name
    if node.low is not None:
        text += f" {show(node.low)} .." + (f" {show(node.high)}" if node.high is not None else "")
    return text + (f" in {node.unit}" if node.unit else "")


def _move(move: t.Move) -> str:
    where = "" if move.direction == "any" else f"{move.direction} "
    if move.to:
        where = f"to {' or '.join(map(show, move.to))} "
    where += f"when {show(move.when)} " if move.when is not None else ""
    text = f"{where}costs {number(move.cost)}"
    text += " per step" * move.per_step + " per halving" * move.per_halving
    if move.kind:
        text += f" {move.kind}"
        if move.low is not None and move.high is not None:
            text += f" {number(move.low)} .. {number(move.high)}"
    text += " unsafe" * move.unsafe + (f" {quote(move.effect)}" if move.effect else "")
    return text + (f" see {quote(move.see)}" if move.see else "")


def _domain(knob: t.Knob) -> str:
    if knob.domain == "step" and knob.low and knob.high and knob.step:
        return f"{show(knob.low)} .. {show(knob.high)} step {show(knob.step)}"
    if knob.domain in ("halving", "doubling") and knob.low:
        return f"{knob.domain} to {show(knob.low)}"
    return show(t.ListOf(knob.values)) if knob.domain == "values" else "any"


def _entry(entry: t.Entry) -> str:
    match entry:
        case t.Binding():
            text = f"{entry.name} <- {show(entry.source)}"
            if entry.when is not None:
                text += f" when {show(entry.when)}"
            if entry.default is not None:
                text += f" default {show(entry.default)}" + (
                    f" {quote(entry.citation)}" if entry.citation else ""
                )
            return text + (f" null -> {show(entry.null)}" if entry.null is not None else "")
        case t.Setting(key, value):
            return f"{key} {quote(value)}"
        case t.NamesAreKeys():
            return "names are keys"
        case t.SectionsAreJobs():
            return "sections are jobs"
        case t.Detect(condition):
            return f"detect {show(condition)}"
        case t.Tie(name, path, citation):
            return f"tied {name} with {show(path)}" + (f" {quote(citation)}" if citation else "")
        case t.NamesFile(path):
            return f"file {show(path)}"
        case t.Since(version, when):
            return f"version {_version(version)}" + (f" when {show(when)}" if when is not None else "")
        case t.Let():
            return show_statement(entry)


def _scope(scope: t.Scope) -> str:
    return scope.framework + "".join(f" {operator} {_version(v)}" for operator, v in scope.operators)


def show_statement(node: t.Statement) -> str:
    """Return the text of a statement, without a newline at its end."""
    match node:
        case t.Fact(name, type_of, about):
            return f"fact {name}: {_type(type_of)}" + (f" {quote(about)}" if about else "")
        case t.Knob():
            keeping = f" keeping {node.keeping}" if node.keeping else ""
            if node.partners:
                keeping += f" with {', '.join(node.partners)}"
            return f"knob {node.name} {_domain(node)}{keeping}" + "".join(f" {_move(m)}" for m in node.moves)
        case t.Let(name, parameters, body):
            return f"let {name}{'(' + ', '.join(parameters) + ')' if parameters else ''} = {show(body)}"
        case t.Role(name, when, fields):
            inner = ", ".join(f"{k}: {show(v)}" for k, v in fields)
            return f"role {name}{f' when {show(when)}' if when is not None else ''} {{{inner}}}"
        case t.Registry(prefix, table, keys):
            return f"registry {prefix} from {table} by {', '.join(keys)}"
        case t.Framework(name, entries):
            return "\n  ".join([f"framework {name} {{", *map(_entry, entries)]) + "\n}"
        case t.Rule(code=""):
            return _arrow(node)
        case t.Rule():
            scope = f" for {', '.join(map(_scope, node.scope))}" if node.scope else ""
            lines = [f"rule {node.code} {node.name} {node.level}{scope} {{", _arrow(node)]
            lines += [
                f"{key} {quote(value)}" for key, value in (("say", node.say), ("why", node.why)) if value
            ]
            lines += [f"see {quote(s)}" for s in node.see]
            lines += [f"next {quote(s)}" for s in node.next]
            if node.at is not None:
                lines.append(f"at {show(node.at)}")
            for example in node.examples:
                given = ", ".join(f"{show(k)}: {show(v)}" for k, v in example.given)
                lines.append(f"{example.kind} {{{given}}}")
            return "\n  ".join(lines) + "\n}"


def show_file(statements: Sequence[t.Statement]) -> str:
    """Return the text of a rule file."""
    return "".join(show_statement(s) + "\n" for s in statements)
