"""How estimates are held against what was measured: errors, coverage, recall, and how they are printed."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from accuracy_rows import Estimate

ABSTENTIONS = 0.25  # of a set of rows; more of them count as misses


@dataclass(slots=True)
class Score:
    """Estimates of one set of rows against the published numbers."""

    n: int = 0
    covered: int = 0
    errors: list[float] = field(default_factory=list)  # signed, of the interval's middle
    widths: list[float] = field(default_factory=list)
    wants: Counter[str] = field(default_factory=Counter)

    @property
    def judged(self) -> int:
        """Rows with an estimate."""
        return len(self.errors)

    @property
    def abstained(self) -> int:
        """Rows without one."""
        return self.n - self.judged

    @property
    def coverage(self) -> float:
        """Share of the rows that the interval holds; abstentions beyond the allowance are misses."""
        beyond = max(0, self.abstained - int(ABSTENTIONS * self.n))
        return self.covered / (self.judged + beyond) if self.judged + beyond else 0.0

    def add(self, found: Estimate, peak: Sequence[float]) -> None:
        """Count one row: an interval that meets [lo, hi] of the published number covers it."""
        self.n += 1
        if found.wants:
            self.wants.update(found.wants)
            return
        self.covered += found.lo <= peak[1] and found.hi >= peak[0]
        self.errors.append(off(found.middle, peak))
        self.widths.append(found.width)


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


def percent(share: float, *, signed: bool = False) -> str:
    """Return 0.1234 as 12.3 %."""
    return f"{share:{'+' if signed else ''}.1%}".replace("%", " %")


def score_cells(score: Score) -> list[str]:
    """Return a table's cells for a score."""
    if not score.judged:
        return [str(score.n), str(score.abstained), "-", "-", "-", "-"]
    return [
        str(score.n),
        str(score.abstained),
        percent(score.covered / score.judged),
        percent(median(score.errors)),
        percent(worst(score.errors), signed=True),
        percent(statistics.median(score.widths)),
    ]


SCORE_HEAD = ["rows", "abstained", "covered", "median error", "worst", "median width"]


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


def grouped(
    rows: Iterable[Mapping[str, Any]], key: Callable[[Mapping[str, Any]], str]
) -> dict[str, list[Mapping[str, Any]]]:
    """Return rows by a key, in the order of their first."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found
