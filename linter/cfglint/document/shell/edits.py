"""Edits of a launch script: another value in the place of one, or a flag behind the command's last."""

from __future__ import annotations

import re

from cfglint.document.tree import Built, Mapping, Scalar, Unread, walk
from cfglint.text import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.document import Document
    from cfglint.document.places import Path

# Means itself in every context: bare, in either kind of quotes, behind `:-`, in a here-document.
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,-]+\Z")
_OVERRIDE = re.compile(r"(?:\+\+|\+)?([A-Za-z_][\w./@-]*)=")


def spelled(value: object) -> str | None:
    """Return a value as a word that needs no quotes, None where it needs some."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif value is None:
        text = "null"
    elif isinstance(value, (int, float, str)):
        text = str(value)
    else:
        return None
    return text if _PLAIN.match(text) else None


def replace(node: Scalar, value: object) -> Edit | None:
    """Return the edit that puts ``value`` in the place of ``node``; false takes a flag without value away."""
    if isinstance(node, Unread) or node.start < 0 or node.start >= node.end:
        return None
    if isinstance(node, Built):
        return Edit(node.cut, node.end, "") if value is False and node.cut >= 0 else None
    new = spelled(value)
    if new is None:
        return None
    if isinstance(value, bool) and node.text[:1].isupper():
        new = new.capitalize()
    return Edit(node.start, node.end, new)


def insert(document: Document, path: Path, value: object) -> Edit | None:
    """Return the edit that gives the command one more flag, written and set apart as its last one is."""
    names = [part for part in path if isinstance(part, str)]
    root = document.root
    if len(names) != len(path) or not isinstance(root, Mapping) or names[0] == "launch":
        return None
    text = document.file.text
    # Keys know the word of their flag, and the flags stand in the order of the command.
    leaves = [n for key, e in root.entries.items() if key != "launch" for n in _leaves(e.value, e.key)]
    if len(leaves) < 2:
        return None
    (_, before), (flag, last) = leaves[-2:]
    style = _OVERRIDE.match(text, flag.start)
    end = _word_end(text, max(last.end, flag.end) if flag.start <= last.end <= flag.end + 400 else flag.end)
    if last.start < flag.start or last.start > flag.end + 400 or before.end > flag.start:
        return None  # its value is defined elsewhere: where the word itself ends is not kept
    gap = text[_word_end(text, before.end) : flag.start]
    if gap.strip(" \t\r\n\\") or not gap:
        gap = " "
    key = ".".join(names)
    word = spelled(value)
    if style is not None:
        return Edit(end, end, f"{gap}{key}={word}") if word is not None else None
    if value is True:
        return Edit(end, end, f"{gap}--{key}")
    return Edit(end, end, f"{gap}--{key} {word}") if word is not None and value is not False else None


def _leaves(node: object, key: Scalar) -> list[tuple[Scalar, Scalar]]:
    if isinstance(node, Mapping):
        return [leaf for entry in node.entries.values() for leaf in _leaves(entry.value, entry.key)]
    last = walk(node)[-1] if hasattr(node, "start") else None  # type: ignore[arg-type]
    return [(key, last)] if isinstance(last, Scalar) else [(key, key)]


def _word_end(text: str, at: int) -> int:
    while at < len(text) and text[at] in "\"'}":
        at += 1
    return at
