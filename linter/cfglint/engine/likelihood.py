"""Whether a memory that may be too large is likely to be, and what people are shown of it.

A warning needs a memory that is likely to be too large, an info does not. Verdicts rest on bounds that
one run in 100 passes; people see the interval that holds nine in ten, and such a bound only where it decides.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cfglint.lang import tree as t
from cfglint.lang.emit import CompileError
from cfglint.lang.values import INF, Interval

if TYPE_CHECKING:
    from cfglint.engine.describe import Evaluator
    from cfglint.facts import Values

# The model's own error is taken at its median. What is left of a range stems from facts that nobody gave: it
# is judged by its middle, and one of more than this factor as if it ended there, since it is wide for what is
# seldom, such as the longest answer of all. Both are means of logarithms. Set on jobs that are known to run,
# and on faults in them (benchmarks/calibration.py).
_WIDEST = 1.5
_UPWARDS = ("<", "<=")
LIKELY, BOUND = "error.likely", "error.bound"  # of rules/accuracy.rules
TOKENS = "micro.tokens"  # of rules/memory/tokens.rules


def is_likely(requirement: t.Expr, evaluator: Evaluator, values: Values) -> bool:
    """Whether a requirement that may not hold does not hold where its ranges usually end up.

    True as well for what compares no two ranges.
    """
    if not (isinstance(requirement, t.Compare) and len(requirement.operators) == 1):
        return True
    usual = _at_median(values)
    try:
        left, right = (_range(evaluator(side, usual)[0]) for side in requirement.operands)
    except CompileError:  # a member of an enumeration, which only the other side explains
        return True
    if left is None or right is None:
        return True
    if requirement.operators[0] not in _UPWARDS:
        left, right = right, left
    return _usual(*left) > _usual(*reversed(right))


def as_shown(values: Values) -> Values | None:
    """Return the values with the interval that people see in place of the bounds; None where both are one."""
    if LIKELY not in values.pack.lets or BOUND in values.given:
        return None
    likely, bound = values[LIKELY], values[BOUND]
    if not isinstance(likely, Interval) or not isinstance(bound, Interval) or likely.needs:
        return None
    if (likely.lo, likely.hi) == (bound.lo, bound.hi):
        return None
    return values.but({BOUND: likely})


def at_worst(value: object, seen: object) -> float | None:
    """Return the upper bound of a value that is above what people see of it; None where it is not."""
    if isinstance(value, Interval) and isinstance(seen, Interval) and seen.hi < value.hi < INF:
        return value.hi
    return None


def _at_median(values: Values) -> Values:
    """Return the values at the median of the model's error, with micro-batches as full as they usually are.

    The tokens have a point of their own, so that it does not depend on how large the states beside them are.
    """
    likely = values[LIKELY] if LIKELY in values.pack.lets else None
    if not isinstance(likely, Interval) or likely.needs:
        return values
    found = values.but({})
    found[LIKELY] = found[BOUND] = math.sqrt(likely.lo * likely.hi)
    tokens = values[TOKENS] if TOKENS in values.pack.lets else None
    if isinstance(tokens, Interval) and not tokens.needs and tokens.hi < INF:
        found[TOKENS] = _usual(tokens.lo, tokens.hi)
    return found


def _range(value: object) -> tuple[float, float] | None:
    if isinstance(value, Interval):
        return value.lo, value.hi
    return (value, value) if isinstance(value, (int, float)) else None


def _usual(near: float, far: float) -> float:
    """Return the usual point of a range, seen from the end at which a requirement holds."""
    if near > 0 and far > 0:
        width = abs(math.log(far / near))
        way = min(width, math.log(_WIDEST)) / 2
        return near * math.exp(math.copysign(way, far - near))
    return near + (far - near) / 4
