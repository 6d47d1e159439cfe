"""Text patterns: ``*`` any text, ``?`` one character, ``{name:int}`` a whole number, ``{name:word}`` a word.

A capture takes as many characters as it can, and the pieces between stars match as far to the left as they
can. So the time is bounded by text times pattern, whatever the pattern: there is nothing to backtrack into.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Piece: TypeAlias = tuple[tuple[str, str], ...]  # ("=", literal), ("?", ""), ("int", name), ("word", name)

MAX_TEXT = 100_000  # characters; a longer text is no engine name
_MAX_RUN = 18  # characters of a capture; whole numbers of that length are still exact


def compile_pattern(pattern: str) -> tuple[Piece, ...]:
    """Split a pattern at its stars. Raises ValueError for a malformed capture."""
    pieces: list[list[tuple[str, str]]] = [[]]
    names: set[str] = set()
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "*":
            pieces.append([])
        elif char == "?":
            pieces[-1].append(("?", ""))
        elif char == "{":
            end = pattern.find("}", at)
            name, _, kind = pattern[at + 1 : end].partition(":")
            if end < 0 or kind not in ("int", "word") or (name and not name.isidentifier()):
                wrong = pattern[at : end + 1] or pattern[at:]
                raise ValueError(f"a capture is written {{name:int}} or {{name:word}}, not {wrong!r}")
            if name in names:
                raise ValueError(f"the capture {name!r} stands twice in this pattern")
            names.update((name,) if name else ())
            pieces[-1].append((kind, name))
            at = end
        elif pieces[-1] and pieces[-1][-1][0] == "=":
            pieces[-1][-1] = ("=", pieces[-1][-1][1] + char)
        else:
            pieces[-1].append(("=", char))
        at += 1
    return tuple(tuple(piece) for piece in pieces)


def plain_test(pieces: tuple[Piece, ...]) -> str:
    """Return Python source that tests a text ``{0}`` for a pattern of one fixed text; empty for any other."""
    parts = [piece[0][1] if piece and piece[0][0] == "=" else "" for piece in pieces]
    if any(len(piece) > 1 or (piece and not part) for piece, part in zip(pieces, parts, strict=True)):
        return ""
    texts = [repr(part).replace("{", "{{").replace("}", "}}") for part in parts]
    if len(parts) == 1:
        return f"{{0}} == {texts[0]}"
    if not any(parts[1:]):
        return f"{{0}}.startswith({texts[0]})"
    if not any(parts[:-1]):
        return f"{{0}}.endswith({texts[-1]})"
    return f"{texts[1]} in {{0}}" if len(parts) == 3 and not parts[0] and not parts[2] else ""


def _in_run(char: str, kind: str) -> bool:
    return char in "0123456789" if kind == "int" else char.isalnum() or char in "_-."


def _here(piece: Piece, text: str, at: int, found: dict[str, int | str]) -> int:
    """Return where ``piece`` ends if it stands at ``at``, else -1."""
    for kind, what in piece:
        if kind == "=":
            if not text.startswith(what, at):
                return -1
            at += len(what)
        elif kind == "?":
            if at >= len(text):
                return -1
            at += 1
        else:
            end = at
            while end < len(text) and end - at <= _MAX_RUN and _in_run(text[end], kind):
                end += 1
            if end == at or end - at > _MAX_RUN:
                return -1
            found[what] = int(text[at:end]) if kind == "int" else text[at:end]
            at = end
    return at


def _splits(piece: Piece, text: str, at: int) -> bool:
    """Whether a capture at ``at`` would begin in the middle of a number or a word."""
    kind = piece[0][0] if piece else "="
    return kind in ("int", "word") and _in_run(text[at - 1], kind)


def match(pieces: tuple[Piece, ...], text: str) -> dict[str, int | str] | None:
    """Return what the captures hold if the whole ``text`` matches, else None."""
    found: dict[str, int | str] = {}
    at = _here(pieces[0], text, 0, found)
    if at < 0 or len(pieces) == 1:
        return found if at == len(text) else None
    for piece in pieces[1:-1]:
        first_text = piece[0][1] if piece and piece[0][0] == "=" else ""
        first = at
        while at <= len(text):
            if first_text:  # it can only stand where that does
                at = text.find(first_text, at)
                if at < 0:
                    return None
            end = -1 if at > first and _splits(piece, text, at) else _here(piece, text, at, found)
            if end >= 0:
                break
            at += 1
        else:
            return None
        at = end
    last = pieces[-1]
    if not last:
        return found
    if len(last) == 1 and last[0][0] == "=":
        return found if len(text) - len(last[0][1]) >= at and text.endswith(last[0][1]) else None
    for start in range(at, len(text) + 1):  # the last piece has to end where the text ends
        if (start == at or not _splits(last, text, start)) and _here(last, text, start, found) == len(text):
            return found
    return None
