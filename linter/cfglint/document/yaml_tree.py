"""YAML text to nodes, from libyaml's events.

Events and not composed nodes: a composed alias carries its anchor's marks, and an edit there would change the
anchor. Properties (anchors, tags) lie inside an event's span; ours start behind them. Nothing is expanded.
"""

from __future__ import annotations

import re
from itertools import islice

from cfglint.document.tree import Alias, Entry, Mapping, Scalar, Sequence
from cfglint.errors import CfglintError, DocumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cfglint.document.shell.job import Job
    from cfglint.document.tree import Node

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 200
MAX_NODES = 1_000_000

_MERGE_TAGS = (None, "tag:yaml.org,2002:merge")

# What libyaml's reader refuses, and a byte order mark inside the text, on which loaders differ.
# A text, since compiling it takes 4 ms.
_UNPRINTABLE = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
# Anchors and tags, and the blanks and comments behind each.
_PROPERTIES = (
    r"(?:(?:&[A-Za-z0-9_-]*|!<[^>\s]*>|![^\s,]*)"
    "(?:[ \t\r\n\x85\u2028\u2029]|(?<=[ \t\r\n\x85\u2028\u2029])#[^\r\n\x85\u2028\u2029]*)*)+"
)

_ADVICE = {
    "mapping values are not allowed in this context": (
        "a ': ' stands where no key can be: quote the value, or mend the indentation"
    ),
    "did not find expected key": (
        "a key is expected here: compare the indentation with the lines above, and look for an unclosed quote"
    ),
    "did not find expected '-' indicator": "a list item ('- ') is expected here: compare the indentation",
    "did not find expected ',' or ']'": "a list opened with '[' is not closed: add ',' or ']'",
    "did not find expected ',' or '}'": "a mapping opened with '{' is not closed: add ',' or '}'",
    "did not find expected node content": "a value is expected here",
    "did not find expected <document start>": (
        "the text goes on after its top-level value: compare the indentation of the first key"
    ),
    "found unexpected end of stream": "a quote is opened and never closed",
    "found unexpected document indicator": "'---' or '...' stands inside a quoted text: close the quote",
    "could not find expected ':'": "a key without ':': add it, or indent the line as part of the value above",
    "block sequence entries are not allowed in this context": (
        "a list item cannot stand here: begin the list on a line of its own"
    ),
    "mapping keys are not allowed in this context": "a key cannot stand here: begin it on a line of its own",
    "found character that cannot start any token": (
        "a value cannot start with this character: quote it, and indent with blanks, not tabs"
    ),
    "found a tab character that violates indentation": "a tab is used to indent: use blanks",
    "found a tab character where an indentation space is expected": "a tab is used to indent: use blanks",
    "found unknown escape character": (
        "an unknown escape in a text in double quotes: double the backslash, or use single quotes"
    ),
    "found undefined tag handle": "a tag whose handle is not declared: quote the value if it is a text",
    "did not find expected alphabetic or numeric character": (
        "'&' and '*' start an anchor or alias: quote the value if it is a text"
    ),
}


class Parsed:
    """One document of a text. ``error`` is the first complaint; ``root`` is then what stood before it.

    A command that a file launches is a document of the form ``shell`` (``listed``: its words are items of a
    list), with what the job asks for. ``lax`` is the first thing that JSON forbids and hjson takes.
    """

    __slots__ = (
        "duplicates", "end", "error", "form", "job", "lax", "listed", "over", "root", "start",
    )  # fmt: skip

    def __init__(self, start: int) -> None:
        self.root: Node | None = None
        self.start = start
        self.end = start
        self.duplicates: list[tuple[Scalar, Scalar]] = []
        self.error: DocumentError | None = None
        self.lax: DocumentError | None = None
        self.over: tuple[Scalar, ...] = ()
        self.form = ""  # the file's own
        self.listed = False
        self.job: Job | None = None


