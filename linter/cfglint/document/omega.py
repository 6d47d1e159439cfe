r"""OmegaConf's ``${…}``: the text to parts, and what these stand for.

A text is a tuple of literal strings, references (``${a.b[0]}``, ``${..up}``) and calls (``${oc.env:X,1}``).
Calls of a framework's own resolvers are computed in resolvers.py. Plain references are followed by a `View`
itself, so most files need none of this.
"""

from __future__ import annotations

from functools import lru_cache

from cfglint.document.scalars import typed
from cfglint.document.tree import (
    DEEPEST_PATH,
    MAX_REFERENCES,
    Computed,
    Mapping,
    Missing,
    Node,
    Path,
    Place,
    Scalar,
    Sequence,
    dotted,
    mandatory,
    missing,
    number_of,
    over_budget,
    plain_reference,
    split_key,
)
from cfglint.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Values(Protocol):
        """What a `View` knows of its document."""

        resolvers: Any

        def place(self, path: Path) -> Place:
            """Return the node at an absolute path, and the path where it is defined."""
            ...

        def follow(self, node: Node | Computed | None, at: Path) -> Place:
            """Return what a node stands for, with aliases and interpolations followed."""
            ...

        def lead(self, path: Path, at: Path) -> Place:
            """Return the node that a reference from ``at`` leads to."""
            ...

        def variable(self, name: str) -> object:
            """Return an environment variable's value."""
            ...

        def value(self, node: Any, at: Path, path: Path) -> object:
            """Return a node's value as the loader gives it."""
            ...


_MOST_CHARACTERS = 100_000  # beyond this a text is data, not a reference
_UNCLOSED = "'${' is not closed by '}'"
_LONGEST_TEXT = 1_000_000
_PLAIN = (str, int, float, type(None))  # what can stand inside a text


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
    """An argument of a resolver; ``kind`` is ``plain`` (typed by the grammar), ``quoted`` or a container.

    ``parts`` makes up a plain or quoted one; ``items`` are a list's, or a dict's keys and values in turn.
    """

    kind: str
    parts: Parts = ()
    items: tuple[Argument, ...] = ()


Part = str | Reference | Call
Parts = tuple[Part, ...]


class MalformedError(Exception):
    """A text that holds ``${`` and is not an interpolation."""


@lru_cache(20_000)
def parse(text: str) -> Parts:
    """Return the parts of ``text``, which holds ``${``; raises MalformedError."""
    if len(text) > _MOST_CHARACTERS:
        raise MalformedError(f"a text of {len(text)} characters with '${{' in it is too long to resolve")
    plain = plain_reference(text)
    if plain is not None:
        return (Reference(0, tuple(plain), 0, len(text)),)
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
        """Move past a mark, where it comes next."""
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
        if depth >= MAX_REFERENCES:
            raise MalformedError(f"'${{' nested more than {MAX_REFERENCES} deep")
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
        char = self.next()
        raise MalformedError(f"{char!r} is not allowed in the path of '${{…}}'" if char else _UNCLOSED)

    def key(self, depth: int) -> Part:
        if self.text.startswith("${", self.at):
            return self.interpolation(depth + 1)
        key = self.until("\\{}()[]:. \t'\"")
        if not key:
            raise MalformedError("a key is missing in '${…}'" if self.next() else _UNCLOSED)
        return key

    def arguments(self, close: str, depth: int) -> tuple[Argument, ...]:
        """Read elements up to ``close``; an element left out between commas is an empty text."""
        elements: list[Argument] = []
        closed = self.take(close)
        while not closed:
            self.blank()
            left_out = self.next() in (",", close)
            elements.append(Argument("quoted") if left_out else self.element(depth))
            closed = self.ends(close, "the arguments of")
        return tuple(elements)

    def ends(self, close: str, where: str) -> bool:
        """Move past ``close``, or the comma that stands instead."""
        if self.take(close):
            return True
        if not self.take(","):
            raise MalformedError(f"'{close}' or ',' is expected in {where} '${{…}}'")
        return False

    def element(self, depth: int) -> Argument:
        """Read one argument, and the blanks after it."""
        if depth >= MAX_REFERENCES:
            raise MalformedError(f"'${{' nested more than {MAX_REFERENCES} deep")
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
        closed = self.take("}")
        while not closed:
            self.blank()
            items.append(self.plain(":", depth))
            if not self.take(":"):
                raise MalformedError("':' is expected in a mapping in '${…}'")
            self.blank()
            items.append(self.element(depth))
            closed = self.ends("}", "a mapping in")
        return tuple(items)

    def plain(self, stops: str, depth: int) -> Argument:
        pieces: list[Part] = []
        while True:
            blanks = self.blank()
            char = self.next()
            if not char:
                raise MalformedError(_UNCLOSED)
            if char in ",]}" + stops:
                break
            pieces.append(blanks)
            if self.text.startswith("${", self.at):
                pieces.append(self.interpolation(depth + 1))
                continue
            if char in "[{\"'":
                raise MalformedError(
                    f"{char!r} is not allowed in an argument of '${{…}}': quote the argument"
                )
            escaped = char == "\\" and self.text[self.at + 1 : self.at + 2] in tuple("\\()[]{}:=, \t")
            self.at += 1 + escaped
            pieces.append(self.text[self.at - 1])
        if not pieces:
            raise MalformedError("an argument is missing in '${…}'")
        return Argument("plain", _joined(pieces))


