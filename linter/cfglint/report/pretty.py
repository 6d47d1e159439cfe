"""The report for people: each finding with its line, its arithmetic and its fix."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from rich.text import Text

from cfglint.report.memory import memory_told
from cfglint.report.order import Lines, fix_key, grouped, shown
from cfglint.report.snippet import changes, difference, window
from cfglint.report.summary import counts, undecided
from cfglint.report.terminal import wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cfglint.findings import Finding, Fix, Report
    from cfglint.report.order import Group
    from cfglint.report.snippet import Change

_LEVELS = {"error": "bold red", "warning": "bold yellow", "info": "bold cyan"}
_GUTTER = "blue"
_UNWRAPPED = 160  # cells of a source line that a pipe or a file gets
_NARROWEST = 20  # cells of source below which a window shows nothing useful
_CHANGED = 4  # changed lines and related places shown without --verbose
_RELATED = 2


def as_text(report: Report, *, color: bool, width: int, verbose: bool) -> str:
    """Return the findings one by one, what stayed undecided, and the summary."""
    out = StringIO()
    # The caller has decided about colour; rich must not look at TERM, NO_COLOR or COLUMNS again.
    console = Console(
        file=out, force_terminal=color, color_system="standard" if color else None, no_color=not color,
        legacy_windows=False, force_jupyter=False, highlight=False, markup=False, emoji=False, _environ={},
    )  # fmt: skip
    groups = grouped(report.findings)
    page = _Page(report, width, verbose=verbose)
    for group in groups:
        page.finding(group)
    for line in undecided(report, verbose=verbose):
        page.add((line, "dim"))
    page.add((counts(report, groups), "bold"))
    console.print(Text("\n").join(page.rows), soft_wrap=True)
    return out.getvalue()


class _Page:
    """Collects the rows; ``gutter`` is the width of the line numbers of the finding at hand."""

    def __init__(self, report: Report, width: int, *, verbose: bool) -> None:
        self.rows: list[Text] = []
        self.width = width
        self.verbose = verbose
        self.lines = Lines(report)
        self.texts = report.texts
        self.gutter = 1
        self.told: dict[tuple[object, ...], str] = {}

    def add(self, *parts: tuple[str, str]) -> None:
        # Text objects, never strings: rich reads markup such as [red] in strings.
        row = Text()
        for text, style in parts:
            row.append(text, style)
        self.rows.append(row)

    def tell(self, label: str, text: str, style: str = "") -> None:
        """Add a sentence under the source, wrapped; ``label`` is what stands before it, in ``style``."""
        indent = " " * (self.gutter + 1)
        first, *rest = wrap(f"{label}{text}", self.width, indent, indent + "  ")
        self.add(
            (indent, ""), (first[len(indent) :][: len(label)], style), (first[len(indent) + len(label) :], "")
        )
        for line in rest:
            self.add((line, ""))

    def finding(self, group: Group) -> None:
        finding = group.first
        place = finding.place
        index = self.lines.index(place.path)
        fixes = group.fixes()
        changed = [changes(index, fix.edits) if fix else [] for fix, _ in fixes]
        last = max((c.new_line + len(c.new) - 1 for found in changed for c in found), default=0)
        # The empty line behind the last line break has no number in an editor.
        self.gutter = len(str(max(len(index.starts) - index.text.endswith("\n"), last)))
        color = _LEVELS[finding.level]
        self.add(
            (self.lines.where(place.path, place.start), "bold"),
            (": ", ""),
            (f"{finding.level} {shown(finding.code)}", color),
            (f" {shown(finding.name)}{' (may)' if finding.possible else ''}", ""),
            (f" {group.label}" if group.label else "", "magenta"),
        )
        self.source(group, color)
        for line in finding.message.splitlines():
            self.tell("", shown(line))
        for arithmetic, targets in group.variants(lambda f: f.arithmetic, lambda text: text):
            for line in arithmetic.splitlines():
                said = shown(line).removeprefix("=").strip()
                self.tell("= ", f"{said} [{targets}]" if targets else said, "bold")
        if self.verbose:
            self.background(group)
        for (fix, targets), lines in zip(fixes, changed, strict=True):
            if fix:
                self.fix(group, fix, targets, lines)
        for unfixed, names in group.variants(lambda f: f.unfixed, lambda text: text):
            if unfixed:
                self.tell(f"no fix [{names}]: " if names else "no fix: ", shown(unfixed), "yellow")
        self.alternatives(group, has_fix=any(fix for fix, _ in fixes))
        self.related(group)
        self.add()

    def source(self, group: Group, color: str) -> None:
        """Add the line with a caret under every cell of the value; of a longer span its first line."""
        place = group.first.place
        if not self.texts.get(place.path):
            return
        index = self.lines.index(place.path)
        line, column = self.lines.position(place.path, place.start)
        text = index.line(line)
        start = min(column - 1, len(text))
        end = (
            len(text.rstrip())
            if place.end > place.start + len(text) - start
            else start + place.end - place.start
        )
        cut, at, span = window(text, start, end, self.room())
        self.add((f"{line:>{self.gutter}} |", _GUTTER), (f" {cut}" if cut else "", ""))
        self.add((f"{'':>{self.gutter}} | ", _GUTTER), (" " * at, ""), ("^" * max(span, 1), color))

    def room(self) -> int:
        """The cells that a source line may take."""
        return max(self.width - self.gutter - 3, _NARROWEST) if self.width else _UNWRAPPED

    def background(self, group: Group) -> None:
        """Add the rule's reason, its source and the facts."""
        if group.first.why:
            self.tell("why: ", shown(group.first.why), "bold")
        if group.first.see:
            self.tell("see: ", shown(group.first.see), "bold")
        for facts, targets in group.variants(
            lambda f: f.facts, lambda facts: tuple((f.name, f.value, f.source) for f in facts)
        ):
            if facts:
                said = "; ".join(f"{shown(f.name)} {shown(f.value)} ({shown(f.source)})" for f in facts)
                self.tell(f"facts [{targets}]: " if targets else "facts: ", said, "bold")

    def fix(self, group: Group, fix: Fix, targets: str, changed: Sequence[Change]) -> None:
        """Add the fix with the lines that it changes; one that was shown before is only named."""
        place = group.first.place
        key = (place.path, *fix_key(fix))
        label = f"fix ({_kind(fix)}){f' [{targets}]' if targets else ''}: "
        if key in self.told and fix.edits:
            self.tell(label, f"{shown(fix.title)}, the same as at {self.told[key]}", "green")
            return
        self.told[key] = self.lines.where(place.path, place.start)
        self.tell(label, _title(fix), "green")
        rows = [row for change in changed for row in _diff_rows(change)]
        many = len(rows) if self.verbose else _CHANGED
        for number, sign, text, start, end in rows[:many]:
            cut, _, _ = window(text, start, end, self.room())
            style = "red" if sign == "-" else "green"
            self.add((f"{number:>{self.gutter}} ", _GUTTER), (f"{sign} {cut}".rstrip(), style))
        if rows[many:]:
            self.tell("", f"… {len(rows) - many} more changed lines")
        for told, names in group.variants(_memory_of(fix), lambda text: text):
            if told:
                self.tell(f"memory [{names}]: " if names else "memory: ", told, "green")
        if fix.next:
            self.tell("if it still runs out: ", shown(", then ".join(fix.next)), "green")

    def alternatives(self, group: Group, *, has_fix: bool) -> None:
        """Add other ways out: the first, or with --verbose all."""
        found: dict[object, Fix] = {}
        for member in group.members:
            for fix in member.alternatives:
                found.setdefault(fix_key(fix), fix)
        others = list(found.values())
        elsewhere = [
            fix for fix in others if not fix.edits and fix.target
        ]  # other hardware, said in any case
        others = [fix for fix in others if fix not in elsewhere]
        many = len(others) if self.verbose else 1
        word = "or" if has_fix else "try"
        for fix in others[:many] + elsewhere:
            kind = "" if fix.applicability == "display" and fix.certainty == "sure" else f" ({_kind(fix)})"
            rest = f" (+{len(others) - many} more)" if len(others) > many and fix in others else ""
            self.tell(f"{word}{kind}: ", _title(fix) + rest, "green")

    def related(self, group: Group) -> None:
        """Add the other places that the finding speaks of."""
        places = group.first.related
        many = len(places) if self.verbose else _RELATED
        for other in places[:many]:
            where = self.lines.where(other.place.path, other.place.start)
            self.tell("also: ", f"{where} {shown(other.message)}", "bold")
        if places[many:]:
            more = len(places) - many
            self.tell("also: ", f"{more} more place{'s' * (more > 1)}", "bold")