def parse_yaml(text: str) -> list[Parsed]:
    """Return the documents of ``text``, which has no byte order mark; errors are kept in them."""
    broken = _broken_character(text) if "\ufeff" in text else None
    documents, error = _build(text if broken is None else text[: broken.offset])
    if isinstance(error, _UnreadableError):
        # libyaml reads ahead: parse again what stands before the character that it stumbled on.
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
    found = re.search(_UNPRINTABLE, text)
    if found is None:
        return None
    char = found.group()
    if char == "\x00":
        what = "a NUL character: is this UTF-16 or a binary file? Save it as UTF-8 text"
    elif char == "\ufeff":
        what = "a byte order mark (U+FEFF) inside the text: remove it"
    else:
        what = (
            f"the control character U+{ord(char):04X}: remove it, or write it as an escape in double quotes"
        )
    return DocumentError(what, found.start())


def _parser(text: str) -> Any:
    try:
        from yaml._yaml import CParser
    except ImportError:
        raise CfglintError(
            "PyYAML lacks libyaml: `pip install --force-reinstall --only-binary :all: pyyaml` installs it"
        ) from None
    return CParser(text)


def _plain_error(problem: str | None, offset: int) -> DocumentError:
    words = problem or "not valid YAML"
    return DocumentError(_ADVICE.get(words, words), offset)


def _skip_properties(text: str, start: int, end: int) -> int:
    """Return where the value itself begins that libyaml says to begin at its anchor or tag."""
    found = re.compile(_PROPERTIES).match(text, start)
    return start if found is None else min(found.end(), end)


def _key_of(value: Node, text: str) -> Scalar:
    """Return the key that an alias or a collection in a key's place counts as."""
    if isinstance(value, Alias):
        target = value.target
        if isinstance(target, Scalar):
            return Scalar(target.text, value.start, value.end, target.style, target.tag)
    return Scalar(text[value.start : value.end], value.start, value.end, '"')


def _flatten_merges(mapping: Mapping) -> DocumentError | None:
    """Put the items of a written list in its place; what an alias names stays behind it, as everywhere."""
    flat: list[Node] = []
    wrong: DocumentError | None = None
    for value in mapping.merges:
        target = value.target if isinstance(value, Alias) else value
        merged = target.items if isinstance(target, Sequence) else [target]
        flat.extend(value.items if isinstance(value, Sequence) else [value])
        for item in merged:
            if not isinstance(item.target if isinstance(item, Alias) else item, Mapping):
                wrong = wrong or DocumentError(
                    "'<<' merges a mapping or a list of mappings: name one by its alias, or quote the key",
                    value.start,
                )
    mapping.merges = flat
    return wrong


def _same_key(one: Scalar, other: Scalar) -> bool:
    """Tell ``1`` from ``"1"``: two keys to a loader, though they are spelled alike."""
    if bool(one.style) == bool(other.style) and one.tag == other.tag:
        return True
    from cfglint.document.scalars import PYYAML, resolve

    return type(resolve(one, PYYAML)) is type(resolve(other, PYYAML))


