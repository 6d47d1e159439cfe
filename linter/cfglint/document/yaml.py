"""YAML text to nodes, from libyaml's events.

Events and not composed nodes: a composed alias carries its anchor's marks, and an edit there would change the
anchor. Properties (anchors, tags) lie inside an event's span; ours start after them. Nothing is expanded.
"""

from __future__ import annotations

import re
from itertools import islice

from cfglint.document.scalars import PYYAML, resolve
from cfglint.document.tree import (
    MAX_DEPTH,
    MAX_NODES,
    Alias,
    Document,
    Entry,
    Mapping,
    Node,
    Scalar,
    Sequence,
    target,
)
from cfglint.errors import CfglintError, DocumentError
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_MERGE = "tag:yaml.org,2002:merge"

# What libyaml's reader refuses, and a byte order mark inside the text, on which loaders differ.
# A text, since compiling it takes 4 ms.
_UNPRINTABLE = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
# Anchors and tags, and the blanks and comments after each.
_PROPERTIES = (
    r"(?:(?:&[A-Za-z0-9_-]*|!<[^>\s]*>|![^\s,]*)"
    "(?:[ \t\r\n\x85\u2028\u2029]|(?<=[ \t\r\n\x85\u2028\u2029])#[^\r\n\x85\u2028\u2029]*)*)+"
)

_ADVICE = {
    # libyaml 0.2.6 reads ahead, and stops at 1,000 levels.
    "exceeded maximum nesting depth": f"nested more than {MAX_DEPTH} levels deep",
    "mapping values are not allowed in this context": (
        "unexpected ': ': quote the value, or give each key a line of its own, with its indentation"
    ),
    "did not find expected key": (
        "expected a key: check the indentation, and look for an unclosed quote above"
    ),
    "did not find expected '-' indicator": "expected a list item ('- '): check the indentation",
    "did not find expected ',' or ']'": "a list opened with '[' is not closed: add ',' or ']'",
    "did not find expected ',' or '}'": "a mapping opened with '{' is not closed: add ',' or '}'",
    "did not find expected node content": "expected a value",
    "did not find expected <document start>": (
        "unexpected content after the top-level value: check the indentation of the first key"
    ),
    "found unexpected end of stream": "unclosed quote: add the closing one",
    "found unexpected document indicator": "'---' or '...' inside a quoted string: close the quote",
    "could not find expected ':'": "a key without ':': add it, or indent the line as part of the value above",
    "block sequence entries are not allowed in this context": (
        "a list item is not allowed here: start the list on its own line"
    ),
    "mapping keys are not allowed in this context": "a key is not allowed here: start it on its own line",
    "found character that cannot start any token": (
        "a value cannot start with this character: quote it, and indent with spaces, not tabs"
    ),
    "found a tab character that violates indentation": "tab in the indentation: use spaces",
    "found a tab character where an indentation space is expected": "tab in the indentation: use spaces",
    "found unknown escape character": (
        "invalid escape in a double-quoted string: double the backslash, or use single quotes"
    ),
    "found undefined tag handle": "undeclared tag handle: quote the value if it is a string",
    "did not find expected alphabetic or numeric character": (
        "'&' and '*' start an anchor or alias: quote the value if it is a string"
    ),
}


BREAK = "\r\n|[\n\r\x85\u2028\u2029]"  # between lines; a text, since few need it


def line_end(text: str, at: int) -> int:
    """Return where the line around an offset ends, to YAML."""
    match = re.compile(BREAK).search(text, at)
    return len(text) if match is None else match.start()


def parse_yaml(text: str) -> list[Document]:
    """Return the documents of ``text``, which has no byte order mark; errors are kept in them."""
    broken = _broken_character(text) if "\ufeff" in text else None
    documents, error = _build(text if broken is None else text[: broken.offset])
    if isinstance(error, _UnreadableError):
        # libyaml reads ahead: parse again what comes before the character that it stumbled on.
        broken = _broken_character(text) or error
        documents, error = _build(text[: broken.offset])
    if broken is not None:
        error = broken
    last = documents[-1]
    if error is not None and (last.error is None or broken is not None):
        last.error = error
    last.end = len(text)
    return documents


class _UnreadableError(DocumentError):
    """libyaml's reader stopped; it names no exact place."""


def _broken_character(text: str) -> DocumentError | None:
    match = re.search(_UNPRINTABLE, text)
    if match is None:
        return None
    char = match.group()
    if char == "\x00":
        what = "a NUL character: is this UTF-16 or a binary file? Save it as UTF-8 text"
    elif char == "\ufeff":
        what = "a byte order mark (U+FEFF) inside the text: remove it"
    else:
        what = (
            f"the control character U+{ord(char):04X}: remove it, or write it as an escape in double quotes"
        )
    return DocumentError(what, match.start())


