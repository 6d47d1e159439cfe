"""Says with a fix which other errors keep the job from running all the same, as nothing mends them."""

from __future__ import annotations

from cfglint.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.find import Found

_SERIOUS = ("error", "warning")
_MANY = 3  # codes that are told


def say_what_stays(found: Sequence[Found]) -> None:
    """Say of each fix what stops the job after it: errors on the same target that have no fix."""
    stuck = [each for each in found if _stops(each)]
    for each in found:
        finding, fix = each.finding, each.finding.fix
        if fix is None or not fix.edits or finding.level not in _SERIOUS:
            continue
        others = [other for other in stuck if other.finding.code != finding.code and _is_beside(other, each)]
        if others:
            told = _told(others)
            effect = f"{told}; {fix.effect}" if fix.effect else told
            finding.fix = replace(fix, effect=effect)
            finding.fix.next = fix.next


def _stops(each: Found) -> bool:
    finding = each.finding
    certain = each.verdict.truth is False and not finding.possible and each.judged.case is None
    return certain and finding.fix is None and finding.rule_level == "error" and finding.level in _SERIOUS


def _is_beside(one: Found, other: Found) -> bool:
    targets = (one.finding.target, other.finding.target)
    return None in targets or targets[0] == targets[1]


def _told(others: Sequence[Found]) -> str:
    names = list(dict.fromkeys(f"{each.finding.code} ({each.finding.name})" for each in others))
    more = f" and {len(names) - _MANY} more" if len(names) > _MANY else ""
    sure = any(each.finding.level == "error" for each in others)
    have = "has" if len(names) == 1 else "have"
    does = "does not let the job run" if sure else "may not let the job run"
    return f"alone it {does}: {', '.join(names[:_MANY])}{more} {have} no fix"
