"""A broken requirement with the numbers put in: ``batch_size mod micro_batch == 0, but 10 mod 4 = 2``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cfglint.document.tree import dotted
from cfglint.engine.describe import show_value
from cfglint.engine.likelihood import as_shown, at_worst
from cfglint.lang import tree as t
from cfglint.lang.compile import CompileError
from cfglint.lang.show import show
from cfglint.lang.tree import walk
from cfglint.lang.types import DURATION, MEMORY, PLAIN, Type, is_number
from cfglint.lang.values import Interval
from cfglint.record import Record, replace

if TYPE_CHECKING:
    from cfglint.engine.describe import Evaluator, Origins
    from cfglint.facts import Values

_OPPOSITE = {"<=": ">", "<": ">=", ">=": "<", ">": "<="}
_UPWARDS = ("<=", "<")
_MAY = {"<=": "may exceed", "<": "may reach", ">=": "may be below", ">": "may not exceed"}
_LAUNCH = "launch"  # what a command says; no key of a file
_DEFAULT = " (the default)"
_ABSENT = "not in the file"
_SUMS = (t.Sum, t.Product, t.Negative)
_FAILED = (CompileError, ZeroDivisionError, OverflowError)
# Names that reports use: of the machine, the model, and the memory that `cfglint fit` prints.
_PUBLIC = ("gpu", "host", "model", "trainer")


def arithmetic(node: t.Expr, evaluator: Evaluator, origins: Origins, said: str = "") -> list[str]:
    """Return a line for each part of a requirement that does not hold, unless ``said`` has its values.

    A fact stands by the key that it is read from. A name that only rules use is not printed, but its number.
    """
    seen = as_shown(origins.values)
    if seen is not None and evaluator(node, seen)[0] is True:
        return _at_worst(node, evaluator, origins, seen, said)
    lines = _Lines(evaluator, origins, said, seen or origins.values)
    return [line for part in lines.failing(node) if (line := lines.line(part))]


def _at_worst(node: t.Expr, evaluator: Evaluator, origins: Origins, seen: Values, said: str) -> list[str]:
    """Return what does not hold of a memory's bound, and would of what people see of that memory."""
    if not isinstance(node, t.Compare) or node.operators[0] not in _UPWARDS:
        return []
    (need, kind), (limit, _) = (evaluator(side, origins.values) for side in node.operands)
    worst = at_worst(need, evaluator(node.operands[0], seen)[0])
    if worst is None or kind.dimension != MEMORY:
        return []
    text = f"at worst {show_value(worst, kind)}"
    return [] if text in said else [f"{text} {_OPPOSITE[node.operators[0]]} {show_value(limit, kind)}"]


