"""JSON text to the same nodes; libyaml cannot read JSON, since it refuses surrogate pairs.

Accepts what Python's ``json.loads`` does (so ``NaN`` and ``Infinity`` too), since that is what trainers call.
Comments and a comma before a closing bracket are noted as mistakes and passed over: DeepSpeed's own loader
(hjson) takes them.
"""

from __future__ import annotations

import re

from cfglint.document.tree import MAX_DEPTH, MAX_NODES, Document, Entry, Mapping, Node, Scalar, Sequence
from cfglint.errors import DocumentError
from cfglint.record import Record, field

_BLANK = re.compile(r"[ \t\n\r]*")
_COMMENTS = re.compile(r"(?:[ \t\n\r]+|//[^\n]*|#[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")
_STRING = re.compile(r'"([^"\\\x00-\x1f]*)"')
_ESCAPED = re.compile(r'"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*)"')
_BAD_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*')
_ESCAPE = re.compile(
    r'\\(?:(["\\/bfnrt])|u([Dd][89ABab][0-9A-Fa-f]{2})\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4}))'
)
_WORD = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null|NaN|-?Infinity")
_BARE = re.compile(r"[A-Za-z0-9_.+\-'$]+")
_CLOSE: dict[type, str] = {Mapping: "}", Sequence: "]"}
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}


def _unescape(match: re.Match[str]) -> str:
    short, high, low, unit = match.groups()
    if short:
        return _SHORT[short]
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    return chr(int(unit, 16))


_TRAILING = "trailing comma before {!r}: remove it"
_MOST_COMMAS = 50


def trailing_commas(document: Document) -> list[int]:
    """Return where commas stand before closing brackets; nothing if more is wrong with a text."""
    text = document.file.text
    places: list[int] = []
    error = document.error
    while error is not None and error.offset is not None and len(places) < _MOST_COMMAS:
        at, close = error.offset, text[error.offset + 1 :].lstrip(" \t\r\n")[:1]
        if str(error) != _TRAILING.format(close):
            return []
        places.append(at)
        text = f"{text[:at]} {text[at + 1 :]}"
        error = parse_json(text)[0].error
    return places if error is None else []


def parse_json(text: str) -> list[Document]:
    """Return the one document of ``text``; an error is kept in it, not raised."""
    document = Document(0, len(text))
    if text.strip(" \t\n\r"):  # an empty file is an empty document, as it is in YAML
        try:
            _Scanner(text, document).run()
        except DocumentError as error:
            document.error = error
    document.error = document.error or document.lax
    return [document]


