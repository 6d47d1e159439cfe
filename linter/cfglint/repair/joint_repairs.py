"""Repairs for all broken rules of a document at once.

Rules that share no knob are mended apart: the cheapest repairs of each are then the cheapest of all. Where
they share knobs, one search mends them together, so that a move which serves two of them is paid once.
Whether what was found apart also holds together is checked at the end; where it does not, it is searched
together after all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from cfglint.repair.goals import Found

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cfglint.engine.subject import Judged
    from cfglint.repair.goals import Goal
    from cfglint.repair.options import Option
    from cfglint.repair.solve import Allowed, Repair, Solver

_MOST_TOGETHER = 12  # rules in one search


@dataclass(frozen=True, slots=True)
class Group:
    """The goals of one rule on the targets of a document; ``error`` says that it is sure to break."""

    code: str
    goals: tuple[Goal, ...]
    error: bool


def repairs(
    solver: Solver, groups: Sequence[Group], watched: Sequence[Judged], allowed: Allowed
) -> list[Repair]:
    """Return repairs that together reach the goals of as many groups as can be, errors before the others.

    A repair's goals are those that it reaches. None of the repairs harms a rule that held on ``watched``.
    """
    alone: dict[str, Repair] = {}
    for group in groups:
        repair = solver.best(group.goals, watched, allowed)
        if repair is not None:
            alone[group.code] = repair
    if any(repair.found.unsafe for repair in alone.values()):
        for group in groups:  # what could mend it, now that results may change anyway
            solver.cheapest(group.goals, watched, allowed)
    able = sorted((g for g in groups if g.code in alone), key=lambda g: (not g.error, g.code))
    found = [_joined(solver, own, alone, watched, allowed) for own in _clusters(solver, able)]
    parts = [repair for some in found for repair in some]
    if len(parts) > 1 and not hold_together(solver, parts, watched):
        return _joined(solver, able, alone, watched, allowed)
    return parts


def _clusters(solver: Solver, groups: Iterable[Group]) -> list[list[Group]]:
    """Return the groups, those together that a common knob could mend."""
    clusters: list[tuple[set[str], list[Group]]] = []
    for group in groups:
        knobs = set(solver.helpful[group.code])
        members = [group]
        apart = []
        for other, own in clusters:
            if other & knobs:
                knobs |= other
                members = own + members
            else:
                apart.append((other, own))
        clusters = [*apart, (knobs, members)]
    return [own for _, own in clusters]


def _joined(
    solver: Solver,
    groups: Sequence[Group],
    alone: dict[str, Repair],
    watched: Sequence[Judged],
    allowed: Allowed,
) -> list[Repair]:
    if len(groups) == 1:
        return [alone[groups[0].code]]
    together = _as_many(solver, groups[:_MOST_TOGETHER], alone, watched, allowed)
    return _split(solver, together, watched)


def _as_many(
    solver: Solver,
    groups: Sequence[Group],
    alone: dict[str, Repair],
    watched: Sequence[Judged],
    allowed: Allowed,
) -> Repair | None:
    """Return a repair of all groups; where there is none, of as many as can be, from the first on."""
    whole = _all(solver, groups, alone, watched, allowed)
    if whole is not None or len(groups) < 2:
        return whole
    kept: list[Group] = []
    best: Repair | None = None
    for group in groups:
        more = _all(solver, [*kept, group], alone, watched, allowed)
        if more is not None:
            kept.append(group)
            best = more
    return best


def _all(
    solver: Solver,
    groups: Sequence[Group],
    alone: dict[str, Repair],
    watched: Sequence[Judged],
    allowed: Allowed,
) -> Repair | None:
    if len(groups) == 1:
        return alone[groups[0].code]
    goals = [goal for group in groups for goal in group.goals]
    singles = [alone[group.code].found for group in groups]
    dearest = max(singles, key=lambda found: found.price)
    if solver.together(dearest.options, goals, watched):  # no repair of all can be cheaper
        return solver.written(dearest, goals, watched)
    moves = _distinct(option for found in singles for option in found.options)
    known = Found(moves) if moves and solver.together(moves, goals, watched) else None
    if not any(found.unsafe for found in singles):
        safe = solver.cheapest(goals, watched, replace(allowed, unsafe=False), known)
        if safe is not None or not allowed.unsafe:
            return safe
    return solver.cheapest(goals, watched, allowed, known)


def _distinct(options: Iterable[Option]) -> tuple[Option, ...]:
    """Return each move once; nothing where a knob would go to two values."""
    found: dict[str, Option] = {}
    for option in options:
        if option.knob in found and found[option.knob].facts != option.facts:
            return ()
        found[option.knob] = option
    return tuple(found.values())


def hold_together(solver: Solver, parts: Sequence[Repair], watched: Sequence[Judged]) -> bool:
    """Whether repairs can be made together: all their goals are reached then, and nothing is harmed."""
    moves = _distinct(option for part in parts for option in part.found.options)
    goals = [goal for part in parts for goal in part.goals]
    return bool(moves) and solver.together(moves, goals, watched)


def _split(solver: Solver, repair: Repair | None, watched: Sequence[Judged]) -> list[Repair]:
    """Take a repair apart into the smallest sets of moves that reach some of its goals on their own."""
    if repair is None:
        return []
    if len(repair.found.options) < 2:
        return [repair]
    codes = list(dict.fromkeys(goal.compiled.code for goal in repair.goals))
    needed = {code: _smallest(solver, repair, code, watched) for code in codes}
    sets = list(dict.fromkeys(needed.values()))
    if any(one & other for one, other in combinations(sets, 2)):
        return [repair]
    if frozenset().union(*sets) != frozenset(option.knob for option in repair.found.options):
        return [repair]
    parts = []
    for knobs in sets:
        goals = [goal for goal in repair.goals if needed[goal.compiled.code] == knobs]
        options = tuple(option for option in repair.found.options if option.knob in knobs)
        part = solver.written(Found(options), goals, watched)
        if part is None:
            return [repair]
        parts.append(part)
    return parts


def _smallest(solver: Solver, repair: Repair, code: str, watched: Sequence[Judged]) -> frozenset[str]:
    options = repair.found.options
    goals = [goal for goal in repair.goals if goal.compiled.code == code]
    for size in range(1, len(options)):
        for some in combinations(options, size):
            if solver.together(some, goals, watched):
                return frozenset(option.knob for option in some)
    return frozenset(option.knob for option in options)
