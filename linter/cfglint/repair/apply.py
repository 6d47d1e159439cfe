"""Attaches fixes to findings, and applies them until nothing more is to be done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.document.document import read_text
from cfglint.engine.run import unsuppressed
from cfglint.errors import CfglintError
from cfglint.findings import LEVELS, Finding, Fix
from cfglint.repair.prove import annotated, fixes_for
from cfglint.text import apply_edits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.document.document import File
    from cfglint.engine.judge import Subject, Verdict
    from cfglint.engine.run import Judged, Run
    from cfglint.text import Edit

MAX_PASSES = 500  # fixes of one file; circles are noticed long before


class Wanted:
    """Which fixes are to be applied."""

    __slots__ = ("accept_may", "applicability", "least")

    def __init__(self, least: str, applicability: tuple[str, ...], *, accept_may: bool) -> None:
        self.least = least
        self.applicability = applicability
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
    numbers: dict[tuple[Edit, ...], int] = {}
    for one, verdict, finding in found:
        if finding.code == "CFG001":
            continue
        fixes = fixes_for(run, verdict, one, judgements)
        for fix in fixes:
            if fix.edits and fix.edits not in numbers:
                run.fixes += 1
                numbers[fix.edits] = run.fixes
            fix.number = numbers.get(fix.edits, 0)
        if fixes:
            finding.fix, finding.alternatives = fixes[0], tuple(fixes[1:])


def _next(run: Run, file: File, wanted: Wanted) -> tuple[Subject, Finding, Fix] | None:
    """Return the first finding of a file that has an applicable fix; fixes behind it are not searched."""
    for subject in run.subjects(file, judge_broken=True):
        judgements = run.judged(subject)
        for one, verdict, finding in run.findings(judgements):
            if LEVELS.index(finding.level) < LEVELS.index(wanted.least):
                continue
            if not unsuppressed([finding], file, subject.document):
                continue
            attach(run, judgements, [(one, verdict, finding)])
            fix = _applicable(finding, wanted)
            if fix is not None:
                return subject, finding, fix
    return None


def repair(
    run: Run, file: File, *, unsafe: bool, least: str, notes: bool, accept_may: bool = False
) -> Repaired:
    """Apply fixes to a file, one after the other, until no applicable one is left.

    One at a time: each is proven on the text that the one before it left. ``least`` is the lowest level that
    is repaired, ``unsafe`` admits fixes that may change results, ``notes`` appends a comment to every changed
    line, ``accept_may`` admits the nearest repair where none is certain. Raises CfglintError where fixes go
    in a circle, which is a bug in the rules.
    """
    result = Repaired(file.text)
    wanted = Wanted(least, ("safe", "unsafe") if unsafe else ("safe",), accept_may=accept_may)
    seen = {file.text}
    while result.passes < MAX_PASSES:
        result.passes += 1
        found = _next(run, file, wanted)
        if found is None:
            return result
        subject, finding, fix = found
        text = apply_edits(result.text, annotated(subject, fix) if notes else fix.edits)
        if text in seen:
            raise CfglintError(
                f"{file.path}: fixes undo each other around {finding.code}; this is a bug in the rules"
            )
        seen.add(text)
        result.text = text
        result.applied.append((finding, fix))
        file = read_text(text, file.path, bom=file.bom)
    raise CfglintError(f"{file.path}: after {MAX_PASSES} fixes there are still more; nothing was written")


def _applicable(finding: Finding, wanted: Wanted) -> Fix | None:
    for fix in (finding.fix, *finding.alternatives):
        if fix is None or not fix.edits or fix.applicability not in wanted.applicability:
            continue
        if wanted.accept_may or fix.certainty == "sure":
            return fix
    return None
