"""Says how much memory a job lacks after moves that are not enough."""

from __future__ import annotations

from cfglint.document.spoken import spoken
from cfglint.engine.describe import show_value
from cfglint.engine.memory import GIB, bounds_of, memory_of
from cfglint.engine.message import estimated
from cfglint.lang.types import is_number
from cfglint.lang.values import INF
from cfglint.repair.allowed import ANY, uncut
from cfglint.repair.found import Repair
from cfglint.repair.price import host_of, lays_out, overfills_gpu, overfills_host, regroups
from cfglint.repair.proposals import WIDE
from cfglint.repair.reason import Reason
from cfglint.repair.relax import cut, utmost
from cfglint.repair.together import combined
from cfglint.repair.trials import MEMORY
from cfglint.repair.write import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cfglint.engine.subject import Judged
    from cfglint.facts import Values
    from cfglint.findings import Memory
    from cfglint.repair.invert import Written
    from cfglint.repair.solve import Solver
    from cfglint.repair.tracks import Option, Track
    from cfglint.repair.trials import Goal, Group

_UNKNOWN = "cfglint cannot tell whether the job"
_TO_HOST = ("offload_params", "offload_optimizer")
_LISTED = 3  # parts of the memory in a sentence
_PART = {"MEM105": "trainer.states"}  # what a rule about memory asks for, where it is not all
_TRAINER = ("MEM104", "MEM105")  # the rules about a trainer's memory alone
_FAR = 2  # times what a GPU has
_OF_RANGE = " GiB: "  # before a question: how much of the range it would take away
_ROUNDS = 2  # the states, then the rest
_EMPTY = 4  # times the lower end of an estimate: beyond, its ends say nothing
_TAKES_MORE, _MAY_TAKE_MORE = (
    f"then the job {each} more memory than a GPU has" for each in ("takes", "may take")
)
_TAKES = tuple(
    f"trainer.{part}" for part in ("weights", "gradients", "optimizer", "activations", "logits", "overhead")
)


def still_over(solver: Solver, judged: Judged, way: Repair, memory: Memory) -> str:
    """Say what a job needs with repairs that are not enough, and with what can be moved besides.

    Where that is no more than there is, it is the engine's share that does not hold what it loads.
    """
    low, high = (f"{end:.0f}" for end in (memory.need_gib.low, memory.need_gib.high))
    size = f"at least {low}" if memory.need_gib.high == INF else f"{low}–{high}"
    need = f"{size} of {memory.capacity_gib or 0:.1f} GiB"
    if memory.need_gib.high <= (memory.capacity_gib or 0):
        return f"with {values_told(way)} the trainer fits, but the engine's share is still too small to start"
    even = at_most(solver, way, judged)
    beyond = f"; {even.text}" if even.further else ""
    return f"with {values_told(way)} the job still needs {need}{beyond}"


def short_of(solver: Solver, group: Group, lack: float, moves: Sequence[Option]) -> Reason:
    """Say how much memory is missing with all moves made, and what takes it then."""
    judged, facts = group.goals[0].judged, combined(moves) or {}
    if group.code in _TRAINER and _takes_more(solver, judged, facts):
        moves, facts = (), {}
    need = _need(solver, judged, facts) if group.code.startswith(MEMORY) else ""
    sure = any(goal.compiled.test(solver.trials.values(goal.judged, facts)) is False for goal in group.goals)
    values = solver.trials.values(judged, facts)
    unsure = bool(need) and not sure and _is_wide_open(values)
    some = f"{_UNKNOWN} fits a GPU" if unsure else _lacking(values, lack, sure=sure, told=bool(need))
    beyond = beyond_host(solver, judged)
    if not moves:
        what = "with all else that cfglint moves" if beyond else "whatever cfglint moves"
        return Reason(f"{some} {what}{need and ': '}{need}{beyond}", unsure=unsure)
    even = values_told(Repair(tuple(moves)))
    text = f"{some} even with {even}{need and ': then '}{need}{beyond}"
    return Reason(text, unsure=unsure, moves=tuple(moves))


def _takes_more(solver: Solver, judged: Judged, facts: Mapping[str, object]) -> bool:
    """Whether a trainer surely takes more memory after moves."""
    before, after = (
        bounds_of(values["trainer.memory"]) for values in (judged.values, solver.trials.values(judged, facts))
    )
    return before is not None and after is not None and after[0] > before[0]


