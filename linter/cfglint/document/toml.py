"""TOML text to the same nodes.

Python's own reader says what is valid, a scanner of ours where it is: tomllib is what trainers call, and
it keeps no places; tomlkit keeps the spelling, without places either. What tomllib took can be cut by a few
patterns, so the scanner judges nothing: it goes on where tomllib would.
"""

from __future__ import annotations

import re
import sys

from cfglint.document.tree import MAX_DEPTH, MAX_NODES, Document, Entry, Mapping, Node, Path, Scalar, Sequence
from cfglint.errors import DocumentError
from cfglint.record import Record, field
from cfglint.text import deep_key

if sys.version_info >= (3, 11):
    from tomllib import loads
else:
    from tomli import loads


_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[^\s=.\[\]{}\"'#,]+")
_PLAIN = re.compile(r"[^\s,\]}#]+(?: [0-9][^\s,\]}#]*)?")  # a date and its time may stand apart by one blank
_BASIC = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_LITERAL = re.compile(r"'([^'\n]*)'")
# Up to two quotes may be at the end of the text itself.
_LONG_BASIC = re.compile(r'"""(?:\r?\n)?((?:[^"\\]|\\(?:.|\r?\n)|"(?!""))*"{0,2})"""', re.DOTALL)
_LONG_LITERAL = re.compile(r"'''(?:\r?\n)?((?:[^']|'(?!''))*'{0,2})'''")
_STRINGS = {
    ('"', False): _BASIC,
    ('"', True): _LONG_BASIC,
    ("'", False): _LITERAL,
    ("'", True): _LONG_LITERAL,
}
_ESCAPE = re.compile(r'\\(?:([btnfre"\\])|u(.{4})|U(.{8})|x(..)|[ \t]*\r?\n[ \t\r\n]*)', re.DOTALL)
_SHORT = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b", '"': '"', "\\": "\\"}
_AT = re.compile(r" ?\(at (?:line (\d+), column (\d+)|end of document)\)\Z")
_TWICE = re.compile(r"Cannot (declare|mutate immutable namespace) \((.*?),?\)")
_ADVICE = {
    "Expected '=' after a key in a key/value pair": "expected '=': TOML writes KEY = VALUE",
    "Invalid statement": "expected KEY = VALUE or a [table]",
    "Invalid initial character for a key part": "expected a key: letters, digits, - and _, or quoted",
    "Expected newline or end of document after a statement": "unexpected text after the value",
    "Cannot overwrite a value": "already defined: a key or a table may appear only once",
    "Unclosed array": "a list opened with '[' is not closed: add ',' or ']'",
    "Unclosed inline table": "a table opened with '{' is not closed: add ',' or '}'",
    "Unterminated string": "unclosed string: add the closing quote",
    "Expected ']' at the end of a table declaration": "expected ']' after the table's name",
    "Expected ']]' at the end of an array declaration": "expected ']]' after the name",
    "Unescaped '\\' in a string": "invalid escape: double the backslash, or use single quotes",
    "Invalid date or datetime": "not a valid date",
    "Invalid hex value": "expected hexadecimal digits",
}


class Statement(Record):
    """One ``key = value`` of a section; ``names`` are the parts of a dotted key."""

    names: tuple[str, ...]
    start: int
    colon: tuple[int, int]  # from the key's end to the value's start
    end: int


class Section(Record):
    """The lines from one header to the next; ``path`` leads to the table, with numbers in ``[[lists]]``."""

    path: Path
    start: int
    end: int  # of the header
    statements: list[Statement] = field(factory=list)


# ── reading ────────────────────────────────────────────────────────────────────────────────────────────────
def parse_toml(text: str) -> list[Document]:
    """Return the one document of ``text``; an error is kept in it, with what came before it."""
    document = Document(0, len(text))
    stop = len(text)
    deep = deep_key(text, MAX_DEPTH)
    if deep is not None:
        document.error = DocumentError(f"nested more than {MAX_DEPTH} levels deep", deep)
        return [document]
    try:
        loads(text)
    except RecursionError:
        document.error = DocumentError(f"nested more than {MAX_DEPTH} levels deep", 0)
        return [document]
    except ValueError as error:
        stop, document.error = _complaint(text, error)
    scanner = Scanner(text[:stop])
    try:
        scanner.run()
    except DocumentError as error:
        # What tomllib took is too large for us, or a key that stands twice: ours says where the first one is.
        document.error = error
    except _StopError:
        if document.error is None:
            document.error = DocumentError("cfglint cannot follow this TOML; please report it", scanner.at)
    if scanner.root.entries:
        document.root = scanner.root
    return [document]


