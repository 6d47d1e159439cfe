"""What a fix changes: the lines that edits replace, a window around what matters, patches for git."""

from __future__ import annotations

import os
import re
from itertools import pairwise

from rich.cells import cell_len

from cfglint.record import Record
from cfglint.text import Edit, LineIndex, apply_edits, line_starts, shown_char

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_TAB = "    "
_CUT = "…"
_REACH = 4  # characters looked at per cell of room: a file of one endless line must not be measured whole
_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def window(line: str, start: int, end: int, room: int) -> tuple[str, int, int]:
    """Return what to show of ``line`` in ``room`` cells, and the cell and width of ``line[start:end]`` in it.

    A line that is too long is cut on one side or on both, so that the start of the span stays visible.
    """
    start = min(start, len(line))
    first, last = max(start - room * _REACH, 0), start + room * _REACH
    pieces = [_TAB if char == "\t" else shown_char(char) for char in line[first:last]]
    start -= first
    end = min(max(end - first, start), len(pieces))
    before, span, whole = _cells(pieces, 0, start), _cells(pieces, start, end), _cells(pieces, 0, len(pieces))
    if whole <= room and first == 0 and last >= len(line):
        return "".join(pieces).rstrip(), before, span
    # The key before the value tells more than what follows it, hence two thirds of what is free.
    free = max(room - 2 * cell_len(_CUT) - min(span, room // 2), 0)
    left = _back(pieces, start, free * 2 // 3)
    opening = _CUT if first + left else ""
    used = cell_len(opening) + _cells(pieces, left, start)
    right = _forth(pieces, left, room - cell_len(_CUT) - cell_len(opening))
    closing = _CUT if first + right < len(line) else ""
    text = (opening + "".join(pieces[left:right]) + closing).rstrip()
    return text, used, _cells(pieces, start, max(min(end, right), start))


def _cells(pieces: Sequence[str], start: int, end: int) -> int:
    # Measured as a whole: in an emoji sequence the sum of the parts is more than what is shown.
    return cell_len("".join(pieces[start:end]))


def _back(pieces: Sequence[str], start: int, room: int) -> int:
    while start and room >= cell_len(pieces[start - 1]):
        start -= 1
        room -= cell_len(pieces[start])
    return start


def _forth(pieces: Sequence[str], end: int, room: int) -> int:
    while end < len(pieces) and room >= cell_len(pieces[end]):
        room -= cell_len(pieces[end])
        end += 1
    return end


class Change(Record):
    """Lines that a fix replaces by others; either side may be empty. Line numbers count from 1."""

    old_line: int
    old: list[str]
    new_line: int
    new: list[str]


def changes(index: LineIndex, edits: Iterable[Edit]) -> list[Change]:
    """Return the lines that ``edits`` change, without what stays the same around them."""
    blocks: list[tuple[int, int, list[Edit]]] = []
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        first, last = index.position(edit.start)[0], index.position(edit.end)[0]
        if blocks and first <= blocks[-1][1]:
            top, bottom, together = blocks[-1]
            blocks[-1] = (top, max(bottom, last), [*together, edit])
        else:
            blocks.append((first, last, [edit]))
    changed: list[Change] = []
    moved = 0
    for first, last, together in blocks:
        start = index.starts[first - 1]
        end = index.starts[last] if last < len(index.starts) else len(index.text)
        text = index.text[start:end]
        shifted = [Edit(edit.start - start, edit.end - start, edit.new) for edit in together]
        old, new = _lines(text), _lines(apply_edits(text, shifted))
        same, end_of_old = difference(old, new)
        end_of_new = len(new) - (len(old) - end_of_old)
        own_line = first + same
        changed.append(Change(own_line, old[same:end_of_old], own_line + moved, new[same:end_of_new]))
        moved += len(new) - len(old)
    return changed


def _lines(text: str) -> list[str]:
    bounds = [*line_starts(text), len(text)]
    return [text[a:b].rstrip("\r\n") for a, b in pairwise(bounds)]


def difference(text: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """Return the span of ``text`` outside of what both begin and end with."""
    most = min(len(text), len(other))
    start = 0
    while start < most and text[start] == other[start]:
        start += 1
    end = 0
    while end < most - start and text[-1 - end] == other[-1 - end]:
        end += 1
    return start, len(text) - end


# ── patches that `git apply` takes, byte for byte ────────────────────────────────────────────────────────
def unified(path: str, old_text: str, new_text: str) -> str:
    r"""Return the diff from ``old_text`` to ``new_text``, or an empty text where they are equal.

    Lines end at ``\n`` only, as git counts them, so that ``\r\n`` and a lone ``\r`` stay as they are.
    A byte order mark belongs to the texts, or the patch will not fit the file.
    """
    from difflib import unified_diff

    name = _tidy(path)
    old, new = split_lines(old_text), split_lines(new_text)
    lines = unified_diff(old, new, _quoted("a/" + name), _quoted("b/" + name))
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def split_lines(text: str) -> list[str]:
    r"""Split at ``\n`` alone and keep it; str.splitlines would also cut at ``\r``, NEL and form feeds."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _tidy(path: str) -> str:
    """Make ``path`` one that a patch may name: git refuses absolute paths and knows slashes only."""
    if os.sep != "/":
        path = os.path.splitdrive(path)[1].replace(os.sep, "/")
    parts = [part for part in path.split("/") if part not in {"", "."}]
    return "/".join(parts)


def _quoted(name: str) -> str:
    """Write ``name`` as git does: C escapes in quotes, or a tab at the end where blanks would be cut."""
    data = name.encode("utf-8", "surrogateescape")
    if all(0x20 <= byte < 0x7F and byte not in {34, 92} for byte in data):
        return name + "\t" if " " in name else name
    body = "".join(
        _ESCAPES.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}") for byte in data
    )
    return f'"{body}"'
