"""What a repair costs in time: a training step after it, against one before.

The rules compute a step's work from the GPUs' rate, recomputation, and what moves between GPUs and to the
host (rules/time.rules, ``step.work``). Where that says nothing of a move, the knob's own points count.
"""

from __future__ import annotations

from cfglint.engine.memory import GIB, LACKING, bounds_of
from cfglint.lang.types import is_number
from cfglint.lang.values import INF, UNRULED, needs_of
from cfglint.repair.estimate import middle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cfglint.engine.subject import Judged
    from cfglint.facts import Values
    from cfglint.repair.tracks import Option
    from cfglint.repair.trials import Trials

WORK, _COMPUTE, _MOVES = "step.work", "step.compute", ("step.transfer", "step.host")
_SHORTEST = "step.shortest"
_HOST, _HOST_TIMES = "need.host", 3.6  # times the memory of a machine's GPUs
_HOST_EACH, _HOST_LARGE = 375 * GIB, 500 * GIB  # for each GPU of a machine, and for each large one
_LARGE = 150 * GIB  # that a large GPU has at least
_TRAINER = "trainer.likely"
_PARTS = (("engine.memory", "generates"), (_TRAINER, "trains"), ("need.likely", "trains"))
_MORE = 1.05  # times the memory before
_GPUS_OF_A_JOB = ("train_gpus", "gpus_needed")
_GPUS = frozenset(("num_gpus", "gpus_per_node", "num_nodes", "train_gpus", "train_dp"))
_SPREAD = ("rollout_tp", "rollout_pp")
_LAYOUT = frozenset(("train_tp", "pp", "cp", "sp", "ep"))  # of the trainer
_ENGINES = frozenset(("rollout_tp", "rollout_pp"))
_POINT = 0.1  # of a step's time: what a point of a knob's cost stands for (rules/knobs.rules)
_NOTABLE = 0.02  # of a step's time; less is lost in the noise of a run


def slower(trials: Trials, judged: Judged, facts: Mapping[str, object]) -> tuple[float, float] | None:
    """Return by which share a step takes longer, least and most; None where that is not known, or nothing.

    A quick GPU may stand beside a slow link, and a slow one beside a quick link. Before and after, they are
    the same: each is taken at its ends, beside the middle of the other.
    """
    old, new = judged.values, trials.values(judged, facts)
    if _matched(trials, judged, facts) is None:
        return None
    before, after = _works(old), _works(new)
    if before is None or after is None:
        return None
    shares = [then / now - 1 for now, then in zip(before, after, strict=True) if now > 0]
    least, most = min(shares), max(shares)
    return None if max(abs(least), abs(most)) < _NOTABLE else (least, most)


def _works(values: Values) -> list[float] | None:
    """Return how long a step takes at the ends of what it rests on, in one order."""
    parts = [bounds_of(values[name]) for name in (_COMPUTE, *_MOVES)]
    shortest = bounds_of(values[_SHORTEST])
    if shortest is None or any(part is None or part[1] == INF for part in parts):
        return None
    compute, transfer, host = (part for part in parts if part is not None)
    compute = (compute[0] * shortest[0], compute[1])
    places = [(end(compute), middle(transfer), middle(host)) for end in (min, max)]
    places += [(middle(compute), end(transfer), end(host)) for end in (min, max)]
    behind = [max(work, moved) + kept for work, moved, kept in places]
    return behind + [work + moved + kept for work, moved, kept in places]


def _matched(trials: Trials, judged: Judged, facts: Mapping[str, object]) -> tuple[float, float] | None:
    """Return by which share a step takes longer at either end of its range."""
    old, new = bounds_of(judged.values[WORK]), bounds_of(trials.values(judged, facts)[WORK])
    if old is None or new is None or not 0 < old[0] <= old[1] < INF or new[1] == INF:
        return None
    shares = sorted((new[0] / old[0] - 1, new[1] / old[1] - 1))
    return None if max(map(abs, shares)) < _NOTABLE else (shares[0], shares[1])


def overfills_host(trials: Trials, judged: Judged, facts: Mapping[str, object]) -> bool:
    """Whether a move needs more host memory than any rented machine has: some times that of their GPUs.

    AWS's machines with A100 and H100 have 3.2 to 3.6 times, GCP's with A100 2.1 times, and beside each H200
    AWS's have 256 GiB, GCP's 369 and beside each B200 496; what is needed is told
    (https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html, https://docs.cloud.google.com/compute/docs/gpus).
    What is known of the host's memory, a rule judges.
    """
    before, after = judged.values, trials.values(judged, facts)
    need, was = bounds_of(after[_HOST]), bounds_of(before[_HOST])
    vram, ranks = bounds_of(after["gpu.vram"]), bounds_of(after["host.ranks"])
    if need is None or was is None or vram is None or ranks is None or need[0] <= was[0]:
        return False
    there = bounds_of(after["gpu.per_node"])  # engines have GPUs of the machine, too
    return need[0] > host_of(vram[1]) * max(ranks[1], there[1] if there is not None else 0)


