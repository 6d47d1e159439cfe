"""What a repair does to memory: each part on the fullest GPU before and after, and what is left then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.engine.memory import TOTAL, span_of
from cfglint.findings import MemoryChange
from cfglint.lang.values import INF

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.facts import Values

_PARTS = (("engine", "engine.memory", "generates"), ("trainer", "trainer.memory", "trains"))
_NEAR = 0.05  # GiB: below that, a part counts as unchanged


def memory_changes(before: Values, after: Values) -> tuple[MemoryChange, ...]:
    """Return what engine and trainer hold, and the headroom, before and after; nothing if not known."""
    if span_of(before[TOTAL]).high == INF or span_of(before["gpu.vram"]).high == INF:
        return ()
    changes = tuple(_changes(before, after))
    return changes if any(map(_moved, changes)) else ()


def _changes(before: Values, after: Values) -> Iterator[MemoryChange]:
    for part, name, present in _PARTS:
        if before[present] is not True or (part == "engine" and before["colocated"] is False):
            continue
        old, new = span_of(before[name]), span_of(after[name])
        if old.high < INF and new.high < INF:
            yield MemoryChange(part, (old.low, old.high), (new.low, new.high))
    yield MemoryChange("headroom", _headroom(before), _headroom(after))


def _headroom(values: Values) -> tuple[float, float]:
    # Engines with GPUs of their own have nothing to do with the trainer's.
    apart = values["colocated"] is False and values["trains"] is True
    capacity, need = span_of(values["gpu.vram"]).low, span_of(values["trainer.memory" if apart else TOTAL])
    return capacity - need.high, capacity - need.low


def _moved(change: MemoryChange) -> bool:
    return any(abs(old - new) > _NEAR for old, new in zip(change.before, change.after, strict=True))
