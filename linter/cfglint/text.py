"""Spans, edits and line numbers over a decoded text; offsets and columns count code points."""

from __future__ import annotations

from bisect import bisect_right

from cfglint.record import Record, Value, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Edit(Value):
    """Replace ``text[start:end]`` by ``new``; an insertion has ``start == end``."""

    start: int
    end: int
    new: str

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"an edit cannot run from {self.start} to {self.end}")


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
    import re  # a report that shows no line must not pay for it

    return [0, *(match.end() for match in re.finditer("\r\n?|\n", text))]


class LineIndex(Record):
    """Turns offsets of one text into lines and columns, both counted from 1."""

    text: str
    starts: list[int] = field(factory=list, init=False)

    def __post_init__(self) -> None:
        self.starts = line_starts(self.text)

    def position(self, offset: int) -> tuple[int, int]:
        """Return ``(line, column)`` of ``offset``; the end of the text is a position too."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Return the text of line ``number`` without its line break."""
        start = self.starts[number - 1]
        end = self.starts[number] if number < len(self.starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")
