"""Workflow commands: annotations on the lines of a pull request."""

from __future__ import annotations

import os

from cfglint.report.order import Lines, grouped, shown
from cfglint.report.summary import closing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.findings import Report
    from cfglint.report.order import Group

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def as_github(report: Report) -> str:
    """Return one workflow command per finding, then the closing lines."""
    lines = Lines(report)
    groups = grouped(report.findings)
    rows = [_command(lines, group) + "\n" for group in groups]
    # The runner still obeys the old `##[…]` commands in the middle of a line (actions/runner#4692).
    return "".join(rows) + closing(report, groups, verbose=False).replace("##[", "# #[")


def _command(lines: Lines, group: Group) -> str:
    finding = group.first
    place = finding.place
    line, column = lines.position(place.path, place.start)
    end_line, end_column = lines.position(place.path, place.end)
    if end_line > line and end_column == 1:
        # A span that takes its last line break along ends before the next line, not on it.
        end_line, end_column = lines.position(place.path, place.end - 1)
    properties: dict[str, str | int] = {}
    if place.path not in {"-", "<stdin>"}:
        properties = {"file": in_repository(place.path), "line": line, "endLine": end_line}
        if line == end_line:  # GitHub rejects columns on an annotation of several lines
            properties |= {"col": column, "endColumn": end_column}
    may = " (may)" if finding.possible else ""
    properties["title"] = f"{finding.code} {finding.name}{may}"
    told = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{_COMMANDS[finding.level]} {told}::{_data(body(group))}"


def body(group: Group) -> str:
    """Return the message with the arithmetic and the fixes, a line each."""
    parts = [f"{group.first.message} {group.label}".rstrip()]
    for arithmetic, targets in group.variants(lambda f: f.arithmetic, lambda text: text):
        if arithmetic:
            parts.append(
                f"{'' if arithmetic.startswith('=') else '= '}{arithmetic}{targets and f' [{targets}]'}"
            )
    for fix, targets in group.fixes():
        if fix:
            effect = f" — {fix.effect}" if fix.effect else ""
            parts.append(f"fix ({fix.applicability}){targets and f' [{targets}]'}: {fix.title}{effect}")
    return "\n".join(parts)


def in_repository(path: str) -> str:
    """Return ``path`` from the repository's root, which is where GitHub looks for it."""
    root = os.environ.get("GITHUB_WORKSPACE") or os.getcwd()
    full = os.path.abspath(path)
    if full.startswith(os.path.join(root, "")):
        path = os.path.relpath(full, root)
    return path.replace(os.sep, "/")


def _data(text: str) -> str:
    lines = text.replace("\r\n", "\n").split("\n")
    return "%0A".join(shown(line).replace("%", "%25") for line in lines)


def _property(text: str) -> str:
    for char, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"), (":", "%3A"), (",", "%2C")):
        text = text.replace(char, code)
    return shown(text)
