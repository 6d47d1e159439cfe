"""Commands of one file that break a rule alike and take the same fix: one fix makes the edits of all."""

from __future__ import annotations

from itertools import pairwise

from cfglint.text import OutsideEdit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cfglint.findings import Finding, Fix

_AS_WELL = ", and the same in "


def join(told: Sequence[Finding], new: Iterable[Finding]) -> None:
    """Give ``new`` findings of a file, and those that were ``told`` before, the edits of each other's fix."""
    for finding in new:
        twins = [each.fix for each in told if _is_twin(each, finding) and each.fix is not None]
        if finding.fix is None or not twins:
            continue
        first, fix = twins[0], finding.fix
        notes = dict(zip((*first.edits, *fix.edits), (*first.notes, *fix.notes), strict=False))
        edits = tuple(sorted(notes, key=lambda edit: edit.start))
        if len(notes) == len(first.edits) or any(one.end > other.start for one, other in pairwise(edits)):
            continue  # one definition is read by both, or what they write is at odds
        for each in (*twins, fix):
            each.title = f"{_plain(fix)}{_AS_WELL}{_others(len(twins))}"
            each.edits, each.notes = edits, tuple(notes[edit] for edit in edits)
            each.number = first.number


def _is_twin(one: Finding, other: Finding) -> bool:
    fixes = [each.fix for each in (one, other) if each.fix is not None]
    same = (one.place.path, one.code, one.target) == (other.place.path, other.code, other.target)
    if not same or len(fixes) < len((one, other)) or one.place.start == other.place.start:
        return False
    kinds = [(_plain(fix), fix.applicability, fix.certainty, bool(fix.edits)) for fix in fixes]
    inside = not any(isinstance(edit, OutsideEdit) for fix in fixes for edit in fix.edits)
    return kinds[0] == kinds[1] and kinds[0][-1] and inside


def _plain(fix: Fix) -> str:
    """Return what a fix does to one command."""
    return fix.title.partition(_AS_WELL)[0]


def _others(number: int) -> str:
    return f"{number} more command{'s' * (number > 1)}"