def least_of(solver: Solver, group: Group, tracks: Sequence[Track]) -> str:
    """Say what a job takes at least wherever one knob is moved to, where that is more than a GPU has."""
    judged, part = group.goals[0].judged, _PART.get(group.code, "need.total")
    ends = [option.facts for track in tracks if (option := track.option(len(track) - 1)) is not None]
    sizes = [bounds_of(solver.trials.values(judged, facts)[part]) for facts in ({}, *ends)]
    vram = bounds_of(judged.values["gpu.vram"])
    if vram is None or not all(size is not None and vram[1] < size[0] < INF for size in sizes):
        return ""
    least = min(size[0] for size in sizes if size is not None) / GIB
    what = "the model states take" if part in _PART.values() else "the job takes"
    return f"{what} at least {least:.1f} GiB of a GPU that has {vram[1] / GIB:.1f}"


def immovable(solver: Solver, group: Group) -> str:
    """Say what a job takes at least where nothing in the file can be moved; nothing of other rules."""
    least = least_of(solver, group, ()) if group.code.startswith(MEMORY) else ""
    return least and f"{least}, and cfglint has no setting to move in this file that takes memory off"


def overfilled(solver: Solver, group: Group, way: Repair) -> Reason:
    """Say that a job takes too much memory after a way, with what shrinks it moved as far as it helps."""
    facts = combined(way.options) or {}
    at_all = solver.search(group.goals).placed and (regroups(facts) or lays_out(facts))
    for judged in solver.watched:
        hosts = overfills_host(
            solver.trials, judged, facts
        )  # which is sure, other than most that a GPU takes
        full = overfills_gpu(solver.trials, judged, facts, at_all=at_all)
        if full and (not hosts or lacks(solver, judged, facts)):
            return at_most(solver, way, judged)
        if hosts:
            return Reason(_host_told(solver.trials.values(judged, facts)))
    return Reason()


def _host_told(values: Values) -> str:
    """Say that a machine needs more memory of its own than rented ones have."""
    need, vram, own = bounds_of(values["need.host"]), bounds_of(values["gpu.vram"]), values["gpu.per_node"]
    least = f"at least {need[0] / GIB:,.0f} GiB" if need is not None else "more memory"
    if vram is None or not is_number(own):
        return f"then a machine needs {least} of its own, more than rented ones have beside their GPUs"
    most = f"{host_of(vram[1]) * own / GIB:,.0f} GiB"
    return f"then a machine needs {least} of its own, and rented ones have at most {most} beside such GPUs"


def at_most(solver: Solver, way: Repair, judged: Judged, broken: str = "") -> Reason:
    """Say of memory after a way what is true of the whole estimate, with what can be moved besides.

    ``broken`` says that a rule about it breaks.
    """
    facts, even = combined(way.options) or {}, ""
    sure = bool(broken) or lacks(solver, judged, facts)
    goals = _short_goals(solver, judged, facts)
    if further := moved_besides(solver, way, judged):
        facts = combined((*way.options, *further)) or facts
        whole = Repair((*way.options, *further)).written  # accumulation steps make up for several moves
        even = f" even with {told_of([each for each in whole if each not in way.written])}"
    told, moves = _need(solver, judged, facts), (*way.options, *further)
    need = f": {told}" if told else ""
    if even and sure and not lacks(solver, judged, facts):
        text = f"{broken or _TAKES_MORE}, and may still do so{even}{need}"
        return Reason(text, unsure=True, further=True, moves=moves)
    if not sure and told and _is_wide_open(solver.trials.values(judged, facts)):
        text = f"{_UNKNOWN} then fits a GPU{even and ','}{even}{need}"
        return Reason(text, unsure=True, further=bool(even), moves=moves)
    text = f"{broken or (_TAKES_MORE if sure else _MAY_TAKE_MORE)}{even and ','}{even}{need}"
    sent = "" if even else _sent_there(solver, way, judged, goals)
    return Reason(text + sent, further=bool(even), moves=moves)


def moved_besides(solver: Solver, way: Repair, judged: Judged) -> tuple[Option, ...]:
    """Return what takes most off the memory that is still missing after a way; none where that is enough.

    Where states do not fit, the rest is looked at once they do.
    """
    moved: tuple[Option, ...] = ()
    for _ in range(_ROUNDS):
        given = (*way.options, *moved)
        goals = _short_goals(solver, judged, combined(given) or {})
        able = harmless(solver, Repair(given), judged, goals) if goals else []
        further = utmost(solver.search(goals), able, given) if goals else None
        if further is None or further[0] == INF or not further[1]:
            return moved if goals else ()
        moved = (*moved, *further[1])
        if further[0] > 0:
            return moved
    return ()


