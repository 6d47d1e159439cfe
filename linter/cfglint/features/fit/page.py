"""The fit for people: a table of targets, their memory as bars, what the peak is, what is not known."""

from __future__ import annotations

from cfglint.features.fit.bars import bar, limit, swatch
from cfglint.features.fit.matrix import matrix
from cfglint.features.fit.words import (
    DASH,
    aligned,
    counts,
    estimate,
    gib,
    headline,
    headroom,
    label,
    names,
    peaks,
    remedies,
    remedy,
)
from cfglint.report.order import shown
from cfglint.report.snippet import wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.memory import Fit, FitRow
    from cfglint.features.fit.render import Style

    Pieces = list[tuple[str, str]]

VERDICT_COLORS = {"fits": "green", "tight": "yellow", "oom": "bold red", "unknown": "magenta"}
_GAP = "  "
_PIPE = 100  # cells of a bar's line where there is no terminal
_NARROWEST = 8  # cells of a name that is cut, and of a bar
_WIDEST_BAR = 72


def as_text(fit: Fit, style: Style) -> str:
    """Return the page."""
    page = _Page(fit, style)
    page.write()
    if not style.color:
        return "".join("".join(text for text, _ in row).rstrip() + "\n" for row in page.rows)
    from cfglint.report.paint import painted  # rich is only for terminals

    return painted(page.rows)


