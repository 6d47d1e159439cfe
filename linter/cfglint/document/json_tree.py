"""JSON text to the same nodes; libyaml cannot read JSON, since it refuses surrogate pairs.

Accepts what Python's ``json.loads`` does (so ``NaN`` and ``Infinity`` too), since that is what trainers call.
Comments and a comma before a closing bracket are noted as mistakes and passed over: DeepSpeed's own loader
(hjson) takes them.
"""

from __future__ import annotations

import re

from cfglint.document.tree import Entry, Mapping, Scalar, Sequence
from cfglint.document.yaml_tree import MAX_DEPTH, MAX_NODES, Parsed
from cfglint.errors import DocumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.tree import Node

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
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}


def _unescape(found: re.Match[str]) -> str:
    short, high, low, unit = found.groups()
    if short:
        return _SHORT[short]
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    return chr(int(unit, 16))


def parse_json(text: str) -> list[Parsed]:
    """Return the one document of ``text``; an error is kept in it, not raised."""
    document = Parsed(0)
    document.end = len(text)
    if text.strip(" \t\n\r"):  # an empty file is an empty document, as it is in YAML
        try:
            _build(text, document)
        except DocumentError as error:
            document.error = error
    document.error = document.error or document.lax
    return [document]


def _string(text: str, at: int) -> tuple[Scalar, int]:
    found = _STRING.match(text, at)
    if found is not None:
        end = found.end()
        return Scalar(found.group(1), at, end, '"'), end
    found = _ESCAPED.match(text, at)
    if found is not None:
        end = found.end()
        return Scalar(_ESCAPE.sub(_unescape, found.group(1)), at, end, '"'), end
    stop = _BAD_STRING.match(text, at)
    where = stop.end() if stop is not None else at
    if text[where : where + 1] == "\\":
        raise DocumentError("an escape that JSON does not know: double the backslash", where)
    if where < len(text):
        raise DocumentError("a text runs into a line break or control character: close its quote", where)
    raise DocumentError("a text in quotes is never closed", at)


def _unexpected(text: str, at: int, wanted: str) -> DocumentError:
    if at >= len(text):
        return DocumentError(f"the file ends where {wanted} is expected", at)
    rest = text[at : at + 2]
    if rest in ("//", "/*") or rest[0] == "#":
        return DocumentError("JSON has no comments: remove it", at)
    if rest[0] == "'":
        return DocumentError("JSON writes texts in double quotes", at)
    if rest[0] == "\x00":
        return DocumentError("a NUL character: is this UTF-16 or a binary file? Save it as UTF-8 text", at)
    bare = _BARE.match(text, at)
    shown = bare.group()[:40] if bare is not None else rest[0]
    return DocumentError(f"{wanted} is expected here, not {shown!r}", at)


def _build(text: str, document: Parsed) -> None:
    word = _WORD.match
    owner: Mapping | Sequence | None = None
    stack: list[Mapping | Sequence | None] = []
    key: Scalar | None = None
    nodes = 0
    at = 0
    while True:
        # A value is due at `at`.
        at = _after(text, at, document)
        nodes += 1
        if nodes > MAX_NODES:
            raise DocumentError(f"more than {MAX_NODES:,} nodes", at)
        char = text[at : at + 1]
        node: Node
        opened: Mapping | Sequence | None = None
        if char == '"':
            node, after = _string(text, at)
        elif char == "{":
            node = opened = Mapping(at, flow=True)
            after = at + 1
        elif char == "[":
            node = opened = Sequence(at, flow=True)
            after = at + 1
        else:
            found = word(text, at)
            if found is None:
                raise _unexpected(text, at, "a value")
            after = found.end()
            node = Scalar(found.group(), at, after)
        if key is not None and owner.__class__ is Mapping:
            _add(document, owner, key, node)
            key = None
        elif owner.__class__ is Sequence:
            owner.items.append(node)
        else:
            document.root = node
        at = after
        if opened is not None:
            stack.append(owner)
            if len(stack) > MAX_DEPTH:
                raise DocumentError(f"nested more than {MAX_DEPTH} levels deep", opened.start)
            owner = opened
            at = opened.end = _after(text, at, document)
            close = "}" if owner.__class__ is Mapping else "]"
            if text[at : at + 1] != close:
                if owner.__class__ is Mapping:
                    key, at = _key(text, at, document)
                continue
        # A value is complete: close what ends here, and go on behind the next comma.
        while True:
            at = _after(text, at, document)
            if owner is None:
                if at < len(text):
                    raise _unexpected(text, at, "the end of the file")
                return
            char = text[at : at + 1]
            owner.end = at
            close = "}" if owner.__class__ is Mapping else "]"
            if char == close:
                at += 1
                owner.end = at
                owner = stack.pop()
                continue
            if char != ",":
                raise _unexpected(text, at, f"',' or '{close}'")
            comma = at
            at = _after(text, at + 1, document)
            if text[at : at + 1] == close:
                _lax(document, DocumentError(f"a comma before '{close}': remove it", comma))
                continue
            if owner.__class__ is Mapping:
                key, at = _key(text, at, document)
            break


def _after(text: str, at: int, document: Parsed) -> int:
    """Return where blanks and comments end."""
    found = _BLANK.match(text, at)
    end = at if found is None else found.end()
    if text[end : end + 1] in ("#", "/"):
        comments = _COMMENTS.match(text, end)
        if comments is not None and comments.end() > end:
            _lax(document, _unexpected(text, end, ""))
            return comments.end()
    return end


def _lax(document: Parsed, mistake: DocumentError) -> None:
    if document.lax is None:
        document.lax = mistake


def _key(text: str, at: int, document: Parsed) -> tuple[Scalar, int]:
    if text[at : at + 1] != '"':
        raise _unexpected(text, at, "a key in double quotes")
    key, at = _string(text, at)
    at = _after(text, at, document)
    if text[at : at + 1] != ":":
        raise _unexpected(text, at, "':'")
    return key, at + 1


def _add(document: Parsed, owner: Mapping, key: Scalar, node: Node) -> None:
    first = owner.entries.get(key.text)
    if first is not None:
        document.duplicates.append((key, first.key))
    owner.entries[key.text] = Entry(key, node)
