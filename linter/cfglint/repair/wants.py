"""What findings of a document are told to do: the fix, the other ways out, or why there is none."""

from __future__ import annotations

from functools import partial

from cfglint.document.spoken import spoken
from cfglint.engine.memory import GIB, bounds_of
from cfglint.record import Record, field, replace
from cfglint.repair.afterwards import afterwards
from cfglint.repair.allowed import ANY, SAFE, SHOWN
from cfglint.repair.estimate import middle
from cfglint.repair.few import asked_of, is_of_number, too_few
from cfglint.repair.fixes import MOST, fix_of, fixes_of
from cfglint.repair.found import Repair
from cfglint.repair.hardware import Market, mended_elsewhere
from cfglint.repair.one_here import one_here
from cfglint.repair.place import as_many, hardware_fix
from cfglint.repair.price import lays_out
from cfglint.repair.proposals import Repairs, does_not_fit, doubt, is_certain, stranding
from cfglint.repair.reason import Reason
from cfglint.repair.served import with_engine
from cfglint.repair.shared import too_long
from cfglint.repair.shortage import moved_besides
from cfglint.repair.sized import hosted, sent_away, ways_away
from cfglint.repair.stranded import BY_HAND, NOWHERE, nowhere, stranded_told
from cfglint.repair.template import shared_at_launch
from cfglint.repair.tighter import anyhow, furthest, tightened
from cfglint.repair.together import combined
from cfglint.repair.trials import MEMORY
from cfglint.repair.turns import turned
from cfglint.repair.write import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from cfglint.engine.subject import Judged
    from cfglint.findings import Fix
    from cfglint.repair.proposals import Doubt
    from cfglint.repair.solve import Solver
    from cfglint.repair.tracks import Option
    from cfglint.repair.trials import Goal, Group

    _Near: TypeAlias = tuple[Sequence[Goal], Repair | None, Collection[str], float]


_MUCH = 0.75  # of the memory before
_LEFT = 0.25  # of what is missing at worst
_TOO_SLOW = 19.0  # times what a step takes, that it takes longer: a rule of thumb, which the message says
_SLOW = 1.0  # times what a step takes, that it takes longer
_WILD = 2.0  # times what a GPU has, where the middle of an estimate is too far off to offer anything
_EMPTY = 10.0  # times the least of an estimate: beyond, nobody can tell
_WELL, _AT_BEST = 0.6, 0.95  # of what a GPU has: the least of an estimate that may well fit it, or may at all
_CUT = "nothing was found for this hardware but what cuts long samples, or stops at them"
_NO_RISK = ("none",)
_SHOWN = replace(SHOWN, unsafe=False, limit=300)
_LESS_RISKY = ("none", "numerics", "optimization")  # nobody cuts data for what may not be enough