def _build(text: str) -> tuple[list[Document], DocumentError | None]:
    """Drive libyaml over ``text``; one flat loop, since a hostile file nests deeper than Python recurses."""
    from yaml import events
    from yaml.error import MarkedYAMLError, YAMLError

    try:
        from yaml._yaml import CParser
    except ImportError:
        raise CfglintError(
            "PyYAML lacks libyaml: `pip install --force-reinstall --only-binary :all: pyyaml` installs it"
        ) from None
    builder = _Builder(text)
    handlers = {
        events.MappingStartEvent: lambda event: builder.open(event, Mapping),
        events.SequenceStartEvent: lambda event: builder.open(event, Sequence),
        events.MappingEndEvent: builder.close,
        events.SequenceEndEvent: builder.close,
        events.AliasEvent: builder.alias,
        events.DocumentStartEvent: builder.begin,
    }
    error: DocumentError | None = None
    try:
        stream = islice(iter(CParser(text).get_event, None), MAX_NODES)
        if builder.feed(stream, events.ScalarEvent, handlers) is not events.StreamEndEvent:
            error = DocumentError(f"more than {MAX_NODES:,} nodes", builder.at)
    except DocumentError as wrong:
        error = wrong
    except MarkedYAMLError as wrong:
        error = builder.stopped(wrong)
    except (YAMLError, UnicodeEncodeError) as wrong:
        error = _UnreadableError(str(wrong).partition("\n")[0], builder.at)
    finally:
        # What an error left open ends where reading stopped.
        for holder in (*builder.stack, builder.owner):
            if holder is not None:
                holder.end = builder.at
    return builder.documents, error


