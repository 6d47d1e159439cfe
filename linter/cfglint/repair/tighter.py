"""What may be enough, made more likely to be: cheap moves that take more off the memory that is missing.

A repair that only may reach its goals stops at the first place where the estimate allows for it. Where a
smaller micro-batch costs next to nothing, nobody stops there. Each move has to take something off the most
that a job may need; where that is not known, none does. What changes numbers is no help to a job that may
fit without it.
"""

from __future__ import annotations

from bisect import bisect_left

from cfglint.budget import BUDGET
from cfglint.engine.memory import GIB, bounds_of
from cfglint.lang.values import INF
from cfglint.record import replace
from cfglint.repair.allowed import ANY, SAFE
from cfglint.repair.estimate import middle
from cfglint.repair.found import Repair
from cfglint.repair.relax import cut, utmost
from cfglint.repair.together import combined
from cfglint.repair.tracks import RISKS
from cfglint.repair.trials import MEMORY, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cfglint.engine.subject import Judged
    from cfglint.repair.allowed import Allowed
    from cfglint.repair.search import Search
    from cfglint.repair.solve import Solver
    from cfglint.repair.tracks import Option, Track
    from cfglint.repair.trials import Goal

_WORTH = GIB  # bytes that a move has to take off what is missing
_NOISE = GIB / 64  # bytes by which two places count as equal
_CHEAP = 5.0  # points that it may cost
_EASILY, _NEXT_TO_NOTHING = 0.75, 1.0  # of a GPU, which the middle of an estimate is within; points then
_SAME = 1.1  # of the lower end before: more is more memory
_LESS = 0.97  # of the memory before: a move that leaves more is none
_MOST_OF_IT = 0.5  # of what is missing may be left
_MOVES = 4
_TRIES = 3  # without what a rule forbids
_PLACES = (0, 1, 2, 3, 4, 8, 16, 32, 48, 64)  # of a track
_TRIALS = 200
_SPARE = 1_000_000  # steps that are left for the file's other findings: without them, nothing is made better


def tightened(solver: Solver, repair: Repair, judged: Judged, risk: str = "") -> Repair:
    """Return a repair that may be enough, with cheap moves that leave less memory missing at worst.

    They put nothing more at risk than it does, or than ``risk``.
    """
    facts = combined(repair.options) or {}
    goals = [
        goal
        for rule in solver.trials.short(judged, facts, served=True)
        for goal in solver.of(rule.code)
        if goal.bounds and goal.compiled.level != "info" and goal.judged is judged
    ]
    known = _estimate(solver, judged, facts)
    if not goals or known is None or BUDGET.left < _SPARE:
        return repair
    search = replace(solver.search(goals), lenient=True, refused={key_of(facts)})
    tracks, limits = ANY.over(solver.tracks(goals)), _limits(known, repair.risk)
    limits = (_CHEAP, risk) if risk else limits
    options = _closer(search, tracks, repair.options, limits)
    if options is repair.options:  # what is still not enough by itself, where most of what is missing goes
        nearing = replace(search, nearing=True)
        options = _closer(nearing, tracks, repair.options, limits)
        if _missing(search, options) > _MOST_OF_IT * _missing(search, repair.options):
            options = repair.options
    options = _likely(solver, search, judged, tracks, replace(repair, options=options)) or options
    if options is repair.options:
        return repair
    after = _estimate(solver, judged, combined(options) or {})
    if after is None or (after[1] > after[2] and after[1] > known[1]):
        return repair
    if after[0] > _SAME * known[0] and judged.values["trains"] is not False:
        return repair  # a server's share may grow where it fits
    more = solver.written(Repair(options, sure=False), repair.goals)
    if more is not None and _missing(search, options) > 0:
        more = replace(more, sure=False)
    shown = repair.patch is not None and more is not None and more.patch is None  # and no longer written
    worse = more is None or shown or _rank(more.risk) > _rank(risk or repair.risk)
    return repair if more is None or worse else more


def _closer(
    search: Search, tracks: Sequence[Track], options: tuple[Option, ...], limits: tuple[float, str]
) -> tuple[Option, ...]:
    """Return moves with cheap ones more, each of which leaves less memory missing."""
    start = search.trials.count
    for _ in range(_MOVES):
        spent = search.trials.count - start > _TRIALS or BUDGET.left < _SPARE
        if spent or not 0 < _missing(search, options) < INF:
            break
        ways = list(_ways(search, tracks, options, limits))
        now = _missing(search, options)
        single = sorted((way for way in ways if way[0] <= max(now - _WORTH, 0)), key=lambda way: way[:2])
        chosen = next((way[2] for way in single if not search.harms(way[2])), None)
        chosen = chosen or _together(search, ways, options)
        if chosen is None:
            break
        options = chosen
    return options


