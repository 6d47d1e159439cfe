"""Edits that change one value and no other byte: replace a scalar, insert a key, append a comment."""

from __future__ import annotations

import re
from bisect import bisect_right

from cfglint.document.scalars import JSON, TOML, resolve, spell
from cfglint.document.tree import Mapping, Scalar, Sequence, descend, effective, walk
from cfglint.text import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.document import Document
    from cfglint.document.scalars import Dialect
    from cfglint.document.tree import Node, Path

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def replace_value(document: Document, node: Scalar, value: object, dialect: Dialect) -> Edit | None:
    """Return the edit that writes ``value`` in place of ``node``; None where one edit cannot."""
    if node.origin is not None or node.style in ("|", ">"):
        return None
    if document.format == "toml":
        return None if value is None else Edit(node.start, node.end, spell(value, node, TOML))
    if document.format == "shell":
        from cfglint.document.shell.edits import replace

        return replace(node, value)
    new = spell(value, node, dialect)
    if node.tag is not None:
        written = Scalar(new, 0, 0, "", node.tag) if not new.startswith(("'", '"')) else None
        if written is None or not _same(resolve(written, dialect), value):
            return None
    if node.start < node.end:
        return Edit(node.start, node.end, new)
    return _fill(document, node, new)


def _same(first: object, second: object) -> bool:
    return type(first) is type(second) and (first == second or first != first)  # noqa: PLR0124 (NaN)


def _fill(document: Document, node: Scalar, new: str) -> Edit | None:
    """Write a value where there was none: ``key:`` needs a blank first."""
    text = document.file.text
    at = node.start
    parent = _parent(document, node)
    before = text[:at].rstrip(" \t")[-1:]
    if node.tag is None and node.anchor is None:
        # `{key}` and `? key` have no colon yet; an empty item always has its dash.
        if isinstance(parent, Mapping) and before != ":":
            return None
        if isinstance(parent, Sequence) and (parent.flow or before != "-"):
            return None
    if at > 0 and text[at - 1] not in " \t":
        new = " " + new
    if text[at : at + 1] not in ("", " ", "\t", "\n", "\r", ",", "}", "]"):
        new += " "
    return Edit(at, at, new)


def _parent(document: Document, node: Node) -> Node | None:
    for holder in walk(document.root):
        if isinstance(holder, Mapping) and any(entry.value is node for entry in holder.entries.values()):
            return holder
        if isinstance(holder, Sequence) and any(item is node for item in holder.items):
            return holder
    return None


def insert_key(document: Document, path: Path, value: object, dialect: Dialect) -> Edit | None:
    """Return the edit that adds the key ``path`` with ``value``; absent parents come with it.

    None where the key is there already, where its mapping is another's (an alias, a reference, a merge), or
    where the text has no place for it.
    """
    if document.format == "toml":
        from cfglint.document.toml import insert_toml_key

        return insert_toml_key(document, path, value)
    if not path or document.error is not None:
        return None
    if document.format == "shell":
        from cfglint.document.shell.edits import insert

        return insert(document, path, value)
    if document.root is None:
        return _first_key(document, path, value, dialect)
    *_, node = nodes = descend(document.root, path)
    depth = len(nodes) - 1
    if depth == len(path):
        return None
    if not document.owns(node.start, node.end):
        return None
    rest = path[depth:]
    names = [part for part in rest if isinstance(part, str)]
    if len(names) != len(rest):
        return None
    if isinstance(node, Mapping):
        if len(names) > 1 and node.merges and names[0] in effective(node):
            return None
        if node.flow:
            return _into_flow(document, node, names, value, dialect)
        return _into_block(document, node, names, value, dialect)
    if isinstance(node, Scalar) and depth > 0:
        return _under_empty(document, node, names, value, dialect)
    return None


def _line_end(text: str, at: int) -> int:
    found = _BREAK.search(text, at)
    return len(text) if found is None else found.start()


def _line_start(text: str, at: int) -> int:
    return 1 + max(text.rfind(mark, 0, at) for mark in "\n\r\x85\u2028\u2029")


def _newline(text: str) -> str:
    found = _BREAK.search(text)
    return "\n" if found is None or found.group() not in ("\r\n", "\r") else found.group()


