"""What may let a trainer fit, with what its engine needs to start: room for weights, a step and a cache.

An engine whose share may be too small stops at start, whatever the trainer then takes.
"""

from __future__ import annotations

from cfglint.lang.values import Interval
from cfglint.record import replace
from cfglint.repair.allowed import SAFE
from cfglint.repair.found import Repair
from cfglint.repair.together import combined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cfglint.engine.subject import Judged
    from cfglint.facts import Values
    from cfglint.repair.search import Search
    from cfglint.repair.solve import Solver
    from cfglint.repair.tracks import Option
    from cfglint.repair.trials import Goal, Group

_ENGINES = "MEM2"  # the rules about an engine's memory
_NOISE = 1 << 26  # bytes more that are missing: none
_MORE = 1.05  # of what is missing of a trainer's memory, which may be missing with it


def with_engine(solver: Solver, groups: Iterable[Group], repair: Repair, judged: Judged) -> Repair:
    """Return a repair with one safe move after which the engine is sure to start, where it was not.

    Where none makes it sure, it is the one after which least is missing, less than half of what was.
    """
    facts = combined(repair.options) or {}
    after = solver.trials.values(judged, facts)
    told = {group.code for group in groups}
    codes = dict.fromkeys(v.rule.code for v in judged.verdicts if v.rule.code.startswith(_ENGINES))
    engine = tuple(
        goal
        for code in codes
        for goal in solver.goals(code)
        if goal.rule.level == "error" and goal.judged is judged
        if code in told or _mostly_short(solver, goal, after)
        if goal.truth(solver.trials, after, facts) is not True
    )
    if not engine:
        return repair
    asked = replace(solver.search(engine), lenient=True)
    kept = replace(solver.search(repair.goals), lenient=True)
    most = _MORE * _missing(kept, repair.options) + _NOISE
    moves = (option for track in SAFE.over(solver.tracks(engine)) for option in track.options())
    able = [move for move in moves if move.writable and move.knob not in repair.knobs]
    ways = [(*repair.options, move) for move in able if asked.possible((*repair.options, move))]
    lacking = {way: _missing(asked, way) for way in ways}
    ways.sort(
        key=lambda way: (not _starts(asked, way), 0 if _starts(asked, way) else lacking[way], way[-1].weight)
    )
    for way in ways:
        if not _starts(asked, way) and lacking[way] > _missing(asked, repair.options) / 2:
            break
        if _missing(kept, way) > most or kept.harms(way):
            continue
        goals = tuple(dict.fromkeys((*repair.goals, *engine)))
        more = solver.written(Repair(way, sure=False), goals)
        return repair if more is None or more.patch is None else replace(more, sure=False)
    return repair


def _mostly_short(solver: Solver, goal: Goal, values: Values) -> bool:
    """Whether more of a range is too little for an engine than is enough: no finding tells of it."""
    evaluator = solver.trials.run.finder.evaluator
    gaps = (evaluator(node, values)[0] for node in goal.gaps)
    return any(isinstance(gap, Interval) and gap.lo + gap.hi > 0 for gap in gaps)


def _starts(search: Search, options: Sequence[Option]) -> bool:
    return search.progress(options).truth is True


def _missing(search: Search, options: Sequence[Option]) -> float:
    return max((0.0, *search.progress(options).gaps))
