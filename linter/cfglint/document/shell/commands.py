"""What reads manifests of all forms: keys and items of a tree, commands with their variables."""

from __future__ import annotations

import re

from cfglint.budget import spend
from cfglint.document.candidates import may_launch
from cfglint.document.shell.launch import launched
from cfglint.document.shell.processes import below, whole
from cfglint.document.shell.programs import VLLM_IMAGE
from cfglint.document.shell.run import Runner
from cfglint.document.shell.words import Piece, Pieces, Word, filled, pieces_of, unknown, value_of, word_of
from cfglint.document.tree import SCRIPTS, Document, Mapping, Node, Scalar, Sequence, effective, target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cfglint.document.job import Job
    from cfglint.document.shell.run import Scripts

    Fill = Callable[[re.Match[str], Piece], Pieces | None]

MANIFEST = "manifests"  # what reading them takes steps for
_LINES, _CHARS = 64, 1  # characters that are read in a step: of whole lines, and of what is read one by one
# What a program puts in before the manifest is used: Helm and Jinja; `${{…}}` of AzureML and GitHub.
_TEMPLATE = re.compile(r"\$?\{\{[^{}]*\}\}|\{%[^%]*%\}")


# ── trees ──────────────────────────────────────────────────────────────────────────────────────────────────
def at(node: Node | None, path: str) -> Node | None:
    """Return the node at the keys of a path, which are parted by blanks."""
    return below(node, *path.split())


def first(node: Node | None, paths: tuple[str, ...]) -> Node | None:
    """Return the node at the first path that leads to one."""
    return next((held for path in paths if (held := at(node, path)) is not None), None)


def items(node: Node | None) -> list[Node]:
    """Return the items of a sequence."""
    node = target(node)
    return [target(item) for item in node.items] if isinstance(node, Sequence) else []


def scalars(node: Node | None) -> list[Scalar]:
    """Return the items of a sequence that are scalars."""
    return [item for item in items(node) if isinstance(item, Scalar)]


def entries(node: Node | None) -> list[tuple[Scalar, Node | None]]:
    """Return the keys and values of a mapping."""
    node = target(node)
    return [(e.key, target(e.value)) for e in effective(node).values()] if isinstance(node, Mapping) else []


def say(job: Job, figure: str, node: Node | None) -> int | None:
    """Set a figure of a job to the number that is at a node, if one does."""
    value = whole(node)
    if value is not None and node is not None:
        job.say(figure, value, node.start, node.end)
    return value


# ── commands ───────────────────────────────────────────────────────────────────────────────────────────────
def run_script(
    text: str,
    script: Pieces,
    job: Job | None,
    variables: dict[str, Pieces],
    scripts: Scripts | None = None,
) -> list[Document]:
    """Return what a script launches that is in a manifest, in pieces."""
    said = "".join(piece.text for piece in script)
    if not may_launch(said) and (scripts is None or not any(suffix in said for suffix in SCRIPTS)):
        return []
    runner = Runner(variables, scripts)
    runner.pieces(script)
    documents = launched(text, runner, job)
    if runner.broken:
        from cfglint.document.shell.skipped import unparsed  # most scripts parse

        documents += unparsed(text, runner)
    return documents


def run_words(text: str, words: list[Word], job: Job | None, variables: dict[str, Pieces]) -> list[Document]:
    """Return what a command launches that is there as a list."""
    if not may_launch(" ".join(word.spelled for word in words)):
        return []
    runner = Runner()
    return launched(text, runner, job, listed=runner.argv(words, variables))


def script_at(text: str, node: Node | None, fill: Fill | None = None) -> Pieces:
    """Return a script that is a text, or a list of lines."""
    lines = [node] if isinstance(node, Scalar) else scalars(node)
    pieces: list[Piece] = []
    for line in lines:
        _pay(line)
        pieces += [*pieces_of(text, line), Piece("\n", -1, -1)]
    return untemplated(tuple(pieces), fill)


def words_at(text: str, node: Node | None, *paths: str) -> list[Word]:
    """Return the words of the lists at some paths."""
    words = []
    for item in (item for path in paths for item in scalars(at(node, path))):
        _pay(item)
        words.append(Word(untemplated(word_of(text, item).pieces), item.start, item.end))
    return words


def untemplated(pieces: Pieces, fill: Fill | None = None) -> Pieces:
    """Return pieces in which what a template puts in is unknown, or what ``fill`` says."""
    if not any("{{" in piece.text or "{%" in piece.text for piece in pieces):
        return pieces

    def hide(match: re.Match[str], piece: Piece) -> Pieces:
        known = fill(match, piece) if fill is not None else None
        return known if known is not None else (unknown("what a template puts in"),)

    return filled(pieces, _TEMPLATE, hide)


def served(text: str, container: Node | None) -> list[Word]:
    """Return an image that is a command by itself: the server of vLLM."""
    image = below(container, "image")
    return [word_of(text, image)] if isinstance(image, Scalar) and VLLM_IMAGE in image.text else []


# ── environments ───────────────────────────────────────────────────────────────────────────────────────────
def environment(text: str, node: Node | None) -> dict[str, Pieces]:
    """Return the variables of any form: ``NAME: value``, ``- NAME=value``, ``- {name: …, value: …}``."""
    found = {key.text: _value(text, inner, key.text) for key, inner in entries(node)}
    for item in items(node):
        if isinstance(item, Scalar):
            name, equals, _ = item.text.partition("=")
            given = _value(text, item, name)
            if name:
                found[name] = Word(given, 0, 0).from_(len(name) + 1).pieces if equals else (unknown(name),)
            continue
        named = below(item, "name") or below(item, "key")
        if isinstance(named, Scalar):
            found[named.text] = _value(text, below(item, "value"), named.text)
        elif len(entries(item)) == 1:  # - NAME: value
            found |= environment(text, item)
    return {name: untemplated(pieces) for name, pieces in found.items()}


def _value(text: str, node: Node | None, name: str) -> Pieces:
    _pay(node)
    return value_of(text, node, name)


def _pay(node: Node | None) -> None:
    """Count the steps of reading a text, which aliases may repeat."""
    if isinstance(node, Scalar):
        spend(4 + len(node.text) // (_LINES if node.style == "|" else _CHARS), MANIFEST)
