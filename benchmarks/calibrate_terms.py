"""How far measured runs are from their estimate, by class: robust, pooled, and honest where rows are few.

The error of a row is log(measured / estimated), of what is beside the sure part of the states; a row may only
say between which ends it lies. Errors of a class follow Student's t with four degrees of freedom, as those of
engineering models do: its location and scale are the likeliest ones, drawn towards those of the class above
it as far as it has few groups of rows (partial pooling). A sweep of one setup has many rows, but is one
group: a group of n rows weighs as sqrt(n).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from accuracy_classes import Path

PAIR = 2  # words of a class: whose code it is, and whether there are experts
ANY = "any"  # whose code nobody knows
POOL = 8.0  # of weight (a group of n rows has sqrt(n)) for which the class above counts
EXACT = 0.02  # of an error: no row says more than its inputs' rounding, and no scale is less
FIRST = 0.1  # the scale from which the search of the widest class starts
COARSE, FINE = (
    0.5,
    0.004,
)  # steps of the search: in logarithms of a scale, and a quarter of that in a location
INSIDE = 0.9  # of the rows of new groups: within the likely ends
LIKELY, BOUND = 2.132, 3.747  # quantiles of Student's t with 4 degrees of freedom, at 95 % and 99 %


@dataclass(frozen=True, slots=True)
class Residual:
    """A row's error: log(measured / estimate), between its ends: ``above`` is the lower one.

    ``below`` is seen from the estimate's lower end, which it must not be under, and ``above`` from the upper.
    """

    below: float
    above: float
    group: str
    path: Path
    share: float = 1.0  # of the estimate that errors are about
    unseen: bool = (
        False  # read by somebody who compared it with nothing, and first compared when all was done
    )

    @property
    def family(self) -> str:
        """The family of models, of a group's ``project|family``."""
        return self.group.split("|")[-1]

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
    group: str = ""


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the errors of a class lie, and how wide; the weight, rows and groups that say so."""

    location: float
    scale: float
    weight: float = 0.0
    rows: int = 0
    groups: int = 0


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


def under(distance: float) -> float:
    """Return the share of Student's t with 4 degrees of freedom that is below a distance."""
    square = 1 + distance * distance / 4
    return 0.5 + 0.375 * distance / math.sqrt(square) * (1 - distance * distance / (12 * square))


def likelihood(some: Sequence[Residual]) -> Callable[[float, float], float]:
    """Return the log-likelihood of rows by location and scale: each row is somewhere between its ends."""
    rows = []
    for one, weight in zip(some, weights_of(some), strict=True):
        low, high = sorted((one.above, one.below))
        slack = max(0.0, EXACT - (high - low)) / 2
        rows.append((low - slack, high + slack, weight))

    def told(location: float, scale: float) -> float:
        total = 0.0
        for low, high, weight in rows:
            share = under((high - location) / scale) - under((low - location) / scale)
            total += weight * math.log(max(share, 1e-12))
        return total

    return told


def spread(some: Sequence[Residual], above: Spread | None) -> Spread:
    """Return a class's own spread, drawn towards the one above it: the likeliest, found step by step."""
    told, start = likelihood(some), above or Spread(0.0, FIRST)

    @cache
    def score(at: tuple[float, float]) -> float:
        found = told(at[0], math.exp(at[1]))
        if above is None:
            return found
        far = (at[0] - above.location) / above.scale, at[1] - math.log(above.scale)
        return found - POOL / 2 * (far[0] ** 2 + far[1] ** 2)

    at, step = (start.location, math.log(start.scale)), COARSE
    while step > FINE:
        near = [(at[0] + way * step / 4, at[1]) for way in (-1, 1)]
        near += [(at[0], max(math.log(EXACT), at[1] + way * step)) for way in (-1, 1)]
        best = max(near, key=score)
        if score(best) > score(at) + 1e-9:
            at = best
        else:
            step /= 2
    weight = sum(weights_of(some))
    return Spread(at[0], math.exp(at[1]), weight, len(some), len({one.group for one in some}))


def spreads(some: Iterable[Residual]) -> Mapping[Path, Spread]:
    """Return the spread of every class that rows are in, from the most general one down.

    Rows of all codes are in the classes of any code, too.
    """
    return _spreads(tuple(some))


@cache
def _spreads(some: tuple[Residual, ...]) -> Mapping[Path, Spread]:
    members: dict[Path, list[Residual]] = defaultdict(list)
    for one in some:
        for path in {whole[:length] for whole in _paths(one) for length in range(len(whole) + 1)}:
            members[path].append(one)
    found: dict[Path, Spread] = {}
    for path in sorted(members, key=lambda path: (len(path), path)):
        found[path] = spread(members[path], found.get(path[:-1]) if path else None)
    return found


def _paths(one: Residual) -> tuple[Path, Path]:
    return one.path, (ANY, *one.path[1:])


def nearest(path: Path, found: Mapping[Path, object]) -> Path:
    """Return the most special class above a path (or the path itself) that rows are in."""
    while path and path not in found:
        path = path[:-1]
    return path


def stretch(some: Sequence[Residual]) -> float:
    """Return how much wider than Student's t the ends are that hold INSIDE of new rows.

    New are the rows that nobody saw while formulas were written, where there are any. Each group of them is
    held against what the others say, as in Barber et al. 2021, arXiv 1905.02928; where they do not know its
    family, against the widest terms, as an estimate is.
    """
    new = [one for one in some if one.unseen] or list(some)
    far: list[float] = []
    for group in sorted({one.group for one in new}):
        others = [one for one in some if one.group != group]
        own = by_class(others)
        known = any(one.family == group.split("|")[-1] for one in others)
        for one in new:
            if one.group == group:
                term = of_class(one.path, own) if known else widest(own.values())
                low, high = math.log(term.likely[0]), math.log(term.likely[1])
                middle = (low + high) / 2
                far.append(2 * max(middle - one.below, one.above - middle, 0.0) / (high - low))
    return sorted(far)[math.ceil(INSIDE * len(far)) - 1]


def by_class(some: Sequence[Residual], limits: Sequence[Limit] = (), wider: float = 1.0) -> dict[Path, Term]:
    """Return the error of every class that rows are in; likely ends are ``wider`` than Student's t."""
    seen: list[Residual | Limit] = [*some, *limits]
    return {path: _term(path, one, seen, wider) for path, one in spreads(some).items()}


def of_class(path: Path, own: Mapping[Path, Term]) -> Term:
    """Return the error of a class; where nobody measured it, that of the class above it.

    Where not even the pair of its first two words was measured (whose code it is, and whether there are
    experts), it is the widest of the classes that share one of them.
    """
    near = nearest(path, own)
    if len(near) >= PAIR:
        return own[near]
    alike = [term for known, term in own.items() if known[1:2] == path[1:2] or known == path[:1]]
    return widest(alike or own.values())


def _wide(at: Spread, path: Path) -> float:
    """Return the scale of one group more."""
    return at.scale * math.sqrt(1 + 1 / (at.weight + (POOL if path else 0)))


def _term(path: Path, at: Spread, seen: Iterable[Residual | Limit], wider: float) -> Term:
    reach, most_reach = LIKELY * wider * _wide(at, path), BOUND * _wide(at, path)
    likely = at.location - reach, at.location + reach
    least, most = at.location - most_reach, at.location + most_reach
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