class Wants(Record):
    """What findings of a document are told to do: fixes, the best first, or why there is none."""

    solver: Solver
    groups: Mapping[str, Group]
    repairs: Repairs
    _markets: dict[Judged, Market] = field(factory=dict)
    _doubts: dict[Judged, Doubt | None] = field(factory=dict)
    _stranded: dict[Judged, list[Goal]] = field(factory=dict)
    _fixes: dict[tuple[Repair, Judged], list[Fix]] = field(factory=dict)
    _elsewheres: dict[tuple[Judged, tuple[Goal, ...], bool], list[Fix]] = field(factory=dict)
    _told: dict[str, Reason] = field(factory=dict)
    _nears: dict[tuple[Judged, tuple[str, ...], bool], list[Fix]] = field(factory=dict)

    def proposals(self, code: str, judged: Judged) -> tuple[list[Fix], str]:
        """Return the fix of a rule on a target, and the other ways out; with a text, there is no fix."""
        group, repair = self.groups[code], self.repairs.of(code, judged)
        instead = self._of_other_gpus(group, judged) or self._instead(group, judged)
        if instead is not None:
            return instead
        if repair is None or (repair, judged) not in self._fixes:
            fixes = self._fixes_of(group, judged, repair)
            if repair is not None:
                self._fixes[repair, judged] = fixes
        else:
            fixes = self._fixes[repair, judged]
        fixes = sorted(fixes, key=lambda fix: fix.risk == "data")  # nobody cuts data first
        asks = code.startswith(MEMORY) and not is_certain(group)
        doubted = self._doubt(judged) if asks else None
        if doubted is not None:
            fixes = [fix for fix in fixes if fix.applicability == "safe" and fix.certainty == "sure"]
            if doubted.open or not fixes:
                return fixes, doubted.text
        here = [goal for goal in group.goals if goal.judged is judged and goal.broken]
        elsewhere = self._elsewhere(judged, here, may=not fixes) if group.error and here else []
        placed = code.startswith("MEM") or any(map(self.solver.rests_on_target, here))
        if placed and fixes and fixes[0].risk != "none":
            cuts = all(fix.risk == "data" for fix in fixes)  # nobody cuts data for what money buys
            every = group.goals if repair is None else repair.goals
            near = self._near(every, judged, unsafe=cuts)  # first what may be enough
            if fixes[0].risk == "numerics":
                fixes = [*near, *fixes]
            elif near or cuts:
                return [*near, *elsewhere, *fixes][:MOST], "" if near else _CUT
        if placed and fixes and _share(fixes[0]) > _SLOW:  # first what may be enough, and takes no such time
            goals = group.goals if repair is None else repair.goals
            near = [one for one in self._near(goals, judged) if _share(one) < _share(fixes[0]) / 2]
            fixes = [*near, *fixes]
        endless = placed and fixes and _is_endless(fixes[0])
        if endless and (not group.error or (here and self._runs_elsewhere(judged, here))):
            return [*elsewhere, *fixes][:MOST], _slowness(fixes[0])
        fixes[MOST - 1 :] = elsewhere or fixes[MOST - 1 :]
        if not fixes or (not fixes[0].edits and fixes[0].target is not None):  # only another machine would do
            return self._without_fix(group, judged, fixes)
        return fixes, ""

    def _fixes_of(self, group: Group, judged: Judged, repair: Repair | None) -> list[Fix]:
        return fixes_of(self.solver, group, judged, repair)

    def _without_fix(self, group: Group, judged: Judged, fixes: list[Fix]) -> tuple[list[Fix], str]:
        """Return what is said where no edit mends a rule: why, and what may be enough."""
        here = [goal for goal in group.goals if goal.judged is judged and goal.broken]
        some = self._on_some(judged, here)
        told = Reason(some) if some else self._reason(group.code)
        return [*self._hope(here, judged, told), *fixes][:MOST], told.text

    def _cut(self, goals: Sequence[Goal], judged: Judged) -> list[Fix]:
        """Return a cut of the data after which the job fits by its likely need."""
        solver, wanted = self.solver.watching(judged), tuple(goals)
        return self._found_near(judged, wanted, furthest(solver, wanted, ANY, cuts=True), ("data",), 0.0)

    def _instead(self, group: Group, judged: Judged) -> tuple[list[Fix], str] | None:
        """Return what is said of a rule where a job does not run on a target whatever mends this one."""
        code = group.code
        if judged in self.repairs.over and self.repairs.of(code, judged) is None:
            return self._of_too_large(group, judged)
        stranded = self._stranding(judged)
        # what only warns is mended for itself: what lets the job run there may leave it as it is
        placed = any(map(self.solver.rests_on_target, group.goals))
        kernel = code.startswith("PRC") and not self.solver.is_mild(code) and placed
        if any(goal.code == code for goal in stranded) or (stranded and (kernel or code.startswith("MEM"))):
            return self._of_stranded(group, judged)
        return self._held_back(group, judged) if code.startswith("MEM") else None

    def _of_other_gpus(self, group: Group, judged: Judged) -> tuple[list[Fix], str] | None:
        """Return other hardware for what asks for far more GPUs, or has fewer share too long a sequence."""
        from cfglint.repair.vain import in_vain

        asked, repair = asked_of(judged), self.repairs.of(group.code, judged)
        here = [goal for goal in group.goals if goal.judged is judged and goal.broken]
        if asked and any(is_of_number(self.solver.trials, goal, asked) for goal in here):
            found = self._elsewhere(judged, here) or as_many(judged, asked)
            return found, in_vain(self.solver, group, laid=False, states=True) or too_few(judged, asked)
        told = _too_long(self.solver, repair, judged) if repair is not None else ""
        return (self._elsewhere(judged, here), told) if told else None

    def _on_some(self, judged: Judged, goals: Sequence[Goal]) -> str:
        """Say that a file is right for some of the GPUs that are there; nothing where it is not."""
        places = self._markets[judged].places(tuple(goals)) if judged in self._markets and goals else []
        some = any(place.own and not (place.may or place.accumulation or place.amid) for place in places)
        if not some and one_here(self.solver.trials, judged, goals) is not None:
            return "nothing in the file has to change: it may run on one of the GPUs here"
        return "nothing in the file has to change: it runs on some of the GPUs here" if some else ""

    def _hope(self, goals: Sequence[Goal], judged: Judged, told: Reason) -> list[Fix]:
        """Return moves after which a job fits by the least it may need, where nobody can tell.

        They are those that the reason names, where they do not cut the data.
        """
        if not goals or not (told.unsure or told.moves):
            return []
        solver = self.solver.watching(judged)
        ways = (
            self._found_near(judged, goals, one, _LESS_RISKY, _AT_BEST)
            for one in self._ways_hoped(solver, tuple(goals), judged, told)
        )
        found = next(filter(None, ways), [])
        cut = furthest(solver, goals, ANY, cuts=True) or solver.likely(goals, ANY) if found else None
        return [*found, *self._found_near(judged, goals, cut, ("data",), _AT_BEST)]

    def _ways_hoped(
        self, solver: Solver, goals: tuple[Goal, ...], judged: Judged, told: Reason
    ) -> Iterator[Repair | None]:
        """Yield what is searched for where nobody can tell, then the moves that the reason names."""
        if told.unsure:
            last = furthest(solver, goals, SAFE) or solver.nearest(goals, SAFE)
            moving = tuple(goal for goal in goals if not goal.code.startswith(MEMORY))
            if last is None and moving:  # whatever memory that takes
                first = solver.anyhow(solver.search(moving), moving, SAFE)
                last = None if first is None else solver.written(replace(first, sure=False), goals)
            last = last or anyhow(solver, goals, judged)  # fewer GPUs, which may hold the job
            more = () if last is None else moved_besides(solver, last, judged)
            for moves in _safe_first(more):
                assert last is not None
                yield solver.written(Repair((*last.options, *moves), sure=False), goals)
            yield last
        for moves in _safe_first(told.moves):  # a search may have no time left for them
            yield solver.written(solver.as_one(Repair(moves, sure=False), judged), goals)

    def _of_stranded(self, group: Group, judged: Judged) -> tuple[list[Fix], str]:
        """Return what helps where an error has no repair: what may be enough, or other hardware."""
        stranded = self._stranding(judged)
        here = (goal for goal in group.goals if goal.judged is judged and goal.broken)
        every = list(dict.fromkeys((*stranded, *here)))  # a fix mends the rule that it is told of
        near = self._near(every, judged, unsafe=True)  # before what other machines would take to search
        elsewhere = self._elsewhere(judged, stranded)
        if near:
            return [*near, *elsewhere][:MOST], ""
        return self._given_up(group, judged, elsewhere)

    def _given_up(self, group: Group, judged: Judged, elsewhere: list[Fix]) -> tuple[list[Fix], str]:
        """Return what is said where nothing lets a job run on a target: why, and where it would."""
        stranded, lost = self._stranding(judged), self.repairs.lost.get(judged, ())
        if all(goal.code.startswith(MEMORY) for goal in stranded) and (cut := self._cut(stranded, judged)):
            return [*elsewhere, *cut][:MOST], _CUT
        certain = self._on_some(judged, stranded) or self._immovable(group, lost)
        if certain := certain or self._numbers(group, lost):
            return elsewhere, certain if elsewhere else certain + self._nowhere(judged, stranded)
        codes = ((group.code,) if group.code in lost or not lost else ()) + tuple(lost)
        if codes[0].startswith("MEM"):  # what a job takes of GPUs that are not there is not to the point
            codes = (*(code for code in codes if not code.startswith("MEM")), *codes)
        first = next((code for code in codes if self._reason(code).text), codes[0])
        told = self._reason(first)
        elsewhere = [*self._hope(stranded, judged, told), *elsewhere]
        if told.text and (first == group.code or told.vain):
            return elsewhere, told.text if elsewhere else told.text + self._nowhere(judged, stranded)
        text = stranded_told(
            self.solver.named(lost or (group.code,)), told.text.replace("this rule", first), group.code
        )
        if elsewhere or told.text:
            return elsewhere, text
        return elsewhere, text + self._nowhere(judged, stranded)

    def _nowhere(self, judged: Judged, goals: Sequence[Goal]) -> str:
        """Say that no other hardware was found, where other hardware could help, and what comes closest."""
        if not any(map(self.solver.rests_on_target, goals)):
            return ""
        told = nowhere(judged)
        held = (
            told == NOWHERE
            and judged in self._markets
            and any(goal.code.startswith(MEMORY) for goal in goals)
        )
        return (self._markets[judged].closest() if held else "") or told

    def _held_back(self, group: Group, judged: Judged) -> tuple[list[Fix], str] | None:
        """Return the ways out of another error that only a cut of the data mends; None where there is none.

        Without it the job does not start there, whatever memory this one would save.
        """
        own = self.repairs.of(group.code, judged)
        for goal in stranding(self.solver, self.groups.values(), judged):
            repair = self.repairs.of(goal.code, judged)
            cuts = repair is not None and repair.risk == "data" and repair is not own
            if cuts and not goal.code.startswith("MEM"):
                fixes, told = self.proposals(goal.code, judged)
                if told:
                    return fixes, stranded_told(self.solver.named((goal.code,)), told, group.code)
        return None

    def _immovable(self, group: Group, lost: Sequence[str]) -> str:
        """Say that a GPU has no kernels for a job, where nothing in the file decides on that."""
        kernels = [self.groups[code] for code in lost if code.startswith("PRC")]
        still = (each for each in kernels if not ANY.over(self.solver.tracks(each.goals)))
        fixed = [each.code for each in still if not self._reason(each.code).text]
        if not fixed:
            return ""
        if group.code in fixed:
            return BY_HAND.format("this rule")
        return f"{', '.join(self.solver.named(fixed))} stands whatever cfglint moves"

    def _numbers(self, group: Group, lost: Sequence[str]) -> str:
        """Return the number that shows that a job cannot run there, where a rule about memory asks."""
        from cfglint.repair.vain import in_vain

        own = group.code.startswith(MEMORY) and group.code not in lost
        return in_vain(self.solver, group, states=True) if own else ""

    def _reason(self, code: str) -> Reason:
        """Return why a rule has no fix."""
        from cfglint.repair.reasons import unfixed  # seldom needed

        if code not in self._told:
            self._told[code] = unfixed(self.solver, self.groups[code])
        return self._told[code]

    def _of_too_large(self, group: Group, judged: Judged) -> tuple[list[Fix], str]:
        """Return other hardware where a job does not fit this one even with all that was found."""
        from cfglint.repair.shortage import still_over

        together, memory = self.repairs.over[judged]
        here = [goal for goal in group.goals if goal.judged is judged and goal.broken]
        goals = tuple(stranding(self.solver, self.groups.values(), judged)) or tuple(here)
        way = afterwards(self.solver.watching(judged), goals, judged, together)
        elsewhere = self._elsewhere(judged, here)
        if way is not None and (near := self._found_near(judged, goals, way, _NO_RISK, _WELL)):
            return [*near, *elsewhere][:MOST], ""
        return elsewhere, still_over(self.solver, judged, together, memory)

    def _stranding(self, judged: Judged) -> list[Goal]:
        """Return the errors on a target of which one has no repair: then the others are repaired in vain."""
        if judged not in self._stranded:
            goals = stranding(self.solver, self.groups.values(), judged)
            lost = any(self.repairs.of(goal.code, judged) is None for goal in goals)
            self._stranded[judged] = goals if lost else []
        return self._stranded[judged]

    def _near(self, goals: Sequence[Goal], judged: Judged, *, unsafe: bool = False) -> list[Fix]:
        """Return moves that may be enough, and at best save much: safe ones, else ``unsafe`` ones."""
        key = judged, tuple(goal.code for goal in goals), unsafe
        if key not in self._nears:
            found = (self._found_near(judged, *way) for way in self._ways_near(tuple(goals), judged, unsafe))
            self._nears[key] = next(filter(None, found), [])
        return self._nears[key]

    def _ways_near(self, goals: tuple[Goal, ...], judged: Judged, unsafe: bool) -> Iterator[_Near]:
        """Yield the ways in turn: goals, moves, the risks they may have, what they may take of a GPU at best.

        That counts where the middle of an estimate does not fit.
        """
        solver, every = self.solver.watching(judged), self._of_memory(goals, judged)
        yield goals, solver.likely(goals) or solver.nearest(goals, SAFE), _NO_RISK, 0.0
        yield every, turned(solver, every, SAFE), _NO_RISK, 0.0
        yield goals, furthest(solver, goals, SAFE), _NO_RISK, 0.0
        yield goals, anyhow(solver, goals, judged), _NO_RISK, _WELL  # what may be too much
        yield goals, solver.likely(goals), _NO_RISK, _WELL  # which keeps to what the states alone need
        yield goals, hosted(solver, goals, judged), _NO_RISK, _WELL  # where nobody knows the rest
        if unsafe:
            probable = solver.likely(goals, ANY)
            yield goals, probable, _LESS_RISKY, 0.0
            if probable is None or probable.risk == "data":  # first what nearly does, and cuts nothing
                yield goals, furthest(solver, goals, ANY), _LESS_RISKY, 0.0
                yield goals, solver.nearest(goals, ANY, risky=True), _LESS_RISKY, 0.0
            yield goals, anyhow(solver, goals, judged, ANY), _LESS_RISKY, _WELL
        yield goals, afterwards(solver, goals, judged), _NO_RISK, _WELL
        if ways_away(solver, judged, by_hand=True):  # in another file, which is told
            yield goals, solver.likely(goals, _SHOWN), _NO_RISK, _WELL
            yield goals, hosted(solver, goals, judged, by_hand=True), _NO_RISK, _WELL
            yield goals, furthest(solver, goals, _SHOWN), _NO_RISK, _WELL
        if any(not ANY.over(solver.tracks((goal,))) for goal in goals):  # what no edit of the file can make
            yield goals, solver.best(goals, _SHOWN), _NO_RISK, _WELL
            if unsafe:
                yield goals, solver.best(goals, replace(_SHOWN, unsafe=True)), _LESS_RISKY, _WELL

    def _of_memory(self, goals: Sequence[Goal], judged: Judged) -> tuple[Goal, ...]:
        """Return goals with those of the other errors about memory, without which the job would not start."""
        others = (group for group in self.groups.values() if group.error and group.code.startswith(MEMORY))
        more = (goal for group in others for goal in group.goals if goal.judged is judged)
        return tuple(dict.fromkeys((*goals, *more)))

    def _found_near(
        self,
        judged: Judged,
        goals: Sequence[Goal],
        repair: Repair | None,
        risks: Collection[str],
        most: float,
    ) -> list[Fix]:
        if repair is not None:
            repair, able = sent_away(self.solver.watching(judged), repair, judged)
            repair = repair if able else None
        if repair is not None:
            repair = tightened(self.solver.watching(judged), repair, judged)
            repair = with_engine(self.solver.watching(judged), self.groups.values(), repair, judged)
        fix = None if repair is None else fix_of(repair, self.solver.trials, judged)
        for_memory = all(goal.code.startswith("MEM") for goal in goals)
        vram = bounds_of(judged.values["gpu.vram"])
        if fix is None or fix.risk not in risks:
            return []
        if for_memory and not _shrinks(fix) and not (vram is not None and _gets_in(fix, vram[1])):
            return []
        if repair is None or does_not_fit(self.solver.watching(judged), repair, judged):
            return []
        if vram is None or _too_long(self.solver, repair, judged):
            return [] if vram is not None else [fix]
        parts = [change.after_gib for change in fix.memory if change.part in ("engine", "trainer")]
        # of what a GPU may well hold, the middle of so wide an estimate says nothing
        empty = [part for part in parts if part[1] >= _EMPTY * part[0] and part[0] * GIB <= vram[1] / 2]
        told = [part for part in parts if part not in empty]
        wild = max(map(middle, told), default=0) * GIB > _WILD * vram[1]
        far = max((low for low, _ in parts), default=0) * GIB > most * vram[1] or wild
        middling = max(map(middle, parts), default=0) * GIB > vram[1]
        return [] if far and middling else self._with_surer(fix, repair, judged)

    def _with_surer(self, fix: Fix, repair: Repair, judged: Judged) -> list[Fix]:
        """Return a fix that may not be enough, and before it what is, and changes no more than numbers.

        They are what no edit of the file can make.
        """
        if fix.certainty == "sure" or repair.patch is not None or fix.risk != "none":
            return [fix]
        more = tightened(self.solver.watching(judged), repair, judged, "numerics")
        found = fix_of(replace(more, sure=True), self.solver.trials, judged) if more is not repair else None
        head = [change.after_gib[0] for change in found.memory if change.part == "headroom"] if found else []
        return [found, fix] if found is not None and head and head[0] >= 0 else [fix]

    def _elsewhere(self, judged: Judged, goals: Sequence[Goal], *, may: bool = True) -> list[Fix]:
        """Return other hardware: the cheapest as it is, before it what costs half with safe changes.

        With ``may``, also what may be too small, where nothing else is.
        """
        if judged not in self._markets:
            self._markets[judged] = Market(self.solver.trials, judged, partial(self._steps, judged))
        market, key = self._markets[judged], (judged, tuple(goals), may)
        if key in self._elsewheres:
            return list(self._elsewheres[key])
        places = market.places(tuple(goals), may=may)
        found = [hardware_fix(places, judged)]
        if self._stranding(judged):
            own = any(place.own for place in places)
            one = None if own else one_here(self.solver.trials, judged, goals)
            found.insert(0, one or mended_elsewhere(market, judged.subject, places))
            if all(goal.code.startswith(MEMORY) for goal in goals):
                found.append(shared_at_launch(self.solver, market, judged))
        self._elsewheres[key] = [fix for fix in found if fix is not None]
        return list(self._elsewheres[key])

    def _runs_elsewhere(self, judged: Judged, goals: Sequence[Goal]) -> bool:
        """Whether other hardware runs a job."""
        return bool(self._elsewhere(judged, goals, may=False))

    def _steps(self, judged: Judged, steps: int) -> str:
        """Say what a file has to say for so many accumulation steps."""
        writer = self.solver.writer(judged)
        key, way = writer.origins.key("grad_accum"), writer.writes("grad_accum", steps)
        if key != "grad_accum" or way is None or len(way.keys) != 1:
            return f"{key} {steps}"
        return f"{spoken(way.keys[0].path)} {shown(way.keys[0].value)}"

    def _doubt(self, judged: Judged) -> Doubt | None:
        if judged not in self._doubts:
            self._doubts[judged] = doubt(judged)
        return self._doubts[judged]


