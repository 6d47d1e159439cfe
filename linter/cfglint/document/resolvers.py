"""What a config's own sums come to: ``${mul:${train.batch},2}``, ``${eval:'4 * 8'}``.

Frameworks register such resolvers with OmegaConf. Of torchtune's ``eval``, which is Python's, only arithmetic
on numbers is done, and nothing is executed.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import accumulate
from operator import add, floordiv, mod, mul, sub, truediv

from cfglint.document.tree import Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

RESOLVERS = ("add", "sub", "mul", "div", "max", "eval")
_LONGEST, _DEEPEST = 500, 30  # characters of a sum, and its brackets
_LARGEST = 2**63


def resolved(name: str, arguments: list[object]) -> object:
    """Return what a resolver of `RESOLVERS` makes of its arguments; Missing where it fails or is unknown."""
    unknown = next((argument for argument in arguments if isinstance(argument, Missing)), None)
    if unknown is not None:
        return unknown
    if name == "eval":
        return _eval(*arguments) if len(arguments) == 1 else _fails(name, "takes one argument")
    if len(arguments) != 2:
        return _fails(name, f"takes two arguments, not {len(arguments)}")
    return _apply(name, *arguments)


def _fails(name: str, why: str) -> Missing:
    return Missing((), f"${{{name}:…}} {why}", "malformed")


def _power(left: float, right: float) -> object:
    if abs(right) > 64 or abs(left) > _LARGEST:
        return Missing((), "a power too large to compute", "budget")
    return left**right


_OPERATIONS: dict[str, Callable[[Any, Any], object]] = {
    "add": add, "sub": sub, "mul": mul, "div": truediv, "max": max, "//": floordiv, "%": mod, "**": _power,
}  # fmt: skip


def _apply(name: str, left: object, right: object) -> object:
    for side in (left, right):
        if isinstance(side, Missing):
            return side
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        return _fails(name, "takes numbers")
    try:
        value = _OPERATIONS[name](left, right)
    except (ZeroDivisionError, OverflowError) as error:
        return _fails(name, f"fails: {error}")
    if isinstance(value, (float, Missing)):
        return value
    if not isinstance(value, int):  # a root of a negative number
        return _fails(name, "is not a real number")
    return value if abs(value) < _LARGEST else Missing((), "a huge number", "budget")


def _eval(text: object) -> object:
    """Do Python's arithmetic on literal numbers."""
    if isinstance(text, (int, float)):
        return _fails("eval", "takes a string")  # as Python's does
    if not isinstance(text, str) or len(text) > _LONGEST:
        return Missing((), "${eval:…} with more than arithmetic", "resolver")
    import ast

    nested = max(accumulate((char == "(") - (char == ")") for char in text.strip()), default=0)
    if nested <= _DEEPEST and set("0123456789.eE+-*/%() \t").issuperset(text.strip()):
        with suppress(SyntaxError, ValueError, MemoryError):
            return _sum(ast.parse(text.strip(), mode="eval").body, 0)
    return Missing((), f"${{eval:…}} of more than arithmetic: {text}", "resolver")


def _sum(node: Any, depth: int) -> object:
    """Work out what Python parsed; raises SyntaxError where it is more than a sum of numbers."""
    kind = node.__class__.__name__
    name = _OPERATORS.get(getattr(node, "op", None).__class__.__name__, "")
    if depth <= _DEEPEST:
        if kind == "Constant" and node.value.__class__ in (int, float):
            return node.value
        if kind == "UnaryOp" and name in ("+", "-"):
            return _apply("mul", -1 if name == "-" else 1, _sum(node.operand, depth + 1))
        if kind == "BinOp" and name:
            return _apply(name, _sum(node.left, depth), _sum(node.right, depth + (name == "**")))
    raise SyntaxError


_OPERATORS = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div", "FloorDiv": "//", "Mod": "%", "Pow": "**",
    "UAdd": "+", "USub": "-",
}  # fmt: skip
