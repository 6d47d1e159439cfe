"""The page of findings: each with its line, its arithmetic and its fix; in Markdown by file, with diffs."""

from __future__ import annotations

import re

from cfglint.findings import LEVELS
from cfglint.record import Record, replace
from cfglint.report import Style, verdicts
from cfglint.report.blocks import (
    Blank,
    Column,
    Diff,
    Line,
    Paragraph,
    Table,
    heading,
    kind_of,
    many,
    note,
    range_of,
    title_of,
    verdict,
)
from cfglint.report.changes import Change, changes, difference, window
from cfglint.report.forms import as_text, escaped
from cfglint.report.order import JOBS, Group, Lines, counts, coverage, fix_key, grouped, unchecked
from cfglint.report.outcome import price_told, results_told, stale_told
from cfglint.text import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cfglint.findings import Finding, Fix, Job, Report
    from cfglint.report.blocks import Block

_LINES, _WIDTH = 12, 80  # of a job without --verbose, and the cells of each where there is no terminal
_ROWS = 30  # jobs of a comment
_BRIEF = 3  # lines for the findings after the first
_SAID = 2  # of a message before them
_TITLE, _MESSAGE = 1, 2  # ranks of a finding's parts: what to do, and what is wrong
_VERDICTS = ("", "bold")
_LEVELS = {"error": "bold red", "warning": "bold yellow", "info": "bold cyan"}
_SIGNS = {"error": "❌", "warning": "⚠️", "info": "💡"}
_GUTTER = "blue"
_UNWRAPPED = 160  # cells of a source line that a pipe or a file gets
_NARROWEST = 20  # cells of source below which a window shows nothing useful
_CHANGED = 4  # changed lines and related places shown without --verbose
_RELATED = 2
_WRAPPED = 8  # cells of a line that its indent and a word that does not fit take
# Of an effect: a package without which the launch stops, and what is saved then, which others load.
_NEEDS = re.compile(r"\((?:needs|checkpoints hold|[^()]+, then needs) [^()]+\)")
_TITLE_LINES = 2  # that a fix's title and effects may take without --verbose


def page(report: Report, style: Style, *, verbose: bool) -> Iterator[Block]:
    """Yield the findings one by one, what stayed undecided, and the summary."""
    groups = grouped(report.findings)
    if style.markdown:
        yield from _comment(report, groups)
        return
    text = _Text(report, style.width, verbose=verbose)
    for jobs, own in _units(report, groups):
        yield from text.unit(jobs, own)
    for line in unchecked(report, verbose=verbose):
        yield Paragraph(line, "dim", rest="    ")
    yield Paragraph(counts(report, groups), "bold")
    yield from map(Paragraph, coverage(report))


def _units(report: Report, groups: Sequence[Group]) -> Iterator[tuple[list[Job], list[Group]]]:
    """Yield each job with its findings, the most harmful first.

    Of many jobs those that have any, or may not fit. A finding is of the last job that starts before it in
    its file, or of the first.
    """
    every = verdicts.grouped(report.jobs)
    own: dict[int, list[Group]] = {}
    alone: list[Group] = []
    for group in groups:
        place = group.first.place
        beside = [i for i, jobs in enumerate(every) if jobs[0].path == place.path]
        above = [i for i in beside if every[i][0].start <= place.start]
        if beside:
            own.setdefault(above[-1] if above else beside[0], []).append(group)
        else:
            alone.append(group)
    few = len(every) <= JOBS
    for i, jobs in enumerate(every):
        found = sorted(own.get(i, ()), key=lambda group: -LEVELS.index(group.first.level))
        harm = any(group.first.level != "info" for group in found)
        if harm or few or any(job.memory.verdict in ("oom", "tight") for job in jobs):
            yield jobs, found
    yield from (([], [group]) for group in alone)


def _arithmetic(group: Group) -> Iterator[str]:
    for arithmetic, targets in group.variants(lambda finding: finding.arithmetic):
        for line in arithmetic.splitlines():
            yield shown(line).removeprefix("=").strip() + (f" [{targets}]" if targets else "")


