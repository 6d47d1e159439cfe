"""Findings as CI systems read them: GitHub's annotations, GitLab's code quality, JUnit XML, SARIF."""

from __future__ import annotations

import os

from cfglint.report.order import Group, Lines, closing, grouped, opening
from cfglint.text import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from cfglint.findings import Finding, Fix, Place, Report

# What each form calls a level.
_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}
_SEVERITIES = {"error": "critical", "warning": "major", "info": "info"}
_SARIF_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_NO_XML = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}  # what `shown` leaves, and XML does not take


def _title(group: Group) -> str:
    return f"{group.first.message} {group.label}".rstrip()


def _body(group: Group) -> str:
    """Return the message with the arithmetic and the fixes, a line each."""
    parts = [_title(group)]
    for arithmetic, targets in group.variants(lambda finding: finding.arithmetic):
        if arithmetic:
            sign = "" if arithmetic.startswith("=") else "= "
            parts.append(f"{sign}{arithmetic}{targets and f' [{targets}]'}")
    for fix, targets in group.fixes():
        if fix:
            effect = f" — {fix.effect}" if fix.effect else ""
            parts.append(f"fix ({fix.applicability}){targets and f' [{targets}]'}: {fix.title}{effect}")
    return "\n".join(parts)


def _in_repository(path: str) -> str:
    """Return ``path`` from the repository's root, which is where CI systems look for it."""
    root = os.environ.get("GITHUB_WORKSPACE") or os.getcwd()
    full = os.path.abspath(path)
    if full.startswith(os.path.join(root, "")):
        path = os.path.relpath(full, root)
    return path.replace(os.sep, "/")


# ── GitHub: workflow commands, which annotate the lines of a pull request ────────────────────────────────
def as_github(report: Report) -> str:
    """Return one workflow command per finding, then the closing lines."""
    lines = Lines(report.texts)
    groups = grouped(report.findings)
    rows = [_command(lines, group) + "\n" for group in groups]
    # The runner still obeys the old `##[…]` commands in the middle of a line (actions/runner#4692).
    told = [*opening(report, verbose=False), *closing(report, groups, verbose=False)]
    return "".join(rows) + "".join(f"{line}\n".replace("##[", "# #[") for line in told)


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
        properties = {"file": _in_repository(place.path), "line": line, "endLine": end_line}
        if line == end_line:  # GitHub rejects columns on an annotation of several lines
            properties |= {"col": column, "endColumn": end_column}
    properties["title"] = f"{finding.code} {finding.name}{' (may)' if finding.possible else ''}"
    listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    body = "%0A".join(
        shown(row).replace("%", "%25") for row in _body(group).replace("\r\n", "\n").split("\n")
    )
    return f"::{_COMMANDS[finding.level]} {listed}::{body}"


def _property(text: str) -> str:
    return shown(text.translate({ord(char): f"%{ord(char):02X}" for char in "%\r\n:,"}))


# ── GitLab: what the widget of a merge request shows ─────────────────────────────────────────────────────
def as_gitlab(report: Report) -> str:
    """Return a list of findings, each with a fingerprint that survives moved lines."""
    from cfglint.report.encode import as_json

    lines = Lines(report.texts)
    counted: dict[str, int] = {}
    return as_json([_entry(lines, group, counted) for group in grouped(report.findings)])


def _entry(lines: Lines, group: Group, counted: dict[str, int]) -> dict[str, Any]:
    from hashlib import sha256

    finding = group.first
    path = _in_repository(finding.place.path)
    line, _ = lines.position(finding.place.path, finding.place.start)
    # The widget knows a finding again by its fingerprint: not by its line, which moves.
    key = f"{path}\0{finding.code}\0{_title(group)}"
    counted[key] = counted.get(key, 0) + 1
    return {
        "description": f"{finding.code} {_title(group)}",
        "check_name": finding.code,
        "fingerprint": sha256(f"{key}\0{counted[key]}".encode("utf-8", "surrogateescape")).hexdigest()[:32],
        "severity": _SEVERITIES[finding.level],
        "location": {"path": path, "lines": {"begin": line}},
    }


