"""The flags of a command that its program does not take, and at which it stops before it does anything.

Told where the program and all that it imports from its project are here, and its parser takes nothing else.
Of a command that submits another one (``submit.py … -- python train.py …``), the last program's are judged.
"""

from __future__ import annotations

import re
from itertools import zip_longest

from cfglint.document.follow import modules_of
from cfglint.document.python.declared import all_taken, one_parser
from cfglint.document.python.vain import vain_flags
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
_VARIABLE = re.compile(r"""(?:[ \t]|\\\r?\n)*["']?[$`]""")  # behind a flag, which may be empty
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
_SPELLINGS = {"number": "num"}
_WORDS = 4  # of a flag that another one has, too, beside more of its own
_SHARE, _COMMON = 0.6, 3  # of a flag's words, in one that may have taken its place
_TRUTHS = ("true", "false")


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
    taken, sure, switches = known
    if all(_is_taken(name, taken) for name, _, _ in flags):
        return []
    sure -= _vain(file, library, sure)
    free = sure - {name for name, _, _ in flags}
    program = words[at].spelled.rpartition("/")[2]
    strange = []
    for name, word, value in flags:
        if _is_taken(name, taken):
            continue
        alike = free & switches if value is None or value.lower() in _TRUTHS else free - switches
        meant = _meant(name, alike)
        either = [meant, *_tails(name, alike - {meant})] if meant else []
        if len(either) > 1:  # --micro_batch_size: --microbatch_size, or --batch_size?
            meant = ""
        switch = value is None and not _VARIABLE.match(
            document.file.text, word.end
        )  # and so it names nothing
        job = "" if either or switch else _job(name, sure, sure - free)
        moved = either or _moved(name, alike)
        if len(moved) == 1 and not job:
            meant = moved[0]
        elif moved and not job:
            job = f"{' or '.join(f'--{flag}' for flag in moved[:_MOST])} may have taken its place"
        strange.append(Strange(name, program, meant, word.start, word.start + 2 + len(name), job))
    return strange if len(strange) * _KNOWN <= len(flags) else []


def _parts(name: str) -> set[str]:
    return {_SPELLINGS.get(word, word) for word in name.split("_")}


def _meant(name: str, flags: frozenset[str]) -> str:
    """Return the flag that is spelled like another, or has a word less, or all its words: empty for none."""
    words = _parts(name)
    shorter = [flag for flag in sorted(flags) if _parts(flag) < words]
    near = nearest(name, sorted(flags), most=1, cutoff=_ALIKE)
    tails = _tails(name, flags)
    longer = [flag for flag in sorted(flags) if len(words) >= _WORDS and words <= _parts(flag)]
    among = near or sorted(tails or shorter, key=len, reverse=True) or longer[: len(longer) == 1]
    return next(iter(among), "")


def _tails(name: str, flags: frozenset[str]) -> list[str]:
    return [flag for flag in sorted(flags) if name.endswith(f"_{flag}")]


def _moved(name: str, flags: frozenset[str]) -> list[str]:
    """Return the flags that have most words of another: one of them may have taken its place."""
    words = _parts(name)
    if "no" in words:  # what is off by now needs no flag
        return []
    common = {flag: len(words & _parts(flag)) for flag in sorted(flags)}
    most = max(common.values(), default=0)
    return [flag for flag, n in common.items() if n == most >= max(_COMMON, _SHARE * len(words))]


def _job(name: str, flags: frozenset[str], given: frozenset[str]) -> str:
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


def _flags(words: list[Word]) -> Iterator[tuple[str, Word, str | None]]:
    """Yield flags with the word behind each, None for a flag that stands alone."""
    for word, behind in zip_longest(words, words[1:]):
        if _ENDS.match(word.spelled):
            return
        match = _FLAG.match(word.spelled)
        if match is None or word.start < 0:
            continue
        rest = word.spelled[match.end() :]
        alone = behind is None or behind.spelled.startswith("--") or _ENDS.match(behind.spelled)
        yield match[1].replace("-", "_"), word, rest[1:] if rest else None if alone else behind.spelled


def _taken(file: File, library: Library) -> tuple[frozenset[str], frozenset[str], frozenset[str]] | None:
    key = f"{file.path}:taken"
    if key not in library.programs:
        library.programs[key] = one_parser(file.text) or all_taken(modules_of(library).files(file))
    taken: tuple[frozenset[str], frozenset[str], frozenset[str]] | None = library.programs[key]
    return taken


def _vain(file: File, library: Library, flags: frozenset[str]) -> frozenset[str]:
    """Return the flags that are called after data or a model, and name none."""
    key = f"{file.path}:vain"
    if key not in library.programs:
        among = frozenset(flag for flag in flags if _DATA.fullmatch(flag) or _MODEL.fullmatch(flag))
        library.programs[key] = vain_flags(modules_of(library).files(file), among)
    vain: frozenset[str] = library.programs[key]
    return vain


def _is_taken(name: str, taken: frozenset[str]) -> bool:
    """Whether a flag is taken: as it is, by its beginning, or as HfArgumentParser's `--no_x`."""
    return name in taken or name.removeprefix("no_") in taken or any(each.startswith(name) for each in taken)
