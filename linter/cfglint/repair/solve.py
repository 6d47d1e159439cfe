"""From broken rules to repairs that are written and proven: one for several rules, the safest first.

Rules that share no knob are fixed apart: the cheapest repairs of each are then the cheapest of all. Where
they share knobs, or what was found apart does not hold together, one search fixes them together, so that a
move which serves two of them is paid once.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from itertools import combinations

from cfglint.engine.memory import bounds_of, memory_of
from cfglint.lang import tree as t
from cfglint.lang.types import is_number
from cfglint.record import Record, field, replace
from cfglint.repair.allowed import SAFE, Allowed, to_the_point, uncut
from cfglint.repair.batch_job import with_job
from cfglint.repair.found import Repair
from cfglint.repair.leftover import left_of
from cfglint.repair.machines import waits_for_others
from cfglint.repair.newer import refused_by
from cfglint.repair.options import Options
from cfglint.repair.price import gives_other_gpus, lays_out, regroups, serves_on_fewer
from cfglint.repair.relax import beside, cut
from cfglint.repair.results import risk_to_results
from cfglint.repair.search import CHEAPER, LIMIT, SAFE_LIMIT, Search
from cfglint.repair.single import nearest
from cfglint.repair.sparing import are_spared
from cfglint.repair.together import combined, distinct
from cfglint.repair.tracks import worse
from cfglint.repair.trials import MEMORY, Goal, Group, Trials, on_some_numbers, to_mend
from cfglint.repair.whole import quicker
from cfglint.repair.write import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cfglint.engine.run import Run
    from cfglint.engine.subject import Judged
    from cfglint.repair.tracks import Option, Track

_NEEDS = ("trainer.likely", "need.likely")
_TRIES = 3  # repairs that cannot be written or proven, before the search gives up
_MOST_TOGETHER = 12  # rules in one search
_ROUNDS = 4  # times that rules which are in the way are taken in


class Solver(Record):
    """Repairs of one document that break nothing on the ``watched`` targets.

    ``exhausted`` has the rules whose search ended at its limit of work; ``helpful`` has, by rule, the knobs
    with which the rule could be fixed; ``first`` has moves that reach goals whatever memory is then taken.
    """

    trials: Trials
    watched: tuple[Judged, ...]
    exhausted: set[str] = field(factory=set)
    helpful: dict[str, set[str]] = field(factory=dict)
    first: dict[tuple[Goal, ...], Repair] = field(factory=dict)
    _goals: dict[str, tuple[Goal, ...]] = field(factory=dict)
    _held_goals: dict[tuple[str, Judged], Goal] = field(factory=dict)
    _repairs: dict[tuple[object, ...], Repair | None] = field(factory=dict)
    _writers: dict[Judged, Writer] = field(factory=dict)
    _on_target: dict[tuple[str, Judged], bool] = field(factory=dict)
    _tracks: dict[tuple[object, ...], list[Track]] = field(factory=dict)

    def watching(self, *judgements: Judged) -> Solver:
        """Return a solver that shares all that this one found, and watches some targets alone."""
        return replace(self, watched=judgements)

    def goals(self, code: str) -> tuple[Goal, ...]:
        """Return what is to hold: a rule's requirement, on each target where it is broken or possible."""
        if code not in self._goals:
            rule = self.trials.run.finder.symbols.rules[code]
            self._goals[code] = tuple(
                Goal(judged, verdict.rule, rule)
                for judged in self.trials.judgements
                for verdict in judged.verdicts
                if verdict.rule.code == code and to_mend(verdict)
            )
        return self._goals[code]

    def named(self, codes: Iterable[str]) -> list[str]:
        """Return rules as they are told: their codes with their names."""
        return [f"{code} ({self.trials.run.finder.symbols.rules[code].name})" for code in codes]

    def is_mild(self, code: str) -> bool:
        """Whether a rule is no error."""
        return self.trials.run.finder.symbols.rules[code].level != "error"

    def rests_on_target(self, goal: Goal) -> bool:
        """Whether another target might satisfy a rule."""
        key = goal.code, goal.judged
        if key not in self._on_target:
            judged = goal.judged
            alone = judged.target is None or self.trials.run.without_target(goal.compiled, judged)
            self._on_target[key] = not alone
        return self._on_target[key]

    def writer(self, judged: Judged) -> Writer:
        """Return what writes facts of the document, as it is on a target."""
        if judged not in self._writers:
            self._writers[judged] = Writer(judged.subject, self.trials.run.finder.origins(judged))
        return self._writers[judged]

    def tracks(self, goals: Sequence[Goal]) -> list[Track]:
        """Return the tracks of all knobs that the goals' requirements depend on."""
        key = tuple(goals)
        if key not in self._tracks:
            judged = goals[0].judged
            needed = tuple(dict.fromkeys(goal.rule.requirement for goal in goals))
            whole = needed[0] if len(needed) == 1 else t.Junction("and", needed)
            switches = sorted(name for goal in goals if not goal.held for name in goal.switches)
            rules = self.trials.run.pack.rules[self.trials.run.pack.shipped :]
            own = all(goal.compiled in rules for goal in goals)
            stops = all(goal.rule.level == "error" for goal in goals)
            options = Options(self.trials, judged, self.writer(judged), of_own=own, stops=stops)
            self._tracks[key] = list(to_the_point(options.tracks(whole, switches), goals, options.writer))
        return self._tracks[key]

    # ── one search ─────────────────────────────────────────────────────────────────────────────────────
    def search(self, goals: Sequence[Goal], limit: int = LIMIT) -> Search:
        """Return a search for moves that reach some goals."""
        placed = any(self.rests_on_target(goal) for goal in goals)
        return Search(self.trials, list(goals), self.watched, limit, placed=placed)

    def cheapest(self, goals: Sequence[Goal], allowed: Allowed, best: Repair | None = None) -> Repair | None:
        """Return the cheapest proven repair that reaches all goals and harms nothing.

        ``best`` is one that was found before, which a cheaper one has to beat.
        """
        key = (tuple(goals), self.watched, allowed)
        if key not in self._repairs:
            search = replace(self.search(goals, allowed.limit), keeping=not allowed.unsafe)
            extended = partial(self._extended, search, goals, allowed)
            found = self._proven(search, goals, lambda: extended(None if search.refused else best))
            anew = partial(self.cheapest, goals)
            self._repairs[key] = quicker(self.trials, goals[0].judged, allowed, found, anew)
        return self._repairs[key]

    def _proven(
        self, search: Search, goals: Sequence[Goal], find: Callable[[], Repair | None]
    ) -> Repair | None:
        """Return the first repair of a search that can be written and proven."""
        for _ in range(_TRIES):
            repair = find()
            written = None if repair is None else self.written(self.as_one(repair, goals[0].judged), goals)
            if repair is None or (written is not None and not (search.keeping and written.unsafe)):
                return written
            search.refuse(repair)
        return None

    def as_one(self, repair: Repair, judged: Judged) -> Repair:
        """Return a repair whose keys are right with all its moves made: a fact may be read with another one.

        A budget of tokens that is told for one GPU is half as much where two GPUs share a sequence.
        """
        facts = combined(repair.options)
        if facts is None or len(repair.options) == 1:
            return repair
        writer, options = self.writer(judged), []
        for option in repair.options:
            value = option.facts.get(option.knob)
            others = {name: worth for name, worth in facts.items() if name not in option.facts}
            beside = writer.beside(self.trials.values(judged, others))
            known = is_number(value) and option.knob in beside.origins.symbols.types  # no key of a rule
            way = beside.writes(option.knob, value) if known else None
            again = {} if way is None else {each.path: each.value for each in way.keys}
            # what is tied to the knob's own key says the same as that
            same = {
                each.value: again[each.path]
                for each in option.written
                if each.path in again and is_number(each.value)
            }
            told = [again.get(each.path, _said(each.value, same)) for each in option.written]
            options.append(
                option if told == [each.value for each in option.written] else option.telling(told)
            )
        return replace(repair, options=tuple(options))

    def _extended(
        self, search: Search, goals: Sequence[Goal], allowed: Allowed, best: Repair | None
    ) -> Repair | None:
        """Search, and again with the rules that stood in the way as goals, while that may be cheaper."""
        wanted, first = list(goals), None
        for _ in range(_ROUNDS):
            search.pursue(wanted)
            tracks = allowed.over(self.tracks(wanted))
            best = search.cheapest(tracks, best)
            if search.exhausted and not allowed.without:
                self.exhausted.update(goal.code for goal in goals)
            for goal in goals:
                self.helpful.setdefault(goal.code, set()).update(search.helpful)
            if search.hopeless:
                break
            codes = {goal.code for goal in wanted}
            new = [code for code in search.blockers(best) if code not in codes]
            moved = {track.knob.name for track in tracks}
            held = [goal for code in new for goal in self._asked(code)]
            if first is None and best is None:
                first = self._placed(search, goals, new, allowed)
                best = first and self._filled(search, [*wanted, *held], allowed, first)
                if first is not None:
                    search.limit = min(search.limit, search.used + CHEAPER)
            if not held or all(track.knob.name in moved for track in self.tracks(held)):
                break
            wanted += held
        return best or (first and self._in_steps(search, wanted, allowed, first))

    def _placed(
        self, search: Search, goals: Sequence[Goal], blocking: Iterable[str], allowed: Allowed
    ) -> Repair | None:
        """Return what reaches the goals on other GPUs where memory stands against that, safe moves first."""
        if search.heedless or not search.placed or not any(code.startswith(MEMORY) for code in blocking):
            return None
        safe = self.anyhow(replace(search, keeping=True), goals, replace(allowed, unsafe=False))
        first = safe or (self.anyhow(search, goals, allowed) if allowed.unsafe else None)
        if first is not None:
            self.first.setdefault(tuple(goals), first)
        return first

    def _in_steps(
        self, search: Search, wanted: Sequence[Goal], allowed: Allowed, first: Repair
    ) -> Repair | None:
        """Return what makes a job fit after first moves: a search of its own, where one is too long."""
        chosen = {option.knob: option.facts for option in first.options}

        def goes_along(option: Option) -> bool:
            return option.says(chosen.get(option.knob, option.facts))

        second = replace(search, exhausted=False, refused=set(search.refused))
        second.pursue(wanted)
        return second.cheapest(allowed.over(track.where(goes_along) for track in self.tracks(wanted)))

    def _filled(
        self, search: Search, wanted: Sequence[Goal], allowed: Allowed, first: Repair
    ) -> Repair | None:
        """Return what makes a job fit after moves that stay as they are."""
        memory = [goal for goal in wanted if goal.code.startswith(MEMORY) and goal.bounds]
        if not memory:
            return None
        third = replace(search, exhausted=False, refused=set(search.refused), _start=-1)
        heedless = replace(third, heedless=True)
        if third.spent():
            return None
        third.pursue(memory)
        heedless.pursue(memory)

        def harmless(option: Option) -> bool:
            together = (*first.options, option)
            return third.possible(together) and not heedless.harms(together)

        tracks = (cut(track, harmless) for track in allowed.over(self.tracks(memory)))
        found = beside(third, [track for track in tracks if track is not None], first.options)
        third.pursue(wanted)
        return found if found is not None and third.mends(found.options) else None

    def anyhow(self, search: Search, goals: Sequence[Goal], allowed: Allowed) -> Repair | None:
        """Return what reaches the goals, whatever memory the job then takes."""
        heedless = replace(search, heedless=True, exhausted=False, refused=set(search.refused), _start=-1)
        return self._extended(heedless, goals, allowed, None)

    def of(self, code: str) -> tuple[Goal, ...]:
        """Return what is to hold of a rule, whether it does so now or not."""
        return self.goals(code) or tuple(self._held(code))

    def _asked(self, code: str) -> list[Goal]:
        """Return what is asked of a rule that stood in the way: of memory also where it lacked before."""
        held = list(self._held(code))
        if not code.startswith(MEMORY):
            return held
        return [
            goal
            for goal in held or self.goals(code)
            if goal.judged in self.watched and goal.compiled.level != "info"
        ]

    def _held(self, code: str) -> Iterator[Goal]:
        rule = self.trials.run.finder.symbols.rules[code]
        for judged in self.watched:
            base = self.trials.base(judged)
            compiled = next((r for r in base.rules if r.code == code), None)
            was = base.before.get(code)
            if compiled is not None and (was is None or was.truth is not False):
                yield self._held_goals.setdefault((code, judged), Goal(judged, compiled, rule, held=True))

    def likely(self, goals: Sequence[Goal], allowed: Allowed = SAFE) -> Repair | None:
        """Return moves that reach the goals, where another rule may be broken then: the cheapest."""
        key = (tuple(goals), self.watched, allowed, "likely")
        if key not in self._repairs:
            search = replace(self.search(goals, SAFE_LIMIT), keeping=not allowed.unsafe, lenient=True)

            def found() -> Repair | None:
                repair = self._extended(search, goals, allowed, None)
                return None if repair is None else replace(repair, sure=False)

            self._repairs[key] = self._proven(search, goals, found)
        return self._repairs[key]

    def nearest(self, goals: Sequence[Goal], allowed: Allowed, *, risky: bool = False) -> Repair | None:
        """Return the single move that comes nearest; a ``risky`` one cuts no data, and may change results."""
        search, tracks = self.search(goals), allowed.over(self.tracks(goals))
        if risky:
            tracks = [
                each for track in uncut(tracks) if (each := track.where(lambda one: one.unsafe).begun())
            ]
        return self._proven(search, goals, lambda: nearest(search, tracks))

    def written(self, repair: Repair, goals: Sequence[Goal]) -> Repair | None:
        """Return a repair with what reaches the goals: written and proven; None where the proof fails."""
        only = self.watched[0] if 0 < len(self.watched) < len(self.trials.judgements) else None
        writer = self.writer(goals[0].judged)
        plain = writer.patch(repair.written) if all(each.writable for each in repair.options) else None
        patch, repair = with_job(plain, repair, self.watched, self.trials)
        sure, refused = repair.sure, ""
        if patch is not None:
            trials, edits = self.trials, patch.edits
            removes = any(change.removed for change in patch.changes)
            mended = {(goal.judged, goal.code) for goal in goals if not goal.held}
            proven = partial(trials.proven, mended, self.watched, edits, removes=removes)
            if not proven(sure=repair.sure):
                return None
            facts = combined(repair.options) or {}
            own = {name for each in repair.options for name in (each.knob, *each.exchanged)} & set(facts)
            if not trials.reads({name: facts[name] for name in own}, self.watched, edits) or (
                removes and not trials.recognised(edits)
            ):
                return None
            sure = sure or proven(sure=True)
            refused = refused_by(trials, edits, self.watched) or trials.broken_elsewhere(edits)
        if not are_spared(self.trials, writer, repair, patch):
            return None
        memory = any(goal.code.startswith("MEM") and goal.compiled.level == "error" for goal in goals)
        sure = sure and not any(self._blind(repair, each, memory=memory) for each in self.watched)
        left = left_of(repair, patch, self.watched, self.trials, self.writer)
        alone, results = waits_for_others(repair, goals), self._results(repair)
        if said := [*filter(None, (left, alone, refused))]:
            sure = sure and not (left or alone)
            repair = repair.telling(said, risk="optimization" if alone or refused else "none")
        return replace(repair, goals=tuple(goals), patch=patch, only=only, results=results, sure=sure)

    def _blind(self, repair: Repair, judged: Judged, *, memory: bool) -> bool:
        """Whether a job with other GPUs or another layout, or ``memory`` for it, is not shown to fit."""
        facts = combined(repair.options) or {}
        if serves_on_fewer(facts, judged.values):
            return True
        if not (memory or lays_out(facts, engines=False) or gives_other_gpus(self.trials, judged, facts)):
            return False
        after = self.trials.values(judged, facts)
        each = on_some_numbers(after, after[_NEEDS[0]])
        needs, vram = [bounds_of(one[name]) for one in each for name in _NEEDS], bounds_of(after["gpu.vram"])
        over = vram is not None and any(need is None or need[1] > vram[1] for need in needs)
        tight = judged.target and memory_of(after, judged.target, asks=False)[0].verdict == "tight"
        return bool(tight) or (after["trains"] is True and over)

    def _results(self, repair: Repair) -> str:
        """Return what the moves together put at risk of the results, on any target."""
        facts = combined(repair.options) or {}
        return worse(*(risk_to_results(self.trials, judged, facts) for judged in self.watched))

    # ── the best of several searches ───────────────────────────────────────────────────────────────────
    def best(self, goals: Sequence[Goal], allowed: Allowed) -> Repair | None:
        """Return the cheapest repair that is safe, else the cheapest that is allowed at all."""
        safe = self.cheapest(goals, replace(allowed, unsafe=False, limit=min(allowed.limit, SAFE_LIMIT)))
        return safe if safe is not None or not allowed.unsafe else self.cheapest(goals, allowed)

    def mends(self, options: Sequence[Option], goals: Sequence[Goal]) -> bool:
        """Whether moves that were found apart reach all goals together, and harm nothing."""
        return combined(options) is not None and self.search(goals).mends(options)

    def hold_together(self, repairs: Sequence[Repair]) -> bool:
        """Whether repairs can be made together: all their goals are reached then, and nothing is harmed."""
        options = distinct(option for repair in repairs for option in repair.options)
        return bool(options) and self.mends(options, [goal for repair in repairs for goal in repair.goals])

    # ── several rules ──────────────────────────────────────────────────────────────────────────────────
    def repairs(self, groups: Sequence[Group], allowed: Allowed) -> list[Repair]:
        """Return repairs that together reach the goals of as many groups as can be, errors before the others.

        A repair's goals are those that it reaches. None of the repairs harms a rule that held.
        """
        alone = {
            group.code: repair for group in groups if (repair := self.best(group.goals, allowed)) is not None
        }
        if any(repair.unsafe for repair in alone.values()):
            for group in groups:  # what could fix it, now that results may change anyway
                self.cheapest(group.goals, allowed)
        able = sorted((g for g in groups if g.code in alone), key=lambda g: (not g.error, g.code))
        joint = _Joint(self, alone, allowed)
        parts = [repair for cluster in self._clusters(able) for repair in joint.repairs(cluster)]
        return parts if len(parts) < 2 or self.hold_together(parts) else joint.repairs(able)

    def _clusters(self, groups: Iterable[Group]) -> list[list[Group]]:
        """Return the groups, those together that a common knob could fix."""
        clusters: list[tuple[set[str], list[Group]]] = []
        for group in groups:
            knobs, members = set(self.helpful[group.code]), [group]
            apart = []
            for cluster in clusters:
                if cluster[0] & knobs:
                    knobs |= cluster[0]
                    members = cluster[1] + members
                else:
                    apart.append(cluster)
            clusters = [*apart, (knobs, members)]
        return [members for _, members in clusters]


