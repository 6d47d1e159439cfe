"""Which rules the comments of a document turn off: ``# cfglint: ignore[MEM104]``."""

from __future__ import annotations

import re
from bisect import bisect_right

from cfglint.document.tree import Document, Mapping, Scalar, walk
from cfglint.document.yaml import line_end

# Their documents are commands and calls, and comments stand around them.
_AROUND = ("shell", "python", "notebook")
_MARK = re.compile(r"#[ \t]*cfglint:[ \t]*(ignore(?:-file)?)[ \t]*\[([^\[\]\r\n]*)\]")


def suppressions(document: Document) -> list[tuple[int, tuple[str, ...]]]:
    """Return ``(line, codes)`` for each ``# cfglint: ignore[…]``; line 0 is the whole file.

    A comment alone on its line counts for the next one.
    """
    text = document.file.text
    if document.format == "json" or "cfglint:" not in text:
        return []
    script = document.format in _AROUND  # its documents are commands, and comments stand around them
    spans = [] if script else _scalar_spans(document)
    first, last = (0, len(text)) if script else (document.start, document.end)
    suppressed: list[tuple[int, tuple[str, ...]]] = []
    last_line = -1  # where it begins; what is behind another mark does not stand alone
    for mark in _MARK.finditer(text, first, last):
        at = mark.start()
        line, column = document.file.lines.position(at)
        begin = at - column + 1
        # A comment is preceded by a blank, or is itself within one.
        if column > 1 and text[at - 1] not in " \t" and text.find("#", begin, at) < 0:
            continue
        around = bisect_right(spans, (at, len(text))) - 1
        if around >= 0 and at < spans[around][1]:
            continue
        codes = tuple(code.strip() for code in mark.group(2).split(",") if code.strip())
        if codes:
            alone = begin != last_line and not text[begin:at].strip()
            last_line = begin
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
