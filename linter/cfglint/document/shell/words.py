"""Words of a shell command, each character with the place that it was written at.

What a script cannot tell by itself (an argument, the output of a command, a branch) is an unknown piece, and
a word with one is unknown: it is never guessed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeAlias, TypeVar

    Item = TypeVar("Item")

QUOTED, LITERAL, EXPANDED = "quoted", "literal", "expanded"
_BLANKS = " \t\n"


class Piece:
    """A stretch of text that stands at ``[start, end)`` of the file; -1 where it was computed.

    ``unknown`` names what the text depends on; ``maybe`` says that it is there on some ways through the
    script only. A computed piece ``reads`` others. ``mode`` says how it got into a word.
    """

    __slots__ = ("end", "maybe", "mode", "reads", "start", "text", "unknown")

    def __init__(
        self,
        text: str,
        start: int,
        end: int,
        mode: str = LITERAL,
        *,
        unknown: str = "",
        maybe: bool = False,
        reads: tuple[Piece, ...] = (),
    ) -> None:
        self.text = text
        self.start = start
        self.end = end
        self.mode = mode
        self.unknown = unknown
        self.maybe = maybe
        self.reads = reads

    def __repr__(self) -> str:
        return f"Piece({self.text!r}, {self.start}, {self.end}, {self.unknown!r})"

    @property
    def verbatim(self) -> bool:
        """Whether the file has the text as it is."""
        return self.start >= 0 and self.end - self.start == len(self.text)

    def within(self, mode: str) -> Piece:
        """Return the piece as it stands in another context."""
        return Piece(
            self.text, self.start, self.end, mode, unknown=self.unknown, maybe=self.maybe, reads=self.reads
        )

    def doubtful(self) -> Piece:
        """Return the piece as one that may not be there."""
        return Piece(
            self.text, self.start, self.end, self.mode, unknown=self.unknown, maybe=True, reads=self.reads
        )

    def cut(self, first: int, last: int) -> Piece:
        """Return the part ``[first, last)`` of the text."""
        if first == 0 and last == len(self.text):
            return self
        start, end = (self.start + first, self.start + last) if self.verbatim else (-1, -1)
        return Piece(self.text[first:last], start, end, self.mode, maybe=self.maybe, reads=self.reads)

    def same(self, other: Piece) -> bool:
        """Whether both say the same, at the same place."""
        return (self.text, self.start, self.end, self.unknown, self.maybe) == (
            other.text,
            other.start,
            other.end,
            other.unknown,
            other.maybe,
        )


if TYPE_CHECKING:
    Pieces: TypeAlias = tuple[Piece, ...]


class Array:
    """The value of an array variable: the pieces of each item."""

    __slots__ = ("items",)

    def __init__(self, items: Iterable[Pieces]) -> None:
        self.items = list(items)


class Word:
    """One word of a command; ``[start, end)`` is where the file has it as a whole."""

    __slots__ = ("end", "pieces", "start")

    def __init__(self, pieces: Pieces, start: int, end: int) -> None:
        self.pieces = pieces
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"Word({self.text!r})"

    @property
    def text(self) -> str | None:
        """The word's text; None where it is not known, or not whether the word is there."""
        if any(piece.unknown or piece.maybe for piece in self.pieces):
            return None
        return self.spelled

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


BREAK = Piece("", -1, -1)  # between the items of an array, in what `expand` gives


def unknown(why: str, start: int = -1, end: int = -1) -> Piece:
    """Return a piece of unknown text."""
    return Piece("", start, end, EXPANDED, unknown=why or "?")


def split(pieces: Sequence[Piece], start: int, end: int, *, blanks_split: bool = True) -> list[Word]:
    """Return the words that one argument comes to: what is expanded without quotes is cut at blanks."""
    words: list[Word] = []
    held: list[Piece] = []
    there = False

    def close() -> None:
        nonlocal there
        if there:
            words.append(_placed(held, start, end))
        held.clear()
        there = False

    for piece in pieces:
        if piece is BREAK:
            close()
            continue
        if piece.mode != EXPANDED or piece.unknown:
            held.append(piece)
            there = True
            continue
        if not blanks_split and any(char in _BLANKS for char in piece.text):
            held.append(unknown("IFS"))
            there = True
            continue
        at = 0
        text = piece.text
        while at < len(text):
            if text[at] in _BLANKS:
                close()
                at += 1
                continue
            stop = at
            while stop < len(text) and text[stop] not in _BLANKS:
                stop += 1
            held.append(piece.cut(at, stop))
            there = True
            at = stop
    close()
    if len(words) == 1:
        words[0].start, words[0].end = start, end
    return words


def _placed(pieces: list[Piece], start: int, end: int) -> Word:
    """Return a word at its own place where it has one: the words of a variable stand in its definition."""
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


def meet(values: Sequence[Pieces | Array | None], name: str) -> Pieces | Array:
    """Return what a variable is worth after ways through the script that gave it different values."""
    first = values[0]
    if first is not None and all(_alike(first, other) for other in values[1:]):
        return first
    arrays = [value for value in values if isinstance(value, Array)]
    if len(arrays) == len(values):
        return Array(_common([array.items for array in arrays], _same_pieces, _doubtful))
    plain = [value for value in values if isinstance(value, tuple)]
    if len(plain) == len(values) and all(value and value[0].same(plain[0][0]) for value in plain):
        return tuple(_common(plain, Piece.same, Piece.doubtful))
    return (unknown(name),)


def _alike(one: Pieces | Array, other: Pieces | Array | None) -> bool:
    if isinstance(one, Array):
        return (
            isinstance(other, Array)
            and len(one.items) == len(other.items)
            and all(map(_same_pieces, one.items, other.items))
        )
    return isinstance(other, tuple) and _same_pieces(one, other)


def _same_pieces(one: Pieces, other: Pieces) -> bool:
    return one is other or (len(one) == len(other) and all(map(Piece.same, one, other)))


def _doubtful(item: Pieces) -> Pieces:
    return tuple(piece.doubtful() for piece in item)


def _common(
    lists: Sequence[Sequence[Item]], same: Callable[[Item, Item], bool], doubtful: Callable[[Item], Item]
) -> list[Item]:
    """Return what all lists begin with, then what each adds, as something that may not be there."""
    shortest = min(len(one) for one in lists)
    shared = 0
    while shared < shortest and all(same(lists[0][shared], one[shared]) for one in lists):
        shared += 1
    result = list(lists[0][:shared])
    for one in lists:
        result.extend(doubtful(item) for item in one[shared:])
    return result
