"""Says why a finding has no fix: what would satisfy its rule, and what stands against that.

Asked only where the search found nothing, and within a limited number of trials.
"""

from __future__ import annotations

from cfglint.document.overrides import ABSENT
from cfglint.document.trace import Trace
from cfglint.engine.describe import Origins
from cfglint.engine.memory import memory_of
from cfglint.engine.message import message
from cfglint.findings import question
from cfglint.lang import tree as t
from cfglint.lang.types import is_number
from cfglint.lang.values import INF, UNRULED, needs_of
from cfglint.record import Record, replace
from cfglint.repair.allowed import ANY, SHOWN, uncut
from cfglint.repair.found import Repair
from cfglint.repair.halted import by_hand
from cfglint.repair.hopeless import WHOLE
from cfglint.repair.keys_told import LISTED, keys_of, listed, quoted, span_told
from cfglint.repair.reason import Reason
from cfglint.repair.relax import utmost
from cfglint.repair.shortage import (
    at_most,
    harmless,
    immovable,
    least_needed,
    least_of,
    overfilled,
    short_of,
    values_told,
)
from cfglint.repair.slips import may_be_asked
from cfglint.repair.stranded import moved_by_hand
from cfglint.repair.tighter import lawful
from cfglint.repair.together import combined
from cfglint.repair.tracks import SHORT
from cfglint.repair.trials import MEMORY
from cfglint.repair.vain import held, in_vain
from cfglint.repair.write import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cfglint.document.view import View
    from cfglint.engine.subject import Judged
    from cfglint.repair.search import Search
    from cfglint.repair.solve import Solver
    from cfglint.repair.tracks import Option, Track
    from cfglint.repair.trials import Group
    from cfglint.schema.table import Mistake

_TRIALS = 300  # that look for values which satisfy a rule
_QUESTIONS = 2
_ROUNDS = 2  # times that rules which are in the way are taken in
_THERE = replace(SHOWN, unsafe=False, limit=_TRIALS)  # moves that no edit of the file can make
_STRANGE, _OVERRIDES = "document.strange_flags", "document.refused_overrides"
_SCRIPTS = (".sh", ".bash")
_ENDED, _NO_VALUE = "the search ended before it showed", "does not help"


def unfixed(solver: Solver, group: Group) -> Reason:
    """Say why a rule has no fix; nothing where nothing in the file could be moved anyway.

    The number that shows that a job cannot run there at all goes before what moves would break.
    """
    told = _tried(solver, group)
    riddle = not told.text or told.riddle or told.by_hand
    blind = told.breaks and not any(is_number(goal.judged.values["model.params"]) for goal in group.goals)
    states = told.way or told.by_hand  # by hand: what nobody needs to do in vain
    numbers = in_vain(solver, group, laid=riddle or blind, states=states)
    if not numbers:
        return told
    if riddle or told.way or told.unsure or WHOLE in numbers:
        return Reason(numbers, vain=True)
    parts = f"{numbers}; {told.text}".split("; ")  # both may say what the host would need
    return replace(told, text="; ".join(dict.fromkeys(parts)), vain=True)


def _tried(solver: Solver, group: Group) -> Reason:
    """Say what was tried, and what stands against it."""
    tracks = [
        track
        for track in ANY.over(solver.tracks(group.goals))
        if any(solver.trials.touches(goal, (track.knob.name,)) for goal in group.goals)
    ]
    if not tracks:
        return _not_of_this_file(solver, group)
    origins, view = solver.writer(group.goals[0].judged).origins, group.goals[0].judged.subject.view
    knobs = list(dict.fromkeys(origins.key(track.knob.name) for track in tracks))
    search = solver.search(group.goals)
    short = utmost(search, uncut(tracks))
    if lacking := _lacking(solver, group, search, tracks, short):
        return lacking
    start = solver.trials.count
    ways = list(_ways(solver, search, tracks))
    spent = not ways and solver.trials.count - start >= _TRIALS
    if not ways and short is not None and short[0] < INF:
        ways = [Repair(_needed(search, short[1]))]
    if not ways and search.placed:  # several moves, and more memory than there is
        together = solver.anyhow(replace(search, limit=_TRIALS), group.goals, ANY)
        ways = [] if together is None else [together]
        ways = ways or list(_all_at_once(search, tracks))
    objections = [each for way in ways if (each := _objection(solver, group, way)) is not None]
    if search.placed and objections and not any(each.full for each in objections):  # what else moves along
        together = solver.anyhow(replace(search, limit=_TRIALS), group.goals, ANY)
        worse = None if together is None else _objection(solver, group, together)
        objections = [worse] if worse is not None and worse.full else objections
    if objections:
        best = min(objections, key=lambda each: each.rank)
        if search.placed and _stops(dict(_harmed(solver, best.way))):  # other rules may be had, too
            best = _with_company(solver, group, search, best)
        text = f"with {values_told(best.way)} this rule holds, but {best.told.text}"
        return replace(best.told, text=text, way=True)
    if spent or group.code in solver.exhausted:
        text = _ended(knobs, short[1] if short is not None else ())
        return Reason(text + least_needed(solver, group), riddle=True)
    if group.code.startswith(MEMORY) and (least := least_of(solver, group, tracks)):
        return Reason(f"{least} whatever cfglint moves ({listed(knobs)})")
    keys = [told for key, told in keys_of(origins, group.goals[0].rule, view) if key not in knobs]
    sizes = [told for told in keys if told.rpartition(" ")[2].isdigit() and not told.endswith(" 1")]
    keys = sizes if len(keys) > LISTED and sizes else keys
    alone = f"{listed(knobs)} alone {_NO_VALUE}{span_told(tracks)}"
    return Reason(f"{alone}: change {listed(keys)} with it" if keys else alone, riddle=True)


