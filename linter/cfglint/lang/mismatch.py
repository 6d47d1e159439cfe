"""What to write where two types do not go together. Imported only when something is wrong."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cfglint.lang import tree as t
from cfglint.lang.show import quote, show
from cfglint.lang.types import MEMORY, OWN_UNIT, PLAIN, Type, describe, digits, measured
from cfglint.record import replace

if TYPE_CHECKING:
    from typing import TypeAlias

    Side: TypeAlias = tuple[t.Expr, Type]  # of a comparison

_TRUTHS = {"true": "true", "yes": "true", "on": "true", "1": "true"} | dict.fromkeys(
    ("false", "no", "off", "0"), "false"
)
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_NUMBER = re.compile(r"-?[0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def named(kind: Type) -> str:
    """Return a type's name in a sentence, as a fact is declared: "a fraction", "a count", "a memory"."""
    if kind.kind == "number" and kind.dimension == PLAIN and not kind.bare:
        if (kind.low, kind.high) == (0, 1) and not kind.whole:
            return "a fraction"
        if kind.whole and kind.low >= 0:
            return "a count"
    return str(kind)


def expected(node: t.Expr, kind: Type, wanted: Type) -> str:
    """Return the complaint about an expression of one type where another is wanted."""
    if wanted.kind == "list" and isinstance(node, (t.Text, t.Number, t.Name)):
        advice = f": write [{show(node)}]"
    else:
        advice = _literal(node, wanted) or _truth(node, kind, wanted) or _in_units((node, kind), wanted)
    return f"{show(node)} is {named(kind)}, but {named(wanted)} is expected here{advice}"


def comparison(left: Side, operator: str, right: Side) -> str:
    """Return the complaint about two operands that no operator compares."""
    for (one, x), sign, (other, y) in ((left, operator, right), (right, FLIPPED[operator], left)):
        advice = _literal(other, x) or _with_list((one, x), sign, (other, y))
        if advice:
            return f"{show(one)} is {named(x)}{advice}"
    (first, x), (second, y) = left, right
    what = f"{show(first)} is {named(x)} and {show(second)} is {named(y)}"
    if x.kind == y.kind == "number":
        return f"{what}: they cannot be compared{_in_units(left, y) or _in_units(right, x)}"
    ordered = operator not in ("==", "!=")
    return f"{what}: {'only numbers and versions have an order' if ordered else 'they are never equal'}"


def addition(term: t.Expr, kind: Type, lead: Type) -> str:
    """Return the complaint about a term of a sum that is of another type than the others."""
    advice = _literal(term, lead) or _in_units((term, kind), lead)
    return f"{show(term)} is {named(kind)}: it cannot be added to {named(lead)}{advice}"


def membership(item: t.Expr, container: t.Expr, kind: Type, *, negated: bool) -> str:
    """Return the complaint about what follows ``in`` and is neither a list nor a range."""
    what = f"{show(container)} is {named(kind)}, but a list or a range is expected here"
    match item, container:
        case t.Text(value), t.Name() | t.Path():
            return f'{what}: write {show(container)} {"not " * negated}like "*{value}*"'
        case _, t.Text() | t.Number():
            return f"{what}: write {show(item)} {'!=' if negated else '=='} {show(container)}"
        case _, t.Sum((("+", t.Number(low)), ("-", t.Number(high)))) if low < high:
            return f"{what}: write {'not ' * negated}in {show(t.Range(t.Number(low), t.Number(high)))}"
    return what


# ── what to write ──────────────────────────────────────────────────────────────────────────────────────────
def _literal(node: t.Expr, wanted: Type) -> str:
    """Return how a value that is written down is written for a type; nothing for other expressions."""
    written = ""
    match node:
        case t.Number() if wanted.kind == "number":
            written = _number(node, wanted)
        case t.Number() | t.Truth() if wanted.kind == "bool":
            written = _TRUTHS.get(show(node), "")
        case t.Number() | t.Truth() if wanted.kind == "text":
            written = quote(show(node))
        case t.Number() if wanted.kind == "version":
            written = "a version, such as v0.8"
        case t.Text(value) if wanted.kind in ("number", "bool", "version"):
            return _unquoted(value.strip(), wanted)
        case t.Truth() if wanted.kind == "number":
            written = "a number"
    return f": write {written}" if written else ""