# ── JUnit XML: a finding is a failed test, a clean file one that passed ──────────────────────────────────
def as_junit(report: Report) -> str:
    """Return one suite per file; warnings and hints fail as well, their level is the failure's type."""
    lines = Lines(report.texts)
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
    from xml.sax.saxutils import escape

    name = _quoted(path)
    yield f'  <testsuite name={name} tests="{max(1, len(groups))}" failures="{len(groups)}" errors="0">'
    if not groups:
        yield f'    <testcase classname={name} name="cfglint"/>'
    for group in groups:
        finding = group.first
        line, column = lines.position(path, finding.place.start)
        case = _quoted(f"{finding.code} {finding.name} at {line}:{column}")
        body = escape("\n".join(_sound(row) for row in _body(group).split("\n")))
        yield f'    <testcase classname={name} name={case} file={name} line="{line}">'
        yield f'      <failure type="{finding.level}" message={_quoted(_title(group))}>{body}</failure>'
        yield "    </testcase>"
    yield "  </testsuite>"


def _quoted(text: str) -> str:
    from xml.sax.saxutils import quoteattr

    return quoteattr(_sound(text))


def _sound(text: str) -> str:
    return shown(text).translate(_NO_XML)


# ── SARIF, for code scanning and editors: the rules that were met, the places, the edits of the fixes ────
def as_sarif(report: Report) -> str:
    """Return one run; a finding that several targets share is one result."""
    from cfglint.about import HOMEPAGE, VERSION
    from cfglint.report.encode import as_json

    lines = Lines(report.texts)
    groups = grouped(report.findings)
    codes = sorted({group.first.code for group in groups})
    rules = [next(group.first for group in groups if group.first.code == code) for code in codes]
    driver = {"name": "cfglint", "version": VERSION, **({"informationUri": HOMEPAGE} if HOMEPAGE else {})}
    run = {
        "tool": {"driver": {**driver, "rules": [_rule(rule) for rule in rules]}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(lines, group, codes.index(group.first.code)) for group in groups],
    }
    return as_json({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(finding: Finding) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": finding.code,
        "name": finding.name,
        "shortDescription": {"text": finding.name.replace("-", " ")},
        "defaultConfiguration": {"level": _SARIF_LEVELS[finding.rule_level]},
    }
    if finding.why:
        rule["fullDescription"] = {"text": finding.why}
    source = next((part for part in finding.see.split("; ") if part.startswith("http")), None)
    if source is not None:
        rule["helpUri"] = source.partition(" ")[0]
    return rule


def _result(lines: Lines, group: Group, number: int) -> dict[str, Any]:
    finding = group.first
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": number,
        "level": _SARIF_LEVELS[finding.level],
        "message": {"text": _body(group)},
        "locations": [_location(lines, finding.place)],
    }
    if finding.related:
        result["relatedLocations"] = [
            {**_location(lines, related.place), "message": {"text": related.message}}
            for related in finding.related
        ]
    fixes = [_fix(lines, finding.place.path, fix) for fix, _ in group.fixes() if fix and fix.edits]
    if fixes:
        result["fixes"] = fixes
    return result


def _location(lines: Lines, place: Place) -> dict[str, Any]:
    region = _region(lines, place.path, place.start, place.end)
    return {"physicalLocation": {**_artifact(place.path), "region": region}}


def _artifact(path: str) -> dict[str, Any]:
    from urllib.parse import quote

    return {"artifactLocation": {"uri": quote(_in_repository(path), errors="surrogateescape")}}


def _region(lines: Lines, path: str, start: int, end: int) -> dict[str, int]:
    line, column = lines.position(path, start)
    end_line, end_column = lines.position(path, end)
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def _fix(lines: Lines, path: str, fix: Fix) -> dict[str, Any]:
    replacements = [
        {"deletedRegion": _region(lines, path, edit.start, edit.end), "insertedContent": {"text": edit.new}}
        for edit in sorted(fix.edits, key=lambda edit: (edit.start, edit.end))
    ]
    change = {**_artifact(path), "replacements": replacements}
    return {"description": {"text": f"{fix.title} ({fix.applicability})"}, "artifactChanges": [change]}


FORMS = {"github": as_github, "gitlab": as_gitlab, "junit": as_junit, "sarif": as_sarif}
