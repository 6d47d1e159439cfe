"""What the tests of a script come to: ``[ -z "$X" ]``, ``[[ $A == b* ]]``, ``(( N > 1 ))``, ``case``.

The script is taken to be run without arguments. What only the environment may set is taken to be empty where
the script gives it a value then; other verdicts on it are `unset`, which whoever asks has to look at.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from cfglint.budget import spend
from cfglint.document.shell.expand import DEEPEST
from cfglint.document.shell.source import SCRIPT
from cfglint.document.shell.substituted import looks_for_npu
from cfglint.document.shell.words import Array, uncertain
from cfglint.text import small_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cfglint.document.shell.expand import Expander

_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b, "-ne": lambda a, b: a != b, "-gt": lambda a, b: a > b,
    "-lt": lambda a, b: a < b, "-ge": lambda a, b: a >= b, "-le": lambda a, b: a <= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, ">": lambda a, b: a > b,
    "<": lambda a, b: a < b, ">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b,
}  # fmt: skip
_WHOLE = re.compile(r"-?[0-9]{1,18}\Z")
# The shell itself sets these.
_OTHERS = ("?", "$", "!", "-", "_", "0", "PWD", "HOME", "USER", "RANDOM", "HOSTNAME", "SECONDS")
_OPERANDS = ("simple_expansion", "expansion")


class Tests:
    """Decides the tests of one script in the state that it is in."""

    def __init__(self, expander: Expander) -> None:
        self._expander = expander
        self._source = expander.source
        self.unset: set[str] = set()  # variables of the environment that a verdict takes to be empty

    def verdict(self, node: Any, depth: int = 0) -> bool | None:
        """Return whether a condition holds; None where that is not known."""
        spend(5, SCRIPT)
        if depth > DEEPEST or node.has_error:
            return None
        kind = node.type
        held: bool | None = None
        if kind == "list" and node.child_count == 3:
            held = self._both(node, depth)
        elif kind == "negated_command" and node.named_child_count == 1:
            inner = self.verdict(node.named_children[0], depth + 1)
            held = None if inner is None else not inner
        elif kind in ("command", "redirected_statement") and looks_for_npu(self._source.text_of(node)):
            held = False
        elif kind == "command":
            held = self._command(node)
        elif kind == "compound_statement" and node.children[0].type == "((" and node.named_child_count == 1:
            held = self._arithmetic(node.named_children[0])
        elif kind == "test_command" and node.named_child_count == 1:
            held = self._test(node.named_children[0], depth + 1)
        return held

    def matches(self, value: Any, patterns: list[Any]) -> bool | None:
        """Return whether a word of ``case`` matches one of some patterns."""
        text = self._text(value)
        found: bool | None = False
        for pattern in patterns:
            written = self._source.text_of(pattern)
            if written == "*":
                return True
            plain = written.strip("\"'")
            if text is None or any(char in written for char in "$`\\[("):
                found = None
            elif fnmatchcase(text, plain) if plain == written else text == plain:
                return True
        return found

    # ── tests ──────────────────────────────────────────────────────────────────────────────────────────
    def _both(self, node: Any, depth: int) -> bool | None:
        first, sign, second = node.children
        left = self.verdict(first, depth + 1)
        ends = sign.type == "||"
        if left is not None and left == ends:
            return left
        right = self.verdict(second, depth + 1)
        if right is not None and right == ends:
            return right
        return None if left is None else right

    def _command(self, node: Any) -> bool | None:
        text = self._source.text_of(node)
        if text in ("true", ":", "false"):
            return text != "false"
        words = text.split(None, 1)
        if words[0] == "getopts" and "@" not in self._expander.variables:
            return False  # without arguments there are no options
        return None

    def _test(self, node: Any, depth: int) -> bool | None:
        kind = node.type
        if depth > DEEPEST:
            return None
        if kind == "parenthesized_expression" and node.named_child_count == 1:
            return self._test(node.named_children[0], depth + 1)
        if kind == "unary_expression" and node.child_count == 2:
            return self._unary(node, depth)
        if kind == "binary_expression" and node.child_count == 3:
            return self._binary(node, depth)
        if kind in ("string", *_OPERANDS):  # [ "$X" ]
            text = self._text(node)
            return None if text is None else text != ""
        return None

    def _unary(self, node: Any, depth: int) -> bool | None:
        sign, operand = self._source.text_of(node.children[0]), node.children[1]
        if sign == "!":
            inner = self._test(operand, depth + 1)
            return None if inner is None else not inner
        if sign not in ("-z", "-n"):
            return None
        text = self._text(operand)
        return None if text is None else (text == "") == (sign == "-z")

    def _binary(self, node: Any, depth: int) -> bool | None:
        left, operator, right = node.children
        sign = self._source.text_of(operator)
        if sign in ("&&", "||", "-a", "-o"):
            first, second = (self._test(side, depth + 1) for side in (left, right))
            ends = sign in ("||", "-o")
            if first is ends or second is ends:
                return ends
            return None if first is None or second is None else not ends
        return self._arithmetic(node) if sign.startswith("-") else self._same(left, sign, right)

    def _same(self, left: Any, sign: str, right: Any) -> bool | None:
        text, pattern = self._text(left), self._text(right)
        if text is None or pattern is None or sign not in ("=", "==", "!="):
            return None
        quoted = right.type in ("string", "raw_string")
        same = text == pattern if quoted else fnmatchcase(text, pattern)
        return same == (sign != "!=")

    # ── operands ───────────────────────────────────────────────────────────────────────────────────────
    def _arithmetic(self, node: Any) -> bool | None:
        if node.type != "binary_expression" or node.child_count != 3:
            number = self._number(node)
            return self._least(node) > 0 or None if number is None else number != 0
        first, sign, second = node.children
        compare = _COMPARED.get(self._source.text_of(sign))
        left, right = self._number(first), self._number(second)
        if compare is None or right is None:
            return None
        if left is not None:
            return compare(left, right)
        least = self._least(first)
        more = max(least, right)
        ways = {compare(number, right) for number in (least, more, more + 1)}
        return ways.pop() if least and len(ways) == 1 else None

    def _least(self, node: Any) -> int:
        """Return how many arguments or items there are at least: ``$#``, ``${#NAME[@]}``."""
        counts = re.match(r"\"?\$\{?#", self._source.text_of(node))
        return self._expander.number_of(node)[0] if counts else 0

    def _number(self, node: Any) -> int | None:
        text = self._text(node)
        text = "0" if text == "" and node.type == "variable_name" else text
        return int(text) if text is not None and _WHOLE.match(text.strip()) else None

    def _text(self, node: Any) -> str | None:
        """Return an operand's text; what nothing in the script sets is empty."""
        if node.type == "variable_name":
            return self._variable(self._source.text_of(node))
        if node.type == "string" and node.named_child_count == 1 and self._source.text_of(node)[1] == "$":
            inner = node.named_children[0]
            if inner.type in _OPERANDS and inner.end_byte == node.end_byte - 1:
                node = inner
        if node.type == "simple_expansion":
            return self._variable(self._source.text_of(node).strip()[1:])
        if node.type == "expansion":
            names = [child for child in node.named_children if child.type == "variable_name"]
            name = self._source.text_of(names[0]) if names else ""
            if name and len(node.children) == 3:
                return self._variable(name)
            if name and self._expander.known(name) is None:
                self.unset.add(name)
        if node.type in ("extglob_pattern", "regex"):
            text = self._source.text_of(node)
            return None if any(char in text for char in "$`\\'\"(") else text
        pieces = self._expander.pieces(node, 0)
        return None if uncertain(pieces) else "".join(piece.text for piece in pieces)

    def _variable(self, name: str) -> str | None:
        value = self._expander.known(name)
        if name in ("@", "*"):
            value = self._expander.variables.get("@", ())
            return None if any(map(uncertain, getattr(value, "items", ()))) else _joined(value)
        if value is None:
            if name in _OTHERS:
                return None
            given = self._expander.variables.get("@")
            place = 0 if name == "#" else small_number(name)
            if isinstance(given, Array) and place is not None and place <= len(given.items):
                return None  # they are not all known
            if name.isidentifier():
                self.unset.add(name)
            return "0" if name == "#" else ""
        if isinstance(value, Array):
            value = value.items[0] if value.items else ()
        if len(value) == 1 and not value[0].maybe and self._nothing(value[0].unknown):
            if value[0].unknown.isidentifier():
                self.unset.add(name)
            return ""
        return None if uncertain(value) else "".join(piece.text for piece in value)

    def _nothing(self, why: str) -> bool:
        """Whether an unknown piece is an argument of the script, or a variable that it never sets."""
        variables = self._expander.variables
        if why.isdigit():
            return "@" not in variables
        return why.isidentifier() and why not in _OTHERS and why not in variables


def _joined(value: Any) -> str:
    items = value.items if isinstance(value, Array) else ()
    return " ".join("".join(piece.text for piece in item) for item in items)
