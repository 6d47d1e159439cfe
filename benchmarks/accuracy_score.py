"""How estimates are held against what was measured, and how that is printed."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def off(value: float, peak: Sequence[float]) -> float:
    """Return the signed relative distance to the nearest number that [lo, hi] allows."""
    nearest = min(max(value, peak[0]), peak[1])
    return (value - nearest) / nearest


def median(numbers: Iterable[float]) -> float:
    """Return the median of the numbers' sizes, 0 without any."""
    sizes = [abs(one) for one in numbers]
    return statistics.median(sizes) if sizes else 0.0


def worst(numbers: Sequence[float]) -> float:
    """Return the number that is farthest from 0, with its sign."""
    return max(numbers, key=abs, default=0.0)


def percent(share: float, *, signed: bool = False, digits: int = 1) -> str:
    """Return 0.1234 as 12.3 %."""
    return f"{share:{'+' if signed else ''}.{digits}%}".replace("%", " %")


def errors_cells(errors: Sequence[float]) -> list[str]:
    """Return a table's cells for errors: how many, their median and the worst."""
    return [str(len(errors)), percent(median(errors)), percent(worst(errors), signed=True)]


def share(truths: Iterable[bool | None]) -> str:
    """Return how many of the known truths hold, in percent and of how many."""
    known = [truth for truth in truths if truth is not None]
    return f"{percent(sum(known) / len(known), digits=0)} of {len(known)}" if known else "-"


def print_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Print rows under a head, the first column to the left and numbers to the right."""
    widths = [max(len(line[i]) for line in (head, *lines)) for i in range(len(head))]
    for line in (head, *lines):
        cells = [line[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip())
    print()


def print_wants(title: str, wants: Mapping[str, int], most: int = 12) -> None:
    """Print what was wanted where nothing could be said, most often first."""
    if wants:
        ordered = sorted(wants.items(), key=lambda item: (-item[1], item[0]))
        print(f"{title}: " + ", ".join(f"{name} ({number})" for name, number in ordered[:most]) + "\n")
