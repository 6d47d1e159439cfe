"""Edits of what starts a program: a flag of its launcher's, where none says it yet."""

from __future__ import annotations

import re

from cfglint.document.shell.processes import COUNTS
from cfglint.document.shell.programs import program_of
from cfglint.text import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.shell.programs import Start
    from cfglint.document.shell.words import Word
    from cfglint.document.tree import Document

_GAP = re.compile(r"(?:[ \t]|\\\r?\n)+")
_ALONE = re.compile(r"[\w}\"][ \t]+\Z")
_MODULE = ("-m", "--module")
_FIGURES = {"processes": "total", "processes_per_node": "per_node"}
_TAKES_FLAGS = ("accelerate",)  # its flags win over its config file's keys (accelerate/commands/launch.py)


def insert_flag(document: Document, names: list[str], value: object) -> Edit | None:
    """Return the edit that gives a launcher a flag of its own (``launch.flags.NAME``)."""
    start = program_of(document.words) if not document.listed else None
    word = str(value).lower() if isinstance(value, (bool, int)) else value
    plain = isinstance(word, str) and word.isalnum()
    if start is None or start.launcher not in _TAKES_FLAGS or len(names) != 3 or not plain:
        return None
    return None if _says(start, names[2]) else _flag(document, start, f"--{_styled(start, names[2])} {word}")


def insert_number(document: Document, names: list[str], value: object) -> Edit | None:
    """Return the edit that says how many processes a launcher starts: behind its last flag.

    ``accelerate launch --config_file FILE train.py`` becomes ``… FILE --num_processes 4 train.py``. None
    where a number is there already, and where the launcher has no such flag.
    """
    start = program_of(document.words) if type(value) is int and not document.listed else None
    figure = _FIGURES.get(names[1]) if len(names) == 2 else None
    counts = COUNTS.get(start.launcher) if start is not None else None
    if start is None or figure is None or counts is None or counts.environment:
        return None
    name = getattr(counts, figure)
    if not name or _says(start, name):
        return None
    return _flag(document, start, f"--{_styled(start, name)} {value}")


def _says(start: Start, name: str) -> bool:
    """Whether a launcher's flags have one of that name."""
    return any(word.spelled.lstrip("-").partition("=")[0].replace("-", "_") == name for word in start.options)


def _flag(document: Document, start: Start, flag: str) -> Edit | None:
    """Return the edit that puts a flag behind a launcher's last one, or in front of the program."""
    text, words = document.file.text, document.words
    at = next((at for at, word in enumerate(words) if word is start.name), 0)
    while at and words[at - 1].spelled in _MODULE:
        at -= 1
    if not at:
        return None
    before, following = words[at - 1], words[at]
    whole = "=" in before.spelled or not before.spelled.startswith("-")  # no flag that waits for a value
    if _between(text, before, following) and whole:
        flags = [i for i in range(1, at) if words[i].spelled.startswith("--")]
        gap = _between(text, words[flags[-1] - 1], words[flags[-1]]) if flags else ""
        return Edit(before.end, before.end, f"{gap or ' '}{flag}")
    alone = _ALONE.search(text, 0, max(following.start, 0)) is not None  # behind `$LAUNCHER `
    return Edit(following.start, following.start, f"{flag} ") if alone else None


def _between(text: str, before: Word, following: Word) -> str:
    """Return the blanks between two words; nothing where the file has something else there."""
    gap = text[before.end : following.start] if 0 <= before.end <= following.start else ""
    return gap if _GAP.fullmatch(gap) else ""


def _styled(start: Start, name: str) -> str:
    """Return a flag's name with dashes where the launcher's other flags have them."""
    flags = [word.spelled for word in start.options if word.spelled.startswith("--")]
    dashes = any("-" in flag[2:].partition("=")[0] for flag in flags)
    lines = any("_" in flag.partition("=")[0] for flag in flags)
    return name.replace("_", "-") if dashes and not lines and start.launcher != "deepspeed" else name
