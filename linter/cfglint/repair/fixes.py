"""From repairs to the fixes that findings carry: what is written, what it costs, and the other ways out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cfglint.engine.memory import GIB
from cfglint.findings import LEVELS, Fix
from cfglint.repair.effects import memory_changes
from cfglint.repair.joint_repairs import Group, hold_together, repairs
from cfglint.repair.next_steps import escalation
from cfglint.repair.options import combined
from cfglint.repair.other_hardware import elsewhere
from cfglint.repair.search import LIMIT, Search
from cfglint.repair.solve import Allowed, Repair, Solver, to_mend
from cfglint.repair.write import titled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cfglint.engine.subject import Judged, Verdict
    from cfglint.findings import Finding
    from cfglint.repair.goals import Goal
    from cfglint.repair.trials import Trials

_ALTERNATIVES = 3
_UNSAFE_KNOBS = 2  # of an alternative to a safe repair: one that changes more of the results is none
_LESS = 200  # trials of a search for an alternative
SAFE, ANY = Allowed(unsafe=False), Allowed()
_SHOWN = Allowed(display=True)


@dataclass(slots=True)
class Mended:
    """What was found for a document's broken rules: repairs by rule and target (None for all targets)."""

    found: dict[tuple[str, int | None], Repair] = field(default_factory=dict)

    def of(self, code: str, one: Judged) -> Repair | None:
        """Return the repair of a rule on a target."""
        return self.found.get((code, None)) or self.found.get((code, id(one)))

    def take(self, alone: Mapping[tuple[str, int | None], Repair]) -> None:
        """Take in what is right for one target alone, instead of all that it would be at odds with."""
        new = {code for code, _ in alone if (code, None) not in self.found}
        moved = {knob for (code, _), repair in alone.items() if code in new for knob in repair.found.knobs}
        for (code, only), repair in tuple(self.found.items()):
            if only is None and repair.found.knobs & moved:
                del self.found[code, only]
                new.add(code)
        self.found.update((key, repair) for key, repair in alone.items() if key[0] in new)

    def add(self, repair: Repair) -> None:
        """Take in a repair, for each of its goals."""
        only = None if repair.only is None else id(repair.only)
        for goal in repair.goals:
            self.found.setdefault((goal.compiled.code, only), repair)


def groups_of(solver: Solver, found: Iterable[tuple[Judged, Verdict, Finding]], least: str) -> list[Group]:
    """Return the goals of the findings from a level on, each rule once."""
    groups: dict[str, Group] = {}
    for _, verdict, finding in found:
        code = finding.code
        if code == "CFG001" or not to_mend(verdict) or LEVELS.index(finding.level) < LEVELS.index(least):
            continue
        error = finding.level == "error" or (code in groups and groups[code].error)
        groups[code] = Group(code, tuple(solver.goals(code, solver.trials.judgements)), error)
    return list(groups.values())


def mend(solver: Solver, groups: Sequence[Group], stages: Sequence[Allowed]) -> Mended:
    """Find repairs of rules that serve all targets, else one for each target.

    ``stages`` are what may be done: what an earlier one mends, a later one leaves.
    """
    mended = Mended()
    everywhere = solver.trials.judgements
    for allowed in stages:
        _mend(solver, groups, everywhere, allowed, mended)
    if len(everywhere) < 2 or all(mended.of(g.code, goal.one) for g in groups for goal in g.goals):
        return mended
    apart: dict[tuple[str, int | None], Repair] = {}
    for one in everywhere:
        own = [
            Group(group.code, goals, group.error)
            for group in groups
            if (goals := tuple(goal for goal in group.goals if goal.one is one))
        ]
        alone = Mended()
        for allowed in stages:
            _mend(solver, own, (one,), allowed, alone)
        apart.update(alone.found)
    mended.take(apart)
    return mended


def _mend(
    solver: Solver, groups: Sequence[Group], watched: Sequence[Judged], allowed: Allowed, mended: Mended
) -> None:
    left = [group for group in groups if mended.of(group.code, group.goals[0].one) is None]
    for repair in repairs(solver, left, watched, allowed) if left else ():
        before = list({id(other): other for other in mended.found.values()}.values())
        if not before or hold_together(solver, [*before, repair], watched):
            mended.add(repair)


