"""A diagnosis for people at a terminal: the sentence first, then the account, then what mends it."""

from __future__ import annotations

import textwrap

from cfglint.features.diagnose import words
from cfglint.features.fit.words import DASH, spread
from cfglint.report.order import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.features.diagnose.compute import Diagnosis, Judgement, Repair

_AGAIN = 5  # later failures that are told
_LEAST = 40
_FINDINGS = 3  # of those that no fix mends
_LEVELS = {"error": "red", "warning": "yellow", "info": "cyan"}


class _Page:
    def __init__(self, width: int, *, plain: bool) -> None:
        self.rows: list[list[tuple[str, str]]] = []
        self.width = max(width, _LEAST) if width else 0
        self.dash = "-" if plain else DASH
        self.plain = plain

    def add(self, text: str, style: str = "", indent: str = "", first: str = "") -> None:
        """Add a paragraph, wrapped to the page; ``first`` is a coloured word before it."""
        if self.plain:
            text = text.replace("\u2014", "-").replace(DASH, "-")
        head = f"{first} " if first else ""
        room = self.width or 10**6
        lines = textwrap.wrap(
            head + text, room, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ) or [""]
        for i, line in enumerate(lines):
            if i == 0 and head and line.startswith(first):
                self.rows.append([(first, style), (line[len(first) :], "")])
            else:
                self.rows.append([(line, "" if head else style)])

    def text(self, *, color: bool) -> str:
        if color:
            from cfglint.report.terminal import painted

            return painted(self.rows)
        return "\n".join("".join(part for part, _ in row) for row in self.rows) + "\n"


def as_text(found: Diagnosis, *, color: bool, width: int, plain: bool) -> str:
    """Return a diagnosis as text; ``width`` is 0 for a pipe."""
    page = _Page(width, plain=plain)
    told = found.told[0]
    page.add(words.headline(told), "bold")
    page.add(words.where(told.failure.first), "dim")
    for line in words.ranks(told):
        page.add(line, "dim", "  ")
    if told.again:
        page.add(f"the message came {told.again} more time{'s' * (told.again != 1)}", "dim")
    table = words.rows(told, found.judgement, dash=page.dash)
    if table:
        page.add("")
        _table(page, table, predicted=found.judgement is not None)
    lines = words.inside(told)
    if lines:
        page.add("")
        for line in lines:
            page.add(line, "dim", "  ")
    if found.judgement is not None:
        page.add("")
        _judged(page, found.judgement)
    if told.advice and (found.judgement is None or not found.judgement.repairs):
        page.add("")
        for line in told.advice:
            page.add(line, "green", "     ", "try:")
    later = words.again(found)
    if later:
        page.add("")
        for line in later[:_AGAIN]:
            page.add(line, "dim", "       ", "again:")
        if len(later) > _AGAIN:
            page.add(f"and {len(later) - _AGAIN} more")
    return page.text(color=color)


def _table(page: _Page, rows: list[words.Row], *, predicted: bool) -> None:
    head = ("GiB", "held", "predicted" if predicted else "", "")
    name, number, estimate = (max(len(row[i]) for row in (head, *rows)) for i in range(3))
    for i, row in enumerate((head, *rows)):
        cells = f"{row[0]:<{name}}  {row[1]:>{number}}"
        if estimate:
            cells += f"  {row[2]:>{estimate}}"
        remark = row[3]
        if remark and page.width and len(cells) + 2 + len(remark) > page.width:
            page.rows.append([(cells.rstrip(), "")])
            page.add(f"  {remark}", "dim", "  ")
            continue
        page.rows.append(
            [
                (cells.rstrip() if not remark else cells, "dim" if i == 0 else ""),
                (f"  {remark}" if remark else "", "dim"),
            ]
        )


def _judged(page: _Page, judgement: Judgement) -> None:
    page.add(f"{shown(judgement.path)}: {judgement.chosen}", "dim", "  ")
    if judgement.corrections:
        names = " and ".join(sorted({name.partition(".")[0] for name in judgement.corrections}))
        page.add(f"the measured numbers take the place of the estimates of {names}", "dim", "  ")
    if not judgement.repairs:
        for finding in judgement.findings[:_FINDINGS]:
            page.add(shown(finding.message), _LEVELS[finding.level], "  ", f"{finding.level} {finding.code}:")
        if judgement.row.verdict == "fits" and not judgement.findings:
            numbers = "the measured numbers" if judgement.corrections else "the estimates"
            page.add(f"by {numbers} this config fits: was it the one that ran?")
        elif judgement.row.verdict != "fits":
            page.add(
                "no single change of the config was proven to mend it; cfglint check says what stands "
                "in the way"
            )
        return
    for i, repair in enumerate(judgement.repairs):
        kind = repair.fix.applicability + (", may not suffice" if repair.fix.certainty == "may" else "")
        effect = f" \u2014 {shown(repair.fix.effect)}" if repair.fix.effect else ""
        page.add(
            f"{shown(repair.fix.title)}{effect}",
            "green" if i == 0 else "cyan",
            "  ",
            f"{'fix' if i == 0 else 'or'} ({kind}):",
        )
        for line in after(repair, page.dash):
            page.add(f"  {line}", "", "  ")
    page.add("")
    for line in judgement.repairs[0].diff.splitlines():
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        page.rows.append([(shown(line), style)])


def after(repair: Repair, dash: str) -> list[str]:
    """Return what the processes come to with a fix, and whether that fits."""
    parts = ", ".join(
        f"{name} {spread(old, dash=dash)} -> {spread(new, dash=dash)}" if spread(old) != spread(new)
        else f"{name} {spread(new, dash=dash)}"
        for name, old, new in repair.parts
    )  # fmt: skip
    capacity = f" of {repair.after.capacity_gib:.2f} GiB" if repair.after.capacity_gib is not None else ""
    return [f"{parts}: {spread(repair.after.need_gib, dash=dash)}{capacity}, {repair.after.verdict}"]
