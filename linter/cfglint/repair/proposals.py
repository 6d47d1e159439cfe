"""What is proposed for a document: which broken rules are repaired, and together with which others.

A repair is no use where another error keeps the job from running on that target all the same. So where an
error that rests on the target has no repair, the other errors that rest on it have none either, and other
hardware is proposed (hardware.py). An estimate of memory that is wider than a factor of two leaves it open
whether anything is wrong: the question that narrows it comes before any fix.
"""

from __future__ import annotations

from cfglint.engine.memory import LACKING, memory_of
from cfglint.findings import LEVELS, lean
from cfglint.lang.values import INF
from cfglint.record import Record, field, replace
from cfglint.repair.allowed import ANY
from cfglint.repair.fixes import may_be_short
from cfglint.repair.found import Repair
from cfglint.repair.price import gives_other_gpus
from cfglint.repair.served import with_engine
from cfglint.repair.sized import sent_away, ways_away
from cfglint.repair.tighter import tightened
from cfglint.repair.together import combined
from cfglint.repair.trials import MEMORY, Group, to_mend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from cfglint.engine.find import Found
    from cfglint.engine.subject import Judged
    from cfglint.facts import Values
    from cfglint.findings import Memory
    from cfglint.repair.allowed import Allowed
    from cfglint.repair.solve import Solver
    from cfglint.repair.trials import Goal

_FAR, _MORE = 1.5, 1.25  # times what a GPU has
_FULL, _ROOMY = 0.9, 0.75  # of a GPU: next to no room for activations to come, and some (rules of thumb)
STATES = "MEM105"  # the rule about what is needed whatever the batch
WIDE = 2.0  # times the lower end of an estimate: a wider one is a question


class Repairs(Record):
    """What was found for a document's broken rules: repairs by rule and target (None for all targets).

    ``lost`` are by target the errors without a repair, on account of which others have none either; ``over``
    are the repairs with all of which a job still takes more memory than the target has, with what it takes.
    """

    by_rule: dict[tuple[str, Judged | None], Repair] = field(factory=dict)
    lost: dict[Judged, tuple[str, ...]] = field(factory=dict)
    over: dict[Judged, tuple[Repair, Memory]] = field(factory=dict)

    def of(self, code: str, judged: Judged) -> Repair | None:
        """Return the repair of a rule on a target."""
        return self.by_rule.get((code, None)) or self.by_rule.get((code, judged))

    def each(self) -> list[Repair]:
        """Return the repairs, each once."""
        return list(dict.fromkeys(self.by_rule.values()))

    def add(self, repair: Repair) -> None:
        """Take in a repair, for each of its goals."""
        for goal in repair.goals:
            self.by_rule.setdefault((goal.code, repair.only), repair)

    def leave(self, judged: Judged, codes: Sequence[str]) -> None:
        """Leave out what was found for some rules on a target, or on all where it is the only one."""
        for code in codes:
            self.by_rule.pop((code, judged), None)
            repair = self.by_rule.get((code, None))
            if repair is not None and all(goal.judged is judged for goal in repair.goals):
                del self.by_rule[code, None]

    def doubt(self, judged: Judged, codes: Sequence[str]) -> None:
        """Say of the repairs of some rules on a target that they may not be enough."""
        for key in [(code, only) for code in codes for only in (judged, None)]:
            if key in self.by_rule:
                self.by_rule[key] = replace(self.by_rule[key], sure=False)

    def take(self, alone: Mapping[tuple[str, Judged | None], Repair]) -> None:
        """Take in what is right for one target alone, instead of all that it would be at odds with."""
        new = {code for code, _ in alone if (code, None) not in self.by_rule}
        moved = {knob for (code, _), repair in alone.items() if code in new for knob in repair.knobs}
        for (code, only), repair in tuple(self.by_rule.items()):
            if only is None and repair.knobs & moved:
                del self.by_rule[code, only]
                new.add(code)
        self.by_rule.update((key, repair) for key, repair in alone.items() if key[0] in new)


