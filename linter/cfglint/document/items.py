"""Edits that put one more item into a list of YAML, JSON or TOML."""

from __future__ import annotations

from cfglint.document.edits import descend, insert_key, spell
from cfglint.document.scalars import JSON, TOML, Dialect
from cfglint.document.tree import Document, Path, Scalar, Sequence
from cfglint.document.yaml import line_end
from cfglint.text import Edit

EVERY = "*"  # at the end of a path: one more item of a list
_FORMATS = {"json": JSON, "toml": TOML, "yaml": None}


def add_item(document: Document, node: Sequence, value: object, dialect: Dialect) -> Edit | None:
    """Return the edit that adds an item to a list, written and set apart as its last one is."""
    text = document.file.text
    if document.format not in _FORMATS or not document.owns(node.start, node.end):
        return None
    new = spell(value, None, _FORMATS[document.format] or dialect)
    last = node.items[-1] if node.items else None
    if text[node.start : node.start + 1] == "[":
        return _within_brackets(text, node, last.end if last is not None else -1, new)
    if not isinstance(last, Scalar) or last.style in ("|", ">") or node.flow:
        return None
    line = 1 + max(text.rfind(mark, 0, last.start) for mark in "\n\r")
    lead = text[line : last.start]
    end = line_end(text, last.end)
    rest = text[last.end : end].strip()
    if lead.strip() != "-" or (rest and not rest.startswith("#")):
        return None
    newline = "\r\n" if text[line - 2 : line] == "\r\n" else text[line - 1 : line] or "\n"
    return Edit(end, end, f"{newline}{lead}{new}")


def insert(document: Document, path: Path, value: object, dialect: Dialect) -> Edit | None:
    """Return the edit that adds a key, or where the path ends with [*] an item; see `insert_key`."""
    if path[-1:] != (EVERY,):
        return insert_key(document, path, value, dialect)
    node = descend(document.root, path[:-1])
    if len(node) < len(path):
        return insert_key(document, path[:-1], [value], dialect)
    return add_item(document, node[-1], value, dialect) if isinstance(node[-1], Sequence) else None


def _within_brackets(text: str, node: Sequence, last: int, new: str) -> Edit | None:
    if text[node.end - 1 : node.end] != "]":
        return None
    if last < 0:
        return Edit(node.start + 1, node.start + 1, new)
    line = 1 + max(text.rfind(mark, 0, last) for mark in "\n\r")
    between = "" if line <= node.start else text[line - 1 : line] + _indent(text[line:last])
    return Edit(last, last, f",{between or ' '}{new}")


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]