def _lacking(
    solver: Solver,
    group: Group,
    search: Search,
    tracks: Sequence[Track],
    short: tuple[float, tuple[Option, ...]] | None,
) -> Reason | None:
    """Say what memory is missing with all moves, or with all that break no rule where others would do."""
    if short is not None and 0 < short[0] < INF:
        moves = (
            lawful(solver, replace(search, heedless=True, lenient=True), uncut(tracks), anyway=True)
            or short[1]
        )
        told = short_of(solver, group, max(search.progress(moves).gaps), moves)
        return replace(told, text=told.text + _only_cut(search, tracks))
    if short is None or short[0] > 0 or not group.code.startswith(MEMORY):
        return None
    lack = utmost(search, harmless(solver, Repair(()), group.goals[0].judged, group.goals))
    if lack is None or not 0 < lack[0] < INF:
        return None
    kept = [option.facts for option in lack[1]]
    for option in (each for each in short[1] if each.facts not in kept and each.writable):
        broken = [code for code, truth in _harmed(solver, Repair((option,))) if truth is False]
        if stops := [code for code in broken if not code.startswith(MEMORY)]:
            told, way = short_of(solver, group, *lack), Repair((option,))
            but = f"with {values_told(way)}, {listed(solver.named(stops))} would break"
            return replace(told, text=f"{told.text}; {but}{_numbers(solver, way, stops)}")
    return None


def _not_of_this_file(solver: Solver, group: Group) -> Reason:
    """Say who could do something where no edit of this file moves anything: another file, or people."""
    goal = group.goals[0]
    told = _elsewhere(solver, group)
    told = told if told.text else Reason(by_hand(goal), by_hand=True)
    told = told if told.text else _for_people(goal.judged.subject.view, goal.rule)
    told = told if told.text else Reason(_left_to_people(group) or immovable(solver, group))
    if told.text or not any(solver.rests_on_target(each) for each in group.goals):
        return told
    return _all_by_hand(solver, group)


def _ended(knobs: Sequence[str], moves: Sequence[Option]) -> str:
    """Say that a search ended at its limit, and which moves would be enough by the numbers, where known."""
    if moves and all(option.writable for option in moves):
        told = values_told(Repair(tuple(moves)))
        return f"{told} would be enough by the numbers, but {_ENDED} that they break nothing else"
    return f"{_ENDED} values of {listed(knobs)} that go together"


def _only_cut(search: Search, tracks: Sequence[Track]) -> str:
    """Say, as an addition, that what cuts the data would do, where nothing else does."""
    every = utmost(search, tracks)
    cuts = [option for option in every[1] if option.risk == "data"] if every and every[0] <= 0 else []
    return (
        f"; only with {values_told(Repair(tuple(cuts)))}, which cuts the data, would it fit" if cuts else ""
    )


def _all_by_hand(solver: Solver, group: Group) -> Reason:
    """Say which keys a rule rests on, where it is about GPUs and none of them can be moved by itself."""
    moved, judged = moved_by_hand(solver, group, _THERE), group.goals[0].judged
    if moved.text:
        return moved
    named = keys_of(solver.writer(judged).origins, group.goals[0].rule, judged.subject.view)
    keys = [told for _, told in named if told.rpartition(" ")[2].isdigit()]
    if len(set(keys)) < 2:
        return Reason()
    return Reason(f"change {listed(keys)} together, by hand", by_hand=True)


