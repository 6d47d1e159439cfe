"""The plan for people: for each batch a table, the row to take, and why not the others."""

from __future__ import annotations

from cfglint.features.fit.page import missing as names
from cfglint.features.fit.words import DASH, VERDICT_COLORS, aligned
from cfglint.features.plan.words import (
    fewest,
    flush,
    headline,
    left_out,
    matter,
    missing,
    notes,
    now,
    recommended,
    scale,
    settings,
    title,
    work_scale,
)
from cfglint.report.order import shown
from cfglint.report.terminal import wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.features.plan.compute import PlanRow
    from cfglint.features.plan.ranking import Plan, Planned
    from cfglint.report import Style

    Pieces = list[tuple[str, str]]

_GAP = "  "


def as_text(plans: Sequence[Plan], style: Style, *, every: bool) -> str:
    """Return the pages of all plans."""
    page = _Page(style, every=every)
    for i, plan in enumerate(plans):
        if i:
            page.rows.append([])
        page.write(plan)
    if not style.color:
        return "".join("".join(text for text, _ in row).rstrip() + "\n" for row in page.rows)
    from cfglint.report.terminal import painted  # rich is only for terminals

    return painted(page.rows)


class _Page:
    """Collects rows of texts with their colours."""

    def __init__(self, style: Style, *, every: bool) -> None:
        self.style = style
        self.every = every
        self.rows: list[Pieces] = []
        self.dash = DASH if style.unicode else "-"

    def tell(self, text: str, color: str = "", *, first: str = "", rest: str = "  ") -> None:
        """Add a sentence, wrapped; ``first`` is what stands before it."""
        for line in wrap(first + text, self.style.width, "", rest):
            self.rows.append([(line, color)])

    def write(self, plan: Plan) -> None:
        self.tell(headline(plan), "bold")
        for told in (settings(plan), now(plan)):
            if told:
                self.tell(told)
        for one in plan.batches:
            self.rows.append([])
            self.batch(one, plan)
        self.rows.append([])
        for note in notes(plan, dash=self.dash):
            self.tell(note, "dim")
        for wanted in plan.wanted:
            told = f"not known: {names(wanted)}, {shown(wanted.about)}"
            self.tell(told if "--vary" in wanted.advice else f"{told}; give {wanted.advice}")
        hidden = 0 if self.every else left_out(plan)
        if hidden:
            whole = sum(len(one.batch.rows) for one in plan.batches)
            self.tell(f"{whole - hidden} of {whole} rows are shown; --all shows every one", "dim")
        if not self.rows[-1]:
            self.rows.pop()

    def batch(self, one: Planned, plan: Plan) -> None:
        self.tell(title(one, plan), "bold")
        rows = list(one.batch.rows) if self.every else matter(one)
        if rows:
            self.table(rows, one)
        for line in missing(one.batch):
            self.tell(line, first="  ", rest="    ")
        said = fewest(one)
        if said:
            self.tell(said, first="  ", rest="    ")
        for i, line in enumerate(recommended(one, dash=self.dash) if rows else ()):
            found = one.advice.best is not None
            self.tell(
                line,
                ("green" if found else "yellow") if i == 0 else "",
                first="  " if i == 0 else "    ",
                rest="      ",
            )

    def table(self, rows: Sequence[PlanRow], one: Planned) -> None:
        """Add the rows; the last columns of time are left out where the terminal is too narrow."""
        best = one.advice.best
        mark = "→" if self.style.unicode else ">"
        first = _axes(rows)
        if best is not None and best in rows:
            at = rows.index(best) + 1
            first[0][at] = f"{mark} {best.number}"
        first.append(["need, GiB", *aligned([row.need_gib for row in rows], dash=self.dash)])
        times = _times(rows, self.dash)
        widest = max(len("verdict"), *(len(row.verdict) for row in rows))
        last = ["", *("now" if row.now else "" for row in rows)] if any(row.now for row in rows) else None
        while times and self._taken([*first, *times, *([last] if last else [])]) + widest > (
            self.style.width or 1000
        ):
            del times[0 if len(times) > 2 else -1]  # a step first, where there is an epoch
        widths = [max(map(len, column)) for column in first]
        time_widths = [max(map(len, column)) for column in times]
        for i in range(len(rows) + 1):
            line = _GAP.join(column[i].rjust(width) for column, width in zip(first, widths, strict=True))
            verdict = "verdict" if i == 0 else rows[i - 1].verdict
            chosen = i > 0 and best is not None and rows[i - 1].number == best.number
            plain = "dim" if i == 0 else "bold" if chosen else ""
            pieces: Pieces = [
                (line + _GAP, plain),
                (verdict.ljust(widest), VERDICT_COLORS.get(verdict, "dim")),
            ]
            pieces.append(
                ("".join(_GAP + c[i].rjust(w) for c, w in zip(times, time_widths, strict=True)), plain)
            )
            if last is not None:
                pieces.append((_GAP + last[i], "dim"))
            self.rows.append(pieces)

    @staticmethod
    def _taken(columns: Sequence[Sequence[str]]) -> int:
        return sum(max(map(len, column)) + len(_GAP) for column in columns)


def _axes(rows: Sequence[PlanRow]) -> list[list[str]]:
    """Return the columns that say what a row combines."""
    found = [["row", *(str(row.number) for row in rows)], ["GPUs", *(f"{row.choice.gpus:,}" for row in rows)]]
    if rows[0].choice.tokens is not None:
        found.append(["tokens", *(f"{row.choice.tokens:,}" for row in rows)])
    else:
        found.append(["micro", *(f"{row.choice.micro:,}" for row in rows)])
        found.append(["accum", *(f"{row.choice.accum:,}" for row in rows)])
    if rows[0].choice.stage is not None:
        found.append(["ZeRO", *(str(row.choice.stage) for row in rows)])
    if rows[0].choice.checkpointing is not None:
        found.append(["ckpt", *(str(row.choice.checkpointing) for row in rows)])
    return found


def _times(rows: Sequence[PlanRow], dash: str) -> list[list[str]]:
    """Return the columns of time: of a step, of an epoch, and GPU-hours; none where nothing is known."""
    found = []
    steps = [row.step for row in rows]
    if any(steps):
        unit, worth = scale(steps)
        found.append([f"step, {unit}", *flush(steps, worth, dash=dash)])
    epochs = [row.epoch for row in rows]
    if any(epochs):
        unit, worth = scale(epochs)
        found.append([f"epoch, {unit}", *flush(epochs, worth, dash=dash)])
    if any(row.work for row in rows):
        unit, _, worth = work_scale(rows)
        found.append([unit, *flush([row.work for row in rows], worth, dash=dash)])
    return found