def _likely(
    solver: Solver, search: Search, judged: Judged, tracks: Sequence[Track], repair: Repair
) -> tuple[Option, ...] | None:
    """Return moves with a cheap one more, where all that is likely fits only then, without what it spares."""

    def room(moved: tuple[Option, ...]) -> float:
        known = _estimate(solver, judged, combined(moved) or {})
        return known[2] - known[1] if known is not None else -INF

    if not 0 > room(repair.options) > -INF or BUDGET.left < _SPARE:
        return None
    ways = sorted(_ways(search, tracks, repair.options, (_CHEAP, "none")), key=lambda way: way[1])
    fitting = next((way[2] for way in ways if room(way[2]) >= 0 and not search.harms(way[2])), None)
    if fitting is None:
        return None

    def enough(fewer: tuple[Option, ...]) -> bool:
        written = room(fewer) >= 0 and solver.written(Repair(fewer, sure=False), repair.goals)
        return bool(written)

    new, *rest = _fewest((fitting[-1], *fitting[:-1]), 1, enough)
    return (*rest, new)


def furthest(solver: Solver, goals: Sequence[Goal], allowed: Allowed, *, cuts: bool = False) -> Repair | None:
    """Return the moves that leave least memory missing, each of which takes something off; they may do.

    Only with ``cuts`` they may cut the data.
    """
    search = replace(solver.search(goals), keeping=not allowed.unsafe, lenient=True)

    def admits(option: Option) -> bool:
        return cuts or (_rank(option.risk) < _rank("data") and _admitted(option, allowed))

    usable = (track.where(admits).begun() for track in allowed.over(solver.tracks(goals)))
    tracks = [track for track in usable if track is not None]
    whole = lawful(solver, search, tracks)
    if whole is None:
        return None
    return solver.written(solver.as_one(Repair(whole, sure=False), goals[0].judged), goals)


def lawful(
    solver: Solver, search: Search, tracks: Sequence[Track], *, anyway: bool = False
) -> tuple[Option, ...] | None:
    """Return the moves that leave least memory missing of those that break nothing else.

    They may be enough, or with ``anyway`` need not be.
    """
    heedless = replace(search, heedless=True, refused=set())

    def admits(option: Option) -> bool:
        return not heedless.harms((option,))

    for _ in range(_TRIES):
        options = _farthest(search, tracks)
        if not options or (not anyway and search.progress(options).truth is False):
            return None
        whole = completed(solver, search, _no_farther(solver, search, tracks, options))
        if whole is not None:
            return whole
        forbidden = [option for option in options if not admits(option)]
        dearest = max(forbidden or options, key=lambda option: option.weight).knob
        own = [track for track in tracks if forbidden and track.knob.name == dearest]
        tracks = [track for track in tracks if track.knob.name != dearest]
        # what a rule forbids takes most off, and some of it may be allowed
        tracks += [less for track in own if (less := cut(track, admits)) is not None]
    return None


def _farthest(search: Search, tracks: Sequence[Track]) -> tuple[Option, ...]:
    """Return the moves that leave least memory missing, without those that take next to nothing off."""
    found = utmost(search, tracks)
    options = found[1] if found is not None else ()
    for option in sorted(options, key=lambda option: -option.weight):
        fewer = tuple(other for other in options if other is not option)
        if fewer and _missing(search, fewer) <= _missing(search, options) + _WORTH / 2:
            options = fewer
    return options


def _no_farther(
    solver: Solver, search: Search, tracks: Sequence[Track], options: tuple[Option, ...]
) -> tuple[Option, ...]:
    """Return moves to the ends of tracks, each at the first place from which on it takes nothing more off.

    Or next to nothing, where a step takes much longer farther on, and that is not enough either.
    """

    def needs(moved: Sequence[Option]) -> tuple[float, ...]:
        known = _estimate(solver, search.goals[0].judged, combined(moved) or {})
        return (_missing(search, moved), *(known[:2] if known is not None else ()))

    least = needs(options)
    for end in options if all(each < INF for each in least) else ():
        others = tuple(other for other in options if other is not end)
        track = next((each for each in tracks if each.option(len(each) - 1) is end), None)
        places = range(len(track) - 1) if track is not None else ()

        def enough(
            i: int, others: tuple[Option, ...] = others, track: Track | None = track, end: Option = end
        ) -> bool:
            option = track.option(i) if track is not None else None
            if option is None:
                return False
            here = needs((*others, option))
            dear = end.cost - option.cost > _CHEAP and least[0] > 0
            slack = _WORTH if dear else _NOISE
            return len(here) == len(least) and all(a <= b + slack for a, b in zip(here, least, strict=True))

        i = bisect_left(places, True, key=enough)
        if track is not None and (nearest := track.option(i)) is not None:
            options = (*others, nearest)
    return options


