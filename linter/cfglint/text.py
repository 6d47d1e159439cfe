"""Spans, edits and line numbers over a decoded text; and text that is safe to print.

Offsets and columns count code points.
"""

from __future__ import annotations

from bisect import bisect_right

from cfglint.record import Record, Value, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


# Marks that reorder or hide what a terminal shows (Trojan Source), and separators that break lines.
_HIDDEN = frozenset(
    "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
)


class Edit(Value):
    """Replace ``text[start:end]`` by ``new``; an insertion has ``start == end``."""

    start: int
    end: int
    new: str

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"an edit cannot run from {self.start} to {self.end}")


class OutsideEdit(Edit):
    """An edit of another script, ``file``, that a script runs, whose text was ``text``."""

    file: str = ""
    text: str = ""


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


def small_number(text: str) -> int | None:
    """Return the whole number that up to six ASCII digits spell; None for any other text, such as ``²``."""
    return int(text) if len(text) <= 6 and text.isascii() and text.isdigit() else None


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


# ── what a terminal or a CI runner would obey ──────────────────────────────────────────────────────────────
def shown_char(char: str) -> str:
    r"""Return ``char``, or its escape (``\x1b``) where a terminal would obey instead of show it."""
    code = ord(char)
    if code < 0x20 or 0x7F <= code < 0xA0:
        return {"\t": " ", "\n": "\\n", "\r": "\\r"}.get(char) or f"\\x{code:02x}"
    return f"\\u{code:04x}" if char in _HIDDEN or 0xD800 <= code < 0xE000 else char


def shown(text: str) -> str:
    """Return ``text`` with nothing in it that a terminal would obey; one line, whatever it was."""
    return text if text.isprintable() else "".join(map(shown_char, text))


def harmless(page: str) -> str:
    r"""Return a printed page without what a CI runner takes for a command: ``::error``, ``##[error]``.

    GitHub's looks for the first where a line begins, and for the second anywhere.
    """
    if "::" in page:
        page = "".join(
            f"{line[:at]}\\x3a{line[at + 1 :]}" if line.startswith("::", at := _indent(line)) else line
            for line in page.splitlines(keepends=True)
        )
    return without_marks(page)


def without_marks(page: str) -> str:
    """Return the same of a page whose ``::`` is meant, or of a line that begins with a word of our own."""
    if "##" not in page:
        return page
    import re

    return re.sub(r"##(?=\w*\[)", r"#\\u0023", page)  # JSON reads it as the mark


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def deep_key(text: str, most: int) -> int | None:
    """Return where a line of TOML begins that may have a key of more than ``most`` parts, None without any.

    Its readers take time that grows with the square of the parts.
    """
    start = 0
    for line in text.split("\n"):
        if line.count(".") >= most:
            import re  # most files have no such line

            plain = re.sub(r'"(?:[^"\\]|\\.)*"?|\'[^\']*\'?', "", line)
            if any(part.count(".") >= most for part in re.split(r"[=,\[\]{}#]", plain)):
                return start
        start += len(line) + 1
    return None


# ── lines for people ───────────────────────────────────────────────────────────────────────────────────────
_SIZES = [f"{size}{unit}" for size in "KMGT" for unit in ("B", "iB")]
_UNITS = frozenset(("%", "tokens", "params", "min", "ms", "h", "s", "B", *_SIZES))


def _words(text: str, *, loose: bool) -> list[str]:
    """Return the words of a text; a number keeps its unit: "15 GiB" is one word."""
    words: list[str] = []
    for word in text.split(" "):
        if words and not loose and _is_unit(word):
            words[-1] += f" {word}"
        else:
            words.append(word)
    return words


def _is_unit(word: str) -> bool:
    end = next((i for i, char in enumerate(word) if not (char.isalnum() or char == "_")), len(word))
    return word[: end or 1] in _UNITS


def wrap(
    text: str, width: int, first: str, rest: str, *, loose: bool = False, cells: Callable[[str], int] = len
) -> list[str]:
    """Break ``text`` at blanks into lines of ``width`` cells (0: one line); a longer word stays whole.

    A number keeps its unit, unless ``loose`` says otherwise.
    """
    lines: list[str] = []
    line, empty = first, True
    for word in _words(text, loose=loose):
        if width and not empty and cells(line) + 1 + cells(word) > width:
            lines.append(line)
            line, empty = rest, True
        line += word if empty else " " + word
        empty = False
    lines.append(line)
    return [line.rstrip() for line in lines]
