r"""OmegaConf's ``${…}``: the text to parts. `omega` finds what the parts stand for.

A text is a tuple of literal strings, references (``${a.b[0]}``, ``${..up}``) and calls (``${oc.env:X,1}``).
"""

from __future__ import annotations

from cfglint.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Part: TypeAlias = "str | Reference | Call"
    Parts: TypeAlias = "tuple[Part, ...]"

MAX_DEPTH = 50
_MOST_CACHED = 20_000
# Beyond this a text is data, not a reference.
_MOST_CHARACTERS = 100_000


class Reference(Record):
    """``${.a.b}``: ``up`` counts the leading dots (0: from the root), a key may itself be a part."""

    up: int
    keys: Parts
    start: int
    end: int


class Call(Record):
    """``${name:argument,…}``: a resolver."""

    name: str
    arguments: tuple[Argument, ...]
    start: int
    end: int


class Argument(Record):
    """An argument of a resolver; ``kind`` is ``plain`` (typed by the grammar), ``quoted``, ``list``, …

    ``parts`` makes up a plain or quoted one; ``items`` are a list's, or a dict's keys and values in turn.
    """

    kind: str
    parts: Parts = ()
    items: tuple[Argument, ...] = ()


class MalformedError(Exception):
    """A text that holds ``${`` and is no interpolation."""


_cache: dict[str, Parts | MalformedError] = {}


def parse(text: str) -> Parts:
    """Return the parts of ``text``, which holds ``${``; raises MalformedError."""
    parts = _cache.get(text)
    if parts is None:
        if len(_cache) >= _MOST_CACHED:
            _cache.clear()
        try:
            parts = _parse(text)
        except MalformedError as error:
            parts = error
        if len(text) < 1000:
            _cache[text] = parts
    if isinstance(parts, MalformedError):
        raise MalformedError(*parts.args)
    return parts


def references_in(parts: Parts) -> list[Reference]:
    """Return all references in ``parts``, those inside arguments and keys too."""
    references: list[Reference] = []
    waiting: list[Part | Argument] = list(parts)
    for part in waiting:  # grows on the way
        if isinstance(part, Reference):
            references.append(part)
            waiting.extend(part.keys)
        elif isinstance(part, Call):
            waiting.extend(part.arguments)
        elif isinstance(part, Argument):
            waiting.extend(part.parts)
            waiting.extend(part.items)
    return references


def _parse(text: str) -> Parts:
    if len(text) > _MOST_CHARACTERS:
        raise MalformedError(f"a text of {len(text)} characters with '${{' in it is not read")
    inner = text[2:-1]
    if text[:2] == "${" and text[-1:] == "}" and inner.replace(".", "").replace("_", "").isalnum():
        keys = inner.split(".")
        if all(keys):
            return (Reference(0, tuple(keys), 0, len(text)),)
    return _Parser(text).literal(None, 0)


def _joined(pieces: list[Part]) -> Parts:
    """Return the parts that some pieces make: texts beside each other are one."""
    parts: list[Part] = []
    for piece in pieces:
        if isinstance(piece, str) and parts and isinstance(parts[-1], str):
            parts[-1] += piece
        elif piece:
            parts.append(piece)
    return tuple(parts)


