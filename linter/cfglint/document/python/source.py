"""Python source as ``ast`` reads it, and where each of its characters stands in the file.

Nothing is imported or run. Of a notebook, the code cells are read one behind the other; what IPython takes
and Python does not (``!pip``, ``%%bash``) counts as blank.
"""

from __future__ import annotations

import ast
import re
import warnings

from cfglint.budget import spend
from cfglint.errors import OverBudgetError
from cfglint.record import Record, field
from cfglint.text import line_starts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHON = "statements of the program"
MAX_PYTHON = 2**20  # characters of source; programs have a few ten thousand
_DEEPEST = 60  # brackets in each other; programs have ten
_LONGEST = 20_000  # characters of a line that is no text
_WARN_NOT = 'import ast, warnings\nwarnings.simplefilter("ignore")'
_TRIAL = """
try:
    ast.parse(data.decode("utf-8", "replace"))
except (SyntaxError, ValueError):
    pass
"""
_ENDLESS = "takes Python's own parser too long, or too deep: it was not judged"
_TEXTS = re.compile(r"\"[^\"\\\n]*\"|'[^'\\\n]*'|#[^\n]*")
_BRACKET = re.compile(r"[(\[{]|[)\]}]")
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL
)
# A cell that another program reads, and those marks of a cell whose body is Python all the same.
_CELL_MAGIC = re.compile(r"\s*%%(?!(?:capture|time|timeit|prun)\b)\w")
_MAGIC = re.compile(
    r"(?m)^[ \t]*(?:[!%?]|\w[\w.]*\?+[ \t]*$)(?:[^\n]*\\\n)*[^\n]*|(?<==)[ \t]*[!%](?:[^\n]*\\\n)*[^\n]*"
)
_SET = re.compile(r"(?m)^\s*([A-Za-z_]\w*)\s*[+*/-]?=(?!=)")


class Code(Record):
    """The statements of a file, and the way from them to its text.

    ``places`` has the offset of each character of ``text`` in the file; None where it is the file itself.
    ``doubtful`` are names that a cell sets which does not parse.
    """

    file: str
    text: str
    body: list[ast.stmt]
    places: list[int] | None = None
    doubtful: tuple[str, ...] = ()
    _lines: list[int] = field(factory=list, init=False)
    _wide: dict[int, bytes] = field(factory=dict, init=False)  # lines with other letters, by their numbers
    _nodes: list[ast.AST] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._lines = line_starts(self.text)

    def nodes(self) -> list[ast.AST]:
        """Return all that the statements are made of, gone through once."""
        if self._nodes is None:
            self._nodes = [node for body in self.body for node in ast.walk(body)]
        return self._nodes

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return where a node stands in the file."""
        start = self._offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        end = self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        return self.placed(start, end)

    def placed(self, start: int, end: int) -> tuple[int, int]:
        """Return where a stretch of the source stands in the file."""
        if self.places is None or start >= end:
            return start, max(start, end)
        first, last = self.places[start], self.places[end - 1]
        escape = _ESCAPE.match(self.file, last)
        return first, escape.end() if escape is not None else last + 1

    def written(self, node: ast.AST) -> str:
        """Return the source of a node."""
        start = self._offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        return self.text[start : self._offset(node.end_lineno, node.end_col_offset)]  # type: ignore[attr-defined]

    def _offset(self, line: int, column: int) -> int:
        """Return the offset of a place as ``ast`` counts: bytes of UTF-8 in a line."""
        start = self._lines[line - 1]
        wide = self._wide.get(line)
        if wide is None:
            end = self._lines[line] if line < len(self._lines) else len(self.text)
            text = self.text[start:end]
            wide = self._wide[line] = b"" if text.isascii() else text.encode("utf-8", "replace")
        if not wide:
            return start + column
        spend(column // 500, PYTHON)
        return start + len(wide[:column].decode("utf-8", "ignore"))


class Elsewhere(Code):
    """The statements of another file; all of them are ``shown`` where the call is that leads there."""

    shown: tuple[int, int] = field(default=(0, 0), kw_only=True)

    def span(self, _: ast.AST) -> tuple[int, int]:
        """Return the place of the call."""
        return self.shown


def read_python(text: str, *, notebook: bool) -> Code | None:
    """Return the statements of a program or a notebook; None where it does not parse.

    Raises OverBudgetError for what may take Python's parser more than it should.
    """
    if notebook:
        return _read_cells(text)
    body = _parsed(text)
    return None if body is None else Code(text, text, body)


def _parsed(text: str) -> list[ast.stmt] | None:
    if len(text) > MAX_PYTHON:
        raise OverBudgetError(f"larger than {MAX_PYTHON // 2**20} MiB of source: it was not judged")
    spend(len(text) // 8, PYTHON)
    if _is_strange(text):
        from cfglint.document.trial import is_bounded  # hardly any program is

        if not is_bounded(_WARN_NOT, _TRIAL, text.encode("utf-8", "replace")):
            raise OverBudgetError(_ENDLESS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            return ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    except (RecursionError, MemoryError):
        raise OverBudgetError(_ENDLESS) from None


def _is_strange(text: str) -> bool:
    """Whether a text nests deeper than people write, or has lines that nobody reads."""
    bare = _TEXTS.sub("", text)
    if len(text) > 2**18 or any(len(line) > _LONGEST for line in bare.split("\n")):
        return True
    depth = 0
    for bracket in _BRACKET.finditer(bare):
        depth += 1 if bracket.group() in "([{" else -1
        if depth > _DEEPEST:
            return True
        depth = max(depth, 0)
    return False


# ── notebooks ──────────────────────────────────────────────────────────────────────────────────────────────
def _read_cells(text: str) -> Code | None:
    """Put the code cells of a notebook together, without those that do not parse."""
    parts: list[str] = []
    places: list[int] = []
    doubtful: list[str] = []
    for cell, spots in _cells(text):
        source = cell
        body = None if _CELL_MAGIC.match(cell) else _parsed(cell)
        if body is None:
            source = _without_magic(cell)
            body = _parsed(source)
        if body is None:
            doubtful += _SET.findall(cell)
            continue
        parts += [source, "\n"]
        places += [*spots, spots[-1] if spots else 0]
    whole = "".join(parts)
    body = _parsed(whole) if parts else None
    return None if body is None else Code(text, whole, body, places, tuple(doubtful))


def _without_magic(cell: str) -> str:
    """Return a cell of the same length, with a name that nobody sets where IPython's words are."""
    if _CELL_MAGIC.match(cell):
        return " " * len(cell)

    def blank(found: re.Match[str]) -> str:
        line = found.group()
        lead = len(line) - len(line.lstrip(" \t"))
        return line[:lead] + "_" + " " * (len(line) - lead - 1)

    return _MAGIC.sub(blank, cell)


