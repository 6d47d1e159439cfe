"""What a repair may move: for each knob its lines of values, and all that a move brings with it.

A value that is written at a definition which other keys read moves their facts too and costs what those
moves cost. Values that a knob keeps (`keeping effective_batch_size with grad_accum`) are kept by moving the
partner; keys that a framework ties to the knob's own are written along.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cfglint.document.tree import dotted
from cfglint.engine.knobs import move_of
from cfglint.facts import convert
from cfglint.lang.values import Interval, Open, Unknown, needs_of
from cfglint.repair.candidates import UNPRICED, Broken, priced
from cfglint.repair.inverse import Written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cfglint.engine.subject import Judged
    from cfglint.lang import tree as t
    from cfglint.repair.lines import Line
    from cfglint.repair.trials import Trials
    from cfglint.repair.write import Writer

UNSAFE = 10_000  # times the cost of a safe change; no repair costs that much
LEAST = 0.01  # the cost of an unsafe change that is said to cost nothing
READER = 1.0  # the cost of a change in a key that no knob speaks of
_UNSETTLED = (Interval, Open, Unknown)


@dataclass(frozen=True, slots=True)
class Option:
    """One knob moved to a value: the facts that change with it, what stands in the file, and what is lost.

    ``effects`` are the knobs' own words; ``places`` are the definitions that are written, with the values.
    ``writable`` is false where no edit of the file can do it. ``steps`` is how far the value is from the
    present one, ``asked`` whether the requirement itself names it.
    """

    knob: str
    steps: float
    asked: bool
    facts: tuple[tuple[str, object], ...]
    written: tuple[Written, ...]
    places: tuple[tuple[object, object], ...]
    cost: float
    unsafe: bool
    effects: tuple[str, ...]
    writable: bool

    @property
    def weight(self) -> float:
        """What options are compared by: any safe change is better than one that may change results."""
        return self.cost + (UNSAFE * max(self.cost, LEAST) if self.unsafe else 0)


@dataclass(slots=True)
class Track:
    """A line of values of one knob, as options that are worked out when they are asked for."""

    options: Options
    knob: t.Knob
    line: Line
    number: int
    _known: dict[int, Option | None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.line.values)

    def option(self, i: int) -> Option | None:
        """Return the option at a place; None where the value cannot be had."""
        if i not in self._known:
            self._known[i] = self.options.option(self.knob, self.line, i)
        return self._known[i]

    def weight(self, i: int) -> float:
        """Return what an option weighs; infinitely much where it cannot be had."""
        option = self.option(i)
        return option.weight if option is not None else float("inf")


class Options:
    """The options of one document, as it stands on one target."""

    def __init__(self, trials: Trials, one: Judged, writer: Writer) -> None:
        self.trials = trials
        self.one = one
        self.writer = writer
        self.symbols = trials.run.finder.symbols
        self.evaluator = trials.run.finder.evaluator

    def holds(self, condition: t.Expr) -> bool:
        """Whether a condition holds as things stand."""
        return self.evaluator(condition, self.one.values)[0] is True

    def tracks(self, requirement: t.Expr, switches: Iterable[str] = ()) -> Iterator[Track]:
        """Yield the tracks of all knobs that a requirement depends on, through lets and bindings.

        Then those that its rule's condition itself asks for.
        """
        origins = self.writer.origins
        named = origins.names_in(requirement)
        names = (leaf for name in named for leaf in (name, *origins.leaves(name)))
        number = 0
        for name in dict.fromkeys((*names, *switches)):
            knob = self.symbols.knobs.get(name)
            if knob is None:
                continue
            for line in self._lines(knob, requirement):
                number += 1
                yield Track(self, knob, line, number)

    def _lines(self, knob: t.Knob, requirement: t.Expr) -> list[Line]:
        old = self.one.values[knob.name]
        if isinstance(old, _UNSETTLED) or self.writer.origins.of(knob.name).binding is None:
            return []
        kind = self.evaluator.type_of(knob.name)
        here = self.one
        broken = Broken(
            knob, old, kind, requirement, self.evaluator,
            lambda value: self.trials.values(here, {knob.name: value}), self.holds,
        )  # fmt: skip
        return broken.lines()

    def option(self, knob: t.Knob, line: Line, i: int) -> Option | None:
        """Return what moving a knob to a place of its line comes to; None where that cannot be had."""
        value = line.values[i]
        own = self.writer.written(knob.name, value, line.spelling)
        if own is None:
            return None
        made = _Made({knob.name: value}, [own], line.cost(i), line.move.unsafe, [line.move.effect])
        if not self._keep(knob, made):
            return None
        for name in tuple(made.facts):
            self._tie(name, made)
        for written in tuple(made.written):
            self._share(written, made)
        places = []
        writable = True
        for written in made.written:
            definition = self.writer.definition(written.path)
            writable = writable and definition.editable
            places.append((definition.key, written.value))
        return Option(
            knob.name,
            line.steps(i),
            value in line.asked,
            tuple(made.facts.items()),
            tuple(made.written),
            tuple(places),
            made.cost,
            made.unsafe,
            tuple(dict.fromkeys(effect for effect in made.effects if effect)),
            writable,
        )

    def _keep(self, knob: t.Knob, made: _Made) -> bool:
        """Move the knob's partner so that what it keeps stays; false where no whole value does that.

        What nobody states, there is no keeping.
        """
        if knob.keeping is None:
            return True
        kept = self.one.values[knob.keeping]
        if needs_of(kept):
            return True
        moved = self.trials.values(self.one, made.facts)[knob.keeping]
        if _same(kept, moved):
            return True
        for partner in knob.partners:
            old = self.one.values[partner]
            value = _in_exchange(kept, moved, old)
            if value is None:
                continue
            facts = {**made.facts, partner: value}
            written = self.writer.written(partner, value)
            if written is None or not _same(self.trials.values(self.one, facts)[knob.keeping], kept):
                continue
            made.facts[partner] = value
            made.written.append(written)
            return True
        return False

    def _tie(self, name: str, made: _Made) -> None:
        """Write the keys that the framework moves along, where they say the same as the fact's own key."""
        view = self.writer.subject.view
        own = next((w for w in made.written if self._reads(name, w)), None)
        if own is None:
            return
        definition = self.writer.definition(own.path)
        for path in self.writer.tied(name):
            if not view.has(path) or view.get(path) != view.get(own.path):
                continue
            if self.writer.definition(path).key == definition.key:
                continue
            made.written.append(Written(path, own.value))
            self._follow(dotted(path), own.value, made)

    def _reads(self, name: str, written: Written) -> bool:
        return written.path in self.writer.origins.of(name).paths

    def _share(self, written: Written, made: _Made) -> None:
        """Move what other keys read from the same definition; that costs what moving them costs."""
        definition = self.writer.definition(written.path)
        for path in definition.shared:
            if any(dotted(other.path) == path for other in made.written):
                continue
            names = self.writer.facts_at(path)
            if not names and path != definition.holder:
                made.cost += READER
            for name in names:
                if name in made.facts:
                    continue
                old = self.one.values[name]
                self._follow(path, written.value, made)
                other = self.symbols.knobs.get(name)
                if other is None:
                    made.cost += READER
                    continue
                new = made.facts.get(name, old)
                kind = self.evaluator.type_of(name)
                move = move_of(other, old, new, kind, self.holds) or UNPRICED
                made.cost += priced(other, move, kind, old, new)
                made.unsafe = made.unsafe or move.unsafe
                made.effects.append(move.effect)

    def _follow(self, path: str, value: object, made: _Made) -> None:
        for name in self.writer.facts_at(path):
            if name not in made.facts:
                made.facts[name] = convert(name, value, self.trials.run.pack.facts[name])


@dataclass(slots=True)
class _Made:
    """An option that is being put together."""

    facts: dict[str, object]
    written: list[Written]
    cost: float
    unsafe: bool
    effects: list[str]


def combined(options: Iterable[Option]) -> Mapping[str, object] | None:
    """Return the facts that options change together; None where they contradict each other."""
    facts: dict[str, object] = {}
    places: dict[object, object] = {}
    for option in options:
        for name, value in option.facts:
            if name in facts and facts[name] != value:
                return None
            facts[name] = value
        for key, value in option.places:
            if key in places and places[key] != value:
                return None
            places[key] = value
    return facts


def _same(one: object, other: object) -> bool:
    if isinstance(one, Interval) and isinstance(other, Interval):
        return (one.lo, one.hi) == (other.lo, other.hi)
    return one == other


def _in_exchange(kept: object, moved: object, old: object) -> object | None:
    """Return the partner's value that makes up for a move, where what is kept is proportional to it."""
    numbers = [v for v in (kept, moved, old) if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if len(numbers) < 3 or not moved:
        return None
    value = numbers[2] * numbers[0] / numbers[1]
    return int(value) if value == int(value) and value >= 1 else None