def beyond_hosts(trials: Trials, judged: Judged, option: Option) -> bool:
    """Whether no host holds what a move sends there, nor with adapters alone, where they may be trained."""
    if not overfills_host(trials, judged, option.facts):
        return False
    trials.hosted[option.knob] = option
    rank = judged.values["adapters.to"]
    lighter = {**option.facts, "lora_rank": rank}
    return not (is_number(rank) and rank > 0) or overfills_host(trials, judged, lighter)


def host_of(vram: float) -> float:
    """Return the most memory of its own that a rented machine has for each GPU."""
    return min(_HOST_TIMES * vram, _HOST_LARGE if vram >= _LARGE else _HOST_EACH)


def overfilled(trials: Trials, judged: Judged, facts: Mapping[str, object], *, at_all: bool = False) -> str:
    """Return whose memory does not hold what a job needs after some moves, in words."""
    if overfills_gpu(trials, judged, facts, at_all=at_all):
        return "a GPU has"
    return "rented machines have beside their GPUs" if overfills_host(trials, judged, facts) else ""


def overfills_gpu(
    trials: Trials, judged: Judged, facts: Mapping[str, object], *, at_all: bool = False
) -> bool:
    """Whether a job runs out of memory after a move, by the middle of its estimate, and more than before.

    What rests on something that no rule models says nothing by its middle: of that the least counts. With
    ``at_all`` also where it needed as much before, but for engines on GPUs of their own, which stay.
    """
    before, after = judged.values, trials.values(judged, facts)
    vram, engine = bounds_of(after["gpu.vram"]), bounds_of(after["engine.memory"])
    apart = before["colocated"] is False and not regroups(facts) and _ENGINES.isdisjoint(facts)
    for name, part in _PARTS:
        need, was = bounds_of(after[name]), bounds_of(before[name])
        if after[part] is not True or vram is None or need is None or was is None:
            continue
        stays = apart and engine is not None and name != _TRAINER and middle(need) <= middle(engine)
        likely = need[0] if is_unmodelled(after[name]) else middle(need)
        if at_all and not stays and vram[0] == vram[1] and need[1] < INF and likely > vram[1]:
            return True
        if likely > max(vram[1], _MORE * middle(was)):
            return True
    return False


def is_unmodelled(value: object) -> bool:
    """Whether a value rests on something that no rule models, such as how a trainer's engine shards."""
    return any(name.startswith(UNRULED) for name in needs_of(value))


def serves_on_fewer(facts: Mapping[str, object], values: Values) -> bool:
    """Whether facts move a server of a model whose size nobody knows to fewer GPUs."""
    moved = values["trains"] is False and any(name in facts for name in _SPREAD)
    return moved and values[LACKING] is True and not is_number(values["model.params"])


def crowds(trials: Trials, judged: Judged, facts: Mapping[str, object]) -> bool:
    """Whether moves put the engine onto the trainer's GPUs, where each had its own and there are enough.

    Where there are too few for both, they may take turns: the engine sleeps while the trainer works.
    """
    before, after = judged.values, trials.values(judged, facts)
    needed, there = before["gpus_needed"], before["gpu.count"]
    lacking = is_number(needed) and is_number(there) and needed > there
    turns = lacking and after["sleep_mode"] is True
    return before["colocated"] is False and after["colocated"] is True and not turns


def regroups(facts: Iterable[str]) -> bool:
    """Whether moves give a job other GPUs than it has."""
    return any(name in _GPUS or name.startswith("$.launch.") for name in facts)


def lays_out(facts: Iterable[str], *, engines: bool = True) -> bool:
    """Whether moves share a job out over its GPUs in another way, ``engines`` its engines among it."""
    return not (_LAYOUT | _ENGINES if engines else _LAYOUT).isdisjoint(facts)


def gives_other_gpus(trials: Trials, judged: Judged, facts: Mapping[str, object]) -> bool:
    """Whether a job has other GPUs after some moves, whatever key of its framework says so."""
    before, after = judged.values, trials.values(judged, facts)
    numbers = [(before[name], after[name]) for name in _GPUS_OF_A_JOB]
    return regroups(facts) or any(is_number(a) and is_number(b) and a != b for a, b in numbers)


def points(trials: Trials, judged: Judged, facts: Mapping[str, object], own: float) -> float:
    """Return what a move costs, in points: by the work of a step, where that moves, else ``own``."""
    share = _matched(trials, judged, facts)
    if share is not None:
        return max((share[0] + share[1]) / 2 / _POINT, _NOTABLE)
    old, new = (bounds_of(values[WORK]) for values in (judged.values, trials.values(judged, facts)))
    told = old is not None and new is not None and old != new and max(old[1], new[1]) < INF
    return _NOTABLE if told else own
