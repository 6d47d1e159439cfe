"""Unified diffs that ``git apply`` takes, byte for byte."""

from __future__ import annotations

import os
import re
from difflib import unified_diff

_NO_NEWLINE = "\n\\ No newline at end of file\n"
_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def unified(path: str, old_text: str, new_text: str) -> str:
    r"""Return the diff from ``old_text`` to ``new_text``, or an empty text where they are equal.

    Lines end at ``\n`` only, as git counts them, so that ``\r\n`` and a lone ``\r`` stay as they are.
    A byte order mark belongs to the texts, or the patch will not fit the file.
    """
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
