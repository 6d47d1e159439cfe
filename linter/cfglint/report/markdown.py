"""Blocks as Markdown, for a comment on a pull request."""

from __future__ import annotations

from cfglint.report.blocks import Blank, Cell, Details, Diff, Markup, Paragraph, Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cfglint.report.blocks import AnyCell, Block

_SPECIAL = str.maketrans({c: f"\\{c}" for c in "\\`*_{}[]<>#|~"})
_ITEM = "- {}"
_BREAKS = ("  ", "<br>")


def escaped(text: str) -> str:
    """Return a text that Markdown shows as it is, mentions of people and issues included."""
    return text if isinstance(text, Markup) else text.translate(_SPECIAL).replace("@", "@\u200b")


def as_markdown(blocks: Iterable[Block]) -> str:
    """Return a page, ending in a line break."""
    return "\n".join(_lines(blocks)).rstrip() + "\n"


def _lines(blocks: Iterable[Block]) -> Iterator[str]:
    before: Block | None = None
    for i, block in enumerate(b for b in blocks if isinstance(b, (Blank, Paragraph, Table, Details, Diff))):
        if not isinstance(block, Blank):
            if i and not _one_paragraph(before, block):
                yield ""
            yield from _block(block)
        before = block


def _one_paragraph(before: Block | None, block: Block) -> bool:
    """Whether a block goes on where the one before it ended."""
    if not isinstance(before, Paragraph) or not isinstance(block, Paragraph):
        return False
    breaks = before.md.endswith(_BREAKS) or block.md.startswith(_BREAKS)
    return block.joined or breaks or before.md == block.md == _ITEM


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield block.md.replace("{}", escaped(block.text), 1)
    elif isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Details):
        yield from (
            f"<details><summary>{block.summary}</summary>",
            "",
            *_lines(block.blocks),
            "",
            "</details>",
        )
    elif isinstance(block, Diff):
        # A longer fence than any in the text keeps it inside.
        longest = max((line.count("`") for line in block.lines), default=0)
        fence = "`" * max(3, longest + 1)
        yield from (f"{fence}diff", *block.lines, fence)


def _table(table: Table) -> Iterator[str]:
    if not table.columns or not table.columns[0].cells:
        return
    yield f"| {' | '.join(_cell(column.head) for column in table.columns)} |"
    yield f"|{'|'.join('---' if column.left else '---:' for column in table.columns)}|"
    for i, cells in enumerate(zip(*(column.cells for column in table.columns))):  # noqa: B905 (equally long)
        row = [f"**{_cell(cell)}**" if i in table.bold and cell else _cell(cell) for cell in cells]
        yield f"| {' | '.join(row)} |"


def _cell(cell: AnyCell) -> str:
    if isinstance(cell, Cell):
        return cell.md if cell.md is not None else escaped("".join(text for text, _ in cell.pieces))
    return escaped(cell if isinstance(cell, str) else str(cell))
