"""Attaches fixes to findings, and applies them until nothing more is to be done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.document.reading import read_text
from cfglint.engine.run import unsuppressed
from cfglint.errors import CfglintError
from cfglint.repair.fixes import ANY, SAFE, fix_of, fixes_of, groups_of, mend, unfixed
from cfglint.repair.prove import proven
from cfglint.repair.rename import renames
from cfglint.repair.solve import Allowed, Solver
from cfglint.repair.trials import Trials
from cfglint.repair.write import comments
from cfglint.text import apply_edits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.document.document import File
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Judged, Subject, Verdict
    from cfglint.findings import Finding, Fix
    from cfglint.repair.solve import Repair
    from cfglint.text import Edit

MAX_PASSES = 500  # of one file; circles are noticed long before


class Wanted:
    """Which fixes are to be applied."""

    __slots__ = ("accept_may", "least", "unsafe")

    def __init__(self, least: str, *, unsafe: bool, accept_may: bool) -> None:
        self.least = least
        self.unsafe = unsafe
        self.accept_may = accept_may


class Repaired:
    """The text after fixing, the fixes applied (finding and fix), and how often the text was linted."""

    __slots__ = ("applied", "passes", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.applied: list[tuple[Finding, Fix]] = []
        self.passes = 0


def attach(run: Run, judgements: Sequence[Judged], found: Sequence[tuple[Judged, Verdict, Finding]]) -> None:
    """Give each finding its fix and the alternatives; findings that one repair resolves share its number."""
    solver = Solver(Trials(run, judgements))
    groups = {group.code: group for group in groups_of(solver, found, "info")}
    warned = groups_of(solver, found, "warning")
    mended = mend(solver, warned, (SAFE, ANY))
    for code in groups.keys() - {group.code for group in warned}:  # hints are mended each for itself
        group = groups[code]
        if all(mended.of(code, goal.one) is None for goal in group.goals):
            repair = solver.best(group.goals, solver.trials.judgements, Allowed())
            if repair is not None:
                mended.add(repair)
    numbers: dict[tuple[Edit, ...], int] = {}
    known: dict[tuple[str, int], list[Fix]] = {}
    for one, _, finding in found:
        if finding.code not in groups:
            continue
        first = mended.of(finding.code, one)
        key = finding.code, id(one)
        if key not in known:
            known[key] = fixes_of(solver, groups[finding.code], one, first)
        fixes = known[key]
        for fix in fixes:
            if fix.edits and fix.edits not in numbers:
                run.fixes += 1
                numbers[fix.edits] = run.fixes
            fix.number = numbers.get(fix.edits, 0)
        if fixes and (fixes[0].edits or fixes[0].target is None):
            finding.fix, finding.alternatives = fixes[0], tuple(fixes[1:])
        else:  # only another machine would do
            finding.alternatives = tuple(fixes)
        if finding.fix is None:
            finding.unfixed = unfixed(solver, groups[finding.code])
    for finding, fix in renames(solver.trials, found, "info"):
        run.fixes += fix.edits not in numbers
        fix.number = numbers.setdefault(fix.edits, run.fixes)
        finding.fix = fix


class _Step:
    """What one pass applies to a document: fixes, each with a finding that it resolves, and their edits."""

    __slots__ = ("applied", "edits", "subject")

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.applied: list[tuple[Finding, Fix]] = []
        self.edits: list[Edit] = []

    def take(self, finding: Finding, fix: Fix) -> None:
        """Take in a fix, unless it overlaps or touches another: then it waits for the next pass."""
        new = [edit for edit in fix.edits if edit not in self.edits]
        if any(_touch(edit, other) for edit in new for other in self.edits):
            return
        self.applied.append((finding, fix))
        self.edits += new

    def noted(self) -> list[Edit]:
        """Return the edits and the comments that tell of them, one to a line."""
        edits = list(self.edits)
        for _, fix in self.applied:
            for note in comments(self.subject, fix.edits, fix.notes):
                if all(other.start != note.start or other in self.edits for other in edits):
                    edits.append(note)
        return edits


def _next(run: Run, file: File, wanted: Wanted) -> _Step | None:
    """Return what is to be applied to the first document of a file that has an applicable repair."""
    for subject in run.subjects(file, judge_broken=True):
        judgements = run.judged(subject)
        found = run.findings(judgements)
        kept = unsuppressed([finding for *_, finding in found], file, subject.document)
        found = [entry for entry in found if any(entry[2] is finding for finding in kept)]
        solver = Solver(Trials(run, judgements))
        groups = groups_of(solver, found, wanted.least)
        if not groups:
            continue
        mended = mend(solver, groups, (ANY if wanted.unsafe else SAFE,))
        chosen: dict[int, tuple[Finding, Repair]] = {}
        for one, _, finding in found:
            repair = mended.of(finding.code, one)
            if repair is not None and repair.only is None and repair.patch is not None:
                chosen.setdefault(id(repair), (finding, repair))
        if not chosen and wanted.accept_may:
            chosen.update(_possible(solver, found, wanted))
        if chosen:
            return _step(solver, list(chosen.values()))
        step = _Step(subject)
        for finding, fix in renames(solver.trials, found, wanted.least) if wanted.unsafe else ():
            step.take(finding, fix)
        if step.applied:
            return step
    return None


def _step(solver: Solver, repairs: Sequence[tuple[Finding, Repair]]) -> _Step:
    """Return what is applied at once: all repairs if they are proven together, else the first."""
    step = _Step(solver.trials.subject)
    for finding, repair in repairs:
        step.take(finding, fix_of(repair, solver.trials, repair.goals[0].one))
    goals = {
        (id(goal.one), goal.compiled.code) for _, repair in repairs for goal in repair.goals if not goal.held
    }
    if len(repairs) > 1 and not proven(
        solver.trials, goals, solver.trials.judgements, tuple(step.edits), sure=True
    ):
        step = _Step(solver.trials.subject)
        finding, repair = repairs[0]
        step.take(finding, fix_of(repair, solver.trials, repair.goals[0].one))
    return step


def _possible(
    solver: Solver, found: Sequence[tuple[Judged, Verdict, Finding]], wanted: Wanted
) -> Iterator[tuple[int, tuple[Finding, Repair]]]:
    """Yield the first repair that only may suffice."""
    groups = {group.code: group for group in groups_of(solver, found, wanted.least)}
    for _, verdict, finding in found:
        if finding.code in groups and verdict.truth is False:
            repair = solver.nearest(
                groups[finding.code].goals, solver.trials.judgements, Allowed(unsafe=wanted.unsafe)
            )
            if repair is not None and repair.patch is not None:
                yield id(repair), (finding, repair)
                return


def repair(
    run: Run, file: File, *, unsafe: bool, least: str, notes: bool, accept_may: bool = False
) -> Repaired:
    """Apply repairs to a file until no applicable one is left.

    ``least`` is the lowest level that is repaired, ``unsafe`` admits fixes that may change results, ``notes``
    appends a comment to every changed line, ``accept_may`` admits the nearest repair where none is certain.
    Raises CfglintError where fixes go in a circle, which is a bug in the rules.
    """
    result = Repaired(file.text)
    wanted = Wanted(least, unsafe=unsafe, accept_may=accept_may)
    seen = {file.text}
    while result.passes < MAX_PASSES:
        result.passes += 1
        step = _next(run, file, wanted)
        if step is None:
            return result
        text = apply_edits(result.text, step.noted() if notes else step.edits)
        result.applied += step.applied
        if text in seen:
            code = step.applied[0][0].code
            raise CfglintError(
                f"{file.path}: fixes undo each other around {code}; this is a bug in the rules"
            )
        seen.add(text)
        result.text = text
        file = read_text(text, file.path, bom=file.bom)
    raise CfglintError(f"{file.path}: after {MAX_PASSES} fixes there are still more; nothing was written")


def _touch(one: Edit, other: Edit) -> bool:
    """Whether two edits overlap or meet."""
    return one.start <= other.end and other.start <= one.end