def groups_of(solver: Solver, found: Iterable[Found], least: str) -> list[Group]:
    """Return the goals of the findings from a level on, each rule once."""
    groups: dict[str, Group] = {}
    for each in found:
        code, level = each.finding.code, each.finding.level
        if code == "CFG001" or not to_mend(each.verdict) or LEVELS.index(level) < LEVELS.index(least):
            continue
        error = level == "error" or (code in groups and groups[code].error)
        groups[code] = Group(code, solver.goals(code), error)
    return list(groups.values())


def mend(solver: Solver, groups: Sequence[Group], stages: Sequence[Allowed]) -> Repairs:
    """Find repairs of rules that serve all targets, else one for each target, and leave out those in vain.

    ``stages`` are what may be done: what an earlier one fixes, a later one leaves.
    """
    doubted = {group.code for group in groups if group.code.startswith(MEMORY) and _doubted(group)}
    sure = [group for group in groups if group.code not in doubted or not _doubted(group, open_ones=True)]
    repairs = _everywhere(solver, sure, stages, doubted)
    for judged in solver.trials.judgements:
        codes = dict.fromkeys(goal.code for goal in stranding(solver, groups, judged))
        lost = tuple(code for code in codes if repairs.of(code, judged) is None)
        if lost:
            repairs.lost[judged] = lost
            repairs.leave(judged, list(codes))
            continue
        about = [g.code for g in groups if g.code in codes or g.code.startswith(MEMORY)]
        outcome = _outcome(solver, [each for code in about if (each := repairs.of(code, judged))], judged)
        if outcome is not None and _is_over(outcome[1]):
            repairs.leave(judged, about)
            wider = _fitting(solver, [g for g in groups if g.code in about], judged, outcome[0])
            if wider is None:
                repairs.over[judged] = outcome
            else:
                repairs.add(wider)
        elif outcome is not None and (roomier := _roomier(solver, repairs, about, judged, outcome)):
            repairs.leave(judged, about)
            repairs.add(roomier)
        elif outcome is not None and _may_be_over(outcome[1], _MORE):
            far = _may_be_over(outcome[1], _FAR)
            own = [(code, each) for code in about if (each := repairs.of(code, judged))]
            new = [
                code
                for code, each in own
                if not code.startswith(MEMORY) and _needs_anew(solver, each, judged)
            ]
            repairs.doubt(judged, [*new, *(code for code in about if far and code.startswith(MEMORY))])
        _widen(solver, repairs, list(codes), judged)
    _keep_states(solver, repairs)
    likelier = {
        one: with_engine(solver, groups, tightened(solver, one, one.goals[0].judged), one.goals[0].judged)
        for one in repairs.each()
        if not one.sure or may_be_short(one, solver.trials, one.goals[0].judged)
    }
    repairs.by_rule.update({key: likelier[one] for key, one in repairs.by_rule.items() if one in likelier})
    return repairs


def _widen(solver: Solver, repairs: Repairs, codes: Sequence[str], judged: Judged) -> None:
    """Take for an error without which a job does not run what mends another as well, with the same moves."""
    own = {code: repair for code in codes if (repair := repairs.of(code, judged)) is not None}
    for code, repair in own.items():
        goals = solver.goals(code)
        wider = (other for other in own.values() if repair.knobs < other.knobs and other.only is repair.only)
        for other in wider:
            if solver.mends(other.options, (*other.goals, *goals)):
                repairs.by_rule.pop((code, repair.only), None)
                repairs.add(replace(other, goals=(*other.goals, *goals)))
                break
        else:
            _join(solver, repairs, code, [other for other in own if other != code])


def _join(solver: Solver, repairs: Repairs, code: str, others: Iterable[str]) -> None:
    """Take in what another error needs that rests on what a repair moves: alone that lets no job run."""
    repair = repairs.by_rule.get((code, None))
    for other in others if repair is not None else ():
        beside = repairs.by_rule.get((other, None))
        facts = combined(repair.options) if repair is not None else None
        if (
            repair is None
            or beside is None
            or beside is repair
            or facts is None
            or repair.knobs & beside.knobs
        ):
            continue
        resting = any(solver.trials.touches(goal, facts) for goal in solver.goals(other))
        goals = tuple(dict.fromkeys((*repair.goals, *beside.goals)))
        if not resting or not solver.hold_together((repair, beside)):
            continue
        both = Repair((*repair.options, *beside.options), sure=repair.sure and beside.sure)
        joined = solver.best(goals, ANY) or solver.written(solver.as_one(both, goals[0].judged), goals)
        if joined is not None and joined.patch is not None:
            for each in (code, other):
                repairs.by_rule.pop((each, None), None)
            repairs.add(joined)
            return


