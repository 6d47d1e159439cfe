"""Places: GPUs on which a job runs, what is told of them, and what is told where there are none."""

from __future__ import annotations

from math import inf

from cfglint.engine.cases import TOTAL
from cfglint.engine.memory import HERE, bounds_of
from cfglint.findings import Fix
from cfglint.lang.types import is_number
from cfglint.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.engine.subject import Judged
    from cfglint.facts import Values
    from cfglint.findings import Memory

_WEIGHT = 2  # bytes of one in 16 bits
_ROOM = 0.9  # of what a GPU has, for an engine's weights


class Place(Record):
    """GPUs on which a job runs: ``name`` such as ``h100-sxm:4``, dollars of an hour, the memory there.

    ``accumulation`` says what keeps the effective batch, nothing where nothing has to change. ``price`` is
    said, of one GPU where nobody says how many there have to be. ``amid`` other errors, which stand against
    the job on any GPU. ``host`` says what a machine needs of its own memory where that is much. ``may`` says
    that the job may need more than there is; ``own`` is said of some of the GPUs that are there.
    """

    name: str
    hourly: float
    memory: Memory
    price: str
    accumulation: str = ""
    amid: bool = False
    host: str = ""
    may: bool = False
    own: str = ""

    @property
    def likely(self) -> bool:
        """Whether the job fits by all of its likely need, where it may need more."""
        return self.may and self.memory.need_gib.high <= (self.memory.capacity_gib or 0)

    @property
    def words(self) -> str:
        """What is told of the place."""
        need, capacity = self.memory.need_gib, self.memory.capacity_gib
        low = f"{need.low:.0f}"
        size = f"at least {low}" if need.high == inf else f"{low}–{need.high:.0f}"
        if self.likely and inf > (worst := self.memory.bound_gib.high) > (capacity or 0):
            size += f", at worst {worst:.0f},"
        price = "" if self.own else f", {self.price}"
        of = f"{size} of {capacity or 0:.1f} GiB{price}{self.host}"
        steps = f" with {self.accumulation}" if self.accumulation else ""
        fits = f", where it {'probably fits' if self.likely else 'may fit'}" if self.may else ""
        return f"{self.own or self.name}{steps}{fits} ({of})"


def is_laid_out(values: Values) -> bool:
    """Whether the parallel sizes divide the GPUs, as far as one knows, and a server has room."""
    replicas = values["train_dp"]
    divided = not is_number(replicas) or (replicas >= 1 and replicas == int(replicas))
    return divided and _holds_server(values)


def _holds_server(values: Values) -> bool:
    """Whether a server on the machine's other GPUs has room for the weights, as far as one knows."""
    every, own, size = values["num_gpus"], values[HERE], bounds_of(values["model.params"])
    vram = bounds_of(values["gpu.vram"])
    if (
        values["launched.server"] is not True
        or size is None
        or vram is None
        or values["model.quantized_bits"]
    ):
        return True
    if not (is_number(every) and is_number(own) and every > own):
        return True
    return _WEIGHT * size[0] / (every - own) <= _ROOM * vram[1]


def named(gpu: str, count: int, nodes: int) -> str:
    """Return a target's name, as `--gpu` takes it: ``h100-sxm:8x2`` are two machines."""
    if nodes > 1:
        return f"{gpu}:{count}x{nodes}"
    return f"{gpu}:{count}" if count > 1 else gpu


def hardware_fix(places: list[Place], judged: Judged) -> Fix | None:
    """Return what a finding says of other hardware; None where there is none."""
    if not places:
        return None
    changed = ["" if place.accumulation or place.amid else "unchanged " for place in places]
    words = [f"{way}on {place.words}" for way, place in zip(changed, places, strict=True)]
    rest = "once the other errors are mended, " if any(place.amid for place in places) else ""
    return shown(f"{rest}run it {', or '.join(words)}", judged)


def as_many(judged: Judged, asked: int) -> list[Fix]:
    """Return as many GPUs as a job asks for; none is named, as nobody knows whether the job fits it."""
    return [shown(f"run it unchanged on {asked} GPUs; which ones hold it is not judged", judged)]


def shown(title: str, judged: Judged) -> Fix:
    """Return what is told and not applied."""
    name = judged.target.name if judged.target is not None else None
    return Fix(0, title, (), applicability="display", target=name)


def closest_told(tried: list[tuple[str, Memory]]) -> str:
    """Say which of the hardware that was tried comes closest to holding a job, and what it lacks."""
    known = [(name, memory) for name, memory in tried if memory.bound_gib.high < inf]
    if not known:
        return ""
    name, memory = min(known, key=lambda one: one[1].bound_gib.high - (one[1].capacity_gib or 0))
    there = memory.capacity_gib or 0
    least, most = memory.need_gib.low - there, memory.bound_gib.high - there
    if most <= 0:
        return ""
    lacks = f"lacks at least {least:.0f} GiB" if least > 0 else f"may lack up to {most:.0f} GiB"
    others = f"none of the {len(tried)} others that were tried surely holds it"
    return f"; {others}: the closest, {name}, {lacks} per GPU"


def is_endless(values: Values) -> bool:
    """Whether nobody knows the size of a job's model, and so what it needs in any case."""
    need, size = bounds_of(values[TOTAL]), bounds_of(values["model.params"])
    return (need is None or need[1] == inf) and (size is None or size[1] == inf)
