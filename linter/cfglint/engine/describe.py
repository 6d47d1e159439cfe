"""Values and requirements in words: ``44.42 GiB``, ``0.8 * 44.42 GiB + 0.8 GiB = 36.34 GiB``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cfglint.lang import tree as t
from cfglint.lang.build import template, walk
from cfglint.lang.compile import CompileError, Function, Names
from cfglint.lang.runtime import NAMESPACE
from cfglint.lang.show import show
from cfglint.lang.types import ANY, Type
from cfglint.lang.units import DURATION, PLAIN, UNITS, show_number
from cfglint.lang.values import INF, Interval, Open, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cfglint.facts import Values
    from cfglint.lang.symbols import Symbols


_LISTED = 16  # items of a list in a message


class Evaluator:
    """Evaluates any expression of the language on the values of a file; compiled once each."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.names = Names(symbols)
        self._compiled: dict[tuple[t.Expr, tuple[str, ...]], tuple[Any, Type]] = {}

    def __call__(
        self, node: t.Expr, values: Values, variables: Mapping[str, object] | None = None
    ) -> tuple[object, Type]:
        """Return the value of ``node`` and its type."""
        bound = variables or {}
        key = (node, tuple(bound))
        if key not in self._compiled:
            emitter = Function(self.names, {name: (f"x_{name}", ANY) for name in bound})
            atom, kind = emitter.value(node)
            emitter.line(f"return {atom}")
            namespace: dict[str, Any] = {**NAMESPACE, "INF": INF}
            exec(emitter.finish("F", ", ".join(["V", *(f"x_{name}" for name in bound)])), namespace)  # noqa: S102
            self._compiled[key] = (namespace["F"], kind)
        function, kind = self._compiled[key]
        return function(values, *bound.values()), kind

    def type_of(self, name: str) -> Type:
        """Return a name's type."""
        return self.names.type_of(name) or ANY

    def shown(self, node: t.Expr, values: Values, variables: Mapping[str, object] | None = None) -> str:
        """Return an expression's value as text."""
        try:
            return show_value(*self(node, values, variables))
        except (CompileError, ZeroDivisionError, OverflowError):
            return "?"


def show_value(value: object, kind: Type, *, exactly: bool = False) -> str:
    """Return a value as reports print it; ``exactly`` keeps the type's own unit."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, Interval)):
        if isinstance(value, Interval) and (value.lo == -INF or value.hi == INF):
            return "unknown" if value.needs else "any number"
        unit = kind.unit if exactly else _unit(kind)
        return show_number(value, kind.dimension if kind.kind == "number" else PLAIN, unit)
    if isinstance(value, (Open, Unknown)):
        return "unknown" if value.needs else "open"
    if isinstance(value, (list, tuple)):
        if kind.kind == "version":
            return "newest" if INF in value else "v" + ".".join(map(str, value))
        return (
            "[" + ", ".join(show_value(v, ANY) for v in value[:8]) + (", …" if len(value) > 8 else "") + "]"
        )
    if hasattr(value, "keys"):
        return "a mapping"
    return "null" if value is None else str(value) or '""'


def _unit(kind: Type) -> str | None:
    """Return the unit that a fact was declared in, unless numbers are printed in it anyway."""
    if kind.unit in (None, "GiB", "s", "B") or UNITS[kind.unit][1] != kind.dimension:
        return None
    return kind.unit


def message(
    say: str, evaluator: Evaluator, values: Values, variables: Mapping[str, object] | None = None
) -> str:
    """Return a rule's message with the values in its braces: texts as they are, lists without brackets."""
    parts = []
    for part in template(say):
        if not isinstance(part, str):
            value, kind = evaluator(part, values, variables)
            part = value if isinstance(value, str) else _in_message(value, kind)  # noqa: PLW2901
        parts.append(part)
    return "".join(parts)