def fixes_of(solver: Solver, group: Group, one: Judged, first: Repair | None) -> list[Fix]:
    """Return the fix of a rule on a target and the alternatives: other knobs, then what only can be shown."""
    if first is not None:
        goals, watched = first.goals, (first.only,) if first.only is not None else solver.trials.judgements
    else:
        goals, watched = group.goals, solver.trials.judgements
    own = tuple(goal for goal in goals if goal.compiled.code == group.code)
    ways = [] if first is None else [first]
    if first is None and all(v.truth is False for v in one.verdicts if v.rule.code == group.code):
        near = solver.nearest(own, watched, ANY)
        ways += [] if near is None else [near]
    ways += _others(solver, own, watched, ways)
    fixes = [fix_of(way, solver.trials, one) for way in ways]
    if ways:
        fixes[0].next = escalation(solver, ways[0])
    here = next((goal for goal in group.goals if goal.one is one), None)
    place = elsewhere(solver.trials, here) if group.error and here is not None else None
    if place is not None:
        fixes[_ALTERNATIVES:] = [place]
    return fixes


def unfixed(solver: Solver, group: Group) -> str:
    """Say why a rule has no fix; nothing where nothing in the file could be moved anyway."""
    trials = solver.trials
    tracks = [
        track
        for track in solver.tracks(group.goals)
        if ANY.admits(track)
        and any(trials.touches(goal.one, goal.compiled, (track.knob.name,)) for goal in group.goals)
    ]
    knobs = list(dict.fromkeys(track.knob.name for track in tracks))
    if not knobs:
        return ""
    if group.code in solver.exhausted:
        return f"none found within {LIMIT:,} trials of {', '.join(knobs)}"
    lack = Search(trials, list(group.goals), ()).lack(tracks)
    left = f"; {lack / GIB:.1f} GiB are missing then" if lack is not None and lack > 0 else ""
    return f"no values of {', '.join(knobs)} mend it without breaking another rule{left}"


def _others(
    solver: Solver, goals: tuple[Goal, ...], watched: Sequence[Judged], ways: Sequence[Repair]
) -> list[Repair]:
    """Return ways that do without a knob of the first one, then without all knobs of those before."""
    first = ways[0].found.knobs if ways else frozenset()
    found: dict[frozenset[str], Repair] = {}

    def look(without: frozenset[str], allowed: Allowed) -> bool:
        other = solver.best(goals, watched, replace(allowed, without=without, limit=_LESS))
        if other is None or other.found.knobs in (first, *found):
            return False
        if (
            other.found.unsafe
            and len(other.found.knobs) > _UNSAFE_KNOBS
            and ways
            and not ways[0].found.unsafe
        ):
            return False
        found[other.found.knobs] = other
        return True

    for knob in sorted(first) if len(first) > 1 else []:
        look(frozenset((knob,)), ANY)
    for allowed in (ANY, _SHOWN):
        while len(found) < _ALTERNATIVES and look(first.union(*found), allowed):
            pass
    return sorted(found.values(), key=_rank)[:_ALTERNATIVES]


def _rank(repair: Repair) -> tuple[object, ...]:
    return repair.patch is None, repair.found.unsafe, repair.found.price


def fix_of(repair: Repair, trials: Trials, one: Judged) -> Fix:
    """Return a repair as a fix, with what it does on a target; its number is given by the caller."""
    found, patch = repair.found, repair.patch
    facts = combined(found.options) or {}
    memory = memory_changes(one.values, trials.values(one, facts))
    target = repair.only.name if repair.only is not None else None
    effect = "; ".join(dict.fromkeys(text for option in found.options for text in option.effects))
    certainty = "sure" if found.sure else "may"
    if patch is None:
        values = (written for option in found.options for written in option.written)
        title = titled(values, trials.subject.view)
        return Fix(
            0, title, (), applicability="display", effect=effect, certainty=certainty, cost=found.cost,
            memory=memory, target=target,
        )  # fmt: skip
    codes = ", ".join(dict.fromkeys(goal.compiled.code for goal in repair.goals))
    notes = tuple(f"cfglint: {f'was {old}' if old is not None else 'added'} ({codes})" for old in patch.old)
    return Fix(
        0, patch.title, tuple(patch.edits), applicability=repair.applicability, certainty=certainty,
        effect=effect, notes=notes, cost=found.cost, memory=memory, target=target,
    )  # fmt: skip