def _keep_states(solver: Solver, repairs: Repairs) -> None:
    """Leave out what moves a job to GPUs that do not keep its states, or send its weights to the host."""
    for repair in repairs.each():
        judged, codes = repair.goals[0].judged, list(dict.fromkeys(goal.code for goal in repair.goals))
        new, able = sent_away(solver, repair, judged)
        if not able:
            repairs.lost[judged] = tuple(dict.fromkeys((*repairs.lost.get(judged, ()), *codes)))
        for key in [key for key, one in repairs.by_rule.items() if one is repair]:
            if able:
                repairs.by_rule[key] = new
            else:
                del repairs.by_rule[key]


def _fitting(solver: Solver, groups: Iterable[Group], judged: Judged, first: Repair) -> Repair | None:
    """Return what reaches the goals and lets the job fit, too, where no rule asked for that yet."""
    own = [goal for group in groups for goal in group.goals if goal.judged is judged]
    short = solver.trials.short(judged, combined(first.options) or {})
    codes = {rule.code for rule in short if rule.level == "error"} - {goal.code for goal in own}
    watching = solver.watching(judged)
    more = [goal for code in sorted(codes) for goal in watching.of(code) if goal.judged is judged]
    return watching.best((*own, *more), ANY) if own and more else None


def _roomier(
    solver: Solver, repairs: Repairs, codes: Sequence[str], judged: Judged, outcome: tuple[Repair, Memory]
) -> Repair | None:
    """Return moves that leave room on a GPU, where repairs leave next to none for what nobody knows.

    They shard more, or send something to the host.
    """
    (first, memory), watching = outcome, solver.watching(judged)
    goals = tuple(
        dict.fromkeys(goal for code in codes for goal in _goals_of(repairs.of(code, judged), judged))
    )
    there = memory.capacity_gib or 0
    if not goals or judged.values["trains"] is not True or not memory.need_gib.low > _FULL * there > 0:
        return None
    if memory.need_gib.high <= there:
        return None
    for option in ways_away(watching, judged):
        for options in ((*first.options, option), (option,)):
            after = _outcome(solver, (Repair(options),), judged)
            if after is None or after[1].need_gib.low > _ROOMY * there:
                continue
            more = watching.written(Repair(options, sure=False), goals)
            if more is not None and more.patch is not None and more.risk == first.risk:
                return more
    return None


def _goals_of(repair: Repair | None, judged: Judged) -> Iterable[Goal]:
    return () if repair is None else (goal for goal in repair.goals if goal.judged is judged)


def _outcome(solver: Solver, repairs: Iterable[Repair], judged: Judged) -> tuple[Repair, Memory] | None:
    """Return repairs as one, and what the job needs with all of them; None where there is none."""
    options = tuple(dict.fromkeys(option for repair in repairs for option in repair.options))
    facts = combined(options)
    if judged.target is None or not options or facts is None:
        return None
    return Repair(options), memory_of(solver.trials.values(judged, facts), judged.target, asks=False)[0]


def does_not_fit(solver: Solver, repair: Repair, judged: Judged) -> bool:
    """Whether a job takes more memory than there is with a repair, also where no rule told of it."""
    outcome = _outcome(solver, (repair,), judged)
    return outcome is not None and _is_over(outcome[1])


def _needs_anew(solver: Solver, repair: Repair, judged: Judged) -> bool:
    """Whether a repair gives a job other GPUs, or more to hold, so that its memory was not judged before."""
    facts = combined(repair.options) or {}
    if judged.values[LACKING] is True or gives_other_gpus(solver.trials, judged, facts):
        return True
    outcome = _outcome(solver, (repair,), judged)
    if outcome is None or judged.target is None:
        return False
    if outcome[1].need_gib.high == INF and _leaves_fp8(judged.values, solver.trials.values(judged, facts)):
        return True  # nobody knows whether there is room for twice the weights
    before = memory_of(judged.values, judged.target, asks=False)[0]
    return outcome[1].need_gib.high > before.need_gib.high