def _indent_step(document: Document) -> int:
    """Return by how much the file indents a mapping in a mapping."""
    text = document.file.text
    for holder in reversed(walk(document.root)):
        if isinstance(holder, Mapping) and not holder.flow:
            outer = _column(text, holder)
            for entry in holder.entries.values():
                inner = entry.value
                if isinstance(inner, Mapping) and not inner.flow and _column(text, inner) > outer:
                    return _column(text, inner) - outer
    return 2


def _column(text: str, node: Node) -> int:
    return node.start - _line_start(text, node.start)


def _block_lines(names: list[str], value: object, column: int, step: int, dialect: Dialect) -> list[str]:
    lines = [f"{' ' * (column + i * step)}{spell(name, None, dialect)}:" for i, name in enumerate(names)]
    lines[-1] += f" {spell(value, None, dialect)}"
    return lines


def _first_key(document: Document, path: Path, value: object, dialect: Dialect) -> Edit | None:
    names = [part for part in path if isinstance(part, str)]
    text = document.file.text
    if len(names) != len(path) or not document.start <= document.end <= len(text):
        return None
    if document.format == "json":
        return Edit(len(text), len(text), "{" + _flow_entry(names, value, ": ", JSON) + "}\n")
    body = text[document.start : document.end]
    if re.search("^(?:\\.\\.\\.|---[ \t]+[^# \t\r\n])", body, re.MULTILINE):
        return None
    newline = _newline(text)
    at = document.end
    new = newline.join(_block_lines(names, value, 0, 2, dialect)) + newline
    if at > 0 and text[at - 1] not in "\r\n":
        new = newline + new
    return Edit(at, at, new)


def _last_leaf(node: Node) -> Node:
    """Return what the text of ``node`` ends with; of duplicate keys the last need not be the last entry."""
    while isinstance(node, (Mapping, Sequence)) and not node.flow:
        if isinstance(node, Mapping):
            children = [entry.value for entry in node.entries.values()] + node.merges
        else:
            children = node.items
        if not children:
            break
        node = max(children, key=lambda child: child.end)
    return node


def _into_block(
    document: Document, mapping: Mapping, names: list[str], value: object, dialect: Dialect
) -> Edit | None:
    text = document.file.text
    column = _column(text, mapping)
    at = mapping.end
    newline = _newline(text)
    lines = newline.join(_block_lines(names, value, column, _indent_step(document), dialect))
    leaf = _last_leaf(mapping)
    if isinstance(leaf, Scalar) and leaf.style in ("|", ">") and leaf.end == at:
        if text[at - 1 : at] in ("\n", "\r"):
            return Edit(at, at, lines + newline)
        # A line break at the end of the file would become part of the value, unless it is stripped.
        header = text[leaf.start : _line_end(text, leaf.start)].partition("#")[0]
        return Edit(at, at, newline + lines) if "-" in header else None
    end = _line_end(text, at)
    rest = text[at:end].strip()
    if rest and not rest.startswith("#"):
        return None
    return Edit(end, end, newline + lines)


def _under_empty(
    document: Document, node: Scalar, names: list[str], value: object, dialect: Dialect
) -> Edit | None:
    """Give ``key:`` a mapping; any other scalar is a value that would be lost."""
    text = document.file.text
    parent = _parent(document, node)
    if (
        node.start != node.end
        or node.style
        or node.tag is not None
        or document.format == "json"
        or not isinstance(parent, Mapping)
        or parent.flow
    ):
        return None
    end = _line_end(text, node.end)
    rest = text[node.end : end].strip()
    if (rest and not rest.startswith("#")) or text[: node.start][-1:] != ":":
        return None
    step = _indent_step(document)
    newline = _newline(text)
    lines = _block_lines(names, value, _column(text, parent) + step, step, dialect)
    return Edit(end, end, newline + newline.join(lines))


def _flow_entry(names: list[str], value: object, colon: str, dialect: Dialect) -> str:
    *parents, last = names
    entry = f"{spell(last, None, dialect)}{colon}{spell(value, None, dialect)}"
    for name in reversed(parents):
        entry = f"{spell(name, None, dialect)}{colon}{{{entry}}}"
    return entry


