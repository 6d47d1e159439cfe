"""What the words of a script come to: variables, defaults, arithmetic, quotes, arrays."""

from __future__ import annotations

import re

from cfglint.budget import spend
from cfglint.document.shell.source import SCRIPT, Source
from cfglint.document.shell.words import (
    ALL,
    BRACES,
    BREAK,
    EXPANDED,
    FILES,
    HERE,
    LARGEST,
    LITERAL,
    QUOTED,
    SELF,
    Array,
    Piece,
    Pieces,
    Word,
    combined,
    cost,
    known_places,
    split,
    uncertain,
    unknown,
)
from cfglint.record import Record
from cfglint.text import small_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar


DEEPEST = 60
_HEADS = {"PWD": HERE, "0": SELF, "BASH_SOURCE": SELF}
_ARGUMENT = re.compile(rb"(?<!\\)\$([0-9#?])")
_BETWEEN = re.compile(rb"(?:[ \t\r\n]|\\\n)*")
_NO_FILE = re.compile(r"[\w.+-]+=|\(")
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
# What a cluster's own launcher sets: how many machines, processes and GPUs there are (Slurm, PBS, LSF, MPI,
# Kubeflow, SageMaker, SkyPilot, Volcano Engine, PAI).
_BY_CLUSTER = re.compile(
    r"SLURM_|WORLD_SIZE\Z|(?:PBS|LSB|OMPI|PMI|PET|SM|SKYPILOT|MLP|ARNOLD|KUBERNETES|PAI)_(?!\w*(?:RANK|INDEX))"
)


