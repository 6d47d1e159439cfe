"""The JSON report, as ``schemas/report.schema.json`` describes it."""

from __future__ import annotations

import json

from cfglint.report.order import Lines, ordered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cfglint.findings import Finding, Fix, Report

VERSION = 1


def as_json(report: Report) -> str:
    """Return the JSON report; ASCII only, so that no locale and no terminal can spoil it."""
    return json.dumps(as_data(report), indent=2) + "\n"


def as_data(report: Report) -> dict[str, Any]:
    """Return the JSON report as plain data; one entry per finding *and* target."""
    lines = Lines(report)
    return {
        "version": VERSION,
        "targets": [
            {"name": t.name, "gpu": t.gpu, "count": t.count, "vram_gib": t.vram_gib} for t in report.targets
        ],
        "findings": [_finding(lines, finding) for finding in ordered(report.findings)],
        "undecided": [
            {"path": path, "target": target or None, "code": code, "needs": list(needs)}
            for path, target, code, needs in sorted(
                (u.path, u.target or "", u.code, tuple(sorted(set(u.needs)))) for u in report.undecided
            )
        ],
        "notices": list(report.notices),
        "summary": {
            "files": report.files,
            "skipped": report.skipped,
            "error": report.count("error"),
            "warning": report.count("warning"),
            "info": report.count("info"),
            "undecided": len(report.undecided),
        },
    }


def _finding(lines: Lines, finding: Finding) -> dict[str, Any]:
    place = finding.place
    return {
        "path": place.path,
        "code": finding.code,
        "name": finding.name,
        "level": finding.level,
        "rule_level": finding.rule_level,
        "possible": finding.possible,
        "target": finding.target,
        "message": finding.message,
        "arithmetic": finding.arithmetic,
        "why": finding.why,
        "see": finding.see,
        **_span(lines, place.path, place.start, place.end),
        "facts": [{"name": f.name, "value": f.value, "source": f.source} for f in finding.facts],
        "related": [
            {
                "path": r.place.path,
                **_span(lines, r.place.path, r.place.start, r.place.end),
                "message": r.message,
            }
            for r in finding.related
        ],
        "fix": None if finding.fix is None else _fix(lines, place.path, finding.fix),
        "unfixed": finding.unfixed,
        "alternatives": [_fix(lines, place.path, fix) for fix in finding.alternatives],
    }


def _fix(lines: Lines, path: str, fix: Fix) -> dict[str, Any]:
    return {
        "id": fix.number,
        "applicability": fix.applicability,
        "certainty": fix.certainty,
        "title": fix.title,
        "effect": fix.effect,
        "cost": round(fix.cost, 6),
        "target": fix.target,
        "memory": [
            {"part": change.part, "before_gib": _gib(change.before), "after_gib": _gib(change.after)}
            for change in fix.memory
        ],
        "next": list(fix.next),
        "edits": [
            {"path": path, **_span(lines, path, edit.start, edit.end), "text": edit.new}
            for edit in sorted(fix.edits, key=lambda e: (e.start, e.end))
        ],
    }


def _gib(bounds: tuple[float, float]) -> list[float]:
    return [round(bound, 2) for bound in bounds]


def _span(lines: Lines, path: str, start: int, end: int) -> dict[str, Any]:
    spans = {}
    for name, offset in (("start", start), ("end", end)):
        line, column = lines.position(path, offset)
        spans[name] = {"offset": offset, "line": line, "column": column}
    return spans