def _leaves_fp8(before: Values, after: Values) -> bool:
    """Whether a trainer or an engine no longer computes in FP8, but in 16 bits."""
    trainer = before["fp8_training"] is True and after["fp8_training"] is False
    return trainer or (before["rollout_dtype"] == "fp8" and after["rollout_dtype"] != "fp8")


def _is_over(memory: Memory) -> bool:
    """Whether a job does not fit, or probably not: the least of what is likely is more than there is."""
    leans = lean(memory.verdict, memory.need_gib, memory.bound_gib, memory.capacity_gib)
    return "oom" in (memory.verdict, leans)


def _may_be_over(memory: Memory, times: float) -> bool:
    """Whether a job may need so many times what there is."""
    return memory.capacity_gib is not None and memory.need_gib.high > times * memory.capacity_gib


def stranding(solver: Solver, groups: Iterable[Group], judged: Judged) -> list[Goal]:
    """Return the errors that keep a job from running on a target, and would not on another one."""
    return [
        goal
        for group in groups
        for goal in group.goals
        if goal.compiled.level == "error"
        and goal.judged is judged
        and goal.broken
        and solver.rests_on_target(goal)
    ]


def _doubted(group: Group, *, open_ones: bool = False) -> bool:
    if is_certain(group):
        return False
    doubts = [doubt(judged) for judged in dict.fromkeys(goal.judged for goal in group.goals)]
    return any(one is not None and (one.open or not open_ones) for one in doubts)


def _everywhere(
    solver: Solver, groups: Sequence[Group], stages: Sequence[Allowed], doubted: Collection[str]
) -> Repairs:
    repairs = _mended(solver, groups, stages, doubted)
    everywhere = solver.trials.judgements
    if len(everywhere) < 2 or all(repairs.of(g.code, goal.judged) for g in groups for goal in g.goals):
        return repairs
    apart: dict[tuple[str, Judged | None], Repair] = {}
    for judged in everywhere:
        own = [
            replace(group, goals=tuple(goal for goal in group.goals if goal.judged is judged))
            for group in groups
        ]
        apart.update(
            _mended(solver.watching(judged), [group for group in own if group.goals], stages, doubted).by_rule
        )
    repairs.take(apart)
    return repairs


def _mended(
    solver: Solver, groups: Sequence[Group], stages: Sequence[Allowed], doubted: Collection[str]
) -> Repairs:
    repairs = Repairs()
    for allowed in stages:
        left = [group for group in groups if repairs.of(group.code, group.goals[0].judged) is None]
        if allowed.unsafe:  # results are not changed for what may be nothing
            left = [group for group in left if group.code not in doubted]
        for repair in solver.repairs(left, allowed) if left else ():
            before = repairs.each()
            if not before or solver.hold_together([*before, repair]):
                repairs.add(repair)
    return repairs


# ── estimates that are too wide to act on ──────────────────────────────────────────────────────────────
def is_certain(group: Group) -> bool:
    """Whether a rule about memory is broken whatever an estimate comes to: the states alone do not fit."""
    return group.code == STATES and group.error


class Doubt(Record):
    """What would narrow an estimate that is too wide; ``open`` if it leaves it open whether the job fits."""

    text: str
    open: bool


def doubt(judged: Judged) -> Doubt | None:
    """Return the doubt about a job's memory on a target; None where it is known well enough."""
    if judged.target is None:
        return None
    memory = memory_of(judged.values, judged.target, asks=False)[0]
    need = memory.need_gib
    if memory.verdict not in ("tight", "oom") or need.high <= WIDE * need.low:
        return None
    ask = memory_of(judged.values, judged.target)[0].ask
    if ask is None:
        return None
    told = f"{need.low:.0f} to {need.high:.0f} GiB is too wide a range to change results for"
    return Doubt(f"{told}: {ask}", memory.verdict == "tight")
