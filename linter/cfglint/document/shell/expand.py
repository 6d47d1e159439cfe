"""What the words of a script come to: variables, defaults, arithmetic, quotes, arrays.

A script is parsed by tree-sitter's grammar of bash, with the way back from its bytes to the file's places.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache

from cfglint.budget import spend
from cfglint.document.shell.words import (
    BREAK,
    EXPANDED,
    LITERAL,
    QUOTED,
    Array,
    Piece,
    Pieces,
    Word,
    split,
    uncertain,
    unknown,
)
from cfglint.errors import OverBudgetError, UsageError
from cfglint.record import Record
from cfglint.text import small_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, ClassVar


DEEPEST = 60
SCRIPT = "words of the script"
_LONG = 64  # characters of a text that count as much as a piece
_IN_QUOTES = '$`"\\\n'
_ANSI = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_EXPANSIONS = (
    "simple_expansion", "expansion", "command_substitution", "arithmetic_expansion", "process_substitution",
)  # fmt: skip
# Nodes that are text as it is: words, and marks that the grammar takes for itself.
_TEXTS = (
    "word", "number", "variable_name", "extglob_pattern", "regex", "test_operator", "special_variable_name",
    "string_content", "{", "}", "[", "]", ",", "=", "+", "-", ":", "%", "^", "!", "$", "@", "/",
)  # fmt: skip
_DEFAULTS = (":-", "-", ":=", "=", "?", ":?", ":+", "+")
_LARGEST = 2**63
_SMALL = 10_000  # bytes that are parsed in a second and half a gigabyte, whatever they are
_BEYOND = re.compile(r"[^\x00-\x7f]")


@cache
def parser() -> Any:
    """Return tree-sitter's parser for bash. Raises UsageError where an installation lacks it."""
    try:
        import tree_sitter_bash
        from tree_sitter import Language, Parser
    except ImportError:
        missing = "pip install --force-reinstall tree-sitter tree-sitter-bash"
        raise UsageError(f"launch scripts are read with tree-sitter, which is not here: {missing}") from None
    return Parser(Language(tree_sitter_bash.language()))


