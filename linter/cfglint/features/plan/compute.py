"""Which micro-batches, accumulation steps, GPUs and ZeRO stages make up a batch, and at what memory.

Pure: facts in, rows out. Memory and time come from the rules (``need.total``, ``step.time``). They are
asked for each combination; what does not depend on it is computed once, and what does not depend on the
number of accumulation steps once for all of those, as the facts' own notes of what read what tell.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING

from cfglint.engine.dependencies import settled, watched
from cfglint.engine.judge import values_for
from cfglint.engine.memory import bounds_of
from cfglint.engine.rows import FitRow, given_by, row_of
from cfglint.errors import UsageError
from cfglint.findings import Span
from cfglint.lang.types import is_number, text_of
from cfglint.lang.values import INF, equal, needs_of
from cfglint.record import Value, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cfglint.engine.subject import Subject
    from cfglint.facts import Values
    from cfglint.hardware.target import Target

STAGES = (0, 1, 2, 3)
ON, OFF = "full", "none"
MOST_GPUS = 64  # where nothing says how many there are
_BUDGETS = (0.125, 0.25, 0.5, 1, 2, 4, 8)  # of the token budget that a config has


class Ask(Value):
    """What to combine; empty means as in the config (for micro-batches: all divisors of the batch)."""

    batches: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()
    micros: tuple[int, ...] = ()
    stages: tuple[int, ...] = ()
    checkpointing: tuple[str, ...] = ()


class Choice(Value):
    """One combination: ``micro_batch`` times ``accumulation`` times ``data_parallel`` is the batch.

    Where a trainer takes micro-batches by their tokens, ``micro_batch_tokens`` is that budget, and
    ``micro_batch`` and ``accumulation`` are None. A ``zero_stage`` or ``checkpointing`` of None is as the
    config has it. JSON has the fields under these names.
    """

    batch: int
    gpus: int
    data_parallel: int
    micro_batch: int | None
    accumulation: int | None
    micro_batch_tokens: int | None = None
    zero_stage: int | None = None
    checkpointing: str | None = None

    @property
    def size(self) -> int:
        """Its micro-batch, in sequences or tokens."""
        return self.micro_batch or self.micro_batch_tokens or 0


class Shape(Value):
    """What all combinations of a config share, and its present combination.

    ``copy`` GPUs work on one micro-batch together; ``aside`` GPUs generate and do not train. ``full_shard``
    says that FSDP cuts over all data-parallel ranks, ``shard`` over how many where it does not (0: not
    FSDP, or -1 in the file).
    """

    copy: int
    aside: int
    colocated: object
    backend: str | None
    shard: int
    full_shard: bool
    per_node: int | None
    tokens: int | None
    batch: int | None
    gpus: int | None
    micro: int | None
    accum: int | None
    stage: int | None
    checkpointing: str | None
    n_samples: int
    n_minibatches: int

    @property
    def now(self) -> Choice | None:
        """What the config combines as it is."""
        if not (self.batch and self.gpus and (self.tokens or (self.micro and self.accum))):
            return None
        micro, accum = (None, None) if self.tokens else (self.micro, self.accum)
        return Choice(self.batch, self.gpus, 0, micro, accum, self.tokens)


class PlanRow(Value):
    """A combination, its memory, and its time in seconds (None where that is not known).

    ``facts`` are what the rules were asked with. ``now`` says that the config has this combination.
    """

    number: int
    choice: Choice
    fit: FitRow
    facts: tuple[tuple[str, object], ...]
    step_s: Span | None = None
    epoch_s: Span | None = None
    now: bool = False

    @property
    def verdict(self) -> str:
        """Whether it fits."""
        return self.fit.verdict

    @property
    def need_gib(self) -> Span:
        """GiB on the most loaded GPU."""
        return self.fit.need_gib

    @property
    def work(self) -> Span | None:
        """GPU-seconds: of an epoch where the number of samples is known, else of a step."""
        time = self.epoch_s or self.step_s
        return None if time is None else Span(time.low * self.choice.gpus, time.high * self.choice.gpus)


class Unreached(Value):
    """A number of GPUs that cannot reach a batch."""

    gpus: int
    why: str


class Batch(Value):
    """All rows of one effective batch, and the numbers of GPUs ``without`` one."""

    effective_batch: int
    steps_per_epoch: int | None
    rows: tuple[PlanRow, ...]
    without: tuple[Unreached, ...]


# ── what the config has ──────────────────────────────────────────────────────────────────────────────────
def whole(value: object) -> int | None:
    """Return a known whole number as an int, None for anything else."""
    if not is_number(value) or value != value // 1:
        return None
    return int(value)


def stated(values: Values, *names: str) -> bool:
    """Whether the file itself says one of some facts, rather than a default."""
    if any(values.key_of(name) is not None for name in names):
        return True
    view = values.view
    return view is not None and any(
        view.has(path) for name in names for *_, paths, _ in values.bindings.get(name, ()) for path in paths
    )


def shape_of(values: Values) -> Shape:
    """Return the layout of a config. Raises UsageError if it trains nothing or its layout is unknown."""
    if values["trains"] is False:
        raise UsageError("this config trains nothing, so it has no batch to plan")
    train, dp = whole(values["train_gpus"]), whole(values["train_dp"])
    sizes = [whole(values[name]) for name in ("train_tp", "pp", "cp", "sp")]
    if train and dp and train % dp == 0:
        copy = train // dp
    elif None not in sizes:
        copy = prod(size or 0 for size in sizes)
    else:
        raise UsageError("cannot tell how many GPUs share one copy of the model: set train_tp, pp and cp")
    apart = values["generates"] is not False and values["colocated"] is False
    micro = whole(values["micro_batch_size"])
    tokens = whole(values["max_tokens_per_microbatch"]) if micro is None else None
    backend, shard = values["train_backend"], whole(values["dp_shard"]) or 0
    nodes, per_node = whole(values["num_nodes"]), whole(values["gpus_per_node"])
    fsdp = backend == "fsdp" and shard > 0
    return Shape(
        copy=copy,
        aside=(whole(values["rollout_gpus"]) or 0) if apart else 0,
        colocated=values["colocated"],
        backend=text_of(backend),
        shard=shard if fsdp else 0,
        full_shard=fsdp and shard == (dp or 0),
        per_node=per_node if (nodes or 1) > 1 else None,
        tokens=tokens,
        batch=whole(values["effective_batch_size"]),
        gpus=whole(values["num_gpus"]),
        micro=micro,
        accum=whole(values["grad_accum"]),
        stage=whole(values["zero_stage"]) if backend == "deepspeed" else None,
        checkpointing=text_of(values["gradient_checkpointing"]),
        n_samples=whole(values["n_samples"]) or 1,
        n_minibatches=whole(values["n_minibatches"]) or 1,
    )


# ── what reaches a batch ─────────────────────────────────────────────────────────────────────────────────
def divisors(number: int) -> list[int]:
    """Return the divisors of a number, the smallest first."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def ranks(shape: Shape, gpus: int) -> int | str:
    """Return how many data-parallel ranks a number of GPUs makes, or why it makes none."""
    train = gpus - shape.aside
    if train < shape.copy:
        least = shape.copy + shape.aside
        return f"the job needs at least {least}"
    if train % shape.copy:
        return f"{train} is not a multiple of the {shape.copy} GPUs that share one copy of the model"
    dp = train // shape.copy
    if shape.shard and not shape.full_shard and dp % shape.shard:
        return f"{dp} ranks do not divide into shards of {shape.shard}"
    return dp


