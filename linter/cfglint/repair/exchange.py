"""Whole numbers that make up for a move: accumulation steps for fewer GPUs, and GPUs that divide a batch."""

from __future__ import annotations

from cfglint.lang.types import is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cfglint.engine.subject import Judged
    from cfglint.facts import Steps
    from cfglint.repair.trials import Trials

_PROCESSES = ("$.launch.processes", "$.launch.processes_per_node")
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

    def is_even(number: int) -> bool:
        harmed = trials.harmed(judged, {**facts, partner: number}, infos=False)
        return not any(rule.code.startswith(_BATCH) for rule in harmed)

    return next(filter(is_even, numbers), near)


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
