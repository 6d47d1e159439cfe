"""SARIF 2.1.0, for code scanning and editors: the rules that were met, the places, the edits of the fixes."""

from __future__ import annotations

import json
from urllib.parse import quote

from cfglint.about import HOMEPAGE, VERSION
from cfglint.report.github import body, in_repository
from cfglint.report.order import Lines, grouped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cfglint.findings import Finding, Fix, Report
    from cfglint.report.order import Group

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def as_sarif(report: Report) -> str:
    """Return one run; a finding that several targets share is one result. ASCII only."""
    lines = Lines(report)
    groups = grouped(report.findings)
    codes = sorted({group.first.code for group in groups})
    rules = {code: next(g.first for g in groups if g.first.code == code) for code in codes}
    run = {
        "tool": {
            "driver": {
                "name": "cfglint",
                "version": VERSION,
                **({"informationUri": HOMEPAGE} if HOMEPAGE else {}),
                "rules": [_rule(finding) for finding in rules.values()],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(lines, group, codes.index(group.first.code)) for group in groups],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(finding: Finding) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": finding.code,
        "name": finding.name,
        "shortDescription": {"text": finding.name.replace("-", " ")},
        "defaultConfiguration": {"level": _LEVELS[finding.rule_level]},
    }
    if finding.why:
        rule["fullDescription"] = {"text": finding.why}
    source = next((part for part in finding.see.split("; ") if part.startswith("http")), None)
    if source is not None:
        rule["helpUri"] = source
    return rule


def _result(lines: Lines, group: Group, number: int) -> dict[str, Any]:
    finding = group.first
    place = finding.place
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": number,
        "level": _LEVELS[finding.level],
        "message": {"text": body(group)},
        "locations": [_location(lines, place.path, place.start, place.end)],
    }
    if finding.related:
        result["relatedLocations"] = [
            {
                **_location(lines, other.place.path, other.place.start, other.place.end),
                "message": {"text": other.message},
            }
            for other in finding.related
        ]
    fixes = [_fix(lines, place.path, fix) for fix, _ in group.fixes() if fix is not None and fix.edits]
    if fixes:
        result["fixes"] = fixes
    return result


def _location(lines: Lines, path: str, start: int, end: int) -> dict[str, Any]:
    artifact = {"uri": quote(in_repository(path))}
    return {"physicalLocation": {"artifactLocation": artifact, "region": _region(lines, path, start, end)}}


def _region(lines: Lines, path: str, start: int, end: int) -> dict[str, int]:
    line, column = lines.position(path, start)
    end_line, end_column = lines.position(path, end)
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def _fix(lines: Lines, path: str, fix: Fix) -> dict[str, Any]:
    replacements = [
        {
            "deletedRegion": _region(lines, path, edit.start, edit.end),
            "insertedContent": {"text": edit.new},
        }
        for edit in sorted(fix.edits, key=lambda edit: (edit.start, edit.end))
    ]
    change = {"artifactLocation": {"uri": quote(in_repository(path))}, "replacements": replacements}
    return {"description": {"text": f"{fix.title} ({fix.applicability})"}, "artifactChanges": [change]}
