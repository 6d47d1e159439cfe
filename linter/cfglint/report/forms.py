"""Blocks as a terminal, a pipe or a text file shows them, and as Markdown for a comment on a pull request."""

from __future__ import annotations

from rich.cells import cell_len

from cfglint.report.blocks import (
    Blank,
    Cell,
    Details,
    Diff,
    Line,
    Markup,
    Paragraph,
    Table,
    aligned,
    cut,
    joined,
)
from cfglint.text import wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cfglint.report import Style
    from cfglint.report.blocks import AnyCell, Block, Column, Piece

_GAP = "  "
_PLAIN = str.maketrans({"…": "...", "→": "->", "—": "-", "\u2013": "-", "×": "x", "·": "-"})
_SIGN_COLORS = {"+": "green", "-": "red", "@": "cyan"}
_SPECIAL = str.maketrans({c: f"\\{c}" for c in "\\`*_{}[]<>#|~"})
_ITEM = "- {}"
_BREAKS = ("  ", "<br>")


def as_text(blocks: Iterable[Block], style: Style) -> str:
    """Return a page, ending in a line break."""
    drawn = [(block, row) for block in blocks for row in _rows(block, style)]
    if style.color:
        return painted(row for _, row in drawn)
    lines = (("".join(text for text, _ in row), isinstance(block, Diff)) for block, row in drawn)
    return "".join((line if is_patch else line.rstrip()) + "\n" for line, is_patch in lines)


def painted(rows: Iterable[Sequence[Piece]]) -> str:
    """Return rows of texts and their styles with the terminal's codes for them."""
    from io import StringIO

    from rich.console import Console  # only for terminals
    from rich.text import Text

    out = StringIO()
    # The caller has decided about colour; rich must not look at TERM, NO_COLOR or COLUMNS again.
    console = Console(
        file=out, force_terminal=True, color_system="standard", legacy_windows=False, force_jupyter=False,
        highlight=False, markup=False, emoji=False, _environ={},
    )  # fmt: skip
    # Text objects, never strings: rich reads markup such as [red] in strings.
    lines = [Text("").join(Text(text, style) for text, style in row) for row in rows]
    console.print(Text("\n").join(lines), soft_wrap=True)
    return out.getvalue()


def _rows(block: Block, style: Style) -> Iterator[Sequence[Piece]]:
    if isinstance(block, Blank):
        yield ()
    elif isinstance(block, Line):
        yield [(_plain(text, style), own) for text, own in block.pieces]
    elif isinstance(block, Paragraph):
        yield from paragraph(block, style)
    elif isinstance(block, Table):
        yield from _table(block, style)
    elif isinstance(block, Diff):
        yield from ([(line, _SIGN_COLORS.get(line[:1], ""))] for line in block.lines)
    elif isinstance(block, Details):
        yield from (row for inner in block.blocks for row in _rows(inner, style))


def _plain(text: str, style: Style) -> str:
    return text if style.unicode else text.translate(_PLAIN)


def paragraph(block: Paragraph, style: Style) -> Iterator[Sequence[Piece]]:
    """Yield the lines of a sentence."""
    lead = _plain(block.lead, style)
    first, *rest = wrap(
        lead + _plain(block.text, style), style.width, "", block.rest, loose=style.loose, cells=cell_len
    )
    indent, end = len(lead) - len(lead.lstrip()), len(lead)
    yield (first[:indent], ""), (first[indent:end], block.lead_style), (first[end:], block.style)
    yield from ([(line, block.style)] for line in rest)


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────
class _Drawn:
    """A column as it is drawn: the pieces of its head and of each cell."""

    def __init__(self, column: Column, style: Style) -> None:
        cells = [column.head, *aligned(column.cells)]
        self.spec = column
        self.cells = [[(_plain(text, style), own) for text, own in _pieces(cell)] for cell in cells]
        self.width = max(column.least, *map(_cells, self.cells))

    def cell(self, i: int, *, last: bool) -> list[Piece]:
        """Return a cell as wide as its column; at the end of a line nothing follows it."""
        pieces = self.cells[i]
        blank = (" " * (self.width - _cells(pieces)), "")
        if not self.spec.left:
            return [blank, *pieces]
        return pieces if last else [*pieces, blank]


def _pieces(cell: AnyCell) -> Sequence[Piece]:
    return cell.pieces if isinstance(cell, Cell) else [(str(cell), "")]