def gpu_counts(shape: Shape, ask: Ask, target: Target | None, *, stated: bool) -> tuple[int, ...]:
    """Return the numbers of GPUs to combine: as asked, the target's, the config's, or 1, 2, 4 up to 64."""
    if ask.gpus:
        return ask.gpus
    if target is not None and target.count is not None:
        return (target.count,)
    if stated and shape.gpus:
        return (shape.gpus,)
    counts, dp = [], 1
    while (gpus := dp * shape.copy + shape.aside) <= max(MOST_GPUS, shape.copy + shape.aside):
        counts.append(gpus)
        dp *= 2
    return tuple(counts)


def budgets(shape: Shape, ask: Ask) -> list[int]:
    """Return the token budgets to combine."""
    assert shape.tokens is not None
    return list(ask.micros) or sorted({max(1, int(shape.tokens * share)) for share in _BUDGETS})


def _cut(shape: Shape, batch: int, gpus: int) -> int | str:
    """Return how many data-parallel ranks share ``batch``, or why none do."""
    dp = ranks(shape, gpus)
    if isinstance(dp, int) and batch % dp:
        return f"{batch} is not a multiple of the data-parallel ranks"
    if isinstance(dp, int) and shape.tokens is not None and batch * shape.n_minibatches % shape.n_samples:
        return f"{batch} is not a whole number of prompts with {shape.n_samples} answers each"
    return dp