def _complaint(text: str, error: ValueError) -> tuple[int, DocumentError]:
    words = str(error)
    match = _AT.search(words)
    where = 0
    if match is not None:
        words = words[: match.start()]
        where = len(text)
        if match.group(1) is not None:
            where = 0
            for _ in range(int(match.group(1)) - 1):
                where = text.find("\n", where) + 1
            where = min(where + int(match.group(2)) - 1, len(text))
    stop = where
    where = min(where, len(text.rstrip()))
    advice = _ADVICE.get(words, words[:1].lower() + words[1:])
    twice = _TWICE.match(words)
    if twice is not None:
        name = ".".join(part.strip(" '\"") for part in twice.group(2).split(","))
        advice = f"{name} was completed where it was first defined, and takes no more keys"
        if twice.group(1) == "declare":
            advice = f"[{name}] is not allowed here: this table, or the one around it, is already complete"
    if words == "Invalid value":
        advice = _no_value(text, where)
    elif words.startswith("Illegal character") and text[where : where + 1] in ("\n", "\r"):
        advice = "unclosed string at the end of the line: add the closing quote"
    return stop, DocumentError(advice, where)


def _no_value(text: str, at: int) -> str:
    match = _PLAIN.match(text, at)
    word = match.group() if match is not None else ""
    if not word:
        return "expected a value"
    if word.lower() in ("true", "false", "inf", "nan"):
        return f"TOML writes {word.lower()} in lower case"
    if word.lower() in ("none", "null", "~"):
        return "TOML has no null: leave the key out"
    if word[0] in "0123456789+-.":
        return f"{word[:40]} is not a value: numbers need digits on both sides of the dot, strings quotes"
    return f"{word[:40]!r} is not a value: strings need quotes"


class _StopError(Exception):
    """The text ends inside a statement, or is not what tomllib takes."""