class Source:
    """A text to parse, made of pieces of the file: one for the file itself, several for ``bash -c "…"``.

    ``names`` are variables that stand for unknown pieces.
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.names: dict[str, Pieces] = {}
        texts: list[str] = []
        self._pieces: list[Piece] = []
        self._starts: list[int] = []
        at = 0
        for piece in pieces:
            text = piece.text
            if piece.unknown or piece.maybe:
                name = f"__cfglint_{len(self.names)}"
                self.names[name] = (piece,)
                text = f"${{{name}}}"
                piece = Piece(text, -1, -1)  # noqa: PLW2901
            self._pieces.append(piece)
            self._starts.append(at)
            texts.append(text)
            at += len(text)
        self.text = "".join(texts)
        # To bash a letter beyond ASCII is a character of a word like a dot, and each byte stands for one
        # character then. The grammar's scanner looks letters up in a table for bytes: it may crash on others.
        self.data = _BEYOND.sub(".", self.text).encode("ascii")

    @property
    def loose(self) -> bool:
        """Whether the file does not say where the text is."""
        return any(piece.loose for piece in self._pieces)

    def parse(self) -> Any:
        """Return the root of the parsed text. Raises OverBudgetError where that takes too much."""
        size = len(self.data)
        spend(size // 8, SCRIPT)
        if size > _SMALL:
            from cfglint.document.shell.trial import is_bounded  # few scripts are so large

            if not is_bounded(self.data):
                raise OverBudgetError("parsing this script takes too much time or memory: it was not judged")
        root = parser().parse(self.data).root_node
        if root.has_error:
            spend(min(size, _SMALL) ** 2 // 500, SCRIPT)
        return root

    def text_of(self, node: Any) -> str:
        """Return the text of a node; to bash each character is one byte here."""
        return self.text[node.start_byte : node.end_byte]

    def slice(self, start: int, end: int, mode: str = LITERAL) -> list[Piece]:
        """Return the pieces between two bytes."""
        pieces: list[Piece] = []
        at = max(bisect_right(self._starts, start) - 1, 0)
        while at < len(self._pieces) and self._starts[at] < end:
            piece, begun = self._pieces[at], self._starts[at]
            low, high = max(start - begun, 0), min(end - begun, len(piece.text))
            if low < high:
                pieces.append(piece.cut(low, high).within(mode))
            at += 1
        return pieces

    def span(self, node: Any) -> tuple[int, int]:
        """Return where the file has a node; (-1, -1) where nothing of it is there."""
        places = [p for p in self.slice(node.start_byte, node.end_byte) if p.start >= 0]
        if not places:
            return -1, -1
        start, end = places[0].start, places[-1].end
        return (start, end) if start <= end else (places[0].start, places[0].end)

    def broken(self, root: Any) -> list[tuple[int, int]]:
        """Return where the file has what does not parse below a node."""
        found: list[tuple[int, int]] = []
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node.type in ("ERROR", "command"):
                found.append(self.span(node))
            else:
                waiting += [child for child in node.children if child.has_error]
        return [(start, end) for start, end in found if start >= 0]


class Expander(Record):
    """Expands the words of one script in the state that it is in."""

    source: Source
    variables: dict[str, Pieces | Array]
    arguments: list[Word] | None  # of the function that runs; None in the script itself

    def words(self, node: Any) -> list[Word]:
        """Return the words that an argument comes to."""
        start, end = self.source.span(node)
        pieces = self.pieces(node, 0)
        literal = "".join(piece.text if piece.mode == LITERAL else "\0" for piece in pieces)
        globbed = "".join(piece.text if piece.mode != QUOTED else "\0" for piece in pieces)
        if literal.startswith("~") or any(char in globbed for char in "*?") or _has_braces(literal):
            return [Word((*pieces, unknown("what files are there")), start, end)]
        return split(pieces, start, end, blanks_split="IFS" not in self.variables)

    def value(self, node: Any) -> Pieces:
        """Return what is assigned to a variable: nothing is split, and items are joined."""
        pieces = self.pieces(node, 0)
        if pieces and pieces[0].mode == LITERAL and pieces[0].text.startswith("~"):
            return (unknown("HOME"),)
        return tuple(Piece(" ", -1, -1) if piece is BREAK else piece for piece in pieces)

    def array(self, node: Any) -> Array:
        """Return the items of ``( … )``."""
        items = [child for child in node.named_children if child.type != "comment"]
        return Array([word.pieces for item in items for word in self.words(item)])

    def pieces(self, node: Any, depth: int, mode: str = LITERAL) -> list[Piece]:
        """Return the pieces of a word; BREAK stands between the items of an array."""
        if depth > DEEPEST or node.type == "ERROR":
            return [unknown("nesting")]
        expand = self._by_kind.get(node.type)
        if expand is not None:
            return expand(self, node, depth, mode)
        what = "the output of " if "substitution" in node.type else ""
        return [unknown(what + self.source.text_of(node)[:60])]

    # ── by the kind of node ────────────────────────────────────────────────────────────────────────────
    def _text(self, node: Any, _: int, mode: str) -> list[Piece]:
        if node.named_child_count:  # such as 16#$X
            return [unknown("a number's base")]
        return self.literal(node.start_byte, node.end_byte, mode)

    def _parts(self, node: Any, depth: int, mode: str) -> list[Piece]:
        return [piece for child in node.children for piece in self.pieces(child, depth + 1, mode)]

    def _quoted(self, node: Any, depth: int, _: str) -> list[Piece]:
        pieces = self.mixed(node, node.start_byte + 1, node.end_byte - 1, depth)
        if pieces or node.named_child_count:  # "${NONE[@]}" is not a word at all
            return pieces
        return [Piece("", *self.source.span(node), QUOTED)]

    def _translated(self, node: Any, depth: int, mode: str) -> list[Piece]:
        return self.pieces(node.children[-1], depth + 1, mode)

    def _raw(self, node: Any, _: int, __: str) -> list[Piece]:
        pieces = self.source.slice(node.start_byte + 1, node.end_byte - 1, QUOTED)
        return pieces or [Piece("", *self.source.span(node), QUOTED)]

    def _ansi(self, node: Any, _: int, __: str) -> list[Piece]:
        """Return the text of ``$'…'``."""
        if "\\" not in self.source.text_of(node)[2:-1]:
            return self.source.slice(node.start_byte + 2, node.end_byte - 1, QUOTED)
        parts = re.findall(r"\\(?s:(.?))|([^\\]+)", self.source.text_of(node)[2:-1])
        if any(not text and escaped not in _ANSI for escaped, text in parts):
            return [unknown("an escape")]
        return [Piece("".join(text or _ANSI[escaped] for escaped, text in parts), -1, -1, QUOTED)]

    def _simple(self, node: Any, _: int, mode: str) -> list[Piece]:
        return self.variable(self.source.text_of(node).strip()[1:], _inside(mode))

    def _arithmetic(self, node: Any, _: int, mode: str) -> list[Piece]:
        """Return what ``$(( … ))`` comes to."""
        inner = [child for child in node.named_children if child.type != "comment"]
        reads: list[Piece] = []
        value = self._number(inner[0], reads, 0) if len(inner) == 1 else None
        if value is None or not -_LARGEST <= value < _LARGEST:
            return [unknown(self.source.text_of(node)[:60]).within(_inside(mode))]
        return [Piece(str(value), -1, -1, _inside(mode), reads=tuple(reads))]

    # ── text and variables ─────────────────────────────────────────────────────────────────────────────
    def literal(self, start: int, end: int, mode: str) -> list[Piece]:
        """Return the text of the source between two bytes, its backslashes resolved."""
        pieces: list[Piece] = []
        for piece in self.source.slice(start, end, mode):
            if "\\" not in piece.text:
                pieces.append(piece)
            elif len(piece.text) == 1:  # what it escapes is in another piece
                pieces.append(unknown("an escape"))
            else:
                pieces.extend(_unescaped(piece, mode))
        return pieces

    def mixed(self, node: Any, start: int, end: int, depth: int) -> list[Piece]:
        """Return the pieces of a text in double quotes or of a here-document, with what it expands."""
        pieces: list[Piece] = []
        at = start
        for child in node.children:
            if child.type not in _EXPANSIONS or child.start_byte < at:
                continue
            # The grammar counts a blank between two expansions as part of the second.
            begun = child.start_byte
            while self.source.data[begun : begun + 1] in (b" ", b"\t", b"\n", b"\r"):
                begun += 1
            pieces.extend(self.literal(at, begun, QUOTED))
            pieces.extend(self.pieces(child, depth + 1, QUOTED))
            at = child.end_byte
        pieces.extend(self.literal(at, end, QUOTED))
        return pieces

    def variable(self, name: str, mode: str) -> list[Piece]:
        """Return what ``$name`` stands for."""
        if name in ("@", "*"):
            return _items([word.pieces for word in self.arguments or ()], name, mode)
        value = self._value(name)
        if value is None:
            return [unknown(name)]
        if isinstance(value, Array):
            value = value.items[0] if value.items else ()
        spend(sum(1 + len(piece.text) // _LONG for piece in value), SCRIPT)
        return [piece.within(mode) for piece in value] or [Piece("", -1, -1, mode)]

    def _value(self, name: str) -> Pieces | Array | None:
        place = small_number(name)
        if place is not None and self.arguments is not None and 0 < place <= len(self.arguments):
            return self.arguments[place - 1].pieces
        return self.variables.get(name)

    def _expansion(self, node: Any, depth: int, mode: str) -> list[Piece]:
        """Return what ``${…}`` stands for."""
        mode = _inside(mode)
        target, *rest = [*node.children[1:-1]] or [None]
        name = index = ""
        if target is not None and target.type in ("variable_name", "special_variable_name"):
            name = self.source.text_of(target)
        elif target is not None and target.type == "subscript":
            name = self.source.text_of(target.children[0])
            index = self.source.text_of(target)[len(name) + 1 : -1].strip()
        else:
            return [unknown(self.source.text_of(node)[:60])]
        if not rest:
            return self.variable(name, mode) if not index else self._indexed(name, index, mode)
        sign = self.source.text_of(rest[0])
        if index or sign not in _DEFAULTS:
            return [unknown(name)]
        return self._defaulted(name, sign, rest[1:], depth, mode)

    def _defaulted(self, name: str, sign: str, default: list[Any], depth: int, mode: str) -> list[Piece]:
        """Return what ``${name:-default}`` and its like stand for."""
        value = self._value(name)
        plain = value if isinstance(value, tuple) else None
        empty = ":" in sign and plain is not None and not any(piece.text for piece in plain)
        given = value is not None and not empty
        sign = sign[-1]
        unclear = (empty or sign in "-=") and uncertain(plain or ())
        if unclear or (sign == "?" and not given) or (sign == "+" and value is None):
            return [unknown(name)]
        if sign == "+":
            return self._argument(default, depth, mode) if given else [Piece("", -1, -1, mode)]
        if given:
            return self.variable(name, mode)
        pieces = self._argument(default, depth, mode)
        if sign == "=":
            self.variables[name] = tuple(pieces)
        return pieces

    def _argument(self, nodes: list[Any], depth: int, mode: str) -> list[Piece]:
        pieces: list[Piece] = []
        at = nodes[0].start_byte if nodes else 0
        for child in nodes:  # blanks between nodes belong to the text
            pieces.extend(self.literal(at, child.start_byte, mode))
            inner = self.pieces(child, depth + 1, QUOTED if mode == QUOTED else LITERAL)
            pieces.extend(p.within(mode) if p.mode == LITERAL else p for p in inner)
            at = child.end_byte
        return pieces or [Piece("", -1, -1, mode)]

    def _indexed(self, name: str, index: str, mode: str) -> list[Piece]:
        value = self.variables.get(name)
        if value is None:
            return [unknown(name)]
        items = value.items if isinstance(value, Array) else [value]
        if index in ("@", "*"):
            return _items(items, index, mode)
        number = small_number(index)
        if number is None or any(map(uncertain, items)) or number >= len(items):
            return [unknown(name)]
        return [piece.within(mode) for piece in items[number]]

    def _number(self, node: Any, reads: list[Piece], depth: int) -> int | None:
        """Return what an arithmetic expression comes to; ``reads`` takes the pieces that it rests on."""
        kind = node.type
        value: int | None = None
        if depth > DEEPEST:
            return None
        if kind in ("number", "word"):
            value = _integer(self.source.text_of(node))
        elif kind in ("variable_name", "simple_expansion", "expansion", "string"):
            name = self.source.text_of(node)
            pieces = self.variable(name, QUOTED) if kind == "variable_name" else self.pieces(node, depth + 1)
            if not uncertain(pieces) and not any(piece is BREAK for piece in pieces):
                reads.extend(pieces)
                value = _integer("".join(piece.text for piece in pieces).strip())
        elif kind == "parenthesized_expression" and node.named_child_count == 1:
            value = self._number(node.named_children[0], reads, depth + 1)
        elif kind == "unary_expression" and node.child_count == 2:
            value = self._number(node.children[1], reads, depth + 1)
            sign = self.source.text_of(node.children[0])
            value = None if value is None or sign not in "+-" else -value if sign == "-" else value
        elif kind == "binary_expression" and node.child_count == 3:
            left, right = (self._number(node.children[at], reads, depth + 1) for at in (0, 2))
            if left is not None and right is not None:
                value = _combined(left, self.source.text_of(node.children[1]), right)
        return value

    _by_kind: ClassVar[dict[str, Callable[[Expander, Any, int, str], list[Piece]]]] = {
        **dict.fromkeys(_TEXTS, _text),
        "concatenation": _parts,
        "command_name": _parts,
        "brace_expression": lambda *_: [unknown("braces")],
        "string": _quoted,
        "translated_string": _translated,
        "raw_string": _raw,
        "ansi_c_string": _ansi,
        "simple_expansion": _simple,
        "expansion": _expansion,
        "arithmetic_expansion": _arithmetic,
    }


def _inside(mode: str) -> str:
    """Return how a piece gets into a word by an expansion in another piece's place."""
    return EXPANDED if mode == LITERAL else QUOTED


