"""Attaches fixes to findings, and applies them until nothing more is to be done."""

from __future__ import annotations

from functools import partial

from cfglint.budget import BUDGET, TOO_LONG, Searching
from cfglint.document.reading import read_text
from cfglint.document.spoken import spoken
from cfglint.engine.memory import GIB, bounds_of
from cfglint.engine.run import Run, unsuppressed
from cfglint.errors import CfglintError
from cfglint.record import Record, field
from cfglint.repair.allowed import ANY, SAFE
from cfglint.repair.counted import counted, is_doubtful
from cfglint.repair.estimate import middle
from cfglint.repair.fixes import MOST, fix_of, fixes_of
from cfglint.repair.hardware import Market, hardware_fix, mended_elsewhere
from cfglint.repair.notes import comments
from cfglint.repair.price import regroups
from cfglint.repair.proposals import Repairs, does_not_fit, doubt, groups_of, is_certain, mend, stranding
from cfglint.repair.shortage import lacks
from cfglint.repair.slips import slips
from cfglint.repair.solve import Solver, solver_of
from cfglint.repair.stranded import nowhere, stranded_told
from cfglint.repair.tighter import anyhow, furthest, tightened
from cfglint.repair.together import combined
from cfglint.repair.trials import MEMORY
from cfglint.repair.turns import turned
from cfglint.repair.write import shown
from cfglint.text import Edit, apply_edits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from cfglint.document.tree import File
    from cfglint.engine.find import Found
    from cfglint.engine.subject import Judged, Subject
    from cfglint.findings import Finding, Fix, MemoryChange
    from cfglint.repair.found import Repair
    from cfglint.repair.proposals import Doubt
    from cfglint.repair.trials import Goal, Group

    _Near: TypeAlias = tuple[Sequence[Goal], Repair | None, Collection[str], bool]

_MUCH = 0.75  # of the memory before
_SLOW = 1.0  # times what a step takes, that it takes longer
_WELL = 0.6  # of what a GPU has: the least of an estimate that may well fit it
_PLACED = ("MEM", "PAR")  # families of rules about memory and GPUs
_CUT = "only what cuts long samples, or stops at them, lets the job run on this hardware"
_NO_RISK = ("none",)
_LESS_RISKY = ("none", "numerics", "optimization")  # nobody cuts data for what may not be enough
MAX_PASSES = 500  # of one file; circles are noticed long before


class Wanted(Record):
    """Which fixes are to be applied: see `repair`."""

    least: str
    unsafe: bool
    accept_may: bool


class Repaired(Record):
    """The text after fixing, the fixes applied (finding and fix), and how often the text was linted.

    ``over`` says that the search took too long.
    """

    text: str
    applied: list[tuple[Finding, Fix]] = field(factory=list)
    passes: int = 0
    over: bool = False


def attach(run: Run, judgements: Sequence[Judged], found: Sequence[Found]) -> None:
    """Give each finding its fix and the alternatives; findings that one repair resolves share its number.

    Where that takes too long, what has no fix by then says so.
    """
    size = len(judgements[0].subject.document.file.text) if judgements else 0
    sure = [each for each in found if each.judged.case is None]
    with Searching(len(judgements), size) as search:
        if sure:
            _attach(run, judgements, sure)
            _attach_counted(run, judgements, sure)
        for each in found:
            if each.judged.case is not None:
                _attach_in_case(run, each, sure)
        _strand(found)
    if search.over:
        for each in found:
            if each.finding.fix is None and not each.finding.unfixed:
                each.finding.unfixed = _hopeless(each) or TOO_LONG


def _hopeless(each: Found) -> str:
    """Return the number that shows without a search that a job cannot run on a target."""
    if each.judged.target is None or each.finding.level != "error" or each.finding.code[:3] not in _PLACED:
        return ""
    from cfglint.repair.hopeless import too_large

    return too_large(each.judged.values, states=True)


def _strand(found: Sequence[Found]) -> None:
    """Take the fixes about memory back on a target where an error has none in a case that the job is in."""
    lost: dict[int, list[str]] = {}
    for each in found:
        if each.judged.case is not None and each.finding.level == "error" and each.finding.fix is None:
            lost.setdefault(id(each.judged.target), []).append(f"{each.finding.code} ({each.finding.name})")
    for each in found:
        finding, codes = each.finding, lost.get(id(each.judged.target))
        if codes and finding.code.startswith("MEM") and finding.fix is not None:
            finding.fix, finding.alternatives = None, ()
            finding.unfixed = stranded_told(list(dict.fromkeys(codes)), "", finding.code)


