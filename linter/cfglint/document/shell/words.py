"""Words of a shell command, each character with the place that it was written at.

What a script cannot tell by itself (an argument, the output of a command, a branch) is an unknown piece, and
a word with one is unknown: it is never guessed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from operator import attrgetter

from cfglint.budget import spend
from cfglint.document.tree import Node, Scalar
from cfglint.record import Record, Value, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeVar

    Item = TypeVar("Item")

QUOTED, LITERAL, EXPANDED = "quoted", "literal", "expanded"
# What unknown pieces are called that a path may begin with: the working folder, and the script's own place.
HERE, SELF, BESIDE = "the working folder", "the script's own path", "the script's folder"
# Unknown pieces that may be any number of words: items of an array, arguments, files that a pattern matches.
ALL, BRACES, FILES = "[@]", "braces", "what files are there"
OUTPUT = "the output of "
_PRINTS = re.compile(re.escape(OUTPUT) + r"(?!\$\(\s*(?:seq|nproc)\b)")
MANY = ("@", "*", BRACES, FILES)
# The carriage return at the end of a line is none of bash's blanks, but no part of a word that anybody means.
_BLANK_OR_NOT = re.compile(r"((?:[ \t\n]|\r(?=\n|\Z))+)|(?:[^ \t\n\r]|\r(?!\n|\Z))+")
# A variable that the script fills with flags: OPTIONS=" --fp16 …", EXTRA+=(--bf16).
_FILLED = re.compile(r"""\b([A-Za-z_]\w*)\+?=\(?["']?[\s\\]*--?[A-Za-z]""")
LARGEST = 2**63
_TEXT = attrgetter("text")
_LONG = 64  # characters of a text that count as a step
_FAST = 16  # pieces that are gone through in a step
_AROUND = " \t\n"
_BLANK = " \t\r\n"  # of YAML and JSON
_ESCAPE_LENGTHS = {"x": 4, "u": 6, "U": 10}
_HIGH_SURROGATES = ("\\ud8", "\\ud9", "\\uda", "\\udb")


class Piece(Value):
    """A stretch of text that is at ``[start, end)`` of the file; -1 where it was computed.

    ``unknown`` names what the text depends on; ``maybe`` says that it is there on some ways through the
    script only. ``loose`` says that the text is somewhere between, and not known where; ``counts``, that it
    is how many numbers are listed there. A computed piece ``reads`` others; where it is their ``product``,
    that is at this place. ``mode`` says how it got into a word. What another script says is ``there``: the
    script's name, its text, and where that has the piece. Two pieces are equal that say the same at the same
    place.
    """

    text: str
    start: int
    end: int
    mode: str = field(default=LITERAL, compare=False)
    unknown: str = field(default="", kw_only=True)
    maybe: bool = field(default=False, kw_only=True)
    loose: bool = field(default=False, kw_only=True)
    counts: bool = field(default=False, kw_only=True, compare=False)
    reads: tuple[Piece, ...] = field(default=(), kw_only=True, compare=False)
    product: tuple[int, int] = field(default=(-1, -1), kw_only=True, compare=False)
    there: tuple[str, str, int] | None = field(default=None, kw_only=True, compare=False)

    @property
    def verbatim(self) -> bool:
        """Whether the file has the text as it is."""
        return self.start >= 0 and not self.loose and self.end - self.start == len(self.text)

    def within(self, mode: str) -> Piece:
        """Return the piece as it is in another context."""
        return self if mode == self.mode else replace(self, mode=mode)

    def doubtful(self) -> Piece:
        """Return the piece as one that may not be there."""
        return replace(self, maybe=True)

    def cut(self, first: int, last: int) -> Piece:
        """Return the part ``[first, last)`` of the text."""
        if first == 0 and last == len(self.text):
            return self
        if self.loose:
            there = self.there and (*self.there[:2], self.there[2] + first)
            return replace(self, text=self.text[first:last], there=there)
        start, end = (self.start + first, self.start + last) if self.verbatim else (-1, -1)
        return Piece(self.text[first:last], start, end, self.mode, maybe=self.maybe, reads=self.reads)


Pieces = tuple[Piece, ...]
BREAK = Piece("", -1, -1)  # between the items of an array, in what `expand` gives


class Array(Value):
    """The value of an array variable: the pieces of each item."""

    items: list[Pieces]


class Word(Record):
    """One word of a command; ``[start, end)`` is where the file has it as a whole."""

    pieces: Pieces
    start: int
    end: int

    @property
    def text(self) -> str | None:
        """The word's text; None where it is not known, or not whether the word is there."""
        return None if uncertain(self.pieces) else self.spelled

    @property
    def spelled(self) -> str:
        """The known part of the text."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def maybe(self) -> bool:
        """Whether the word is there on some ways only."""
        return any(piece.maybe for piece in self.pieces)

    def from_(self, first: int) -> Word:
        """Return the word without its first characters, all of them known."""
        pieces: list[Piece] = []
        for piece in self.pieces:
            length = len(piece.text)
            if piece.unknown or first <= 0:
                pieces.append(piece)
            elif first < length:
                pieces.append(piece.cut(first, length))
            first -= length
        return Word(tuple(pieces), self.start, self.end)


class Command(Record):
    """One command that the script runs: ``NAME=value`` in front, then its words.

    ``outer`` is the command that was given it to run (``docker run … bash -c``), ``end`` where it ends in the
    file, -1 where it is not known, ``repeated`` that a loop may run it several times, ``beside`` that the
    script goes on meanwhile, ``turns`` the numbers of the GPUs that it has in a loop's rounds, ``alone`` that
    it has one GPU in each.
    """

    words: list[Word]
    environment: dict[str, Pieces]
    exported: dict[str, Pieces | Array] = field(factory=dict)
    outer: list[Word] = field(factory=list)
    end: int = -1
    repeated: bool = False
    beside: bool = False
    turns: tuple[int, ...] = ()
    alone: bool = False


def unknown(why: str) -> Piece:
    """Return a piece of unknown text."""
    return Piece("", -1, -1, EXPANDED, unknown=why or "?")


def cost(pieces: Pieces) -> int:
    """Return the steps of going through a variable's pieces."""
    return 1 + len(pieces) // _FAST + sum(map(len, map(_TEXT, pieces))) // _LONG


def uncertain(pieces: Iterable[Piece]) -> bool:
    """Whether some of the text is unknown, or may not be there."""
    return any(piece.unknown or piece.maybe for piece in pieces)


def known_places(items: Sequence[Pieces]) -> int:
    """Return how many of some arguments stand where they seem to: each is one word, known or not."""
    return next((at for at, item in enumerate(items) if any(map(_may_be_several, item))), len(items))


def _may_be_several(piece: Piece) -> bool:
    return piece.maybe or piece.unknown in MANY or piece.unknown.endswith(ALL)


def split(pieces: Sequence[Piece], start: int, end: int, *, blanks_split: bool = True) -> list[Word]:
    """Return the words that one argument comes to: what is expanded without quotes is cut at blanks."""
    words: list[Word] = []
    held: list[Piece] = []

    def close() -> None:
        if held:
            words.append(_placed(held, start, end))
        held.clear()

    for piece in pieces:
        if piece is BREAK:
            close()
        elif piece.mode != EXPANDED or piece.unknown:
            held.append(piece)
        elif not blanks_split and not set(piece.text).isdisjoint(" \t\n"):
            held.append(unknown("IFS"))
        else:
            for run in _BLANK_OR_NOT.finditer(piece.text):
                if run[1]:
                    close()
                else:
                    held.append(piece.cut(*run.span()))
    close()
    if len(words) == 1:
        words[0].start, words[0].end = start, end
    return words


def _placed(pieces: list[Piece], start: int, end: int) -> Word:
    """Return a word at its own place where it has one: the words of a variable are in its definition."""
    first, last = pieces[0], pieces[-1]
    if first.start >= 0 and last.end >= first.start and all(p.start >= 0 for p in pieces):
        return Word(tuple(pieces), first.start, last.end)
    return Word(tuple(pieces), start, end)


def joined(words: Iterable[Word]) -> Pieces:
    """Return the pieces of several words with a blank between them, as ``$*`` or ``eval`` has them."""
    pieces: list[Piece] = []
    for word in words:
        if pieces:
            pieces.append(Piece(" ", -1, -1, maybe=word.maybe))
        pieces.extend(word.pieces)
    return tuple(pieces)


def combined(left: int, sign: str, right: int) -> int | None:
    """Return what an operator makes of two whole numbers; None where bash would fail, or it is too large."""
    if abs(left) >= LARGEST or abs(right) >= LARGEST:
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


def values_of(words: Sequence[Word], flags: tuple[str, ...]) -> Iterator[Word]:
    """Yield the values of a flag by any of its names, after it or after ``=``."""
    for at, word in enumerate(words):
        name, equals, _ = word.spelled.partition("=")
        if name in flags and equals:
            yield word.from_(len(name) + 1)
        elif name in flags and at + 1 < len(words):
            yield words[at + 1]


def filled(
    pieces: Pieces, pattern: re.Pattern[str], fill: Callable[[re.Match[str], Piece], Pieces | None]
) -> Pieces:
    """Fill variables in; where ``fill`` returns None, the text stays."""
    parts: list[Piece] = []
    for piece in pieces:
        at = 0
        for match in pattern.finditer(piece.text):
            dollar = match.group() == "$$"
            new = (Piece("$", -1, -1, piece.mode),) if dollar else fill(match, piece)
            if new is not None:
                parts += (piece.cut(at, match.start()), *new)
                at = match.end()
        parts.append(piece.cut(at, len(piece.text)) if at else piece)
    return tuple(piece for piece in parts if piece.text or piece.unknown or len(parts) == 1)


def stripped(pieces: list[Piece]) -> list[Piece]:
    """Return pieces without blanks at both ends, as ``read`` stores them."""
    pieces = list(pieces)
    for end in (0, -1):
        while pieces and not pieces[end].unknown and not pieces[end].text.strip(_AROUND):
            del pieces[end]
        if pieces and not pieces[end].unknown:
            text = pieces[end].text
            kept = len(text.rstrip(_AROUND) if end else text.lstrip(_AROUND))
            pieces[end] = pieces[end].cut(0, kept) if end else pieces[end].cut(len(text) - kept, len(text))
    return pieces


# ── branches ───────────────────────────────────────────────────────────────────────────────────────────────
def meet(values: Sequence[Pieces | Array | None], name: str) -> Pieces | Array:
    """Return what a variable is worth after ways through the script that gave it different values."""
    first = values[0]
    if first is not None and all(value == first for value in values[1:]):
        return first
    arrays = [value.items for value in values if isinstance(value, Array)]
    if len(arrays) == len(values):
        return Array(_common(arrays, lambda item: tuple(piece.doubtful() for piece in item)))
    plain = [value for value in values if isinstance(value, tuple)]
    if len(plain) == len(values) and all(value and value[0] == plain[0][0] for value in plain):
        return tuple(_common(plain, Piece.doubtful))
    return (unknown(name),)


def _common(lists: Sequence[Sequence[Item]], doubtful: Callable[[Item], Item]) -> list[Item]:
    """Return what all lists begin with, then what each adds, as something that may not be there."""
    spend(1 + sum(map(len, lists)) // _FAST, "branches of the script")
    first, *others = lists
    shared, beyond = 0, min(map(len, lists)) + 1
    while beyond - shared > 1:  # comparing slices takes no time where their items are the same
        middle = (shared + beyond) // 2
        if all(other[shared:middle] == first[shared:middle] for other in others):
            shared = middle
        else:
            beyond = middle
    return [*lists[0][:shared], *(doubtful(item) for items in lists for item in items[shared:])]


# ── scalars of YAML and JSON ───────────────────────────────────────────────────────────────────────────────
def pieces_of(text: str, node: Scalar) -> list[Piece]:
    """Return the pieces of a scalar of the file ``text``; a loose one where the two do not match.

    They do not for characters that YAML takes for ends of lines and a shell does not (U+0085, U+2028).
    """
    pieces = _block(text, node) if node.style == "|" else _Alignment(text, node).pieces()
    if pieces is not None and "".join(piece.text for piece in pieces) == node.text:
        return pieces
    return [Piece(node.text, node.start, node.end, loose=True)] if node.text else []


def _block(text: str, node: Scalar) -> list[Piece] | None:
    """Match ``|``: each line is one of the file's without its indentation."""
    at = text.find("\n", node.start) + 1
    if not at:
        return None
    pieces: list[Piece] = []
    *lines, rest = node.text.split("\n")
    for line in (*lines, rest) if rest else lines:
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        end = stop - 1 if text[stop - 1 : stop] == "\r" and not line.endswith("\r") else stop
        if not text[at:end].endswith(line):
            return None
        if line:
            pieces.append(Piece(line, end - len(line), end))
        pieces.append(Piece("\n", end, stop + 1) if stop < len(text) else Piece("\n", -1, -1))
        at = stop + 1
    return pieces[:-1] if rest else pieces


class _Alignment:
    """Goes through a plain, quoted or folded scalar and its text side by side.

    Escapes and folded lines are pieces that are not verbatim.
    """

    def __init__(self, text: str, node: Scalar) -> None:
        quote = len(node.style) if node.style in ("'", '"') else 0
        self._text, self._value, self._style = text, node.text, node.style
        self._at = text.find("\n", node.start) + 1 if node.style == ">" else node.start + quote
        self._end = node.end - quote
        self._done = 0  # characters of the value
        self._begun = -1  # the place where the verbatim stretch at hand begins
        self._pieces: list[Piece] = []
        self._blanks = self._line_end = -1  # where the blanks at hand end, and the last line in them

    def pieces(self) -> list[Piece] | None:
        """Return the pieces; None where value and text do not match."""
        while self._done < len(self._value):
            if not self._step():
                return None
        self._take(0, 0)
        return self._pieces

    def _step(self) -> bool:
        raw = self._text[self._at] if self._at < self._end else ""
        char = self._value[self._done]
        if not raw:  # the line break that ends a folded block
            return char in _BLANK and self._take(1, 0)
        if raw == "\\" and self._style == '"':
            return self._escape()
        if raw == "'" and self._style == "'":
            return self._take(1, 2)
        if raw in "\r\n" or (raw in _BLANK and self._style != ">" and self._line_ends()):
            return self._fold()
        if raw == char:
            self._begun = self._at if self._begun < 0 else self._begun
            self._at += 1
            self._done += 1
            return True
        self._at += 1  # indentation of the first line, or of one that goes on
        return raw in _BLANK and self._begun < 0

    def _take(self, characters: int, size: int) -> bool:
        """Take characters of the value that so much text stands for."""
        at, done = self._at, self._done
        if self._begun >= 0:
            self._pieces.append(Piece(self._text[self._begun : at], self._begun, at))
            self._begun = -1
        if characters:
            start, end = (at, at + size) if size not in (0, characters) else (-1, -1)
            self._pieces.append(Piece(self._value[done : done + characters], start, end))
        self._at += size
        self._done += characters
        return True

    def _escape(self) -> bool:
        at = self._at
        escaped = self._text[at + 1]
        if escaped in "\r\n":  # the line goes on
            return self._take(0, self._blanks_end(at + 1) - at)
        length = _ESCAPE_LENGTHS.get(escaped, 2)
        if length == 6 and self._text[at : at + 4].lower() in _HIGH_SURROGATES:
            length = 12  # a pair stands for one character
        return self._take(1, length)

    def _fold(self) -> bool:
        size = self._blanks_end(self._at) - self._at
        value = self._value[self._done : self._done + size]
        return self._take(len(value) - len(value.lstrip(_BLANK)), size)

    def _blanks_end(self, at: int) -> int:
        while at < self._end and self._text[at] in _BLANK:
            at += 1
        return at

    def _line_ends(self) -> bool:
        if self._at >= self._blanks:
            end = self._blanks_end(self._at)
            last = max(self._text.rfind(mark, self._at, end) for mark in "\r\n")
            self._blanks, self._line_end = end, last
        return self._line_end >= self._at


def word_of(text: str, node: Scalar) -> Word:
    """Return a scalar as a word of a command."""
    pieces = tuple(piece.within(QUOTED) for piece in pieces_of(text, node))
    return Word(pieces or (Piece("", node.start, node.end, QUOTED),), node.start, node.end)


def value_of(text: str, node: Node | None, name: str) -> Pieces:
    """Return what a variable of the environment is set to; unknown where nothing here says it."""
    if not isinstance(node, Scalar) or (not node.style and node.text in ("", "~", "null")):
        return (unknown(name),)
    return tuple(pieces_of(text, node))


# ── lists of flags ─────────────────────────────────────────────────────────────────────────────────────────
def hidden_flags(word: Word, script: str) -> str:
    """Return the name of a list whose flags are not known: more flags, no value of the flag before.

    It is an array that nothing in the script sets, or a variable that its branches fill with different flags.
    """
    name = word.pieces[0].unknown.removesuffix(ALL) if len(word.pieces) == 1 else ""
    if not name:
        return ""
    if word.pieces[0].unknown.endswith(ALL):
        return name
    return name if word.pieces[0].mode == EXPANDED and name in _filled(script) else ""


def prints_words(piece: Piece) -> bool:
    """Whether a piece is what a command prints, unquoted: any words, but for a command that only counts."""
    return piece.mode == EXPANDED and _PRINTS.match(piece.unknown) is not None


@lru_cache(maxsize=4)
def _filled(script: str) -> frozenset[str]:
    return frozenset(_FILLED.findall(script))