def _left_to_people(group: Group) -> str:
    """Say why a flag that a program does not take is not taken away: it names what the job is about."""
    values = group.goals[0].judged.values
    if group.code == "CFG033":
        return _by_program(group.goals[0].judged)
    flags = values[_STRANGE] if group.code == "DOC109" else ()
    stay = [f"--{flag.key}" for flag in flags if flag.kind]  # type: ignore[attr-defined]
    return (
        f"{listed(stay)} says what the job is about: write it by hand as the program takes it" if stay else ""
    )


def _by_program(judged: Judged) -> str:
    """Say of overrides that Hydra refuses which of them some program names, and which none does."""
    listed_here: Sequence[Mistake] = judged.values[_OVERRIDES]  # type: ignore[assignment]
    kept = {one.key: one for one in listed_here if one.kind == ABSENT}
    asked = [key for key in kept if may_be_asked(judged.subject.document, kept[key], listed_here)]
    left = [key for key in kept if key not in asked]
    told = f"a program here names what {listed(asked)} is called: write a + before it where the program "
    told += "reads it there, else take it out"
    parts = [told] * bool(asked) + [f"no program here reads {listed(left)}: take it out"] * bool(left)
    return "; ".join(parts)


def _needed(search: Search, moves: Sequence[Option]) -> tuple[Option, ...]:
    """Return the moves without which a rule would not hold: the dearest are left out first."""
    kept = tuple(moves)
    if not search.progress(kept).holds:
        return kept
    for option in sorted(moves, key=lambda each: Repair((each,)).price, reverse=True):
        others = tuple(each for each in kept if each is not option)
        if others and search.possible(others) and search.progress(others).holds:
            kept = others
    return kept


def _for_people(view: View, rule: t.Rule) -> Reason:
    """Say what a rule tells people to do, or which of its keys to change, and where a single one is set."""
    if rule.next and not rule.code.startswith(MEMORY):
        return Reason(rule.next[0])
    paths = [path for path in t.paths_in(rule.requirement) if "*" not in path]
    places = {Trace(view, path).span: path for path in reversed(paths) if Trace(view, path).present}
    there = [*reversed(places.values())] or paths  # of what one word says, once
    trace = Trace(view, there[0]) if len(there) == 1 else None
    if trace is not None and trace.present and trace.source is not None:
        place = trace.where.partition(" through ")[0]
        return Reason(f"{there[0][-1]} is set in {place}: change it there")
    named = [quoted(view, path) for path in there]
    return Reason(f"change {' or '.join(dict.fromkeys(named))} by hand", by_hand=True) if named else Reason()


def _elsewhere(solver: Solver, group: Group) -> Reason:
    """Say where a value is set that could be moved, but not by an edit of this file."""
    view, search, doubtful = solver.writer(group.goals[0].judged).subject.view, solver.search(group.goals), ""
    options = (
        option
        for track in solver.tracks(group.goals)
        for i in range(min(len(track), SHORT))
        if (option := track.option(i)) is not None and not option.writable
    )
    for option in options:
        traces = ((written, Trace(view, written.path)) for written in option.written)
        there = next(((w, trace) for w, trace in traces if trace.present and trace.source is not None), None)
        if there is None:
            continue
        told = f"{there[0].path[-1]} is set in {there[1].where.partition(' through ')[0]}"
        if search.progress((option,)).holds:
            memory = overfilled(solver, group, Repair((option,)))
            but = f"; but {memory.text}" if memory.text else ""
            return replace(memory, text=f"{told}: set it to {shown(there[0].value)} there{but}")
        doubtful = doubtful or f"{told}: change it there"
    return Reason(doubtful or _in_a_script(solver, group))


def _in_a_script(solver: Solver, group: Group) -> str:
    """Say what another script would have to say, which this one runs by its name."""
    view = solver.writer(group.goals[0].judged).subject.view
    repair = solver.cheapest(group.goals, _THERE) if view.document.format == "shell" else None
    if repair is None:
        return ""
    spans = {Trace(view, written.path).span for written in repair.written}
    words = {view.document.file.text[start:end].strip("\"'") for start, end in spans if 0 <= start < end}
    scripts = {word.rpartition("/")[2] for word in words}
    name = scripts.pop() if len(scripts) == 1 else ""
    told = f"the values are in {name}, which this script runs: set {values_told(repair)} there"
    return told if name.endswith(_SCRIPTS) else ""


def _all_at_once(search: Search, tracks: Sequence[Track]) -> Iterator[Repair]:
    """Yield the nearest values of several tracks together, where they satisfy the rule."""
    options = {
        track.knob.name: option for track in reversed(tracks) if (option := track.option(0)) is not None
    }
    moves = tuple(option for option in options.values() if option.writable)
    if len(moves) > 1 and search.possible(moves) and search.progress(moves).holds:
        yield Repair(moves)


