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

MAX_PASSES = 20


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


def _found(run: Run, file: File) -> list[tuple[Subject, list[Finding]]]:
    """Return a file's findings by document, with fixes."""
    result = []
    for subject in run.subjects(file, judge_broken=True):
        judgements = run.judged(subject)
        found = list(run.findings(judgements))
        attach(run, judgements, found)
        result.append((subject, unsuppressed([f for *_, f in found], file, subject.document)))
    return result


def repair(
    run: Run, file: File, *, unsafe: bool, least: str, notes: bool, accept_may: bool = False
) -> Repaired:
    """Apply fixes to a file, pass after pass, until no applicable one is left.

    ``least`` is the lowest level that is repaired, ``unsafe`` admits fixes that may change results, ``notes``
    appends a comment to every changed line, ``accept_may`` admits the nearest repair where none is certain.
    """
    result = Repaired(file.text)
    seen = {file.text}
    while result.passes < MAX_PASSES:
        result.passes += 1
        chosen: list[tuple[Finding, Fix, tuple[Edit, ...]]] = []
        for subject, found in _found(run, file):
            for finding in found:
                fix = _applicable(finding, unsafe=unsafe, least=least, accept_may=accept_may)
                if fix is None:
                    continue
                edits = annotated(subject, fix) if notes else fix.edits
                if not _touches(edits, [e for *_, taken in chosen for e in taken]):
                    chosen.append((finding, fix, edits))
        if not chosen:
            return result
        # One fix at a time: each was proven alone, and the next pass judges the text that it leaves.
        finding, fix, edits = chosen[0]
        text = apply_edits(result.text, edits)
        if text in seen:
            raise CfglintError(
                f"{file.path}: fixes undo each other around {finding.code}; this is a bug in the rules"
            )
        seen.add(text)
        result.text = text
        result.applied.append((finding, fix))
        file = read_text(text, file.path, bom=file.bom)
    raise CfglintError(f"{file.path}: fixing does not come to an end; this is a bug in the rules")


def _applicable(finding: Finding, *, unsafe: bool, least: str, accept_may: bool) -> Fix | None:
    if LEVELS.index(finding.level) < LEVELS.index(least):
        return None
    wanted = ("safe", "unsafe") if unsafe else ("safe",)
    for fix in (finding.fix, *finding.alternatives):
        certain = fix is not None and (accept_may or fix.certainty == "sure")
        if fix is not None and certain and fix.applicability in wanted and fix.edits:
            return fix
    return None


def _touches(edits: Sequence[Edit], taken: Sequence[Edit]) -> bool:
    return any(a.start <= b.end and b.start <= a.end for a in edits for b in taken)