def _attach_in_case(run: Run, each: Found, sure: Sequence[Found]) -> None:
    """Give a finding that holds in one case of the job its fix: as if the case were what the job says.

    What is ``sure`` on that target, and has no fix as it stands, is mended by the same one.
    """
    judged, finding = each.judged, each.finding
    given, sources = judged.values.given, judged.sources
    own = {} if judged.target is None else judged.target.facts
    said = {name: (given[name], sources[name]) for name in given if name not in own and name in sources}
    within = run.but(
        given={**run.given, **said}, targets=() if judged.target is None else (judged.target,), named=True
    )
    within.fixes = run.fixes
    judgements = within.judged(judged.subject)
    found = [again for again in within.findings(judgements) if again.judged.case is None]
    _attach(within, judgements, found)
    run.fixes = within.fixes
    lost = [one.finding for one in sure if one.judged.target is judged.target and one.finding.fix is None]
    for again in found:
        mended = again.finding.fix is not None
        for one in (finding, *(lost if mended else ())):
            if again.finding.code == one.code:
                one.fix, one.alternatives = again.finding.fix, again.finding.alternatives
                one.unfixed = again.finding.unfixed


def _attach_counted(run: Run, judgements: Sequence[Judged], found: Sequence[Found]) -> None:
    """Give errors whose fix rests on a number of GPUs that nobody says what helps on as many as it takes."""
    within = counted(run, judgements, found)
    if within is None:
        return
    again = within.findings(within.judged(judgements[0].subject))
    others = [each for each in again if each.judged.case is None]
    _attach(within, [others[0].judged] if others else [], others)
    run.fixes = within.fixes
    fixed = {each.finding.code: each.finding for each in others if each.finding.fix or each.finding.unfixed}
    for each in filter(is_doubtful, found):
        finding, new = each.finding, fixed.get(each.finding.code)
        if new is not None and (finding.fix is None or (new.fix is not None and new.fix.certainty == "sure")):
            finding.fix, finding.alternatives, finding.unfixed = new.fix, new.alternatives, new.unfixed


def _attach(run: Run, judgements: Sequence[Judged], found: Sequence[Found]) -> None:
    solver = solver_of(run, judgements)
    groups = {group.code: group for group in groups_of(solver, found, "info")}
    repairs = _with_hints(solver, groups, groups_of(solver, found, "warning"))
    numbers: dict[tuple[Edit, ...], int] = {}

    def number(fix: Fix) -> None:
        if fix.edits and fix.edits not in numbers:
            run.fixes += 1
            numbers[fix.edits] = run.fixes
        fix.number = numbers.get(fix.edits, 0)

    wants = _Wants(solver, groups, repairs)
    by_rule: dict[tuple[str, Judged], tuple[list[Fix], str]] = {}
    for each in found:
        finding = each.finding
        if finding.code not in groups:
            continue
        key = finding.code, each.judged
        if key not in by_rule:
            by_rule[key] = wants.proposals(*key)
        fixes, finding.unfixed = by_rule[key]
        for fix in fixes:
            number(fix)
        if fixes and not finding.unfixed and (fixes[0].edits or fixes[0].target is None):
            finding.fix, finding.alternatives = fixes[0], tuple(fixes[1:])
        else:
            finding.alternatives = tuple(fixes)
    for finding, fix in slips(solver, found, "info"):
        number(fix)
        finding.fix, finding.unfixed = fix, ""


