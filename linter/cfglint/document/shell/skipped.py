"""Launches that nobody follows: in what does not parse, in here-documents, handed to other programs.

Nothing is judged here. A launch is looked for by its own words, wherever they stand.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from cfglint.budget import spend
from cfglint.document.candidates import STARTERS
from cfglint.document.shell.balance import is_refused, refused_from
from cfglint.document.shell.programs import VLLM_IMAGE, program_of
from cfglint.document.shell.run import Runner
from cfglint.document.shell.source import SCRIPT
from cfglint.document.shell.words import Array, Piece, Word, joined, pieces_of, word_of
from cfglint.document.tree import Document, Scalar, Sequence, walk
from cfglint.errors import DocumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Sequence as Several

    from cfglint.document.tree import File

_STEPS = 20  # of looking at what may be a launch
_MOST = 20_000  # characters of one
_WORDS = 100  # among which is its program
_COMMENT = re.compile(r"(?m)^[ \t]*#[^\n]*")
_CONTINUED = re.compile(r"\\\r?\n")
_SUBSTITUTED = re.compile(r"\$\([^()`\n]*\)")
_TEMPLATE = re.compile(r"\{\{[^{}\n]*\}\}|\{%[^%\n]*%\}")
_MARKS = str.maketrans(dict.fromkeys("\"'$<>{}\\\0", " "))
_NAME = r"(?<![\w.-])(?:" + "|".join(word.split()[0] for word in STARTERS) + r")[\d.]*(?![\w/])"
_LAUNCH = re.compile(_NAME)
# A program behind what is not known to start one: `$PY -m a.b`, `./train.py`.
_LAUNCH_OR_PROGRAM = re.compile(
    _NAME + r"|(?P<program>(?<![^\s\"'=])(?:-m\s+[a-z_]|[\w./${}-]+\.py(?![\w.])))"
)
_END = re.compile(r"[\n;&|()`]|\Z")
# Fewer than two settings and no file of them are no job of a framework.
_SETTING = r"\s(?:--?[a-zA-Z]|[+~]*[\w.]+=)"
_TOLD = re.compile(_SETTING + r"[^\0]*?" + _SETTING + r"|\S\.(?:ya?ml|json|toml)\b")
_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)(?:\[[@*]\])?\}")


class _Spans:
    """Parts of a file, to ask whether they hold a place."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(spans):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(end, self._ends[-1])
            else:
                self._starts.append(start)
                self._ends.append(end)

    def __contains__(self, place: int) -> bool:
        at = bisect_right(self._starts, place) - 1
        return at >= 0 and place < self._ends[at]


def unparsed(text: str, runner: Runner) -> Iterator[Document]:
    """Yield a document with an error for the first launch in what does not parse, if bash refuses it, too."""
    if not runner.broken or not is_refused(text):
        return
    parts, done = [], 0
    for start, end in sorted(runner.broken):
        if end > done:  # whole lines, each once; the rest is blank
            begin = max(text.rfind("\n", done, start) + 1, done)
            stop = text.find("\n", end)
            stop = stop if stop >= 0 else len(text)
            parts += [" " * (begin - done), text[begin:stop]]
            done = stop
    met = _Spans((c.words[0].start, c.end) for c in runner.commands if c.words and c.words[0].start >= 0)
    for at, _, command in _launches("".join(parts), _LAUNCH):
        if at not in met:
            message = "this part of the script does not parse, so the command here was not judged"
            error = DocumentError(f"{message}; bash -n says what is wrong", at)
            yield Document(at, at + len(command), error=error, format="shell")
            return


def never_run(text: str, documents: list[Document]) -> list[Document]:
    """Return a script's documents, with an error instead of a job for what bash refuses and never runs."""
    start = refused_from(text)
    if start is None:
        return documents
    line, mark = text.count("\n", 0, start) + 1, text[start]
    what = f"the {mark} in line {line} is never closed" if mark in "\"'`" else f"line {line} does not parse"
    message = (
        f"{what}: bash refuses the script there (bash -n), so the command here never runs, and was not judged"
    )
    for document in documents:
        if document.end >= start or not text[document.end : start].strip(" \t"):  # a word of its own
            document.root, document.error = None, DocumentError(message, start)
    return documents


