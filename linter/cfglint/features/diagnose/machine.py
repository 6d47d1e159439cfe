"""A diagnosis as JSON; schemas/diagnosis.schema.json describes it."""

from __future__ import annotations

import json

from cfglint.features.diagnose import words
from cfglint.features.diagnose.attribution import GIB
from cfglint.findings import Report
from cfglint.report.machine import _fix
from cfglint.report.order import Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cfglint.engine.memory import Span
    from cfglint.features.diagnose.compute import Diagnosis, Judgement, Repair, Told
    from cfglint.features.diagnose.incident import Incident


# A fix as the report of check tells it; what it does to the memory stands in `parts`.
_OF_FIX = ("id", "applicability", "certainty", "title", "effect", "edits")


def as_json(found: Diagnosis) -> str:
    """Return a diagnosis as JSON."""
    data = {
        "version": 1,
        "failures": [_told(told, found.judgement if i == 0 else None) for i, told in enumerate(found.told)],
        "config": _judged(found.judgement) if found.judgement is not None else None,
    }
    return json.dumps(data, indent=2, ensure_ascii=True) + "\n"


def _gib(value: int | None) -> float | None:
    return None if value is None else round(value / GIB, 4)


def _bounds(span: Span) -> list[float | None]:
    return [None if bound == float("inf") else round(bound, 4) for bound in (span.low, span.high)]


def _told(told: Told, judgement: Judgement | None) -> dict[str, Any]:
    processes = []
    for holder in told.holders:
        prediction = judgement.predictions.get(holder.role) if judgement is not None else None
        processes.append(
            {
                "role": holder.role, "name": holder.name, "pid": holder.pid, "held_gib": _gib(holder.held),
                "died": holder.died, "needed_gib": _gib(holder.needed), "why": holder.why or None,
                "predicted_gib": _bounds(prediction.span) if prediction is not None else None,
            }
        )  # fmt: skip
    return {
        "message": words.headline(told),
        "incidents": [_incident(one) for one in told.failure.incidents],
        "processes": processes,
        "advice": list(told.advice),
        "repeated": told.again,
    }


def _incident(one: Incident) -> dict[str, Any]:
    return {
        "kind": one.kind, "path": one.path, "line": one.line, "source": one.source or None, "gpu": one.gpu,
        "capacity_gib": _gib(one.capacity), "free_gib": _gib(one.free), "asked_gib": _gib(one.asked),
        "allocated_gib": _gib(one.allocated), "cached_gib": _gib(one.cached), "pools_gib": _gib(one.pools),
        "fraction": one.fraction, "kv_needed_gib": _gib(one.needed), "kv_available_gib": _gib(one.available),
        "tokens": one.tokens, "tokens_that_fit": one.longest, "engine": one.engine, "moment": one.moment,
        "where": one.where or None,
    }  # fmt: skip


def _judged(judgement: Judgement) -> dict[str, Any]:
    report = Report()
    report.texts[judgement.path] = judgement.text
    lines = Lines(report)
    measured = [
        {"name": name, "gib": [round(x / GIB, 4) for x in _range(value)], "source": source}
        for name, (value, source) in sorted(judgement.corrections.items())
    ]
    return {
        "path": judgement.path, "target": judgement.target, "gpu": judgement.gpu, "chosen": judgement.chosen,
        "corrections": measured,
        "need_gib": _bounds(judgement.row.need_gib), "verdict": judgement.row.verdict,
        "findings": [{"code": f.code, "level": f.level, "message": f.message} for f in judgement.findings],
        "repairs": [_repair(lines, judgement.path, repair) for repair in judgement.repairs],
    }  # fmt: skip


def _range(value: Any) -> tuple[float, float]:
    return (value.lo, value.hi) if hasattr(value, "lo") else (value, value)


def _repair(lines: Lines, path: str, repair: Repair) -> dict[str, Any]:
    fix = repair.fix
    return {
        "code": repair.finding.code,
        **{key: value for key, value in _fix(lines, path, fix).items() if key in _OF_FIX},
        "parts": [
            {"role": name, "before_gib": _bounds(old), "after_gib": _bounds(new)}
            for name, old, new in repair.parts
        ],
        "need_gib": {"before": _bounds(repair.before.need_gib), "after": _bounds(repair.after.need_gib)},
        "verdict": {"before": repair.before.verdict, "after": repair.after.verdict},
        "diff": repair.diff,
    }  # fmt: skip
