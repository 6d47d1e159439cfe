"""The cheapest set of moves that mends some broken requirements and breaks nothing else.

The search goes over sets of tracks (a knob's values in one direction), the cheapest set first, and in each
set over its places. It is exact: it ends when no set that is left can cost less than the best one found.
Small problems are simply enumerated in the order of cost. Of long tracks the places in between are found by
bisection, after it was seen that the requirements' gaps move in one direction along them (lines.py). The work
is limited: after `limit` trials the best repair so far counts, and `exhausted` is true.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise
from math import inf, isfinite
from typing import TYPE_CHECKING

from cfglint.lang.units import MEMORY
from cfglint.lang.values import INF, Interval, needs_of, parts
from cfglint.repair.candidates import UNSOLVABLE
from cfglint.repair.goals import DIGITS, Found, Goal, Price
from cfglint.repair.lines import SHORT, First, Reading, first, serving
from cfglint.repair.options import combined
from cfglint.repair.trials import key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cfglint.engine.subject import Judged
    from cfglint.facts import Values
    from cfglint.repair.options import Option, Track
    from cfglint.repair.trials import Trials

LIMIT = 2000  # trials of one search
SAFE_LIMIT = 800  # of the one among safe moves, which comes first
SMALL = 300  # combinations that are enumerated
FEW = 10  # tracks, among which those that help only beside another are always looked for
COMPANY = 400  # trials that look for them
NEAR = 32  # places of each track that are looked at before one is followed to its end
COARSE = 48  # places of a line that are looked at where nothing is sure
_NOISE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class _Lead:
    """A track that leads towards some goals (their numbers).

    ``straight`` if no gap grows along it, ``plain`` if it also has to do with no other goals than bounds.
    ``farthest`` is where the gaps are smallest, None where that is not known.
    """

    track: Track
    straight: bool
    plain: bool
    reaches: frozenset[int]
    farthest: Option | None


@dataclass(slots=True)
class Search:
    """A search for moves that reach ``goals`` and leave all other rules of the judged targets as they are.

    ``watched`` are the targets on which nothing may break. ``refused`` are combinations that were tried and
    could not be written or proven. ``helpful`` are the knobs that the last search had to do with.
    """

    trials: Trials
    goals: list[Goal]
    watched: Sequence[Judged]
    limit: int = LIMIT
    refused: set[tuple[tuple[str, type, object], ...]] = field(default_factory=set)
    exhausted: bool = False
    helpful: set[str] = field(default_factory=set)
    _harmed: dict[str, float] = field(default_factory=dict)
    _start: int = -1
    _readings: dict[tuple[tuple[str, type, object], ...], Reading] = field(default_factory=dict)

    # ── what becomes of the goals ──────────────────────────────────────────────────────────────────────
    def reading(self, options: Sequence[Option]) -> Reading:
        """Return what the goals come to when some knobs are moved."""
        facts = combined(options)
        if facts is None:
            return _IMPOSSIBLE
        key = key_of(facts)
        found = self._readings.get(key)
        if found is None:
            found = self._readings[key] = self._read(facts)
        return found

    def _read(self, facts: Mapping[str, object]) -> Reading:
        values = [self.trials.values(goal.one, facts) for goal in self.goals]
        truths = [goal.truth(self.trials, one, facts) for goal, one in zip(self.goals, values, strict=True)]
        bounded = all(truth is True for goal, truth in zip(self.goals, truths, strict=True) if goal.bounds)
        return Reading(_together(truths), lambda: tuple(self._missed(values)), bounded=bounded)

    def _missed(self, values: Sequence[Values]) -> Iterator[float]:
        """Yield by how much each bound of each goal is missed at worst, in base units."""
        evaluator = self.trials.run.finder.evaluator
        for goal, own in zip(self.goals, values, strict=True):
            for node in goal.gaps:
                try:
                    gap = evaluator(node, own)[0]
                except UNSOLVABLE:  # versions, or a quantifier's variable
                    gap = None
                yield parts(gap)[1] if isinstance(gap, (int, float, Interval)) else INF

    def harms(self, options: Sequence[Option]) -> bool:
        """Whether a rule that held is broken or open afterwards."""
        facts = combined(options)
        assert facts is not None
        harmed = [rule for one in self.watched for rule in self.trials.harmed(one, facts)]
        weight = sum(option.weight for option in options)
        for rule in harmed:
            self._harmed[rule.code] = min(weight, self._harmed.get(rule.code, inf))
        return bool(harmed) or key_of(facts) in self.refused

    def forget(self) -> None:
        """Forget what was read of other goals."""
        self._readings.clear()
        self._harmed.clear()

    @property
    def bounds(self) -> bool:
        """Whether the goals are made of bounds alone."""
        return all(goal.bounds for goal in self.goals)

    def spent(self) -> bool:
        """Whether the work that one search may do is done."""
        if self._start < 0:
            self._start = self.trials.count
        if self.trials.count - self._start >= self.limit:
            self.exhausted = True
        return self.exhausted

    # ── the search ─────────────────────────────────────────────────────────────────────────────────────
    def cheapest(self, tracks: Sequence[Track], known: Found | None = None) -> Found | None:
        """Return the cheapest moves along ``tracks`` after which the goals hold for certain.

        ``known`` is a repair that was found before, which a cheaper one has to beat.
        """
        usable = [track for track in tracks if track.option(0) is not None]
        if _combinations(usable, SMALL) <= SMALL:
            self.helpful = {track.knob.name for track in usable}
            return self._enumerated(usable, known)
        leads = [lead for lead in map(self._lead, usable) if lead.reaches]
        # A factor of what is zero now does nothing by itself: look again where the others lead.
        there = self._ends(leads)
        taken = {lead.track.knob.name for lead in leads}
        aside = [track for track in usable if there and track.knob.name not in taken]
        leads += [lead for track in aside if (lead := self._lead(track, there)).reaches]
        if len(usable) <= FEW or not self._within_reach(leads):
            leads += list(self._in_company(usable, leads))
        return self._led(leads if len(usable) <= FEW else list(self._without_detours(leads)), known)

    def _without_detours(self, leads: Sequence[_Lead]) -> Iterator[_Lead]:
        """Leave out a long way to and fro where the same knob leads farther in its other direction."""
        for lead in leads:
            end = lead.farthest
            if lead.straight or end is None or len(lead.track) <= SHORT:
                yield lead
                continue
            others = (o.farthest for o in leads if o is not lead and o.track.knob is lead.track.knob)
            if not any(other is not None and self._left(other) < self._left(end) for other in others):
                yield lead

    def _led(self, leads: list[_Lead], known: Found | None) -> Found | None:
        """Return the cheapest moves along tracks that lead somewhere."""
        self.helpful = {lead.track.knob.name for lead in leads}
        leads.sort(key=lambda lead: (lead.track.weight(0), lead.track.number))
        return self._by_sets(leads, self._near(leads, known)) if self._within_reach(leads) else known

    def _near(self, leads: Sequence[_Lead], best: Found | None) -> Found | None:
        """Return what one knob does by small steps, or as asked: it bounds how far others are followed."""
        broken = {number for number, goal in enumerate(self.goals) if not goal.held}
        for lead in leads:
            line = lead.track.line
            asked = (i for i, value in enumerate(line.values) if value in line.asked) if line.asked else ()
            for i in sorted({*range(min(NEAR, len(lead.track))), *asked}) if broken <= lead.reaches else ():
                option = lead.track.option(i)
                if option is None:
                    continue
                found = Found((option,))
                if self.spent() or (best is not None and found.price >= best.price):
                    break
                if self.reading((option,)).holds and not self.harms((option,)):
                    best = found
                    break
        return best

    def _in_company(self, tracks: Sequence[Track], leads: Sequence[_Lead]) -> Iterator[_Lead]:
        """Yield the tracks that do nothing by themselves, but beside one other, where that one ends."""
        taken = {lead.track.number for lead in leads}
        start = self.trials.count
        for track in tracks:
            if track.number in taken:
                continue
            for other in tracks:
                end = other.option(len(other) - 1)
                if other.knob.name == track.knob.name or end is None or self.trials.count - start > COMPANY:
                    continue
                lead = self._lead(track, (end,))
                if lead.reaches:
                    yield lead
                    break

    def _within_reach(self, leads: Sequence[_Lead]) -> bool:
        """Whether the bounds hold where each track leads farthest; not asked where one leads to and fro."""
        if not leads or any(lead.farthest is None for lead in leads):
            return bool(leads)
        return self.reading(self._ends(leads)).bounded

    def _ends(self, leads: Sequence[_Lead]) -> tuple[Option, ...]:
        """Return for each knob the end of its tracks where the gaps are smallest."""
        ends: dict[str, Option] = {}
        for lead in leads:
            end, name = lead.farthest, lead.track.knob.name
            if end is not None and (name not in ends or self._left(end) < self._left(ends[name])):
                ends[name] = end
        return tuple(ends.values())

    def _left(self, option: Option) -> tuple[bool, float]:
        """Return what a move leaves to be done: whether bounds are still missed, and by how much."""
        reading = self.reading((option,))
        return not reading.bounded, max(reading.gaps, default=0)

    def _enumerated(self, tracks: Sequence[Track], known: Found | None) -> Found | None:
        """Try all combinations in the order of their price."""
        axes = _axes(tracks)
        heap: list[tuple[Price, tuple[int, ...]]] = [(Found(()).price, (0,) * len(axes))]
        while heap and not self.spent():
            price, places = heappop(heap)
            if known is not None and price >= known.price:
                break
            options = [axis[i - 1] for axis, i in zip(axes, places, strict=True) if i]
            if options and self.reading(options).holds and not self.harms(options):
                return Found(tuple(options))
            last = max((k for k, i in enumerate(places) if i), default=0)
            for k in range(last, len(axes)):
                if places[k] < len(axes[k]):
                    after = (*places[:k], places[k] + 1, *places[k + 1 :])
                    moved = [axis[i - 1] for axis, i in zip(axes, after, strict=True) if i]
                    heappush(heap, (Found(tuple(moved)).price, after))
        return known

    def _lead(self, track: Track, others: tuple[Option, ...] = ()) -> _Lead:
        """Look at the start, the middle and the end of a track, with others moved."""
        count = len(track)
        options = [track.option(i) for i in sorted({0, count // 2, count - 1})]
        moved = [(*others, option) for option in options if option is not None]
        readings = [read for some in (others, *moved) if (read := self.reading(some)) is not _IMPOSSIBLE]
        first = next(option for option in options if option is not None)
        straight = True
        reaches, loose = set(), False
        start = 0
        for number, goal in enumerate(self.goals):
            own = slice(start, start + len(goal.gaps))
            start += len(goal.gaps)
            if track.knob.name in goal.switches:
                reaches.add(number)
                loose = True
            if not goal.bounds:
                if self.trials.touches(goal.one, goal.compiled, [name for name, _ in first.facts]):
                    reaches.add(number)
                    loose = True
                continue
            for one, other in pairwise(reading.gaps[own] for reading in readings):
                for a, b in zip(one, other, strict=True):
                    straight = straight and isfinite(a) and isfinite(b) and not _less(a, b)
                    if _less(b, a) or (not isfinite(a) and (isfinite(b) or not others)):
                        reaches.add(number)
        farthest = track.option(count - 1) if straight or count == 1 else self._farthest(track)
        if count > 1 and any(track.knob.name in goal.switches for goal in self.goals):
            farthest = None  # what switches a rule off may stand anywhere along it
        return _Lead(track, straight, straight and not loose, frozenset(reaches), farthest)

    def _farthest(self, track: Track) -> Option | None:
        """Return the best of some places of a long track that leads to and fro; a short one is left open."""
        if len(track) <= SHORT or not self.bounds:
            return None
        places = (*range(0, SHORT, 4), *(2**k for k in range(4, len(track).bit_length())))
        options = [option for i in places if i < len(track) and (option := track.option(i))]
        return min(options, key=lambda option: max(self.reading((option,)).gaps), default=None)

    def _by_sets(self, leads: Sequence[_Lead], best: Found | None) -> Found | None:
        """Try sets of tracks, that with the lowest price of its first places first."""
        broken = {number for number, goal in enumerate(self.goals) if not goal.held}
        heap: list[tuple[float, int, tuple[int, ...]]] = [(leads[0].track.weight(0), 1, (0,))]
        while heap and not self.spent():
            least, size, chosen = heappop(heap)
            if best is not None and round(least, DIGITS) > best.weight:
                break
            last = chosen[-1]
            if last + 1 < len(leads):
                added = leads[last + 1].track.weight(0)
                heappush(heap, (least + added, size + 1, (*chosen, last + 1)))
                heappush(heap, (least - leads[last].track.weight(0) + added, size, (*chosen[:-1], last + 1)))
            own = [leads[k] for k in chosen]
            if len({lead.track.knob.name for lead in own}) < size:
                continue
            if broken - frozenset().union(*(lead.reaches for lead in own)) or not self._within_reach(own):
                continue
            best = self._within(own, best)
        return best

    def _within(self, leads: Sequence[_Lead], best: Found | None) -> Found | None:
        """Return the cheapest repair that moves along each of some tracks, or the one that there was."""
        starts = self._starts(leads)
        ranked = sorted(leads, key=lambda lead: (len(lead.track) - starts[lead], lead.track.number))
        *outer, inner = ranked
        axes = [_options(lead.track, starts[lead]) for lead in outer]
        if not all(axes):
            return best
        least = inner.track.weight(starts[inner])
        heap: list[tuple[float, tuple[int, ...]]] = [(sum(axis[0].weight for axis in axes), (0,) * len(axes))]
        while heap and not self.spent():
            cost, places = heappop(heap)
            if best is not None and round(cost + least, DIGITS) > best.weight:
                break
            options = [axis[i] for axis, i in zip(axes, places, strict=True)]
            found = self._along(inner, starts[inner], options, best)
            if found is not None and (best is None or found.price < best.price):
                best = found
            last = max((k for k, i in enumerate(places) if i), default=0)
            for k in range(last, len(axes)):
                if places[k] + 1 < len(axes[k]):
                    after = (*places[:k], places[k] + 1, *places[k + 1 :])
                    heappush(heap, (sum(a[i].weight for a, i in zip(axes, after, strict=True)), after))
        return best

    def _starts(self, leads: Sequence[_Lead]) -> dict[_Lead, int]:
        """Return for each track the first place that can be enough, with all others as far as they lead."""
        if not all(lead.straight for lead in leads):
            return dict.fromkeys(leads, 0)
        ends = {lead: lead.track.option(len(lead.track) - 1) for lead in leads}
        starts = {}
        for lead in leads:
            others = [end for other, end in ends.items() if other is not lead and end is not None]
            starts[lead] = self._bisected(lead.track, others, 0, len(lead.track) - 1)
        return starts

    def _bisected(self, track: Track, others: Sequence[Option], low: int, high: int) -> int:
        """Return the first place, from ``low`` on, at which the bounds hold; they do at ``high``."""
        while low < high:
            middle = (low + high) // 2
            option = track.option(middle)
            if option is not None and self.reading([*others, option]).bounded:
                high = middle
            else:
                low = middle + 1
        return high

    def _along(self, lead: _Lead, start: int, others: Sequence[Option], best: Found | None) -> Found | None:
        """Return the first place of a track that, with other moves, reaches the goals without harm."""
        track = lead.track

        def moved(i: int) -> list[Option] | None:
            option = track.option(i)
            return None if option is None else [*others, option]

        def read(i: int) -> Reading:
            options = moved(i)
            return _IMPOSSIBLE if options is None else self.reading(options)

        def harms(i: int) -> bool:
            options = moved(i)
            return options is None or self.harms(options)

        spent = sum(option.weight for option in others)
        last = len(track) - 1
        if best is not None:
            last = bisect_right(range(last + 1), best.weight, key=lambda i: spent + track.weight(i)) - 1
        if last < start:
            return None
        if lead.plain:
            if not read(last).holds:
                return None
            found = First(self._bisected(track, others, start, last), bisected=True)
        else:
            found = first(track.line, read, self.reading(others) if self.bounds else None, last)
        if found.place is None or found.place > last:
            return None
        place = serving(track.line, found, lambda i: read(i).holds, harms)
        options = None if place is None else moved(place)
        return Found(tuple(options)) if options is not None else None

    def blockers(self, best: Found | None) -> list[str]:
        """Return the rules that stood in the way of a repair which would have cost less."""
        limit = inf if best is None else best.weight
        return sorted(code for code, weight in self._harmed.items() if weight < limit)

    def lack(self, tracks: Sequence[Track]) -> float | None:
        """Return the bytes that are missing where all tracks lead as far as they can, at the worst.

        None where the goals are no bounds on memory.
        """
        here = [self.trials.values(goal.one, {}) for goal in self.goals]
        evaluator = self.trials.run.finder.evaluator
        nodes = [(node, own) for goal, own in zip(self.goals, here, strict=True) for node in goal.gaps]
        if not self.bounds or any(evaluator(node, own)[1].dimension != MEMORY for node, own in nodes):
            return None
        best = max(self.reading(()).gaps)
        ends: dict[str, Option] = {}
        for track in tracks:
            last = track.option(len(track) - 1)
            if last is None:
                continue
            gap = max(self.reading((*ends.values(), last)).gaps)
            if gap < best and last.knob not in ends:
                best, ends[last.knob] = gap, last
        return best

    # ── where nothing is sure ──────────────────────────────────────────────────────────────────────────
    def nearest(self, tracks: Iterable[Track]) -> Found | None:
        """Return the one move after which the goals may be reached: a safe one first, the least overshoot."""
        ways: list[tuple[bool, float, Price, int, Found]] = []
        for track in tracks:
            places = track.line.scan()
            for i in sorted({*places[:: len(places) // COARSE + 1], places[-1]}):
                option = track.option(i)
                if option is None or self.spent():
                    continue
                reading = self.reading((option,))
                if reading.truth is not False and not reading.holds and not needs_of(reading.truth):
                    found = Found((option,), sure=False)
                    over = max((0.0, *reading.gaps))
                    ways.append((option.unsafe, over, found.price, track.number, found))
        for *_, found in sorted(ways, key=lambda way: way[:4]):
            if not self.harms(found.options):
                return found
        return None


_IMPOSSIBLE = Reading(False, lambda: (INF,))


def _together(truths: Sequence[object]) -> object:
    """Return the truth of all goals together: the first that is false or open, else true."""
    for truth in truths:
        if truth is False:
            return False
    return next((truth for truth in truths if truth is not True), True)


def _less(a: float, b: float) -> bool:
    """Whether a gap is smaller than another by more than the noise of its computation."""
    return b - a > _NOISE * max(abs(a), abs(b), 1)


def _options(track: Track, start: int = 0) -> list[Option]:
    return [option for i in range(start, len(track)) if (option := track.option(i)) is not None]


def _axes(tracks: Sequence[Track]) -> list[list[Option]]:
    """Return for each knob all its options, the cheapest first."""
    knobs: dict[str, list[Option]] = {}
    for track in tracks:
        knobs.setdefault(track.knob.name, []).extend(_options(track))
    return [sorted(options, key=lambda option: Found((option,)).price) for options in knobs.values()]


def _combinations(tracks: Sequence[Track], most: int) -> int:
    sizes: dict[str, int] = {}
    for track in tracks:
        sizes[track.knob.name] = sizes.get(track.knob.name, 1) + len(track)
    product = 1
    for size in sizes.values():
        product *= size
        if product > most:
            break
    return product