def _ways(solver: Solver, search: Search, tracks: Sequence[Track]) -> Iterator[Repair]:
    """Yield the nearest value of each track that satisfies the rule on all targets."""
    start = solver.trials.count
    for track in tracks:
        for i in track.scan():
            if solver.trials.count - start >= _TRIALS:
                return
            option = track.option(i)
            if option is not None and option.writable and search.progress((option,)).holds:
                yield Repair((option,))
                break


def _with_company(solver: Solver, group: Group, search: Search, lone: _Objection) -> _Objection:
    """Return what stands against a way that breaks no rules but those about memory, where there is one."""
    wanted, way = list(group.goals), lone.way
    for _ in range(_ROUNDS):
        held = {goal.code for goal in wanted}
        broken = [code for code, truth in _harmed(solver, way) if truth is False and code not in held]
        wanted += [goal for code in dict.fromkeys(broken) for goal in solver.of(code)]
        again = replace(search, heedless=True, exhausted=False, limit=_TRIALS, refused=set())
        again.pursue(wanted)
        found = again.cheapest(ANY.over(solver.tracks(wanted)))
        if found is not None:
            return _objection(solver, group, found) or lone
        moves = list(_all_at_once(again, ANY.over(solver.tracks(wanted))))
        if not moves:
            break
        way = moves[0]
    return lone


# ── what stands against a way ──────────────────────────────────────────────────────────────────────────
class _Objection(Record):
    """What stands against a way; what an answer would settle comes first.

    ``full`` says that it is the memory of a GPU.
    """

    way: Repair
    told: Reason
    settled: bool = False
    full: bool = False

    @property
    def rank(self) -> tuple[object, ...]:
        """What objections are ordered by."""
        return not self.settled, self.way.price


def _objection(solver: Solver, group: Group, way: Repair) -> _Objection | None:
    """Return what stands against a way; None where the way turns out not to satisfy the rule."""
    harmed = dict(_harmed(solver, way))
    memory = overfilled(solver, group, way)
    if memory.text and not _stops(harmed):  # what a layout needs that cannot be says nothing
        return _Objection(way, memory, full=True)
    truths = harmed or _disproved(solver, group, way)
    if truths is None:
        return _Objection(way, Reason("cfglint cannot write it into this file"))
    if group.code in truths or (not truths and group.code in solver.exhausted):
        return None
    broken = sorted((code for code, truth in truths.items() if truth is False), key=solver.is_mild)
    broken = list(_stuck(solver, way, broken)) or broken
    if broken:
        text = f"{listed(solver.named(broken))} would break"
        lacks = all(code.startswith(MEMORY) for code in broken)
        judged = solver.watched[0]
        numbers = Reason(text + _numbers(solver, way, broken)) if not lacks else None
        return _Objection(way, replace(numbers or at_most(solver, way, judged, text), breaks=True))
    needs = sorted({name for truth in truths.values() for name in needs_of(truth)})
    if needs:
        return _open(solver, group, way, truths, needs)
    patch = solver.writer(group.goals[0].judged).patch(way.written)
    removes = patch is not None and any(change.removed for change in patch.changes)
    if removes and patch is not None and not solver.trials.recognised(patch.edits):
        told = Reason(f"nothing else tells that the file is {solver.trials.subject.framework}'s")
    elif truths:
        told = _may_break(solver, way, truths)
    else:
        told = Reason(_aside(solver, group, way))
    return _Objection(way, told)


def _open(
    solver: Solver, group: Group, way: Repair, truths: Mapping[str, object], needs: Sequence[str]
) -> _Objection:
    """Return what stands against a way after which rules can no longer be judged."""
    much = _too_much(solver, way)
    if much:
        return _Objection(way, Reason(much), full=True)
    asked = _asked(needs, solver.trials.run.pack.asks, solver.writer(group.goals[0].judged).origins)
    told = Reason(f"{listed(solver.named(truths))} can then no longer be judged ({asked})", breaks=True)
    if all(code.startswith(MEMORY) for code in truths):
        told = Reason(f"whether the job then fits a GPU is not known ({asked})")
    return _Objection(way, told, settled=True)


def _too_much(solver: Solver, way: Repair) -> str:
    """Say what a job needs at least after a way, where that is more than a GPU has whatever is open."""
    for judged in solver.watched:
        values = solver.trials.values(judged, combined(way.options) or {})
        memory = memory_of(values, judged.target, asks=False)[0] if judged.target is not None else None
        if memory is not None and memory.verdict == "oom":
            has = f"a GPU that has {memory.capacity_gib or 0:.1f}"
            return f"then the job needs at least {memory.need_gib.low:.1f} GiB of {has}"
    return ""