def _cells(text: str) -> Iterator[tuple[str, list[int]]]:
    """Yield the source of each code cell, and where its characters stand."""
    for kind, pieces in _sources(text):
        if kind == "code":
            chars: list[str] = []
            places: list[int] = []
            for start, end in pieces:
                _decode(text, start + 1, end - 1, chars, places)
            spend(len(chars) // 4, PYTHON)
            yield "".join(chars), places


def _sources(text: str) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield the kind of each cell and the spans of its source's texts, in quotes."""
    # The keys on the way down; a list has its bracket in a key's place.
    way: list[str] = []
    key = kind = ""
    pieces: list[tuple[int, int]] = []
    tokens = 0
    for token in _TOKEN.finditer(text):
        tokens += 1
        mark = token.group()
        if mark in ("{", "["):
            way.append(key)
            key = ""
            if len(way) == 3:
                kind, pieces = "", []
        elif mark in ("}", "]"):
            if len(way) == 3 and mark == "}" and way[1] == "cells":
                yield kind, pieces
            key = ""
            if way:
                way.pop()
        elif len(way) >= 1 and text[token.end() : token.end() + 3].lstrip()[:1] == ":":
            key = mark[1:-1] if len(way) <= 3 else ""
        elif len(way) == 3 and way[1] == "cells":
            if key == "cell_type":
                kind = mark[1:-1]
            elif key == "source":
                pieces.append(token.span())
        elif len(way) == 4 and way[3] == "source" and way[1] == "cells":
            pieces.append(token.span())
    spend(tokens, PYTHON)


_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def _decode(text: str, start: int, end: int, chars: list[str], places: list[int]) -> None:
    """Add the characters of a JSON text without its quotes."""
    while start < end:
        stop = text.find("\\", start, end)
        stop = end if stop < 0 else stop
        chars += text[start:stop]
        places += range(start, stop)
        escape = _ESCAPE.match(text, stop, end) if stop < end else None
        if escape is None:
            return
        word = escape.group()
        if word[1] == "u":
            units = bytes.fromhex(word.replace("\\u", ""))
            char = units.decode("utf-16-be", "replace")[:1]
        else:
            char = _SHORT.get(word[1], word[1])
        chars.append(char)
        places.append(stop)
        start = escape.end()
