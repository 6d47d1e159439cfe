"""lark's tree to ours: the children of each of the grammar's rules become one frozen node.

What stands for something longer becomes that: a name with a dot in front, ``first(…)``, ``set(…)``, what is
given to all examples of a rule. What a file says once of many statements is for expand.py.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from lark import Token, Tree

from cfglint.lang import tree as t
from cfglint.lang.shorthand import (
    RuleTextError,
    address,
    first_of,
    places_of,
    repeated,
    start_of,
    steps_of,
    unquote,
    version_of,
    with_given,
)
from cfglint.lang.show import path as path_text

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 60  # of expressions; more is a mistake or an attack, and every later pass recurses


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


_NO_NAMES = words("and or not in like if then else match has true false null mod all any sum count min max")
# The children of these make the node's fields, in their order; of the second, a tuple.
_NODES: dict[str, Callable[..., t.Node]] = {
    "checked": t.Checked,
    "detect": t.Detect,
    "fact": t.Fact,
    "pack": t.Pack,
    "file": t.NamesFile,
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
_LISTED: dict[str, Callable[..., t.Node]] = {
    "conjunction": partial(t.Junction, "and"),
    "disjunction": partial(t.Junction, "or"),
    "list_of": t.ListOf,
    "record": t.RecordOf,
}
_HOLE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")  # of a message
_CODE = re.compile(r"[A-Z]{3}[0-9]{3}")
_KEBAB = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_EMPTY = words("FILE NAMES_ARE_KEYS NULL RANGE SECTIONS_ARE_JOBS")


class Transformer:
    """Turns lark's tree into ours; recursion is bounded by the bracket depth and by ``depth``.

    ``parse`` reads the expressions that messages hold in braces. ``prefix`` is what a name that begins with
    a dot stands below, ``sources`` are the addresses that citations are below, by their names.
    """

    def __init__(self, parse: Callable[[str], Any]) -> None:
        self.parse = parse
        self.depth = 0
        self.prefix = ""
        self.sources: dict[str, str] = {}
        self.places: list[int] = []  # of the characters of a message's expression, in the file

    def build(self, node: Any) -> Any:
        self.depth += 1
        if self.depth > MAX_DEPTH + 8:  # a statement has a few levels of its own
            raise RuleTextError(
                start_of(node), f"this is nested more than {MAX_DEPTH} deep; give its parts names with let"
            )
        span = (
            (self.at(node.meta.start_pos), self.at(node.meta.end_pos)) if not node.meta.empty else t.NO_SPAN
        )
        try:
            if node.data in _NODES:
                return _NODES[node.data](*self.children(node), span=span)
            if node.data in _LISTED:
                return _LISTED[node.data](self.all(node.children), span=span)
            return getattr(self, node.data)(node, span)
        finally:
            self.depth -= 1

    def all(self, nodes: Any) -> tuple[Any, ...]:
        return tuple(self.build(n) for n in nodes)

    def at(self, offset: int) -> int:
        """Return where a character stands in the file."""
        return self.places[min(offset, len(self.places) - 1)] if self.places else offset

    def children(self, node: Any) -> list[Any]:
        """Build a node's children."""
        return [
            self.token(child) if isinstance(child, Token) else self.build(child)
            for child in node.children
            if not isinstance(child, Token) or child.type not in _EMPTY
        ]

    def token(self, token: Token) -> Any:
        """Return what a token stands for."""
        return self.named(token) if token.type == "NAME" else _VALUES.get(token.type, str)(token)

    def named(self, token: Token) -> str:
        """Return a name in full. Words of the language are none."""
        if token in _NO_NAMES:
            raise RuleTextError(token.start_pos or 0, f"{str(token)!r} is a word of the language and no name")
        if not token.startswith("."):
            return str(token)
        if not self.prefix:
            raise RuleTextError(
                token.start_pos or 0,
                f"{str(token)!r} needs a line `prefix NAME` above: it stands for NAME{token}",
            )
        return self.prefix + token

    def texts(self, node: Any, span: t.Span) -> str:  # noqa: ARG002
        return "".join(map(unquote, node.children))

    def asks(self, node: Any, span: t.Span) -> str:  # noqa: ARG002
        return str(self.build(node.children[0]))

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
        return t.Version(version_of(node.children[0]).numbers, span=span)

    def field(self, node: Any, span: t.Span) -> tuple[Any, ...]:  # noqa: ARG002
        return tuple(self.children(node))

    given = assigned = field

    def has(self, node: Any, span: t.Span) -> t.Has | t.Junction:
        keys = tuple(t.Has(path, span=path.span) for path in self.all(node.children))
        return t.Has(keys[0].path, span=span) if len(keys) == 1 else t.Junction("or", keys, span=span)

    def call(self, node: Any, span: t.Span) -> Any:
        function, *arguments = self.children(node)
        if function == "first":
            return first_of(arguments, span)
        if function == "set":
            if len(arguments) != 1 or not isinstance(arguments[0], t.Path):
                raise RuleTextError(span[0], "set(…) takes one key: set($.a.b)")
            is_there, value = (
                t.Has(arguments[0], span=span),
                t.Compare((arguments[0], t.Null()), ("!=",), span=span),
            )
            return t.Junction("and", (is_there, value), span=span)
        return t.Call(function, tuple(arguments), span=span)

    def in_table(self, node: Any, span: t.Span) -> Any:
        item, name = self.children(node)
        test = t.Call(f"{name}.{t.LISTS}", (item,), span=span)
        return test if node.data == "in_table" else t.Not(test, span=span)

    not_in_table = in_table

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
                raise RuleTextError(start_of(arm), "no arm can follow else")
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
            tuple(unquote(w) if w.type == "STRING" else str(w) for w in m.children) for m in node.children
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
            given["keeping"], *partners = self.children(rest.pop(0))
            given["partners"] = tuple(partners)
        kind = str(domain.data).removesuffix("_value")
        known = path_text(self.build(name).steps) if isinstance(name, Tree) else self.named(name)
        return t.Knob(known, kind, moves=self.all(rest), **given, span=span)

    def move(self, node: Any, span: t.Span) -> t.Move:
        given: dict[str, Any] = {}
        for part in node.children:
            if part.data == "texts":
                given["effect"] = self.build(part)
            elif part.data == "value":
                given["to"] = self.all(part.children)
            elif part.data == "condition":
                given["when"] = self.build(part.children[0])
            elif part.data == "leaving":
                given["leaving"] = self.build(part.children[0])
            elif part.data == "number":
                given["cost"] = self.build(part).value
            elif part.data == "loss":
                given["kind"] = str(part.children[0])
                if len(part.children) > 1:
                    given["low"], given["high"] = self._share(part)
            elif part.data == "cited":
                given["see"] = self.cited(part)
            elif part.data == "unsafe":
                given["unsafe"] = True
                if part.children:
                    given["risk"] = str(part.children[0])
            else:  # down or up, per step, per halving
                given[str(part.data)] = str(part.children[0]) if part.children else True
        return t.Move(**given, span=span)

    def _share(self, node: Any) -> tuple[float, float]:
        """Return how much is lost: two numbers in percent, or as shares of one."""
        low, high = (self.build(part) for part in node.children[1:] if not isinstance(part, Token))
        units = {low.unit, high.unit} - {None}
        if units - {"%"} or low.value > high.value:
            raise RuleTextError(
                start_of(node), "what is lost is a share, from a lower to a higher one, such as 20 .. 30 %"
            )
        return tuple(n.value / 100 if units else n.value for n in (low, high))

    def let(self, node: Any, span: t.Span) -> t.Let:
        name, *parameters, body = node.children
        names = tuple(map(self.named, parameters[0].children)) if parameters else ()
        return t.Let(self.named(name), names, self.build(body), span=span)

    def role(self, node: Any, span: t.Span) -> t.Role:
        name, *rest = node.children
        when = None
        if rest and rest[0].data == "role_when":
            when = self.build(rest.pop(0).children[0])
        return t.Role(self.named(name), when, self.all(rest), span=span)

    def registry(self, node: Any, span: t.Span) -> t.Registry:
        prefix, table, *keys = self.children(node)
        return t.Registry(prefix, table, tuple(keys), span=span)

    def binding(self, node: Any, span: t.Span) -> tuple[t.Fact | t.Binding, ...]:
        """Return a binding, one for each place of ``first(…)``; before them the fact that it declares."""
        name, *rest = node.children
        declares = rest.pop(0) if rest[0].data == "declared" else None
        given: dict[str, Any] = {}
        for clause in rest[1:]:
            kind = {"null_is": "null"}.get(clause.data, str(clause.data))
            if kind in given:
                raise RuleTextError(start_of(clause), f"{kind} is said twice")
            children = [self.build(c) for c in clause.children if not isinstance(c, Token)]
            given[kind] = children[0]
            if kind == "default" and len(children) > 1:
                given["citation"] = children[1]
        full = self.named(name)
        places = (
            rest[0].children[1:] if rest[0].data == "call" and rest[0].children[0] == "first" else rest[:1]
        )
        bindings = []
        for place in places:
            bindings.append(t.Binding(full, self.build(place), span=span, **given))
            given = {kind: given[kind] for kind in ("when", "null") if kind in given}  # one default is enough
        if declares is None:
            return tuple(bindings)
        return t.Fact(full, *self.children(declares), span=span), *bindings

    def writes(self, node: Any, span: t.Span) -> t.Write:
        name, *rest = node.children
        cited = rest.pop().children if rest[-1].data == "texts" else ()
        parts = self.all(part for part in rest if part.data == "assigned")
        keys = tuple((path, *value, None)[:2] for path, *value in parts)  # `not $.key` has none
        place = next(i for i, part in enumerate(rest) if part.data == "assigned")
        value = self.build(rest[0]) if place else None
        when = None if rest[-1].data == "assigned" else self.build(rest[-1])
        return t.Write(self.named(name), value, keys, when, "".join(map(unquote, cited)), span=span)

    def framework(self, node: Any, span: t.Span) -> t.Framework:
        """Return a framework's block; facts that its bindings declare stay among its entries."""
        name, *entries = self.children(node)
        return t.Framework(name, tuple(each for entry in entries for each in several(entry)), span=span)

    def each_entry(self, node: Any, span: t.Span) -> tuple[Any, ...]:  # noqa: ARG002
        return tuple(each for entry in repeated(node) for each in several(self.build(entry)))

    def one_scope(self, node: Any, span: t.Span) -> t.Scope:
        name, *rest = self.children(node)
        return t.Scope(name, tuple(zip(rest[0::2], rest[1::2], strict=True)), span=span)

    def bare(self, node: Any, span: t.Span) -> t.Rule:
        condition, requirement = self.arrow(node.children[0])
        return t.Rule("", "", "error", (), condition, requirement, span=span)

    def arrow(self, node: Any) -> tuple[Any, Any]:
        *condition, requirement = (self.build(c) for c in node.children if not isinstance(c, Token))
        return condition[0] if condition else None, requirement

    def example(self, node: Any, span: t.Span) -> t.Example:
        kind, *rest = node.children
        given = self.all(part for part in rest if not isinstance(part, Token))
        twice = next(
            (key for i, (key, _) in enumerate(given) if key in [other for other, _ in given[:i]]), None
        )
        if twice is not None:
            raise RuleTextError(twice.span[0], "this is given twice")
        return t.Example(str(kind), given, span=span)

    def given_all(self, node: Any, span: t.Span) -> tuple[Any, ...]:  # noqa: ARG002
        return self.all(node.children)

    def say(self, node: Any, span: t.Span) -> t.Say:
        *when, texts = node.children
        return t.Say(self.build(when[0]) if when else None, self._parts(texts), span=span)

    def _parts(self, node: Any) -> tuple[str | t.Expr, ...]:
        """Split a message into its texts and the expressions in its braces; ``{{`` is a brace itself."""
        text, places = "", []
        for token in node.children:
            text += unquote(token)
            places += places_of(token)
        places.append(places[-1] + 1 if places else 0)
        parts: list[str | t.Expr] = [""]
        at = 0
        for hole in _HOLE.finditer(text):
            parts.append(text[at : hole.start()])
            at = hole.end()
            if hole[0] in ("{{", "}}"):
                parts.append(hole[0][0])
            elif hole[1] is None:
                mistake = f"this {hole[0]} has no partner; a brace itself is written {hole[0] * 2}"
                raise RuleTextError(places[hole.start()], mistake)
            else:
                parts.append(self._hole(hole[1], places[hole.start() + 1 :]))
        parts.append(text[at:])
        joined: list[str | t.Expr] = []
        for part in parts:
            if isinstance(part, str) and joined and isinstance(joined[-1], str):
                joined[-1] += part
            elif part != "":
                joined.append(part)
        return tuple(joined)

    def _hole(self, text: str, places: list[int]) -> t.Expr:
        try:
            tree = self.parse(text)
        except RuleTextError as mistake:
            raise RuleTextError(places[min(mistake.offset, len(places) - 1)], str(mistake)) from None
        self.places = places
        try:
            part: t.Expr = self.build(tree.children[0])
            return part
        finally:
            self.places = []

    def cited(self, node: Any) -> str:
        """Return what a ``see`` cites, as an address where its source is known."""
        return address(self.build(node.children[0]), self.sources)

    def rule(self, node: Any, span: t.Span) -> t.Rule:
        code, name, level, *rest = node.children
        if not _CODE.fullmatch(code):
            raise RuleTextError(
                code.start_pos, f"a code is three capitals and three digits, such as ABC101, not {code}"
            )
        if not _KEBAB.fullmatch(name):
            hyphened = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
            raise RuleTextError(
                name.start_pos, f"a rule's name is in lower case: write {hyphened}, not {name}"
            )
        given: dict[str, Any] = {}
        lists: dict[str, list[Any]] = {"says": [], "see": [], "next": [], "examples": []}
        arrow = None
        for part in rest:
            kind = {"given_all": "given", "versions": "scope"}.get(part.data, str(part.data))
            if kind == "example":
                lists["examples"].append(self._on_first(part, lists["examples"]))
            elif kind == "say":
                if lists["says"] and lists["says"][-1].when is None:
                    raise RuleTextError(start_of(part), "a rule has one say without when, and it stands last")
                lists["says"].append(self.build(part))
            elif kind in lists:
                lists[kind].append(self.cited(part) if kind == "see" else self.build(part.children[0]))
            elif kind in given or (kind == "arrow" and arrow is not None):
                raise RuleTextError(
                    start_of(part), f"a rule has one {'requirement' if kind == 'arrow' else kind}"
                )
            elif kind == "arrow":
                arrow = self.arrow(part)
            elif kind in ("scope", "given"):
                given[kind] = self._limits(part) if part.data == "versions" else self.all(part.children)
            else:  # why, at
                (given[kind],) = self.children(part)
        if arrow is None:
            raise RuleTextError(span[0], f"rule {code} has no requirement; write CONDITION -> REQUIREMENT")
        all_have = given.pop("given", ())
        given |= {"condition": arrow[0], "requirement": arrow[1], "scope": given.get("scope", ())}
        given |= {kind: tuple(each) for kind, each in lists.items()}
        given["examples"] = tuple(with_given(example, all_have) for example in given["examples"])
        return t.Rule(str(code), str(name), str(level), **given, span=span)

    def _limits(self, node: Any) -> tuple[t.Scope, ...]:
        """Return the versions of a rule in a section: those of the frameworks that the section is for."""
        parts = self.children(node)
        return (t.Scope("", tuple(zip(parts[0::2], parts[1::2], strict=True))),)

    def _on_first(self, node: Any, before: list[t.Example]) -> t.Example:
        """Return an example; one with ``but`` takes over what the first one gives and it does not."""
        example: t.Example = self.build(node)
        if not any(isinstance(part, Token) and part.type == "BUT" for part in node.children):
            return example
        if not before:
            raise RuleTextError(
                start_of(node), "but … takes over from the first example of a rule, and this is it"
            )
        return with_given(example, before[0].given)


def several(entry: Any) -> tuple[Any, ...]:
    """Return the entries that one of a framework's block stands for."""
    return entry if isinstance(entry, tuple) else (entry,)


_VALUES: dict[str, Callable[[str], Any]] = {
    "STRING": unquote,
    "PATH": steps_of,
    "VERSION": version_of,
    "TRUE": lambda _: True,
    "FALSE": lambda _: False,
}
