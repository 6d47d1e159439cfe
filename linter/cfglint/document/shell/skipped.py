"""Launches that nobody follows: in parts of a script that do not parse, or handed to another program.

Nothing is judged here. A text is cut into what may be commands, and each is read on its own.
"""

from __future__ import annotations

import re

from cfglint.budget import spend
from cfglint.document.shell.expand import SCRIPT
from cfglint.document.shell.programs import program_of
from cfglint.document.shell.run import Runner
from cfglint.document.tree import STARTERS, Document
from cfglint.errors import DocumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_STEPS = 200  # of reading what may be a command
_CUT = re.compile(r"[^\n;&|()`]+")
_COMMENT = re.compile(r"(?m)(?:^|(?<=[ \t]))#[^\n]*")
_TEMPLATE = re.compile(r"\{\{[^{}\n]*\}\}|\{%[^%\n]*%\}")
_MARKS = str.maketrans(dict.fromkeys("\"'$<>{}\0", " "))
_STARTER = re.compile(r"(?<![\w.-])(?:" + "|".join(map(re.escape, STARTERS)) + r")[\d.]*(?![\w/])")
# Programs that run the rest of their words, here or elsewhere.
_HANDS_ON = re.compile(r"\s*(?:xargs|ssh|parallel|su|runuser|flock|watch|screen|tmux|pdsh|clush|gcloud)\s")
_SHELL = re.compile(r"\s*(?:[\w./]*/)?(?:ba|da|z)?sh\s")


def unparsed(text: str, runner: Runner) -> Iterator[Document]:
    """Yield a document with an error for the first launch in what does not parse, if there is one."""
    parts, done = [], 0
    for start, end in sorted(runner.broken):
        if end > done:  # whole lines, each once; the rest is blank
            begin = max(text.rfind("\n", done, start) + 1, done)
            stop = text.find("\n", end)
            stop = stop if stop >= 0 else len(text)
            parts += [" " * (begin - done), text[begin:stop]]
            done = stop
    for at, stop in _launches("".join(parts), runner):
        message = "this part of the script does not parse, so the command here was not judged"
        error = DocumentError(f"{message}; bash -n says what is wrong", at)
        yield Document(at, stop, error=error, format="shell")
        return


def unfollowed(text: str) -> bool:
    """Whether a script that parses launches something in a here-document or the like."""
    runner = Runner()
    runner.script(text)
    return next(_launches(text, runner), None) is not None


def plain(text: str) -> str:
    """Return a text that may be a command without the marks that keep it from being read."""
    text = _TEMPLATE.sub(" ", text).translate(_MARKS)
    if _HANDS_ON.match(text) is not None or _SHELL.match(text) is not None:
        found = _STARTER.search(text)
        text = text[found.start() :] if found is not None else ""
    return text


def _is_launch(text: str) -> bool:
    spend(_STEPS + len(text) // 8, SCRIPT)
    runner = Runner()
    runner.script(plain(text))
    return any(program_of(command.words) is not None for command in runner.commands)


def _launches(text: str, runner: Runner) -> Iterator[tuple[int, int]]:
    """Yield where a text holds launches outside of the commands that were met."""
    text = text.replace("\\\r\n", "   ").replace("\\\n", "  ")
    text = _COMMENT.sub(lambda comment: " " * len(comment.group()), text)
    if _STARTER.search(text) is None:
        return
    met = sorted((c.words[0].start, c.end) for c in runner.commands if c.words)
    number, after = 0, -1
    for found in _CUT.finditer(text):
        command = found.group()
        at, stop = found.end() - len(command.lstrip()), found.end()
        while number < len(met) and met[number][0] < stop:
            after = max(after, met[number][1])
            number += 1
        rest = at if _HANDS_ON.match(command) is not None else max(at, after)
        if _STARTER.search(text, rest, stop) and _is_launch(command):
            yield at, stop
