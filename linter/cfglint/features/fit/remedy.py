"""The cheapest fix that lets a config fit on a GPU where it does not, or may not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.engine.memory import VERDICTS, Remedy, fit_rows
from cfglint.findings import Fix
from cfglint.repair.fixes import fix_of, mend
from cfglint.repair.prove import judged_after
from cfglint.repair.solve import ANY, solver_of
from cfglint.repair.trials import Group, to_mend

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.engine.memory import FitRow
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Subject
    from cfglint.repair.solve import Solver

_PREFIX = "MEM"


def remedy(run: Run, subject: Subject, row: FitRow) -> Remedy | None:
    """Return the fix that helps most on the one target of ``run``; of those that help alike, the first.

    It mends the memory rules that the config breaks there, all together where that can be. The fix was proven
    on the rules; here it must also change the row's verdict for the better.
    """
    if row.verdict not in ("tight", "oom"):
        return None
    solver = solver_of(run, run.judged(subject))
    ways = []
    for fix in _fixes(solver):
        after = _after(solver, fix)
        if after is not None and VERDICTS.index(after.verdict) < VERDICTS.index(row.verdict):
            ways.append(Remedy(fix, after.need_gib, after.verdict))
            if after.verdict == "fits":
                break
    return min(ways, key=lambda way: VERDICTS.index(way.verdict)) if ways else None


def _fixes(solver: Solver) -> Iterator[Fix]:
    (one,) = solver.trials.judgements
    codes = [v.rule.code for v in one.verdicts if v.rule.code.startswith(_PREFIX) and to_mend(v)]
    groups = [Group(code, solver.goals(code), error=True) for code in codes]
    repairs = mend(solver, groups, (ANY,)).each()
    fixes = [fix_of(repair, solver.trials, one) for repair in repairs if repair.patch is not None]
    if len(fixes) > 1:
        yield _joined(fixes)
    yield from fixes
    for group in groups:
        if any(v.rule.code == group.code and v.truth is False for v in one.verdicts):
            nearest = solver.nearest(group.goals, ANY)
            if nearest is not None and nearest.patch is not None:
                yield fix_of(nearest, solver.trials, one)


def _joined(fixes: Sequence[Fix]) -> Fix:
    """Return fixes of different rules as one."""
    unsafe = any(fix.applicability == "unsafe" for fix in fixes)
    return Fix(
        0, " and ".join(fix.title for fix in fixes),
        tuple(dict.fromkeys(edit for fix in fixes for edit in fix.edits)),
        applicability="unsafe" if unsafe else "safe",
        effect="; ".join(dict.fromkeys(fix.effect for fix in fixes if fix.effect)),
        notes=tuple(note for fix in fixes for note in fix.notes),
    )  # fmt: skip


def _after(solver: Solver, fix: Fix) -> FitRow | None:
    """Return the row of the text that the fix leaves behind."""
    after = judged_after(solver.trials, fix.edits)
    if after is None:
        return None
    run = solver.trials.run
    return next(fit_rows(run, after[0].subject), None)
