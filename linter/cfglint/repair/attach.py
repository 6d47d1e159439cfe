"""Attaches to findings their fixes and the other ways out."""

from __future__ import annotations

from cfglint.budget import TOO_LONG, Searching
from cfglint.repair.allowed import ANY, SAFE
from cfglint.repair.amid import say_what_stays
from cfglint.repair.counted import counted, is_doubtful
from cfglint.repair.halted import HALTED, of_a_stop
from cfglint.repair.price import regroups
from cfglint.repair.proposals import Repairs, groups_of, mend
from cfglint.repair.shortage import lacks
from cfglint.repair.slips import slips
from cfglint.repair.solve import Solver, solving
from cfglint.repair.stranded import stranded_told
from cfglint.repair.together import combined
from cfglint.repair.twins import join
from cfglint.repair.wants import Wants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cfglint.engine.find import Found
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Judged
    from cfglint.findings import Fix
    from cfglint.repair.found import Repair
    from cfglint.repair.trials import Group
    from cfglint.text import Edit

_PLACED = ("MEM", "PAR")  # families of rules about memory and GPUs


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
        say_what_stays(found)
    if search.over:
        for fix in {id(fix): fix for each in found if (fix := each.finding.fix) and not fix.number}.values():
            run.fixes += 1
            fix.number = run.fixes
        _say_without_search(found)
    if judgements and judgements[0].subject.document.format == "shell":
        join(run.report.findings, [each.finding for each in found])


def _say_without_search(found: Sequence[Found]) -> None:
    """Say of findings without a fix what needs no search, else that it took too long."""
    told = {id(each.judged.target): (each.finding, number) for each in found if (number := _hopeless(each))}
    for each in (one for one in found if one.finding.fix is None and not one.finding.unfixed):
        finding, other = each.finding, told.get(id(each.judged.target))
        by_people = of_a_stop(each.judged) if finding.code == HALTED else ""
        finding.unfixed = by_people or _hopeless(each) or TOO_LONG
        if finding.unfixed == TOO_LONG and other is not None and finding.level == "error":
            finding.unfixed = stranded_told([f"{other[0].code} ({other[0].name})"], other[1], finding.code)


def _hopeless(each: Found) -> str:
    """Return the number that shows without a search that a job cannot run on a target."""
    if each.judged.target is None or each.finding.level != "error" or each.finding.code[:3] not in _PLACED:
        return ""
    from cfglint.repair.hopeless import too_large

    surely, told = (too_large(each.judged.values, states=states) for states in (False, True))
    return told if told == surely else f"{told}, unless the host keeps some of them"


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
    found = [again for again in within.findings(judgements, told=False) if again.judged.case is None]
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
    again = within.findings(within.judged(judgements[0].subject), told=False)
    others = [each for each in again if each.judged.case is None]
    _attach(within, [others[0].judged] if others else [], others)
    run.fixes = within.fixes
    fixed = {each.finding.code: each.finding for each in others if each.finding.fix or each.finding.unfixed}
    for each in filter(is_doubtful, found):
        finding, new = each.finding, fixed.get(each.finding.code)
        if new is not None and (finding.fix is None or (new.fix is not None and new.fix.certainty == "sure")):
            finding.fix, finding.alternatives, finding.unfixed = new.fix, new.alternatives, new.unfixed


def _attach(run: Run, judgements: Sequence[Judged], found: Sequence[Found]) -> None:
    with solving(run, judgements) as solver:
        _attach_all(solver, found)


def _attach_all(solver: Solver, found: Sequence[Found]) -> None:
    run = solver.trials.run
    slipped = list(slips(solver, found, "info"))
    for each, fix in slipped:  # first: they need no search, which may take too long
        each.finding.fix = fix
    groups = {group.code: group for group in groups_of(solver, found, "info")}
    repairs = _with_hints(solver, groups, groups_of(solver, found, "warning"))
    numbers: dict[tuple[Edit, ...], int] = {}

    def number(fix: Fix) -> None:
        if fix.edits and fix.edits not in numbers:
            run.fixes += 1
            numbers[fix.edits] = run.fixes
        fix.number = numbers.get(fix.edits, 0)

    wants = Wants(solver, groups, repairs)
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
    for each, fix in slipped:
        number(fix)
        each.finding.fix, each.finding.unfixed = fix, ""


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
