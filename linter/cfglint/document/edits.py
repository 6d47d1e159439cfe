"""Edits that change one value and no other byte: replace a scalar, insert a key, append a comment.

And how a value is written, so that the loader reads it back. Edits of scripts are in shell/edits.py.
"""

from __future__ import annotations

import re
from math import isinf, isnan

from cfglint.document.scalars import JSON, OMEGACONF, PYYAML, TOML, Dialect, resolve, resolve_plain
from cfglint.document.tree import Document, Mapping, Node, Path, Scalar, Sequence, effective, walk
from cfglint.document.yaml import BREAK, line_end
from cfglint.record import Record
from cfglint.text import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cfglint.document.toml import Section, Statement

_OWN_EDITS = ("shell", "python", "notebook")


def replace_value(document: Document, node: Node, value: object, dialect: Dialect) -> Edit | None:
    """Return the edit that writes ``value`` in place of ``node``; None where one edit cannot."""
    if document.format in _OWN_EDITS:
        return _own_edits(document).replace(document, node, value)  # type: ignore[no-any-return]
    if not isinstance(node, Scalar) or node.origin is not None or node.style in ("|", ">"):
        return None
    if document.format == "toml":
        return None if value is None else Edit(node.start, node.end, spell(value, node, TOML))
    new = spell(value, node, dialect)
    if node.tag is not None:
        written = Scalar(new, 0, 0, "", node.tag) if not new.startswith(("'", '"')) else None
        if written is None or not _same(resolve(written, dialect), value):
            return None
    if node.start < node.end:
        return Edit(node.start, node.end, new)
    return _fill(document, node, new)


def brings(document: Document, edit: Edit) -> Edit | None:
    """Return what an edit of a program needs besides: the import of a class that it names."""
    return _own_edits(document).brings(document, edit) if document.format == "python" else None


def _own_edits(document: Document) -> Any:
    """Return the module that edits a script or a program."""
    if document.format == "shell":
        from cfglint.document.shell import edits as own
    else:
        from cfglint.document.python import edits as own  # type: ignore[no-redef]
    return own


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
        return _insert_toml_key(document, path, value)
    if not path or document.error is not None:
        return None
    if document.format in _OWN_EDITS:
        return _own_edits(document).insert(document, path, value)  # type: ignore[no-any-return]
    nodes = descend(document.root, path)
    wanted = path[max(len(nodes) - 1, 0) :]
    names = [part for part in wanted if isinstance(part, str)]
    if not names or len(names) != len(wanted):
        return None
    new = _NewKey(document, names, value, JSON if document.format == "json" else dialect)
    return new.inside(*nodes[-2:]) if nodes else new.first()


def descend(root: Node | None, path: Path) -> list[Node]:
    """Return the nodes on the way down a path, the root first, as far as the text itself writes them."""
    nodes = [] if root is None else [root]
    for part in path if nodes else ():
        node = nodes[-1]
        if isinstance(node, Mapping) and isinstance(part, str) and part in node.entries:
            nodes.append(node.entries[part].value)
        elif isinstance(node, Sequence) and isinstance(part, int) and 0 <= part < len(node.items):
            nodes.append(node.items[part])
        else:
            break
    return nodes


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
        """Add lines after the last of a mapping."""
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
        """Add lines after the one around ``at``, where that holds nothing else but a comment."""
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
        """Add an entry after the last, which has its own line; a comment after it stays where it is."""
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


# ── new keys of TOML ───────────────────────────────────────────────────────────────────────────────────────
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")
_COMMENTS = re.compile(r"(?:\r?\n[ \t]*#[^\n]*)*")  # those that go on from one line to the next
_HEAD = re.compile(r"(?:[ \t]*#[^\n]*\n)+[ \t]*\r?\n")


def _insert_toml_key(document: Document, path: Path, value: object) -> Edit | None:
    """Return the edit that adds the key, with tables that are absent; None where the text has no place."""
    if value is None or not path or document.error is not None or not isinstance(path[-1], str):
        return None
    text = document.file.text
    nodes = descend(document.root, path)
    depth = len(nodes) - 1
    if depth == len(path) or not all(isinstance(part, str) for part in path[max(depth, 0) :]):
        return None
    if nodes and not isinstance(nodes[-1], Mapping):
        return None
    for i, node in reversed(list(enumerate(nodes))):
        if isinstance(node, Mapping) and text[node.start : node.start + 1] == "{":
            return _into_braces(node, _dotted(path[i:]), value)
    return _into_lines(document, path, max(depth, 0), value)


def _dotted(path: Path) -> str:
    return ".".join(_key(part) for part in path if isinstance(part, str))


def _key(name: str) -> str:
    return name if _BARE_KEY.match(name) else spell(name, None, TOML)


def _into_braces(table: Mapping, key: str, value: object) -> Edit:
    pair = f"{key} = {spell(value, None, TOML)}"
    if not table.entries:
        return Edit(table.start, table.end, f"{{{pair}}}")
    at = max(entry.value.end for entry in table.entries.values())
    return Edit(at, at, f", {pair}")


