"""What a fix does to memory, in words."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.findings import MemoryChange

_DASH = "–"  # noqa: RUF001 (between two bounds; a minus sign is something else)


def memory_told(changes: tuple[MemoryChange, ...]) -> str:
    """Say what changes: ``engine 36.0-37.4 -> 20.2-21.3 GiB, trainer 18.1 GiB as before, headroom …``."""
    return ", ".join(_told(change) for change in changes)


def _told(change: MemoryChange) -> str:
    if change.part == "headroom":  # what counts is what is left at the worst
        return f"headroom {change.before[0]:+.1f} → {change.after[0]:+.1f} GiB"
    old, new = _range(change.before), _range(change.after)
    return f"{change.part} {old} GiB as before" if old == new else f"{change.part} {old} → {new} GiB"


def _range(bounds: tuple[float, float]) -> str:
    low, high = (f"{bound:.1f}" for bound in bounds)
    return high if low == high else f"{low}{_DASH}{high}"
