"""What can be said of rule files in which some statements do not parse.

The statements that do are read and checked. What a broken one would have defined is not known: nothing is
said of a statement that asks for it, nor of one that asks for what such a statement defines.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cfglint.lang import tree as t
from cfglint.text import LineIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cfglint.errors import Complaint
    from cfglint.lang.symbols import Source

_DEFINED = re.compile(
    r"^(?:fact|let|knob|role|registry|table|framework)[ \t]+(\.?[A-Za-z_][\w.]*)"
    r"|^[ \t]+(?:let[ \t]+)?(\.?[A-Za-z_][\w.]*)[ \t]*(?:\(.*\)[ \t]*=|=(?!=)|<-|:.*<-|:)",
    re.MULTILINE,
)
HOLDS_ON = re.compile(r"(?:prefix|for|where|given)\b")  # what these say holds of all that follows
_REPEATS = re.compile(r"each\b")
EVERYTHING = "*"


def without_broken(text: str, broken: Sequence[tuple[int, str]]) -> tuple[str, frozenset[str]]:
    """Return a file's text with blanks for the chunks that do not parse, and the names that they define.

    Each chunk comes with its offset. What follows one that speaks of all that follows is left out, too.
    """
    names: set[str] = set()
    for start, chunk in broken:
        end = len(text) if HOLDS_ON.match(chunk) else start + len(chunk)
        names.update(name for found in _DEFINED.findall(text[start:end]) for name in found if name)
        if _REPEATS.match(chunk):
            names.add(EVERYTHING)  # its names are put together
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return text, frozenset(names)


def first_causes(complaints: Iterable[Complaint], sources: Sequence[Source]) -> list[Complaint]:
    """Return the complaints without those about statements that ask for a name of a broken one."""
    unknown = {name for source in sources for name in source.broken}
    if not unknown:
        return list(complaints)
    parts = [(source, part) for source in sources for part in _parts(source.statements)]
    asking: list[tuple[Source, t.Node]] = []
    while True:
        more = [(source, part) for source, part in parts if _asks(part, unknown)]
        if len(more) == len(asking):
            break
        asking = more
        unknown |= {name for _, part in asking for name in _defines(part)}
    places = [(source.path, *_lines(source, span)) for source, part in asking for span in _spans(part)]
    return [
        each
        for each in complaints
        if not any(
            path == each.path and first <= (each.line, each.column) <= last for path, first, last in places
        )
    ]


def _parts(statements: Iterable[t.Statement]) -> Iterator[t.Node]:
    for statement in statements:
        yield from statement.entries if isinstance(statement, t.Framework) else (statement,)


def _asks(part: t.Node, unknown: set[str]) -> bool:
    if EVERYTHING in unknown:
        return True
    names = set()
    for node in t.walk(part):
        if isinstance(node, (t.Name, t.Binding, t.Knob, t.Tie, t.Write)):
            names.add(node.name)
        elif isinstance(node, t.Call):
            names.add(node.function)
        elif isinstance(node, t.Scope):
            names.add(node.framework)
    ends = tuple(name for name in unknown if name.startswith("."))
    return any(
        name in unknown or name.endswith(ends) or any(name.startswith(f"{known}.") for known in unknown)
        for name in names
    )


def _defines(part: t.Node) -> Iterator[str]:
    if isinstance(part, (t.Fact, t.Let, t.Role, t.Binding)):
        yield part.name
    if isinstance(part, t.Role):
        yield from (let.name for let in part.lets())


def _spans(part: t.Node) -> Iterator[t.Span]:
    """Yield where a part stands; what a section says of a rule stands at the section."""
    yield part.span
    if isinstance(part, t.Rule):
        yield from (scope.span for scope in part.scope)
        yield from (node.span for node in t.walk(part.condition))


def _lines(source: Source, span: t.Span) -> tuple[tuple[int, int], tuple[int, int]]:
    source.index = source.index or LineIndex(source.text)
    first, last = (source.index.position(min(at, len(source.text))) for at in span)
    return first, last
