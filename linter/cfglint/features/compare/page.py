"""The comparison for people: what matters first, then settings, memory and findings in two columns."""

from __future__ import annotations

from cfglint.features.compare import words
from cfglint.features.fit.words import DASH, VERDICT_COLORS, aligned, gib, spread
from cfglint.report.order import shown
from cfglint.report.terminal import wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.memory import FitRow
    from cfglint.features.compare.compute import Comparison, Difference
    from cfglint.report import Style

    Pieces = list[tuple[str, str]]
    Row = tuple[str, str, str, str]

_GAP = "  "
_LONGEST = 30  # cells of a value that stands in a column
_WIDEST = 28  # cells of the names' column
_WIDEST_KEY, _LEAST_KEY = 60, 12  # of a key's column
_TABLES = 3  # targets whose parts are told without --verbose


def as_text(comparison: Comparison, style: Style, *, verbose: bool) -> str:
    """Return the page."""
    page = _Page(comparison, style, verbose=verbose)
    page.write()
    if not style.color:
        return "".join("".join(text for text, _ in row).rstrip() + "\n" for row in page.rows)
    from cfglint.report.terminal import painted  # rich is only for terminals

    return painted(page.rows)


class _Page:
    """Collects rows of texts with their colours."""

    def __init__(self, comparison: Comparison, style: Style, *, verbose: bool) -> None:
        self.comparison = comparison
        self.style = style
        self.verbose = verbose
        self.rows: list[Pieces] = []
        self.dash = DASH if style.unicode else "-"

    def add(self, *pieces: tuple[str, str]) -> None:
        self.rows.append(list(pieces))

    def tell(self, text: str, color: str = "", *, first: str = "", rest: str = "  ", bold: str = "") -> None:
        """Add a sentence, wrapped; ``first`` stands before it, in the style ``bold``."""
        text = text if self.style.unicode else text.replace("…", "...").replace(DASH, "-")
        lines = wrap(first + text, self.style.width, "", rest)
        self.add((lines[0][: len(first)], bold or color), (lines[0][len(first) :], color))
        for line in lines[1:]:
            self.add((line, color))

    def head(self, title: str) -> None:
        self.add()
        self.add((title, "bold"))

    def write(self) -> None:
        self.summary()
        if not self.comparison.same:
            self.settings()
            self.derived()
            self.keys()
        self.memory()
        found = words.findings(self.comparison)
        if found:
            self.add()
            for i, line in enumerate(found):
                self.tell(line, "bold" if i == 0 else "")

    # ── what matters ───────────────────────────────────────────────────────────────────────────────────
    def summary(self) -> None:
        comparison = self.comparison
        self.tell(words.who(comparison.a), first="A  ", rest="   ", bold="bold cyan")
        self.tell(words.who(comparison.b), first="B  ", rest="   ", bold="bold magenta")
        self.add()
        self.tell(words.differing(comparison), "bold")
        for line in words.fitting(comparison, dash=self.dash):
            self.tell(line)
        for line in (*words.costs(comparison), *words.arithmetic(comparison.ratios)):
            self.tell(line)

    # ── settings ───────────────────────────────────────────────────────────────────────────────────────
    def settings(self) -> None:
        told = words.told(self.comparison)
        if told:
            widths = self.widths(told)
            self.header("what differs", widths)
            for group, found in words.groups(told):
                self.add((group, "bold"))
                for one in found:
                    self.setting(one, widths)
        silent = [d for d in self.comparison.settings if d.by_default]
        for name, held in (("A", [d for d in silent if d.a.known]), ("B", [d for d in silent if d.b.known])):
            if held:
                self.add()
                most = len(held) if self.verbose else 6
                names = words.few([f"{d.name} {words.value(d.a if d.a.known else d.b)}" for d in held], most)
                self.tell(f"by default, in {name} alone: {names}", "dim")

    def widths(self, found: Sequence[Difference]) -> tuple[int, int, int]:
        """Return the cells of the columns for names and values; long values stand below."""
        name = min(max(len(shown(d.name)) for d in found), _WIDEST)
        most = _LONGEST
        if self.style.width:
            most = max(min(_LONGEST, (self.style.width - name - 3 * len(_GAP)) // 2), 8)
        columns = [words.value(d.a) for d in found], [words.value(d.b) for d in found]
        a, b = (max([1, *(len(text) for text in c if len(text) <= most)]) for c in columns)
        return name, a, b

    def header(self, title: str, widths: tuple[int, int, int], last: str = "") -> None:
        self.add()
        name, a, b = widths
        line = f"{title.ljust(name + len(_GAP))}{_GAP}"
        a = max(a - (len(line) - name - 2 * len(_GAP)), 1)  # a title may be longer than the names
        pieces = [(line, "dim"), ("A".rjust(a), "cyan"), (_GAP + "B".rjust(b), "magenta")]
        self.add(*pieces, *([(_GAP + last, "dim")] if last else []))

    def values(self, name: str, a: str, b: str, widths: tuple[int, int, int], color: str = "") -> None:
        """Add a name with its values; what is too long for a column stands below."""
        room, *cells = widths
        if len(a) <= cells[0] and len(b) <= cells[1] and len(name) <= room:
            line = f"{_GAP}{name.ljust(room)}{_GAP}"
            self.add((line, color), (a.rjust(cells[0]), "cyan"), (_GAP + b.rjust(cells[1]), "magenta"))
            return
        self.add((_GAP + name, color))
        for text, label, paint in ((a, "A", "cyan"), (b, "B", "magenta")):
            self.tell(text, paint, first=f"    {label} ", rest="      ")

    def setting(self, one: Difference, widths: tuple[int, int, int]) -> None:
        self.values(shown(one.name), words.value(one.a), words.value(one.b), widths)
        if one.about:
            self.tell(shown(one.about), "dim", first="    ", rest="    ")
        self.tell(words.where(one), "dim", first="    ", rest="      ")
        for line in words.effects(one):
            self.tell(line, "yellow" if one.alters else "green", first="    ", rest="      ")
        for source in words.sources(one) if self.verbose else ():
            self.tell(shown(source), "dim", first="    source: ", rest="      ")

    def derived(self) -> None:
        found = [d for d in self.comparison.derived if self.verbose or not d.own]
        if not found:
            return
        widths = self.widths(found)
        ratios = ["" if d.ratio is None else words.factor(d.ratio) for d in found]
        room = max(*map(len, ratios), len("B / A"))
        several = len(self.comparison.a.rows) > 1 and not self.comparison.every
        where = f" [{shown(self.comparison.a.rows[0].target)}]" if several else ""
        self.header(f"what follows{where}", widths, "B / A")
        for one, ratio in zip(found, ratios, strict=True):
            self.values(shown(one.name), words.value(one.a), words.value(one.b), widths)
            about = shown(one.about)
            taken = sum(len(text) for text, _ in self.rows[-1]) + len(_GAP) * 2 + room + len(about)
            beside = not self.style.width or taken <= self.style.width
            cells = f"{_GAP}{ratio.ljust(room)}{_GAP}{about if beside else ''}"
            self.rows[-1].append((cells, "dim"))
            if about and not beside:
                self.tell(about, "dim", first="    ", rest="    ")

    # ── keys that no setting stands for ────────────────────────────────────────────────────────────────
    def keys(self) -> None:
        comparison = self.comparison
        if not comparison.alike:
            self.add()
            for name, half in (("A", comparison.a), ("B", comparison.b)):
                self.tell(words.unread(half, name), "dim")
            return
        lines, left = words.listed(comparison.keys, verbose=self.verbose)
        if not lines:
            return
        most = max(min(_LONGEST, (self.style.width - _WIDEST) // 2), 8) if self.style.width else _LONGEST
        a, b = (max([1, *(len(line[i]) for line in lines if len(line[i]) <= most)]) for i in (1, 2))
        room = max(self.style.width - a - b - 3 * len(_GAP), _LEAST_KEY) if self.style.width else _WIDEST_KEY
        widths = (min(max(len(line[0]) for line in lines), room), a, b)
        self.header("other keys", widths)
        for line in lines:
            self.values(*line, widths)
        if left:
            self.tell(f"and {left} more; --verbose lists them", "dim", first=_GAP)

    # ── memory ─────────────────────────────────────────────────────────────────────────────────────────
    def memory(self) -> None:
        rows = words.pairs(self.comparison)
        shown_rows = self.chosen(rows)
        for one, other in shown_rows:
            self.table(one, other)
        if len(rows) > len(shown_rows) and not self.comparison.every:
            left = len(rows) - len(shown_rows)
            self.tell(f"and {words.many(left, 'target')} more; --verbose shows the memory of all", "dim")

    def chosen(self, rows: list[tuple[FitRow, FitRow]]) -> list[tuple[FitRow, FitRow]]:
        """Return the targets whose parts are told: of a catalogue, the one that tells most."""
        if not self.comparison.every:
            return rows if self.verbose else rows[:_TABLES]
        return words.telling(rows)

    def table(self, one: FitRow, other: FitRow) -> None:
        parts = [(part, span, other.parts[part]) for part, span in one.parts.items()]
        parts = [line for line in parts if line[1].high > 0 or line[2].high > 0]
        parts.append(("= need", one.need_gib, other.need_gib))
        columns = [
            ["", *(part for part, *_ in parts)],
            ["A", *aligned([a for _, a, _ in parts], dash=self.dash)],
            ["B", *aligned([b for *_, b in parts], dash=self.dash)],
            ["B - A", *(words.change(a, b) for _, a, b in parts)],
        ]
        peaks = [row.trainer.moment or "" if row.trainer is not None else "" for row in (one, other)]
        columns[0].append("verdict")
        for column, row in zip(columns[1:3], (one, other), strict=True):
            column.append(row.verdict)
        if any(peaks):
            columns[0].append("peak at")
            for column, peak in zip(columns[1:3], peaks, strict=True):
                column.append(shown(peak) or "-")
        columns[3] += [""] * (len(columns[0]) - len(columns[3]))
        if one == other:
            columns = [columns[0], ["both", *columns[1][1:]]]
        capacity = f"{gib(one.capacity_gib)} GiB" if one.capacity_gib is not None else "a capacity not known"
        self.head(f"{shown(one.target)}: of {capacity} on the fullest GPU")
        self.cells(columns, len(parts))
        told = [("A", one), ("B", other)] if one != other else [("both", one)]
        for name, row in told:
            if row.trainer is not None and row.trainer.allocated_gib.high < float("inf"):
                allocated = spread(row.trainer.allocated_gib, dash=self.dash)
                reserved = spread(row.trainer.reserved_gib, dash=self.dash)
                self.tell(
                    f"{name}: PyTorch allocates {allocated} GiB at its peak, reserves {reserved}", "dim"
                )

    def cells(self, columns: list[list[str]], need: int) -> None:
        """Add a table whose first column is flush left; ``need`` is the row of the sums."""
        widths = [max(map(len, column)) for column in columns]
        for i, name in enumerate(columns[0]):
            style = "dim" if i == 0 else "bold" if i == need else ""
            pieces = [(name.ljust(widths[0]), style)]
            for column, width in zip(columns[1:], widths[1:], strict=True):
                color = VERDICT_COLORS.get(column[i], style) if i > need else style
                pieces.append((_GAP + column[i].rjust(width), color))
            self.add(*pieces)
