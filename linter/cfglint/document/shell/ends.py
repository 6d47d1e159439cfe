"""Where a command ends before lines that are meant to be part of it."""

from __future__ import annotations

import re
from itertools import pairwise

from cfglint.record import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.tree import Document
    from cfglint.text import Edit

# Behind a command: what ends it in the place of a line that continues it, and then a line of flags.
_LOST = re.compile(
    r"[\"']?[ \t]*(?:\\\n[ \t]*(?P<comment>#[^\n]*)|(?P<blank>\\[ \t]+)(?P<behind>#[^\n]*)?"
    r"|(?P<empty>\\)\n[ \t]*)\n"
    r"(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*(?P<first>--?[A-Za-z][\w.-]*|[+~]{0,2}\w+\.[\w.]+(?==))"
)
# The lines of a command, and comments between them.
_MEANT = re.compile(r"(?:[^\n]*\\[ \t]*\n|[ \t]*(?:#[^\n]*)?\n)*")
_ENDS = {
    "comment": "this comment",
    "empty": "the empty line behind this backslash",
    "blank": "the blank behind the backslash",
}
_SPARE = re.compile(r"(\\)[ \t]+(?=\n|\Z)")  # behind a command's last word
_AS_ARGUMENT = "a blank behind a backslash"
_COMMENT = re.compile(r"(?m)^[ \t]*#")
_RETURN = re.compile(r"[\"']?[ \t]*(\\\r)\n[ \t]*")
_BY_RETURN = "the carriage return behind the backslash"
_FARTHEST = 200  # characters between two words of a command


_KEPT = re.compile(r"\\(?P<behind>[ \t]+(?:#[^\n]*)?)?\Z")  # at the end of a line: what continues it
_NOTE = re.compile(r"[ \t]*(?:#[^\n]*)?\Z")
_WORD = re.compile(r"[ \t]*(?:--?[A-Za-z]|[+~]{0,2}\w+\.[\w.]+=)")


class Lost(Value):
    """What ends a command early, where, and how to mend it; ``first`` is the first word that is lost."""

    note: str
    start: int
    end: int
    first: str
    cure: str


def ends_early(document: Document) -> Lost | None:
    """Return what ends a command before lines that are meant to be part of it."""
    if not document.words:
        return None
    return _by_return(document) or _by_line(document)


def _by_return(document: Document) -> Lost | None:
    """Return the first carriage return that a backslash stands before, and not before the end of its line."""
    words = pairwise(document.words) if document.file.format == "shell" else ()
    for word, after in words:
        if not 0 < word.end < after.start < word.end + _FARTHEST:
            continue
        found = _RETURN.fullmatch(document.file.text, word.end, after.start)
        if found is not None:
            first = (after.text or after.spelled).partition("=")[0]
            cure = "The file has Windows line ends: convert it, as dos2unix does"
            return Lost(_BY_RETURN, *found.span(1), first, cure)
    return None


def _by_line(document: Document) -> Lost | None:
    last = document.words[-1]  # a blank behind a backslash is a word, too
    at = last.start if (last.text or "").isspace() else last.end
    lost = _LOST.match(document.file.text, at) if at > 0 else None
    if lost is None:
        spare = _SPARE.match(document.file.text, at) if at == last.start > 0 else None
        return None if spare is None else Lost(_AS_ARGUMENT, *spare.span(1), "", "Take out the backslash")
    rest = _MEANT.match(document.file.text, lost.start())
    cure = "Take it out"
    if lost["behind"]:
        cure = "Take out the blank and the comment"
    elif lost["comment"] and rest is not None and len(_COMMENT.findall(rest[0])) > 1:
        cure = "Take out the comments between its lines"
    what = next(name for name in ("comment", "empty", "blank") if lost[name])
    note = _ENDS[what]
    return Lost(note, *lost.span(what), lost["first"], cure)


def rejoined(document: Document) -> tuple[Edit, ...]:
    """Return the edits that join the lines of a command which ends early; none where it is not plain how.

    Comments between them go, as do blanks behind a backslash, and the carriage returns of the whole file.
    """
    from cfglint.text import Edit

    lost = ends_early(document)
    if lost is None:
        return ()
    text = document.file.text
    if lost.note == _AS_ARGUMENT:
        behind = len(text[lost.end :].partition("\n")[0])
        return (Edit(len(text[: lost.start].rstrip(" \t")), lost.end + behind, ""),)
    if lost.note == _BY_RETURN:
        return tuple(Edit(at.start(), at.start() + 1, "") for at in re.finditer(r"\r\n", text))
    edits: list[Edit] = []
    held: list[Edit] = []
    at = text.rfind("\n", 0, lost.start) + 1
    while at < len(text):
        end = text.find("\n", at)
        line = text[at : len(text) if end < 0 else end]
        if _NOTE.match(line) and end > 0:
            held.append(Edit(at, end + 1, ""))
        else:
            if held and not _WORD.match(line):  # another command: the comments are above that
                break
            edits += held
            held = []
            kept = _KEPT.search(line)
            if kept is None:
                break
            if kept["behind"]:
                edits.append(Edit(at + kept.start("behind"), at + len(line), ""))
        at += len(line) + 1
    return tuple(edits)
