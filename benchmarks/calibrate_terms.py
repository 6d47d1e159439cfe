"""How far measured runs are from their estimate, by class: robust, pooled, and honest where rows are few.

The error of a row is log(measured / estimated), of what is beside the sure part of the states. A class of
rows has a location and a scale, drawn towards those of the class above it as far as it has few groups of rows
(partial pooling). How many scales away a *new* group may be is measured by leaving each group out in turn (as
the jackknife+ of Barber et al. 2021, arXiv 1905.02928, does with single rows), below and above apart. A sweep
of one setup has many rows, but is one group: a group of n rows weighs as sqrt(n).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from accuracy_classes import Path

PAIR = 2  # words of a class: whether there are experts, and what is trained
POOL = 4.0  # of weight (a group of n rows has sqrt(n)) for which the class above counts
LEAST = 0.02  # of a scale: no estimate is better than its inputs' rounding
LIKELY, BOUND = 0.95, 0.99
FEWEST = 4  # groups; with two, Student's t says nothing of use
# Student's t with 4 degrees of freedom, its quantiles at 99 % and 95 %: errors of engineering models have
# such tails, and 1 in 100 cannot be counted where there are 40 groups.
TAIL = 3.747 / 2.132
# Student's t at 95 % with 1, 2, … degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.2): with fewer groups
# than there are figures, no end is nearer than its prediction interval for one group more.
STUDENT = (
    *(6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812),
    *(1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.740, 1.734, 1.729),
)


@dataclass(frozen=True, slots=True)
class Residual:
    """A row's error: log(measured / estimate), seen from the estimate's lower and its upper end."""

    below: float
    above: float
    group: str
    path: Path
    share: float = 1.0  # of the estimate that errors are about

    @property
    def nearest(self) -> float:
        """The smallest error that the row allows: a range that the estimate meets says nothing against it."""
        low, high = sorted((self.below, self.above))
        return min(max(0.0, low), high)

    @property
    def least(self) -> float:
        """What a lower bound must not be above."""
        return self.below

    @property
    def most(self) -> float:
        """What an upper bound must not be below."""
        return self.above


@dataclass(frozen=True, slots=True)
class Limit:
    """What a run's end says of its error: one that died is above ``most``, one that ran below ``least``."""

    path: Path
    least: float = math.inf
    most: float = -math.inf


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the errors of a class lie, and how wide; the rows and groups that say so."""

    location: float
    scale: float
    rows: int = 0
    groups: int = 0


@dataclass(frozen=True, slots=True)
class Reach:
    """How many scales from the location a new run may be: likely (90 %), and each bound (99 %)."""

    low: float
    high: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Term:
    """The error of one class, as factors on an estimate."""

    likely: tuple[float, float]
    bound: tuple[float, float]
    rows: int
    groups: int


def weights_of(some: Sequence[Residual]) -> list[float]:
    """Return each row's weight: those of a group of n rows sum up to sqrt(n)."""
    sizes = Counter(one.group for one in some)
    return [1 / math.sqrt(sizes[one.group]) for one in some]


def quantile(numbers: Sequence[float], weights: Sequence[float], share: float) -> float:
    """Return the smallest number that at least ``share`` of the weight is at or below."""
    ranked = sorted(zip(numbers, weights, strict=True))
    total, seen = sum(weights), 0.0
    for number, weight in ranked:
        seen += weight
        if seen >= share * total - 1e-12:
            return number
    return ranked[-1][0]


def spread(some: Sequence[Residual], above: Spread | None) -> Spread:
    """Return a class's own spread, drawn towards the one above it."""
    if not some:
        return Spread(above.location, above.scale) if above else Spread(0.0, LEAST)
    weights = weights_of(some)
    count, groups = sum(weights), len({one.group for one in some})
    location = quantile([one.nearest for one in some], weights, 0.5)
    if above is not None:
        location = (count * location + POOL * above.location) / (count + POOL)
    scale = max(LEAST, quantile([abs(one.nearest - location) for one in some], weights, 0.68))
    if above is not None:
        scale = math.sqrt((count * scale**2 + POOL * above.scale**2) / (count + POOL))
    return Spread(location, scale, len(some), groups)


def spreads(some: Sequence[Residual]) -> dict[Path, Spread]:
    """Return the spread of every class that rows are in, from the most general one down."""
    members: dict[Path, list[Residual]] = defaultdict(list)
    for one in some:
        for length in range(len(one.path) + 1):
            members[one.path[:length]].append(one)
    found: dict[Path, Spread] = {}
    for path in sorted(members, key=lambda path: (len(path), path)):
        found[path] = spread(members[path], found.get(path[:-1]) if path else None)
    return found


def nearest(path: Path, found: Mapping[Path, object]) -> Path:
    """Return the most special class above a path (or the path itself) that rows are in."""
    while path and path not in found:
        path = path[:-1]
    return path


def reach(some: Sequence[Residual]) -> Reach:
    """Return how far new groups are: each group's distance from what all others say of it."""
    low: list[float] = []
    high: list[float] = []
    kept: list[Residual] = []
    for group in sorted({one.group for one in some}):
        others = spreads([one for one in some if one.group != group])
        if not others:
            continue
        for one in (one for one in some if one.group == group):
            at = others[nearest(one.path, others)]
            low.append((one.below - at.location) / at.scale)
            high.append((one.above - at.location) / at.scale)
            kept.append(one)
    weights = weights_of(kept)
    groups = max(FEWEST, len({one.group for one in kept}))
    least = STUDENT[groups - 2] * math.sqrt(1 + 1 / groups) if groups - 2 < len(STUDENT) else 0.0
    ends = [max(quantile(far, weights, LIKELY) if kept else 0.0, least) for far in ([-n for n in low], high)]
    return Reach(-ends[0], ends[1], -ends[0] * TAIL, ends[1] * TAIL)


def terms(some: Sequence[Residual], wanted: Iterable[Path], limits: Sequence[Limit] = ()) -> dict[Path, Term]:
    """Return the error of each wanted class; where nobody measured it, that of the class above it.

    Where not even the pair of its first two words was measured (whether there are experts, and what is
    trained), it is the widest of the classes that share one of them.
    """
    found, far = spreads(some), reach(some)
    own = {path: _term(path, one, far, [*some, *limits]) for path, one in found.items()}
    told: dict[Path, Term] = {}
    for path in wanted:
        near = nearest(path, own)
        alike = [term for known, term in own.items() if known[1:2] == path[1:2] or known == path[:1]]
        told[path] = own[near] if len(near) >= PAIR else widest(alike or own.values())
    return told


def _term(path: Path, at: Spread, far: Reach, seen: Iterable[Residual | Limit]) -> Term:
    likely = at.location + far.low * at.scale, at.location + far.high * at.scale
    least, most = at.location + far.least * at.scale, at.location + far.most * at.scale
    for one in seen:  # a bound is never inside what was seen in the class
        if one.path[: len(path)] == path:
            least, most = min(least, one.least), max(most, one.most)
    return Term(
        (math.exp(likely[0]), math.exp(likely[1])), (math.exp(least), math.exp(most)), at.rows, at.groups
    )


def widest(some: Iterable[Term]) -> Term:
    """Return the hull of terms, for what has no rows."""
    every = list(some)
    return Term(
        (min(term.likely[0] for term in every), max(term.likely[1] for term in every)),
        (min(term.bound[0] for term in every), max(term.bound[1] for term in every)),
        0,
        0,
    )