def _into_flow(
    document: Document, mapping: Mapping, names: list[str], value: object, dialect: Dialect
) -> Edit | None:
    text = document.file.text
    if text[mapping.start : mapping.start + 1] != "{" or text[mapping.end - 1 : mapping.end] != "}":
        return None  # the pair of `[key: value]` has no braces
    if document.format == "json":
        dialect = JSON
    entries = list(mapping.entries.values())
    children = [entry.value for entry in entries] + mapping.merges
    if not children:
        at = mapping.start + 1
        return Edit(at, at, _flow_entry(names, value, ": ", dialect))
    # `{"a":1}` is taken up as it is only in JSON: in YAML a plain key needs the blank.
    colon = ": "
    if dialect is JSON and entries:
        between = text[entries[0].key.end : entries[0].value.start]
        colon = between if between.strip() == ":" and "\n" not in between else colon
    last = max(children, key=lambda child: child.end)
    at = last.end
    entry = _flow_entry(names, value, colon, dialect)
    last_key = max((e.key for e in entries), key=lambda key: key.start, default=None)
    line = _line_start(text, last_key.start if last_key is not None else last.start)
    if line <= mapping.start:
        return Edit(at, at, (", " if dialect is not JSON or colon != ":" else ",") + entry)
    # One entry a line: the new one gets its own, and a comment behind the last stays where it is.
    start = last_key.start if last_key is not None else last.start
    indent = text[line:start]
    if indent.strip():
        return Edit(at, at, ", " + entry)
    end = _line_end(text, at)
    newline = _newline(text)
    behind = text[at:end]
    if "#" not in behind:
        return Edit(at, at, f",{newline}{indent}{entry}")
    kept, mark, comment = behind.partition("#")
    if kept.strip() == ",":
        return Edit(end, end, f"{newline}{indent}{entry},")
    if kept.strip():
        return Edit(at, at, ", " + entry)
    return Edit(at, end, f",{kept}{mark}{comment}{newline}{indent}{entry}")


def annotate(document: Document, edit: Edit, note: str) -> Edit | None:
    """Return the insertion of ``# note`` at the end of the line that ``edit`` writes, where one can stand.

    It is applied together with ``edit``, and after it.
    """
    text = document.file.text
    words = " ".join(note.split())
    if document.format in ("json", "shell") or not words or edit.new.endswith(("\n", "\r")):
        return None
    at = _line_end(text, edit.end)
    for node in walk(document.root):
        if (
            isinstance(node, Scalar)
            and node.start < at < node.end
            and not (edit.start <= node.start and node.end <= edit.end)
        ):
            return None
    return Edit(at, at, f"  # {words}")


_MARK = re.compile(r"#[ \t]*cfglint:[ \t]*(ignore(?:-file)?)[ \t]*\[([^\]\r\n]*)\]")


def suppressions(document: Document) -> list[tuple[int, tuple[str, ...]]]:
    """Return ``(line, codes)`` for each ``# cfglint: ignore[…]``; line 0 is the whole file.

    A comment alone on its line counts for the next one.
    """
    text = document.file.text
    if document.format == "json" or "cfglint:" not in text:
        return []
    script = document.format == "shell"  # its documents are commands, and comments stand around them
    spans = [] if script else _scalar_spans(document)
    first, last = (0, len(text)) if script else (document.start, document.end)
    found: list[tuple[int, tuple[str, ...]]] = []
    for mark in _MARK.finditer(text, first, last):
        at = mark.start()
        line, column = document.file.lines.position(at)
        before = text[at - column + 1 : at]
        # A comment is preceded by a blank, or is itself within one.
        if before and not before.endswith((" ", "\t")) and "#" not in before:
            continue
        around = bisect_right(spans, (at, len(text))) - 1
        if around >= 0 and at < spans[around][1]:
            continue
        codes = tuple(code.strip() for code in mark.group(2).split(",") if code.strip())
        if not codes:
            continue
        if mark.group(1) == "ignore-file":
            line = 0
        elif not before.strip():
            line += 1
        found.append((line, codes))
    return found


def _scalar_spans(document: Document) -> list[tuple[int, int]]:
    """Return the spans in which ``#`` starts no comment; a block scalar's header line may have one."""
    text = document.file.text
    spans: list[tuple[int, int]] = []
    for node in walk(document.root):
        if isinstance(node, Mapping):
            spans.extend((e.key.start, e.key.end) for e in node.entries.values())
        elif isinstance(node, Scalar) and node.end > node.start:
            start = _line_end(text, node.start) if node.style in ("|", ">") else node.start
            spans.append((start, node.end))
    return sorted(spans)