class Scanner(Record):
    """Builds the tree of a text that tomllib took, or of what comes before tomllib's complaint."""

    text: str
    at: int = 0
    nodes: int = 0
    root: Mapping = field(factory=lambda: Mapping(0, flow=False))
    sections: list[Section] = field(factory=lambda: [Section((), 0, 0)])  # the first: before any header

    def run(self) -> None:
        """Read all statements into ``root``. Raises DocumentError."""
        table, holders = self.root, [self.root]
        while True:
            self.skip(_BLANK)
            start = self.at
            if start >= len(self.text):
                return
            if self.text[start] == "[":
                table, holders = self.header()
                continue
            key = self.key()
            colon = key[-1].end
            self.expect("=")
            self.skip(_SPACE)
            value_at = self.at
            value = self.value(len(holders) + len(key))
            self.put(table, key, value)
            for holder in holders:
                holder.end = self.at
            self.sections[-1].statements.append(
                Statement(tuple(part.text for part in key), start, (colon, value_at), self.at)
            )

    def header(self) -> tuple[Mapping, list[Mapping]]:
        """Read a ``[table]`` or ``[[array]]`` header; return its table and the mappings around it."""
        start = self.at
        several = self.text.startswith("[[", start)
        self.at += 2 if several else 1
        self.skip(_SPACE)
        key = self.key()
        self.expect("]]" if several else "]")
        node: Mapping = self.root
        holders = [node]
        path: list[str | int] = []
        for i, part in enumerate(key):
            last = i == len(key) - 1
            path.append(part.text)
            entry = node.entries.get(part.text)
            if entry is None:
                self.count()
                fresh: Node = Sequence(start, flow=False) if last and several else Mapping(start, flow=False)
                entry = node.entries[part.text] = Entry(part, fresh)
            child = entry.value
            if child.__class__ is Sequence:
                child.end = self.at
                if last:
                    self.count()
                    child.items.append(Mapping(start, flow=False))
                path.append(len(child.items) - 1)
                child = child.items[-1] if child.items else child
            if child.__class__ is not Mapping:
                raise self.twice(part, entry.key)
            node = child
            holders.append(node)
        for holder in holders:
            holder.end = self.at
        self.sections.append(Section(tuple(path), start, self.at))
        return node, holders

    def put(self, table: Mapping, key: list[Scalar], value: Node) -> None:
        """Set a dotted key in ``table``. Raises DocumentError for a key that is already defined."""
        for part in key[:-1]:
            entry = table.entries.get(part.text)
            if entry is None:
                self.count()
                entry = table.entries[part.text] = Entry(part, Mapping(part.start, flow=table.flow))
            if entry.value.__class__ is not Mapping:
                raise self.twice(part, entry.key)
            table = entry.value
            table.end = value.end
        first = table.entries.get(key[-1].text)
        if first is not None:
            raise self.twice(key[-1], first.key)
        table.entries[key[-1].text] = Entry(key[-1], value)

    def twice(self, key: Scalar, first: Scalar) -> DocumentError:
        """Return the error for a key that is defined twice."""
        line = self.text.count("\n", 0, first.start) + 1
        return DocumentError(f"{key.text} is defined twice; first on line {line}", key.start)

    def count(self) -> None:
        """Count a node. Raises DocumentError beyond the limit."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise DocumentError(f"more than {MAX_NODES:,} nodes", self.at)

    def skip(self, pattern: re.Pattern[str]) -> None:
        """Move past what ``pattern`` matches here."""
        match = pattern.match(self.text, self.at)
        self.at = self.at if match is None else match.end()

    def taken(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Move past what the pattern matches, which must be there."""
        match = pattern.match(self.text, self.at)
        if match is None:
            raise _StopError
        self.at = match.end()
        return match

    def expect(self, mark: str) -> None:
        """Move past ``mark`` and blanks before it. Raises DocumentError where it is not next."""
        self.skip(_SPACE)
        if not self.text.startswith(mark, self.at):
            raise _StopError
        self.at += len(mark)

    def key(self) -> list[Scalar]:
        """Read a dotted key; return its parts."""
        parts: list[Scalar] = []
        while True:
            self.count()
            if self.text[self.at : self.at + 1] in ("'", '"'):
                part = self.string()
            else:
                match = self.taken(_BARE)
                part = Scalar(match.group(), match.start(), match.end())
            parts.append(part)
            self.skip(_SPACE)
            if self.text[self.at : self.at + 1] != ".":
                self.at = part.end
                if len(parts) > MAX_DEPTH:
                    raise DocumentError(f"nested more than {MAX_DEPTH} levels deep", parts[0].start)
                return parts
            self.at += 1
            self.skip(_SPACE)

    def string(self) -> Scalar:
        """Read a basic or literal string, on one line or several."""
        start, text = self.at, self.text
        quote = text[start]
        long = text.startswith(quote * 3, start)
        match = self.taken(_STRINGS[quote, long])
        inner = match.group(1).replace("\r\n", "\n") if long else match.group(1)  # as tomllib reads line ends
        if quote == '"' and "\\" in inner:
            inner = _ESCAPE.sub(_unescape, inner)
        return Scalar(inner, start, match.end(), quote * 3 if long else quote)

    def value(self, depth: int) -> Node:
        """Return the value at ``at``, and move past it."""
        self.count()
        start = self.at
        if depth > MAX_DEPTH:
            raise DocumentError(f"nested more than {MAX_DEPTH} levels deep", start)
        char = self.text[start : start + 1]
        node: Node
        if char in ("'", '"'):
            node = self.string()
        elif char in ("[", "{"):
            node = (Sequence if char == "[" else Mapping)(start, flow=True)
            self.items(node, depth)
        else:
            match = self.taken(_PLAIN)
            node = Scalar(match.group(), start, match.end())
        return node

    def items(self, holder: Mapping | Sequence, depth: int) -> None:
        """Read the items of an array or inline table up to its bracket."""
        close = "]" if holder.__class__ is Sequence else "}"
        self.at += 1
        while True:
            self.skip(_BLANK)
            if self.text.startswith(close, self.at):
                self.at += 1
                holder.end = self.at
                return
            if isinstance(holder, Sequence):
                holder.items.append(self.value(depth + 1))
            else:
                key = self.key()
                self.expect("=")
                self.skip(_BLANK)
                self.put(holder, key, self.value(depth + len(key)))
            self.skip(_BLANK)
            if self.text.startswith(",", self.at):
                self.at += 1
            elif not self.text.startswith(close, self.at):
                raise _StopError


def _unescape(match: re.Match[str]) -> str:
    short, four, eight, two = match.groups()
    if short:
        return _SHORT[short]
    code = four or eight or two
    return chr(int(code, 16)) if code else ""
