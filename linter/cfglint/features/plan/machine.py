"""The plan as JSON, as ``schemas/plan.schema.json`` describes it."""

from __future__ import annotations

import json

from cfglint.features.fit.words import bounds as _bounds
from cfglint.features.plan.words import notes, recommended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cfglint.features.plan.compute import PlanRow
    from cfglint.features.plan.ranking import Plan, Planned

VERSION = 1


def as_json(plans: Sequence[Plan]) -> str:
    """Return the JSON of plans; ASCII only, so that no locale and no terminal can spoil it."""
    data = {"version": VERSION, "path": plans[0].path, "plans": [_plan(plan) for plan in plans]}
    return json.dumps(data, indent=2) + "\n"


def _plan(plan: Plan) -> dict[str, Any]:
    return {
        "target": plan.target,
        "capacity_gib": None if plan.capacity is None else round(plan.capacity, 4),
        "samples": plan.samples,
        "checkpointing_added": plan.added,
        "needs": list(plan.needs),
        "notes": notes(plan, dash="-"),
        "batches": [_batch(one) for one in plan.batches],
    }


def _batch(one: Planned) -> dict[str, Any]:
    advice, batch = one.advice, one.batch
    smallest = None
    if advice.smallest is not None:
        smallest = {"gpu": advice.smallest[0], "capacity_gib": round(advice.smallest[1], 4)}
    return {
        "effective_batch": batch.size,
        "steps_per_epoch": batch.steps,
        "rows": [_row(row) for row in batch.rows],
        "without": [{"gpus": gpus, "why": why} for gpus, why in batch.without],
        "fewest_gpus": advice.fewest,
        "recommended": None if advice.best is None else advice.best.number,
        "closest": None if advice.closest is None else advice.closest.number,
        "enough": None if advice.enough is None else _row(advice.enough),
        "smallest_gpu": smallest,
        "reasons": recommended(one, dash="-") if batch.rows else [],
    }


def _row(row: PlanRow) -> dict[str, Any]:
    choice = row.choice
    return {
        "row": row.number or None,
        "gpus": choice.gpus,
        "data_parallel": choice.dp,
        "micro_batch": choice.micro,
        "accumulation": choice.accum,
        "micro_batch_tokens": choice.tokens,
        "zero_stage": choice.stage,
        "checkpointing": choice.checkpointing,
        "need_gib": _bounds(row.need_gib),
        "verdict": row.verdict,
        "step_s": None if row.step is None else _bounds(row.step),
        "epoch_s": None if row.epoch is None else _bounds(row.epoch),
        "now": row.now,
    }
