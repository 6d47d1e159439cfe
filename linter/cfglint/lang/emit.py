"""What all of the compiler shares: Python source that grows line by line, and conversions between types.

Every expression becomes statements over temporaries, so the source grows linearly with the tree and never
nests deeply. A function of the source takes ``V``, the values of one file on one target (facts.Values).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from cfglint.lang import tree as t
from cfglint.lang import types
from cfglint.lang.show import show
from cfglint.lang.units import OWN_UNIT, PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable

    from cfglint.lang.compile import Names
    from cfglint.lang.types import Type

MAX_DEPTH = 80  # of the tree; Python's own compiler gives up a little later, at 100 levels of indentation
MAX_LINES = 8_000  # of one function; functions are put in where they are called, and could double each other


_ARITHMETIC = (" * ", " / ", " + ", " - ", "divide(", "modulo(", "square_root(", "_over(")


class CompileError(Exception):
    """A mistake in a rule's meaning, at ``span`` of its file; ``inmost`` leaves out the calls around it."""

    def __init__(self, span: t.Span, message: str, inmost: str = "") -> None:
        super().__init__(message)
        self.span = span
        self.inmost = inmost or message


class CallError(Exception):
    """A call with the wrong number or kind of arguments."""


class Emitter:
    """Emits the body of one Python function."""

    def __init__(self, names: Names, variables: dict[str, tuple[str, Type]] | None = None) -> None:
        self.names = names
        self.lines: list[str] = []
        self.variables = variables or {}
        self.indent = "  "
        self.temporaries = 0
        self.depth = 0
        self.loops = 0
        self.roles: dict[str, str] = {}
        self.same: dict[str, str] = {}  # temporaries by their values, as far as they hold here

    # ── emitting ───────────────────────────────────────────────────────────────────────────────────────
    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def put(self, value: str) -> str:
        """Assign ``value`` to a new temporary and return its name."""
        self.temporaries += 1
        name = f"t{self.temporaries}"
        self.line(f"{name} = {value}")
        return name

    def once(self, value: str) -> str:
        """Return a temporary for ``value``, which is the same wherever it stands: what reads alike is one."""
        if value not in self.same:
            self.same[value] = self.put(value)
        return self.same[value]

    def held(self, atom: str) -> str:
        """Return ``atom`` as something that may be read more than once: a local or a literal."""
        return self.once(atom) if atom.startswith("V[") else atom

    def negated(self, atom: str) -> str:
        """Emit the opposite of a truth."""
        atom = self.held(atom)
        return self.put(f"False if {atom} is True else True if {atom} is False else not_({atom})")

    def block(self, head: str, body: Callable[[], Any]) -> Any:
        """Emit ``head:`` with an indented body."""
        self.line(head + ":")
        outer = self.indent
        self.indent += " "
        before = len(self.lines)
        same, self.same = self.same, dict(self.same)
        try:
            result = body()
        finally:
            self.indent, self.same = outer, same
        if len(self.lines) == before:
            self.lines.append(outer + " pass")
        return result

    def finish(self, name: str, parameters: str = "V", kind: str = "any") -> str:
        """Return the function's source; numbers too large for a float leave its value unknown."""
        head = f"def {name}({parameters}):"
        lines = _shortened(self.lines)
        if not any(sign in line for line in lines for sign in _ARITHMETIC):
            return "\n".join([head, *lines])
        return "\n".join([head, " try:", *lines, f" except OverflowError: return lost({kind!r})"])

    # ── values ─────────────────────────────────────────────────────────────────────────────────────────
    def value(self, node: t.Expr, wanted: Type | None = None) -> tuple[str, Type]:
        """Emit ``node``; returns a Python atom and its type. ``wanted`` resolves an enumeration's members."""
        if self.depth > MAX_DEPTH:
            raise CompileError(
                node.span, "this expression is nested too deeply; give its parts names with let"
            )
        if len(self.lines) > MAX_LINES:
            raise CompileError(node.span, "this expression grows too large; give its parts names with let")
        self.depth += 1
        try:
            result: tuple[str, Type] = getattr(self, "_" + type(node).__name__.lower())(node, wanted)
        finally:
            self.depth -= 1
        return result

    def typed(self, node: t.Expr, wanted: Type) -> tuple[str, Type]:
        """Emit ``node`` as a value of type ``wanted``; complain where it cannot be one."""
        atom, kind = self.value(node, wanted)
        return self.fit(node, atom, kind, wanted), kind if kind.kind == wanted.kind else wanted

    def checked(self, node: t.Expr, wanted: Type | None) -> tuple[str, Type]:
        """Emit ``node`` as a value of type ``wanted``, if there is one."""
        return self.value(node) if wanted is None else self.typed(node, wanted)

    def arithmetic(self, node: t.Expr) -> tuple[str, Type]:
        """Emit ``node`` as a number."""
        atom, kind = self.value(node)
        if kind.kind == "any":
            return self.fit(node, atom, kind, types.NUMBER), types.NUMBER
        if kind.kind != "number":
            raise CompileError(node.span, f"{show(node)} is {kind}, and a number is wanted here")
        return atom, kind

    def fit(self, node: t.Expr, atom: str, kind: Type, wanted: Type) -> str:
        """Convert ``atom`` of type ``kind`` to ``wanted``."""
        if wanted.kind in ("any", "null"):
            return atom
        if kind.kind == "any":
            return self._converted(atom, wanted)
        if kind.kind == "text" and wanted.kind == "enum":
            return self.put(f"as_member({atom}, {dict(wanted.spellings)!r})")
        if kind.kind == "enum" and wanted.kind == "text":
            return atom
        if kind.kind == "enum" == wanted.kind and not set(kind.members) <= set(
            dict(wanted.spellings).values()
        ):
            return self.put(f"as_member({atom}, {dict(wanted.spellings)!r})")
        if kind.kind != wanted.kind:
            raise CompileError(node.span, f"{show(node)} is {kind}, and {wanted} is wanted here")
        if kind.kind == "number":
            if kind.bare:
                return self.scaled(atom, wanted.factor)
            if kind.dimension != wanted.dimension:
                raise CompileError(
                    node.span, f"{show(node)} is {kind}, and {wanted} is wanted here{hint(kind, wanted)}"
                )
        return atom

    def _converted(self, atom: str, wanted: Type) -> str:
        if wanted.kind == "enum":
            return self.put(f"as_member({atom}, {dict(wanted.spellings)!r})")
        if wanted.kind == "number":
            return self.once(f"as_number({atom})" + (f" * {wanted.factor!r}" if wanted.factor != 1 else ""))
        converter = {"bool": "as_bool", "text": "as_text", "list": "as_list", "version": "as_version"}.get(
            wanted.kind
        )
        return atom if converter is None else self.put(f"{converter}({atom})")

    def scaled(self, atom: str, factor: float) -> str:
        """Return ``atom`` times ``factor``, computed here where it is a literal."""
        if factor == 1:
            return atom
        try:
            return repr(tidy(float(atom) * factor))
        except ValueError:
            return self.once(f"{atom} * {factor!r}")


