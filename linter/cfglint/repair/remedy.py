"""The cheapest fix that lets a config fit on a GPU where it does not, or may not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.document.document import read_text
from cfglint.engine.fit import VERDICTS, Remedy, fit_rows
from cfglint.repair.prove import fixes_for
from cfglint.text import apply_edits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.engine.fit import FitRow
    from cfglint.engine.judge import Subject
    from cfglint.engine.run import Run
    from cfglint.findings import Fix

_PREFIX = "MEM"


def remedy(run: Run, subject: Subject, row: FitRow) -> Remedy | None:
    """Return the fix that helps most on the one target of ``run``; of those that help alike, the safest.

    Fixes come from the memory rules that the config breaks there. Each was proven on the rules; here it must
    also change the row's verdict for the better.
    """
    if row.verdict not in ("tight", "oom"):
        return None
    ways = list(_ways(run, subject, row))
    return min(ways, key=lambda way: VERDICTS.index(way.verdict)) if ways else None


def _ways(run: Run, subject: Subject, row: FitRow) -> Iterator[Remedy]:
    judgements = run.judged(subject)
    (one,) = judgements
    fixes = [
        fix
        for verdict in one.verdicts
        if verdict.rule.code.startswith(_PREFIX) and (verdict.truth is False or not verdict.needs)
        for fix in fixes_for(run, verdict, one, judgements)
        if fix.edits
    ]
    tried: set[object] = set()
    for fix in sorted(fixes, key=lambda fix: (fix.applicability != "safe", fix.certainty != "sure")):
        if fix.edits in tried:
            continue
        tried.add(fix.edits)
        after = _after(run, subject, fix)
        if after is not None and VERDICTS.index(after.verdict) < VERDICTS.index(row.verdict):
            yield Remedy(fix, after.need, after.verdict)


def _after(run: Run, subject: Subject, fix: Fix) -> FitRow | None:
    """Return the row of the text that the fix leaves behind."""
    file = subject.document.file
    text = apply_edits(file.text, fix.edits)
    again = read_text(text, file.path, bom=file.bom).documents
    if len(again) != len(file.documents):
        return None
    mended = run.subject(again[subject.document.index], subject.framework)
    return next(fit_rows(run.pack, mended, run.targets, run.tables), None)
