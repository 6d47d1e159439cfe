"""The fit as JSON, as ``schemas/fit.schema.json`` describes it."""

from __future__ import annotations

import json

from cfglint.features.fit.words import INF
from cfglint.findings import Report
from cfglint.report.machine import _fix
from cfglint.report.order import Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cfglint.engine.memory import Fit, FitRow, Remedy, Span

VERSION = 1
_PLACES = 4  # of a GiB: a tenth of a MiB


def as_json(fit: Fit, text: str) -> str:
    """Return the JSON of a fit; ASCII only, so that no locale and no terminal can spoil it."""
    report = Report()
    report.texts[fit.path] = text
    lines = Lines(report)
    numbers: dict[object, int] = {}
    data = {
        "version": VERSION,
        "path": fit.path,
        "rows": [_row(lines, fit.path, row, numbers) for row in fit.rows],
    }
    return json.dumps(data, indent=2) + "\n"


def _row(lines: Lines, path: str, row: FitRow, numbers: dict[object, int]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "target": row.target,
        "capacity_gib": None if row.capacity is None else round(row.capacity, _PLACES),
        "need_gib": _bounds(row.need),
        "parts": {part: _bounds(span) for part, span in row.parts},
        "trainer": None,
        "verdict": row.verdict,
        "needs": list(row.needs),
        "fix": None if row.remedy is None else _remedy(lines, path, row.remedy, numbers),
    }
    if row.trainer is not None:
        told["trainer"] = {
            "allocated_gib": _bounds(row.trainer.allocated),
            "moment": row.trainer.moment,
            "reserved_gib": _bounds(row.trainer.reserved),
        }
    if row.varied:
        told["varied"] = {name: _plain(value) for name, value in row.varied}
    return told


def _bounds(span: Span) -> list[float | None]:
    return [None if abs(bound) == INF else round(bound, _PLACES) for bound in (span.low, span.high)]


def _remedy(lines: Lines, path: str, remedy: Remedy, numbers: dict[object, int]) -> dict[str, Any]:
    # A fix that several targets share has one number, as in the report of check.
    remedy.fix.number = numbers.setdefault(remedy.fix.edits, len(numbers) + 1)
    return {
        **_fix(lines, path, remedy.fix),
        "then": {"need_gib": _bounds(remedy.need), "verdict": remedy.verdict},
    }


def _plain(text: str) -> object:
    """Return a value of --vary as JSON knows it."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, (int, float, bool)) else text
