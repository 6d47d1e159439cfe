"""Why a need is a range: the estimates that widen it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.engine.dependencies import watched
from cfglint.engine.memory import GIB, TOTAL, Estimate, given_by
from cfglint.lang.units import show_number
from cfglint.lang.values import INF, Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cfglint.engine.dependencies import WatchedValues
    from cfglint.engine.subject import Subject
    from cfglint.hardware.target import Target
    from cfglint.lang.pack import Pack

_ROUNDS = 8
_LEAST = 0.005  # GiB; what rounds to nothing explains nothing


def estimates(
    subject: Subject, target: Target, *, brief: bool = False, most: int = 3
) -> tuple[Estimate, ...]:
    """Return the estimates that widen the need on ``target``, the widest first.

    A name is one where its value is a range though everything that it was computed from is a point. What
    it contributes is found by putting its middle in its place; then the names that rest on it are looked at.
    ``brief`` leaves out what only the rules' trees tell, which take as long to load as all else together.
    """
    pinned: dict[str, object] = {}
    found: list[tuple[float, str, Interval]] = []
    for _ in range(_ROUNDS):
        values = watched(subject, {**given_by(target), **pinned})
        width = _width(values[TOTAL])
        if not 0 < width < INF:
            break
        sources = dict(_sources(values))
        if not sources:
            break
        for name, value in sources.items():
            alone = watched(subject, {**values.given, name: _middle(value)})
            gain = (width - _width(alone[TOTAL])) / GIB
            if gain >= _LEAST:
                found.append((-gain, name, value))
        pinned.update((name, _middle(value)) for name, value in sources.items())
    told = _in_brief if brief else _in_full
    return tuple(map(told(subject.pack), sorted(found, key=lambda one: one[:2])[:most]))


def _in_brief(pack: Pack) -> Callable[[tuple[float, str, Interval]], Estimate]:
    def tell(one: tuple[float, str, Interval]) -> Estimate:
        gain, name, value = one
        known = name in pack.measures
        return Estimate(name, show_number(value, pack.measures[name][0]) if known else "", "", -gain)

    return tell


def _in_full(pack: Pack) -> Callable[[tuple[float, str, Interval]], Estimate]:
    from cfglint.engine.describe import Evaluator, show_value

    symbols = pack.symbols()
    evaluator = Evaluator(symbols)

    def tell(one: tuple[float, str, Interval]) -> Estimate:
        gain, name, value = one
        fact = symbols.facts.get(name)
        about = fact.about if fact is not None else ""
        return Estimate(name, show_value(value, evaluator.type_of(name)), about, -gain)

    return tell


def _width(value: object) -> float:
    if not isinstance(value, Interval) or value.needs:
        return 0
    return value.hi - value.lo


def _middle(value: Interval) -> float:
    return (value.lo + value.hi) / 2 if value.hi < INF else value.lo


def _sources(values: WatchedValues) -> Iterator[tuple[str, Interval]]:
    """Yield the estimates at the bottom of what the need was computed from."""
    waiting, seen = [TOTAL], {TOTAL}
    while waiting:
        name = waiting.pop()
        below = values.reads.get(name, {})
        value = values[name]
        if (
            isinstance(value, Interval)
            and not value.needs
            and not any(isinstance(values[other], Interval) for other in below)
        ):
            yield name, value
        for other in below:
            if other not in seen:
                seen.add(other)
                waiting.append(other)
