"""Markdown, for a comment on a pull request: a section per file, the fix of each finding as a diff."""

from __future__ import annotations

from cfglint.report.markdown import escaped
from cfglint.report.memory import memory_told
from cfglint.report.order import Lines, grouped, shown
from cfglint.report.snippet import changes
from cfglint.report.summary import counts, undecided

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.findings import Fix, Report
    from cfglint.report.order import Group

_SIGNS = {"error": "❌", "warning": "⚠️", "info": "💡"}


def as_markdown(report: Report) -> str:
    """Return the findings by file, then the closing lines."""
    lines = Lines(report)
    groups = grouped(report.findings)
    rows: list[str] = []
    path = None
    for group in groups:
        if group.first.place.path != path:
            path = group.first.place.path
            rows += [f"### {escaped(shown(path))}", ""]
        rows += [*_finding(lines, group), ""]
    rows += [f"{escaped(line)}  " for line in undecided(report, verbose=False)]
    return "\n".join([*rows, f"**{escaped(counts(report, groups))}**"]) + "\n"


def _finding(lines: Lines, group: Group) -> Iterator[str]:
    finding = group.first
    line, column = lines.position(finding.place.path, finding.place.start)
    may = " (may)" if finding.possible else ""
    where = f"line {line}:{column}{f', {group.label[1:-1]}' if group.label else ''}"
    sign, name = _SIGNS[finding.level], escaped(shown(finding.name))
    yield f"{sign} **{finding.code}** {name}{may}, {escaped(where)}  "
    yield escaped(shown(finding.message))
    for arithmetic, targets in group.variants(lambda f: f.arithmetic, lambda text: text):
        for one in arithmetic.splitlines():
            told = shown(one).removeprefix("=").strip()
            yield f"> {escaped(told)}{escaped(f' [{targets}]') if targets else ''}"
    for fix, targets in group.fixes():
        if fix is not None:
            yield ""
            yield from _fix(lines, finding.place.path, fix, targets)


def _fix(lines: Lines, path: str, fix: Fix, targets: str) -> Iterator[str]:
    kind = "display-only" if fix.applicability == "display" else fix.applicability
    sure = "" if fix.certainty == "sure" else ", may not suffice"
    effect = f" — {escaped(shown(fix.effect))}" if fix.effect else ""
    where = escaped(f" [{targets}]") if targets else ""
    yield f"Fix{where} ({kind}{sure}): {escaped(shown(fix.title))}{effect}"
    if fix.memory:
        yield f"Memory: {escaped(memory_told(fix.memory))}"
    if not fix.edits:
        return
    rows = []
    for change in changes(lines.index(path), fix.edits):
        rows += [f"-{shown(text)}" for text in change.old]
        rows += [f"+{shown(text)}" for text in change.new]
    # A longer fence than any in the text keeps it inside.
    longest = max((len(row) - len(row.replace("`", "")) for row in rows), default=0)
    fence = "`" * max(3, longest + 1)
    yield from ("", f"{fence}diff", *rows, fence)