def _short_goals(solver: Solver, judged: Judged, facts: Mapping[str, object]) -> list[Goal]:
    """Return what is to hold of a GPU's memory and does not for certain after some moves."""
    short = solver.trials.short(judged, facts)
    return [goal for rule in short for goal in solver.of(rule.code) if goal.bounds]


def _sent_there(solver: Solver, way: Repair, judged: Judged, goals: Sequence[Goal]) -> str:
    """Say, as an addition, what of a machine's own memory a job takes that fits with a move to the host."""
    ends = (track.option(0) for track in solver.tracks(goals) if track.knob.name in _TO_HOST) if goals else ()
    options = [one for one in ends if one is not None]
    options += [one for knob, one in solver.trials.hosted.items() if knob in _TO_HOST]
    for option in options:
        facts = combined((*way.options, option))
        after = judged.values if facts is None else solver.trials.values(judged, facts)
        need, vram = bounds_of(after["trainer.likely"]), bounds_of(after["gpu.vram"])
        fits = need is not None and vram is not None and need[0] <= vram[1]
        if facts is not None and fits and overfills_host(solver.trials, judged, facts):
            return f"; with {values_told(Repair((option,)))} it may fit, but {_host_told(after)}"
    return ""


def beyond_host(solver: Solver, judged: Judged) -> str:
    """Say of a move to the host, as an addition, that no rented machine has the memory for it."""
    for option in (one for knob, one in solver.trials.hosted.items() if "offload" in knob):
        need = bounds_of(solver.trials.values(judged, option.facts)["need.host"])
        if need is not None and need[1] < INF and option.written:
            told = f"{spoken(option.written[0].path)} {shown(option.written[0].value)}"
            wide, least = need[1] > _EMPTY * need[0], f"{need[0] / GIB:,.0f}"
            size = f"at least {least}" if wide else f"{least}–{need[1] / GIB:,.0f}"
            return f"; {told} would take {size} GiB of a machine's own: more than those with such GPUs have"
    return ""


def _lacking(values: Values, lack: float, *, sure: bool, told: bool) -> str:
    """Say that memory is missing, so that it is true of all that an estimate leaves open.

    ``lack`` is what is missing at worst; ``sure`` that some is, ``told`` that the estimate is said, too.
    """
    vram, need = bounds_of(values["gpu.vram"]), bounds_of(values[_told_by(values)])
    if told and need is not None and vram is not None and need[1] < INF:  # the rule may ask for a part alone
        missing = need[1] - vram[1]
        alone = values["generates"] is not True and missing > 0  # to agree with what is told
        lack = missing if alone else max(lack, missing)
    if vram is None or lack < vram[1]:
        return f"up to {lack / GIB:.1f} GiB {'are still' if sure else 'may still be'} missing"
    far = sure and need is not None and need[0] >= _FAR * vram[1]
    return f"{'far ' if far else ''}too much memory {'is' if sure else 'may be'} needed"


def _told_by(values: Values) -> str:
    """Return which estimate of a trainer's memory is told: the likely one, as in findings, if it agrees.

    Where only the bounds leave it open whether the job fits, they are told.
    """
    likely, bounds, vram = (
        bounds_of(values[name]) for name in ("trainer.likely", "trainer.memory", "gpu.vram")
    )
    if likely is None or bounds is None or vram is None or likely[1] == INF:
        return "trainer.memory"
    same = all((a > vram[1]) == (b > vram[1]) for a, b in zip(likely, bounds, strict=True))
    return "trainer.likely" if same else "trainer.memory"


def _is_wide_open(values: Values) -> bool:
    """Whether the estimate of a trainer's memory is too wide to tell."""
    need = bounds_of(values[_told_by(values)])
    return need is not None and need[1] > WIDE * need[0]


