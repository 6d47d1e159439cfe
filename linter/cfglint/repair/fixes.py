"""The fixes that findings carry: what is written, what it costs and does, and the other ways out.

What to try next where a job still runs out of memory after a repair are further moves, the cheapest first:
a repair is computed with the model's own bounds, and a run may still need more (fragmentation, a longer
answer than ever before). What a rule itself names (`next`, such as a setting of the environment) costs
nothing and goes first. Each further step takes at least `_WORTH` off the need, on top of the repair.
"""

from __future__ import annotations

from cfglint.engine.cases import TOTAL
from cfglint.engine.memory import LACKING, bounds_of, span_of
from cfglint.findings import Fix, MemoryChange
from cfglint.lang.values import INF, needs_of
from cfglint.record import replace
from cfglint.repair.alike import alike
from cfglint.repair.allowed import ANY, SHOWN, Allowed
from cfglint.repair.base import GPUS, SOME_GPUS
from cfglint.repair.price import gives_other_gpus, is_unmodelled, lays_out, regroups, slower
from cfglint.repair.results import result_changes
from cfglint.repair.shared import share_told
from cfglint.repair.sized import sent_away
from cfglint.repair.smaller import smaller
from cfglint.repair.stale import stale
from cfglint.repair.submitted import asked_in_front
from cfglint.repair.together import combined
from cfglint.repair.tracks import RISKS
from cfglint.repair.trials import MEMORY
from cfglint.repair.write import titled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cfglint.engine.subject import Judged
    from cfglint.facts import Values
    from cfglint.repair.found import Repair
    from cfglint.repair.search import Search
    from cfglint.repair.solve import Solver
    from cfglint.repair.tracks import Option, Track
    from cfglint.repair.trials import Goal, Group, Trials

MOST = 3  # proposals of a finding, other hardware among them
_ALTERNATIVES = 2
_UNSAFE_KNOBS = 2  # of an alternative to a safe repair: one that changes more of the results is none
_LESS = 200  # trials of a search for an alternative
_WORTH = 1 << 29  # bytes; less is lost in the noise of an allocator
_MOST_STEPS = 4
_PARTS = (("engine", "engine.memory", "generates"), ("trainer", "trainer.likely", "trains"))
_HOST, _LIKELY = "need.host", "need.likely"
_NOTABLE_HOST = 4.0  # GiB of a machine's own memory; less is there anyway
_NOTABLE = 0.05  # GiB: below that, a part counts as unchanged


# ── a finding's fix, and the alternatives ──────────────────────────────────────────────────────────────
def fixes_of(solver: Solver, group: Group, judged: Judged, repair: Repair | None) -> list[Fix]:
    """Return the fix of a rule on a target, and what reaches the same and is better in something.

    That is faster, less of a risk, or leaves more memory; what only can be shown comes last.
    """
    goals = group.goals
    if repair is not None:
        goals = repair.goals
        if repair.only is not None:
            solver = solver.watching(repair.only)
    own = goals if repair is not None else tuple(goal for goal in goals if goal.code == group.code)
    ways = [] if repair is None else [repair]
    if repair is None and all(v.truth is False for v in judged.verdicts if v.rule.code == group.code):
        near = solver.nearest(own, ANY)
        ways += [] if near is None else [near]
    ways += _others(solver, own, ways)
    if ways and ways[0].patch is None:  # nothing is applied, so the cheapest is shown first
        ways.sort(key=lambda way: (way.patch is None, way.unsafe, way.price))
    fixes = [fix_of(way, solver.trials, judged) for way in ways]
    if ways:
        fixes[0].next = _next_steps(solver, ways[0]) or smaller(solver, ways[0], judged)
    return [fix for i, fix in enumerate(fixes) if not any(_is_worse(fix, other) for other in fixes[:i])][
        :MOST
    ]


def _is_worse(fix: Fix, other: Fix) -> bool:
    """Whether another fix is as good in everything: time, risk, and the memory that is left at worst."""
    return (
        fix.cost >= other.cost
        and list(RISKS).index(fix.risk) >= list(RISKS).index(other.risk)
        and _left(fix) <= _left(other) + _NOTABLE
        and fix.target == other.target
    )


def _left(fix: Fix) -> float:
    return next((change.after_gib[0] for change in fix.memory if change.part == "headroom"), 0)


