"""Records as JSON, by the names of their own fields."""

from __future__ import annotations

from cfglint.findings import Span
from cfglint.record import Record, fields
from cfglint.report.order import Lines, ordered, undecided_in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

    from cfglint.findings import Finding, Fix, Job, Report

INF = float("inf")
_BEFORE_SPAN = (  # of a finding
    "code", "name", "level", "rule_level", "possible", "target", "message", "arithmetic", "range_reason",
    "why", "see",
)  # fmt: skip
PLACES = 4  # of a GiB: a tenth of a MiB


def as_json(data: object) -> str:
    """Return the text of a JSON document; ASCII only, so that no locale and no terminal can spoil it."""
    import json  # a clean run that prints text must not pay for it

    return json.dumps(data, indent=2) + "\n"


def encode(value: object, *, omit: Collection[str] = (), places: int | None = PLACES) -> Any:
    """Return what JSON has for a value: records by their fields, but for those in ``omit`` at any depth.

    Numbers are rounded to ``places``, if any; what nothing bounds is null, a span the list of its bounds.
    """
    if isinstance(value, float):
        return (value if places is None else round(value, places)) if abs(value) < INF else None
    if isinstance(value, Span):
        value = value.low, value.high
    elif isinstance(value, Record):
        value = {name: getattr(value, name) for name in fields(value) if name not in omit}
    if isinstance(value, dict):
        return {key: encode(each, omit=omit, places=places) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(each, omit=omit, places=places) for each in value]
    return value


def picked(record: object, names: Iterable[str], *, places: int = PLACES) -> dict[str, Any]:
    """Return what JSON has for some fields or properties of a record."""
    return {name: encode(getattr(record, name), places=places) for name in names}


# ── findings ─────────────────────────────────────────────────────────────────────────────────────────────
def of_report(report: Report) -> dict[str, Any]:
    """Return the JSON report, as ``schemas/report.schema.json`` describes it; a finding once per target."""
    lines = Lines(report.texts)
    return {
        "version": 1,
        "targets": encode(report.targets, places=None),
        "findings": [_finding(lines, finding) for finding in ordered(report.findings)],
        "jobs": [_job(lines, job) for job in report.jobs],
        "undecided": encode(undecided_in_order(report)),
        "notices": list(report.notices),
        "summary": {
            "files": report.files,
            "jobs": report.judged,
            "unread": report.unread,
            "skipped": report.skipped,
            "unjudged": {reason: len(paths) for reason, paths in sorted(report.unjudged.items())},
            **{level: report.count(level) for level in ("error", "warning", "info")},
            "undecided": len(report.undecided),
        },
    }


def _job(lines: Lines, job: Job) -> dict[str, Any]:
    line, _ = lines.position(job.path, job.start)
    place = {"path": job.path, "line": line, "framework": job.framework, "model": job.model}
    memory: dict[str, Any] = encode(job.memory, places=2)
    return {**place, **memory, "target": job.memory.target or None}


def _finding(lines: Lines, finding: Finding) -> dict[str, Any]:
    path = finding.place.path
    return {
        "path": path,
        **picked(finding, _BEFORE_SPAN),
        **_span(lines, path, finding.place.start, finding.place.end),
        "facts": encode(finding.facts),
        "related": [
            {
                "path": related.place.path,
                **_span(lines, related.place.path, related.place.start, related.place.end),
                "message": related.message,
            }
            for related in finding.related
        ],
        "fix": None if finding.fix is None else of_fix(lines, path, finding.fix),
        "unfixed": finding.unfixed,
        "alternatives": [of_fix(lines, path, fix) for fix in finding.alternatives],
    }


def of_fix(lines: Lines, path: str, fix: Fix) -> dict[str, Any]:
    """Return what JSON has for a fix of the file at ``path``."""
    return {
        "id": fix.number,
        **picked(fix, ("applicability", "certainty", "title", "effect", "cost", "risk", "target"), places=6),
        "step_percent": None if fix.slower is None else [round(100 * share) for share in fix.slower],
        "memory": encode(fix.memory, places=2),
        "results": encode(fix.results),
        "next": list(fix.next),
        "edits": [
            {"path": path, **_span(lines, path, edit.start, edit.end), "text": edit.new}
            for edit in sorted(fix.edits, key=lambda edit: (edit.start, edit.end))
        ],
        "stale": [
            {"line": lines.position(path, each.start)[0], "says": each.says, "was": each.was}
            for each in fix.stale
        ],
    }


def _span(lines: Lines, path: str, start: int, end: int) -> dict[str, Any]:
    spans = {}
    for name, offset in (("start", start), ("end", end)):
        line, column = lines.position(path, offset)
        spans[name] = {"offset": offset, "line": line, "column": column}
    return spans
