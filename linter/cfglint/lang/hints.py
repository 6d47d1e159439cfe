"""What to write instead: habits of other languages, recognised where the parser or the compiler gives up."""

from __future__ import annotations

import re

# What stands at a mistake, and what to write instead of it.
_SIGNS: tuple[tuple[str, str], ...] = (
    (r"&&?", "and"),
    (r"\|\|?", "or"),
    (r"!==?", "!="),
    (r"!(?=[\w($])", "not"),
    (r"=>|→|⇒|⟹|implies\b", "->"),
    (r"===", "=="),
    (r"≤|=<", "<="),
    (r"≥", ">="),
    (r"≠", "!="),
    (r"\u00d7|·|⋅", "*"),
    (r"÷", "/"),
    (r"∧|AND\b|And\b", "and"),
    (r"\u2228|OR\b|Or\b", "or"),
    (r"¬|NOT\b|Not\b", "not"),
    (r"∈|IN\b", "in"),
    (r"is[ \t]+not\b", "!="),
    (r"is[ \t]+in\b", "in"),
    (r"is\b", "=="),
    (r"elif\b", "else (if … then … else …)"),
    (r"%", "mod"),
    (r"…|\.\.\.", ".."),
    (r"between\b", "in low .. high"),
    (r"\?", "if … then … else …"),
    (r";", "a new line"),
    (r"\u2013|\u2212", "-"),
)
_AT = [(re.compile(sign), instead) for sign, instead in _SIGNS]
# The same where the first half was taken for something else: what stands before a mistake and at it.
_AROUND: tuple[tuple[re.Pattern[str], re.Pattern[str], str], ...] = tuple(
    (re.compile(rf"{before}\Z"), re.compile(after), instead)
    for before, after, instead in (
        (r"<", r">", "!="),
        (r"=", r">", "->"),
        (r"!=", r"=", "!="),
        (r"==", r"=", "=="),
        (r"-+", r"-*>", "->"),
        (r"\.\.", r"\.", ".."),
        (r"/", r"/", "floor(… / …)"),
        (r"\*", r"\*", "x * x"),
        (r"%[ \t]*", r"(?=[\d($])", "mod"),
        (r"\b(?:NOT|Not)[ \t]+", r"", "not"),
        (r"\bis[ \t]+", r"not\b", "!="),
    )
)
_DEFINED = re.compile(r"let[ \t]+[\w.]+(?:\([^)\n]*\))?[ \t]*(==|:=)")
_COMMENT = re.compile(r"//|/\*|--|%|;")
_WORDS = {
    "True": "true", "TRUE": "true", "False": "false", "FALSE": "false", "None": "null", "nil": "null",
    "NULL": "null", "Null": "null", "yes": "true", "no": "false",
    "on": "true", "off": "false",
}  # fmt: skip


def instead_of(text: str, at: int) -> tuple[int, str] | None:
    """Return where a habit of another language stands and what to write for it; None for other mistakes."""
    line = text.rfind("\n", 0, at) + 1
    before = text[line:at]
    if (found := _DEFINED.match(text, line)) is not None and at <= found.end():
        return found.start(1), _written("=", found[1])
    if not before.strip() and (found := _COMMENT.match(text, at)) is not None:
        return at, _written("#", found[0])
    if text[at : at + 1] in ("'", "`", "\u2018", "\u2019", "“", "”"):
        return at, 'write texts in "…"'
    for start, end, instead in _AROUND:
        head, tail = start.search(before), end.match(text, at)
        if head is not None and tail is not None:
            return line + head.start(), _written(instead, (head[0] + tail[0]).strip())
    for sign, instead in _AT:
        if (found := sign.match(text, at)) is not None:
            return at, _written(instead, found[0])
    return None


def word_instead_of(name: str) -> str | None:
    """Return what to write for another language's name of a value; None for any other name."""
    return _written(_WORDS[name], name) if name in _WORDS else None


def _written(instead: str, found: str) -> str:
    return f"write {instead} instead of {found}"


def key_hint(name: str) -> str:
    """Return how a key of the file is written, which a name that nobody knows probably is."""
    return f"; a key of the file is written $.{name}"