def anyhow(solver: Solver, goals: tuple[Goal, ...], judged: Judged, allowed: Allowed = SAFE) -> Repair | None:
    """Return moves that reach goals, with those that let the job fit by the middle of its estimate.

    They are safe, or at least cut no data. Where no moves do that, the first ones alone: the most that memory
    may come to then is not looked at.
    """
    moving = [goal for goal in goals if not goal.code.startswith(MEMORY)]
    if not moving:
        return None
    search = replace(solver.search(moving), keeping=not allowed.unsafe, lenient=True)
    heedless = replace(search, heedless=True, exhausted=False, refused=set())
    found = solver.anyhow(search, moving, allowed)
    found = found or solver.first.get(tuple(moving))  # of the search before, where no time is left for one
    first = found.options if found is not None else _alone(heedless, SAFE.over(solver.tracks(moving)))
    if not first:
        return None
    options = _shrunk(solver, heedless, first, judged, allowed) or first
    return solver.written(solver.as_one(Repair(options, sure=False), judged), goals)


def _alone(search: Search, tracks: Sequence[Track]) -> tuple[Option, ...]:
    """Return one move that reaches the goals, where there was no time for a search."""
    options = (track.option(0) for track in tracks)
    able = [(option,) for option in options if option is not None and option.results == "none"]
    return next((one for one in able if search.progress(one).holds and not search.harms(one)), ())


def _shrunk(
    solver: Solver, search: Search, options: tuple[Option, ...], judged: Judged, allowed: Allowed
) -> tuple[Option, ...] | None:
    """Return moves with others, the cheapest first, until a job fits by the middle of its estimate."""

    def need(moved: Sequence[Option]) -> float:
        known = _estimate(solver, judged, facts) if (facts := combined(moved)) is not None else None
        return middle(known[:2]) / known[2] if known is not None else INF

    def bearable(moved: tuple[Option, ...]) -> bool:
        return search.possible(moved) and not search.harms(moved)

    def beside(option: Option) -> bool:
        return _admitted(option, allowed) and bearable((*options, option))

    short = solver.trials.short(judged, combined(options) or {})
    goals = [goal for rule in short for goal in solver.of(rule.code) if goal.bounds and goal.judged is judged]
    if not goals or not 1 < need(options) < INF:
        return None
    given = {option.knob for option in options}
    tracks = [track for track in allowed.over(solver.tracks(goals)) if track.knob.name not in given]
    cheapest = sorted(tracks, key=lambda track: (track.weight(0), track.number))
    # What is cheap may stand in the way of what takes off much: two moves may write the same key.
    steepest = sorted(
        tracks, key=lambda track: min((need((*options, end)) for end in _ends(track)), default=INF)
    )
    for order in (cheapest, steepest):
        moved = options
        for track in order:
            ways = ((*moved, option) for option in _ends(track) if _admitted(option, allowed))
            moved = next((way for way in ways if bearable(way) and need(way) <= _LESS * need(moved)), moved)
            if need(moved) <= 1:
                break
        if need(moved) > 1:
            continue
        return _fewest(moved, len(options), lambda fewer: need(fewer) <= 1 and bearable(fewer))
    if allowed.unsafe:  # where several parts are equally large, no single move is any help
        begun = [each for track in tracks if (each := cut(track, beside)) is not None]
        further = utmost(solver.search(goals), begun, options)
        moved = (*options, *(further[1] if further is not None else ()))
        if (most := min(1, need(moved) / _LESS)) >= need(moved) and bearable(moved):
            return _fewest(moved, len(options), lambda fewer: need(fewer) <= most and bearable(fewer))
    return None


def _fewest(
    moved: tuple[Option, ...], given: int, enough: Callable[[tuple[Option, ...]], bool]
) -> tuple[Option, ...]:
    """Return moves without those that nothing needs, the dearest first; the first ``given`` stay."""
    for option in sorted(moved[given:], key=lambda option: -option.cost):
        fewer = tuple(other for other in moved if other is not option)
        if enough(fewer):
            moved = fewer
    return moved