class _Wants(Record):
    """What findings of a document are told to do: fixes, the best first, or why there is none."""

    solver: Solver
    groups: Mapping[str, Group]
    repairs: Repairs
    _markets: dict[Judged, Market] = field(factory=dict)
    _doubts: dict[Judged, Doubt | None] = field(factory=dict)
    _stranded: dict[Judged, list[Goal]] = field(factory=dict)
    _fixes: dict[tuple[Repair, Judged], list[Fix]] = field(factory=dict)
    _told: dict[str, str] = field(factory=dict)
    _nears: dict[tuple[Judged, tuple[str, ...], bool], list[Fix]] = field(factory=dict)

    def proposals(self, code: str, judged: Judged) -> tuple[list[Fix], str]:
        """Return the fix of a rule on a target, and the other ways out; with a text, there is no fix."""
        from cfglint.repair.reasons import unfixed  # seldom needed

        group, repair = self.groups[code], self.repairs.of(code, judged)
        if judged in self.repairs.over and repair is None:
            return self._of_too_large(group, judged)
        stranded = self._stranding(judged)
        kernel = code.startswith("PRC") and any(map(self.solver.rests_on_target, group.goals))
        if any(goal.code == code for goal in stranded) or (stranded and (kernel or code.startswith("MEM"))):
            return self._of_stranded(group, judged)
        if repair is None or (repair, judged) not in self._fixes:
            fixes = fixes_of(self.solver, group, judged, repair)
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
        elsewhere = self._elsewhere(judged, here) if group.error and here else []
        placed = code.startswith("MEM") or any(map(self.solver.rests_on_target, here))
        if placed and fixes and fixes[0].risk in ("optimization", "data"):
            cuts = all(fix.risk == "data" for fix in fixes)  # nobody cuts data for what money buys
            near = self._near(group.goals, judged, unsafe=cuts)  # first what may be enough
            if near or cuts:
                return [*near, *elsewhere, *fixes][:MOST], "" if near else _CUT
        if placed and fixes and _share(fixes[0]) > _SLOW:  # first what may be enough, and takes no such time
            goals = group.goals if repair is None else repair.goals
            near = [one for one in self._near(goals, judged) if _share(one) < _share(fixes[0]) / 2]
            fixes = [*near, *fixes]
        fixes[MOST - 1 :] = elsewhere or fixes[MOST - 1 :]
        if not fixes or (not fixes[0].edits and fixes[0].target is not None):  # only another machine would do
            return fixes, unfixed(self.solver, group)
        return fixes, ""

    def _of_stranded(self, group: Group, judged: Judged) -> tuple[list[Fix], str]:
        """Return what helps where an error has no repair: what may be enough, or other hardware."""
        stranded, lost = self._stranding(judged), self.repairs.lost.get(judged, ())
        elsewhere, near = self._elsewhere(judged, stranded), self._near(stranded, judged, unsafe=True)
        if near:
            return [*near, *elsewhere][:MOST], ""
        codes = ((group.code,) if group.code in lost or not lost else ()) + tuple(lost)
        if codes[0].startswith("MEM"):  # what a job takes of GPUs that are not there is not to the point
            codes = (*(code for code in codes if not code.startswith("MEM")), *codes)
        first = next((code for code in codes if self._reason(code)), codes[0])
        told = self._reason(first)
        if told and (first == group.code or self._is_in_vain(first, told)):
            return elsewhere, told
        text = stranded_told(
            self.solver.named(lost or (group.code,)), told.replace("this rule", first), group.code
        )
        if elsewhere or told:
            return elsewhere, text
        return elsewhere, text + nowhere(judged)

    def _is_in_vain(self, code: str, told: str) -> bool:
        """Whether what is told of a rule is the number that shows that the job cannot run there."""
        from cfglint.repair.reasons import in_vain

        group = self.groups[code]
        numbers = [in_vain(self.solver, group, states=states) for states in (False, True)]
        return any(one and told.startswith(one) for one in numbers)

    def _reason(self, code: str) -> str:
        """Return why a rule has no fix."""
        from cfglint.repair.reasons import unfixed

        if code not in self._told:
            self._told[code] = unfixed(self.solver, self.groups[code])
        return self._told[code]

    def _of_too_large(self, group: Group, judged: Judged) -> tuple[list[Fix], str]:
        """Return other hardware where a job does not fit this one even with all that was found."""
        from cfglint.repair.shortage import still_over

        together, memory = self.repairs.over[judged]
        here = [goal for goal in group.goals if goal.judged is judged and goal.broken]
        return self._elsewhere(judged, here), still_over(self.solver, judged, together, memory)

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
        """Yield the ways in turn: goals, moves, the risks they may have, whether they should well fit."""
        solver, every = self.solver.watching(judged), self._of_memory(goals, judged)
        yield goals, solver.likely(goals) or solver.nearest(goals, SAFE), _NO_RISK, False
        yield every, turned(solver, every, SAFE), _NO_RISK, False
        yield goals, furthest(solver, goals, SAFE), _NO_RISK, False
        yield goals, anyhow(solver, goals, judged), _NO_RISK, True  # what may be too much
        if unsafe:
            yield goals, solver.likely(goals, ANY) or furthest(solver, goals, ANY), _LESS_RISKY, False
            yield goals, anyhow(solver, goals, judged, ANY), _LESS_RISKY, True

    def _of_memory(self, goals: Sequence[Goal], judged: Judged) -> tuple[Goal, ...]:
        """Return goals with those of the other errors about memory, without which the job would not start."""
        others = (group for group in self.groups.values() if group.error and group.code.startswith(MEMORY))
        more = (goal for group in others for goal in group.goals if goal.judged is judged)
        return tuple(dict.fromkeys((*goals, *more)))

    def _found_near(
        self, judged: Judged, goals: Sequence[Goal], repair: Repair | None, risks: Collection[str], well: bool
    ) -> list[Fix]:
        if repair is not None:
            repair = tightened(self.solver.watching(judged), repair, judged)
        fix = None if repair is None else fix_of(repair, self.solver.trials, judged)
        for_memory = all(goal.code.startswith("MEM") for goal in goals)
        if (
            fix is None
            or fix.risk not in risks
            or (for_memory and not any(_shrinks(change) for change in fix.memory))
        ):
            return []
        if repair is None or does_not_fit(self.solver.watching(judged), repair, judged):
            return []
        vram = bounds_of(judged.values["gpu.vram"])
        parts = [change.after_gib for change in fix.memory if change.part in ("engine", "trainer")]
        if vram is None or max(map(middle, parts), default=0) * GIB <= vram[1]:
            return [fix]
        return [fix] if well and max(low for low, _ in parts) * GIB <= _WELL * vram[1] else []

    def _elsewhere(self, judged: Judged, goals: Sequence[Goal]) -> list[Fix]:
        """Return other hardware: the cheapest as it is, before it what costs half with safe changes."""
        if judged not in self._markets:
            self._markets[judged] = Market(self.solver.trials, judged, partial(self._steps, judged))
        market = self._markets[judged]
        places = market.places(tuple(goals))
        found = [hardware_fix(places, judged)]
        if self._stranding(judged):
            found.insert(0, mended_elsewhere(market, judged.subject, places))
        return [fix for fix in found if fix is not None]

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


