"""What loads, after a training, what it saved as a whole model: adapters alone are none.

Transformers takes adapters for a model where PEFT is there (integrations/peft.py); vLLM
and others do not.
"""

from __future__ import annotations

import re

from cfglint.lang.values import equal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cfglint.document.shell.words import Command, Word
    from cfglint.document.tree import Document
    from cfglint.repair.tracks import Option
    from cfglint.repair.write import Writer

_RANK, _WHOLE = "lora_rank", "adapters.whole"
# Where a training saves, and what takes a model, by the ends of their names.
_SAVES = re.compile(
    r"(?:\A|[._-])(?:out(?:put)?[_-](?:dir|path)|save[_-](?:path|dir)|default[_-]local[_-]dir)\Z"
)
_KEYS = (
    ("output_dir",),
    ("save_path",),
    ("save_dir",),
    ("training_args", "output_dir"),
    ("ckpt", "output_dir"),
)
_LOADS = re.compile(r"model|ckpt|checkpoint|pretrain|policy", re.IGNORECASE)
_OTHERS = re.compile(r"adapter|lora|peft|resume|out|save|result|log|tokenizer", re.IGNORECASE)
_PATHS = re.compile(r"name[_-]or[_-]path\Z", re.IGNORECASE)
_FLAG = re.compile(r"(?:-{1,2}|\+{1,2})?([A-Za-z][\w./-]*)(?:=(.*))?\Z", re.DOTALL)
# vllm serve MODEL; python eval.py MODEL
_SERVES = re.compile(
    r"(?i)(?:serve|chat)\Z|(?:\A|.*/)[\w.-]*(?:eval|infer|generat|predict|vllm|serv|bench|score|test)[\w.-]*\.(?:py|sh)\Z"
)
_TELLS = (
    "echo",
    "printf",
    "ls",
    "mkdir",
    "cp",
    "mv",
    "rm",
    "rsync",
    "tar",
    "cat",
    "find",
    "test",
    "[",
    "cd",
    "sed",
)
_SET = re.compile(
    r"""^[ \t]*(?:(?:export|local|readonly)[ \t]+)?([A-Za-z_]\w*)="""
    r"""("[^"\n]*"|'[^'\n]*'|\$\([^\n]*\)|[^\s;&|]*)""",
    re.MULTILINE,
)
_READ = re.compile(r"\$(?:\{([A-Za-z_]\w*)(?::?-[^}]*)?\}|([A-Za-z_]\w*))")
_ENGINE = re.compile(
    r"^[^#\n]*\bLLM\(\s*(?:model\s*=\s*)?(?:str\()?[\w.]*(?:output|save)_(?:dir|path)\s*[,)]", re.MULTILINE
)  # from vllm import LLM
_LONGEST, _LONGEST_WORD = 2_000, 200  # characters of a value that is filled in, of a program's path
_SHORTEST = 3  # letters of a folder's name that is looked for


def for_adapters(option: Option, writer: Writer) -> None:
    """Say of an option that has adapters trained which later command loads what is saved as a model."""
    rank, values = option.facts.get(_RANK), writer.origins.values
    new = isinstance(rank, int) and rank != 0 and equal(values[_RANK], 0) is True
    if not new or values[_WHOLE] is True:
        return
    document = writer.subject.document
    said = [writer.subject.view.get(key) for key in _KEYS]
    told = {folder for folder in said if isinstance(folder, str)}
    loaded = whole_model_behind(document, told) or whole_model_within(document)
    if loaded:
        option.effects.append(f"({loaded}, then needs base model and adapter, or a merge before it)")


def whole_model_behind(document: Document, told: Iterable[str] = ()) -> str:
    """Return which later command of a script loads the folder that one saves to; nothing if none does.

    ``told`` are folders that its config names.
    """
    text, (commands, first) = document.file.text, document.behind
    saved = {folder.removeprefix("./").rstrip("/") for folder in told}
    for name, word in _named(document.words):
        if _SAVES.search(name):
            saved |= {each.removeprefix("./").rstrip("/") for each in _spellings(text, word)}
    saved = {each for each in saved if len(each) >= _SHORTEST}
    for command in commands[first:] if saved else ():
        if command.words and command.words[0].spelled not in _TELLS and _loads(text, command, saved):
            at = command.words[0].start
            line = f"line {text.count(chr(10), 0, at) + 1}" if at >= 0 else "a command of another script"
            return f"{line}, {_program(command)}"
    return ""


def whole_model_within(document: Document) -> str:
    """Return where a program hands what it saved to vLLM, which takes no adapters for a model."""
    file = document.program.file if document.program is not None else document.file
    found = _ENGINE.search(file.text) if file.path.endswith(".py") else None
    return f"line {file.text.count(chr(10), 0, found.start()) + 1} of the program, LLM" if found else ""


def _loads(text: str, command: Command, saved: set[str]) -> bool:
    """Whether a command takes one of some folders, or what is in it, for a model."""
    folder = "|".join(map(re.escape, saved))
    inside = re.compile(rf"(?:\A|[\s=,:'\"(])(?:\./)?(?:{folder})/*(?:\Z|[\s/,'\")])")
    for name, word in _named(command.words):
        if (_LOADS.search(name) and (_PATHS.search(name) or not _OTHERS.search(name))) and any(
            inside.search(each) for each in _spellings(text, word)
        ):
            return True
    return False


def _named(words: list[Word]) -> Iterator[tuple[str, Word]]:
    """Yield the names of flags and overrides, and the words that are their values."""
    flag = ""
    for word in words:
        found = _FLAG.match(word.spelled)
        if found is not None and found[2] is not None:
            yield found[1], word.from_(found.start(2))
            flag = ""
        elif found is not None and word.spelled.startswith("-"):
            flag = found[1]
        elif flag:
            yield flag, word
            flag = ""
        else:
            flag = "model" if _SERVES.match(word.spelled[-_LONGEST_WORD:]) else ""


def _spellings(text: str, word: Word) -> Iterator[str]:
    """Yield what a word may be: its text, and what the script writes for it with its variables filled in."""
    if word.text is not None:
        yield word.text
    if 0 <= word.start < word.end <= len(text):
        written = text[word.start : word.end]
        known = "".join(piece.text for piece in word.pieces)
        value = written.partition("=")[2] if _FLAG.match(written) and "=" in written else written
        yield _filled(text, value or known, word.start)


def _filled(text: str, value: str, before: int) -> str:
    """Return a value with the script's variables filled in as they are set last before a place."""
    known: dict[str, str] = {}

    def fill(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return known.get(name, f"${{{name}}}")

    def whole(written: str) -> str:
        plain = written.replace('"', "").replace("'", "")
        return _READ.sub(fill, plain)[:_LONGEST] if len(plain) <= _LONGEST else plain

    for found in _SET.finditer(text, 0, before) if "$" in value else ():
        known[found[1]] = whole(found[2])
    return whole(value)


def _program(command: Command) -> str:
    """Return what a command runs: its script, or its first two words."""
    spelled = [word.spelled for word in command.words]
    script = next((each for each in spelled if each.endswith((".py", ".sh"))), "")
    return script.rpartition("/")[2] if script else " ".join(spelled[:2])