def choices(shape: Shape, ask: Ask, batch: int, gpus: int) -> Iterator[Choice]:
    """Yield every combination that makes exactly ``batch`` sequences per step on a number of GPUs."""
    dp = _cut(shape, batch, gpus)
    if isinstance(dp, str):
        return
    each = batch // dp
    for stage, checkpointing in product(ask.stages or (None,), ask.checkpointing or (None,)):
        if shape.tokens is not None:
            for tokens in budgets(shape, ask):
                yield Choice(batch, gpus, dp, None, None, tokens, stage, checkpointing)
            continue
        for micro in divisors(each):
            if not ask.micros or micro in ask.micros:
                yield Choice(batch, gpus, dp, micro, each // micro, None, stage, checkpointing)


def unreachable(shape: Shape, ask: Ask, batch: int, gpus: int) -> str | None:
    """Return why no combination makes ``batch`` on a number of GPUs; None if one does."""
    dp = _cut(shape, batch, gpus)
    if isinstance(dp, str):
        return dp
    if next(choices(shape, ask, batch, gpus), None) is not None:
        return None
    return f"{batch // dp} per rank is not a multiple of a micro-batch of {' or '.join(map(str, ask.micros))}"


def nearest(shape: Shape, ask: Ask, batch: int, counts: Sequence[int]) -> list[int]:
    """Return the nearest reachable batches below and above an unreachable one."""
    units = set()
    sizes = (shape.n_samples,) if shape.tokens is not None else ask.micros or (1,)
    for gpus in counts:
        dp = ranks(shape, gpus)
        if isinstance(dp, int):
            units |= {dp * size for size in sizes}
    below = max((batch // unit * unit for unit in units), default=0)
    above = min((-(-batch // unit) * unit for unit in units), default=0)
    return [near for near in dict.fromkeys((below, above)) if near > 0]


# ── what a combination takes ─────────────────────────────────────────────────────────────────────────────
class Planner:
    """Rows of one document on one target. ``given`` are facts beside the target's, such as ``samples``."""

    def __init__(self, subject: Subject, target: Target, given: Mapping[str, object] | None = None) -> None:
        self.target = target
        self.given = {**given_by(target), **(given or {})}
        self.values = values_for(subject, self.given)
        self.shape = shape_of(self.values)
        self.subject = settled(subject, self.values)
        self._alike: dict[frozenset[str], dict[str, object]] = {}
        self._rest: dict[tuple[object, ...], dict[str, object]] = {}

    def facts(self, choice: Choice) -> dict[str, object]:
        """Return the facts of a combination."""
        shape, dp = self.shape, choice.data_parallel
        train = choice.gpus - shape.aside
        facts: dict[str, object] = {"num_gpus": choice.gpus, "train_gpus": train, "train_dp": dp}
        if shape.full_shard:
            facts["dp_shard"] = dp
        if choice.micro_batch_tokens is not None:
            facts["max_tokens_per_microbatch"] = choice.micro_batch_tokens
            facts["rollout_batch_size"] = choice.batch * shape.n_minibatches // shape.n_samples
        else:
            facts |= {"micro_batch_size": choice.micro_batch, "grad_accum": choice.accumulation}
        if choice.zero_stage is not None:
            facts["zero_stage"] = choice.zero_stage
            if shape.backend == "deepspeed":
                facts["train_backend"] = "deepspeed"  # its optimizer stays what it is at stage 0
        if choice.checkpointing is not None:
            facts["gradient_checkpointing"] = choice.checkpointing
        if stated(self.values, "effective_batch_size"):  # it goes with its factors
            facts["effective_batch_size"] = choice.batch
        return facts

    def hardware(self, gpus: int) -> dict[str, object]:
        """Return the machines that a number of GPUs is in."""
        each = min(self.per_node or gpus, gpus)
        return {"gpu.count": gpus, "gpu.nodes": self.machines(gpus), "gpu.per_node": each}

    def machines(self, gpus: int) -> int:
        """Return how many machines a number of GPUs takes, by what the target or the config has."""
        return -(-gpus // self.per_node) if self.per_node else 1

    @property
    def per_node(self) -> int | None:
        """GPUs of each machine, where there are several."""
        return self.target.gpus_per_node if (self.target.nodes or 1) > 1 else self.shape.per_node

    def row(self, choice: Choice, number: int = 0) -> PlanRow | None:
        """Return a combination's row; None if the rules compute another batch or placement."""
        facts = self.facts(choice)
        values = self._values({**self.hardware(choice.gpus), **facts})
        before, after = self.shape.colocated, values["colocated"]
        moved = type(after) is not type(before) or (after in (True, False) and after != before)
        if equal(values["effective_batch_size"], choice.batch) is not True or moved:
            return None
        return PlanRow(
            number,
            choice,
            row_of(values, self.target),
            tuple(facts.items()),
            _seconds(values["step.time"]),
            _seconds(values["epoch.time"]),
            now=self._is_now(choice),
        )

    def steps(self, batch: int) -> int | None:
        """Return the optimizer steps of an epoch, None without a number of samples."""
        return whole(values_for(self.subject, {**self.given, "effective_batch_size": batch})["epoch.steps"])

    def _is_now(self, choice: Choice) -> bool:
        shape, tokens = self.shape, choice.micro_batch_tokens
        same = (choice.batch, choice.gpus, tokens) == (shape.batch, shape.gpus, shape.tokens)
        if choice.micro_batch is not None:
            same = same and (choice.micro_batch, choice.accumulation) == (shape.micro, shape.accum)
        same = same and choice.zero_stage in (None, shape.stage)
        return same and choice.checkpointing in (None, shape.checkpointing)

    def _values(self, new: Mapping[str, object]) -> Values:
        """Return the facts of a combination, with what others have computed and what it does not touch."""
        given = {**self.given, **new}
        values = values_for(self.subject, given)
        key = tuple(sorted((name, value) for name, value in new.items() if name != "grad_accum"))
        if key not in self._rest:
            self._rest[key] = self._without_accumulation(given, new)
        values.update(self._rest[key])
        return values

    def _without_accumulation(
        self, given: Mapping[str, object], new: Mapping[str, object]
    ) -> dict[str, object]:
        """Return what does not depend on the accumulation, computed on what no combination moves."""
        names = frozenset(new)
        if names not in self._alike:
            self._alike[names] = self._computed(given, {*names, "effective_batch_size"}, {})
        return self._computed(given, {"grad_accum", "effective_batch_size"}, self._alike[names])

    def _computed(
        self, given: Mapping[str, object], moved: set[str], known: Mapping[str, object]
    ) -> dict[str, object]:
        values = watched(self.subject, given)
        values.update(known)
        row_of(values, self.target)
        for name in ("step.time", "epoch.time", "colocated"):
            values[name]
        return values.without(values.resting_on(moved))

    def batch(self, ask: Ask, size: int, counts: Sequence[int]) -> Batch:
        """Return all rows of an effective batch, by GPUs, stage, checkpointing and micro-batch."""
        rows: list[PlanRow] = []
        without: list[Unreached] = []
        for gpus in counts:
            why = unreachable(self.shape, ask, size, gpus)
            if why is not None:
                without.append(Unreached(gpus, why))
                continue
            own = [self.row(choice) for choice in choices(self.shape, ask, size, gpus)]
            if not any(own):
                why = "the config's own keys give another batch, or place the job differently"
                without.append(Unreached(gpus, why))
            rows += [row for row in own if row is not None]
        numbered = tuple(replace(row, number=i) for i, row in enumerate(rows, 1))
        return Batch(size, self.steps(size), numbered, tuple(without))


def _seconds(value: object) -> Span | None:
    """Return a duration as a span; None where it is not known."""
    low, high = bounds_of(value) or (0, INF)
    return Span(max(low, 0), high) if high < INF and not needs_of(value) else None
