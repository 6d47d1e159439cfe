"""Edits of a program or a notebook: another literal in the place of one, or one more argument of a call."""

from __future__ import annotations

import ast
import json
import re

from cfglint.document.python.source import read_python
from cfglint.document.tree import Composite, Document, Mapping, Path, Scalar, Unresolved
from cfglint.text import Edit, apply_edits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.document.python.documents import Site

_QUOTES = re.compile(r"""([rRuU]?)(\"\"\"|'''|"|')""")
_REST = re.compile(r"[ \t]*(,?)[ \t]*(#[^\r\n]*)?(?=\r?\n)")
_PRODUCT = re.compile(r"\d+( ?\* ?)(\d+)\Z")
_KEYS = re.compile(r"[A-Za-z_]\w*\Z")
_OPTIONS = "_kwargs"  # what the names of arguments that are dictionaries end in


def spelled(value: object, quote: str = '"') -> str | None:
    """Return a value as a literal, None where it has none that is plain."""
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, str) and value.isprintable() and not re.search(r"[\\'\"]", value):
        return f"{quote}{value}{quote}"
    return None


def replace(document: Document, node: Scalar, value: object) -> Edit | None:
    """Return the edit that puts ``value`` in the place of a literal; None where it is none, or computed."""
    if isinstance(node, (Composite, Unresolved)) or not 0 <= node.start < node.end:
        return None
    quote = '"'
    source = _source(document, document.file.text[node.start : node.end])
    if node.style and source == node.text:  # the name of a class
        if not isinstance(value, str) or not _KEYS.match(value):
            return None
        edit = Edit(node.start, node.end, value)
        known = value in _imported(document) or brings(document, edit) is not None
        return _checked(document, edit) if known else None
    if node.style:
        found = _QUOTES.match(source)
        quote = found[2] if found is not None and len(found[2]) == 1 else '"'
    computed = not node.style and source != node.text
    new = _multiple(source, value) if computed else spelled(value, quote)
    return None if new is None else _checked(document, Edit(node.start, node.end, _in_file(document, new)))


def _multiple(source: str, value: object) -> str | None:
    """Return a number as the product that stands there: ``2 * 4096`` in the place of ``4 * 4096``."""
    found = _PRODUCT.match(source)
    if found is None or type(value) is not int or not int(found[2]) or value % int(found[2]):
        return None
    return f"{value // int(found[2])}{found[1]}{found[2]}"


def _imported(document: Document) -> dict[str, tuple[int, int]]:
    """Return the names that a program imports from modules, and where."""
    code = read_python(document.file.text, notebook=document.format == "notebook")
    imports = [node for node in code.body if isinstance(node, ast.ImportFrom)] if code else []
    return {alias.asname or alias.name: code.span(alias) for node in imports for alias in node.names}  # type: ignore[union-attr]


def brings(document: Document, edit: Edit) -> Edit | None:
    """Return the edit that imports a class which takes the place of another one, from the same module.

    None where it is imported, or the other one is not.
    """
    if document.format != "python" or not _KEYS.match(edit.new):
        return None
    imported, old = _imported(document), document.file.text[edit.start : edit.end]
    if edit.new in imported or old not in imported:
        return None
    start, end = imported[old]
    first = edit.new < old
    return Edit(start, start, f"{edit.new}, ") if first else Edit(end, end, f", {edit.new}")


def insert(document: Document, path: Path, value: object) -> Edit | None:
    """Return the edit that gives a call one more argument, written and set apart as its last one is."""
    *above, name = path
    site: Site | None = (document.sites or {}).get(tuple(above))
    new = spelled(value)
    if site is None and new is not None and _is_free(document, above):
        site, new, name = (document.sites or {}).get(tuple(above[:-1])), f'{{"{name}": {new}}}', above[-1]
    if site is None or new is None or not isinstance(name, str) or not _KEYS.match(name):
        return None
    text = document.file.text
    argument = _in_file(document, f"{name} = {new}" if site.spaced else f"{name}={new}")
    if site.last is None:
        at = site.call[1] - 1
        return _checked(document, Edit(at, at, argument)) if text[at : at + 1] == ")" else None
    start, end = site.last
    line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    indent = text[line:start]
    if document.format == "notebook" or indent.strip():
        return _checked(document, Edit(end, end, f", {argument}"))
    newline = "\r\n" if text[line - 2 : line] == "\r\n" else "\n"
    rest = _REST.match(text, end)
    if rest is not None and rest[1]:
        return _checked(document, Edit(rest.end(), rest.end(), f"{newline}{indent}{argument},"))
    return _checked(document, Edit(end, end, f",{newline}{indent}{argument}"))


def _is_free(document: Document, path: Sequence[object]) -> bool:
    """Whether a call takes a dictionary of arguments at a key that it is not given."""
    if not path or not str(path[-1]).endswith(_OPTIONS):
        return False
    node = document.root
    for part in path:
        entry = node.entries.get(part) if isinstance(node, Mapping) and isinstance(part, str) else None
        if entry is None:
            return True
        node = entry.value
    return False


def _source(document: Document, text: str) -> str:
    """Return a stretch of the file as Python reads it."""
    return text.replace('\\"', '"') if document.format == "notebook" else text


def _in_file(document: Document, text: str) -> str:
    """Return source as it stands in the file."""
    return json.dumps(text, ensure_ascii=False)[1:-1] if document.format == "notebook" else text


def _checked(document: Document, edit: Edit) -> Edit | None:
    """Return an edit after which the program still parses."""
    text = apply_edits(document.file.text, [edit])
    return edit if read_python(text, notebook=document.format == "notebook") is not None else None
