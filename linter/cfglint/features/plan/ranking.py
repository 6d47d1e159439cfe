"""A plan: the recommended row of each batch, how its neighbours compare, what to do if none fits.

The row that costs least: the fewest GPU-seconds at the low end of the utilisation, so that what is computed
again or sent over PCIe counts; then the fewest GPUs, the lowest ZeRO stage, the largest micro-batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.engine.judge import values_for
from cfglint.engine.memory import bounds_of
from cfglint.engine.rows import Wanted, given_by, row_of
from cfglint.errors import UsageError
from cfglint.features.fit.compute import wanted
from cfglint.features.plan.compute import (
    MOST_GPUS,
    OFF,
    ON,
    Ask,
    Batch,
    Choice,
    Planner,
    PlanRow,
    choices,
    gpu_counts,
    nearest,
    stated,
    unreachable,
    whole,
)
from cfglint.findings import Span
from cfglint.hardware.target import Target, all_targets
from cfglint.lang.types import is_number, text_of
from cfglint.record import Value, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.facts import Values

_AGAIN = {"none": 0, "selective": 1, "full": 2}


class Rival(Value):
    """A neighbour of the recommended row; ``kind`` says in what it differs."""

    kind: str  # micro, gpus, more, stage or checkpointing
    row: PlanRow


class Smallest(Value):
    """The smallest GPU of the catalogue on which a row fits."""

    gpu: str
    capacity_gib: float


class Advice(Value):
    """The recommended row of a batch.

    ``best`` is None if no row certainly fits; ``closest`` then comes nearest, and ``smallest_gpu`` the
    smallest GPU on which it fits. ``fewest_gpus`` are the least on which a row fits for sure.
    """

    best: PlanRow | None
    fewest_gpus: int | None
    rivals: tuple[Rival, ...] = ()
    closest: PlanRow | None = None
    enough: PlanRow | None = None
    smallest_gpu: Smallest | None = None


class Planned(Value):
    """A batch with its advice."""

    batch: Batch
    advice: Advice


class Plan(Value):
    """One document on one target.

    ``stage`` and ``checkpointing`` are what rows have that do not say otherwise, ``now`` is what the config
    combines as it is; ``aside`` GPUs of each row generate; ``machines`` is the most that a row
    takes. ``checkpointing_added`` says that it was,
    because nothing fits without. ``samples`` are those of the data set; ``rate`` (operations per second),
    ``utilisation`` and ``link`` (bytes per second over PCIe) are what times rest on; ``timeless`` says why
    there are none. ``needs`` are facts that would settle the memory.
    """

    path: str
    framework: str | None
    model: str | None
    target: str
    capacity_gib: float | None
    batches: tuple[Planned, ...]
    stage: int | None
    backend: str | None
    checkpointing: str | None
    seq_len: int | None
    now: Choice | None = None
    aside: int = 0
    machines: int = 1
    checkpointing_added: bool = False
    samples: int | None = None
    drop_last: bool = False
    sample_tokens: float | None = None
    rate: float | None = None
    utilisation: Span | None = None
    link: Span | None = None
    timeless: str = ""
    needs: tuple[str, ...] = ()
    wanted: tuple[Wanted, ...] = ()


def cost(row: PlanRow) -> tuple[float, ...]:
    """Return the sort key of a row: GPU-seconds, GPUs, ZeRO stage, recomputation, micro-batch."""
    choice = row.choice
    again = _AGAIN.get(choice.checkpointing or "none", 0)
    work = again if row.work is None else rounded(row.work.high)
    return work, choice.gpus, choice.zero_stage or 0, again, -choice.size


def rounded(value: float) -> float:
    """Return a cost with three digits: estimates that differ by less are alike."""
    return float(f"{value:.2e}")


def advise(planner: Planner, batch: Batch, catalogue: Sequence[Target]) -> Advice:
    """Return the recommended row of a batch, and how its neighbours compare."""
    fitting = [row for row in batch.rows if row.verdict == "fits"]
    fewest = min((row.choice.gpus for row in fitting), default=None)
    best = min(fitting, key=cost, default=None)
    if best is not None:
        return Advice(best, fewest, tuple(_rivals(planner, batch, best)))
    closest = min(
        batch.rows,
        key=lambda row: (row.verdict != "tight", row.need_gib.high, row.need_gib.low, cost(row)),
        default=None,
    )
    if closest is None:
        return Advice(None, None)
    return Advice(None, None, (), closest, _enough(planner, closest), _smallest(planner, closest, catalogue))


def _enough(planner: Planner, closest: PlanRow) -> PlanRow | None:
    """Return a row like the closest one on the fewest GPUs, doubled and doubled again, on which one fits."""
    choice = closest.choice
    ask = Ask(
        stages=() if choice.zero_stage is None else (choice.zero_stage,),
        checkpointing=() if choice.checkpointing is None else (choice.checkpointing,),
    )
    gpus = choice.gpus
    while gpus * 2 <= MOST_GPUS:
        gpus *= 2
        rows = [planner.row(one) for one in choices(planner.shape, ask, choice.batch, gpus)]
        fitting = [row for row in rows if row is not None and row.verdict == "fits"]
        if fitting:
            return min(fitting, key=cost)
    return None


def _rivals(planner: Planner, batch: Batch, best: PlanRow) -> Iterator[Rival]:
    choice = best.choice
    larger = [row for row in batch.rows if _beside(row.choice, choice) and row.choice.size > choice.size]
    if larger:
        yield Rival("micro", min(larger, key=lambda row: row.choice.size))
    counts = sorted({row.choice.gpus for row in batch.rows})
    at = counts.index(choice.gpus)
    for kind, gpus in (("gpus", counts[:at][-1:]), ("more", counts[at + 1 :][:1])):
        rows = [row for row in batch.rows if row.choice.gpus in gpus]
        sure = [row for row in rows if row.verdict == "fits"]
        if rows:
            yield Rival(kind, min(sure, key=cost) if sure else min(rows, key=lambda row: row.need_gib.high))
    stage = choice.zero_stage if choice.zero_stage is not None else planner.shape.stage
    without = planner.row(replace(choice, zero_stage=stage - 1)) if stage else None
    if without is not None:
        yield Rival("stage", without)
    again = choice.checkpointing or planner.shape.checkpointing
    without = planner.row(replace(choice, checkpointing=OFF)) if again not in (OFF, None) else None
    if without is not None:
        yield Rival("checkpointing", without)


def _beside(choice: Choice, other: Choice) -> bool:
    """Whether two choices differ in nothing but the micro-batch and the accumulation that follows from it."""
    axes = ("micro_batch", "accumulation", "micro_batch_tokens")
    return replace(choice, **{name: getattr(other, name) for name in axes}) == other


def _smallest(planner: Planner, row: PlanRow, catalogue: Sequence[Target]) -> Smallest | None:
    """Return the smallest GPU of the same vendor on which a row fits, and its memory."""
    vendor = planner.values["gpu.vendor"]
    own = {name for name in planner.target.facts if name.startswith("gpu.")}
    rest = {name: value for name, value in planner.given.items() if name not in own}
    facts = {**rest, **planner.hardware(row.choice.gpus), **dict(row.facts)}
    for target in catalogue:
        if not target.vram_gib or target.vram_gib <= (row.fit.capacity_gib or 0):
            continue
        if target.facts["gpu.vendor"][0] != vendor and isinstance(vendor, str):
            continue
        values = values_for(planner.subject, {**given_by(target), **facts})
        if row_of(values, target).verdict == "fits":
            return Smallest(target.name, target.vram_gib)
    return None


def planned(
    planner: Planner, ask: Ask, counts: Sequence[int], catalogue: Sequence[Target]
) -> tuple[list[Planned], bool]:
    """Return every batch with its advice, and whether checkpointing was added to the rows.

    Where no row of any batch fits and nothing was said of checkpointing, rows with it are added.
    """
    batches = [planner.batch(ask, size, counts) for size in ask.batches]
    verdicts = {row.verdict for batch in batches for row in batch.rows}
    hopeless = "fits" not in verdicts and verdicts != {"unknown"}
    added = hopeless and not ask.checkpointing and planner.shape.checkpointing not in (ON, None)
    if added:
        ask = replace(ask, checkpointing=(planner.shape.checkpointing or OFF, ON))
        batches = [planner.batch(ask, size, counts) for size in ask.batches]
    return [Planned(batch, advise(planner, batch, catalogue)) for batch in batches], added


# ── a plan as a whole ────────────────────────────────────────────────────────────────────────────────────
def plan_of(planner: Planner, ask: Ask, path: str) -> Plan:
    """Return the requested batches with advice. Raises UsageError if none can be reached."""
    ask = _completed(planner, ask, path)
    shape, values, target = planner.shape, planner.values, planner.target
    is_stated = stated(values, "num_gpus", "gpus_per_node", "train_gpus", "train_dp")
    counts = gpu_counts(shape, ask, target, stated=is_stated)
    _reachable(planner, ask, counts)
    if not ask.gpus:
        counts = tuple(
            gpus for gpus in counts if any(unreachable(shape, ask, n, gpus) is None for n in ask.batches)
        )
    catalogue = sorted(
        (t for t in all_targets() if t.vram_gib and not t.facts["gpu.mig"][0]),
        key=lambda t: (t.vram_gib or 0, t.name),
    )
    batches, added = planned(planner, ask, counts, catalogue)
    rows = [row for each in batches for row in each.batch.rows]
    needs = sorted({need for row in rows for need in row.fit.needs})
    unknown = any(row.verdict == "unknown" for row in rows)
    timed = any(row.step_s is not None for row in rows)
    slow = timed and values["link.slow"] is True and any(row.choice.data_parallel > 1 for row in rows)
    return Plan(
        path=planner.subject.document.file.path,
        framework=planner.subject.framework,
        model=text_of(values["model_path"]),
        target=target.name,
        capacity_gib=target.vram_gib,
        batches=tuple(batches),
        stage=None if ask.stages else shape.stage,
        backend=shape.backend,
        checkpointing=None if ask.checkpointing or added else text_of(values["gradient_checkpointing"]),
        seq_len=whole(values["seq_len"]),
        now=shape.now,
        aside=shape.aside,
        machines=max(planner.machines(gpus) for gpus in counts),
        checkpointing_added=added,
        samples=whole(values["samples"]),
        drop_last=values["drop_last"] is True,
        sample_tokens=_number(values["sample_tokens"]),
        rate=_number(values["gpu.tflops"]),
        utilisation=_bounds(values["utilisation"]) if timed else None,
        link=_bounds(values["link.pcie"]) if slow else None,
        timeless="" if timed else _timeless(values),
        needs=tuple(needs),
        wanted=wanted(values, needs) if unknown else (),
    )


def _completed(planner: Planner, ask: Ask, path: str) -> Ask:
    """Return what to combine, with the config's own batch where none was named. Raises UsageError."""
    shape = planner.shape
    if not ask.batches:
        if shape.batch is None:
            raise UsageError(
                f"{path}: its effective batch cannot be computed; give one: --effective-batch 64"
            )
        ask = replace(ask, batches=(shape.batch,))
    if ask.stages and shape.backend not in ("deepspeed", "ddp", None):
        raise UsageError(f"--zero-stage is for DeepSpeed; this config's trainer is {shape.backend}")
    return ask


