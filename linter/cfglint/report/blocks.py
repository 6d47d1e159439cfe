"""What a page of a report is made of, whatever its form: paragraphs, tables, diffs; and what a form can show.

A feature has one function that returns the blocks of its page. ``report.forms`` turns them into text; where
a form says something else, that function asks ``style.markdown``.
"""

from __future__ import annotations

from itertools import groupby

from cfglint.record import Record, Value, field
from cfglint.report.verdicts import said
from cfglint.text import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from cfglint.findings import Fix, Memory, Span
    from cfglint.report import Style

    Piece = tuple[str, str]  # a text and its style

INF = float("inf")
_LARGE = 10  # GiB
DASH = "–"
VERDICT_COLORS = {"fits": "green", "tight": "yellow", "oom": "bold red", "unknown": "magenta"}
_SIGNS = {"fits": "✅", "tight": "⚠️", "oom": "❌", "unknown": "❔"}


class Markup(str):
    """A text that is Markdown already."""

    __slots__ = ()


# ── blocks ───────────────────────────────────────────────────────────────────────────────────────────────
class Paragraph(Record):
    """A sentence.

    A terminal shows it after ``lead``, wrapped, with ``rest`` before its further lines. Markdown puts it
    into ``md``; lines that end in a line break, the items of one list, and what is ``joined`` to the
    paragraph before it are not set apart.
    """

    text: str
    style: str = ""
    lead: str = ""
    lead_style: str = ""
    rest: str = "  "
    md: str = "{}"
    joined: bool = field(default=False, kw_only=True)


def heading(text: str) -> Paragraph:
    """Return a title."""
    return Paragraph(text, "bold", md="**{}**")


def item(text: str, style: str = "", *, lead: str = "", rest: str = "  ") -> Paragraph:
    """Return an item of a list; a terminal shows a paragraph."""
    return Paragraph(text, style, lead, "", rest, "- {}")


def note(text: str, style: str = "dim") -> Paragraph:
    """Return a line of its own among others."""
    return Paragraph(text, style, md="{}  ")


class Line(Record):
    """A line that a terminal shows as it is; Markdown has none."""

    pieces: Sequence[Piece]


class Blank(Record):
    """An empty line of a terminal; in Markdown it ends a list, and blocks stand apart without it."""


class Details(Record):
    """What Markdown folds behind a summary."""

    summary: str
    blocks: Sequence[Block]


class Diff(Record):
    """The lines of a patch."""

    lines: Sequence[str]


class Table(Record):
    """Columns of equal length.

    ``bold`` are rows that stand out. Where a terminal of ``width`` cells (0: the style's) is too narrow,
    columns go that say so by ``drop``, then those are cut that say so by ``cut``. With ``fixed``
    columns the others are below each other in groups, each after the fixed ones and before a blank line.
    """

    columns: Sequence[Column]
    bold: Collection[int] = field(default=(), kw_only=True)
    fixed: int = field(default=0, kw_only=True)
    width: int = field(default=0, kw_only=True)


class Column(Record):
    """A head and its cells; ``least`` is the width that it has at least, ``drop`` when it is left out.

    ``cut`` is how many cells it keeps where it is cut, 0 where it is not.
    A cell of a last column that says ``below`` is below its line where there is no room beside it.
    """

    head: AnyCell
    cells: Sequence[AnyCell]
    left: bool = field(default=False, kw_only=True)
    least: int = field(default=0, kw_only=True)
    drop: int = field(default=0, kw_only=True)
    cut: int = field(default=0, kw_only=True)
    below: bool = field(default=False, kw_only=True)


class Cell(Record):
    """A cell with styles of its own; ``md`` is its Markdown where that says something else."""

    pieces: Sequence[Piece]
    md: Markup | None = None


class Range(Value):
    """Two bounds as they print; ``low`` is empty where one number says it."""

    low: str
    high: str

    def __str__(self) -> str:
        """Return both in one text."""
        return self.high if self.low in ("", self.high) else f"{self.low}{DASH}{self.high}"


if TYPE_CHECKING:
    AnyCell = str | Range | Cell
    Block = Paragraph | Line | Blank | Table | Details | Diff


def aligned(cells: Sequence[AnyCell]) -> list[AnyCell]:
    """Return cells with ranges as texts: upper bounds below upper bounds once they stand flush right."""
    high = max((len(cell.high) for cell in cells if isinstance(cell, Range)), default=0)
    return [
        cell if not isinstance(cell, Range)
        else f"{cell.low} {DASH} {cell.high:>{high}}" if cell.low
        else f"{cell.high:>{high}}"
        for cell in cells
    ]  # fmt: skip


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Put neighbours of one style together."""
    runs = groupby(pieces, key=lambda piece: piece[1])
    return [("".join(text for text, _ in run), style) for style, run in runs]


def verdict(memory: Memory, more: str = "", *, brief: bool = False) -> Cell:
    """Return the cell of a verdict, ``brief`` in one word; ``more`` is what Markdown says after it."""
    word, text = memory.verdict, said(memory).partition(",")[0] if brief else said(memory)
    return Cell([(text, VERDICT_COLORS[word])], Markup(f"{_SIGNS[word]} {text}{more}"))


# ── words and numbers ────────────────────────────────────────────────────────────────────────────────────
def gib(value: float, places: int = 2) -> str:
    """Return a number of GiB; ``?`` where nothing bounds it."""
    return f"{value:.{places}f}" if abs(value) < INF else "?"


def range_of(span: Span, places: int | None = None) -> Range:
    """Return GiB as a cell; a range of large numbers with one decimal, since it is an estimate.

    A column of estimates has the same ``places`` for all.
    """
    if places is None:
        places = 1 if _LARGE <= span.low < span.high else 2
    low, high = gib(span.low, places), gib(span.high, places)
    return Range("" if low == high or (span.high == INF and span.low <= 0) else low, high)


def spread(span: Span) -> str:
    """Return ``12.69``, ``12.70-15.90``, or ``?`` where nothing is known."""
    return str(range_of(span))


def many(number: int, thing: str) -> str:
    """Return ``1 key`` or ``2 keys``."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def few(names: Sequence[str], most: int) -> str:
    """Return names, some of many: ``a, b and 3 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(shown, names[:most])) + more


def with_capacity(target: str, capacity_gib: float | None) -> str:
    """Return ``a40 (44.42 GiB)``."""
    return shown(target) if capacity_gib is None else f"{shown(target)} ({gib(capacity_gib)} GiB)"


def kind_of(fix: Fix) -> str:
    """Return ``safe``, or ``unsafe, may not be enough``."""
    kind = "display-only" if fix.applicability == "display" else fix.applicability
    return f"{kind}, {doubt_of(fix)}" if fix.certainty == "may" else kind


def doubt_of(fix: Fix) -> str:
    """Return why a fix is not sure: a job may need more, or nobody knows what it needs on other GPUs."""
    return "memory not judged" if fix.unjudged else "may not be enough"


def title_of(fix: Fix) -> str:
    """Return a fix in words, with its effect."""
    return shown(fix.title) + (f" — {shown(fix.effect)}" if fix.effect else "")


def about(path: str, framework: str | None, model: str | None) -> str:
    """Return ``a.yaml (areal, Qwen/Qwen2.5-7B)``."""
    names = ", ".join(part for part in (framework, model) if part)
    return f"{shown(path)} ({shown(names)})" if names else shown(path)


def cut(text: str, room: int, style: Style) -> str:
    """Return a text in ``room`` cells."""
    return text if len(text) <= room else text[: room - 1] + ("…" if style.unicode else "~")
