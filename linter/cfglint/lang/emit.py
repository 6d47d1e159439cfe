"""What all of the compiler shares: Python source that grows line by line, and conversions between types.

Every expression becomes statements over temporaries, so the source grows linearly with the tree and never
nests deeply. A function of the source takes ``V``, the values of one file on one target (facts.Values).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from cfglint.errors import did_you_mean
from cfglint.lang import tree as t
from cfglint.lang import types
from cfglint.lang.show import show
from cfglint.lang.symbols import MAX_CHAIN, trail
from cfglint.lang.types import ANY, Type
from cfglint.record import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cfglint.lang.runtime import Piece
    from cfglint.lang.symbols import Symbols

MAX_DEPTH = 80  # of the tree; Python's own compiler gives up a little later, at 100 levels of indentation
MAX_LINES = 8_000  # of one function; functions are put in where they are called, and could double each other
MAX_VISITS = 40_000  # of nodes for one function
MAX_ALL_VISITS = 1_000_000  # for all functions of a layer of rules; the shipped ones take 60,000
MAX_NEAR = 50  # unknown names for which like ones are looked for


_CONVERTED = ("bool", "text", "list", "version")  # what runtime.py has an ``as_…`` for
_ARITHMETIC = (" * ", " / ", " + ", " - ", "divide(", "modulo(", "square_root(", "_over(")


class CompileError(Exception):
    """A mistake in a rule's meaning, at ``span`` of its file; ``inmost`` leaves out the calls around it."""

    def __init__(self, span: t.Span, message: str, inmost: str = "") -> None:
        super().__init__(message)
        self.span = span
        self.inmost = inmost or message


