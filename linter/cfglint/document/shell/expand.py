"""What the words of a script come to: variables, defaults, arithmetic, quotes, arrays."""

from __future__ import annotations

from cfglint.document.shell.words import BREAK, EXPANDED, LITERAL, QUOTED, Array, Piece, Word, split, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cfglint.document.shell.source import Source
    from cfglint.document.shell.words import Pieces

DEEPEST = 60
_IN_QUOTES = '$`"\\'
_ANSI = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_EXPANSIONS = (
    "simple_expansion",
    "expansion",
    "command_substitution",
    "arithmetic_expansion",
    "process_substitution",
)
_LARGEST = 2**63


class Expander:
    """Expands the words of one script in the state that it is in."""

    def __init__(
        self, source: Source, variables: dict[str, Pieces | Array], arguments: list[Word] | None
    ) -> None:
        self.source = source
        self.variables = variables
        self.arguments = arguments  # of the function that runs; None in the script itself

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
        items: list[Pieces] = []
        for child in node.named_children:
            if child.type != "comment":
                items.extend(word.pieces for word in self.words(child))
        return Array(items)

    def pieces(self, node: Any, depth: int, mode: str = LITERAL) -> list[Piece]:
        """Return the pieces of a word; BREAK stands between the items of an array."""
        kind = node.type
        found: list[Piece]
        if depth > DEEPEST or kind == "ERROR":
            return [unknown("nesting")]
        inside = EXPANDED if mode == LITERAL else QUOTED
        if kind in (
            "word",
            "number",
            "variable_name",
            "extglob_pattern",
            "regex",
            "test_operator",
            "special_variable_name",
            "string_content",
        ):
            if node.named_child_count:  # such as 16#$X
                return [unknown("a number's base")]
            return self.literal(node.start_byte, node.end_byte, mode)
        if kind in ("concatenation", "command_name", "brace_expression"):
            if kind == "brace_expression":
                return [unknown("braces")]
            found = []
            for child in node.children:
                found.extend(self.pieces(child, depth + 1, mode))
            return found
        if kind == "string":
            found = self.mixed(node, node.start_byte + 1, node.end_byte - 1, depth)
            if found or node.named_child_count:  # "${NONE[@]}" is no word at all
                return found
            return [Piece("", *self.source.span(node), QUOTED)]
        if kind == "translated_string":
            return self.pieces(node.children[-1], depth + 1, mode)
        if kind == "raw_string":
            found = self.source.slice(node.start_byte + 1, node.end_byte - 1, QUOTED)
            return found or [Piece("", *self.source.span(node), QUOTED)]
        if kind == "ansi_c_string":
            return self._ansi(node)
        if kind == "simple_expansion":
            return self.variable(self.source.text_of(node).strip()[1:], inside)
        if kind == "expansion":
            return self._expansion(node, inside, depth)
        if kind == "arithmetic_expansion":
            return [self.arithmetic(node).within(inside)]
        if node.child_count == 0 and kind in (
            "{",
            "}",
            "[",
            "]",
            ",",
            "=",
            "+",
            "-",
            ":",
            "%",
            "^",
            "!",
            "$",
            "@",
            "/",
        ):
            return self.literal(node.start_byte, node.end_byte, mode)
        return [
            unknown(f"{'the output of ' if 'substitution' in kind else ''}{self.source.text_of(node)[:60]}")
        ]

    def literal(self, start: int, end: int, mode: str) -> list[Piece]:
        """Return the text of the source between two bytes, its backslashes resolved."""
        found: list[Piece] = []
        for piece in self.source.slice(start, end, mode):
            if "\\" not in piece.text:
                found.append(piece)
            elif len(piece.text) == 1:  # what it escapes stands in another piece
                found.append(unknown("an escape"))
            else:
                found.extend(_unescaped(piece, mode))
        return found

    def mixed(self, node: Any, start: int, end: int, depth: int) -> list[Piece]:
        """Return the pieces of a text in double quotes or of a here-document, with what it expands."""
        found: list[Piece] = []
        at = start
        for child in node.children:
            if child.type not in _EXPANSIONS or child.start_byte < at:
                continue
            # The grammar counts a blank between two expansions as part of the second.
            begun = child.start_byte
            while self.source.data[begun : begun + 1] in (b" ", b"\t", b"\n", b"\r"):
                begun += 1
            found.extend(self.literal(at, begun, QUOTED))
            found.extend(self.pieces(child, depth + 1, QUOTED))
            at = child.end_byte
        found.extend(self.literal(at, end, QUOTED))
        return found

    def variable(self, name: str, mode: str) -> list[Piece]:
        """Return what ``$name`` stands for."""
        if name in ("@", "*"):
            return self._items([word.pieces for word in self.arguments or ()], name, mode)
        if name.isdigit() and self.arguments is not None and 0 < int(name[:9]) <= len(self.arguments):
            return [piece.within(mode) for piece in self.arguments[int(name[:9]) - 1].pieces]
        value = self.variables.get(name)
        if value is None:
            return [unknown(name)]
        if isinstance(value, Array):
            value = value.items[0] if value.items else ()
        return [piece.within(mode) for piece in value] or [Piece("", -1, -1, mode)]

    def _items(self, items: list[Pieces], star: str, mode: str) -> list[Piece]:
        found: list[Piece] = []
        for item in items:
            if found:
                found.append(Piece(" ", -1, -1, mode) if star == "*" and mode == QUOTED else BREAK)
            found.extend(piece.within(mode) for piece in item)
        return found

    def _expansion(self, node: Any, mode: str, depth: int) -> list[Piece]:
        children = node.children[1:-1]
        name, index, rest = "", "", children
        if children and children[0].type in ("variable_name", "special_variable_name"):
            name, rest = self.source.text_of(children[0]), children[1:]
        elif children and children[0].type == "subscript":
            parts = children[0].children
            name, rest = self.source.text_of(parts[0]), children[1:]
            index = self.source.text_of(children[0])[len(name) + 1 : -1].strip()
        else:
            return [unknown(self.source.text_of(node)[:60])]
        if not rest:
            return self.variable(name, mode) if not index else self._indexed(name, index, mode)
        sign = self.source.text_of(rest[0])
        if index or sign not in (":-", "-", ":=", "=", "?", ":?", ":+", "+"):
            return [unknown(name)]
        value = self.variables.get(name)
        if name.isdigit() and self.arguments is not None and 0 < int(name[:9]) <= len(self.arguments):
            value = self.arguments[int(name[:9]) - 1].pieces
        given = value is not None
        known = "" if value is None or isinstance(value, Array) else "".join(p.text for p in value)
        if given and ":" in sign and not known and isinstance(value, tuple):
            if any(piece.unknown or piece.maybe for piece in value):
                return [unknown(name)]
            given = False  # it is set, and empty
        if sign in ("?", ":?"):
            return self.variable(name, mode) if given else [unknown(name)]
        if sign in ("+", ":+"):
            if not given and value is None:
                return [unknown(name)]
            return self._argument(rest[1:], mode, depth) if given else [Piece("", -1, -1, mode)]
        if given and isinstance(value, tuple) and any(p.unknown or p.maybe for p in value):
            return [unknown(name)]
        if given:
            return self.variable(name, mode)
        found = self._argument(rest[1:], mode, depth)
        if "=" in sign:
            self.variables[name] = tuple(found)
        return found

    def _argument(self, nodes: list[Any], mode: str, depth: int) -> list[Piece]:
        found: list[Piece] = []
        if nodes:  # blanks between nodes belong to the text
            at = nodes[0].start_byte
            for child in nodes:
                found.extend(self.literal(at, child.start_byte, mode))
                inner = self.pieces(child, depth + 1, QUOTED if mode == QUOTED else LITERAL)
                found.extend(p.within(mode) if p.mode == LITERAL else p for p in inner)
                at = child.end_byte
        return found or [Piece("", -1, -1, mode)]

    def _indexed(self, name: str, index: str, mode: str) -> list[Piece]:
        value = self.variables.get(name)
        if value is None:
            return [unknown(name)]
        items = value.items if isinstance(value, Array) else [value]
        if index in ("@", "*"):
            return self._items(items, index, mode)
        number = int(index) if index.isascii() and index.isdigit() and len(index) < 9 else -1
        if any(p.maybe or p.unknown for item in items for p in item) or not 0 <= number < len(items):
            return [unknown(name)]
        return [piece.within(mode) for piece in items[number]]

    def _ansi(self, node: Any) -> list[Piece]:
        text = self.source.text_of(node)[2:-1]
        if "\\" not in text:
            return self.source.slice(node.start_byte + 2, node.end_byte - 1, QUOTED)
        out, at = [], 0
        while at < len(text):
            if text[at] == "\\":
                if text[at + 1 : at + 2] not in _ANSI:
                    return [unknown("an escape")]
                out.append(_ANSI[text[at + 1]])
                at += 2
            else:
                out.append(text[at])
                at += 1
        return [Piece("".join(out), -1, -1, QUOTED)]

    # ── arithmetic ─────────────────────────────────────────────────────────────────────────────────────
    def arithmetic(self, node: Any) -> Piece:
        """Return what ``$(( … ))`` comes to."""
        inner = [child for child in node.named_children if child.type != "comment"]
        reads: list[Piece] = []
        value = self._number(inner[0], reads, 0) if len(inner) == 1 else None
        if value is None or not -_LARGEST <= value < _LARGEST:
            return unknown(self.source.text_of(node)[:60])
        return Piece(str(value), -1, -1, reads=tuple(reads))

    def _number(self, node: Any, reads: list[Piece], depth: int) -> int | None:
        kind = node.type
        if depth > DEEPEST:
            return None
        if kind in ("number", "word"):
            return _integer(self.source.text_of(node))
        if kind in ("variable_name", "simple_expansion", "expansion", "string"):
            name = self.source.text_of(node)
            pieces = self.variable(name, QUOTED) if kind == "variable_name" else self.pieces(node, depth + 1)
            if any(piece.unknown or piece.maybe or piece is BREAK for piece in pieces):
                return None
            reads.extend(pieces)
            return _integer("".join(piece.text for piece in pieces).strip())
        if kind == "parenthesized_expression" and node.named_child_count == 1:
            return self._number(node.named_children[0], reads, depth + 1)
        if kind == "unary_expression" and node.child_count == 2:
            value = self._number(node.children[1], reads, depth + 1)
            sign = self.source.text_of(node.children[0])
            return None if value is None or sign not in "+-" else (-value if sign == "-" else value)
        if kind == "binary_expression" and node.child_count == 3:
            left = self._number(node.children[0], reads, depth + 1)
            right = self._number(node.children[2], reads, depth + 1)
            if left is None or right is None:
                return None
            return _combined(left, self.source.text_of(node.children[1]), right)
        return None


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
    digits = text.removeprefix("-")
    if (
        not digits.isascii()
        or not digits.isdigit()
        or len(digits) > 18
        or (digits[0] == "0" and digits != "0")
    ):
        return None
    return int(text)


def _has_braces(text: str) -> bool:
    opened = text.find("{")
    closed = text.find("}", opened)
    return opened >= 0 and closed > 0 and any(mark in text[opened:closed] for mark in (",", "..", "\0"))


def _unescaped(piece: Piece, mode: str) -> list[Piece]:
    found: list[Piece] = []
    text, at, begun = piece.text, 0, 0
    while at < len(text):
        following = text[at + 1 : at + 2]
        if text[at] != "\\" or not following or (mode == QUOTED and following not in _IN_QUOTES + "\n"):
            at += 1
            continue
        if begun < at:
            found.append(piece.cut(begun, at))
        if following != "\n":
            start = piece.start + at if piece.verbatim else -1
            found.append(
                Piece(following, start, start + 2 if start >= 0 else -1, QUOTED if mode == LITERAL else mode)
            )
        at += 2
        begun = at
    if begun < len(text):
        found.append(piece.cut(begun, len(text)))
    return found
