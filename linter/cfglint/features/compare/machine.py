"""The comparison as JSON, as ``schemas/compare.schema.json`` describes it."""

from __future__ import annotations

import json

from cfglint.features.compare.words import pairs, smallest
from cfglint.features.fit.words import PLACES as _PLACES
from cfglint.features.fit.words import bounds as _bounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cfglint.engine.memory import FitRow
    from cfglint.features.compare.compute import Comparison, Difference, Half, Side

VERSION = 1
_DIGITS = 6  # of a ratio


def as_json(comparison: Comparison) -> str:
    """Return the JSON of a comparison; ASCII only, so that no locale and no terminal can spoil it."""
    every = comparison.every
    data = {
        "version": VERSION,
        "a": _half(comparison.a, every=every),
        "b": _half(comparison.b, every=every),
        "same": comparison.same,
        "settings": [_difference(one) for one in comparison.settings],
        "derived": [_difference(one) for one in comparison.derived],
        "keys": [{"key": one.key, "a": one.a, "b": one.b} for one in comparison.keys],
        "ratios": [
            {"what": one.what, "b_by_a": _rounded(one.value), "because": list(one.because)}
            for one in comparison.ratios
        ],
        "targets": [
            {
                "target": one.target,
                "capacity_gib": None if one.capacity_gib is None else round(one.capacity_gib, _PLACES),
                "a": _row(one),
                "b": _row(other),
            }
            for one, other in pairs(comparison)
        ],
    }
    return json.dumps(data, indent=2) + "\n"


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _half(half: Half, *, every: bool) -> dict[str, Any]:
    least = smallest(half)
    told: dict[str, Any] = {
        "path": half.path,
        "framework": half.framework,
        "model": half.model,
        "keys": half.keys,
        "unread": half.unread,
        "findings": [{"code": one.code, "name": one.name, "level": one.level} for one in half.found],
    }
    if every:
        told["smallest"] = None if least is None else least.target
    return told


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "name": one.name,
        "about": one.about,
        "group": one.group,
        "a": _side(one.a),
        "b": _side(one.b),
        "b_by_a": None if one.ratio is None else _rounded(one.ratio),
        "alters_results": one.alters,
        "effects": [
            {
                "from": "b" if effect.to == "a" else "a",
                "to": effect.to,
                "text": effect.text,
                "kind": effect.kind or None,
                "percent": None if effect.low is None or effect.high is None else [effect.low, effect.high],
                "see": effect.see or None,
            }
            for effect in one.effects
        ],
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "value": side.shown if side.known else None,
        "kind": side.kind,
        "source": side.source,
        "key": side.key or None,
        "line": side.line,
    }


def _row(row: FitRow) -> dict[str, Any]:
    told: dict[str, Any] = {
        "need_gib": _bounds(row.need_gib),
        "parts": {part: _bounds(span) for part, span in row.parts.items()},
        "trainer": None,
        "verdict": row.verdict,
        "needs": list(row.needs),
    }
    if row.trainer is not None:
        told["trainer"] = {
            "allocated_gib": _bounds(row.trainer.allocated_gib),
            "moment": row.trainer.moment,
            "reserved_gib": _bounds(row.trainer.reserved_gib),
        }
    return told