class _Lines(Record):
    """Makes the lines of one finding, whose message is ``said``."""

    evaluator: Evaluator
    origins: Origins
    said: str
    values: Values  # as people are shown them

    def failing(self, node: t.Expr) -> list[t.Expr]:
        """Return the parts of a conjunction that do not hold; what is absent is told alone."""
        if not isinstance(node, t.Junction) or node.operator != "and":
            return [node] if self._truth(node) is not True else []
        parts = [part for operand in node.operands for part in self.failing(operand)]
        return [part for part in parts if isinstance(part, t.Has)] or parts

    def line(self, part: t.Expr) -> str:
        """Return a part and what is the case instead; nothing where the message says as much."""
        if isinstance(part, t.Has):
            key = dotted(part.path.steps)
            return "" if part.path.steps[0] == _LAUNCH or self._is_said(key) else f"{key} is {_ABSENT}"
        private = self._is_private(part)
        numbers = self._numbers(part)
        if numbers is not None:
            but, values = numbers
            if private and not self._is_worth_it(part):
                return ""
        elif private:
            return ""
        else:
            told = {self._name(n) or "": self._value(n) for n in self._named(part)}
            but, values = ", ".join(f"{name} is {value}" for name, value in told.items()), list(told.values())
            if all(value in ("true", "false") for value in values):
                values = list(told)  # a switch is told by its name
        if not but or any("?" in value for value in values) or all(map(self._is_said, values)):
            return ""
        inner = part.operand if isinstance(part, t.Not) else part
        if private or (self.said and not isinstance(inner, (t.Compare, t.Member, t.Like))):
            return but
        return f"{show(part, self._word)}, but {but}"

    def _named(self, part: t.Expr) -> list[t.Name | t.Path]:
        return [n for n in walk(part) if isinstance(n, (t.Name, t.Path)) and not self.evaluator.is_word(n)]

    def _is_private(self, part: t.Expr) -> bool:
        """Whether a part has names that only rules use."""
        called = any(isinstance(n, t.Call) and "." in n.function for n in walk(part))
        return called or any(self._name(n) is None for n in self._named(part))

    def _is_worth_it(self, part: t.Expr) -> bool:
        """Whether numbers without names say something: sums do, and memories beside each other."""
        left, right = part.operands  # type: ignore[union-attr] # a comparison
        if isinstance(left, _SUMS) or isinstance(right, _SUMS):
            return True
        return self._evaluated(left)[1].dimension == MEMORY and not isinstance(right, t.Number)

    # ── what is the case instead ───────────────────────────────────────────────────────────────────────
    def _numbers(self, part: t.Expr) -> tuple[str, list[str]] | None:
        """Return a comparison with its numbers, and the numbers that it tells; None for others."""
        if not isinstance(part, t.Compare) or len(part.operands) != 2:
            return None
        operator, (left, right) = part.operators[0], part.operands
        broken = self._truth(part) is False
        if operator in _OPPOSITE:
            relation = _OPPOSITE[operator] if broken else _MAY[operator]
            (one, first), (other, second) = self._sides(left, right)
            return f"{one} {relation} {other}", [first, second]
        if operator != "==" or not (isinstance(left, _SUMS) or isinstance(right, _SUMS)):
            return None
        if not all(isinstance(self._evaluated(side)[0], (int, float, Interval)) for side in (left, right)):
            return None
        (one, first), (other, second) = self._sides(left, right)
        leaves = [v for n in (*walk(left), *walk(right)) if (v := self._number(n)) is not None]
        if isinstance(right, t.Number):
            return (one if broken else f"{one}, which may differ"), leaves
        return f"{one} {'is not' if broken else 'may not be'} {other}", leaves or [first, second]

    def _sides(self, left: t.Expr, right: t.Expr) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return each side as it is computed and as its result, both in one unit."""
        kinds = [self._evaluated(side) for side in (left, right)]
        units = {show_value(value, kind).rpartition(" ")[2] for value, kind in kinds}
        unit = "s" if kinds[0][1].dimension == DURATION and units == {"s", "h"} else None
        tenths = any(kind.tenths for _, kind in kinds)  # capabilities are compared with plain numbers
        return self._side(left, unit, tenths), self._side(right, unit, tenths)

    def _side(self, node: t.Expr, unit: str | None, tenths: bool) -> tuple[str, str]:
        value, kind = self._evaluated(node)
        text = self._shown(node, unit, replace(kind, tenths=True) if tenths and is_number(value) else kind)
        if not isinstance(node, _SUMS):
            return text, text.removesuffix(_DEFAULT)
        numbers = show(node, self._number)
        return (text if numbers == text else f"{numbers} = {text}"), text

    def _value(self, node: t.Expr) -> str:
        return self._shown(node, None, self._evaluated(node)[1])

    def _shown(self, node: t.Expr, unit: str | None, kind: Type) -> str:
        values = self.origins.values
        if isinstance(node, t.Path) and values.has(node.steps) is False:
            return _ABSENT
        text = show_value(self._evaluated(node)[0], kind, unit=unit)
        default = isinstance(node, t.Name) and self.origins.of(node.name).kind == "default"
        return text + _DEFAULT if default else text

    def _number(self, node: t.Expr) -> str | None:
        """Return what stands for a part of a sum: of names and calls their values."""
        valued = isinstance(node, (t.Name, t.Path, t.Call, t.Quantifier, t.Choice, t.If))
        if not valued or self.evaluator.is_word(node):
            return None
        value, kind = self._evaluated(node)
        return show_value(value, kind)

    def _evaluated(self, node: t.Expr) -> tuple[object, Type]:
        try:
            return self.evaluator(node, self.values)
        except _FAILED:
            return "?", Type("number", PLAIN)

    def _truth(self, node: t.Expr) -> object:
        try:
            return self.evaluator(node, self.origins.values)[0]
        except CompileError:
            return True

    # ── names ──────────────────────────────────────────────────────────────────────────────────────────
    def _word(self, node: t.Expr) -> str | None:
        """Return what stands for a fact or a key in a requirement."""
        if isinstance(node, t.Has):
            return f"has({dotted(node.path.steps)})"
        return self._name(node) if isinstance(node, (t.Name, t.Path)) else None

    def _name(self, node: t.Name | t.Path) -> str | None:
        """Return a key, or a name that reports use; None for what only rules use."""
        if isinstance(node, t.Path):
            return None if node.steps[0] == _LAUNCH else dotted(node.steps)
        if self.evaluator.is_word(node):
            return node.name
        path = self.origins.read_from(node.name)
        if path is not None and path[0] != _LAUNCH:
            return dotted(path)
        prefix, dot, _ = node.name.partition(".")
        return node.name if not dot or prefix in _PUBLIC else None

    def _is_said(self, value: str) -> bool:
        """Whether the message has a value, or the last step of a key, as a word of its own."""
        if value.endswith(_DEFAULT):
            return "default" in self.said and self._is_said(value.removesuffix(_DEFAULT))
        return re.search(rf"(?<![\w.,]){re.escape(value)}(?!\w|[.,]\d)", self.said) is not None
