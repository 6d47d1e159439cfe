"""The estimates that make a memory a range, and how much of it each makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.engine.dependencies import WatchedValues
from cfglint.lang.types import UNITS
from cfglint.lang.values import INF, Interval
from cfglint.record import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cfglint.facts import Values

_GIB = UNITS["GiB"][0]
_ROUNDS = 8
_LEAST = 0.005  # GiB; what rounds to nothing explains nothing
_MOST = 3  # estimates that are told
_ASKED = "the memory"  # what reads the names that it is computed from


class Estimate(Value):
    """An estimated name that makes a memory a range, its value, and its share of the range in GiB.

    ``advice`` is what to type to know it for certain.
    """

    name: str
    value: str
    about: str
    width: float
    advice: str = ""


def estimates(
    facts: Values, read: Callable[[Values], object], most: int = _MOST
) -> list[tuple[str, Interval, float]]:
    """Return the estimates that widen the memory which ``read`` computes, and the share of each in GiB.

    A name is one where its value is a range though everything that it was computed from is a point. What
    it contributes is found by putting its middle in its place; then the names that rest on it are looked at.
    """
    pinned: dict[str, object] = {}
    found: dict[str, tuple[Interval, float]] = {}
    for _ in range(_ROUNDS):
        values = facts.but(pinned).again(WatchedValues)
        assert isinstance(values, WatchedValues)
        whole = width(values.noting(_ASKED, read))
        sources = dict(_sources(values)) if 0 < whole < INF else {}
        if not sources:
            break
        readers = values.readers()
        for name, value in sources.items():
            alone = values.but({name: middle(value)})
            alone.update(values.without(values.resting_on((name,), readers)))
            found[name] = value, (whole - width(read(alone))) / _GIB
        pinned.update((name, middle(value)) for name, value in sources.items())
    widest = sorted((-gain, name) for name, (_, gain) in found.items() if gain >= _LEAST)
    return [(name, found[name][0], -gain) for gain, name in widest[:most]]


def width(value: object) -> float:
    """Return how wide a range is that rests on no missing fact; 0 for anything else."""
    return value.hi - value.lo if isinstance(value, Interval) and not value.needs else 0


def middle(value: Interval) -> float:
    """Return the middle of a range; its lower end where nothing bounds it."""
    return (value.lo + value.hi) / 2 if value.hi < INF else value.lo


def _sources(values: WatchedValues) -> Iterator[tuple[str, Interval]]:
    """Yield the estimates at the bottom of what the memory was computed from."""
    waiting, seen = list(values.reads[_ASKED]), set(values.reads[_ASKED])
    while waiting:
        name = waiting.pop()
        below = values.reads.get(name, {})
        value = values[name]
        ranges = isinstance(value, Interval) and any(isinstance(values[n], Interval) for n in below)
        if isinstance(value, Interval) and not value.needs and not ranges:
            yield name, value
        waiting += [n for n in below if n not in seen]
        seen.update(below)