class _Scanner(Record):
    """Reads values at ``at``, without recursion; ``owner`` is the collection being filled."""

    text: str
    document: Document
    at: int = 0
    nodes: int = 0
    owner: Mapping | Sequence | None = None
    stack: list[Mapping | Sequence | None] = field(factory=list)
    key: Scalar | None = None

    def run(self) -> None:
        while True:
            opened = self.value()
            if opened is not None and not self.opens(opened):
                continue
            if not self.goes_on():
                return

    def value(self) -> Mapping | Sequence | None:
        """Read the value that is due, but no further than its bracket; returns what it opens."""
        self.blank()
        at, text = self.at, self.text
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise DocumentError(f"more than {MAX_NODES:,} nodes", at)
        char = text[at : at + 1]
        node: Node
        opened: Mapping | Sequence | None = None
        if char in ("{", "["):
            node = opened = (Mapping if char == "{" else Sequence)(at, flow=True)
            self.at = at + 1
        else:
            node = _string(text, at) if char == '"' else _word(text, at)
            self.at = node.end
        owner = self.owner
        if isinstance(owner, Sequence):
            owner.items.append(node)
        elif owner is None:
            self.document.root = node
        elif self.key is not None:
            first = owner.entries.get(self.key.text)
            if first is not None:
                self.document.duplicates.append((self.key, first.key))
            owner.entries[self.key.text] = Entry(self.key, node)
        return opened

    def opens(self, opened: Mapping | Sequence) -> bool:
        """Step into a collection: return whether it is empty."""
        self.stack.append(self.owner)
        if len(self.stack) > MAX_DEPTH:
            raise DocumentError(f"nested more than {MAX_DEPTH} levels deep", opened.start)
        self.owner = opened
        self.blank()
        opened.end = self.at
        if self.text[self.at : self.at + 1] == _CLOSE[opened.__class__]:
            return True
        self.read_key()
        return False

    def goes_on(self) -> bool:
        """Close what ends after a value, and move past the next comma; false at the end of the file."""
        while True:
            self.blank()
            owner, at = self.owner, self.at
            if owner is None:
                if at < len(self.text):
                    raise _unexpected(self.text, at, "the end of the file")
                return False
            char = self.text[at : at + 1]
            owner.end = at
            close = _CLOSE[owner.__class__]
            if char == close:
                self.at = owner.end = at + 1
                self.owner = self.stack.pop()
                continue
            if char != ",":
                raise _unexpected(self.text, at, f"',' or '{close}'")
            self.at += 1
            self.blank()
            if self.text[self.at : self.at + 1] != close:
                self.read_key()
                return True
            self.lax(DocumentError(_TRAILING.format(close), at))

    def read_key(self) -> None:
        """Read the key that is due in a mapping, and its colon."""
        if self.owner.__class__ is not Mapping:
            return
        text = self.text
        if text[self.at : self.at + 1] != '"':
            raise _unexpected(text, self.at, "a key in double quotes")
        self.key = _string(text, self.at)
        self.at = self.key.end
        self.blank()
        if text[self.at : self.at + 1] != ":":
            raise _unexpected(text, self.at, "':'")
        self.at += 1

    def blank(self) -> None:
        """Go to where blanks and comments end."""
        match = _BLANK.match(self.text, self.at)
        self.at = end = self.at if match is None else match.end()
        if self.text[end : end + 1] in ("#", "/"):
            comments = _COMMENTS.match(self.text, end)
            if comments is not None and comments.end() > end:
                self.lax(_unexpected(self.text, end, ""))
                self.at = comments.end()

    def lax(self, mistake: DocumentError) -> None:
        """Note the first thing that only a lax reader takes."""
        self.document.lax = self.document.lax or mistake


def _word(text: str, at: int) -> Scalar:
    match = _WORD.match(text, at)
    if match is None:
        raise _unexpected(text, at, "a value")
    return Scalar(match.group(), at, match.end())


def _string(text: str, at: int) -> Scalar:
    match = _STRING.match(text, at)
    if match is not None:
        return Scalar(match.group(1), at, match.end(), '"')
    match = _ESCAPED.match(text, at)
    if match is not None:
        return Scalar(_ESCAPE.sub(_unescape, match.group(1)), at, match.end(), '"')
    stop = _BAD_STRING.match(text, at)
    where = stop.end() if stop is not None else at
    if text[where : where + 1] == "\\":
        raise DocumentError("invalid escape: double the backslash", where)
    if where < len(text):
        raise DocumentError("a string contains a line break or a control character: close its quote", where)
    raise DocumentError("unclosed string: add the closing quote", at)


def _unexpected(text: str, at: int, wanted: str) -> DocumentError:
    if at >= len(text):
        return DocumentError(f"the file ends too early: expected {wanted}", at)
    rest = text[at : at + 2]
    if rest in ("//", "/*") or rest[0] == "#":
        return DocumentError("JSON has no comments: remove it", at)
    if rest[0] == "'":
        return DocumentError("JSON strings need double quotes", at)
    if rest[0] == "\x00":
        return DocumentError("a NUL character: is this UTF-16 or a binary file? Save it as UTF-8 text", at)
    bare = _BARE.match(text, at)
    shown = bare.group()[:40] if bare is not None else rest[0]
    return DocumentError(f"expected {wanted}, not {shown!r}", at)
