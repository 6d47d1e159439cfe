"""A repair that splits sequences over more GPUs, against one that leaves them whole.

The search adds up what moves cost, each by itself (price.py). What a step sends for every micro-batch grows
with all of them together, though: of a layout and smaller micro-batches the sum is too small.
"""

from __future__ import annotations

from cfglint.engine.memory import bounds_of
from cfglint.lang.types import is_number
from cfglint.record import replace
from cfglint.repair.estimate import middle
from cfglint.repair.price import WORK
from cfglint.repair.together import combined
from cfglint.repair.tracks import worse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cfglint.engine.subject import Judged
    from cfglint.repair.allowed import Allowed
    from cfglint.repair.found import Repair
    from cfglint.repair.trials import Trials

_SPLITS = ("sp", "cp")  # a sequence over GPUs
_FILLS = ("micro_batch_size", "max_tokens_per_microbatch")  # how many tokens are on a GPU at a time


def quicker(
    trials: Trials,
    judged: Judged,
    allowed: Allowed,
    repair: Repair | None,
    found: Callable[[Allowed], Repair | None],
) -> Repair | None:
    """Return a repair, or one that leaves sequences whole where a step takes no longer with that."""
    splits = () if repair is None else tuple(filter(allowed.without.isdisjoint, _raised(repair, judged)))
    if repair is None or not splits or not any(is_number(judged.values[name]) for name in _FILLS):
        return repair
    other = found(replace(allowed, without=allowed.without.union(splits)))
    if other is None or worse(other.risk, repair.risk) != repair.risk or (repair.sure and not other.sure):
        return repair
    with_it, without = _work(trials, judged, repair), _work(trials, judged, other)
    return other if with_it is not None and without is not None and without <= with_it else repair


def _raised(repair: Repair, judged: Judged) -> list[str]:
    """Return the knobs of a repair that spread a sequence over more GPUs than before."""
    moved = {option.knob: option.facts.get(option.knob) for option in repair.options}
    pairs = [(name, judged.values[name], moved.get(name)) for name in _SPLITS]
    return [name for name, old, new in pairs if is_number(old) and is_number(new) and new > old]


def _work(trials: Trials, judged: Judged, repair: Repair) -> float | None:
    """Return how long a step takes with all moves of a repair, by the middle of its estimate."""
    facts = combined(repair.options)
    bounds = None if facts is None else bounds_of(trials.values(judged, facts)[WORK])
    return None if bounds is None else middle(bounds)
