"""Other hardware on which a job runs as it is: judged there by every rule, the cheapest hour first.

A place is proposed only if no error stands or may stand against the job there, its memory certainly fits,
and what the run learns from stays the same. Where more GPUs would make another batch of it, the accumulation
steps that keep the batch are told as well. A number of GPUs that the job itself states is kept.
"""

from __future__ import annotations

from itertools import islice
from math import inf

from cfglint.engine.cases import TOTAL
from cfglint.engine.judge import judge
from cfglint.engine.memory import GIB, HERE, LACKING, bounds_of, memory_of
from cfglint.facts import missing
from cfglint.findings import Span
from cfglint.hardware.catalogue import catalogue
from cfglint.hardware.catalogue import gpu as gpu_named
from cfglint.hardware.prices import shipped
from cfglint.hardware.target import count_facts, gpu_facts, parse_target
from cfglint.lang.types import is_number
from cfglint.lang.values import needs_of
from cfglint.record import Record, field, replace
from cfglint.repair.beside import gpus_together
from cfglint.repair.counted import ASSUMED
from cfglint.repair.estimate import middle
from cfglint.repair.on_host import host_lacks, large_host, of_the_host
from cfglint.repair.place import Place, closest_told, is_endless, is_laid_out, named, shown
from cfglint.repair.results import as_if_it_ran, is_same
from cfglint.repair.sized import share_of_each
from cfglint.repair.together import combined
from cfglint.repair.trials import MEMORY, to_mend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cfglint.engine.run import Run
    from cfglint.engine.subject import Judged, Subject
    from cfglint.facts import Values
    from cfglint.findings import Fix, Memory
    from cfglint.hardware.catalogue import Gpu
    from cfglint.lang.pack import CompiledRule
    from cfglint.repair.trials import Goal, Trials

    _Offer = tuple[float, Gpu, int, int]  # dollars an hour, how many on how many machines

_TIMES = (1, 2, 4, 8)
_BY_RAY = "launched.by_ray"
_NODE = 8  # GPUs of a machine that clouds rent
_MIB = 1 << 20
_TERA = 1e12
_AS_FAST = 0.7  # of the present rate
_LARGER = 1.5  # times the present memory
_MOST_ELSEWHERE, _ALL_ELSEWHERE = 2, 4  # so many GPUs are looked at with a repair; with no other way out
_FEW = 2  # places that are told
_MUCH_CHEAPER = 0.9  # of what the place costs that surely holds a job
_MACHINES = (2, 4, 8)
_SHARDED = ("fsdp", "deepspeed")  # more GPUs hold less each, and no file says how many there are
_STATES = "MEM105"  # the rule about what is needed whatever the batch
_WIDE = 3.0  # times the lower end of an estimate
_KERNELS = "PRC"  # rules about what a GPU has kernels for
_LIKELY, _ROOMY = 0.9, 0.25  # of what a GPU has: an estimate's middle, and the states where no more is known
_AT_LEAST = 0.8  # of what a GPU has: an estimate's lower end, where no place is likely
_HALF = 0.5  # of what a place costs where nothing has to change
# More is no advice: dollars an hour, times what the present GPUs cost, dollars for each GPU of the job.
_MOST_HOURLY, _TIMES_OWN, _MOST_EACH = 40.0, 4, 8.0