class _Parser(Record):
    """Reads a text from ``at`` on."""

    text: str
    at: int = 0

    def next(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, mark: str) -> bool:
        """Go behind a mark, where it comes next."""
        comes = self.text.startswith(mark, self.at)
        self.at += len(mark) * comes
        return comes

    def until(self, stops: str) -> str:
        """Read up to one of some characters, or the end."""
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in stops:
            self.at += 1
        return self.text[start : self.at]

    def blank(self) -> str:
        start = self.at
        while self.next() in (" ", "\t"):
            self.at += 1
        return self.text[start : self.at]

    def literal(self, quote: str | None, depth: int) -> Parts:
        """Read up to ``quote`` or the end; a backslash escapes ``${`` and the quote."""
        pieces: list[Part] = []
        while quote is None or not self.take(quote):
            if self.at >= len(self.text):
                if quote is not None:
                    raise MalformedError(f"the quote {quote} is not closed")
                break
            if self.next() == "\\":
                pieces.append(self.escaped(quote))
            elif self.text.startswith("${", self.at):
                pieces.append(self.interpolation(depth))
            else:
                self.at += 1
                pieces.append(self.text[self.at - 1] + self.until("\\$" + (quote or "")))
        return _joined(pieces)

    def escaped(self, quote: str | None) -> str:
        """Read backslashes, and the ``${`` or the quote that they escape."""
        start = self.at
        while self.next() == "\\":
            self.at += 1
        count = self.at - start
        for mark in ("${", quote or ""):
            if mark and self.text.startswith(mark, self.at):
                return "\\" * (count // 2) + (mark if count % 2 and self.take(mark) else "")
        return self.text[start : self.at]

    def interpolation(self, depth: int) -> Reference | Call:
        start = self.at
        if depth >= MAX_DEPTH:
            raise MalformedError(f"'${{' nested more than {MAX_DEPTH} deep")
        self.at += 2
        self.blank()
        up = 0
        while self.take("."):
            up += 1
        keys: list[Part] = []
        bracketed = False
        while not keys or self.next() == "[" or self.take("."):
            bracket = self.take("[")
            bracketed = bracketed or bracket
            keys.append(self.key(depth))
            if bracket and not self.take("]"):
                raise MalformedError("'[' is not closed by ']'")
        self.blank()
        if self.take("}"):
            return Reference(up, tuple(keys), start, self.at)
        names = [key for key in keys if isinstance(key, str)]
        if not up and not bracketed and len(names) == len(keys) and self.take(":"):
            self.blank()
            return Call(".".join(names), self.arguments("}", depth), start, self.at)
        if not self.next():
            raise MalformedError("'${' is not closed by '}'")
        raise MalformedError(f"{self.next()!r} cannot stand in the path of '${{…}}'")

    def key(self, depth: int) -> Part:
        if self.text.startswith("${", self.at):
            return self.interpolation(depth + 1)
        key = self.until("\\{}()[]:. \t'\"")
        if not key:
            if self.at >= len(self.text):
                raise MalformedError("'${' is not closed by '}'")
            raise MalformedError("a key is missing in '${…}'")
        return key

    def arguments(self, close: str, depth: int) -> tuple[Argument, ...]:
        """Read elements up to ``close``; an element left out between commas is an empty text."""
        elements: list[Argument] = []
        if self.take(close):
            return ()
        while True:
            self.blank()
            left_out = self.next() in (",", close)
            elements.append(Argument("quoted") if left_out else self.element(depth))
            if self.take(close):
                return tuple(elements)
            if not self.take(","):
                raise MalformedError(f"'{close}' or ',' is expected in the arguments of '${{…}}'")

    def element(self, depth: int) -> Argument:
        """Read one argument, and the blanks behind it."""
        if depth >= MAX_DEPTH:
            raise MalformedError(f"'${{' nested more than {MAX_DEPTH} deep")
        char = self.next()
        if char not in ("'", '"', "[", "{"):
            return self.plain("", depth)
        self.at += 1
        if char == "{":
            element = Argument("dict", (), self.mapping(depth + 1))
        elif char == "[":
            self.blank()
            element = Argument("list", (), self.arguments("]", depth + 1))
        else:
            element = Argument("quoted", self.literal(char, depth + 1))
        self.blank()
        return element

    def mapping(self, depth: int) -> tuple[Argument, ...]:
        items: list[Argument] = []
        self.blank()
        if self.take("}"):
            return ()
        while True:
            self.blank()
            items.append(self.plain(":", depth))
            if not self.take(":"):
                raise MalformedError("':' is expected in a mapping in '${…}'")
            self.blank()
            items.append(self.element(depth))
            if self.take("}"):
                return tuple(items)
            if not self.take(","):
                raise MalformedError("'}' or ',' is expected in a mapping in '${…}'")

    def plain(self, stops: str, depth: int) -> Argument:
        pieces: list[Part] = []
        while True:
            blanks = self.blank()
            char = self.next()
            if not char:
                raise MalformedError("'${' is not closed by '}'")
            if char in ",]}" + stops:
                break
            pieces.append(blanks)
            if self.text.startswith("${", self.at):
                pieces.append(self.interpolation(depth + 1))
                continue
            if char in "[{\"'":
                raise MalformedError(
                    f"{char!r} cannot stand inside an argument of '${{…}}': quote the argument"
                )
            escaped = char == "\\" and self.text[self.at + 1 : self.at + 2] in tuple("\\()[]{}:=, \t")
            self.at += 1 + escaped
            pieces.append(self.text[self.at - 1])
        if not pieces:
            raise MalformedError("an argument is missing in '${…}'")
        return Argument("plain", _joined(pieces))
