"""How likely an estimate that straddles a limit is to break it: what a finding that may be true is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.dsl import tree as t
from cfglint.dsl.values import Interval, Open, parts

if TYPE_CHECKING:
    from cfglint.engine.describe import Evaluator
    from cfglint.facts import Values

# An estimate whose high end is more than three times its low end says next to nothing about a limit between
# them, unless the low end all but reaches that. Of 458 files that NeMo-RL, slime and verl ship, 70 may be too
# large for GPUs of 80 GB by the ends of MEM112's estimate, and 16 by this measure.
_SHARP, _NEAR = 3, 0.8


def unlikely(node: t.Expr | None, evaluator: Evaluator, values: Values) -> bool:
    """Whether what may not hold does by the middle of the estimates, or these are too wide to tell."""
    if isinstance(node, t.Junction):
        open_parts = [part for part in node.operands if isinstance(evaluator(part, values)[0], Open)]
        told = (unlikely(part, evaluator, values) for part in open_parts)
        return bool(open_parts) and (all(told) if node.operator == "and" else any(told))
    if not isinstance(node, t.Compare) or len(node.operators) != 1 or node.operators[0] not in _NEED:
        return False
    sides = [evaluator(side, values)[0] for side in node.operands]
    if not all(isinstance(side, (int, float, Interval)) for side in sides):
        return False
    need, limit = sides if _NEED[node.operators[0]] else reversed(sides)
    low, high, _ = parts(need)  # type: ignore[arg-type]
    least, most, _ = parts(limit)  # type: ignore[arg-type]
    return low + high <= least + most or (high > _SHARP * max(low, 0) and low < _NEAR * least)


_NEED = {"<=": True, "<": True, ">=": False, ">": False}  # whether the side that must be small stands first