class Expander(Record):
    """Expands the words of one script in the state that it is in."""

    source: Source
    variables: dict[str, Pieces | Array]  # "@" are the arguments; absent in the script itself

    def words(self, node: Any, depth: int = 0) -> list[Word]:
        """Return the words that an argument comes to."""
        start, end = self.source.near(node)
        pieces = self.pieces(node, depth)
        literal = "".join(piece.text if piece.mode == LITERAL else "\0" for piece in pieces)
        if _has_braces(literal):
            return [Word((*pieces, unknown(BRACES)), start, end)]
        if literal.startswith("~"):
            pieces = _at_home(pieces)
        words = split(pieces, start, end, blanks_split="IFS" not in self.variables)
        for word in words:
            # No file is called `key=…`, or in brackets: such a pattern stays what it is.
            named = _NO_FILE.match(word.spelled) is not None
            if not named and any(
                piece.mode != QUOTED and ("*" in piece.text or "?" in piece.text) for piece in word.pieces
            ):
                word.pieces = (*word.pieces, unknown(FILES))
        return words

    def value(self, node: Any) -> Pieces:
        """Return what is assigned to a variable: nothing is split, and items are joined."""
        pieces = self.pieces(node, 0)
        if pieces and pieces[0].mode == LITERAL and pieces[0].text.startswith("~"):
            pieces = _at_home(pieces)
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
        sum_ = self.source.arithmetic(node) if node.type == "command_substitution" else None
        if sum_ is not None:
            return self._arithmetic(sum_, depth, mode)
        if "substitution" in node.type:
            from cfglint.document.shell.substituted import output_of

            return [piece.within(_inside(mode)) for piece in output_of(self, node, depth)]
        return [unknown(self.source.text_of(node)[:60])]

    # ── by the kind of node ────────────────────────────────────────────────────────────────────────────
    def _text(self, node: Any, _: int, mode: str) -> list[Piece]:
        if node.named_child_count:  # such as 16#$X
            return [unknown("a number's base")]
        return self.literal(node.start_byte, node.end_byte, mode)

    def _parts(self, node: Any, depth: int, mode: str) -> list[Piece]:
        pieces = [piece for child in node.children for piece in self.pieces(child, depth + 1, mode)]
        after = self.source.text[node.end_byte : node.end_byte + 1]
        if node.children and node.children[-1].type == "$" and (after.isalnum() or after in ("_", "{", "(")):
            pieces.append(unknown("what the grammar cuts off"))
        return pieces

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
        text = self.source.text_of(node)
        return self.variable(text[text.index("$") + 1 :].rstrip(), _inside(mode))

    def _arithmetic(self, node: Any, _: int, mode: str) -> list[Piece]:
        """Return what ``$(( … ))`` comes to."""
        inner = [child for child in node.named_children if child.type != "comment"]
        reads: list[Piece] = []
        value = self._number(inner[0], reads, 0) if len(inner) == 1 else None
        if value is None or not -LARGEST <= value < LARGEST:
            return [unknown(self.source.text_of(node)[:60]).within(_inside(mode))]
        own = self._same(inner[0]) or self._one_more(inner[0], reads)
        if own is not None and len(own) == 1 and own[0].text == str(value):
            return [own[0].within(_inside(mode))]
        multiplies = value > 0 and not self.source.loose and self._multiplies(inner[0])
        product = self.source.span(node) if multiplies else (-1, -1)
        return [Piece(str(value), -1, -1, _inside(mode), reads=tuple(reads), product=product)]

    def _multiplies(self, node: Any) -> bool:
        """Whether an expression is a product of variables: TP*PP*DP."""
        kind = node.type
        if kind == "parenthesized_expression" and node.named_child_count == 1:
            return self._multiplies(node.named_children[0])
        if kind == "binary_expression" and node.child_count == 3:
            left, sign, right = node.children
            return self.source.text_of(sign) == "*" and self._multiplies(left) and self._multiplies(right)
        return kind in ("variable_name", "simple_expansion", "expansion")

    def _same(self, node: Any) -> list[Piece] | None:
        """Return the pieces of the variable that an expression is worth: GPUS, of ``GPUS * 1``; else None."""
        kind = node.type
        own: list[Piece] | None = None
        if kind == "variable_name":
            own = self.variable(self.source.text_of(node), QUOTED)
        elif kind in ("simple_expansion", "expansion"):
            own = self.pieces(node, 1)
        elif kind == "parenthesized_expression" and node.named_child_count == 1:
            own = self._same(node.named_children[0])
        elif kind == "binary_expression" and node.child_count == 3:
            left, sign, right = node.children
            sign = self.source.text_of(sign)
            if sign in ("*", "/") and self._number(right, [], 1) == 1:
                own = self._same(left)
            elif sign == "*" and self._number(left, [], 1) == 1:
                own = self._same(right)
        return own

    def _one_more(self, node: Any, reads: list[Piece]) -> list[Piece] | None:
        """Return the number of what a list has, of one more than the signs between; else None."""
        parts = [self.source.text_of(child) for child in node.children] if len(reads) == 1 else []
        if len(parts) != 3 or parts[1:] != ["+", "1"] or node.children[0].type != "command_substitution":
            return None
        from cfglint.document.shell.piped import counted

        return [counted(reads[0].reads, str(int(reads[0].text) + 1))]

    # ── text and variables ─────────────────────────────────────────────────────────────────────────────
    def literal(self, start: int, end: int, mode: str) -> list[Piece]:
        """Return the text of the source between two bytes, its backslashes resolved."""
        pieces: list[Piece] = []
        for at, after, name in self.source.hidden(start, end):
            pieces += self.literal(start, at, mode)
            if name[0] == "\\":
                pieces.append(Piece(name if mode == QUOTED else name[1:], at, after, QUOTED))
            else:
                pieces += self.variable(name, _inside(mode))
            start = after
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
            # The grammar counts blanks and continued lines between two expansions as part of the second.
            begun = _BETWEEN.match(self.source.data, child.start_byte).end()  # type: ignore[union-attr]
            pieces.extend(self._arguments_in(at, begun))
            pieces.extend(self.pieces(child, depth + 1, QUOTED))
            at = child.end_byte
        pieces.extend(self._arguments_in(at, end))
        return pieces

    def _arguments_in(self, start: int, end: int) -> list[Piece]:
        """Return a text with the arguments ``$1`` in it, which the grammar does not see in here-documents."""
        pieces: list[Piece] = []
        at = start
        for found in _ARGUMENT.finditer(self.source.data, start, end):
            pieces.extend(self.literal(at, found.start(), QUOTED))
            pieces.extend(self.variable(found[1].decode(), QUOTED))
            at = found.end()
        return [*pieces, *self.literal(at, end, QUOTED)]

    def variable(self, name: str, mode: str) -> list[Piece]:
        """Return what ``$name`` stands for."""
        if name in ("@", "*"):
            given = self.variables.get("@")
            return _items(given.items if isinstance(given, Array) else [], name, mode)
        value = self.known(name)
        if value is None:
            return [unknown(_HEADS.get(name, name))]
        if isinstance(value, Array):
            value = value.items[0] if value.items else ()
        spend(cost(value), SCRIPT)
        return [piece if piece.mode == mode else piece.within(mode) for piece in value] or [
            Piece("", -1, -1, mode)
        ]

    def known(self, name: str) -> Pieces | Array | None:
        """Return what a variable is worth; None where the script does not say it."""
        place = 0 if name == "#" else small_number(name)
        given = self.variables.get("@") if place is not None else None
        if isinstance(given, Array):
            sure, number = known_places(given.items), len(given.items)
            if name == "#":
                return (Piece(str(number), -1, -1),) if sure == number else None
            if place and place <= sure:
                return given.items[place - 1]
            if place and sure < number:
                return (unknown(name),)
        return self.variables.get(name)

    def _expansion(self, node: Any, depth: int, mode: str) -> list[Piece]:
        """Return what ``${…}`` stands for."""
        mode = _inside(mode)
        target, *rest = [*node.children[1:-1]] or [None]
        name = index = ""
        if target is not None and target.type == "#":
            least, exact = self.number_of(node)
            if not exact:
                return [unknown(self.source.text_of(node)[:60])]
            return [self._length(node, least).within(mode)]
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

    def number_of(self, node: Any) -> tuple[int, bool]:
        """Return how many arguments or items there are, ``$#`` and ``${#NAME[@]}``, or letters; at least.

        The second says whether that is all.
        """
        inner = self.source.text_of(node).strip('${}" ')[1:]
        name, _, index = inner.partition("[")
        value = self.variables.get(name or "@")
        if not name or index in ("@]", "*]"):
            items = value.items if isinstance(value, Array) else [] if value is None else [value]
            sure = known_places(items)
            return sure, value is not None and sure == len(items)
        if index or not isinstance(value, tuple):
            return 0, False
        return sum(len(piece.text) for piece in value), not uncertain(value)

    def _length(self, node: Any, number: int) -> Piece:
        """Return a number of items; of a list of the first numbers, ``GPUS=(0 1 2 3)``, where that is."""
        value = self.variables.get(self.source.text_of(node).strip('${}" ')[1:].partition("[")[0])
        items = [item[0] for item in value.items if len(item) == 1] if isinstance(value, Array) else []
        first = [str(at) for at in range(number)]
        if number < 2 or [item.text for item in items] != first or not all(item.verbatim for item in items):
            return Piece(str(number), -1, -1)
        return Piece(str(number), items[0].start, items[-1].end, loose=True, counts=True)

    def _defaulted(self, name: str, sign: str, default: list[Any], depth: int, mode: str) -> list[Piece]:
        """Return what ``${name:-default}`` and its like stand for."""
        value = self.known(name)
        plain = value if isinstance(value, tuple) else None
        empty = ":" in sign and plain is not None and not any(piece.text for piece in plain)
        given = value is not None and not empty
        if value is None and sign[-1] in "-=" and _BY_CLUSTER.match(name):
            return [unknown(name)]  # the default is for a run by hand
        sign = sign[-1]
        sure = any(piece.text and not piece.maybe for piece in plain or ())  # some of it is there
        unclear = (empty or sign in "-=") and not sure and uncertain(plain or ())
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
        several = index in ("@", "*")
        if value is None:
            return [unknown(_HEADS.get(name, name) if index == "0" else name + ALL if several else name)]
        items = value.items if isinstance(value, Array) else [value]
        if several and not isinstance(value, Array) and uncertain(value):
            return [unknown(name + ALL)]
        if several:
            return _items(items, index, mode)
        number = small_number(index)
        if (
            number is None and isinstance(value, Array) and len(items) == 1
        ):  # which a script's loop picks from
            number = 0
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
        elif kind in ("variable_name", "simple_expansion", "expansion", "string", "command_substitution"):
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
                value = combined(left, self.source.text_of(node.children[1]), right)
        return value

    _by_kind: ClassVar[dict[str, Callable[[Expander, Any, int, str], list[Piece]]]] = {
        **dict.fromkeys(_TEXTS, _text),
        "concatenation": _parts,
        "command_name": _parts,
        "brace_expression": lambda *_: [unknown(BRACES)],
        "string": _quoted,
        "translated_string": _translated,
        "raw_string": _raw,
        "ansi_c_string": _ansi,
        "simple_expansion": _simple,
        "expansion": _expansion,
        "arithmetic_expansion": _arithmetic,
    }