# ── Markdown ─────────────────────────────────────────────────────────────────────────────────────────────
def _comment(report: Report, groups: Sequence[Group]) -> Iterator[Block]:
    lines = Lines(report.texts)
    if report.jobs:
        yield _verdicts(report)
    path = None
    for group in groups:
        finding = group.first
        if finding.place.path != path:
            path = finding.place.path
            yield Paragraph(shown(path), md="### {}")
        line, column = lines.position(path, finding.place.start)
        may = " (may)" if finding.possible else ""
        where = f"line {line}:{column}{f', {group.label[1:-1]}' if group.label else ''}"
        sign = _SIGNS[finding.level]
        yield Paragraph(f"{shown(finding.name)}{may}, {where}", md=f"{sign} **{finding.code}** {{}}  ")
        yield Paragraph(shown(finding.message))
        for text in _arithmetic(group):
            yield Paragraph(text, md="> {}", joined=True)
        for reason, targets in group.variants(lambda finding: finding.range_reason):
            if reason:
                yield Paragraph(shown(reason) + (f" [{targets}]" if targets else ""))
        for fix, targets in group.fixes():
            if fix is not None:
                yield from _fix(lines, path, fix, targets)
        yield Blank()
    yield from map(note, unchecked(report, verbose=False))
    yield heading(counts(report, groups))
    yield from map(note, coverage(report))


def _verdicts(report: Report) -> Table:
    """Return a line for each job and target, those that may not fit first."""
    jobs = sorted(report.jobs, key=lambda job: verdicts.ORDER.index(job.memory.verdict))[:_ROWS]
    memories = [job.memory for job in jobs]
    return Table(
        [
            Column("job", [verdicts.about(job) for job in jobs], left=True),
            Column("GPU", [shown(job.memory.target) for job in jobs], left=True),
            Column("GiB needed, 90 %", [range_of(job.memory.need_gib, 1) for job in jobs]),
            Column("of", [verdicts.capacity(job.memory, "") for job in jobs]),
            Column("verdict", [verdict(job.memory) for job in jobs], left=True),
            Column("", ["; ".join(filter(None, (verdicts.note(m), m.ask))) for m in memories], left=True),
        ]
    )


def _fix(lines: Lines, path: str, fix: Fix, targets: str) -> Iterator[Block]:
    where = escaped(f" [{targets}]") if targets else ""
    yield Paragraph(title_of(fix), md=f"Fix{where} ({kind_of(fix)}): {{}}")
    if price_told(fix):
        yield Paragraph(price_told(fix), md="Memory: {}" if fix.memory else "Time: {}", joined=True)
    if fix.results:
        yield Paragraph(results_told(fix.results), md="Results: {}", joined=True)
    if fix.edits:
        rows = [row for change in changes(lines.index(path), fix.edits) for row in _diff_rows(change)]
        yield Diff([row.sign + shown(row.text) for row in rows])
    for each in fix.stale:
        yield Paragraph(stale_told(lines.position(path, each.start)[0], each))


class _Part(Record):
    """Blocks of a finding, and when they are left out where there is no room for all."""

    rank: int
    blocks: Sequence[Block]