@contextmanager
def solving(run: Run, judgements: Sequence[Judged]) -> Iterator[Solver]:
    """Give the repairs of a document that was judged; nothing may break on any target."""
    trials = Trials(run, tuple(judgements))
    try:
        yield Solver(trials, trials.judgements)
    finally:
        trials.forget()  # each knows its search, which only the garbage collector would notice


class _Joint(Record):
    """Repairs of several groups in one search; ``alone`` are those of each group for itself, by code."""

    solver: Solver
    alone: dict[str, Repair]
    allowed: Allowed

    def repairs(self, groups: Sequence[Group]) -> list[Repair]:
        """Return repairs of as many groups as can be, taken apart where they do without each other."""
        if len(groups) == 1:
            return [self.alone[groups[0].code]]
        repair = self._as_many(groups[:_MOST_TOGETHER])
        return [] if repair is None else self._split(repair)

    def _as_many(self, groups: Sequence[Group]) -> Repair | None:
        """Return a repair of all groups; where there is none, of as many as can be, from the first on."""
        if (whole := self._all(groups)) is not None:
            return whole
        kept: list[Group] = []
        best: Repair | None = None
        for group in groups:
            more = self._all([*kept, group])
            if more is not None:
                kept.append(group)
                best = more
        return best

    def _all(self, groups: Sequence[Group]) -> Repair | None:
        if len(groups) == 1:
            return self.alone[groups[0].code]
        solver, allowed = self.solver, self.allowed
        goals = [goal for group in groups for goal in group.goals]
        singles = [self.alone[group.code] for group in groups]
        dearest = max(singles, key=lambda repair: repair.price)
        if solver.mends(dearest.options, goals):  # no repair of all can be cheaper
            return solver.written(dearest, goals)
        options = distinct(option for repair in singles for option in repair.options)
        best = Repair(options) if options and solver.mends(options, goals) else None
        if not any(repair.unsafe for repair in singles):
            safe = solver.cheapest(goals, replace(allowed, unsafe=False), best)
            if safe is not None or not allowed.unsafe:
                return safe
        return solver.cheapest(goals, allowed, best)

    def _split(self, repair: Repair) -> list[Repair]:
        """Take a repair apart into the smallest sets of moves that reach some of its goals on their own.

        What moves a job to other GPUs and what makes it fit them stay together.
        """
        moved = regroups(combined(repair.options) or {})
        if len(repair.options) < 2 or (moved and any(g.code.startswith(MEMORY) for g in repair.goals)):
            return [repair]
        needed = {code: self._smallest(repair, code) for code in dict.fromkeys(g.code for g in repair.goals)}
        sets = list(dict.fromkeys(needed.values()))
        if any(a & b for a, b in combinations(sets, 2)) or frozenset().union(*sets) != repair.knobs:
            return [repair]
        parts = []
        for knobs in sets:
            goals = [goal for goal in repair.goals if needed[goal.code] == knobs]
            options = tuple(option for option in repair.options if option.knob in knobs)
            part = self.solver.written(Repair(options), goals)
            if part is None:
                return [repair]
            parts.append(part)
        return parts

    def _smallest(self, repair: Repair, code: str) -> frozenset[str]:
        goals = [goal for goal in repair.goals if goal.code == code]
        for size in range(1, len(repair.options)):
            for some in combinations(repair.options, size):
                if self.solver.mends(some, goals):
                    return frozenset(option.knob for option in some)
        return repair.knobs


def _said(value: object, same: Mapping[float, object]) -> object:
    """Return what a number has become, where others tell."""
    return same.get(value, value) if is_number(value) and not isinstance(value, bool) else value
