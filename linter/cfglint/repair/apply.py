"""Applies fixes to a file until nothing more is to be done."""

from __future__ import annotations

from cfglint.budget import BUDGET, Searching
from cfglint.document.reading import read_text
from cfglint.engine.run import Run, unsuppressed
from cfglint.errors import CfglintError
from cfglint.record import Record, field
from cfglint.repair.allowed import ANY, SAFE
from cfglint.repair.applied import Applied
from cfglint.repair.fixes import fix_of
from cfglint.repair.notes import comments
from cfglint.repair.proposals import groups_of, mend
from cfglint.repair.slips import slips
from cfglint.repair.solve import Solver, solving
from cfglint.repair.wants import Wants
from cfglint.text import Edit, apply_edits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.document.tree import File
    from cfglint.engine.find import Found
    from cfglint.engine.subject import Subject
    from cfglint.findings import Finding, Fix
    from cfglint.repair.found import Repair
    from cfglint.repair.proposals import Repairs


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


class _Step(Record):
    """What one pass applies to a document: fixes, each with a finding that it resolves, and their edits."""

    subject: Subject
    applied: list[tuple[Found, Fix]] = field(factory=list)
    edits: list[Edit] = field(factory=list)

    def take(self, found: Found, fix: Fix) -> None:
        """Take in a fix, unless it overlaps or touches another: then it waits for the next pass."""
        new = [edit for edit in fix.edits if edit not in self.edits]
        if not any(e.start <= taken.end and taken.start <= e.end for e in new for taken in self.edits):
            self.applied.append((found, fix))
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
        found = run.findings(judgements, told=False)
        kept = set(unsuppressed([each.finding for each in found], file, subject.document))
        found = [each for each in found if each.finding in kept]
        with solving(run, judgements) as solver:
            groups = {group.code: group for group in groups_of(solver, found, wanted.least)}
            repairs = mend(solver, list(groups.values()), (SAFE, ANY) if wanted.unsafe else (SAFE,))
            chosen = _chosen(solver, repairs, found, wanted)
            if chosen:
                return _step(solver, chosen)
            wants = (Wants if wanted.accept_may else Applied)(solver, groups, repairs)
            told = _as_told(wants, found, wanted)
            if told is not None:
                return told
            step = _Step(subject)
            for each, fix in slips(solver, found, wanted.least):
                if wanted.unsafe or fix.applicability == "safe":
                    step.take(each, fix)
            if step.applied:
                return step
    return None


def _chosen(
    solver: Solver, repairs: Repairs, found: Sequence[Found], wanted: Wanted
) -> list[tuple[Found, Repair]]:
    """Return the repairs to be made, each with a finding.

    They serve all targets. One that only may suffice is made where that is accepted alone, and one that
    changes results for a target's sake where nothing else is told first.
    """
    chosen: dict[Repair, Found] = {}
    for each in found:
        repair = repairs.of(each.finding.code, each.judged)
        if repair is None or repair.only is not None or repair.applicability == "display":
            continue
        if repair.unsafe and any(solver.rests_on_target(goal) for goal in repair.goals):
            continue
        if wanted.accept_may or repair in chosen or _is_sure(solver, repair):
            chosen.setdefault(repair, each)
    return [(each, repair) for repair, each in chosen.items()]


def _as_told(wants: Wants, found: Sequence[Found], wanted: Wanted) -> _Step | None:
    """Return the first thing that a finding is told to do and that is wanted; None where there is nothing."""
    able = ("safe", "unsafe") if wanted.unsafe else ("safe",)
    for each in found if wanted.unsafe or wanted.accept_may else ():
        if each.finding.code not in wants.groups:
            continue
        fixes, unfixed = wants.proposals(each.finding.code, each.judged)
        for fix in fixes:
            sure = fix.certainty == "sure" and not unfixed
            likely = wanted.accept_may and each.verdict.truth is False
            everywhere = fix.target is None  # what serves one target may undo what serves another
            if fix.edits and everywhere and fix.applicability in able and (sure or likely):
                step = _Step(each.judged.subject)
                step.take(each, fix)
                return step
    return None


def _is_sure(solver: Solver, repair: Repair) -> bool:
    """Whether a fix is told without "may not be enough"."""
    return fix_of(repair, solver.trials, repair.goals[0].judged).certainty == "sure"


def _step(solver: Solver, chosen: Sequence[tuple[Found, Repair]]) -> _Step:
    """Return what is applied at once: all repairs if they are proven together, else the first."""
    trials = solver.trials
    step = _Step(trials.subject)
    for each, repair in chosen:
        step.take(each, fix_of(repair, trials, repair.goals[0].judged))
    mended = {(goal.judged, goal.code) for _, repair in chosen for goal in repair.goals if not goal.held}
    if len(chosen) > 1 and not trials.proven(mended, trials.judgements, tuple(step.edits), sure=True):
        return _step(solver, chosen[:1])
    return step


def repair(
    run: Run, file: File, *, unsafe: bool, least: str, notes: bool, accept_may: bool = False
) -> Repaired:
    """Apply repairs to a file until no applicable one is left.

    ``least`` is the lowest level that is repaired, ``unsafe`` admits fixes that may change results, ``notes``
    appends a comment to every changed line, ``accept_may`` admits what may not be enough: the nearest repair
    where none is certain.
    Where the search takes too long, what was applied by then counts. Raises CfglintError where fixes go in a
    circle, which is a bug in the rules.
    """
    result, wanted, texts = Repaired(file.text), Wanted(least, unsafe, accept_may), {file.text}
    while result.passes < MAX_PASSES:
        result.passes += 1
        step = None
        # each pass may take as long as the first: else a second run would find what this one had no time for
        with BUDGET, Searching(len(run.targets), len(file.text)) as search:
            step = _next(run, file, wanted)
        result.over = search.over
        if step is None:
            return result
        text = apply_edits(result.text, step.noted() if notes else step.edits)
        for found, fix in step.applied:
            run.finder.tell(found)
            result.applied.append((found.finding, fix))
        if text in texts:
            code = step.applied[0][0].finding.code
            raise CfglintError(
                f"{file.path}: the fixes of {code} undo each other, which is a bug in the rules"
            )
        texts.add(text)
        result.text = text
        file = read_text(text, file.path, bom=file.bom, scripts=file.scripts)
    raise CfglintError(f"{file.path}: after {MAX_PASSES} fixes there are still more; nothing was written")
