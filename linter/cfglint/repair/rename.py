"""Renames an unknown key to the one that it was surely meant to be; no knob moves, and it is proven likewise.

A key that had no effect gets one, so a rename may change results: it is never a safe fix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.findings import LEVELS, Fix
from cfglint.repair.prove import judged_after
from cfglint.schema.judge import meant
from cfglint.text import Edit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.engine.subject import Judged, Mistake, Verdict
    from cfglint.findings import Finding
    from cfglint.repair.trials import Trials

CODES = {"CFG011": "refused_keys", "CFG012": "ignored_keys"}


def renames(
    trials: Trials, found: Sequence[tuple[Judged, Verdict, Finding]], least: str
) -> Iterator[tuple[Finding, Fix]]:
    """Yield the findings of unknown keys that have one clear candidate, each with its rename."""
    checked = trials.subject.checked or {}
    for *_, finding in found:
        kind = CODES.get(finding.code, "")
        if LEVELS.index(finding.level) < LEVELS.index(least):
            continue
        place = finding.place
        mistakes = [m for m in checked.get(kind, ()) if (m.start, m.end) == (place.start, place.end)]
        fix = _fix(trials, mistakes[0], finding.code) if len(mistakes) == 1 else None
        if fix is not None:
            yield finding, fix


def _fix(trials: Trials, mistake: Mistake, code: str) -> Fix | None:
    view = trials.subject.view
    if mistake.problem is None:
        return None
    new = meant(mistake.problem, view)
    old = str(mistake.problem.path[-1])
    source = view.document.file.text[mistake.start : mistake.end]
    if new is None or source.count(old) != 1:  # of an override, or spelled with escapes
        return None
    edits = (Edit(mistake.start, mistake.end, source.replace(old, new)),)
    if not _proven(trials, edits, code):
        return None
    title = f"rename {mistake.key} to {new}"
    return Fix(0, title, edits, applicability="unsafe", notes=(f"cfglint: was {old} ({code})",))


def _proven(trials: Trials, edits: tuple[Edit, ...], code: str) -> bool:
    """Whether the rename leaves one unknown key less, and breaks no rule that held."""
    after = judged_after(trials, edits)
    if after is None:
        return False
    fact = f"document.{CODES[code]}"
    for old, new in zip(trials.judgements, after, strict=True):
        before = trials.before(old)
        if any(
            found.rule.code not in before or before[found.rule.code].truth is not False
            for found in new.verdicts
            if found.truth is False
        ):
            return False
        if len(new.values[fact]) != len(old.values[fact]) - 1:  # type: ignore[arg-type]
            return False
    return True
