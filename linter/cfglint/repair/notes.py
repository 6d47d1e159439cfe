"""Comments that a fix leaves in a file: what it changed, and what is no longer true."""

from __future__ import annotations

from cfglint.document.tree import Scalar, walk
from cfglint.document.yaml import line_end
from cfglint.text import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.tree import Document
    from cfglint.engine.subject import Subject
    from cfglint.findings import Fix


def comments(subject: Subject, fix: Fix) -> Iterator[Edit]:
    """Yield the edits that append a comment to each edited line, and mark those that are no longer true."""
    for each in fix.stale:
        yield Edit(each.start, each.start, f"when it was {each.was}: ")
    for edit, note in zip(fix.edits, fix.notes, strict=True):
        comment = annotate(subject.document, edit, note)
        if comment is not None:
            yield comment


def annotate(document: Document, edit: Edit, note: str) -> Edit | None:
    """Return the insertion of ``# note`` at the end of the line that ``edit`` writes, where one can stand.

    It is applied together with ``edit``, and after it.
    """
    text = document.file.text
    words = " ".join(note.split())
    taken = edit.start < edit.end and not edit.new  # there is no such line any more
    unfit = document.format in ("json", "shell", "notebook") or not words or taken
    if unfit or edit.new.endswith(("\n", "\r")):
        return None
    at = line_end(text, edit.end)
    within_another = any(
        isinstance(node, Scalar)
        and node.start < at < node.end
        and not (edit.start <= node.start and node.end <= edit.end)
        for node in walk(document.root)
    )
    return None if within_another else Edit(at, at, f"  # {words}")