class _Page:
    """Collects rows of texts with their colours."""

    def __init__(self, fit: Fit, style: Style) -> None:
        self.fit = fit
        self.style = style
        self.rows: list[Pieces] = []
        self.dash = DASH if style.unicode else "-"

    def add(self, *pieces: tuple[str, str]) -> None:
        self.rows.append(list(pieces))

    def tell(self, text: str, color: str = "", *, first: str = "", rest: str = "  ") -> None:
        """Add a sentence, wrapped; ``first`` is what stands before it, in ``color``."""
        lines = wrap(first + self.plain(text), self.style.width, "", rest)
        self.add((lines[0][: len(first)], color), (lines[0][len(first) :], ""))
        for line in lines[1:]:
            self.add((line, ""))

    def plain(self, text: str) -> str:
        return text if self.style.unicode else text.replace(" — ", " - ").replace("…", "...")

    def write(self) -> None:
        fit = self.fit
        self.tell(f"{headline(fit)}: GiB on the fullest GPU")
        self.add()
        if any(row.varied for row in fit.rows):
            self.rows += matrix(fit.rows, self.style)
        else:
            self.table()
            self.bars()
        self.sentences()

    # ── the table ──────────────────────────────────────────────────────────────────────────────────────
    def table(self) -> None:
        rows = self.fit.rows
        columns = [
            ["target", *(shown(row.target) for row in rows)],
            ["capacity", *("?" if row.capacity is None else gib(row.capacity) for row in rows)],
            ["need", *aligned([row.need for row in rows], dash=self.dash)],
            ["headroom", *(headroom(row) for row in rows)],
        ]
        widest = max(len(row.verdict) for row in rows)
        if self.too_wide(columns, widest):
            del columns[-1]
        if over := self.too_wide(columns, widest):
            room = max(max(map(len, columns[0])) - over, _NARROWEST)
            columns[0] = [cut(name, room, self.style) for name in columns[0]]
        widths = [max(map(len, column)) for column in columns]
        for i, cells in enumerate(zip(*columns, strict=True)):
            name, *numbers = cells
            line = [name.ljust(widths[0]), *(n.rjust(w) for n, w in zip(numbers, widths[1:], strict=True))]
            verdict = "verdict" if i == 0 else rows[i - 1].verdict
            color = VERDICT_COLORS.get(verdict, "dim")
            self.add((_GAP.join(line) + _GAP, "dim" if i == 0 else ""), (verdict, color))
        self.add()

    def too_wide(self, columns: list[list[str]], more: int) -> int:
        """Return how many cells a table is wider than the terminal."""
        if not self.style.width:
            return 0
        taken = sum(max(map(len, column)) + len(_GAP) for column in columns) + max(more, len("verdict"))
        return max(taken - self.style.width, 0)

    # ── the parts ──────────────────────────────────────────────────────────────────────────────────────
    def bars(self) -> None:
        told = [row for row in self.fit.told if row.need.low > 0 or row.need.high < float("inf")]
        if not told:
            return
        width = self.style.width or _PIPE
        room = max(*(len(shown(row.target)) for row in told), len("activations") + 2)
        room = min(room, max(width // 3, _NARROWEST))
        cells = min(max(width - room - len(_GAP), _NARROWEST), _WIDEST_BAR)
        for row in told:
            name = cut(shown(row.target), room, self.style)
            self.add((name.ljust(room) + _GAP, ""), *bar(row, cells, self.style))
        if any(row.capacity is not None for row in told):
            self.add((" " * (room + len(_GAP)) + "0" + "capacity".rjust(limit(cells)), "dim"))
        self.add()
        self.legend(told, room, width)

    def legend(self, told: Sequence[FitRow], room: int, width: int) -> None:
        """Add the parts' numbers, a column for each bar, as many side by side as there is room for."""
        parts = [
            (part, [dict(row.parts)[part] for row in told]) for part, _ in told[0].parts
        ]  # a part that nobody has is left out
        parts = [(part, spans) for part, spans in parts if any(span.high > 0 for span in spans)]
        columns = [
            [
                cut(shown(row.target), 24, self.style),
                *aligned([spans[i] for _, spans in parts], dash=self.dash),
            ]
            for i, row in enumerate(told)
        ]
        for column, row in zip(columns, told, strict=True):
            column.append(aligned([row.need], dash=self.dash)[0])
        while columns:
            taken = room
            some: list[list[str]] = []
            while columns and (not some or taken + len(_GAP) + max(map(len, columns[0])) <= width):
                some.append(columns.pop(0))
                taken += len(_GAP) + max(map(len, some[-1]))
            widths = [max(map(len, column)) for column in some]
            heads: list[Pieces] = [[("part".ljust(room), "dim")]]
            heads += [[swatch(part, self.style), (f" {part}".ljust(room - 1), "")] for part, _ in parts]
            heads.append([("= need".ljust(room), "bold")])
            for i, head in enumerate(heads):
                cells = [column[i].rjust(w) for column, w in zip(some, widths, strict=True)]
                style = "dim" if i == 0 else "bold" if i == len(heads) - 1 else ""
                self.add(*head, (_GAP + _GAP.join(cells), style))
            self.add()

    # ── the sentences ──────────────────────────────────────────────────────────────────────────────────
    def sentences(self) -> None:
        fit = self.fit
        for one, targets in remedies(fit.rows):
            where = f" [{', '.join(targets)}]" if len(fit.rows) > 1 else ""
            self.tell(remedy(one, dash=self.dash), "green", first=f"fix ({label(one)}){where}: ")
        if not any(row.varied for row in fit.rows):
            for line in peaks(fit.told, dash=self.dash):
                self.tell(line)
        if fit.estimates:
            told = f" on {shown(fit.told[0].target)}" if len(fit.rows) > 1 else ""
            self.tell(f"what makes the need{told} a range:")
            for one_estimate in fit.estimates:
                self.tell(estimate(one_estimate), first="  ", rest="    ")
        if fit.wanted:
            self.tell("what is not known:")
            for missing in fit.wanted:
                about = f": {shown(missing.about)}" if missing.about else ""
                self.tell(f"{names(missing)}{about}", first="  ", rest="    ")
                self.tell(missing.advice, first="    give ", rest="      ")
        said = counts(fit)
        if said:
            self.tell(said, "bold", first="")
            self.rows[-1] = [(text, "bold") for text, _ in self.rows[-1]]


def cut(name: str, room: int, style: Style) -> str:
    """Return a name in ``room`` cells."""
    if len(name) <= room:
        return name
    mark = "…" if style.unicode else "~"
    return name[: room - 1] + mark