def _others(solver: Solver, goals: tuple[Goal, ...], ways: Sequence[Repair]) -> list[Repair]:
    """Return ways that do without a knob of the first one, then without all knobs of those before."""
    first = ways[0].knobs if ways else frozenset()
    safe = bool(ways) and not ways[0].unsafe
    others: dict[frozenset[str], Repair] = {}

    def look(without: frozenset[str], allowed: Allowed) -> bool:
        way = solver.best(goals, replace(allowed, without=without, limit=_LESS))
        if way is None or way.knobs in (first, *others):
            return False
        if safe and way.unsafe and (len(way.knobs) > _UNSAFE_KNOBS or way.patch is None):
            return False
        others[way.knobs] = way
        return True

    for knob in sorted(first) if len(first) > 1 else []:
        look(frozenset((knob,)), ANY)
    for allowed in (ANY, SHOWN):
        while len(others) < _ALTERNATIVES and look(first.union(*others), allowed):
            pass
    judged = goals[0].judged
    kept = [
        way for way in others.values() if sent_away(solver, way, judged) == (way, True)
    ]  # else no way out
    ranked = sorted(kept, key=lambda way: (way.patch is None, way.unsafe, way.price))
    return ranked[:_ALTERNATIVES]


def _effects(repair: Repair) -> Iterator[str]:
    """Yield what the moves lose, but for what others make up for; what a GPU holds, no other one changes."""
    for option in repair.options:
        if repair.results != "none" or option.results == "none" or lays_out(option.facts, engines=False):
            yield from option.effects


def _on_some_number(before: Values, after: Values) -> tuple[Values, Values]:
    """Return facts before and after on the number of GPUs that leaves least memory, where none is said."""
    if not needs_of(after["trainer.likely"]) & GPUS:
        return before, after
    each = [(before.but(number), after.but(number)) for number in SOME_GPUS]
    return max(each, key=lambda pair: (bounds_of(pair[1]["trainer.likely"]) or (0, INF))[1])


def fix_of(repair: Repair, trials: Trials, judged: Judged) -> Fix:
    """Return a repair as a fix, with what it does on a target; its number is given by the caller."""
    patch = repair.patch
    codes = ", ".join(dict.fromkeys(goal.code for goal in repair.goals))
    changes = patch.own if patch is not None else ()
    facts = combined(repair.options) or {}
    memory = memory_changes(*_on_some_number(judged.values, trials.values(judged, facts)))
    lost = repair.unsafe and any(change.removed for change in changes)  # nobody says what it was worth
    was = (
        "removed" if change.removed else f"was {change.old}" if change.old is not None else "added"
        for change in changes
    )  # fmt: skip
    others = alike(trials, changes)
    in_front = [change.title for change in asked_in_front(judged, repair.written)] if regroups(facts) else []
    doubt = repair.risk == "optimization" and regroups(facts)
    sure = repair.sure and not _is_short(trials, judged, facts, memory)
    share = "" if memory else share_told(judged.values, trials.values(judged, facts))
    return Fix(
        0,
        others.titled(patch.title)
        if patch is not None
        else titled(repair.written, trials.subject.view, in_front),
        (*(change.edit for change in changes), *others.edits),
        applicability=repair.applicability,
        certainty="sure" if sure else "may",
        unjudged=not sure and not memory and regroups(facts),
        effect="; ".join(filter(None, dict.fromkeys((*_effects(repair), share, others.effect())))),
        notes=tuple(f"cfglint: {text} ({codes})" for text in (*was, *("moved along" for _ in others.edits))),
        cost=repair.cost,
        slower=slower(trials, judged, facts) if repair.risk in ("none", "numerics") else None,
        risk=repair.risk,
        memory=memory,
        results=() if lost else result_changes(trials, judged, facts, doubt=doubt),
        target=repair.only.name if repair.only is not None else None,
        stale=tuple(stale(trials.subject.document, changes, memory)),
    )


def may_be_short(repair: Repair, trials: Trials, judged: Judged) -> bool:
    """Whether a repair may leave a job short of memory that it was not short of."""
    facts = combined(repair.options) or {}
    memory = memory_changes(*_on_some_number(judged.values, trials.values(judged, facts)))
    return _is_short(trials, judged, facts, memory)


def _is_short(
    trials: Trials, judged: Judged, facts: Mapping[str, object], memory: Sequence[MemoryChange]
) -> bool:
    """Whether memory may be missing at worst: where a job is laid out anew, or more than before.

    Nobody knows it of a job laid out anew whose trainer no rule models.
    """
    laid = gives_other_gpus(trials, judged, facts) or lays_out(facts)
    rooms = [change for change in memory if change.part == "headroom"]
    return (bool(memory) and laid and not rooms) or any(
        room.after_gib[0] < 0 and (laid or room.after_gib[0] < room.before_gib[0] - _NOTABLE)
        for room in rooms
    )


