"""A new key in TOML: into the table that holds it, where that table's own lines end."""

from __future__ import annotations

import re

from cfglint.document.scalars import TOML
from cfglint.document.spelling import spell
from cfglint.document.toml_tree import sections
from cfglint.document.tree import Mapping, Sequence
from cfglint.text import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.document import Document
    from cfglint.document.places import Path
    from cfglint.document.toml_tree import Section, Statement
    from cfglint.document.tree import Node

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_COMMENTS = re.compile(r"(?:\r?\n[ \t]*#[^\n]*)*")  # those that go on from one line to the next
_HEAD = re.compile(r"(?:[ \t]*#[^\n]*\n)+[ \t]*\r?\n")


def insert_toml_key(document: Document, path: Path, value: object) -> Edit | None:
    """Return the edit that adds the key, with tables that are absent; None where the text has no place."""
    if value is None or not path or document.error is not None or not isinstance(path[-1], str):
        return None
    node: Node | None = document.root
    depth = 0
    braces: tuple[int, Mapping] | None = None
    text = document.file.text
    while node is not None:
        if isinstance(node, Mapping) and text[node.start : node.start + 1] == "{":
            braces = depth, node
        if depth == len(path):
            return None
        part = path[depth]
        child: Node | None = None
        if isinstance(node, Mapping) and isinstance(part, str):
            entry = node.entries.get(part)
            child = None if entry is None else entry.value
        elif isinstance(node, Sequence) and isinstance(part, int) and 0 <= part < len(node.items):
            child = node.items[part]
        if child is None:
            break
        node = child
        depth += 1
    if node is not None and not isinstance(node, Mapping):
        return None
    if not all(isinstance(part, str) for part in path[depth:]):
        return None
    if braces is not None:
        return _into_braces(braces[1], _dotted(path[braces[0] :]), value)
    return _into_lines(document, path, depth, value)


def _dotted(path: Path) -> str:
    return ".".join(_key(part) for part in path if isinstance(part, str))


def _key(name: str) -> str:
    return name if _BARE.match(name) else spell(name, None, TOML)


def _into_braces(table: Mapping, key: str, value: object) -> Edit:
    entry = f"{key} = {spell(value, None, TOML)}"
    if not table.entries:
        return Edit(table.start, table.end, f"{{{entry}}}")
    at = max(held.value.end for held in table.entries.values())
    return Edit(at, at, f", {entry}")


def _into_lines(document: Document, path: Path, depth: int, value: object) -> Edit | None:
    text = document.file.text
    found = sections(text)
    held, names = path[:depth], path[depth:]
    own = next((section for section in found if section.path == held), None)
    if own is not None and len(names) == 1:
        return _behind(text, own, own.statements[-1] if own.statements else None, names, value)
    if own is None:
        # A table that a dotted key made takes no header: it goes on as it began.
        for section in found:
            reach = depth - len(section.path)
            if reach > 0 and section.path == held[: len(section.path)]:
                rest = held[len(section.path) :]
                for statement in reversed(section.statements):
                    if len(statement.names) > reach and statement.names[:reach] == rest:
                        return _behind(text, section, statement, (*rest, *names), value)
    around = [section for section in found if section.path[:depth] == held]
    if not around:
        return None
    last = around[-1]
    end = last.statements[-1].end if last.statements else last.end
    newline = "\r\n" if "\r\n" in text else "\n"
    header = f"[{_dotted(path[:-1])}]{newline}{_key(str(path[-1]))} = {spell(value, None, TOML)}"
    if not text.strip():
        return Edit(len(text), len(text), header + newline)
    end = _line_end(text, end)
    comments = _COMMENTS.match(text, end)
    end = end if comments is None else comments.end()
    end -= text[:end].endswith("\r")
    return Edit(
        end,
        end,
        f"{newline}{newline}{header}" + ("" if text[end:].strip("\r\n") else newline * (end == len(text))),
    )


def _behind(text: str, section: Section, statement: Statement | None, names: Path, value: object) -> Edit:
    """Add a line behind a statement, or behind the header of a table that has none yet."""
    newline = "\r\n" if "\r\n" in text else "\n"
    equals = " = "
    start, end = section.start, section.end
    if statement is not None:
        start, end = statement.start, statement.end
        between = text[statement.colon[0] : statement.colon[1]]
        equals = "=" if between == "=" else " = "
    line = f"{_dotted(names)}{equals}{spell(value, None, TOML)}"
    if statement is None and not section.path:
        head = _HEAD.match(text)  # what is said of the file stays on top
        at = 0 if head is None else head.end()
        return Edit(at, at, line + newline + (newline if text[at:].strip() else ""))
    indent = text[text.rfind("\n", 0, start) + 1 : start]
    end = _line_end(text, end)
    return Edit(end, end, f"{newline}{indent if not indent.strip() else ''}{line}")


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    if end < 0:
        return len(text)
    return end - 1 if end > at and text[end - 1] == "\r" else end
