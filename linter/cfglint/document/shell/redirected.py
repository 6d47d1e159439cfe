"""The words of a command that stand behind a redirection, which the grammar hangs below that.

``prog > log --lr 1`` has the flags of ``prog --lr 1 > log``. What a person puts in, ``--data <folder>``,
is a redirection to the shell, and a word to the reader.
"""

from __future__ import annotations

from cfglint.document.shell.words import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from cfglint.document.shell.expand import Expander
    from cfglint.document.shell.source import Source

REDIRECTS = ("comment", "herestring_redirect", "file_redirect", "heredoc_redirect")
_FILE, _SEVERAL = "file_redirect", ("list", "pipeline")  # whose last command has the redirection
_BREAK = b"\n"


def words_behind(command: Any, source: Source, expander: Expander) -> Iterator[Word]:
    """Yield the words behind the redirections of a command."""
    for node in _behind(command, source):
        if isinstance(node, tuple):
            pieces = tuple(source.slice(*node))
            yield Word(pieces, pieces[0].start, pieces[-1].end)
        else:
            yield from expander.words(node)


def last_of(command: Any, source: Source) -> Any:
    """Return where a command ends: at its last word, which may stand behind a redirection."""
    words = [node for node in _behind(command, source) if not isinstance(node, tuple)]
    return words[-1] if words else command


def _behind(command: Any, source: Source) -> Iterator[Any]:
    """Yield the nodes of words behind redirections; of what is in angles, the first and the last byte."""
    around = command.parent
    while around is not None and around.type in _SEVERAL and around.end_byte == command.end_byte:
        around = around.parent
    if around is None or around.type != "redirected_statement":
        return
    nodes = [child for child in around.named_children if child.type == _FILE]
    opened = False
    for node, following in zip(nodes, [*nodes[1:], None], strict=False):
        given = node.children_by_field_name("destination")
        closed, opened = opened, following is not None and _are_angles(node, following)
        if opened and following is not None:
            yield node.start_byte, following.start_byte + 1
        elif closed and given and _BREAK in _apart(source, node.start_byte + 1, given[0].start_byte):
            return  # nothing is behind it: the grammar goes on with the next line
        else:
            yield from given if closed else given[1:]


def _are_angles(opened: Any, closed: Any) -> bool:
    """Whether two redirections are the angles around some words."""
    beside = opened.end_byte == closed.start_byte
    return bool(beside and opened.children[0].type == "<" and closed.children[0].type == ">")


def _apart(source: Source, start: int, end: int) -> bytes:
    """Return what sets two words apart, but for lines that go on."""
    return source.data[start:end].replace(b"\\\n", b"")