# ── memory before and after ────────────────────────────────────────────────────────────────────────────
def memory_changes(before: Values, after: Values) -> tuple[MemoryChange, ...]:
    """Return the GiB of engine and trainer, and the headroom, before and after; empty if unknown."""
    if span_of(before[TOTAL]).high == INF or span_of(before["gpu.vram"]).high == INF:
        return ()
    # An engine takes its share of a GPU whatever the model: whether the model fits in there is open.
    if before["generates"] is True and span_of(after["engine.weights"]).high == INF:
        return ()
    changes = tuple(replace(each, on_more=before[LACKING] is True) for each in _changes(before, after))
    moved = any(
        abs(old - new) > _NOTABLE
        for change in changes
        for old, new in zip(change.before_gib, change.after_gib, strict=True)
    )
    return changes if moved else ()


def _changes(before: Values, after: Values) -> Iterator[MemoryChange]:
    for part, name, present in _PARTS:
        if before[present] is not True or (part == "engine" and before["colocated"] is False):
            continue
        old, new = span_of(before[name]), span_of(after[name])
        if old.high < INF and new.high < INF and not is_unmodelled(after[name]):
            yield MemoryChange(part, (old.low, old.high), (new.low, new.high))
    old, new = span_of(before[_HOST]), span_of(after[_HOST])
    if new.high < INF and new.low - old.low > _NOTABLE_HOST:
        yield MemoryChange("host", (old.low, old.high), (new.low, new.high))
    if not is_unmodelled(after[TOTAL]):
        yield MemoryChange("headroom", _headroom(before), _headroom(after))


def _headroom(values: Values) -> tuple[float, float]:
    """Return what a GPU has left at worst and at best: at worst by the bound, where what is likely fits.

    Where that does not fit either, it tells how much is missing, so that all numbers agree.
    """
    # Engines with GPUs of their own have nothing to do with the trainer's.
    apart = values["colocated"] is False and values["trains"] is True
    total, likely = ("trainer.memory", "trainer.likely") if apart else (TOTAL, _LIKELY)
    capacity, need, most = span_of(values["gpu.vram"]).low, span_of(values[total]), span_of(values[likely])
    worst = most.high if capacity < most.high < need.high else need.high
    return capacity - worst, capacity - need.low


# ── what to try next ───────────────────────────────────────────────────────────────────────────────────
def _next_steps(solver: Solver, repair: Repair) -> tuple[str, ...]:
    """Return further steps in words; none where the repair is not about memory."""
    goals = [goal for goal in repair.goals if goal.code.startswith(MEMORY) and goal.bounds]
    if not goals:
        return ()
    search = solver.search(goals)
    steps: dict[str, tuple[tuple[object, ...], Option]] = {}
    for track in solver.tracks(goals):
        step = _further(search, repair, track)
        if step is not None:
            extra, option = step
            price = option.unsafe, extra, track.number
            if track.knob.name not in steps or price < steps[track.knob.name][0]:
                steps[track.knob.name] = price, option
    ordered = list(_apart(sorted(steps.values(), key=lambda step: step[0])))[:_MOST_STEPS]
    outside = dict.fromkeys(text for goal in goals for text in goal.rule.next)
    titles = (titled(option.written, solver.trials.subject.view) for _, option in ordered)
    return tuple(dict.fromkeys((*outside, *titles)))  # one key may move two knobs


def _apart(steps: Iterable[tuple[tuple[object, ...], Option]]) -> Iterator[tuple[tuple[object, ...], Option]]:
    """Yield the steps but those that a partner makes up for which an earlier step has moved already."""
    moved: set[str] = set()
    for step in steps:
        partners = step[1].exchanged.keys()
        if moved.isdisjoint(partners):
            moved.update(partners)
            yield step


def _further(search: Search, repair: Repair, track: Track) -> tuple[float, Option] | None:
    """Return the first place of a track, beyond what the repair has, that takes something off the need."""

    def worst(options: Sequence[Option]) -> float:
        return max(search.progress(options).gaps, default=INF)

    limit = worst(repair.options) - _WORTH
    broken = _broken(search, repair.options)
    others = [option for option in repair.options if option.knob != track.knob.name]
    spent = sum(option.cost for option in repair.options if option.knob == track.knob.name)
    own = len(others) < len(repair.options)
    stride = 1
    i = 0
    while i < len(track):
        option = track.option(i)
        beyond = option is not None and option.writable and (not own or option.cost > spent)
        helps = option is not None and beyond and worst([*others, option]) <= limit
        if option is not None and helps and _broken(search, [*others, option]) <= broken:
            return option.cost - spent, option
        i, stride = i + stride, stride * 2 if beyond else stride
    return None


def _broken(search: Search, options: Sequence[Option]) -> set[str]:
    """Return the rules that moves certainly break, but for those about memory."""
    facts = combined(options) or {}
    return {
        rule.code
        for judged in search.watched
        for rule in search.trials.harmed(judged, facts, surely=True)
        if not rule.code.startswith(MEMORY) and rule.test(search.trials.values(judged, facts)) is False
    }