def _in_message(value: object, kind: Type) -> str:
    """Return a value as messages print it: of a list its first items, ``1, 2, 4, 7``."""
    if not isinstance(value, (list, tuple)) or kind.kind == "version":
        return show_value(value, kind)
    items = [show_value(item, ANY) for item in value[:_LISTED]]
    return ", ".join(items) + (", …" if len(value) > _LISTED else "") if items else "none"


def arithmetic(
    node: t.Expr, evaluator: Evaluator, values: Values, is_default: Callable[[str], bool]
) -> list[str]:
    """Return a broken requirement with the numbers put in, one line for each part that does not hold."""
    put = _Numbers(evaluator, values, is_default)
    return [f"{show(part)}, but {put.against(part)}" for part in put.failing(node)]


class _Numbers:
    """Puts numbers into expressions; ``is_default`` says whether the file leaves a name to its default."""

    def __init__(self, evaluator: Evaluator, values: Values, is_default: Callable[[str], bool]) -> None:
        self.evaluator = evaluator
        self.values = values
        self.is_default = is_default

    def shown(self, node: t.Expr, unit: str | None = None) -> str:
        if isinstance(node, t.Path) and not self.values.has(node.steps):
            return "not in the file"
        value, kind = self.evaluator(node, self.values)
        worth = show_value(
            value, kind if unit is None else replace(kind, unit=unit), exactly=unit is not None
        )
        if isinstance(node, t.Name) and self.is_default(node.name):
            return f"{worth} (the default)"
        return worth

    def is_word(self, node: t.Expr) -> bool:
        """Whether a name is an enumeration's member."""
        return isinstance(node, t.Name) and self.evaluator.names.type_of(node.name) is None

    def failing(self, node: t.Expr) -> list[t.Expr]:
        """Return the parts of a conjunction that do not hold; what is absent is told alone."""
        if not isinstance(node, t.Junction) or node.operator != "and":
            return [node] if self._fails(node) else []
        found = [part for operand in node.operands for part in self.failing(operand)]
        return [part for part in found if isinstance(part, t.Has)] or found

    def _fails(self, node: t.Expr) -> bool:
        try:
            return self.evaluator(node, self.values)[0] is not True
        except CompileError:
            return False

    def against(self, part: t.Expr) -> str:
        """Say what is the case instead of ``part``."""
        if isinstance(part, t.Compare) and len(part.operands) == 2 and part.operators[0] in _OPPOSITE:
            left, right = self._alike(*part.operands)
            return f"{left} {_OPPOSITE[part.operators[0]]} {right}"
        if isinstance(part, t.Has):
            return f"{show(part.path)} is not in the file"
        names = dict.fromkeys(
            n for n in walk(part) if isinstance(n, (t.Name, t.Path)) and not self.is_word(n)
        )
        return ", ".join(f"{show(n)} is {self.shown(n)}" for n in names) or "it does not hold"

    def _alike(self, left: t.Expr, right: t.Expr) -> tuple[str, str]:
        """Return both sides, in one unit where they would be printed in two."""
        (a, kind), (b, _) = self.evaluator(left, self.values), self.evaluator(right, self.values)
        shown = show_value(a, kind), show_value(b, kind)
        if kind.dimension == DURATION and {s.rpartition(" ")[2] for s in shown} == {"s", "h"}:
            return self._side(left, "s"), self._side(right, "s")
        return self._side(left), self._side(right)

    def _side(self, node: t.Expr, unit: str | None = None) -> str:
        worth = self.shown(node, unit)
        if isinstance(node, (t.Sum, t.Product, t.Negative)):
            spelled = show(node, self._number)
            return worth if spelled == worth else f"{spelled} = {worth}"
        return worth

    def _number(self, node: t.Expr) -> str | None:
        if isinstance(node, (t.Name, t.Path, t.Call, t.Quantifier, t.Choice, t.If)) and not self.is_word(
            node
        ):
            return self.evaluator.shown(node, self.values)
        return None


_OPPOSITE = {"<=": ">", "<": ">=", ">=": "<", ">": "<="}