# ── what the parts stand for ───────────────────────────────────────────────────────────────────────────────
class Evaluator(Record):
    """Finds what a text written at ``at`` leads to, in the places of a `View`."""

    view: Values
    at: Path

    def evaluate(self, text: str) -> Place:
        """Return what a text with ``${`` in it stands for."""
        try:
            parts = parse(text)
        except MalformedError as error:
            return missing(f"invalid interpolation: {error}", "malformed"), self.at
        if len(parts) == 1 and not isinstance(parts[0], str):
            return self._part(parts[0])
        return Computed(self._text(parts)), self.at

    def path_of(self, reference: Reference) -> Path | Missing:
        """Return the path that a reference names."""
        keys: list[str] = []
        for key in reference.keys:
            if isinstance(key, str):
                keys.append(key)
                continue
            value = self._native(key)
            if isinstance(value, Missing):
                return value
            if not isinstance(value, (str, int)) or isinstance(value, bool):
                return Missing((), "a key of a reference must be a string or a number", "malformed")
            keys.extend(split_key(str(value)))
        if reference.up > len(self.at):
            return Missing((), f"{reference.up} dots go above the top of the file", "absent")
        return over_budget() if len(keys) > DEEPEST_PATH else self._from(reference.up, keys)

    def reference_place(self, reference: Reference) -> Place:
        """Return the place that a reference leads to, in the end."""
        path = self.path_of(reference)
        return (Computed(path), self.at) if isinstance(path, Missing) else self.view.lead(path, self.at)

    def _from(self, up: int, keys: list[str]) -> Path:
        return (*(self.at[: max(len(self.at) - up, 0)] if up else ()), *keys)

    def _part(self, part: Reference | Call) -> Place:
        return self.reference_place(part) if isinstance(part, Reference) else self._call(part)

    def _native(self, part: Reference | Call) -> object:
        node, end = self._part(part)
        return self.view.value(node, end, end)

    def _text(self, parts: Parts) -> object:
        texts: list[str] = []
        length = 0
        for part in parts:
            value = part if isinstance(part, str) else self._native(part)
            if isinstance(value, Missing):
                return value
            if not isinstance(value, _PLAIN):
                return Missing((), "a list or mapping inserted into a string", "malformed")
            texts.append(str(value))
            length += len(texts[-1])
            if length > _LONGEST_TEXT:
                return over_budget()
        text = "".join(texts)
        return mandatory(self.at) if text == "???" else text

    def _call(self, call: Call) -> Place:
        if call.name in ("oc.env", "oc.select") and len(call.arguments) in (1, 2):
            return self._own_resolver(call.name, *call.arguments)
        if call.name in self.view.resolvers:
            from cfglint.document.resolvers import resolved  # few files calculate

            return Computed(resolved(call.name, [self._argument(each) for each in call.arguments])), self.at
        return missing(f"the resolver {call.name} is defined by the framework itself", "resolver"), self.at

    def _own_resolver(self, resolver: str, key: Argument, default: Argument | None = None) -> Place:
        name = self._argument(key)
        if isinstance(name, Missing):
            return Computed(name), self.at
        if not isinstance(name, str):
            return missing(f"{resolver} takes a string", "malformed"), self.at
        # OmegaConf evaluates a default that it does not need, and fails where that fails.
        value = None if default is None else self._argument(default)
        if default is not None and default.kind != "dict" and isinstance(value, Missing):
            return Computed(value), self.at
        if resolver == "oc.select":
            return self._select(name, default)
        given = self.view.variable(name)
        if default is None or not isinstance(given, Missing):
            value = given
        elif not isinstance(value, (Missing, *_PLAIN)):
            value = Missing((), "a list or mapping as the default of oc.env", "malformed")
        elif value is not None and not isinstance(value, Missing):
            value = str(value)
        return Computed(value), self.at

    def _select(self, key: str, default: Argument | None) -> Place:
        up = len(key) - len(key.lstrip("."))
        path = self._from(up, split_key(key[up:]))
        if len(path) <= DEEPEST_PATH and up <= len(self.at):
            node, _ = self.view.place(path)
            value = node.value if isinstance(node, Computed) else None
            unset = isinstance(node, Scalar) and node.text == "???"
            unset = unset or (isinstance(value, Missing) and value.kind == "missing")
            if node is not None and not unset:
                return self.view.lead(path, self.at)
            if self._enters_a_list(path):
                return missing(f"{dotted(path)} indexes a list with a name", "malformed"), self.at
        if default is None:
            return Computed(None), self.at
        if default.kind == "dict" and not default.items:
            return Mapping(0, flow=True), self.at
        if default.kind == "plain" and len(default.parts) == 1 and not isinstance(default.parts[0], str):
            return self._part(default.parts[0])
        return Computed(self._argument(default)), self.at

    def _enters_a_list(self, path: Path) -> bool:
        for depth, part in enumerate(path):
            node, _ = self.view.follow(*self.view.place(path[:depth]))
            if isinstance(node, Sequence) and number_of(part) is None:
                return True
        return False

    def _argument(self, argument: Argument) -> object:
        parts = argument.parts
        if argument.kind == "list":
            return [self._argument(item) for item in argument.items]
        if argument.kind == "dict":
            return Missing((), "a mapping written inside an interpolation", "resolver")
        if argument.kind == "plain" and len(parts) == 1:
            return typed(parts[0]) if isinstance(parts[0], str) else self._native(parts[0])
        return self._text(parts)