def _at_home(pieces: list[Piece]) -> list[Piece]:
    """Return what ``~/…`` is below the home folder."""
    first, *rest = pieces
    if len(first.text) > 1 and not first.text.startswith("~/"):
        return [unknown("the home of another user"), *rest]
    return (
        [unknown("HOME"), first.cut(1, len(first.text)), *rest]
        if len(first.text) > 1
        else [unknown("HOME"), *rest]
    )


def _inside(mode: str) -> str:
    """Return how a piece gets into a word by an expansion in another piece's place."""
    return EXPANDED if mode == LITERAL else QUOTED


def _items(items: list[Pieces], star: str, mode: str) -> list[Piece]:
    spend(sum(map(cost, items)), SCRIPT)
    pieces: list[Piece] = []
    for item in items:
        if pieces:
            pieces.append(Piece(" ", -1, -1, mode) if star == "*" and mode == QUOTED else BREAK)
        pieces.extend(piece.within(mode) for piece in item)
    return pieces


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
        if following == "\r" and text[at + 2 : at + 3] == "\n":  # ends.py tells it
            following = "\r\n"
        if text[at] != "\\" or not following or (mode == QUOTED and following[-1] not in _IN_QUOTES):
            at += 1
            continue
        if begun < at:
            pieces.append(piece.cut(begun, at))
        if following[-1] != "\n":
            start = piece.start + at if piece.verbatim else -1
            end = start + 2 if start >= 0 else -1
            pieces.append(Piece(following, start, end, QUOTED if mode == LITERAL else mode))
        at += 1 + len(following)
        begun = at
    if begun < len(text):
        pieces.append(piece.cut(begun, len(text)))
    return pieces