def _kind(fix: Fix) -> str:
    kind = "display-only" if fix.applicability == "display" else fix.applicability
    return f"{kind}, may not suffice" if fix.certainty == "may" else kind


def _title(fix: Fix) -> str:
    effect = f" — {shown(fix.effect)}" if fix.effect else ""
    only = f" (right for {shown(fix.target)} alone)" if fix.target and fix.edits else ""
    return f"{shown(fix.title)}{effect}{only}"


def _memory_of(fix: Fix) -> Callable[[Finding], str]:
    """Return what reads, of a finding with this fix, what the fix does to the memory of its target."""

    def read(finding: Finding) -> str:
        own = finding.fix
        return memory_told(own.memory) if own is not None and fix_key(own) == fix_key(fix) else ""

    return read


def _diff_rows(change: Change) -> list[tuple[int, str, str, int, int]]:
    """Return number, sign, text and changed span of each line, so that a cut shows the change."""
    rows = []
    pairs = len(change.old) == len(change.new)
    for sign, first, mine, theirs in (
        ("-", change.old_line, change.old, change.new),
        ("+", change.new_line, change.new, change.old),
    ):
        for i, text in enumerate(mine):
            start, end = difference(text, theirs[i]) if pairs else (0, 0)
            rows.append((first + i, sign, text, start, end))
    return rows