def _share(fix: Fix) -> float:
    """Return by which share a step takes longer with a fix: of what is not known, nothing."""
    return sum(fix.slower) / 2 if fix.slower is not None else 0


def _shrinks(change: MemoryChange) -> bool:
    """Whether a part's memory is much less at best: what may be enough, and not only a little less."""
    return change.part in ("engine", "trainer") and change.after_gib[0] <= _MUCH * change.before_gib[0]


def _with_hints(solver: Solver, groups: Mapping[str, Group], warned: Sequence[Group]) -> Repairs:
    """Return the repairs of the rules that warn, and those of hints, each of which is fixed for itself."""
    repairs = mend(solver, warned, (SAFE, ANY))
    for code in groups.keys() - {group.code for group in warned}:
        goals = groups[code].goals
        if all(repairs.of(code, goal.judged) is None for goal in goals):
            hint = solver.best(goals, ANY)
            if hint is not None and not any(_is_in_vain(solver, hint, goal.judged) for goal in goals):
                repairs.add(hint)
    return repairs


def _is_in_vain(solver: Solver, hint: Repair, judged: Judged) -> bool:
    """Whether what serves a hint moves a job to GPUs that do not hold it for certain."""
    facts = combined(hint.options) or {}
    return judged.target is not None and regroups(facts) and lacks(solver, judged, facts)


class _Step(Record):
    """What one pass applies to a document: fixes, each with a finding that it resolves, and their edits."""

    subject: Subject
    applied: list[tuple[Finding, Fix]] = field(factory=list)
    edits: list[Edit] = field(factory=list)

    def take(self, finding: Finding, fix: Fix) -> None:
        """Take in a fix, unless it overlaps or touches another: then it waits for the next pass."""
        new = [edit for edit in fix.edits if edit not in self.edits]
        if not any(e.start <= taken.end and taken.start <= e.end for e in new for taken in self.edits):
            self.applied.append((finding, fix))
            self.edits += new

    def noted(self) -> list[Edit]:
        """Return the edits and the comments that tell of them, one to a line."""
        edits = list(self.edits)
        for _, fix in self.applied:
            for note in comments(self.subject, fix):
                if all(edit.start != note.start or edit in self.edits for edit in edits):
                    edits.append(note)
        return edits