# ── text ─────────────────────────────────────────────────────────────────────────────────────────────────
class _Text:
    """Makes the lines of findings; ``gutter`` is the width of the line numbers of the finding at hand."""

    def __init__(self, report: Report, width: int, *, verbose: bool) -> None:
        self.width = width
        self.verbose = verbose
        self.lines = Lines(report.texts)
        self.gutter = 1
        self.shown_fixes: dict[tuple[object, ...], str] = {}

    def tell(self, label: str, text: str, style: str = "") -> Paragraph:
        """Return a sentence under the source; ``label`` is what comes before it, in ``style``."""
        indent = " " * (self.gutter + 1)
        return Paragraph(text, lead=indent + label, lead_style=style, rest=indent + "  ")

    def variants(
        self, label: str, group: Group, read: Callable[[Finding], str], style: str
    ) -> Iterator[Block]:
        """Yield what ``read`` gives for a group's findings, with the targets where it differs."""
        for text, targets in group.variants(read):
            if text:
                lead = f"{label} [{targets}]".strip() if targets else label
                yield self.tell(f"{lead}: " if lead else "", shown(text), style)

    def unfixed(self, group: Group) -> Iterator[Block]:
        """Yield why there is no fix; without --verbose the beginning, so that the ways out stay in sight."""
        for block in self.variants("no fix", group, lambda finding: finding.unfixed, "yellow"):
            short = self.verbose or self.height([block]) <= _TITLE_LINES
            yield block if short else self.beginning([block], _TITLE_LINES)

    def unit(self, jobs: Sequence[Job], groups: Sequence[Group]) -> Iterator[Block]:
        """Yield a job's verdict and its findings; without --verbose in few lines."""
        head = [
            Paragraph(line.lstrip(), _VERDICTS[i > 0], line[: len(line) - len(line.lstrip())], rest="    ")
            for i, line in enumerate(verdicts.block(jobs, verbose=self.verbose) if jobs else ())
        ]
        yield from head
        if self.verbose or not jobs:
            for group in groups:
                yield from self.finding(group)
            return
        harmful = [group for group in groups if group.first.level != "info"][:1]
        rest = [group for group in groups if group not in harmful]
        room = _LINES - self.height(head)
        for group in harmful:
            parts = list(self.parts(group))
            sizes = [(part.rank, self.height(part.blocks)) for part in parts if part.rank <= _MESSAGE]
            needed = sum(min(size, _SAID) if rank == _MESSAGE else size for rank, size in sizes)
            briefs = min(len(rest), _BRIEF, max(room - needed, 1))
            yield from self.fitted(parts, room - briefs)
        yield from self.brief(rest, briefs if harmful else _BRIEF)
        yield Blank()

    def height(self, blocks: Sequence[Block]) -> int:
        """Return how many lines blocks take on a terminal, or on one of 80 cells."""
        return as_text(blocks, Style(width=self.width or _WIDTH)).count("\n")

    def fitted(self, parts: Sequence[_Part], room: int) -> Iterator[Block]:
        """Yield as many parts of a finding as there is room for, those with the lowest rank first.

        Where it is and what to do are said in any case; of a message that is too long, its beginning, be it
        one line.
        """
        chosen: dict[int, Sequence[Block]] = {}
        for i in sorted(range(len(parts)), key=lambda i: parts[i].rank):
            part = parts[i]
            height = self.height(part.blocks)
            if part.rank <= _TITLE or height <= room:
                chosen[i] = part.blocks
            elif part.rank == _MESSAGE:
                chosen[i] = [self.beginning(part.blocks, max(room, 1))]
                height = room
            else:
                height = 0
            room -= height
        for i in sorted(chosen):
            yield from chosen[i]

    def beginning(self, blocks: Sequence[Block], room: int) -> Paragraph:
        """Return as much of a paragraph as ``room`` lines hold."""
        first = next(block for block in blocks if isinstance(block, Paragraph))
        words = first.text.split(" ")
        while words and self.height([replace(first, text=" ".join(words) + " …")]) > room:
            words.pop()
        return replace(first, text=" ".join(words) + " …")

    def brief(self, groups: Sequence[Group], most: int) -> Iterator[Block]:
        """Yield a line for each of the next findings, the last of which counts the rest."""
        for group in groups if len(groups) <= most else groups[: most - 1]:
            finding = group.first
            line, column = self.lines.position(finding.place.path, finding.place.start)
            said = shown(finding.message.partition("\n")[0])
            text = f"{line}:{column} {finding.level} {shown(finding.code)} {said}"
            room = (self.width or _WIDTH) - 2
            yield Line([("  ", ""), (text if len(text) <= room else text[: room - 1] + "…", "")])
        if len(groups) > most:
            rest = [group.first.level for group in groups[most - 1 :]]
            told = ", ".join(many(rest.count(level), level) for level in reversed(LEVELS) if level in rest)
            yield Line([(f"  and {told}: -v shows them", "dim")])

    def finding(self, group: Group) -> Iterator[Block]:
        """Yield all of a finding."""
        yield from (block for part in self.parts(group) for block in part.blocks)
        yield Blank()

    def parts(self, group: Group) -> Iterator[_Part]:
        """Yield the parts of a finding; what is left out first has the highest rank."""
        finding = group.first
        index = self.lines.index(finding.place.path)
        fixes = [(fix, names, changes(index, fix.edits)) for fix, names in group.fixes() if fix]
        last = max((c.new_line + len(c.new) - 1 for *_, changed in fixes for c in changed), default=0)
        # The empty line after the last line break has no number in an editor.
        self.gutter = len(str(max(len(index.starts) - index.text.endswith("\n"), last)))
        where = (self.lines.where(finding.place.path, finding.place.start), "bold"), (":", "")
        what = [
            (f"{finding.level} {shown(finding.code)}", _LEVELS[finding.level]),
            (f" {shown(finding.name)}{' (may)' if finding.possible else ''}", ""),
            (f" {group.label}" if group.label else "", "magenta"),
        ]
        beside = not self.width or sum(len(text) for text, _ in (*where, *what)) < self.width
        yield _Part(
            0, [Line([*where, (" ", ""), *what])] if beside else [Line(where), Line([("  ", ""), *what])]
        )
        yield _Part(4, list(self.source(group)))
        yield _Part(_MESSAGE, [self.tell("", shown(line)) for line in finding.message.splitlines()])
        yield _Part(6, [self.tell("= ", text, "bold") for text in _arithmetic(group)])
        yield _Part(9, list(self.variants("", group, lambda finding: finding.range_reason, "")))
        if self.verbose:
            yield _Part(11, list(self.background(group)))
        for fix, targets, changed in fixes:
            title, *diff = self.fix(group, fix, targets, changed)
            yield _Part(_TITLE, [title])
            yield _Part(3, diff)
            yield _Part(4, list(self.untrue(group, fix)))
            yield _Part(_TITLE, list(self.outcome(group, fix)))
            if fix.next:
                then = shown(", then ".join(fix.next))
                yield _Part(8, [self.tell("if it still runs out of memory: ", then, "green")])
        yield _Part(_TITLE, list(self.unfixed(group)))
        yield _Part(7 if fixes else _TITLE, list(self.alternatives(group, word="or" if fixes else "try")))
        yield _Part(10, list(self.related(group)))

    def source(self, group: Group) -> Iterator[Block]:
        """Yield the line with a caret under every cell of the value; of a longer span its first line."""
        place = group.first.place
        if not self.lines.texts.get(place.path):
            return
        line, column = self.lines.position(place.path, place.start)
        text = self.lines.index(place.path).line(line)
        start = min(column - 1, len(text))
        end = start + place.end - place.start
        if end > len(text):
            end = len(text.rstrip())
        cut, at, span = window(text, start, end, self.room())
        yield Line([(f"{line:>{self.gutter}} |", _GUTTER), (f" {cut}" if cut else "", "")])
        caret = ("^" * max(span, 1), _LEVELS[group.first.level])
        yield Line([(f"{'':>{self.gutter}} | ", _GUTTER), (" " * at, ""), caret])

    def room(self) -> int:
        """Return how many cells a source line may take."""
        return max(self.width - self.gutter - 3, _NARROWEST) if self.width else _UNWRAPPED

    def background(self, group: Group) -> Iterator[Block]:
        """Yield the rule's reason, its source and the facts."""
        if group.first.why:
            yield self.tell("why: ", shown(group.first.why), "bold")
        for source in filter(None, group.first.see.split("; ")):
            yield self.tell("see: ", shown(source), "bold")
        yield from self.variants(
            "facts",
            group,
            lambda finding: "; ".join(f"{fact.name} {fact.value} ({fact.source})" for fact in finding.facts),
            "bold",
        )

    def fix(self, group: Group, fix: Fix, targets: str, changed: Sequence[Change]) -> Iterator[Block]:
        """Yield the fix with the lines that it changes; one that was shown before is only named."""
        place = group.first.place
        key = (place.path, *fix_key(fix))
        label = f"fix ({kind_of(fix)}){f' [{targets}]' if targets else ''}: "
        if key in self.shown_fixes and fix.edits:
            same = f"{shown(fix.title)}, the same as at {self.shown_fixes[key]}"
            yield self.tell(label, same, "green")
            return
        self.shown_fixes[key] = self.lines.where(place.path, place.start)
        yield self.tell(label, self.title(fix), "green")
        rows = [row for change in changed for row in _diff_rows(change)]
        most = len(rows) if self.verbose else _CHANGED
        for row in rows[:most]:
            cut, _, _ = window(row.text, row.start, row.end, self.room())
            style = "red" if row.sign == "-" else "green"
            number = (f"{row.number:>{self.gutter}} ", _GUTTER)
            yield Line([number, (f"{row.sign} {cut}".rstrip(), style)])
        if rows[most:]:
            yield self.tell("", f"… {many(len(rows) - most, 'more changed line')}")

    def untrue(self, group: Group, fix: Fix) -> Iterator[Block]:
        """Yield the comments that the fix makes untrue."""
        for each in fix.stale:
            line, _ = self.lines.position(group.first.place.path, each.start)
            yield self.tell("then untrue: ", stale_told(line, each), "yellow")

    def outcome(self, group: Group, fix: Fix) -> Iterator[Block]:
        """Yield the memory before and after a fix, and what the run learns from."""
        yield from self.variants(
            "memory",
            group,
            lambda finding: (
                price_told(finding.fix)
                if finding.fix is not None and fix_key(finding.fix) == fix_key(fix)
                else ""
            ),
            "green",
        )
        yield from self.variants(
            "results",
            group,
            lambda finding: (
                results_told(finding.fix.results)
                if finding.fix is not None and fix_key(finding.fix) == fix_key(fix)
                else ""
            ),
            "green",
        )

    def title(self, fix: Fix) -> str:
        """Return what a fix does, its effects where there is room for them, and always what it needs."""
        title = title_of(fix)
        if not self.verbose and len(title) > _TITLE_LINES * (_WIDTH - _WRAPPED):
            title = " ".join((shown(fix.title), *dict.fromkeys(_NEEDS.findall(shown(fix.effect)))))
        return title + (f" (for {shown(fix.target)} only)" if fix.target and fix.edits else "")

    def alternatives(self, group: Group, *, word: str) -> Iterator[Block]:
        """Yield other ways out: the first, or with --verbose all; other hardware in any case."""
        ways: dict[object, Fix] = {}
        for member in group.members:
            for fix in member.alternatives:
                ways.setdefault(fix_key(fix), fix)
        hardware = [fix for fix in ways.values() if not fix.edits and fix.target]
        others = [fix for fix in ways.values() if fix not in hardware]
        most = len(others) if self.verbose else 1
        for fix in others[:most] + hardware:
            kind = "" if fix.applicability == "display" and fix.certainty == "sure" else f" ({kind_of(fix)})"
            rest = f" (+{len(others) - most} more)" if len(others) > most and fix in others else ""
            price = f" ({price_told(fix)})" if self.verbose and price_told(fix) else ""
            yield self.tell(f"{word}{kind}: ", self.title(fix) + price + rest, "green")

    def related(self, group: Group) -> Iterator[Block]:
        """Yield the other places that the finding speaks of."""
        places = group.first.related
        most = len(places) if self.verbose else _RELATED
        for related in places[:most]:
            where = self.lines.where(related.place.path, related.place.start)
            yield self.tell("also: ", f"{where} {shown(related.message)}", "bold")
        if places[most:]:
            yield self.tell("also: ", many(len(places) - most, "more place"), "bold")


class _DiffRow(Record):
    """A line of a change, with the span in which it differs from the line across."""

    number: int
    sign: str
    text: str
    start: int
    end: int


def _diff_rows(change: Change) -> Iterator[_DiffRow]:
    """Yield the lines of a change, so that a cut shows what differs."""
    pairs = len(change.old) == len(change.new)
    for sign, first, mine, theirs in (
        ("-", change.old_line, change.old, change.new),
        ("+", change.new_line, change.new, change.old),
    ):
        for i, text in enumerate(mine):
            yield _DiffRow(first + i, sign, text, *(difference(text, theirs[i]) if pairs else (0, 0)))