def _unquoted(text: str, wanted: Type) -> str:
    """Return how a text is written that should be of another type."""
    if wanted.kind == "bool":
        return f": write {_TRUTHS.get(text.lower(), 'true or false')} without quotes"
    if wanted.kind == "version":
        plain = text.removeprefix("v")
        return f": write v{plain} without quotes" if re.fullmatch(r"[0-9]+(\.[0-9]+)*", plain) else ""
    is_number = _NUMBER.fullmatch(text) or measured(text, wanted.dimension) is not None
    return f": write {text} without quotes" if is_number else ": write a number, without quotes"


def _number(node: t.Number, wanted: Type) -> str:
    """Return how a number with a unit of another dimension is written for a type; nothing if it has none."""
    if node.unit is None:
        return ""
    bare, value = show(replace(node, unit=None)), node.value
    if wanted.dimension != PLAIN:
        unit = wanted.unit or OWN_UNIT.get(wanted.dimension)
        if node.unit == "%" and wanted.dimension == MEMORY:
            return f"{show(node)} of another memory as {show(node)} * gpu.vram"
        return f"{bare} {unit}" if unit else ""
    if node.unit == "B":  # what others write for billions
        return f"{bare}e9 for billions, or {bare} without a unit"
    if (wanted.low, wanted.high) != (0, 1):
        return f"{bare}, without {node.unit}"
    share = value if value <= 1 else value / 100
    fitting = (
        f"{digits(share, 4)} or {digits(share * 100, 4)} %" if 0 <= share <= 1 else "a number from 0 to 1"
    )
    return f"{fitting}, without {node.unit}"


def _truth(node: t.Expr, kind: Type, wanted: Type) -> str:
    """Return what to write where a condition is wanted and a name is none."""
    if wanted.kind != "bool" or not isinstance(node, (t.Name, t.Path)):
        return ""
    asked = {"number": f"{show(node)} > 0", "list": f"length({show(node)}) > 0"}.get(kind.kind)
    asked = asked or (f"known({show(node)})" if isinstance(node, t.Name) else "")
    return f": write {asked}" if asked else ""


def _in_units(side: Side, wanted: Type) -> str:
    """Return how a number gets or loses a unit, to go with one of a type; nothing for two with units."""
    node, kind = side
    if kind.kind != "number" or wanted.kind != "number" or isinstance(node, t.Number):
        return ""
    plain, other = (kind, wanted) if kind.dimension == PLAIN else (wanted, kind)
    unit = other.unit or OWN_UNIT.get(other.dimension)
    if plain.dimension != PLAIN or other.dimension == PLAIN or unit is None:
        return ""
    shown = f"({show(node)})" if isinstance(node, (t.Sum, t.Choice, t.If)) else show(node)
    return f"; {shown} {'*' if kind is plain else '/'} 1 {unit} is {describe(wanted.dimension)}"


def _with_list(one: Side, operator: str, other: Side) -> str:
    """Return what to write for a list that is compared with one value; nothing for other operands."""
    (node, kind), (value, own) = one, other
    if isinstance(value, t.ListOf) and kind.kind != "list" and operator in ("==", "!="):
        return f": write {show(node)} {'in' if operator == '==' else 'not in'} {show(value)}"
    if kind.kind != "list" or own.kind == "list":
        return ""
    if each := of_each(node, f"{operator} {show(value)}"):
        return each
    if isinstance(value, t.Text) and operator in ("==", "!="):
        return f": write {show(value)} {'in' if operator == '==' else 'not in'} {show(node)}"
    if own.kind == "number" and isinstance(node, (t.Name, t.Path)):
        own_or_each = (
            f"length({show(node)}) {operator} {show(value)}, or all x in {show(node)}: x {operator} …"
        )
        return f": write {own_or_each}"
    return ""


def of_each(node: t.Expr, asked: str) -> str:
    """Return how to ask of every item what is asked of a path with ``[*]``; nothing for other expressions."""
    if not isinstance(node, t.Path) or "*" not in node.steps:
        return ""
    at = node.steps.index("*")
    items, rest = t.Path(node.steps[:at]), t.Path(node.steps[at + 1 :])
    item = str(next((step for step in reversed(items.steps) if isinstance(step, str)), "x"))[:1].lower()
    return f": write all {item} in {show(items)}: {item}{show(rest)[1:]} {asked}"
