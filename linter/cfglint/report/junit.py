"""JUnit XML, which most CI systems show: a finding is a failed test, a clean file one that passed."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from cfglint.report.github import body
from cfglint.report.order import Lines, grouped, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.findings import Report
    from cfglint.report.order import Group

_NO_XML = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}  # what `shown` leaves, and XML does not take


def as_junit(report: Report) -> str:
    """Return one suite per file; warnings and hints fail as well, their level is the failure's type."""
    lines = Lines(report)
    files: dict[str, list[Group]] = {path: [] for path in sorted(report.texts)}
    for group in grouped(report.findings):
        files.setdefault(group.first.place.path, []).append(group)
    failures = sum(map(len, files.values()))
    tests = sum(max(1, len(groups)) for groups in files.values())
    rows = ['<?xml version="1.0" encoding="utf-8"?>']
    rows.append(f'<testsuites name="cfglint" tests="{tests}" failures="{failures}">')
    for path, groups in files.items():
        rows += _suite(lines, path, groups)
    return "\n".join([*rows, "</testsuites>"]) + "\n"


def _suite(lines: Lines, path: str, groups: list[Group]) -> Iterator[str]:
    name = _quoted(path)
    yield f'  <testsuite name={name} tests="{max(1, len(groups))}" failures="{len(groups)}" errors="0">'
    if not groups:
        yield f'    <testcase classname={name} name="cfglint"/>'
    for group in groups:
        finding = group.first
        line, column = lines.position(path, finding.place.start)
        case = _quoted(f"{finding.code} {finding.name} at {line}:{column}")
        yield f'    <testcase classname={name} name={case} file={name} line="{line}">'
        message = _quoted(f"{finding.message} {group.label}".rstrip())
        yield f'      <failure type="{finding.level}" message={message}>{_text(body(group))}</failure>'
        yield "    </testcase>"
    yield "  </testsuite>"


def _text(text: str) -> str:
    return escape("\n".join(_sound(line) for line in text.split("\n")))


def _quoted(text: str) -> str:
    return quoteattr(_sound(text))


def _sound(text: str) -> str:
    return shown(text).translate(_NO_XML)