def _admitted(option: Option, allowed: Allowed) -> bool:
    """Whether a move leaves the results, or, where that is allowed, changes them without cutting data."""
    return option.results == "none" or (allowed.unsafe and _rank(option.risk) < _rank("data"))


def _ends(track: Track) -> list[Option]:
    """Return the last place of a track, its middle and its first."""
    places = dict.fromkeys((len(track) - 1, len(track) // 2, 0))
    return [option for i in places if (option := track.option(i)) is not None]


def completed(solver: Solver, search: Search, options: tuple[Option, ...]) -> tuple[Option, ...] | None:
    """Return moves with what other rules then ask for besides; None where that is not to be had."""
    for _ in range(_MOVES):
        if not search.harms(options):
            return options
        broken = [code for code in search.blockers(None) if not code.startswith(MEMORY)]
        asked = tuple(goal for code in broken for goal in solver.of(code) if goal.judged in solver.watched)
        more = _company(replace(search, goals=list(asked), keeping=False), solver, asked, options)
        if more is None:
            return None
        options = (*options, more)
    return None


def _company(
    search: Search, solver: Solver, asked: tuple[Goal, ...], options: tuple[Option, ...]
) -> Option | None:
    """Return a safe move after which rules hold that other moves break."""
    search.pursue(asked)
    moved = {option.knob for option in options}
    for track in SAFE.over(solver.tracks(asked)) if asked else ():
        own = track.option(0)
        if own is None or own.knob in moved or own.results != "none":
            continue
        if search.possible((*options, own)) and search.progress((*options, own)).holds:
            return own
    return None


def _ways(
    search: Search, tracks: Sequence[Track], options: tuple[Option, ...], limits: tuple[float, str]
) -> Iterator[tuple[float, float, tuple[Option, ...]]]:
    """Yield moves with one more or one moved farther, the last: what is missing then, its cost, the moves.

    ``limits`` are the points that a move may cost and the risk that it may have.
    """
    most, risk = limits
    for track in tracks:
        own = next((option for option in options if option.knob == track.knob.name), None)
        others = tuple(option for option in options if option is not own)
        spent = own.cost if own is not None else 0.0
        for i in (place for place in _PLACES if place < len(track)):
            option = track.option(i)
            if option is None or not option.writable or _rank(option.risk) > _rank(risk):
                continue
            together = (*others, option)
            if not 0 <= option.cost - spent <= most or option is own or not search.possible(together):
                continue
            yield max(_missing(search, together), 0.0), option.cost - spent, together


def _together(
    search: Search, ways: Sequence[tuple[float, float, tuple[Option, ...]]], options: tuple[Option, ...]
) -> tuple[Option, ...] | None:
    """Return several moves that take something off only together, as where two parts are equally large."""
    now = _missing(search, options)
    ends = {way[2][-1].knob: way[2][-1] for way in ways if way[0] <= now}  # the last place counts
    kept = tuple(option for option in options if option.knob not in ends)
    for knob in sorted(ends, key=lambda knob: -ends[knob].cost):
        fewer = tuple(end for name, end in ends.items() if name != knob)
        whole = (*kept, *ends.values())
        without = (*(option for option in options if option.knob == knob), *kept, *fewer)
        if not search.possible(whole) or (
            search.possible(without) and _missing(search, without) <= max(_missing(search, whole), 0.0)
        ):
            del ends[knob]
            kept = (*(option for option in options if option.knob == knob), *kept)
    chosen = (*kept, *ends.values())
    if not ends or _missing(search, chosen) > now - _WORTH or search.harms(chosen):
        return None
    return chosen


def _estimate(
    solver: Solver, judged: Judged, facts: Mapping[str, object]
) -> tuple[float, float, float] | None:
    """Return what a trainer needs at least and at most after some moves, and what a GPU has, where known."""
    values = solver.trials.values(judged, facts)
    need, vram = bounds_of(values["trainer.likely"]), bounds_of(values["gpu.vram"])
    if values["trains"] is not True:
        need = bounds_of(values["engine.memory"])
    return None if need is None or vram is None or need[1] == INF else (*need, vram[1])


def _limits(known: tuple[float, float, float], risk: str) -> tuple[float, str]:
    """Return the points that a further move may cost, and what it may put at risk."""
    least, most, there = known
    fits = middle((least, most)) <= _EASILY * there
    return _NEXT_TO_NOTHING if fits else _CHEAP, risk if least > there else "none"


def _missing(search: Search, options: Sequence[Option]) -> float:
    return max(search.progress(options).gaps, default=0.0)


def _rank(risk: str) -> int:
    return list(RISKS).index(risk)