def _reachable(planner: Planner, ask: Ask, counts: Sequence[int]) -> None:
    """Complain of a batch that no number of GPUs reaches. Raises UsageError."""
    for size in ask.batches:
        why = [unreachable(planner.shape, ask, size, gpus) for gpus in counts]
        if None in why:
            continue
        near = nearest(planner.shape, ask, size, counts)
        advice = f"; the nearest possible: {' and '.join(map(str, near))}" if near else ""
        gpus = ", ".join(map(str, counts))
        raise UsageError(f"--effective-batch {size} cannot be reached on {gpus} GPUs: {why[-1]}{advice}")


def _number(value: object) -> float | None:
    return value if is_number(value) else None


def _bounds(value: object) -> Span | None:
    bounds = bounds_of(value)
    return None if bounds is None else Span(*bounds)


def _timeless(values: Values) -> str:
    task = values["task"]
    if values["generates"] is not False:
        return "the job generates its samples, and no rule models how long that takes"
    if isinstance(task, str) and task not in ("pretrain", "sft", "distill"):
        return f"a sample of {task} is a pair or a group of sequences, which no rule times"
    if _number(values["gpu.tflops"]) is None:
        return f"the dense 16-bit rate of {values['gpu.name']} is not in the catalogue"
    return "the rules give none for this config (cfglint explain says what is missing)"