def _items(items: list[Pieces], star: str, mode: str) -> list[Piece]:
    spend(sum(1 + len(piece.text) // _LONG for item in items for piece in item), SCRIPT)
    pieces: list[Piece] = []
    for item in items:
        if pieces:
            pieces.append(Piece(" ", -1, -1, mode) if star == "*" and mode == QUOTED else BREAK)
        pieces.extend(piece.within(mode) for piece in item)
    return pieces


def _combined(left: int, sign: str, right: int) -> int | None:
    if abs(left) >= _LARGEST or abs(right) >= _LARGEST:
        return None
    if sign in ("/", "%"):
        if right == 0:
            return None
        quotient = abs(left) // abs(right)  # bash cuts towards zero
        quotient = quotient if (left < 0) == (right < 0) else -quotient
        return quotient if sign == "/" else left - quotient * right
    if sign == "**":
        return left**right if 0 <= right < 64 and abs(left) < 2**32 else None
    return {"+": left + right, "-": left - right, "*": left * right}.get(sign)


def _integer(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", text) else None


def _has_braces(text: str) -> bool:
    opened = text.find("{")
    closed = text.find("}", opened)
    return opened >= 0 and closed > 0 and any(mark in text[opened:closed] for mark in (",", "..", "\0"))


def _unescaped(piece: Piece, mode: str) -> list[Piece]:
    pieces: list[Piece] = []
    text, at, begun = piece.text, 0, 0
    while at < len(text):
        following = text[at + 1 : at + 2]
        if text[at] != "\\" or not following or (mode == QUOTED and following not in _IN_QUOTES):
            at += 1
            continue
        if begun < at:
            pieces.append(piece.cut(begun, at))
        if following != "\n":
            start = piece.start + at if piece.verbatim else -1
            end = start + 2 if start >= 0 else -1
            pieces.append(Piece(following, start, end, QUOTED if mode == LITERAL else mode))
        at += 2
        begun = at
    if begun < len(text):
        pieces.append(piece.cut(begun, len(text)))
    return pieces
