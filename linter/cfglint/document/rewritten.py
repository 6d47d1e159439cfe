"""Which program writes a config anew before a command of the same script reads it: an edit there is lost."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.tree import Document

_LONGEST = 120  # characters of a path within the call


def maker_of(document: Document, path: str) -> str:
    """Return the program that an earlier command runs, and that saves a file of this name; else nothing."""
    name = re.escape(re.split(r"[/\\]", path)[-1])
    within = rf"[^\n#]{{0,{_LONGEST}}}?(?<![\w.-]){name}[\"']"
    saves = re.compile(
        rf"\b\w*(?:save|dump|write|to_yaml|to_json)\w*\({within}|\bopen\({within}\s*,\s*(?:mode=)?[\"'][wx]"
    )
    for other in document.file.documents:
        program = other.program if other.start < document.start else None
        if program is not None and saves.search(program.file.text):
            made: str = program.file.path
            return made
    return ""
