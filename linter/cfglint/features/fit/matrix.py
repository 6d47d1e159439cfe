"""What --vary asks for: verdict and need for every value and target, side by side."""

from __future__ import annotations

from cfglint.features.fit.words import DASH, aligned
from cfglint.report.order import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.memory import FitRow
    from cfglint.features.fit.render import Style

    Pieces = list[tuple[str, str]]

_MOST_COLUMNS = 6  # targets side by side; more of them stand below each other, and the values side by side
_GAP = "  "
_COLORS = {"fits": "green", "tight": "yellow", "oom": "bold red", "unknown": "magenta"}


def choice(row: FitRow) -> tuple[str, ...]:
    """Return the values of a row."""
    return tuple(shown(value) for _, value in row.varied)


class Grid:
    """The rows by value and by target; ``turned`` says that the targets stand below each other."""

    def __init__(self, rows: Sequence[FitRow]) -> None:
        self.names = [shown(name) for name, _ in rows[0].varied]
        self.choices = list(dict.fromkeys(choice(row) for row in rows))
        self.targets = list(dict.fromkeys(shown(row.target) for row in rows))
        self.cells = {(choice(row), shown(row.target)): row for row in rows}
        self.turned = len(self.targets) > _MOST_COLUMNS

    def heads(self) -> list[list[str]]:
        """Return the columns that name the rows, each with its own head."""
        if self.turned:
            return [[_joined(self.names), *self.targets]]
        return [[name, *(c[i] for c in self.choices)] for i, name in enumerate(self.names)]

    def columns(self) -> list[tuple[str, list[FitRow]]]:
        """Return the other columns: what they are for, and their rows."""
        if self.turned:
            return [(_joined(c), [self.cells[c, t] for t in self.targets]) for c in self.choices]
        return [(t, [self.cells[c, t] for c in self.choices]) for t in self.targets]


def _joined(words: Sequence[str]) -> str:
    return " × ".join(words)  # noqa: RUF001 (one value of each)


def matrix(rows: Sequence[FitRow], style: Style) -> list[Pieces]:
    """Return the grid, its columns in as many pieces as the terminal's width asks for."""
    grid = Grid(rows)
    dash = DASH if style.unicode else "-"
    heads = grid.heads()
    widths = [max(map(len, head)) for head in heads]
    label = sum(widths) + len(_GAP) * (len(widths) - 1)
    waiting = [_column(title, column, dash) for title, column in grid.columns()]
    found: list[Pieces] = []
    while waiting:
        taken = label
        some: list[tuple[list[Pieces], int]] = []
        while waiting and (not some or not style.width or taken + len(_GAP) + waiting[0][1] <= style.width):
            some.append(waiting.pop(0))
            taken += len(_GAP) + some[-1][1]
        for i in range(len(heads[0])):
            name = _GAP.join(
                head[i].ljust(w) if grid.turned else head[i].rjust(w)
                for head, w in zip(heads, widths, strict=True)
            )
            line: Pieces = [(name, "dim" if i == 0 else "")]
            for cells, _ in some:
                line += [(_GAP, ""), *cells[i]]
            found.append(line)
        found.append([])
    if not style.unicode:
        found = [[(text.replace("×", "x"), color) for text, color in line] for line in found]  # noqa: RUF001
    return found


def _column(title: str, rows: Sequence[FitRow], dash: str) -> tuple[list[Pieces], int]:
    words = [row.verdict for row in rows]
    needs = aligned([row.need for row in rows], dash=dash)
    first, second = max(map(len, words)), max(map(len, needs))
    width = max(first + 1 + second, len(title))
    cells: list[Pieces] = [[(title.rjust(width), "dim")]]
    for word, need in zip(words, needs, strict=True):
        cells.append([(word.ljust(width - second - 1), _COLORS[word]), (f" {need:>{second}}", "")])
    return cells, width