def _next(run: Run, file: File, wanted: Wanted) -> _Step | None:
    """Return what is to be applied to the first document of a file that has an applicable repair."""
    for subject in run.subjects(file, judge_broken=True):
        judgements = run.judged(subject)
        found = run.findings(judgements)
        kept = set(unsuppressed([each.finding for each in found], file, subject.document))
        found = [each for each in found if each.finding in kept]
        solver = solver_of(run, judgements)
        chosen = _chosen(solver, found, wanted)
        if chosen is None:
            continue
        if chosen:
            return _step(solver, chosen)
        step = _Step(subject)
        for finding, fix in slips(solver, found, wanted.least):
            if wanted.unsafe or fix.applicability == "safe":
                step.take(finding, fix)
        if step.applied:
            return step
    return None


def _chosen(solver: Solver, found: Sequence[Found], wanted: Wanted) -> list[tuple[Finding, Repair]] | None:
    """Return the repairs to be made, each with a finding; None where there is nothing to fix.

    They serve all targets. Where no repair is certain, it may be one that only may suffice.
    """
    groups = {group.code: group for group in groups_of(solver, found, wanted.least)}
    if not groups:
        return None
    allowed = ANY if wanted.unsafe else SAFE
    repairs = mend(solver, list(groups.values()), (allowed,))
    chosen: dict[Repair, Finding] = {}
    for each in found:
        repair = repairs.of(each.finding.code, each.judged)
        if repair is not None and repair.only is None and repair.patch is not None:
            chosen.setdefault(repair, each.finding)
    for each in found if wanted.accept_may and not chosen else ():
        if each.finding.code in groups and each.verdict.truth is False:
            goals = groups[each.finding.code].goals
            repair = solver.likely(goals, allowed) or solver.nearest(goals, allowed)
            if repair is not None and repair.patch is not None:
                return [(each.finding, tightened(solver, repair, each.judged))]
    return [(finding, repair) for repair, finding in chosen.items()]


def _step(solver: Solver, chosen: Sequence[tuple[Finding, Repair]]) -> _Step:
    """Return what is applied at once: all repairs if they are proven together, else the first."""
    trials = solver.trials
    step = _Step(trials.subject)
    for finding, repair in chosen:
        step.take(finding, fix_of(repair, trials, repair.goals[0].judged))
    mended = {(goal.judged, goal.code) for _, repair in chosen for goal in repair.goals if not goal.held}
    if len(chosen) > 1 and not trials.proven(mended, trials.judgements, tuple(step.edits), sure=True):
        return _step(solver, chosen[:1])
    return step


def repair(
    run: Run, file: File, *, unsafe: bool, least: str, notes: bool, accept_may: bool = False
) -> Repaired:
    """Apply repairs to a file until no applicable one is left.

    ``least`` is the lowest level that is repaired, ``unsafe`` admits fixes that may change results, ``notes``
    appends a comment to every changed line, ``accept_may`` admits the nearest repair where none is certain.
    Where the search takes too long, what was applied by then counts. Raises CfglintError where fixes go in a
    circle, which is a bug in the rules.
    """
    result = Repaired(file.text)
    with BUDGET, Searching(len(run.targets), len(file.text)) as search:
        _repair(run, file, Wanted(least, unsafe, accept_may), result, notes=notes)
    result.over = search.over
    return result


def _repair(run: Run, file: File, wanted: Wanted, result: Repaired, *, notes: bool) -> None:
    texts = {file.text}
    while result.passes < MAX_PASSES:
        result.passes += 1
        step = _next(run, file, wanted)
        if step is None:
            return
        text = apply_edits(result.text, step.noted() if notes else step.edits)
        result.applied += step.applied
        if text in texts:
            code = step.applied[0][0].code
            raise CfglintError(
                f"{file.path}: the fixes of {code} undo each other, which is a bug in the rules"
            )
        texts.add(text)
        result.text = text
        file = read_text(text, file.path, bom=file.bom, scripts=file.scripts)
    raise CfglintError(f"{file.path}: after {MAX_PASSES} fixes there are still more; nothing was written")
