"""An estimate's middle, by which a job that may or may not fit is taken to fit."""

from __future__ import annotations

from math import sqrt

from cfglint.engine.memory import bounds_of
from cfglint.lang.values import INF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.facts import Values
    from cfglint.lang.pack import CompiledRule

_ABOUT = "MEM1"  # the rules about what a GPU must hold


def may_fit(rule: CompiledRule, after: Values) -> bool:
    """Whether a rule about a trainer's memory is left open by an estimate whose middle fits."""
    if not rule.code.startswith(_ABOUT):
        return False
    need, vram = bounds_of(after["trainer.likely"]), bounds_of(after["gpu.vram"])
    if need is None or vram is None or need[1] == INF or rule.test(after) is False:
        return False
    return middle(need) <= vram[1]


def middle(need: tuple[float, float]) -> float:
    """Return the middle of an estimate: as many times the least as the most is times that.

    Where parts are taken off that hang on each other, the least may come out below nothing.
    """
    return sqrt(max(need[0], 0) * max(need[1], 0)) if need[1] < INF else INF
