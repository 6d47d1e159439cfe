"""Sections of a document that are documents themselves, and the comments that turn rules off in it."""

from __future__ import annotations

import re
from bisect import bisect_right

from cfglint.document.tree import Alias, Document, Mapping, Scalar, target, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.tree import File, Node

BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # the line breaks of YAML
_MARK = re.compile(r"#[ \t]*cfglint:[ \t]*(ignore(?:-file)?)[ \t]*\[([^\]\r\n]*)\]")


def again_in(document: Document, file: File) -> Document | None:
    """Return a document in an edited version of its file; None where it cannot be found in it."""
    if len(file.documents) != len(document.file.documents):
        return None
    edited = file.documents[document.index]
    edited.taken_by(document.loader)
    if edited.error is not None:
        return None
    if document.key is None:
        return edited
    return next((part for part in sections(edited) if part.key.text == document.key.text), None)  # type: ignore[union-attr]


def owns(document: Document, start: int, end: int) -> bool:
    """Whether what stands there is this document's alone, and no other section's as well."""
    return document.key is None or (
        document.start <= start
        and end <= document.end
        and not any(first <= start and end <= last for first, last in document.lent)
    )


def suppressions(document: Document) -> list[tuple[int, tuple[str, ...]]]:
    """Return ``(line, codes)`` for each ``# cfglint: ignore[…]``; line 0 is the whole file.

    A comment alone on its line counts for the next one.
    """
    text = document.file.text
    if document.format == "json" or "cfglint:" not in text:
        return []
    script = document.format == "shell"  # its documents are commands, and comments stand around them
    spans = [] if script else _scalar_spans(document)
    first, last = (0, len(text)) if script else (document.start, document.end)
    suppressed: list[tuple[int, tuple[str, ...]]] = []
    for mark in _MARK.finditer(text, first, last):
        at = mark.start()
        line, column = document.file.lines.position(at)
        before = text[at - column + 1 : at]
        # A comment is preceded by a blank, or is itself within one.
        if before and not before.endswith((" ", "\t")) and "#" not in before:
            continue
        around = bisect_right(spans, (at, len(text))) - 1
        if around >= 0 and at < spans[around][1]:
            continue
        codes = tuple(code.strip() for code in mark.group(2).split(",") if code.strip())
        if codes:
            alone = not before.strip()
            suppressed.append((0 if mark.group(1) == "ignore-file" else line + alone, codes))
    return suppressed


def _scalar_spans(document: Document) -> list[tuple[int, int]]:
    """Return the spans in which ``#`` starts no comment; a block scalar's header line may have one."""
    text = document.file.text
    spans: list[tuple[int, int]] = []
    for node in walk(document.root):
        if isinstance(node, Mapping):
            spans.extend((e.key.start, e.key.end) for e in node.entries.values())
        elif isinstance(node, Scalar) and node.end > node.start:
            start = line_end(text, node.start) if node.style in ("|", ">") else node.start
            spans.append((start, node.end))
    return sorted(spans)


def sections(document: Document) -> list[Document]:
    """Return the mappings at the top as documents; none where something else stands there, too."""
    root = document.root
    if not isinstance(root, Mapping) or root.merges:
        return []
    nodes = [entry.value for entry in root.entries.values()]
    if not all(isinstance(target(node), Mapping) for node in nodes):
        return []
    parts = [_section(document, entry.key, entry.value) for entry in root.entries.values()]
    reads = [{(n.target.start, n.target.end): 0 for n in walk(s) if isinstance(n, Alias)} for s in nodes]
    for part in parts:  # what others read of it, through an alias or a merge
        lent = [
            span for reader, spans in zip(parts, reads, strict=True) if reader is not part for span in spans
        ]
        part.lent = tuple(dict.fromkeys(lent))
    return parts


def _section(document: Document, key: Scalar, node: Node) -> Document:
    part = Document(
        node.start, node.end, target(node), format=document.file.format, index=document.index, key=key
    )
    part.file, part.whole = document.file, document
    part.duplicates = [pair for pair in document.duplicates if node.start <= pair[0].start < node.end]
    last = key  # of a name that stands twice, the later section is the one that counts
    for later, first in reversed(document.duplicates):
        if later is last:
            part.duplicates.append((later, first))
            last = first
    return part


def line_end(text: str, at: int) -> int:
    """Return where the line around an offset ends, to YAML."""
    match = BREAK.search(text, at)
    return len(text) if match is None else match.start()
