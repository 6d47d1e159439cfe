"""The cheapest set of moves that fixes some broken requirements and breaks nothing else.

The search goes over sets of tracks (a knob's values in one direction), the cheapest set first, and in each
set over its places. It is exact: it ends when no set that is left can cost less than the best one found.
Small problems are enumerated in the order of cost. Of long tracks the places between are found by bisection,
where gaps move in one direction. After `limit` trials the best repair counts, and `exhausted` is true.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from functools import partial
from heapq import heappop, heappush
from itertools import islice, product
from math import inf, prod

from cfglint.budget import BUDGET, spend
from cfglint.lang.values import INF, Interval, parts
from cfglint.record import Record, field, replace
from cfglint.repair.along import Progress, first, serving
from cfglint.repair.estimate import may_fit
from cfglint.repair.found import DIGITS, Repair
from cfglint.repair.order import cheapest_first
from cfglint.repair.price import crowds, lays_out, overfilled, overfills_host, regroups
from cfglint.repair.relax import relaxed, utmost
from cfglint.repair.results import risk_to_results
from cfglint.repair.seen import places_of, seen
from cfglint.repair.together import combined
from cfglint.repair.tracks import SHORT, UNSOLVABLE, Option, Track
from cfglint.repair.trials import Goal, Trials, counts_gpus, is_possible, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cfglint.engine.subject import Judged
    from cfglint.facts import Values
    from cfglint.repair.base import Key

LIMIT = 800  # trials of one search
SAFE_LIMIT = 400  # of the one among safe moves, which comes first
CHEAPER = 200  # of one that looks for something cheaper than what was found
SMALL = 300  # combinations that are enumerated
TINY = 24  # as many as it takes to see that none can be enough
COMPANY = 400  # trials that look for those that help beside one other
FEW = 10  # tracks, among which those that help only beside another are always looked for
SEVERAL = 2  # tracks, from which on a repair is looked for that moves many at once
SETS = 4000  # of tracks that are looked at
NEAR = 32  # places of each track that are looked at before one is followed to its end
RESERVE = 1_500_000  # steps that are left for what the file's other findings need, and for the reasons
_ROUNDS = 2  # times that a track's places are looked at beside those of the others
_GOAL = 40  # steps: to see whether a goal is reached
_IMPOSSIBLE = Progress(False, lambda: (INF,))


class Search(Record):
    """A search for moves that reach ``goals`` and leave all other rules of the judged targets as they are.

    ``watched`` are the targets on which nothing may break. ``refused`` are combinations that were tried and
    could not be written or proven. A ``keeping`` search leaves the results as they are; a ``lenient`` one
    may leave other rules possible. A ``placed`` one is for a target's sake: moved to other GPUs, a job has
    to fit them; a ``heedless`` one leaves memory to another, a ``nearing`` one need not make a GPU's last.
    ``helpful`` are the knobs that the last search had to do with; ``hopeless``: memory is missing with all.
    """

    trials: Trials
    goals: list[Goal]
    watched: Sequence[Judged]
    limit: int = LIMIT
    keeping: bool = False
    lenient: bool = False
    placed: bool = False
    heedless: bool = False
    nearing: bool = False
    refused: set[Key] = field(factory=set)
    exhausted: bool = False
    hopeless: bool = False
    helpful: set[str] = field(factory=set)
    _harmed: dict[str, float] = field(factory=dict)
    _start: int = -1

    # ── what becomes of the goals ──────────────────────────────────────────────────────────────────────
    def progress(self, options: Sequence[Option]) -> Progress:
        """Return the goals' truths and gaps with some knobs moved."""
        facts = combined(options)
        if facts is None:
            return _IMPOSSIBLE
        known = self.trials.progress.setdefault((self.lenient, *self.goals), {})
        key = key_of(facts)
        if key not in known:
            known[key] = self._read(facts)
        return known[key]

    def _read(self, facts: Mapping[str, object]) -> Progress:
        spend(_GOAL * len(self.goals), "values that a fix could take")
        values = [self.trials.values(goal.judged, facts) for goal in self.goals]
        truths = [goal.truth(self.trials, own, facts) for goal, own in zip(self.goals, values, strict=True)]
        if self.lenient:
            told = zip(self.goals, truths, values, strict=True)
            truths = [
                (goal.held and (is_possible(truth) or may_fit(goal.compiled, own))) or truth
                for goal, truth, own in told
            ]
        bounded = all(truth is True for goal, truth in zip(self.goals, truths, strict=True) if goal.bounds)
        open_ones = (truth for truth in truths if truth is not True)
        together = False if any(truth is False for truth in truths) else next(open_ones, True)
        goals = self.goals  # the search may pursue others when the gaps are asked for
        return Progress(together, lambda: tuple(self._missed(goals, values)), bounded)

    def _missed(self, goals: Sequence[Goal], values: Sequence[Values]) -> Iterator[float]:
        """Yield by how much each bound of each goal is missed at worst, in base units."""
        evaluator, numbered = self.trials.run.finder.evaluator, self.trials.on_some_numbers
        for goal, own in zip(goals, values, strict=True):
            for node in goal.gaps:
                try:
                    gaps = [evaluator(node, own)[0]]
                    if counts_gpus(gaps[0]):
                        gaps = [evaluator(node, each)[0] for each in numbered(own, goal.compiled)]
                except UNSOLVABLE:  # versions, or a quantifier's variable
                    gaps = [None]
                yield max(parts(gap)[1] if isinstance(gap, (int, float, Interval)) else INF for gap in gaps)

    def harms(self, options: Sequence[Option], *, surely: bool = False) -> bool:
        """Whether a rule that held is broken or open afterwards, or, with ``surely``, certainly broken."""
        facts = combined(options)
        assert facts is not None
        watched, surely = self.watched, surely or self.lenient
        infos = not self.trials.is_serious(goal.code for goal in self.goals if not goal.held)
        harmed = [
            rule
            for judged in watched
            for rule in self.trials.harmed(judged, facts, surely=surely, infos=infos)
            if not (self.heedless and rule.code.startswith("MEM"))
            if not (self.lenient and may_fit(rule, self.trials.values(judged, facts)))
        ]
        at_all = self.lenient or (self.placed and (regroups(facts) or lays_out(facts)))
        fills = overfills_host if self.nearing else partial(overfilled, at_all=at_all)
        over = [each for each in (() if self.heedless else watched) if fills(self.trials, each, facts)]
        blocking = [*harmed, *(rule for judged in over for rule in self.trials.short(judged, facts))]
        weight = sum(option.weight for option in options)
        for rule in blocking:
            self._harmed[rule.code] = min(weight, self._harmed.get(rule.code, inf))
        return (
            bool(harmed or over)
            or any(crowds(self.trials, judged, facts) for judged in watched)
            or key_of(facts) in self.refused
            or (self.keeping and not self._keeps(options))
        )

    def _keeps(self, options: Sequence[Option]) -> bool:
        """Whether moves together keep the results, where one of them alone would not."""
        if all(option.results == "none" for option in options):
            return True
        facts = combined(options) or {}
        return all(risk_to_results(self.trials, judged, facts) == "none" for judged in self.watched)

    def possible(self, options: Sequence[Option]) -> bool:
        """Whether moves can be made together."""
        return combined(options) is not None

    def mends(self, options: Sequence[Option]) -> bool:
        """Whether moves certainly satisfy the goals and break nothing."""
        return self.progress(options).holds and not self.harms(options)

    def refuse(self, repair: Repair) -> None:
        """Never return these moves again."""
        self.refused.add(key_of(combined(repair.options) or {}))

    def pursue(self, goals: Sequence[Goal]) -> None:
        """Search for other goals from now on."""
        self.goals = list(goals)
        self._harmed.clear()

    @property
    def bounds(self) -> bool:
        """Whether the goals are made of bounds alone."""
        return all(goal.bounds for goal in self.goals)

    @property
    def used(self) -> int:
        """How many trials it has made."""
        return self.trials.count - self._start if self._start >= 0 else 0

    def spent(self) -> bool:
        """Whether the search has used up its trials, or the file what its searches may take."""
        if self._start < 0:
            self._start = self.trials.count
        if self.trials.count - self._start >= self.limit or BUDGET.left < RESERVE:
            self.exhausted = True
        return self.exhausted

    # ── the search ─────────────────────────────────────────────────────────────────────────────────────
    def cheapest(self, tracks: Sequence[Track], best: Repair | None = None) -> Repair | None:
        """Return the cheapest moves along ``tracks`` after which the goals hold for certain.

        ``best`` is a repair that was found before, which a cheaper one has to beat.
        """
        usable = [track for track in tracks if track.option(0) is not None]
        sizes: Counter[str] = Counter()
        for track in usable:
            sizes[track.knob.name] += len(track)
        combinations = prod(size + 1 for size in sizes.values())
        if combinations <= SMALL:
            self.helpful = {track.knob.name for track in usable}
            vain = combinations > TINY and self._in_vain(usable)
            return best if vain else self._enumerated(usable, best)
        leading = [track for track in (seen(self, track) for track in usable) if track.reaches]
        # A factor of what is zero now does nothing by itself: look again where the others lead.
        there = self._compatible(self._ends(leading))
        taken = {track.knob.name for track in leading}
        aside = [track for track in usable if there and track.knob.name not in taken]
        leading += [along for track in aside if (along := seen(self, track, there)).reaches]
        together = self._reach_together(leading)
        if len(leading) > SEVERAL and not together and self._short(usable):
            self.helpful, self.hopeless = {track.knob.name for track in leading}, True
            return best
        if best is None and len(leading) > SEVERAL:
            best = relaxed(self, usable)
            if best is not None:
                self.limit = min(self.limit, self.used + CHEAPER)
        if len(usable) <= FEW or not together:
            leading += list(self._in_company(usable, leading))
        if len(usable) > FEW:
            leading = list(self._without_detours(leading))
        self.helpful = {track.knob.name for track in leading}
        leading.sort(key=lambda track: (track.weight(0), track.number))
        return self._by_sets(leading, self._near(leading, best)) if self._some_reach(leading) else best

    def _enumerated(self, tracks: Sequence[Track], best: Repair | None) -> Repair | None:
        """Try all combinations in the order of their price."""
        knobs: dict[str, list[Option]] = {}
        for track in tracks:
            knobs.setdefault(track.knob.name, []).extend(track.options())
        axes = [sorted(options, key=lambda option: Repair((option,)).price) for options in knobs.values()]

        def moved(places: tuple[int, ...]) -> Repair:
            return Repair(tuple(axis[i - 1] for axis, i in zip(axes, places, strict=True) if i))

        for price, places in cheapest_first([len(axis) + 1 for axis in axes], lambda at: moved(at).price):
            if self.spent() or (best is not None and price >= best.price):
                break
            repair = moved(places)
            if repair.options and self.mends(repair.options):
                return repair
        return best

    def _in_company(self, tracks: Sequence[Track], leading: Sequence[Track]) -> Iterator[Track]:
        """Yield the tracks that do nothing by themselves, but beside one other, where that one ends.

        Many tracks are looked at beside all others at once.
        """
        taken, start = {track.number for track in leading}, self.trials.count
        ends = [(track, end) for track in tracks if (end := track.option(len(track) - 1)) is not None]
        for track in tracks:
            if track.number in taken:
                continue
            others = [end for other, end in ends if other.knob.name != track.knob.name]
            groups = [(end,) for end in others] if len(tracks) <= FEW else [self._compatible(others)]
            ways = (seen(self, track, beside) for beside in groups if self.trials.count - start <= COMPANY)
            yield from islice((along for along in ways if along.reaches), 1)

    def _without_detours(self, tracks: Sequence[Track]) -> Iterator[Track]:
        """Leave out a long way to and fro where the same knob leads farther in its other direction."""
        for track in tracks:
            end = track.farthest
            if track.straight or end is None or len(track) <= SHORT:
                yield track
                continue
            ends = (back.farthest for back in tracks if back is not track and back.knob is track.knob)
            if not any(back is not None and self._left(back) < self._left(end) for back in ends):
                yield track

    def _within_reach(self, tracks: Sequence[Track]) -> bool:
        """Whether the bounds hold where each track leads farthest; one to and fro may do so at any place."""
        ends = self._ends(tracks)
        astray = [track for track in tracks if track.farthest is None]
        if not astray or not tracks or not self.possible(ends):
            return bool(tracks) and self.progress(ends).bounded
        moved = {end.knob: end for end in ends}
        for _, track in product(range(_ROUNDS), astray):
            name = track.knob.name
            others = tuple(option for knob, option in moved.items() if knob != name)
            ways = [*((moved[name],) if name in moved else ()), *places_of(track)]
            able = [option for option in ways if self.possible((*others, option))]
            if able:
                moved[name] = min(able, key=lambda option: self._left(option, others))
                if self.progress((*others, moved[name])).bounded:
                    return True
        return False

    def _reach_together(self, tracks: Sequence[Track]) -> bool:
        """Whether the bounds hold with as many of the tracks as can be moved together."""
        return self._within_reach(tracks) or self.progress(self._compatible(self._ends(tracks))).bounded

    def _some_reach(self, tracks: Sequence[Track]) -> bool:
        """Whether the bounds may hold with some of the tracks, where they exclude each other."""
        return self._within_reach(tracks) or not self.possible(self._ends(tracks))

    def _ends(self, tracks: Sequence[Track]) -> tuple[Option, ...]:
        """Return for each knob the end of its tracks where the gaps are smallest."""
        ends: dict[str, Option] = {}
        for track in tracks:
            end, name = track.farthest, track.knob.name
            if end is not None and (name not in ends or self._left(end) < self._left(ends[name])):
                ends[name] = end
        return tuple(ends.values())

    def _compatible(self, options: Iterable[Option]) -> tuple[Option, ...]:
        """Return what can be made together of some options; those go first that leave least to be done."""
        chosen: tuple[Option, ...] = ()
        for option in sorted(options, key=self._left):
            chosen = (*chosen, option) if self.possible((*chosen, option)) else chosen
        return chosen

    def _left(self, option: Option, others: tuple[Option, ...] = ()) -> tuple[bool, float]:
        """Return what a move leaves to be done beside others: whether bounds are missed, and by how much."""
        progress = self.progress((*others, option))
        return not progress.bounded, max(progress.gaps, default=0)

    @property
    def _broken(self) -> set[int]:
        """The numbers of the goals that do not hold yet."""
        return {number for number, goal in enumerate(self.goals) if not goal.held}

    def _near(self, tracks: Sequence[Track], best: Repair | None) -> Repair | None:
        """Return what one knob does by small steps, or as asked: it bounds how far others are followed."""
        for track in tracks:
            if not self._broken <= track.reaches:
                continue
            asked = {i for i, value in enumerate(track.values) if value in track.asked} if track.asked else ()
            for i in sorted({*range(min(NEAR, len(track))), *asked}):
                option = track.option(i)
                if option is None:
                    continue
                repair = Repair((option,))
                if self.spent() or (best is not None and repair.price >= best.price):
                    break
                if self.mends((option,)):
                    best = repair
                    break
        return best

    def _by_sets(self, tracks: Sequence[Track], best: Repair | None) -> Repair | None:
        """Try sets of tracks, that with the lowest price of its first places first."""
        heap: list[tuple[float, int, tuple[int, ...]]] = [(tracks[0].weight(0), 1, (0,))]
        for _ in range(SETS):
            if not heap or self.spent():
                break
            least, size, chosen = heappop(heap)
            if best is not None and round(least, DIGITS) > best.weight:
                break
            last = chosen[-1]
            if last + 1 < len(tracks):
                added = tracks[last + 1].weight(0)
                heappush(heap, (least + added, size + 1, (*chosen, last + 1)))
                heappush(heap, (least - tracks[last].weight(0) + added, size, (*chosen[:-1], last + 1)))
            own = [tracks[k] for k in chosen]
            if len({track.knob.name for track in own}) < size:
                continue
            if self._broken <= frozenset().union(*(track.reaches for track in own)) and self._within_reach(
                own
            ):
                best = self._within(own, best)
        return best

    def _within(self, tracks: Sequence[Track], best: Repair | None) -> Repair | None:
        """Return the cheapest repair that moves along each of some tracks, or the one that there was."""
        starts = self._starts(tracks)
        *outer, inner = sorted(tracks, key=lambda track: (len(track) - starts[track], track.number))
        axes = [track.options(starts[track]) for track in outer]
        if not all(axes):
            return best
        least = inner.weight(starts[inner])

        def weight(places: tuple[int, ...]) -> float:
            return sum(axis[i].weight for axis, i in zip(axes, places, strict=True))

        for spent, places in cheapest_first([len(axis) for axis in axes], weight):
            if self.spent() or (best is not None and round(spent + least, DIGITS) > best.weight):
                break
            options = [axis[i] for axis, i in zip(axes, places, strict=True)]
            repair = self._along(inner, starts[inner], options, best)
            if repair is not None and (best is None or repair.price < best.price):
                best = repair
        return best

    def _starts(self, tracks: Sequence[Track]) -> dict[Track, int]:
        """Return for each track the first place that can be enough, with all others as far as they lead."""
        if not all(track.straight for track in tracks):
            return dict.fromkeys(tracks, 0)
        ends = {track: track.option(len(track) - 1) for track in tracks}
        starts = {}
        for track in tracks:
            others = [end for along, end in ends.items() if along is not track and end is not None]
            starts[track] = self._bisected(track, others, 0, len(track) - 1)
        return starts

    def _bisected(self, track: Track, others: Sequence[Option], low: int, high: int) -> int:
        """Return the first place, from ``low`` on, at which the bounds hold; they do at ``high``."""

        def bounded(i: int) -> bool:
            option = track.option(i)
            return option is not None and self.progress([*others, option]).bounded

        return bisect_left(range(high), True, low, key=bounded)

    def _along(
        self, track: Track, start: int, others: Sequence[Option], best: Repair | None
    ) -> Repair | None:
        """Return the first place of a track that, with other moves, reaches the goals without harm."""

        def read(i: int) -> Progress:
            option = track.option(i)
            return _IMPOSSIBLE if option is None or self.spent() else self.progress([*others, option])

        def harms(i: int) -> bool:
            option = track.option(i)
            return option is None or self.harms([*others, option])

        def holds(i: int) -> bool:
            return read(i).holds

        spent = sum(option.weight for option in others)
        last = len(track) - 1
        if best is not None:
            last = bisect_right(range(last + 1), best.weight, key=lambda i: spent + track.weight(i)) - 1
        if last < start or (track.plain and not holds(last)):
            return None
        place: int | None
        if track.plain:
            place, bisected = self._bisected(track, others, start, last), True
        else:
            present = self.progress(others) if self.bounds else None
            place, bisected = first(track, read, present, last)
        if place is None or place > last:
            return None
        place = serving(track, place, bisected=bisected, holds=holds, harms=harms)
        option = None if place is None else track.option(place)
        return Repair((*others, option)) if option is not None else None

    def blockers(self, best: Repair | None) -> list[str]:
        """Return the rules that blocked a cheaper repair."""
        limit = inf if best is None else best.weight
        return sorted(code for code, weight in self._harmed.items() if weight < limit)

    def _short(self, tracks: Sequence[Track]) -> bool:
        """Whether memory is still missing with all knobs moved as far as that helps."""
        furthest = utmost(self, tracks)
        return furthest is not None and furthest[0] > 0

    def _in_vain(self, tracks: Sequence[Track]) -> bool:
        """Whether the goals about memory are missed whatever is moved, others among them or not."""
        bounded = [goal for goal in self.goals if goal.bounds]
        furthest = utmost(replace(self, goals=bounded), tracks) if bounded else None
        return furthest is not None and furthest[0] > 0
