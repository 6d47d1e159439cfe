"""What ``$(echo LIST | …)`` comes to, by which scripts count GPUs or change the letters of a name.

``tr``, ``wc``, and ``awk -F, '{print NF}'``; all else is unknown. The number of what a list in the script has
changes with that list.
"""

from __future__ import annotations

import re

from cfglint.document.shell.words import Piece, uncertain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.document.shell.words import Word

_FIELDS = re.compile(r"\s*\{\s*print\s+NF;?\s*\}\s*\Z")
_APART = re.compile(r"-F(.)\Z")
_CLASSES = {
    "[:upper:]": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "[:lower:]": "abcdefghijklmnopqrstuvwxyz",
    "A-Z": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "a-z": "abcdefghijklmnopqrstuvwxyz",
    "\\n": "\n",
    "\n": "\n",
}
_SEPARATORS = ",; "


def piped(printed: Sequence[Piece], filters: Sequence[Sequence[Word]]) -> list[Piece]:
    """Return what commands make of a printed line; nothing where that is not known."""
    if not printed or uncertain(printed):
        return []
    line = "".join(piece.text for piece in printed)
    text: str | None = f"{line}\n"
    for words in filters:
        text = _filtered(text, [word.text for word in words])
        if text is None:
            return []
    text = text.rstrip("\n")  # type: ignore[union-attr]
    reads = tuple(printed)
    for separator in _SEPARATORS:
        items = line.split(separator)
        if len(items) > 1 and text == str(len(items)):
            return [counted(reads, text)]
        if len(items) > 1 and text == str(len(items) - 1):
            return [Piece(text, -1, -1, reads=reads)]
    return [Piece(text, -1, -1, reads=reads)]


def counted(listed: Sequence[Piece], text: str) -> Piece:
    """Return the number of what a list has; of the first GPUs, ``0,1,2,3``, where the list is."""
    whole = listed[0] if len(listed) == 1 else None
    if whole is None or not whole.verbatim or whole.text != ",".join(map(str, range(int(text)))):
        return Piece(text, -1, -1, reads=tuple(listed))
    return Piece(text, whole.start, whole.end, loose=True, counts=True)


def _filtered(text: str | None, words: list[str | None]) -> str | None:
    """Return what a command makes of its input; None where that is not known."""
    known = [word for word in words if word is not None]
    if text is None or len(known) < len(words) or not known:
        return None
    name, *arguments = known
    if name == "wc" and arguments in (["-l"], ["-c"], ["-m"], ["-w"]):
        numbers = {"-l": text.count("\n"), "-w": len(text.split())}
        return f"{numbers.get(arguments[0], len(text))}\n" if text.isascii() else None
    if name == "awk" and len(arguments) in (2, 3) and _FIELDS.match(arguments[-1]):
        apart = _APART.match("".join(arguments[:-1]))
        lines = text.splitlines()
        return (
            f"{len(lines[0].split(apart[1]))}\n"
            if apart is not None and len(lines) == 1 and lines[0]
            else None
        )
    return _translated(text, arguments) if name == "tr" else None


def _translated(text: str, arguments: list[str]) -> str | None:
    """Return what ``tr`` makes of a text: single letters, and all small or large ones."""
    option = arguments.pop(0) if arguments and arguments[0] in ("-d", "-cd", "-dc") else ""
    sets = [_CLASSES.get(each, each if len(each) == 1 else "") for each in arguments]
    if not all(sets) or len(sets) != (1 if option else 2):
        return None
    if option:
        return "".join(letter for letter in text if (letter in sets[0]) == ("c" in option))
    return text.translate(str.maketrans(*sets)) if len(sets[0]) == len(sets[1]) else None