class Market(Record):
    """The places for one document on one target, by the rules that have to hold there."""

    trials: Trials
    judged: Judged
    told: Callable[[int], str]  # what says the accumulation steps
    _found: dict[tuple[str, ...], list[Place]] = field(factory=dict)
    _together: int | None = field(default=-1, init=False)
    _endless: bool | None = field(default=None, init=False)

    @property
    def together(self) -> int | None:
        """How many GPUs the script's commands take at the same time: 0 of one alone, None if not known."""
        if self._together == -1:
            self._together = gpus_together(self.trials, self.judged)
        return self._together

    @property
    def endless(self) -> bool:
        """Whether nobody knows what the job needs, on however many GPUs: how large its model is."""
        if self._endless is None:
            most = max(self.offers(), key=lambda offer: offer[2] * offer[3], default=None)
            values = None if most is None else self.trials.values(self.judged, self._facts(*most[1:]))
            self._endless = values is not None and is_endless(values)
        return self._endless

    def price(self, hourly: float, gpus: int) -> str:
        """Return in words what GPUs cost; of one where nobody says how many there have to be."""
        given, asked = self.judged.values.given, self.judged.values[HERE]
        open_number = gpus == 1 and not is_number(given.get("gpu.count")) and not is_number(asked)
        if self.together is None or open_number:
            return f"about ${hourly / gpus:.2f} an hour per GPU"
        return f"about ${hourly:.2f} an hour"

    def places(self, goals: tuple[Goal, ...], *, may: bool = False) -> list[Place]:
        """Return the cheapest place that needs no change, and one that costs less with other steps.

        Beside it, a far cheaper one that probably holds the job. With ``may``, where none surely does, the
        cheapest that may, of one machine or of several, or where its batch grows.
        """
        key = (*(goal.code for goal in goals), "may" if may else "")
        if key not in self._found:
            sure = self.places(goals) if may else self._with_likely(list(self._places(goals)), goals)
            if may and not sure:
                ways = (
                    self._places(goals, wide=True),
                    self._uncertain(goals),
                    self._places(goals, grows=True),
                    self._places(goals, grows=True, wide=True),
                )
                sure = next(filter(None, (list(islice(way, _FEW)) for way in ways)), [])
            self._found[key] = sure
        return self._found[key]

    def _with_likely(self, sure: list[Place], goals: tuple[Goal, ...]) -> list[Place]:
        """Put a far cheaper place that probably holds a job beside the one that surely does."""
        most = next((place.hourly for place in sure if not place.accumulation), 0.0) * _MUCH_CHEAPER
        if most and not sure[0].own:
            place = next(self._uncertain(goals, most), None)
            if place is not None and place.likely and not place.accumulation:
                return [sure[0], place, *sure[1:]][:_FEW]
        return sure

    def _places(self, goals: tuple[Goal, ...], *, grows: bool = False, wide: bool = False) -> Iterator[Place]:
        judged, trials = self.judged, self.trials
        if grows and not all(goal.code.startswith(MEMORY) for goal in goals):
            return
        if judged.target is None or any(trials.run.without_target(goal.compiled, judged) for goal in goals):
            return
        cheapest: dict[bool, Place] = {}
        kernels = any(goal.code.startswith(_KERNELS) for goal in goals)  # an older GPU may have them
        offers = [] if self.endless else self.wider() if wide else self.offers(slower=kernels)
        for offer in offers:
            place = self._place(goals, offer, grows=grows)
            if place is not None:
                cheapest.setdefault(bool(place.accumulation), place)
                if not place.accumulation:
                    break
        yield from sorted(cheapest.values(), key=lambda place: bool(place.accumulation))

    def _uncertain(self, goals: tuple[Goal, ...], most: float = inf) -> Iterator[Place]:
        """Yield the cheapest place that may hold the job, up to a price; one of many GPUs, likely or not."""
        judged = self.judged
        if judged.target is None or any(self.trials.run.without_target(g.compiled, judged) for g in goals):
            return
        kernels = any(goal.code.startswith(_KERNELS) for goal in goals)
        for wild in (False, True) if judged.values[LACKING] is True and most == inf else (False,):
            for offer in self.offers(slower=kernels):
                place = self._place(goals, offer, may=True, wild=wild) if offer[0] <= most else None
                if place is not None and (place.likely or most == inf):
                    yield place
                    return

    def offers(self, *, slower: bool = False) -> list[_Offer]:
        """Return GPUs, how many on how many machines, and what they cost an hour, the cheapest first."""
        values = self.judged.values
        asked, parts, vendor = self._asked(), values["num_nodes"], values.given.get("gpu.vendor")
        given = values.given.get("gpu.per_node")
        own = given if isinstance(given, int) else 1
        machines = int(parts) if is_number(parts) and parts >= 1 else 1
        if self.together and machines == 1:
            counts = [self.together]
        elif (
            is_number(asked) and machines == 1 and is_number(all_of := values["num_gpus"]) and all_of > asked
        ):
            counts = [int(all_of)]  # an engine has some of the machine's, too
        elif is_number(asked) and asked >= 1:
            counts = [int(asked)]
        else:
            counts = [n for n in dict.fromkeys((*(own * times for times in _TIMES), 1)) if n <= _NODE]
        counts, machines = self._spread(counts, machines)
        sheet = (self.trials.run.prices or shipped()).hourly
        offers = []
        there = values.given.get("gpu.nodes")
        shapes = [(count, machines) for count in counts]
        if values[LACKING] is True and (own, there) not in shapes and is_number(there):  # as many as now
            shapes.append((own, int(there)))
        shapes = [(count, nodes) for count, nodes in shapes if count <= max(_NODE, own)]
        for name, usd in sheet.items():
            gpu = gpu_named(name)
            if gpu.vendor == vendor and self.is_no_step_down(gpu, slower=slower):
                offers += [(usd * count * nodes, gpu, count, nodes) for count, nodes in shapes]
        own *= int(there) if is_number(there) else 1
        own_price = sheet.get(str(values.given.get("gpu.model")), 0) * own
        stated = _MOST_EACH * counts[0] * machines if is_number(asked) and asked >= 1 else 0
        most = max(_MOST_HOURLY, _TIMES_OWN * own_price, stated)
        offers = [offer for offer in offers if offer[0] <= most]
        model = values.given.get("gpu.model")
        if model in catalogue()["gpus"] and model not in sheet:  # fewer of one's own cost nothing
            offers += [
                (0.0, gpu_named(str(model)), count, 1)
                for count, nodes in shapes
                if count < own and nodes == 1
            ]

        def is_there(offer: _Offer) -> bool:
            return offer[1].name == model and offer[2] * offer[3] <= own

        return sorted(offers, key=lambda offer: (not is_there(offer), offer[0], -offer[2], offer[1].name))

    def closest(self) -> str:
        """Say what comes closest to holding the job, where nothing does; nothing if unknown."""
        judged, tried = self.judged, []
        for _, gpu, count, nodes in (*self.offers(), *self.wider()):
            values = self.trials.values(judged, self._facts(gpu, count, nodes))
            if judged.target is not None and count * nodes >= self._least(values):
                memory = memory_of(values, judged.target, asks=False)[0]
                tried.append((named(gpu.name, count, nodes), memory))
        return closest_told(tried)

    def _asked(self) -> object:
        """Return how many GPUs of a machine a job takes, as far as it says so."""
        values = self.judged.values
        asked, every = values[HERE], values["num_gpus"]
        if not is_number(asked):
            return values["gpus_needed"] if values["launched.placed"] is True else asked
        parts = values["num_nodes"]
        alone = not (is_number(parts) and parts > 1)  # an engine has some of the machine's, too
        return every if alone and is_number(every) and every > asked else asked

    def wider(self) -> list[_Offer]:
        """Return several machines of eight that NVLink joins, where no command says how many there are."""
        values = self.judged.values
        counted = any(is_number(values[name]) for name in ("num_nodes", HERE, "num_gpus"))
        trains = values["trains"] is True and values["generates"] is not True and not self.together
        if counted or not trains or values["train_backend"] not in _SHARDED:
            return []
        sheet = (self.trials.run.prices or shipped()).hourly
        vendor = values.given.get("gpu.vendor")
        rented = [(usd, gpu_named(name)) for name, usd in sheet.items()]
        return sorted(
            (
                (usd * _NODE * nodes, gpu, _NODE, nodes)
                for usd, gpu in rented
                for nodes in _MACHINES
                if gpu.vendor == vendor and gpu.nvlink is True and self.is_no_step_down(gpu)
            ),
            key=lambda offer: (offer[0], offer[1].name),
        )

    def _spread(self, counts: list[int], machines: int) -> tuple[list[int], int]:
        """Return GPUs of a machine, and the machines, where Ray places a job on as many as it needs."""
        values = self.judged.values
        needed, each = values["gpus_needed"], values["gpus_per_node"]
        if values[_BY_RAY] is True and is_number(needed) and is_number(each) and 1 <= each <= _NODE:
            here = int(max(each, min(counts[0], _NODE)))
            if machines == 1 and counts[0] < needed <= _NODE:
                return [int(needed)], 1
            if needed > counts[0] * machines or counts[0] > _NODE:
                return [here], -(-int(needed) // here)
        if counts[0] > _NODE and machines == 1 and self._spreads():
            return [_NODE], -(-counts[0] // _NODE)
        return counts, machines

    def _spreads(self) -> bool:
        """Whether Ray places the job on several machines, a server is one of several, or no command tells."""
        values = self.judged.values
        unsaid = not is_number(values["num_nodes"]) and not is_number(values["launched.here"])
        return bool(unsaid or values["launched.placed"] is True or values["trains"] is False)

    def is_no_step_down(self, gpu: Gpu, *, slower: bool = False) -> bool:
        """Whether a GPU is the present one, or has as much memory and, unless ``slower``, the speed."""
        given = self.judged.values.given
        if gpu.name == given.get("gpu.model"):
            return True
        memory, rate = given.get("gpu.vram"), given.get("gpu.tflops")
        if gpu.usable_mib is None or not is_number(memory) or gpu.usable_mib * _MIB < memory:
            return False
        if given.get("gpu.nvlink") is True and gpu.nvlink is not True:
            return False
        return (
            slower or gpu.tflops is None or not is_number(rate) or bool(gpu.tflops * _TERA >= _AS_FAST * rate)
        )

    def _place(
        self,
        goals: tuple[Goal, ...],
        offer: _Offer,
        *,
        may: bool = False,
        grows: bool = False,
        wild: bool = False,
    ) -> Place | None:
        judged, trials, (hourly, gpu, count, nodes) = self.judged, self.trials, offer
        facts = self._facts(gpu, count, nodes)
        values = trials.values(judged, facts)
        if count * nodes < self._least(values) or _is_over(values, may=may) or host_lacks(values):
            return None
        if any(not _may_hold(goal.compiled, values, may=may) for goal in goals) or not is_laid_out(values):
            return None
        steps = self._steps(values, facts)
        grown = self._grown(values) if steps == 0 and grows else ""
        if steps == 0 and not grown:
            return None
        if steps:
            facts["grad_accum"] = steps
            values = trials.values(judged, facts)
        moved = trials.base(judged).moved(facts).rules
        standing = self._standing(values)
        broken = standing & {rule.code for rule in moved if not _may_hold(rule, values, may=may)}
        kernels = (rule for rule in moved if rule.level == "warning" and rule.code.startswith(_KERNELS))
        if broken or any(rule.test(values) is False for rule in kernels):
            return None
        memory = self._memory(values, may=may, wild=wild)
        name = named(gpu.name, count, nodes)
        told = self.told(steps) if steps else grown
        price, host = self.price(hourly, count * nodes), large_host(values)
        amid = bool(standing - {rule.code for rule in moved})
        if memory is None:
            return None
        own = self._own(gpu, count) if nodes == 1 else ""
        return Place(name, hourly, memory, price, told, amid=amid, host=host, may=may, own=own)

    def values_on(self, gpu: Gpu, count: int, moves: Mapping[str, object]) -> Values:
        """Return what holds on a machine with so many GPUs, with some facts moved."""
        return self.trials.values(self.judged, {**self._facts(gpu, count, 1), **moves})

    def memory_on(self, gpu: Gpu, count: int, moves: Mapping[str, object], *, may: bool) -> Memory | None:
        """Return what a job needs there; None where it does not fit, or may not."""
        values = self.values_on(gpu, count, moves)
        return None if _is_over(values, may=may) or host_lacks(values) else self._memory(values, may=may)

    def _own(self, gpu: Gpu, count: int) -> str:
        """Say which of the GPUs of the machine a place is; nothing where it is not some of them."""
        given = self.judged.values.given
        there = given.get("gpu.count")
        if self._is_open() or gpu.name != given.get("gpu.model") or given.get("gpu.nodes") != 1:
            return ""
        if not is_number(there) or count >= there:
            return ""
        numbers = ",".join(map(str, range(count)))
        return f"{count} of the {int(there)} GPUs here, by CUDA_VISIBLE_DEVICES={numbers}"

    def _memory(self, values: Values, *, may: bool, wild: bool = False) -> Memory | None:
        """Return what a job needs where it fits, or ``may`` fit; None where it does not, or who knows."""
        assert self.judged.target is not None
        memory = memory_of(values, self.judged.target, asks=False)[0]
        need, there = memory.need_gib, memory.capacity_gib or 0
        if not may:
            wide = need.high > _WIDE * max(1, need.low)  # what is named may be far too dear
            return memory if memory.verdict == "fits" and not wide else None
        if memory.verdict in ("fits", "tight"):
            likely = need.high <= there or middle((need.low, need.high)) <= _LIKELY * there
            return memory if likely or (wild and need.low <= _AT_LEAST * there) else None
        floor = share_of_each(self.judged, values) / GIB
        if memory.verdict != "unknown" or not 0 < floor <= _ROOMY * there:
            return None
        return replace(memory, need_gib=Span(floor, inf))

    def _least(self, values: Values) -> float:
        """Return how many GPUs a job takes at least; a script that leaves it open takes those there are."""
        processes, own = values["num_gpus"], self.judged.values.given.get("gpu.count")
        if is_number(processes):
            return processes
        scripted = self.judged.subject.document.format == "shell"
        return own if scripted and is_number(own) else 1

    def larger(self, most: float) -> list[tuple[str, float, int, int]]:
        """Return some GPUs with more memory, with their price, up to a price: the cheapest of each size.

        Without a price, all sizes are looked at, and as many as the job asks for.
        """
        enough = _MOST_ELSEWHERE if most < inf else _ALL_ELSEWHERE
        sizes = [self.judged.values.given.get("gpu.vram", 0)]
        found: list[tuple[str, float, int, int]] = []
        asked = self._asked()
        least = asked if is_number(asked) and most == inf else 1
        for hourly, gpu, count, nodes in self.offers():
            size = (gpu.usable_mib or 0) * _MIB
            if hourly > most or len(found) == enough:
                break
            larger = all(is_number(other) and size > _LARGER * other for other in sizes)
            if larger and count * nodes >= least and not self.is_too_small(gpu, count, nodes):
                sizes.append(size)
                found.append((gpu.name, hourly, count, nodes))
        return found

    def is_too_small(self, gpu: Gpu, count: int, nodes: int) -> bool:
        """Whether not even the model's states fit there."""
        values = self.trials.values(self.judged, self._facts(gpu, count, nodes))
        rules = (rule for rule in self.trials.base(self.judged).rules if rule.code == _STATES)
        return any(rule.test(values) is False for rule in rules)

    def _steps(self, values: Values, facts: dict[str, object]) -> int | None:
        """Return the accumulation steps that keep the effective batch: None for those of now, 0 for none."""
        before = as_if_it_ran(self.trials, self.judged)
        if before.given.get("gpu.count") is None and not is_number(
            before["results.batch"]
        ):  # one GPU, as in fit
            one = {name: worth for name, (worth, _) in count_facts(1, 1, "").items()}
            before = self.trials.values(self.judged, one)
        if is_same("results.batch", before, values):
            return None
        old, new, steps = before["results.batch"], values["results.batch"], before["grad_accum"]
        if not (is_number(old) and is_number(new) and is_number(steps) and new):
            return 0
        wanted = steps * old / new
        if wanted < 1 and self._is_open():
            return None
        if wanted < 1 or wanted != int(wanted):
            return 0
        kept = self.trials.values(self.judged, {**facts, "grad_accum": int(wanted)})
        return int(wanted) if is_same("results.batch", before, kept) else 0

    def _grown(self, values: Values) -> str:
        """Say how much larger the batch is where each GPU has its own, in whole multiples; else nothing."""
        old, new = as_if_it_ran(self.trials, self.judged)["results.batch"], values["results.batch"]
        if not (is_number(old) and is_number(new)) or not 0 < old < new or new % old:
            return ""
        return f"{new / old:g} times the batch, {new:,g} for {old:,g}"

    def _is_open(self) -> bool:
        """Whether nobody says how many GPUs there are, so that a file says the batch of one of them."""
        target = self.judged.target
        count = None if target is None else target.facts.get("gpu.count")
        return count is None or count[1] == ASSUMED

    def _standing(self, values: Values) -> set[str]:
        """Return the errors that stand or may stand against the job there."""
        verdicts = judge(self.trials.base(self.judged).rules, values)
        return {v.rule.code for v in verdicts if v.rule.level == "error" and to_mend(v)}

    def _facts(self, gpu: Gpu, count: int, nodes: int) -> dict[str, object]:
        """Return what other GPUs give; what is not known of them is missing, whatever the present one has."""
        specs = self.trials.run.pack.facts
        known = {**gpu_facts(gpu), **count_facts(count, nodes, "")}
        facts = {name: fact for name, (fact, _) in known.items() if name in specs}
        for name in self.judged.values.given:
            if name.startswith("gpu.") and name not in facts and name in specs:
                facts[name] = missing(name, specs[name])
        return facts


def _is_over(values: Values, *, may: bool) -> bool:
    """Whether a job does not fit for certain, or may not and nothing is open that would tell."""
    need, vram = bounds_of(values[TOTAL]), bounds_of(values["gpu.vram"])
    if need is None or vram is None:
        return False
    return need[0] > vram[0] or (not may and need[1] > vram[0] and not needs_of(values[TOTAL]))


def _may_hold(rule: CompiledRule, values: Values, *, may: bool) -> bool:
    """Whether a rule holds there, or, of memory that only ``may`` be enough, is not broken for certain."""
    truth = rule.test(values)
    return truth in (True, None) or (may and rule.code[:3] == MEMORY[:3] and truth is not False)


def mended_elsewhere(market: Market, subject: Subject, places: Sequence[Place]) -> Fix | None:
    """Return other hardware on which a safe repair lets the job run; None where the next larger do not.

    ``places`` are those where it runs as it is: what costs more than half as much is no advice beside them.
    """
    if market.endless:
        return None
    most = min((place.hourly for place in places), default=inf) * _HALF
    for name, hourly, count, nodes in market.larger(most):
        there = market.trials.run.but(targets=(parse_target(f"{name}:{count}x{nodes}"),), named=True)
        mended = _mended_there(there, subject)
        if mended is None:
            continue
        titles, beside = mended
        where = f"run it on {named(name, count, nodes)} ({market.price(hourly, count * nodes)}{beside})"
        return shown(f"{where}, and there {' and '.join(titles)}", market.judged)
    return None


def _mended_there(there: Run, subject: Subject) -> tuple[list[str], str] | None:
    """Return safe repairs after which a job fits the one target of a run, and what it needs of the host."""
    from cfglint.repair.allowed import SAFE
    from cfglint.repair.proposals import groups_of, mend
    from cfglint.repair.solve import solving

    (judged,) = judgements = there.judged(subject)
    found = there.findings(judgements, told=False)
    with solving(there, judgements) as solver:
        groups = [group for group in groups_of(solver, found, "error") if group.error]
        repairs = mend(solver, groups, (SAFE,)) if groups else None
        if repairs is None or any(repairs.of(group.code, judged) is None for group in groups):
            return None
        moved = combined(option for repair in repairs.each() for option in repair.options)
        values = solver.trials.values(judged, moved or {})
    titles = [repair.patch.title for repair in repairs.each() if repair.patch is not None]
    mended = {group.code for group in groups}
    broken = (v.rule for v in judged.verdicts if v.truth is False and v.rule.code not in mended)
    if not titles or any(rule.level == "error" for rule in broken) or judged.target is None:
        return None
    fits = memory_of(values, judged.target, asks=False)[0].verdict == "fits"
    return (titles, of_the_host(judged.values, values)) if fits and not host_lacks(values) else None