def _build(text: str) -> tuple[list[Parsed], DocumentError | None]:
    """Drive libyaml over ``text``; one flat loop, since a hostile file nests deeper than Python recurses."""
    from yaml.error import MarkedYAMLError, YAMLError
    from yaml.events import (
        AliasEvent,
        DocumentEndEvent,
        DocumentStartEvent,
        MappingEndEvent,
        MappingStartEvent,
        ScalarEvent,
        SequenceEndEvent,
        SequenceStartEvent,
        StreamEndEvent,
    )

    document = Parsed(0)
    documents = [document]
    seen_document = False
    finished = False
    anchors: dict[str, Node] = {}
    properties = "&" in text or "!" in text  # most files have none, and need no search behind them
    at = 0

    # The collection being filled: its entries or its items, the other None; both None at the top.
    entries: dict[str, Entry] | None = None
    items: list[Node] | None = None
    owner: Any = None
    key: Scalar | None = None
    stack: list[tuple[Any, Scalar | None, int]] = []
    node: Any
    # A collection in a key's place: how deep the stack stood when it began, and the mapping it is a key of.
    complex_keys: list[int] = []

    try:
        for event in islice(iter(_parser(text).get_event, None), MAX_NODES):
            kind = event.__class__
            if kind is ScalarEvent:
                tag = event.tag
                anchor = event.anchor
                start = event.start_mark.index
                at = event.end_mark.index
                if properties and (tag is not None or anchor is not None):
                    start = _skip_properties(text, start, at)
                node = Scalar(event.value, start, at, event.style, tag, anchor)
                if anchor is not None:
                    if anchor in anchors:
                        return documents, _twice(anchor, event)
                    anchors[anchor] = node
                if entries is not None and key is None:
                    key = node
                    continue
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                start = event.start_mark.index
                at = event.end_mark.index
                anchor = event.anchor
                tag = event.tag
                flow = event.flow_style
                if properties and (tag is not None or anchor is not None):
                    start = _skip_properties(text, start, max(at - 1, start) if flow else at)
                if kind is MappingStartEvent:
                    node = Mapping(start, flow=flow, tag=tag, anchor=anchor)
                else:
                    node = Sequence(start, flow=flow, tag=tag, anchor=anchor)
                if anchor is not None:
                    if anchor in anchors:
                        return documents, _twice(anchor, event)
                    anchors[anchor] = node
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                # A block collection ends, to libyaml, at the next token, beyond the comments that follow it.
                if owner.flow:
                    at = event.end_mark.index
                owner.end = at
                if kind is MappingEndEvent and owner.merges:
                    wrong = _flatten_merges(owner)
                    document.error = document.error or wrong
                node = owner
                owner, key, depth = stack.pop()
                if owner.__class__ is Mapping:
                    entries, items = owner.entries, None
                elif owner is None:
                    entries = items = None
                else:
                    entries, items = None, owner.items
                if complex_keys and complex_keys[-1] == depth:
                    complex_keys.pop()
                    key = _key_of(node, text)
                    if document.error is None:
                        document.error = DocumentError(
                            "a mapping or list stands where a key must be: quote it if it is a text",
                            node.start,
                        )
                continue
            elif kind is AliasEvent:
                start = event.start_mark.index
                at = event.end_mark.index
                target = anchors.get(event.anchor)
                if target is None:
                    return documents, DocumentError(
                        f"the alias *{event.anchor} has no anchor: write &{event.anchor} before it,"
                        " or quote the value if it is a text",
                        start,
                    )
                node = Alias(event.anchor, target, start, at)
                if entries is not None and key is None:
                    key = _key_of(node, text)
                    continue
            elif kind is DocumentStartEvent:
                anchors = {}
                if seen_document:
                    document.end = event.start_mark.index
                    document = Parsed(document.end)
                    documents.append(document)
                seen_document = True
                continue
            elif kind is DocumentEndEvent:
                continue
            else:
                finished = kind is StreamEndEvent
                continue

            # Attach the value.
            if key is not None:
                name = key.text
                if name == "<<" and not key.style and key.tag in _MERGE_TAGS:
                    # Of several `<<` in one mapping the later wins.
                    owner.merges.insert(0, node)
                else:
                    if entries is None:
                        raise AssertionError("a key outside a mapping")
                    if name in entries and _same_key(entries[name].key, key):
                        document.duplicates.append((key, entries[name].key))
                    entries[name] = Entry(key, node)
                key = None
            elif items is not None:
                items.append(node)
            elif entries is not None:
                complex_keys.append(len(stack))
            elif kind is not ScalarEvent or start != at or tag is not None or anchor is not None:
                document.root = node

            if kind is MappingStartEvent or kind is SequenceStartEvent:
                stack.append((owner, None, len(stack)))
                if len(stack) > MAX_DEPTH:
                    return documents, DocumentError(f"nested more than {MAX_DEPTH} levels deep", start)
                owner = node
                if kind is MappingStartEvent:
                    entries, items = node.entries, None
                else:
                    entries, items = None, node.items
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        stopped = mark.index if mark is not None else at
        if owner is not None and owner.flow and not text[stopped:].strip():
            return documents, DocumentError(f"this {text[owner.start]!r} is never closed", owner.start)
        return documents, _plain_error(error.problem, stopped)
    except (YAMLError, UnicodeEncodeError) as error:
        return documents, _UnreadableError(str(error).partition("\n")[0], at)
    finally:
        # What an error left open ends where reading stopped.
        for holder, _, _ in stack:
            if holder is not None:
                holder.end = at
        if owner is not None:
            owner.end = at
    if not finished:
        return documents, DocumentError(f"more than {MAX_NODES:,} nodes", at)
    return documents, None


def _twice(anchor: str, event: Any) -> DocumentError:
    return DocumentError(
        f"the anchor &{anchor} is defined twice: loaders refuse that; rename one", event.start_mark.index
    )