class Scope:
    """Knows the type of every name; a let that has none yet is typed when it is first asked for."""

    def __init__(self, symbols: Symbols, extra: Mapping[str, t.Let] | None = None) -> None:
        self.symbols = symbols
        self.extra = extra or {}  # what a framework derives for itself
        self.known: dict[str, Type] = {**symbols.let_types, **symbols.types}
        self.open: list[str] = []
        self.called: set[str] = set()  # functions that were put in somewhere, and fitted
        self._derivations: dict[str, list[t.Expr]] | None = None
        self.visited = 0  # nodes, by all functions together
        self.asked = 0  # unknown names for which like ones were looked for
        self._uses: dict[str, Counter[str]] = {}

    @property
    def derivations(self) -> dict[str, list[t.Expr]]:
        """What lets derive each name from."""
        if self._derivations is None:
            self._derivations = self.symbols.derivations()
        return self._derivations

    def type_of(self, name: str) -> Type | None:
        """Return the type of a fact or a let, None for any other name. Raises CompileError on a circle."""
        if name in self.known:
            return self.known[name]
        let = self.symbols.lets.get(name) or self.extra.get(name)
        if let is None or let.parameters:
            return None
        if name in self.open or len(self.open) > MAX_CHAIN:
            raise CompileError(let.span, f"cyclic definition: {trail([*self.open, name])}")
        self.open.append(name)
        try:
            kind = self.infer(let.body)
        except CompileError:
            kind = ANY  # the let's own compilation says what is wrong, once
        finally:
            self.open.pop()
        if kind.written:
            kind = replace(kind, unit=None, written=False)
        self.known[name] = replace(kind, bare=False)
        return self.known[name]

    def near(self, name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
        """Return ``"; did you mean …?"``; nothing once that was asked often enough to see what is wrong."""
        self.asked += 1
        return did_you_mean(name, known, cutoff=cutoff) if self.asked <= MAX_NEAR else ""

    def infer(self, body: t.Expr) -> Type:
        """Return the type of an expression. The compiler above knows how."""
        raise NotImplementedError

    def repeat(self, *numbers: t.Expr) -> bool:
        """Whether numbers together use a name, or a part that is no arithmetic, more than once."""
        return any(times > 1 for times in self._used_by(numbers).values())

    def _used_by(self, nodes: Iterable[t.Expr]) -> Counter[str]:
        """Return how often numbers use each name and each such part, through what lets derive names from."""
        uses: Counter[str] = Counter()
        for node in nodes:
            match node:
                case t.Name(name):
                    if name not in self._uses:
                        self._uses[name] = Counter((name,))  # also what a circle sees of itself
                        self._uses[name] += self._used_by(self.derivations.get(name, ()))
                    uses += self._uses[name]
                case t.Sum(parts) | t.Product(parts):
                    uses += self._used_by(part for _, part in parts)
                case t.Negative(operand):
                    uses += self._used_by((operand,))
                case t.Call(function, arguments):
                    given = self._used_by(arguments)
                    uses += given
                    if function in self.symbols.functions:  # it may use its parameters twice
                        uses += given
                case t.Number():
                    pass
                case _:
                    uses[show(node)] += 1
        return uses


class Emitter:
    """Emits the body of one Python function."""

    def __init__(self, names: Scope, variables: dict[str, tuple[str, Type]] | None = None) -> None:
        self.names = names
        self.lines: list[str] = []
        self.variables = variables or {}
        self.indent = "  "
        self.temporaries = 0
        self.depth = 0
        self.visited = 0
        self.loops = 0
        self.roles: dict[str, str] = {}
        self.same: dict[str, str] = {}  # temporaries by their values, as far as they hold here

    # ── emitting ───────────────────────────────────────────────────────────────────────────────────────
    def line(self, text: str) -> None:
        """Add a line to the function, at its indentation."""
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
        self.visited += 1  # equal values are emitted once, so lines alone would not bound the time
        self.names.visited += 1
        if self.names.visited > MAX_ALL_VISITS:
            raise CompileError(node.span, "these rules grow too large with the functions that they call")
        if len(self.lines) > MAX_LINES or self.visited > MAX_VISITS:
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

    def arithmetic(self, node: t.Expr, of_file: Type = types.NUMBER) -> tuple[str, Type]:
        """Emit ``node`` as a number; a value of the file has the type ``of_file``."""
        atom, kind = self.value(node)
        if kind.kind == "any":
            return self.fit(node, atom, kind, types.NUMBER), of_file
        if kind.kind != "number":
            raise self.misfit(node, kind, types.NUMBER)
        return atom, kind

    def fit(self, node: t.Expr, atom: str, kind: Type, wanted: Type) -> str:
        """Convert ``atom`` of type ``kind`` to ``wanted``."""
        if wanted.kind in ("any", "null"):
            return atom
        if kind.kind == "any":
            return self._converted(atom, wanted)
        words = ("text", "enum")
        if kind.kind != wanted.kind and not (kind.kind in words and wanted.kind in words):
            raise self.misfit(node, kind, wanted)
        names = {name for _, name in wanted.spellings}
        if wanted.kind == "enum" and (kind.kind == "text" or not set(kind.members) <= names):
            return self._converted(atom, wanted)
        if kind.kind == "number":
            if kind.bare:
                return self.scaled(atom, wanted.factor)
            if kind.dimension != wanted.dimension:
                raise self.misfit(node, kind, wanted)
        return atom

    def misfit(self, node: t.Expr, kind: Type, wanted: Type) -> CompileError:
        """Return the error for an expression of one type where another is wanted."""
        from cfglint.lang.mismatch import expected

        return CompileError(node.span, expected(node, kind, wanted))

    def _converted(self, atom: str, wanted: Type) -> str:
        if wanted.kind == "enum":
            return self.put(f"as_member({atom}, {dict(wanted.spellings)!r})")
        if wanted.kind == "number":
            return self.once(f"as_number({atom})" + (f" * {wanted.factor!r}" if wanted.factor != 1 else ""))
        return self.put(f"as_{wanted.kind}({atom})") if wanted.kind in _CONVERTED else atom

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
        assigned = _ASSIGNED.match(result[-1]) if result else None
        if assigned is not None:
            value, start = result[-1][assigned.end() :], result[-1][: assigned.start(1)]
            head, copied, rest = line.rpartition(assigned[1])
            once = times[assigned[1]] == 2 and re.fullmatch(rf"{start}t\d+ = ", head)
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


# ── text patterns (runtime.py has what they mean) ───────────────────────────────────────────────────────────
def pattern_of(node: t.Text) -> tuple[Piece, ...]:
    """Return a pattern as `runtime.match` takes it. Raises CompileError where it is malformed."""
    try:
        return compile_pattern(node.value)
    except ValueError as error:
        raise CompileError(node.span, str(error)) from None


def compile_pattern(pattern: str) -> tuple[Piece, ...]:
    """Split a pattern at its stars. Raises ValueError for a malformed capture."""
    pieces: list[list[tuple[str, str]]] = [[]]
    names: set[str] = set()
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "*":
            pieces.append([])
        elif char == "?":
            pieces[-1].append(("?", ""))
        elif char == "{":
            end = pattern.find("}", at)
            name, _, kind = pattern[at + 1 : end].partition(":")
            if end < 0 or kind not in ("int", "word") or (name and not name.isidentifier()):
                wrong = pattern[at : end + 1] or pattern[at:]
                raise ValueError(f"a capture is written {{name:int}} or {{name:word}}, not {wrong!r}")
            if name in names:
                raise ValueError(f"the capture {name!r} appears twice in this pattern")
            names.update((name,) if name else ())
            pieces[-1].append((kind, name))
            at = end
        elif pieces[-1] and pieces[-1][-1][0] == "=":
            pieces[-1][-1] = ("=", pieces[-1][-1][1] + char)
        else:
            pieces[-1].append(("=", char))
        at += 1
    return tuple(tuple(piece) for piece in pieces)


def plain_test(pieces: tuple[Piece, ...]) -> str:
    """Return Python source that tests a text ``{0}`` for a pattern of one fixed text; empty for any other."""
    parts = [piece[0][1] if piece and piece[0][0] == "=" else "" for piece in pieces]
    if any(len(piece) > 1 or (piece and not part) for piece, part in zip(pieces, parts, strict=True)):
        return ""
    texts = [repr(part).replace("{", "{{").replace("}", "}}") for part in parts]
    if len(parts) == 1:
        return f"{{0}} == {texts[0]}"
    if not any(parts[1:]):
        return f"{{0}}.startswith({texts[0]})"
    if not any(parts[:-1]):
        return f"{{0}}.endswith({texts[-1]})"
    return f"{texts[1]} in {{0}}" if len(parts) == 3 and not parts[0] and not parts[2] else ""