def _need(solver: Solver, judged: Judged, facts: Mapping[str, object]) -> str:
    """Say what a trainer needs after some moves, with the largest parts; nothing where that fits a GPU."""
    after, kind = (
        solver.trials.values(judged, facts),
        solver.trials.run.finder.symbols.types["trainer.memory"],
    )
    most, engine = bounds_of(after["trainer.memory"]), bounds_of(after["engine.memory"])
    if after["trains"] is not True or most is None:
        return ""
    if most[1] == INF:
        states, vram = bounds_of(after["trainer.states"]), bounds_of(after["gpu.vram"])
        over = states is not None and vram is not None and vram[1] < states[0] <= states[1] < INF
        return f"the model states alone need {show_value(after['trainer.states'], kind)}" if over else ""
    beside = after["generates"] is True and engine is not None and engine[1] < INF
    vram = bounds_of(after["gpu.vram"])
    if vram is not None and most[1] + (engine[1] if beside and engine else 0) <= vram[0]:
        return ""
    sized = ((bounds_of(after[part]), part) for part in _TAKES)
    known = sorted(((size[1], part) for size, part in sized if size is not None), reverse=True)
    takes = [part for size, part in known if GIB <= size < INF][:_LISTED]
    told = ", ".join(f"{part.partition('.')[2]} {estimated(after[part], kind)}" for part in takes)
    if most[1] > _EMPTY * most[0] and vram is not None and most[0] <= vram[1]:
        return _floor(judged, after)
    text = f"the trainer needs {show_value(after[_told_by(after)], kind)}{f' ({told})' if told else ''}"
    if not beside:
        return text
    turns, alone = bounds_of(after["need.turns"]), bounds_of(after[_told_by(after)])
    over = after["sleep_mode"] is True and turns is not None and vram is not None and vram[1] < turns[0]
    kept = over and alone is not None and vram is not None and alone[0] <= vram[1]  # else that says it all
    left = f" beside the {show_value(after['trainer.asleep'], kind)} that the trainer keeps" if kept else ""
    return f"{text}, the engine {show_value(after['engine.memory'], kind)}{left}"


def _floor(judged: Judged, after: Values) -> str:
    """Say of an estimate that leaves almost all open what it comes to at least, and what would tell."""
    sized = [(part.partition(".")[2], bounds_of(after[part])) for part in _TAKES]
    size, name = max(((size[0], name) for name, size in sized if size is not None), default=(0, ""))
    need = bounds_of(after["trainer.memory"]) or (0, INF)
    most = f" ({name} {size / GIB:.1f})" if GIB / 10 <= size <= need[0] else ""  # a likely part may be more
    ask = memory_of(after, judged.target)[0].ask if judged.target is not None else None
    question = (ask or "").rpartition(_OF_RANGE)[2]
    return f"the trainer needs at least {need[0] / GIB:.1f} GiB{most}{question and f'; {question}'}"


def harmless(solver: Solver, way: Repair, judged: Judged, goals: Sequence[Goal]) -> list[Track]:
    """Return the tracks of some goals as far as, beside a way, they break nothing but memory's rules."""
    facts = combined(way.options) or {}
    broken = {rule.code for rule in solver.trials.harmed(judged, facts, surely=True)}

    def admits(option: Option) -> bool:
        together = combined((*way.options, option))
        rules = [] if together is None else solver.trials.harmed(judged, together, surely=True)
        return all(rule.code in broken or rule.code.startswith(MEMORY) for rule in rules)

    usable = uncut(ANY.over(solver.tracks(goals)))
    tracks = (track for track in usable if track.option(len(track) - 1) is not None)
    begun = (cut(track, admits) for track in tracks)
    return [track for track in begun if track is not None]


def lacks(solver: Solver, judged: Judged, facts: Mapping[str, object]) -> bool:
    """Whether memory is missing for certain after some moves."""
    values = solver.trials.values(judged, facts)
    short = solver.trials.short(judged, facts)
    return any(rule.level == "error" and rule.test(values) is False for rule in short)


def values_told(way: Repair) -> str:
    """Return the keys and values that a repair writes."""
    return told_of(way.written)


def told_of(keys: Sequence[Written]) -> str:
    """Return keys and values in words."""
    told = (f"{spoken(written.path)} {shown(written.value)}" for written in keys)
    *most, last = dict.fromkeys(told)
    return f"{', '.join(most)} and {last}" if most else last


def least_needed(solver: Solver, group: Group) -> str:
    """Say, as an addition, what memory a job needs with all that takes something off."""
    judged = group.goals[0].judged
    if not group.code.startswith(MEMORY) or judged.target is None:
        return ""
    told = at_most(solver, Repair(()), judged)
    text = told.text.replace(" then ", " ").removeprefix("then ")
    return f": {text}" if told.further else ""
