"""Edits that change one value and no other byte: replace a scalar, insert a key, append a comment."""

from __future__ import annotations

import re

from cfglint.document.scalars import JSON, TOML, resolve, spell
from cfglint.document.tree import BREAK, Mapping, Scalar, Sequence, descend, effective, line_end, walk
from cfglint.record import Record
from cfglint.text import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.scalars import Dialect
    from cfglint.document.tree import Document, Node, Path


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
    nodes = descend(document.root, path)
    names = [part for part in path[max(len(nodes) - 1, 0) :] if isinstance(part, str)]
    if not names or len(names) != len(path) - max(len(nodes) - 1, 0):
        return None
    new = _NewKey(document, names, value, JSON if document.format == "json" else dialect)
    return new.inside(*nodes[-2:]) if nodes else new.first()


class _NewKey(Record):
    """A key to add to YAML or JSON: ``names`` lead to it from what is there already."""

    document: Document
    names: list[str]
    value: object
    dialect: Dialect
    text: str = ""
    newline: str = "\n"

    def __post_init__(self) -> None:
        self.text = self.document.file.text
        match = re.search(BREAK, self.text)
        if match is not None and match.group() in ("\r\n", "\r"):
            self.newline = match.group()

    def inside(self, *nodes: Node) -> Edit | None:
        """Add it to the last of the nodes, which the others lead to."""
        node = nodes[-1]
        if not self.document.owns(node.start, node.end):
            return None
        if isinstance(node, Mapping):
            if len(self.names) > 1 and self.names[0] in effective(node):
                return None
            return self.into_flow(node) if node.flow else self.into_block(node)
        if isinstance(node, Scalar) and isinstance(nodes[0], Mapping):
            return self.under_empty(node, nodes[0])
        return None

    def first(self) -> Edit | None:
        """Begin an empty document."""
        text, start, at = self.text, self.document.start, self.document.end
        if not start <= at <= len(text):
            return None
        if self.document.format == "json":
            return Edit(len(text), len(text), "{" + self.entry(": ") + "}\n")
        if re.search("^(?:\\.\\.\\.|---[ \t]+[^# \t\r\n])", text[start:at], re.MULTILINE):
            return None
        new = self.lines(0, 2) + self.newline
        return Edit(at, at, new if at == 0 or text[at - 1] in "\r\n" else self.newline + new)

    def into_block(self, mapping: Mapping) -> Edit | None:
        """Add lines behind the last of a mapping."""
        text, at = self.text, mapping.end
        lines = self.lines(_column(text, mapping), _indent_step(self.document))
        leaf = _last_leaf(mapping)
        if isinstance(leaf, Scalar) and leaf.style in ("|", ">") and leaf.end == at:
            if text[at - 1 : at] in ("\n", "\r"):
                return Edit(at, at, lines + self.newline)
            # A line break at the end of the file would become part of the value, unless it is stripped.
            header = text[leaf.start : line_end(text, leaf.start)].partition("#")[0]
            return Edit(at, at, self.newline + lines) if "-" in header else None
        return self.behind_line(at, lines)

    def under_empty(self, node: Scalar, parent: Mapping) -> Edit | None:
        """Give ``key:`` a mapping; any other scalar is a value that would be lost."""
        text = self.text
        if node.start != node.end or node.style or node.tag is not None or parent.flow:
            return None
        if self.document.format == "json" or text[: node.start][-1:] != ":":
            return None
        step = _indent_step(self.document)
        return self.behind_line(node.end, self.lines(_column(text, parent) + step, step))

    def behind_line(self, at: int, lines: str) -> Edit | None:
        """Add lines behind the one around ``at``, where that holds nothing else but a comment."""
        end = line_end(self.text, at)
        rest = self.text[at:end].strip()
        return None if rest and not rest.startswith("#") else Edit(end, end, self.newline + lines)

    def into_flow(self, mapping: Mapping) -> Edit | None:
        """Add an entry between the braces of a mapping."""
        text = self.text
        if text[mapping.start : mapping.start + 1] != "{" or text[mapping.end - 1 : mapping.end] != "}":
            return None  # the pair of `[key: value]` has no braces
        entries = list(mapping.entries.values())
        children = [entry.value for entry in entries] + mapping.merges
        if not children:
            return Edit(mapping.start + 1, mapping.start + 1, self.entry(": "))
        # `{"a":1}` is taken up as it is only in JSON: in YAML a plain key needs the blank.
        between = (
            text[entries[0].key.end : entries[0].value.start] if entries and self.dialect is JSON else ""
        )
        colon = between if between.strip() == ":" and "\n" not in between else ": "
        last = max(children, key=lambda node: node.end)
        start = max((entry.key.start for entry in entries), default=last.start)
        line = _line_start(text, start)
        if line <= mapping.start:
            return Edit(last.end, last.end, ("," if colon == ":" else ", ") + self.entry(colon))
        return self.on_its_own_line(last.end, text[line:start], self.entry(colon))

    def on_its_own_line(self, at: int, indent: str, entry: str) -> Edit:
        """Add an entry behind the last, which has its own line; a comment behind it stays where it is."""
        end = line_end(self.text, at)
        before, mark, comment = self.text[at:end].partition("#")
        if indent.strip() or (mark and before.strip() not in ("", ",")):
            return Edit(at, at, ", " + entry)
        entry = f"{self.newline}{indent}{entry}"
        if not mark:
            return Edit(at, at, f",{entry}")
        if before.strip() == ",":
            return Edit(end, end, f"{entry},")
        return Edit(at, end, f",{before}{mark}{comment}{entry}")

    def lines(self, column: int, step: int) -> str:
        """Return the key and its parents on lines of their own."""
        keys = [f"{' ' * (column + i * step)}{self.spelled(name)}:" for i, name in enumerate(self.names)]
        return f"{self.newline.join(keys)} {self.spelled(self.value)}"

    def entry(self, colon: str) -> str:
        """Return the key and its parents as an entry between braces."""
        *parents, last = self.names
        entry = f"{self.spelled(last)}{colon}{self.spelled(self.value)}"
        for name in reversed(parents):
            entry = f"{self.spelled(name)}{colon}{{{entry}}}"
        return entry

    def spelled(self, value: object) -> str:
        return spell(value, None, self.dialect)


def _line_start(text: str, at: int) -> int:
    return 1 + max(text.rfind(mark, 0, at) for mark in "\n\r\x85\u2028\u2029")


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


def annotate(document: Document, edit: Edit, note: str) -> Edit | None:
    """Return the insertion of ``# note`` at the end of the line that ``edit`` writes, where one can stand.

    It is applied together with ``edit``, and after it.
    """
    text = document.file.text
    words = " ".join(note.split())
    if document.format in ("json", "shell") or not words or edit.new.endswith(("\n", "\r")):
        return None
    at = line_end(text, edit.end)
    for node in walk(document.root):
        if (
            isinstance(node, Scalar)
            and node.start < at < node.end
            and not (edit.start <= node.start and node.end <= edit.end)
        ):
            return None
    return Edit(at, at, f"  # {words}")
