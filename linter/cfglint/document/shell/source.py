"""A script as a parser sees it, with the way back from its bytes to the places of the file."""

from __future__ import annotations

import re
from bisect import bisect_right

from cfglint.document.shell.words import LITERAL, Piece
from cfglint.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cfglint.document.shell.words import Pieces

_BEYOND = re.compile(r"[^\x00-\x7f]")
_parsers: list[Any] = []


def parser() -> Any:
    """Return tree-sitter's parser for bash. Raises UsageError where an installation lacks it."""
    if not _parsers:
        try:
            import tree_sitter_bash
            from tree_sitter import Language, Parser
        except ImportError:
            missing = "pip install --force-reinstall tree-sitter tree-sitter-bash"
            raise UsageError(
                f"launch scripts are read with tree-sitter, which is not here: {missing}"
            ) from None
        _parsers.append(Parser(Language(tree_sitter_bash.language())))
    return _parsers[0]


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

    def parse(self) -> Any:
        """Return the root of the parsed text."""
        return parser().parse(self.data).root_node

    def offset(self, byte: int) -> int:
        """Return the character that a byte belongs to."""
        return min(byte, len(self.text))

    def text_of(self, node: Any) -> str:
        """Return the text of a node."""
        return self.text[self.offset(node.start_byte) : self.offset(node.end_byte)]

    def slice(self, start: int, end: int, mode: str = LITERAL) -> list[Piece]:
        """Return the pieces between two bytes."""
        first, last = self.offset(start), self.offset(end)
        found: list[Piece] = []
        at = max(bisect_right(self._starts, first) - 1, 0)
        while at < len(self._pieces) and self._starts[at] < last:
            piece, begun = self._pieces[at], self._starts[at]
            low, high = max(first - begun, 0), min(last - begun, len(piece.text))
            if low < high:
                found.append(piece.cut(low, high).within(mode))
            at += 1
        return found

    def span(self, node: Any) -> tuple[int, int]:
        """Return where the file has a node; (-1, -1) where nothing of it stands there."""
        places = [p for p in self.slice(node.start_byte, node.end_byte) if p.start >= 0]
        if not places:
            return -1, -1
        start, end = places[0].start, places[-1].end
        return (start, end) if start <= end else (places[0].start, places[0].end)
