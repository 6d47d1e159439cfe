"""Spans, edits and line numbers over a decoded text; offsets and columns count code points."""

from __future__ import annotations

from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Edit:
    """Replace ``text[start:end]`` by ``new``; an insertion has ``start == end``."""

    __slots__ = ("end", "new", "start")

    def __init__(self, start: int, end: int, new: str) -> None:
        if not 0 <= start <= end:
            raise ValueError(f"an edit cannot run from {start} to {end}")
        self.start = start
        self.end = end
        self.new = new

    def __repr__(self) -> str:
        return f"Edit({self.start}, {self.end}, {self.new!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edit) and (self.start, self.end, self.new) == (
            other.start,
            other.end,
            other.new,
        )

    def __hash__(self) -> int:
        return hash((self.start, self.end, self.new))


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return ``text`` with all ``edits`` applied; they refer to the original and must not overlap.

    Insertions at one place keep their given order. Raises ValueError where two edits overlap.
    """
    parts: list[str] = []
    last = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < last or edit.end > len(text):
            raise ValueError(f"{edit!r} overlaps another edit or lies outside the text")
        parts.append(text[last : edit.start])
        parts.append(edit.new)
        last = edit.end
    parts.append(text[last:])
    return "".join(parts)


def line_starts(text: str) -> list[int]:
    r"""Offsets of line starts; lines end at ``\n``, ``\r\n`` or a lone ``\r``, as editors count them."""
    starts = [0]
    find = text.find
    if "\r" not in text:
        at = find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = find("\n", at + 1)
        return starts
    for i, char in enumerate(text):
        if char == "\n" or (char == "\r" and text[i + 1 : i + 2] != "\n"):
            starts.append(i + 1)
    return starts


class LineIndex:
    """Turns offsets of one text into lines and columns, both counted from 1."""

    __slots__ = ("starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = line_starts(text)

    def position(self, offset: int) -> tuple[int, int]:
        """Return ``(line, column)`` of ``offset``; the end of the text is a position too."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Return the text of line ``number`` without its line break."""
        start = self.starts[number - 1]
        end = self.starts[number] if number < len(self.starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")
