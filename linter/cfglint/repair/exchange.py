"""Whole numbers that make up for a move: accumulation steps for fewer GPUs, and GPUs that divide a batch."""

from __future__ import annotations

from cfglint.engine.memory import bounds_of
from cfglint.lang.types import is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cfglint.engine.subject import Judged
    from cfglint.facts import Steps
    from cfglint.lang import tree as t
    from cfglint.repair.trials import Trials

_PROCESSES = ("$.launch.processes", "$.launch.processes_per_node")
_MICRO, _STEPS = "micro_batch_size", "grad_accum"
COUNTS_MICRO, PASSES_APART = ("launch", "counts_micro"), ("launch", "passes_apart")
_COUNTED = "the program counts micro-batches as steps, and would stop sooner with more accumulation"
_GROUPED = "each process takes more at a time, so that all of them take whole groups"
_BATCH = "BAT"  # rules about how a batch is shared out
_NEARLY = 24  # numbers that are tried


def in_proportion(kept: object, moved: object, old: object, *, exact: bool = True) -> object | None:
    """Return the partner's value that makes up for a move, where what is kept is proportional to it."""
    numbers = [v for v in (kept, moved, old) if is_number(v)]
    if len(numbers) < 3 or not moved:
        return None
    value = numbers[2] * numbers[0] / numbers[1]
    value = value if exact else max(1, round(value))
    return int(value) if value == int(value) and value >= 1 else None


def nearest_even(
    trials: Trials, judged: Judged, partner: str, ratio: tuple[object, object], facts: Mapping[str, object]
) -> object | None:
    """Return the whole number near what keeps a batch with which the batch is still shared out evenly."""
    near = in_proportion(*ratio, judged.values[partner], exact=False)
    if not isinstance(near, int):
        return near
    numbers = sorted(range(-(-near // 2), 2 * near + 1), key=lambda n: (abs(n - near), n))[:_NEARLY]

    return next((n for n in numbers if is_even(trials, judged, {**facts, partner: n})), near)


def is_even(trials: Trials, judged: Judged, facts: Mapping[str, object]) -> bool:
    """Whether a batch is still shared out evenly after some facts have moved."""
    harmed = trials.harmed(judged, facts, infos=False)
    return not any(rule.code.startswith(_BATCH) for rule in harmed)


def partners_of(judged: Judged, knob: t.Knob) -> tuple[tuple[str, ...], str]:
    """Return what may keep a batch, and why the micro-batch may grow for that; empty where it may not."""
    values, view = judged.values, judged.subject.view
    if values["trains"] is False or view.has(PASSES_APART):
        return (), ""
    if judged.subject.framework == "user_script" and values["user_script.answers"] is True:
        return (), ""  # a step has a number of answers of its own, which more passes may be more than
    if view.has(COUNTS_MICRO):
        return (() if knob.name == _MICRO else (_MICRO,)), _COUNTED
    if knob.name in _PROCESSES and judged.values["hf.in_groups"] is True:
        return (*knob.partners, _MICRO), _GROUPED
    return tuple(knob.partners), ""


def may_grow(trials: Trials, judged: Judged, facts: Mapping[str, object]) -> bool:
    """Whether each GPU may take a larger micro-batch: its memory is judged, and it fits.

    Of a job whose memory nobody knows, the file's own micro-batch is all that anybody has tried. No
    other rule may break, either.
    """
    after = trials.values(judged, facts)
    need, vram = bounds_of(after["need.likely"]), bounds_of(after["gpu.vram"])
    if need is None or vram is None or after["model.named"] is True or need[1] > vram[0]:
        return False
    return not trials.harmed(judged, facts, infos=False)


def exchanged_for(judged: Judged, partner: str, value: object) -> dict[str, object]:
    """Return what moves with a partner: what is read from the same key, or has to say the same.

    These are sizes of groups (rules/transformers.rules) and steps of DeepSpeed's file (deepspeed_file.rules).
    """
    also = {_MICRO: ("hf.in_groups", "hf.at_once"), _STEPS: ("hf.ds_says_accum", "hf.ds_accum")}.get(partner)
    return {partner: value, also[1]: value} if also and judged.values[also[0]] is True else {partner: value}


def even_ones(name: str, old: object, ways: list[dict[str, tuple[Steps, object]]]) -> list[dict[str, Any]]:
    """Return fewer processes that divide those of before, where what a requirement asks for does not.

    A batch that is a multiple of four processes is seldom one of three.
    """
    asked = [n for way in ways if isinstance(n := way[name][1], int)]
    if name not in _PROCESSES or not isinstance(old, int) or not asked or not 0 < max(asked) < old:
        return []
    most = max(asked)
    parts = [n for n in range(most - 1, 0, -1) if old % n == 0] if old % most else []
    return [{name: (ways[0][name][0], n)} for n in parts]