class _Builder(Record):
    """Makes nodes of events; ``owner`` is the collection being filled, ``key`` what waits for its value."""

    text: str
    documents: list[Document] = field(factory=list)
    document: Document = field(factory=lambda: Document(0))
    anchors: dict[str, Node] = field(factory=dict)
    at: int = 0  # where the last node ends
    owner: Any = None
    key: Scalar | None = None
    stack: list[Any] = field(factory=list)
    complex_keys: list[int] = field(factory=list)  # how deep the stack stood where a key that is none began
    begun: bool = False

    def __post_init__(self) -> None:
        self.documents.append(self.document)

    def begin(self, event: Any) -> None:
        self.anchors = {}
        if self.begun:
            self.document.end = event.start_mark.index
            self.document = Document(self.document.end)
            self.documents.append(self.document)
        self.begun = True

    def feed(self, events: Iterable[Any], scalar: type, handlers: dict[type, Any]) -> type | None:
        """Take in events and return the class of the last; scalars here, as most are that."""
        kind: type | None = None
        owner, key = self.owner, self.key
        for event in events:
            kind = event.__class__
            if kind is not scalar:
                if kind in handlers:
                    self.key = key
                    handlers[kind](event)
                    owner, key = self.owner, self.key
                continue
            start = event.start_mark.index
            self.at = end = event.end_mark.index
            tag = event.tag
            anchor = event.anchor
            if tag is not None or anchor is not None:
                start = _skip_properties(self.text, start, end)
            node = Scalar(event.value, start, end, event.style, tag, anchor)
            if anchor is not None:
                self.name(anchor, node, event)
            if owner.__class__ is Mapping:
                if key is None:
                    key = node
                elif key.text in owner.entries or key.text == "<<":
                    self.put(key, node)
                    key = None
                else:  # most
                    owner.entries[key.text] = Entry(key, node)
                    key = None
            elif owner is not None:
                owner.items.append(node)
            elif start != end or tag is not None or anchor is not None:
                self.document.root = node
        return kind

    def alias(self, event: Any) -> None:
        start = event.start_mark.index
        self.at = event.end_mark.index
        anchored = self.anchors.get(event.anchor)
        if anchored is None:
            raise DocumentError(
                f"the alias *{event.anchor} has no anchor: write &{event.anchor} before it,"
                " or quote the value if it is a string",
                start,
            )
        node = Alias(event.anchor, anchored, start, self.at)
        if self.owner.__class__ is Sequence:
            self.owner.items.append(node)
        elif self.key is None:
            self.key = _key_of(node, self.text)
        else:
            self.put(self.key, node)

    def open(self, event: Any, kind: type[Mapping | Sequence]) -> None:
        start = event.start_mark.index
        self.at = end = event.end_mark.index
        tag, anchor, flow = event.tag, event.anchor, event.flow_style
        if tag is not None or anchor is not None:
            start = _skip_properties(self.text, start, max(end - 1, start) if flow else end)
        node = kind(start, flow=flow, tag=tag, anchor=anchor)
        if anchor is not None:
            self.name(anchor, node, event)
        owner = self.owner
        if owner is None:
            self.document.root = node
        elif owner.__class__ is Sequence:
            owner.items.append(node)
        elif self.key is None:
            self.complex_keys.append(len(self.stack))
        else:
            self.put(self.key, node)
        self.stack.append(owner)
        if len(self.stack) > MAX_DEPTH:
            raise DocumentError(f"nested more than {MAX_DEPTH} levels deep", start)
        self.owner = node

    def close(self, event: Any) -> None:
        """End the collection being filled."""
        node = self.owner
        # A block collection ends, to libyaml, at the next token, beyond the comments that follow it.
        if node.flow:
            self.at = event.end_mark.index
        node.end = self.at
        if node.__class__ is Mapping and node.merges:
            wrong = _flatten_merges(node)
            self.document.error = self.document.error or wrong
        self.owner = self.stack.pop()
        if self.complex_keys and self.complex_keys[-1] == len(self.stack):
            self.complex_keys.pop()
            self.key = _key_of(node, self.text)
            self.document.error = self.document.error or DocumentError(
                "a mapping or list cannot be a key: quote it if it is a string", node.start
            )

    def put(self, key: Scalar, node: Node) -> None:
        """Give a key its value; none waits for one any more."""
        owner = self.owner
        self.key = None
        name = key.text
        if key.tag == _MERGE or (name == "<<" and not key.style and key.tag is None):
            owner.merges.insert(0, node)  # of several `<<` in one mapping the later wins
            return
        entries = owner.entries
        if name in entries and _same_key(entries[name].key, key):
            self.document.duplicates.append((key, entries[name].key))
        entries[name] = Entry(key, node)

    def name(self, anchor: str, node: Node, event: Any) -> None:
        if anchor in self.anchors:
            raise DocumentError(
                f"the anchor &{anchor} is defined twice: loaders refuse that; rename one",
                event.start_mark.index,
            )
        self.anchors[anchor] = node

    def stopped(self, error: Any) -> DocumentError:
        """Say in our words what libyaml complains of."""
        mark = error.problem_mark or error.context_mark
        if error.context == "while scanning a simple key":
            mark = error.context_mark or mark  # the key, and not what stands where its colon is missed
        at = mark.index if mark is not None else self.at
        owner = self.owner
        if owner is not None and owner.flow and not self.text[at:].strip():
            return DocumentError(f"this {self.text[owner.start]!r} is not closed", owner.start)
        words = error.problem or "not valid YAML"
        return DocumentError(_ADVICE.get(words, words), at)


def _skip_properties(text: str, start: int, end: int) -> int:
    """Return where the value itself begins that libyaml says to begin at its anchor or tag."""
    match = re.compile(_PROPERTIES).match(text, start)
    return start if match is None else min(match.end(), end)


def _key_of(value: Node, text: str) -> Scalar:
    """Return the key that an alias or a collection in a key's place counts as."""
    if isinstance(value, Alias):
        named = value.target
        if isinstance(named, Scalar):
            return Scalar(named.text, value.start, value.end, named.style, named.tag)
    return Scalar(text[value.start : value.end], value.start, value.end, '"')


def _flatten_merges(mapping: Mapping) -> DocumentError | None:
    """Put the items of a written list in its place; what an alias names stays after it, as everywhere."""
    flat: list[Node] = []
    wrong: DocumentError | None = None
    for value in mapping.merges:
        named = target(value)
        flat.extend(value.items if isinstance(value, Sequence) else [value])
        merged = named.items if isinstance(named, Sequence) else [named]
        if not all(isinstance(target(item), Mapping) for item in merged):
            wrong = wrong or DocumentError(
                "'<<' merges a mapping or a list of mappings: name one by its alias, or quote the key",
                value.start,
            )
    mapping.merges = flat
    return wrong


def _same_key(first: Scalar, second: Scalar) -> bool:
    """Tell ``1`` from ``"1"``: two keys to a loader, though they are spelled alike."""
    if bool(first.style) == bool(second.style) and first.tag == second.tag:
        return True
    return type(resolve(first, PYYAML)) is type(resolve(second, PYYAML))
