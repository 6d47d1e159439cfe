"""The flags of a command that its program does not take, and at which it stops before it does anything.

Told where the program and all that it imports from its project are here, and its parser takes nothing else.
Of a command that submits another one (``submit.py … -- python train.py …``), the last program's are judged.
"""

from __future__ import annotations

import re

from cfglint.document.follow import modules_of
from cfglint.document.python.declared import all_taken
from cfglint.errors import nearest
from cfglint.record import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.reading import Library
    from cfglint.document.shell.words import Word
    from cfglint.document.tree import Document, File

_FLAG = re.compile(r"--([A-Za-z][\w.-]*)")
_ENDS = re.compile(r"[\\|;&]")
_LEAST = 8  # flags, by which a command is known to be its program's
_ALIKE = 0.85
_KNOWN = 4  # of so many flags, one may be strange


class Strange(Value):
    """A flag that a ``program`` does not take, where it stands, and the one that was ``meant``, if any."""

    name: str
    program: str
    meant: str
    start: int
    end: int


def strange_flags(document: Document, library: Library) -> list[Strange]:
    """Return the flags of a command that its program does not take."""
    words = document.words
    at = max((i for i, word in enumerate(words) if _is_program(word)), default=-1)
    file = library.find(document.file.path, words[at].spelled) if at >= 0 else None
    if file is None or file.format != "program" or document.listed or document.elsewhere:
        return []
    flags = list(_flags(words[at + 1 :]))
    known = _taken(file, library) if len(flags) >= _LEAST else None
    if known is None:
        return []
    taken, sure = known
    given = {name for name, _ in flags}
    program = words[at].spelled.rpartition("/")[2]
    strange = [
        Strange(name, program, _meant(name, sure - given), word.start, word.start + 2 + len(name))
        for name, word in flags
        if not _is_taken(name, taken)
    ]
    return strange if len(strange) * _KNOWN <= len(flags) else []


def _meant(name: str, flags: frozenset[str]) -> str:
    """Return the flag that is spelled like another, or is called so without a word of it: empty for none."""
    words = set(name.split("_"))
    shorter = [flag for flag in sorted(flags) if set(flag.split("_")) < words]
    near = nearest(name, sorted(flags), most=1, cutoff=_ALIKE)
    return next(iter(near or sorted(shorter, key=len, reverse=True)), "")


def _is_program(word: Word) -> bool:
    return word.text is not None and word.text.endswith(".py") and not word.text.startswith("-")


def _flags(words: list[Word]) -> Iterator[tuple[str, Word]]:
    for word in words:
        if _ENDS.match(word.spelled):
            return
        match = _FLAG.match(word.spelled)
        if match is not None and word.start >= 0:
            yield match[1].replace("-", "_"), word


def _taken(file: File, library: Library) -> tuple[frozenset[str], frozenset[str]] | None:
    key = f"{file.path}:taken"
    if key not in library.programs:
        library.programs[key] = all_taken(file, modules_of(library).imported)
    taken: tuple[frozenset[str], frozenset[str]] | None = library.programs[key]
    return taken


def _is_taken(name: str, taken: frozenset[str]) -> bool:
    """Whether a flag is taken: as it is, by its beginning, or as HfArgumentParser's `--no_x`."""
    return name in taken or name.removeprefix("no_") in taken or any(each.startswith(name) for each in taken)