_ASSIGNED = re.compile(r" *(t\d+) = ")


def _shortened(lines: list[str]) -> list[str]:
    """Leave out temporaries that the very next line copies or returns: what is not there loads faster."""
    times = Counter(re.findall(r"\bt\d+\b", "\n".join(lines)))
    result: list[str] = []
    for line in lines:
        found = _ASSIGNED.match(result[-1]) if result else None
        if found is not None:
            value, start = result[-1][found.end() :], result[-1][: found.start(1)]
            head, copied, rest = line.rpartition(found[1])
            once = times[found[1]] == 2 and re.fullmatch(rf"{start}t\d+ = ", head)
            if copied and not rest and (once or head == f"{start}return "):
                line = head + value  # noqa: PLW2901
                result.pop()
        result.append(line)
    return result


def is_text(atom: str) -> bool:
    """Whether an atom is a text as it is written."""
    return atom[:1] in "'\""


def is_number(atom: str) -> bool:
    """Whether an atom is a number as it is written."""
    return atom.lstrip("-")[:1].isdigit()


def tidy(value: float) -> float:
    """Return a whole number as an int, where that is exact."""
    return int(value) if abs(value) < 2**53 and value == int(value) else value


def hint(x: Type, y: Type) -> str:
    """Return what to write instead, where two types do not go together."""
    for kind in (y, x):
        unit = kind.unit or OWN_UNIT.get(kind.dimension)
        if kind.kind == "number" and kind.dimension != PLAIN and unit:
            return f"; a number with a unit, like 1 {unit}, is {kind}"
    return ""