def _too_long(solver: Solver, repair: Repair, judged: Judged) -> str:
    """Say that a repair leaves a GPU more of a sequence than it can hold; nothing where it may."""
    facts = combined(repair.options) or {}
    return too_long(judged.values, solver.trials.values(judged, facts)) if lays_out(facts) else ""


def _share(fix: Fix) -> float:
    """Return by which share a step takes longer with a fix: of what is not known, nothing."""
    return middle((1 + fix.slower[0], 1 + fix.slower[1])) - 1 if fix.slower is not None else 0


def _is_endless(fix: Fix) -> bool:
    """Whether a step takes so long with a fix, at worst, that nobody waits for it."""
    return fix.slower is not None and fix.slower[1] > _TOO_SLOW and _share(fix) > _TOO_SLOW / 2


def _safe_first(moves: tuple[Option, ...]) -> Iterator[tuple[Option, ...]]:
    """Yield the safe ones of some moves, then all of them."""
    safe = tuple(option for option in moves if not option.unsafe)
    yield from filter(None, dict.fromkeys((safe, moves)))


def _slowness(fix: Fix) -> str:
    """Say how many times as long a step takes with a fix."""
    least, most = (1 + share for share in fix.slower or (0, 0))
    told = f"what lets the job fit makes a step take {least:.0f} to {most:.0f} times as long"
    return f"{told}; more than {1 + _TOO_SLOW:.0f} times is not proposed (a rule of thumb)"


def _shrinks(fix: Fix) -> bool:
    """Whether a part's memory is much less at best, or what is missing at worst: not only a little less."""
    head = next((change for change in fix.memory if change.part == "headroom"), None)
    if head is not None and head.before_gib[0] < 0 and head.after_gib[0] >= _LEFT * head.before_gib[0]:
        return True
    parts = (change for change in fix.memory if change.part in ("engine", "trainer"))
    return any(change.after_gib[0] <= _MUCH * change.before_gib[0] for change in parts)


def _gets_in(fix: Fix, vram: float) -> bool:
    """Whether all fits by the middle of its estimate, and did not before."""
    parts = [change for change in fix.memory if change.part in ("engine", "trainer")]
    before = [middle(change.before_gib) * GIB for change in parts]
    after = [middle(change.after_gib) * GIB for change in parts]
    return max(after, default=vram) <= vram < max(before, default=0)