def _into_lines(document: Document, path: Path, depth: int, value: object) -> Edit | None:
    text = document.file.text
    from cfglint.document.toml import Scanner

    scanner = Scanner(text)
    scanner.run()
    table, names = path[:depth], path[depth:]
    own = next((section for section in scanner.sections if section.path == table), None)
    if own is not None and len(names) == 1:
        return _behind(text, own, own.statements[-1] if own.statements else None, names, value)
    if own is None:
        # A table that a dotted key made takes no header: it goes on as it began.
        for section in scanner.sections:
            reach = depth - len(section.path)
            if reach > 0 and section.path == table[: len(section.path)]:
                rest = table[len(section.path) :]
                for statement in reversed(section.statements):
                    if len(statement.names) > reach and statement.names[:reach] == rest:
                        return _behind(text, section, statement, (*rest, *names), value)
    around = [section for section in scanner.sections if section.path[:depth] == table]
    if not around:
        return None
    last = around[-1]
    end = last.statements[-1].end if last.statements else last.end
    newline = _newline(text, end)
    header = f"[{_dotted(path[:-1])}]{newline}{_key(str(path[-1]))} = {spell(value, None, TOML)}"
    if not text.strip():
        return Edit(len(text), len(text), header + newline)
    end = _line_end(text, end)
    comments = _COMMENTS.match(text, end)
    end = end if comments is None else comments.end()
    end -= text[:end].endswith("\r")
    last_line = newline if end == len(text) else ""
    return Edit(end, end, f"{newline}{newline}{header}{last_line}")


def _newline(text: str, at: int) -> str:
    """Return the line break of the line around ``at``, or where that is the last, of the file."""
    end = text.find("\n", at)
    return "\r\n" if text[end - 1 : end] == "\r" or (end < 0 and "\r\n" in text) else "\n"


def _behind(text: str, section: Section, statement: Statement | None, names: Path, value: object) -> Edit:
    """Add a line after a statement, or after the header of a table that has none yet."""
    equals = " = "
    start, end = section.start, section.end
    if statement is not None:
        start, end = statement.start, statement.end
        between = text[statement.colon[0] : statement.colon[1]]
        equals = "=" if between == "=" else " = "
    newline = _newline(text, end)
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


# ── how a value is written ─────────────────────────────────────────────────────────────────────────────────
# Safe as a plain scalar everywhere: no indicator at the start, no `: `, ` #` or flow bracket.
_PLAIN = (
    r"(?:[^\W_]|[_./\\(+]|-(?=\w))"
    r"(?:[\w./\\()+@%^~=*$;!<>|&'\"-]|#(?<!\s#)|:(?=[\w/])|[ ](?=[^\s#]))*\Z"
)
# Dates to PyYAML (which `resolve` keeps as texts), and the marks between documents.
_NOT_PLAIN = r"[0-9]{4}-[0-9]|(?:---|\.\.\.)(?:\s|\Z)"
_DOTLESS = r"[-+]?[0-9]+[eE]"
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b"}
_BOOLEANS = (("true", "false"), ("yes", "no"), ("on", "off"))


def _double_quoted(text: str, *, json: bool) -> str:
    parts = []
    for char in text:
        if char in _ESCAPES:
            parts.append(_ESCAPES[char])
        elif char.isprintable() or (json and char >= " "):
            parts.append(char)
        elif ord(char) > 0xFFFF:
            parts.append(f"\\U{ord(char):08x}")
        else:
            parts.append(f"\\u{ord(char):04x}")
    return '"' + "".join(parts) + '"'


def _spell_text(text: str, like: Scalar | None, dialect: Dialect) -> str:
    if dialect is JSON:
        return _double_quoted(text, json=True)
    if dialect is TOML:
        if like is not None and like.style == "'" and "'" not in text and text.isprintable():
            return f"'{text}'"
        return _double_quoted(text, json=False)
    style = like.style if like is not None else ""
    # Both YAML dialects, so that a file keeps its meaning when another framework reads it.
    if (
        style not in ("'", '"')
        and re.match(_PLAIN, text)
        and not re.match(_NOT_PLAIN, text)
        and type(resolve_plain(text, PYYAML)) is str
        and type(resolve_plain(text, OMEGACONF)) is str
    ):
        return text
    if style == '"' or not text.isprintable():
        return _double_quoted(text, json=False)
    return "'" + text.replace("'", "''") + "'"


def _spell_bool(old: str, dialect: Dialect, *, value: bool) -> str:
    pairs = [pair for pair in _BOOLEANS if old.lower() in pair and dialect not in (JSON, TOML)]
    spelled = (pairs or _BOOLEANS)[0][not value]
    if pairs and old[:1].isupper():
        return spelled.upper() if old.isupper() else spelled.capitalize()
    return spelled


def _spell_float(value: float, like: Scalar | None, dialect: Dialect) -> str:
    if dialect is TOML and (isnan(value) or isinf(value)):
        return repr(value)
    if isnan(value):
        return "NaN" if dialect is JSON else ".nan"
    if isinf(value):
        word = "Infinity" if dialect is JSON else ".inf"
        return word if value > 0 else f"-{word}"
    mantissa, mark, exponent = repr(value).partition("e")
    if not mark:
        return mantissa
    sign = "-" if exponent[0] == "-" else "+"
    exponent = exponent.lstrip("+-").lstrip("0")
    dotless = dialect in (JSON, TOML) or (
        dialect is OMEGACONF and like is not None and re.match(_DOTLESS, like.text)
    )
    if "." not in mantissa and not dotless:
        mantissa += ".0"
    return f"{mantissa}e{sign}{exponent}"


def spell(value: object, like: Scalar | None, dialect: Dialect) -> str:
    """Return how to write ``value`` so that ``dialect`` reads it back, in the style of the old ``like``."""
    old = like.text if like is not None and not like.style else ""
    if isinstance(value, str):
        return _spell_text(value, like, dialect)
    if isinstance(value, bool):
        return _spell_bool(old, dialect, value=value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _spell_float(value, like, dialect)
    if isinstance(value, list):
        return f"[{', '.join(spell(item, None, dialect) for item in value)}]"
    if value is not None or dialect is TOML:
        raise TypeError(
            "TOML has no null" if value is None else f"a {type(value).__name__} cannot be written as a scalar"
        )
    return old if dialect is not JSON and old in ("~", "Null", "NULL") else "null"
