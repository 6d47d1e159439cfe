"""The text of a script, made of pieces of a file, and its tree by tree-sitter's grammar of bash.

The way back leads from the tree's bytes to the file's places.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache

from cfglint.budget import spend
from cfglint.document.shell.words import LITERAL, Piece, Pieces
from cfglint.errors import OverBudgetError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

SCRIPT = "words of the script"
_SMALL = 10_000  # bytes that are parsed in a second and half a gigabyte, whatever they are
_PARSER = """
import tree_sitter_bash
from tree_sitter import Language, Parser
parser = Parser(Language(tree_sitter_bash.language()))"""
_TRIAL = "parser.parse(data)"
_BEYOND = re.compile(r"[^\x00-\x7f]")
# In a word after another expansion, the grammar takes `$B` for a dollar sign and the end of the word.
_LATER = re.compile(r"\(\([^\n]*?\)\)|(?<=[\w}\"/.,+:@%-])\$([A-Za-z_]\w*)")
# `[0]*3` in an array is a word, and to the grammar the key of an item.
_INDEX = re.compile(r"(?<![\w$}])\[[0-9]+\](?=\*)")
# A bracket at the beginning of a default, ${FILES:-[\"a\"]}: a letter to bash, and an error to the grammar.
_BRACKET = re.compile(r"(\$\{\w+:?[-=+])\[")
# A comment between the lines of a command: nothing is substituted, and the grammar takes it for an end.
_REMARK = re.compile(r"(?<=\s)`[ \t]*#[^`\n]*`")
# What the reader is to fill in; to the grammar, two redirections. In capitals, of several words, or <your_x>.
_FILL_IN = re.compile(
    r"(?<=[=\s/])<(?:[A-Z][A-Z0-9_]*[A-Z0-9]|[A-Za-z]\w*(?:[ -]\w+)+|(?:your|my|path|some)_\w+)>"
    r"(?=[\s/,:._-]|\Z)"
)
# A blank that is escaped begins a word; to the grammar it is nothing.
_BLANK = re.compile(r"(?<=[ \t])\\[ \t]")
_BEFORE = re.compile(r"[^\s;|&()<>`]*\Z")
_FARTHEST = 300  # characters back to the start of a word
_LONGEST = 300  # characters of an expression


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


def part_of(start: int, end: int) -> Any:
    """Return a parser that sees what is between two bytes of a text alone."""
    from tree_sitter import Parser, Range

    return Parser(parser().language, included_ranges=[Range((0, start), (0, end), start, end)])


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
        self._hidden: list[tuple[int, int, str]] = []  # variables that the grammar does not see
        data = _LATER.sub(self._hide, self.text) if "$" in self.text else self.text
        data = _INDEX.sub(lambda found: "." * len(found[0]), data)
        data = _BRACKET.sub(r"\1.", data)
        if "<" in data:
            data = _FILL_IN.sub(self._hide_whole, data)
        if "`" in data:
            data = _REMARK.sub(lambda found: " " * len(found[0]), data)
        if "\\ " in data or "\\\t" in data:
            data = _BLANK.sub(self._hide_whole, data)
        self._hidden.sort()
        self.data = _BEYOND.sub(".", data).encode("ascii")

    def _hide(self, found: re.Match[str]) -> str:
        at = found.start()
        before = _BEFORE.search(self.text, max(at - _FARTHEST, 0), at) if found[1] else None
        if before is None or "$" not in before[0]:
            return found[0]
        self._hidden.append((at, found.end(), found[1]))
        return "." * len(found[0])

    def _hide_whole(self, found: re.Match[str]) -> str:
        self._hidden.append((found.start(), found.end(), found[0]))
        return "." * len(found[0])

    def hidden(self, start: int, end: int) -> list[tuple[int, int, str]]:
        """Return the variables between two bytes that the grammar does not see: place, end, name."""
        if not self._hidden:
            return []
        at = bisect_right(self._hidden, (start, -1, ""))
        found = []
        while at < len(self._hidden) and self._hidden[at][1] <= end:
            found.append(self._hidden[at])
            at += 1
        return found

    @property
    def loose(self) -> bool:
        """Whether the file does not say where the text is."""
        return any(piece.loose for piece in self._pieces)

    def parse(self) -> Any:
        """Return the root of the parsed text. Raises OverBudgetError where that takes too much."""
        size = len(self.data)
        spend(size // 8, SCRIPT)
        if size > _SMALL:
            from cfglint.document.trial import is_bounded  # few scripts are so large

            if not is_bounded(_PARSER, _TRIAL, self.data):
                raise OverBudgetError("parsing this script takes too much time or memory: it was not judged")
        root = parser().parse(self.data).root_node
        if root.has_error:
            spend(min(size, _SMALL) ** 2 // 500, SCRIPT)
        return root

    def arithmetic(self, node: Any) -> Any:
        """Return ``$((…))`` that the grammar took for a command's output, as in a default; else None."""
        start, end = node.start_byte, node.end_byte
        if end - start > _LONGEST or not re.match(r"\$\(\(.*\)\)\Z", self.text[start:end], re.DOTALL):
            return None
        spend(end - start, SCRIPT)
        root = part_of(start, end).parse(self.data).root_node
        while root.named_child_count == 1 and root.type != "arithmetic_expansion":
            root = root.named_children[0]
        return root if root.type == "arithmetic_expansion" and not root.has_error else None

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
            hidden = self.names.get(piece.text[2:-1]) if piece.start < 0 else None
            if hidden is not None and low < high:  # in single quotes: what it stands for, all the same
                pieces += [each.within(mode) for each in hidden]
            elif low < high:
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

    def near(self, node: Any) -> tuple[int, int]:
        """Return where the file has a node, or what is nearest: a computed number is nowhere in the file."""
        found = self.span(node)
        if found[0] >= 0:
            return found
        at = max(bisect_right(self._starts, node.start_byte) - 1, 0)
        before, after = reversed(self._pieces[:at]), self._pieces[at:]
        placed = [p for side in (before, after) if (p := next((p for p in side if p.start >= 0), None))]
        return (placed[0].start, placed[0].end) if placed else found

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