def unfollowed(
    file: File, judged: Several[Document], whole: Several[Document]
) -> Iterator[tuple[int, str, bool]]:
    """Yield what may be a launch outside of a file's commands: place, text, and whether it surely is one.

    In commands that are ``judged`` none is; in others, the words up to the program are none. ``whole`` are
    the documents of a manifest.
    """
    script = file.format == "shell"
    spans: list[tuple[int, int]] = []
    for document in file.documents:
        words = document.words
        if all(document is not one for one in judged) and (start := program_of(words)) is not None:
            last = next((i for i, word in enumerate(words) if word is start.name), 0)
            words = words[: last + 1]
        spans += [(p.start, p.end) for word in words for p in word.pieces if p.start >= 0 and not p.loose]
    followed = _Spans(spans)
    variables: dict[str, str] | None = None
    for pieces in _texts(file, whole):
        places = [0]
        for piece in pieces:
            places.append(places[-1] + len(piece.text))
        for at, launcher, command in _launches("".join(piece.text for piece in pieces), _LAUNCH_OR_PROGRAM):
            number = min(bisect_right(places, at), len(pieces)) - 1
            piece = pieces[number]
            place = piece.start + (at - places[number] if piece.verbatim else 0) if piece.start >= 0 else -1
            if place in followed:
                continue
            if "$" in command and script:
                variables = _variables(file.text) if variables is None else variables
                command = _filled(command, variables)  # noqa: PLW2901
            if launcher != "python" or _TOLD.search(command):
                yield max(place, 0), command, script and launcher != "python"


def plain(text: str) -> str:
    """Return a text that may be a command without the marks that keep it from being read."""
    return _TEMPLATE.sub(" ", text).translate(_MARKS)


def _variables(text: str) -> dict[str, str]:
    """Return what a script's variables are worth at its end, as far as that is known."""
    runner = Runner()
    runner.script(text)
    return {
        name: " ".join(
            "".join(piece.text for piece in item)
            for item in (value.items if isinstance(value, Array) else [value])
        )
        for name, value in runner.variables.items()
    }


def _filled(command: str, variables: dict[str, str]) -> str:
    return _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], " "), command)


def _texts(file: File, whole: Several[Document]) -> Iterator[Several[Piece]]:
    """Yield the texts of a file in which commands may be."""
    if file.format == "shell":
        yield (Piece(file.text, 0, len(file.text)),)
        return
    for document in whole:
        for node in walk(document.root):
            if isinstance(node, Scalar) and _LAUNCH_OR_PROGRAM.search(node.text):
                yield pieces_of(file.text, node)
            elif isinstance(node, Sequence):
                words = [item for item in node.items if isinstance(item, Scalar)]
                if len(words) > 1 and any(_LAUNCH_OR_PROGRAM.search(word.text) for word in words):
                    yield joined(word_of(file.text, word) for word in words)


def _launches(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the launches in a text, from what starts one to the command's end: place, launcher, text."""
    text = _COMMENT.sub(lambda comment: " " * len(comment.group()), text)
    text = _CONTINUED.sub(lambda mark: " " * len(mark.group()), text)
    whole = _SUBSTITUTED.sub(lambda inner: "_" * len(inner.group()), text)
    end = 0
    for found in pattern.finditer(text):
        at = found.start()
        program = found.lastgroup == "program"
        if program and at < end:  # of a launch that was looked at
            continue
        source = whole if whole[at] == text[at] else text
        end = _END.search(source, at).start()  # type: ignore[union-attr] # it finds the end of the text
        command = ("python " if program else "") + source[at : min(end, at + _MOST)]
        spend(_STEPS + len(command) // 4, SCRIPT)
        words = [Word((Piece(word, -1, -1),), -1, -1) for word in plain(command).split(None, _WORDS)[:_WORDS]]
        start = program_of(words)
        if start is not None and (start.rest or VLLM_IMAGE not in start.name.spelled):  # else the image alone
            yield at, start.launcher, command
