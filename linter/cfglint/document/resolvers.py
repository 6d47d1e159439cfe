"""Resolvers that frameworks register with OmegaConf: arithmetic on numbers, by our own total evaluator.

``${eval:'…'}`` is Python's `eval` in torchtune; of that, numbers, brackets and ``+ - * / // % **`` are read,
and anything else is unknown.
"""

from __future__ import annotations

from cfglint.document.scalars import Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

RESOLVERS = ("add", "sub", "mul", "div", "max", "eval")
_LONGEST = 500
_DEEPEST = 30
_LARGEST = 2**63


def resolved(name: str, arguments: Sequence[object]) -> object:
    """Return what a resolver of `RESOLVERS` makes of its arguments; Missing where it fails or is unknown."""
    for argument in arguments:
        if isinstance(argument, Missing):
            return argument
    if name == "eval":
        return _eval(*arguments) if len(arguments) == 1 else _fails(name, "wants one argument")
    if len(arguments) != 2:
        return _fails(name, f"wants two arguments, and has {len(arguments)}")
    left, right = arguments
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        return _fails(name, "wants numbers")
    return _apply(name, left, right)


def _fails(name: str, why: str) -> Missing:
    return Missing((), f"${{{name}:…}} {why}", "malformed")


def _apply(name: str, left: float, right: float) -> object:
    try:
        if name == "max":
            value: object = max(left, right)
        elif name == "add":
            value = left + right
        elif name == "sub":
            value = left - right
        elif name == "mul":
            value = left * right
        elif name == "div":
            value = left / right
        elif name == "//":
            value = left // right
        elif name == "%":
            value = left % right
        elif abs(right) > 64 or abs(left) > _LARGEST:
            return Missing((), "a power too large to work out", "budget")
        else:
            value = left**right
    except (ZeroDivisionError, OverflowError) as error:
        return _fails(name, f"fails: {error}")
    if not isinstance(value, (int, float)):  # a root of a negative number
        return _fails(name, "is no real number")
    return (
        value if isinstance(value, float) or abs(value) < _LARGEST else Missing((), "a huge number", "budget")
    )


def _eval(text: object) -> object:
    if isinstance(text, (int, float)):
        return _fails("eval", "wants a text")  # as Python's does
    if not isinstance(text, str) or len(text) > _LONGEST:
        return Missing((), "${eval:…} of more than arithmetic", "resolver")
    try:
        return _Sum(text).whole()
    except _NoSumError:
        return Missing((), f"${{eval:…}} of more than arithmetic: {text}", "resolver")


class _NoSumError(Exception):
    """Not a sum of numbers."""


class _Sum:
    """Python's arithmetic on literal numbers, with its precedences."""

    def __init__(self, text: str) -> None:
        import re

        self.parts: list[str] = []
        at = 0
        text = text.strip()
        number = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
        pattern = re.compile(rf"[ \t]*({number}|\*\*|//|[-+*/%()])")
        while at < len(text):
            found = pattern.match(text, at)
            if found is None:
                raise _NoSumError
            self.parts.append(found.group(1))
            at = found.end()
        self.at = 0

    def whole(self) -> object:
        value = self.sum(0)
        if self.at != len(self.parts):
            raise _NoSumError
        return value

    def taken(self, *wanted: str) -> str | None:
        if self.at < len(self.parts) and self.parts[self.at] in wanted:
            self.at += 1
            return self.parts[self.at - 1]
        return None

    def sum(self, depth: int) -> object:
        value = self.product(depth)
        while (sign := self.taken("+", "-")) is not None:
            value = _both("add" if sign == "+" else "sub", value, self.product(depth))
        return value

    def product(self, depth: int) -> object:
        value = self.signed(depth)
        while (sign := self.taken("*", "/", "//", "%")) is not None:
            value = _both({"*": "mul", "/": "div"}.get(sign, sign), value, self.signed(depth))
        return value

    def signed(self, depth: int) -> object:
        if depth > _DEEPEST:
            raise _NoSumError
        sign = self.taken("+", "-")
        if sign is not None:
            return _both("mul", -1 if sign == "-" else 1, self.signed(depth + 1))
        base = self.atom(depth)
        return base if self.taken("**") is None else _both("**", base, self.signed(depth + 1))

    def atom(self, depth: int) -> object:
        if self.taken("("):
            value = self.sum(depth + 1)
            if self.taken(")") is None:
                raise _NoSumError
            return value
        if self.at == len(self.parts):
            raise _NoSumError
        text = self.parts[self.at]
        self.at += 1
        try:
            if text.isdigit() and (not text.strip("0") or text[0] != "0"):  # Python has no 017
                return int(text)
            if "." in text or "e" in text.lower():
                return float(text)
        except ValueError:
            pass
        raise _NoSumError


def _both(name: str, left: object, right: object) -> object:
    for side in (left, right):
        if isinstance(side, Missing):
            return side
    assert isinstance(left, (int, float))
    assert isinstance(right, (int, float))
    return _apply(name, left, right)
