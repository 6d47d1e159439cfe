"""A report in short: a line for each finding, and the closing lines, all that a clean run prints."""

from __future__ import annotations

from cfglint.report.order import Lines, grouped, shown, undecided_in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.findings import Fix, Report
    from cfglint.report.order import Group

_WANTED = 3


def as_concise(report: Report, *, verbose: bool) -> str:
    """Return ``path:line:column: level CODE message [target]`` per finding, then the closing lines."""
    lines = Lines(report)
    groups = grouped(report.findings)
    rows = []
    for group in groups:
        finding = group.first
        may = "(may) " if finding.possible else ""
        label = f" {group.label}" if group.label else ""
        where = lines.where(finding.place.path, finding.place.start)
        rows.append(f"{where}: {finding.level} {shown(finding.code)} {may}{shown(finding.message)}{label}\n")
    return "".join(rows) + closing(report, groups, verbose=verbose)


def closing(report: Report, groups: Sequence[Group], *, verbose: bool) -> str:
    """Return the undecided line, or with ``verbose`` the whole list, and the summary."""
    lines = undecided(report, verbose=verbose)
    lines.append(counts(report, groups))
    return "\n".join(lines) + "\n"


def undecided(report: Report, *, verbose: bool) -> list[str]:
    """Tell in one line how many rules want which facts; with ``verbose`` each of them as well."""
    if not report.undecided:
        return []
    wanted: dict[str, set[str]] = {}
    for open_rule in report.undecided:
        for name in open_rule.needs:
            wanted.setdefault(name, set()).add(open_rule.code)
    most = sorted(wanted.items(), key=lambda item: (-len(item[1]), item[0]))[:_WANTED]
    rules = len({open_rule.code for open_rule in report.undecided})
    files = len({open_rule.path for open_rule in report.undecided})
    line = f"undecided: {rules} rule{'s' * (rules != 1)}"
    if files > 1:
        line += f" in {files} files"
    if most:
        line += "; most wanted: " + ", ".join(f"{shown(name)} ({len(codes)})" for name, codes in most)
    if not verbose:
        return [line + "; --verbose lists them"]
    lines = [line]
    for rule in undecided_in_order(report):
        label = f" [{shown(rule.target)}]" if rule.target else ""
        wants = f" needs {', '.join(map(shown, rule.needs))}" if rule.needs else ""
        lines.append(f"  {shown(rule.path)}: {shown(rule.code)}{wants}{label}")
    return lines


def counts(report: Report, groups: Sequence[Group]) -> str:
    """Return ``2 errors, 1 warning in 3 files (5 skipped); 1 fixable with cfglint fix``.

    Counts what was printed: a finding that several targets share is one.
    """
    files = f"{report.files} file{'s' * (report.files != 1)}"
    skipped = f" ({report.skipped} skipped)" if report.skipped else ""
    if not groups:
        return f"no findings in {files}{skipped}"
    parts = []
    for level, many in (("error", "errors"), ("warning", "warnings"), ("info", "info")):
        number = sum(group.first.level == level for group in groups)
        if number:
            parts.append(f"{number} {level if number == 1 else many}")
    return f"{', '.join(parts)} in {files}{skipped}{_fixable(groups)}"


def _fixable(groups: Sequence[Group]) -> str:
    by_flags: dict[str, int] = {}
    for group in groups:
        ways = [
            _flags(fix, group.first.level)
            for fix, _ in group.fixes()
            if fix and fix.applicability != "display"
        ]
        if ways:
            # What one target can have without a flag counts so, even if another target needs more.
            best = min(ways, key=lambda way: (len(way), way))
            by_flags[" ".join(best)] = by_flags.get(" ".join(best), 0) + 1
    parts = []
    for flags, number in sorted(by_flags.items(), key=lambda item: (item[0].count("--"), item[0])):
        if not flags:
            parts.append(f"{number} fixable with cfglint fix")
        elif parts:
            parts.append(f"{number} more with {flags}")
        else:
            parts.append(f"{number} fixable with cfglint fix {flags}")
    return f"; {', '.join(parts)}" if parts else ""


def _flags(fix: Fix, level: str) -> tuple[str, ...]:
    """Return what ``cfglint fix`` must be told to apply ``fix``."""
    flags = ["--fix-level info"] if level == "info" else []
    if fix.applicability == "unsafe":
        flags.append("--unsafe")
    if fix.certainty == "may":
        flags.append("--accept-may")
    if fix.target is not None:  # no repair is right for all targets
        flags.append("--gpu NAME for one target at a time")
    return tuple(flags)
