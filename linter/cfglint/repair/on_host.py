"""What a job takes of the machines' own memory on other hardware."""

from __future__ import annotations

from math import inf

from cfglint.engine.memory import GIB, bounds_of
from cfglint.lang.types import is_number
from cfglint.repair.estimate import middle
from cfglint.repair.price import host_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.facts import Values

_MUCH = 64 * GIB  # more of a machine's own memory than it needs now, which is told


def of_the_host(before: Values, after: Values) -> str:
    """Say what a machine needs of its own memory, as an addition, where a repair moves much there."""
    need, was = bounds_of(after["need.host"]), bounds_of(before["need.host"])
    if need is None or was is None or need[1] == inf or need[0] - was[0] < _MUCH:
        return ""
    return _told(need)


def _told(need: tuple[float, float]) -> str:
    return f"; each machine needs {need[0] / GIB:,.0f}–{need[1] / GIB:,.0f} GiB of its own memory"


def host_lacks(values: Values) -> bool:
    """Whether machines with such GPUs probably have too little memory of their own for a job."""
    need, vram, own = bounds_of(values["need.host"]), bounds_of(values["gpu.vram"]), values["gpu.per_node"]
    if need is None or vram is None or need[1] == inf or not is_number(own):
        return False
    return middle(need) > host_of(vram[1]) * own


def large_host(values: Values) -> str:
    """Say what a machine needs of its own memory where that is more than its GPUs have."""
    need, vram, own = bounds_of(values["need.host"]), bounds_of(values["gpu.vram"]), values["gpu.per_node"]
    if need is None or vram is None or need[1] == inf or not is_number(own):
        return ""
    return _told(need) if need[0] >= max(_MUCH, vram[1] * own) else ""
