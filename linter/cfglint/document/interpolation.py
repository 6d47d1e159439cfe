r"""OmegaConf's ``${…}``: the text to parts. `view` finds what the parts stand for.

A text is a tuple of literal strings, references (``${a.b[0]}``, ``${..up}``) and calls (``${oc.env:X,1}``).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

MAX_DEPTH = 50
_MOST_CACHED = 20_000
# Beyond this a text is data, not a reference.
_MOST_CHARACTERS = 100_000


class Reference:
    """``${.a.b}``: ``up`` counts the leading dots (0: from the root), a key may itself be a part."""

    __slots__ = ("end", "keys", "start", "up")

    def __init__(self, up: int, keys: tuple[str | Reference | Call, ...], start: int, end: int) -> None:
        self.up = up
        self.keys = keys
        self.start = start
        self.end = end


class Call:
    """``${name:argument,…}``: a resolver."""

    __slots__ = ("arguments", "end", "name", "start")

    def __init__(self, name: str, arguments: tuple[Argument, ...], start: int, end: int) -> None:
        self.name = name
        self.arguments = arguments
        self.start = start
        self.end = end


class Argument:
    """An argument of a resolver; ``kind`` is ``plain`` (typed by the grammar), ``quoted``, ``list``, …

    ``parts`` makes up a plain or quoted one; ``items`` are a list's, or a dict's keys and values in turn.
    """

    __slots__ = ("items", "kind", "parts")

    def __init__(self, kind: str, parts: Parts = (), items: tuple[Argument, ...] = ()) -> None:
        self.kind = kind
        self.parts = parts
        self.items = items


class MalformedError(Exception):
    """A text that holds ``${`` and is no interpolation."""


if TYPE_CHECKING:
    Part: TypeAlias = str | Reference | Call
    Parts: TypeAlias = tuple[Part, ...]

_cache: dict[str, Parts | MalformedError] = {}


def parse(text: str) -> Parts:
    """Return the parts of ``text``, which holds ``${``; raises MalformedError."""
    known = _cache.get(text)
    if known is None:
        if len(_cache) >= _MOST_CACHED:
            _cache.clear()
        try:
            known = _parse(text)
        except MalformedError as error:
            known = error
        if len(text) < 1000:
            _cache[text] = known
    if isinstance(known, MalformedError):
        raise MalformedError(*known.args)
    return known


def split_key(text: str) -> list[str]:
    """Return the keys of ``a.b[0]``; an empty text is one empty key."""
    if "[" not in text:
        return text.split(".")
    keys: list[str] = []
    for i, piece in enumerate(text.split(".")):
        head, *brackets = piece.split("[")
        if head or not brackets or (i > 0 and not brackets):
            keys.append(head)
        keys.extend(b.rstrip("]") for b in brackets)
    return keys


def _parse(text: str) -> Parts:
    if len(text) > _MOST_CHARACTERS:
        raise MalformedError(f"a text of {len(text)} characters with '${{' in it is not read")
    inner = text[2:-1]
    if text[:2] == "${" and text[-1:] == "}" and inner.replace(".", "").replace("_", "").isalnum():
        keys = inner.split(".")
        if all(keys):
            return (Reference(0, tuple(keys), 0, len(text)),)
    return _Parser(text).literal(0, None, 0)[0]


def _typed_end(text: str, at: int) -> int:
    end = at
    while text[end : end + 1] == "\\":
        end += 1
    return end


class _Parser:
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def literal(self, at: int, quote: str | None, depth: int) -> tuple[Parts, int]:
        """Read up to ``quote`` or the end; a backslash escapes ``${`` and the quote."""
        text = self.text
        parts: list[Part] = []
        held: list[str] = []
        while True:
            if at >= len(text):
                if quote is not None:
                    raise MalformedError(f"the quote {quote} is not closed")
                break
            char = text[at]
            if char == "\\":
                after = _typed_end(text, at)
                count = after - at
                opens = text.startswith("${", after)
                closes = quote is not None and text.startswith(quote, after)
                if not opens and not closes:
                    held.append(text[at:after])
                    at = after
                    continue
                held.append("\\" * (count // 2))
                at = after
                if count % 2:
                    held.append("${" if opens else quote or "")
                    at += 2 if opens else 1
                continue
            if char == quote:
                at += 1
                break
            if char == "$" and text.startswith("${", at):
                if held:
                    parts.append("".join(held))
                    held = []
                part, at = self.interpolation(at, depth)
                parts.append(part)
                continue
            stop = at + 1
            while stop < len(text) and text[stop] not in ("\\", "$", quote):
                stop += 1
            held.append(text[at:stop])
            at = stop
        if held:
            parts.append("".join(held))
        return tuple(parts), at

    def interpolation(self, start: int, depth: int) -> tuple[Reference | Call, int]:
        text = self.text
        if depth >= MAX_DEPTH:
            raise MalformedError(f"'${{' nested more than {MAX_DEPTH} deep")
        at = self.blank(start + 2)
        up = 0
        while text[at : at + 1] == ".":
            up += 1
            at += 1
        keys: list[str | Reference | Call] = []
        bracketed = False
        while True:
            bracket = text[at : at + 1] == "["
            if bracket:
                at += 1
                bracketed = True
            key, at = self.key(at, depth)
            keys.append(key)
            if bracket:
                if text[at : at + 1] != "]":
                    raise MalformedError("'[' is not closed by ']'")
                at += 1
            char = text[at : at + 1]
            if char == "[":
                continue
            if char == ".":
                at += 1
                continue
            break
        at = self.blank(at)
        char = text[at : at + 1]
        if char == "}":
            return Reference(up, tuple(keys), start, at + 1), at + 1
        if char == ":" and not up and not bracketed and all(isinstance(k, str) for k in keys):
            arguments, at = self.arguments(self.blank(at + 1), "}", depth)
            name = ".".join(k for k in keys if isinstance(k, str))
            return Call(name, arguments, start, at), at
        if not char:
            raise MalformedError("'${' is not closed by '}'")
        raise MalformedError(f"{char!r} cannot stand in the path of '${{…}}'")

    def key(self, at: int, depth: int) -> tuple[str | Reference | Call, int]:
        text = self.text
        if text.startswith("${", at):
            return self.interpolation(at, depth + 1)
        stop = at
        while stop < len(text) and text[stop] not in "\\{}()[]:. \t'\"":
            stop += 1
        if stop == at:
            if at >= len(text):
                raise MalformedError("'${' is not closed by '}'")
            raise MalformedError("a key is missing in '${…}'")
        return text[at:stop], stop

    def blank(self, at: int) -> int:
        text = self.text
        while text[at : at + 1] in (" ", "\t"):
            at += 1
        return at

    def arguments(self, at: int, close: str, depth: int) -> tuple[tuple[Argument, ...], int]:
        """Read elements up to ``close``; an element left out between commas is an empty text."""
        text = self.text
        found: list[Argument] = []
        if text[at : at + 1] == close:
            return (), at + 1
        while True:
            at = self.blank(at)
            if text[at : at + 1] in (",", close):
                found.append(Argument("quoted"))
            else:
                element, at = self.element(at, depth)
                found.append(element)
            char = text[at : at + 1]
            at += 1
            if char == close:
                return tuple(found), at
            if char != ",":
                raise MalformedError(f"'{close}' or ',' is expected in the arguments of '${{…}}'")

    def element(self, at: int, depth: int) -> tuple[Argument, int]:
        """Read one argument, and the blanks behind it."""
        text = self.text
        char = text[at : at + 1]
        if depth >= MAX_DEPTH:
            raise MalformedError(f"'${{' nested more than {MAX_DEPTH} deep")
        if char in ("'", '"'):
            parts, at = self.literal(at + 1, char, depth + 1)
            return Argument("quoted", parts), self.blank(at)
        if char == "[":
            items, at = self.arguments(self.blank(at + 1), "]", depth + 1)
            return Argument("list", (), items), self.blank(at)
        if char == "{":
            return self.mapping(self.blank(at + 1), depth + 1)
        return self.plain(at, "", depth)

    def mapping(self, at: int, depth: int) -> tuple[Argument, int]:
        text = self.text
        items: list[Argument] = []
        if text[at : at + 1] == "}":
            return Argument("dict"), self.blank(at + 1)
        while True:
            key, at = self.plain(self.blank(at), ":", depth)
            if text[at : at + 1] != ":":
                raise MalformedError("':' is expected in a mapping in '${…}'")
            value, at = self.element(self.blank(at + 1), depth)
            items += [key, value]
            char = text[at : at + 1]
            at += 1
            if char == "}":
                return Argument("dict", (), tuple(items)), self.blank(at)
            if char != ",":
                raise MalformedError("'}' or ',' is expected in a mapping in '${…}'")

    def plain(self, at: int, stops: str, depth: int) -> tuple[Argument, int]:
        text = self.text
        parts: list[Part] = []
        held: list[str] = []
        blanks = ""
        while True:
            char = text[at : at + 1]
            if not char:
                raise MalformedError("'${' is not closed by '}'")
            if char in ",]}" or (stops and char in stops):
                break
            if char in " \t":
                stop = self.blank(at)
                blanks = text[at:stop]
                at = stop
                continue
            if blanks:
                held.append(blanks)
                blanks = ""
            if text.startswith("${", at):
                if held:
                    parts.append("".join(held))
                    held = []
                part, at = self.interpolation(at, depth + 1)
                parts.append(part)
                continue
            if char == "\\" and text[at + 1 : at + 2] in tuple("\\()[]{}:=, \t"):
                held.append(text[at + 1])
                at += 2
                continue
            if char in "[{\"'":
                raise MalformedError(
                    f"{char!r} cannot stand inside an argument of '${{…}}': quote the argument"
                )
            held.append(char)
            at += 1
        if held:
            parts.append("".join(held))
        if not parts:
            raise MalformedError("an argument is missing in '${…}'")
        return Argument("plain", tuple(parts)), at


def typed(text: str) -> object:
    """Return what an unquoted argument means to OmegaConf's grammar: null, a boolean, a number or a text."""
    import re

    lowered = text.lower()
    if lowered in ("null", "true", "false"):
        return {"null": None, "true": True, "false": False}[lowered]
    if lowered.lstrip("+-") in ("inf", "nan") and len(lowered) <= 4:
        return float(lowered)
    digits = r"(?:[0-9]|[1-9](?:_?[0-9])+)"
    if len(text) > 4300:
        return text
    if re.fullmatch(rf"[-+]?{digits}", text):
        return int(text)
    fraction = r"\.[0-9](?:_?[0-9])*"
    point = rf"(?:{digits}?{fraction}|{digits}\.)"
    if re.fullmatch(rf"[-+]?(?:{point}|(?:{digits}|{point})[eE][-+]?[0-9](?:_?[0-9])*)", text):
        return float(text)
    return text
