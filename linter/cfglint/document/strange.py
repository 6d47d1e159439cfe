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
# What is trained, and on what: without it, a program takes its defaults, which makes it another job.
_DATA = re.compile(
    r"(?:.*_)?(?:data|dataset|datasets|corpus|mixer)(?:_.*)?"
    r"|(?:train|eval|test|valid(?:ation)?|input)_(?:file|path|dir)s?"
)
_MODEL = re.compile(
    r"(?:.*_)?(?:model|checkpoint)(?:_name)?(?:_or)?(?:_path|_dir)?|(?:.*_)?model_(?:name|revision)"
)
_NAMED = re.compile(r"(?:.*_)?(?:name|path|file|files|list|mixer|data|dataset|datasets|dir|model)")
_FIRST = re.compile(r".*_(?:name|path|file|list)")
_ASIDE = re.compile(
    r"(?:.*_)?(?:cache|output|save|local|config|hf|push|hub|reward|eval|log|transform)(?:_.*)?"
)
_MOST = 3  # other flags that are named
_LEAST = 8  # flags, by which a command is known to be its program's
_ALIKE = 0.85
_KNOWN = 4  # of so many flags, one may be strange


class Strange(Value):
    """A flag that a ``program`` does not take, where it stands, and the one that was ``meant``, if any.

    ``job`` says what the job would be without it, where it names the data or the model.
    """

    name: str
    program: str
    meant: str
    start: int
    end: int
    job: str = ""


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
        Strange(
            name,
            program,
            (meant := _meant(name, sure - given)),
            word.start,
            word.start + 2 + len(name),
            "" if meant else _job(name, sure, given),
        )
        for name, word in flags
        if not _is_taken(name, taken)
    ]
    return strange if len(strange) * _KNOWN <= len(flags) else []


def _meant(name: str, flags: frozenset[str]) -> str:
    """Return the flag that is spelled like another, or is called so without a word of it: empty for none."""
    words = set(name.split("_"))
    shorter = [flag for flag in sorted(flags) if set(flag.split("_")) < words]
    near = nearest(name, sorted(flags), most=1, cutoff=_ALIKE)
    tails = [flag for flag in shorter if name.endswith(f"_{flag}")]
    return next(iter(near or sorted(tails or shorter, key=len, reverse=True)), "")


def _job(name: str, flags: frozenset[str], given: set[str]) -> str:
    """Say what becomes of the job without a flag that names its data or its model; nothing of others."""
    subjects = ((_DATA, "what it trains on"), (_MODEL, "a model"))
    kind, what = next(((kind, what) for kind, what in subjects if kind.fullmatch(name)), (None, ""))
    if kind is None:
        return ""
    others = [flag for flag in sorted(flags) if kind.fullmatch(flag) and _NAMED.fullmatch(flag)]
    others = [flag for flag in others if not _ASIDE.fullmatch(flag)]
    said = not given.isdisjoint(others)
    words = set(name.split("_"))
    ranks = {flag: (-len(words & set(flag.split("_"))), _FIRST.fullmatch(flag) is None) for flag in others}
    alike = sorted(others, key=lambda flag: ranks[flag])[:_MOST]
    named = " or ".join(f"--{flag}" for flag in sorted(alike))
    if said or not named:
        return f"it names {what}: without it, that may be another one"
    return f"it names {what}: without it, the program takes its own default. It has {named} for that"


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
