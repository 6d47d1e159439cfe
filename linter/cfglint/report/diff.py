"""Unified diffs that ``git apply`` takes, byte for byte."""

from __future__ import annotations

import os
from difflib import SequenceMatcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_CONTEXT = 3
_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def unified(path: str, old_text: str, new_text: str) -> str:
    r"""Return the diff from ``old_text`` to ``new_text``, or an empty text where they are equal.

    Lines end at ``\n`` only, as git counts them, so that ``\r\n`` and a lone ``\r`` stay as they are.
    A byte order mark belongs to the texts, or the patch will not fit the file.
    """
    if old_text == new_text:
        return ""
    old, new = split_lines(old_text), split_lines(new_text)
    name = _tidy(path)
    parts = [f"--- {_quoted('a/' + name)}\n", f"+++ {_quoted('b/' + name)}\n"]
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT):
        old_range = _range(group[0][1], group[-1][2])
        new_range = _range(group[0][3], group[-1][4])
        parts.append(f"@@ -{old_range} +{new_range} @@\n")
        for kind, old_start, old_end, new_start, new_end in group:
            if kind == "equal":
                parts.extend(_marked(" ", old[old_start:old_end]))
                continue
            parts.extend(_marked("-", old[old_start:old_end]))
            parts.extend(_marked("+", new[new_start:new_end]))
    return "".join(parts)


def split_lines(text: str) -> list[str]:
    r"""Split at ``\n`` alone and keep it; str.splitlines would also cut at ``\r``, NEL and form feeds."""
    lines = text.split("\n")
    last = lines.pop()
    kept = [line + "\n" for line in lines]
    return [*kept, last] if last else kept


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line
        if not line.endswith("\n"):
            yield "\n\\ No newline at end of file\n"


def _range(start: int, end: int) -> str:
    # An empty range is written with the line before it, which is 0 at the top of a file.
    count = end - start
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


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