def _table(table: Table, style: Style) -> Iterator[Sequence[Piece]]:
    if not table.columns or not table.columns[0].cells:
        return
    width = table.width or style.width
    columns = [_Drawn(column, style) for column in table.columns]
    if not table.fixed:
        _fit(columns, width, style)
    for group in _groups(columns, table.fixed, width) if table.fixed else [columns]:
        for i in range(len(table.columns[0].cells) + 1):
            row = "dim" if i == 0 else "bold" if i - 1 in table.bold else ""
            pieces: list[Piece] = []
            below: list[Piece] = []
            for column in group:
                cell = column.cell(i, last=column is group[-1])
                if column.spec.below and width and _cells(pieces) + len(_GAP) + _cells(cell) > width:
                    below = cell
                    continue
                pieces += [(_GAP, ""), *cell] if pieces else cell
            while pieces and not pieces[-1][0].strip():
                pieces.pop()
            yield joined([(text, own or row) for text, own in pieces])
            yield from (
                line for text, own in below if text for line in paragraph(Paragraph(text, own, _GAP), style)
            )
        if table.fixed:
            yield ()


def _groups(columns: list[_Drawn], fixed: int, width: int) -> Iterator[list[_Drawn]]:
    """Yield the fixed columns with as many of the others as there is room for."""
    waiting = columns[fixed:]
    while waiting:
        group = columns[:fixed]
        while waiting and (len(group) == fixed or not width or _width([*group, waiting[0]]) <= width):
            group.append(waiting.pop(0))
        yield group


def _fit(columns: list[_Drawn], width: int, style: Style) -> None:
    """Leave out columns, then cut cells, until a line has room for them."""
    while width and _width(columns) > width and any(column.spec.drop for column in columns):
        columns.remove(min((c for c in columns if c.spec.drop), key=lambda column: column.spec.drop))
    for column in columns if width else ():
        over = _width(columns) - width
        if column.spec.cut and over > 0:
            room = max(column.width - over, column.spec.cut)
            column.cells = [[(cut(text, room, style), own) for text, own in cell] for cell in column.cells]
            column.width = max(map(_cells, column.cells))


def _width(columns: Sequence[_Drawn]) -> int:
    return sum(column.width + len(_GAP) for column in columns) - len(_GAP)


def _cells(pieces: Iterable[Piece]) -> int:
    return sum(len(text) for text, _ in pieces)


# ── Markdown ─────────────────────────────────────────────────────────────────────────────────────────────
def escaped(text: str) -> str:
    """Return a text that Markdown shows as it is, mentions of people and issues included."""
    return text if isinstance(text, Markup) else text.translate(_SPECIAL).replace("@", "@\u200b")


def as_markdown(blocks: Iterable[Block]) -> str:
    """Return a page, ending in a line break."""
    return "\n".join(_md_lines(blocks)).rstrip() + "\n"


def _md_lines(blocks: Iterable[Block]) -> Iterator[str]:
    before: Block | None = None
    for i, block in enumerate(b for b in blocks if isinstance(b, (Blank, Paragraph, Table, Details, Diff))):
        if not isinstance(block, Blank):
            if i and not _one_paragraph(before, block):
                yield ""
            yield from _md_block(block)
        before = block


def _one_paragraph(before: Block | None, block: Block) -> bool:
    """Whether a block goes on where the one before it ended."""
    if not isinstance(before, Paragraph) or not isinstance(block, Paragraph):
        return False
    breaks = before.md.endswith(_BREAKS) or block.md.startswith(_BREAKS)
    return block.joined or breaks or before.md == block.md == _ITEM


def _md_block(block: Block) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield block.md.replace("{}", escaped(block.text), 1)
    elif isinstance(block, Table):
        yield from _md_table(block)
    elif isinstance(block, Details):
        yield from (
            f"<details><summary>{block.summary}</summary>",
            "",
            *_md_lines(block.blocks),
            "",
            "</details>",
        )
    elif isinstance(block, Diff):
        # A longer fence than any in the text keeps it inside.
        longest = max((line.count("`") for line in block.lines), default=0)
        fence = "`" * max(3, longest + 1)
        yield from (f"{fence}diff", *block.lines, fence)


def _md_table(table: Table) -> Iterator[str]:
    if not table.columns or not table.columns[0].cells:
        return
    yield f"| {' | '.join(_md_cell(column.head) for column in table.columns)} |"
    yield f"|{'|'.join('---' if column.left else '---:' for column in table.columns)}|"
    for i, cells in enumerate(zip(*(column.cells for column in table.columns))):  # noqa: B905 (equally long)
        row = [f"**{_md_cell(cell)}**" if i in table.bold and cell else _md_cell(cell) for cell in cells]
        yield f"| {' | '.join(row)} |"


def _md_cell(cell: AnyCell) -> str:
    if isinstance(cell, Cell):
        return cell.md if cell.md is not None else escaped("".join(text for text, _ in cell.pieces))
    return escaped(cell if isinstance(cell, str) else str(cell))
