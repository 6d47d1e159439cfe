"""A scalar of YAML or JSON as pieces: each character of its value with the place that it was written at."""

from __future__ import annotations

from cfglint.document.shell.words import LITERAL, Piece

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.tree import Scalar

_ESCAPE_LENGTHS = {"x": 4, "u": 6, "U": 10}
_BLANK = " \t\r\n"


def pieces_of(text: str, node: Scalar) -> list[Piece]:
    """Return the pieces of a scalar of the file ``text``; one without a place where the two do not match."""
    found = _block(text, node) if node.style == "|" else _aligned(text, node)
    if found is not None and "".join(piece.text for piece in found) == node.text:
        return found
    return [Piece(node.text, -1, -1)] if node.text else []


def _block(text: str, node: Scalar) -> list[Piece] | None:
    """Match ``|``: each line is one of the file's without its indentation."""
    at = text.find("\n", node.start) + 1
    if not at:
        return None
    found: list[Piece] = []
    lines = node.text.split("\n")
    for number, line in enumerate(lines):
        last = number == len(lines) - 1
        if last and not line:
            break
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        end = stop - 1 if text[stop - 1 : stop] == "\r" and not line.endswith("\r") else stop
        if text[at:end][len(text[at:end]) - len(line) :] != line or len(line) > end - at:
            return None
        if line:
            found.append(Piece(line, end - len(line), end))
        if not last:
            found.append(Piece("\n", end, stop + 1) if stop < len(text) else Piece("\n", -1, -1))
        at = stop + 1
    return found


def _aligned(text: str, node: Scalar) -> list[Piece] | None:
    """Match plain, quoted and folded scalars: escapes and folded lines are pieces that are not verbatim."""
    quote = node.style if node.style in ("'", '"') else ""
    at, end = node.start + len(quote), node.end - len(quote)
    if node.style == ">":
        at = text.find("\n", node.start) + 1
    found: list[Piece] = []
    begun = -1  # of the verbatim stretch at hand

    def close() -> None:
        nonlocal begun
        if begun >= 0:
            found.append(Piece(text[begun:at], begun, at))
            begun = -1

    value, i = node.text, 0
    while i < len(value):
        char = value[i]
        raw = text[at] if at < end else ""
        if not raw:
            if char in _BLANK:  # the line break that ends a folded block
                close()
                found.append(Piece(char, -1, -1))
                i += 1
                continue
            return None
        if quote and raw == "\\" and quote == '"':
            close()
            length = 2
            if text[at + 1] in "\r\n":  # the line goes on
                at = _blanks_end(text, at + 1, end)
                continue
            length = _ESCAPE_LENGTHS.get(text[at + 1], 2)
            if length == 6 and text[at : at + 4].lower() in ("\\ud8", "\\ud9", "\\uda", "\\udb"):
                length = 12  # a pair stands for one character
            found.append(Piece(char, at, at + length if length > 1 else -1))
            at += length
            i += 1
        elif quote == "'" and raw == "'":
            close()
            found.append(Piece(char, at, at + 2))
            at += 2
            i += 1
        elif raw in "\r\n" or (raw in _BLANK and _line_ends(text, at, end) and quote + node.style != ">"):
            close()
            stop = _blanks_end(text, at, end)
            folded = i
            while folded < len(value) and value[folded] in _BLANK and folded - i < stop - at:
                folded += 1
            if folded > i:
                found.append(Piece(value[i:folded], at, stop if stop - at != folded - i else -1))
            at, i = stop, folded
        elif raw == char:
            if begun < 0:
                begun = at
            at += 1
            i += 1
        elif raw in _BLANK and (not found or begun < 0):
            at += 1  # indentation of the first line, or of one that goes on
        else:
            return None
    close()
    return [piece if piece.end >= 0 else Piece(piece.text, -1, -1, LITERAL) for piece in found]


def _blanks_end(text: str, at: int, end: int) -> int:
    while at < end and text[at] in _BLANK:
        at += 1
    return at


def _line_ends(text: str, at: int, end: int) -> bool:
    stop = _blanks_end(text, at, end)
    return "\n" in text[at:stop] or "\r" in text[at:stop]