def _stuck(solver: Solver, way: Repair, broken: Sequence[str]) -> Iterator[str]:
    """Yield the rules that a way breaks and that no further move mends, where it breaks several.

    Not those about memory: several moves together may mend them.
    """
    for code in [code for code in broken if not code.startswith(MEMORY)] if len(broken) > 1 else ():
        goals = solver.of(code)
        search = solver.search(goals)
        ends = (
            option
            for track in ANY.over(solver.tracks(goals))
            for i in track.scan()
            if (option := track.option(i)) is not None
        )
        with_way = ((*(each for each in way.options if each.knob != end.knob), end) for end in ends)
        if not any(search.possible(both) and search.progress(both).holds for both in with_way):
            yield code


def _aside(solver: Solver, group: Group, way: Repair) -> str:
    """Say what stands against a way that breaks nothing here: other parts of the file, or other errors."""
    judged, facts = group.goals[0].judged, combined(way.options) or {}
    patch, several = solver.writer(judged).patch(way.written), any(one.several for one in way.options)
    if several and patch and (told := solver.trials.broken_beside(patch.edits)):
        returned = judged.subject.document.sites is not None  # by a function
        return f"{told}; a flag at the launch sets it for this config alone" if returned else told
    after = solver.trials.values(judged, facts)
    standing = [
        verdict.rule.code
        for verdict in judged.verdicts
        if verdict.rule.level == "error" and verdict.rule.code != group.code
        if verdict.truth is False and verdict.rule.test(after) is not True
    ]
    if standing:
        stands = "stands" if len(set(standing)) == 1 else "stand"
        return f"{listed(solver.named(standing))} {stands} against the job all the same"
    return held(judged, after) or "cfglint found no way to set it together with the file's other fixes"


def _stops(truths: Mapping[str, object]) -> bool:
    """Whether a rule breaks for certain that is not about memory: then fitting would not help."""
    return any(truth is False and not code.startswith("MEM") for code, truth in truths.items())


def _may_break(solver: Solver, way: Repair, truths: Mapping[str, object]) -> Reason:
    """Say of rules that a way leaves open what they may say then, with the memory or the numbers."""
    if all(code.startswith(MEMORY) for code in truths):
        return at_most(solver, way, solver.watched[0])
    return Reason(f"{listed(solver.named(truths))} may break{_numbers(solver, way, list(truths))}")


def _numbers(solver: Solver, way: Repair, broken: Sequence[str]) -> str:
    """Return what a rule that a way breaks would then say, as an addition."""
    facts, finder = combined(way.options) or {}, solver.trials.run.finder
    for judged in solver.watched:
        codes = [rule.code for rule in solver.trials.harmed(judged, facts) if rule.code in broken]
        if codes:
            own, values = solver.writer(judged).origins, solver.trials.values(judged, facts)
            after = Origins(finder.symbols, values, own.sources, own.framework)
            told = message(finder.symbols.rules[codes[0]], finder.evaluator, after)
            return f": {told}" if told else ""
    return ""


def _disproved(solver: Solver, group: Group, way: Repair) -> dict[str, object] | None:
    """Return the rules that the edited text breaks or leaves open, with their truths; None without a text."""
    patch = solver.writer(group.goals[0].judged).patch(way.written)
    if patch is None:
        return None
    mended = {(goal.judged, goal.code) for goal in group.goals}
    against = solver.trials.against(mended, solver.watched, patch.edits, sure=True)
    return None if against is None else {verdict.rule.code: verdict.truth for verdict in against}


def _harmed(solver: Solver, way: Repair) -> Iterator[tuple[str, object]]:
    """Yield the rules that a way would break or leave open, each with its truth."""
    facts = combined(way.options) or {}
    for judged in solver.watched:
        for rule in solver.trials.harmed(judged, facts):
            yield rule.code, rule.test(solver.trials.values(judged, facts))


def _asked(needs: Iterable[str], asks: Mapping[str, str], origins: Origins) -> str:
    """Return the questions that settle some names, else the names."""
    texts = dict.fromkeys(asks.get(name) or question(name) for name in needs)
    if asked := [text for text in texts if "?" in text]:
        return "; ".join(asked[:_QUESTIONS])
    unruled = [text for text in texts if text.startswith(UNRULED)]
    if unruled:
        return f"cfglint does not model {unruled[0].removeprefix(UNRULED)}"
    return f"not set: {listed(origins.key(name) for name in needs)}"
