"""Numbers and sentences that the forms of a plan share."""

from __future__ import annotations

from itertools import groupby

from cfglint.engine.memory import Span
from cfglint.features.fit.words import DASH, gib, spread
from cfglint.features.plan.ranking import rounded
from cfglint.report.order import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.features.plan.compute import Batch, Choice, PlanRow
    from cfglint.features.plan.ranking import Plan, Planned, Rival

_UNITS = (
    ("s", 1, 600),
    ("min", 60, 180),
    ("h", 3600, 200),
    ("d", 86400, 0),
)  # seconds, and up to how many of it


def scale(spans: Sequence[Span | None]) -> tuple[str, int]:
    """Return the unit in which durations of a column are told, and its seconds."""
    most = max((span.high for span in spans if span is not None), default=0)
    return next((unit, worth) for unit, worth, upto in _UNITS if most < upto * worth or not upto)


def short(value: float) -> str:
    """Return a number in two digits or so: ``0.03``, ``5.5``, ``12``, ``1,204``; whole ones as they are."""
    if 0 < value < 0.095:
        return f"{value:.1g}"
    return f"{value:.1f}" if round(value, 1) < 10 and value != int(value) else f"{value:,.0f}"


def between(span: Span | None, worth: float = 1, *, dash: str = DASH) -> str:
    """Return ``5.5-19`` in a unit of ``worth`` seconds, ``?`` where nothing is known."""
    if span is None:
        return "?"
    low, high = short(span.low / worth), short(span.high / worth)
    return low if low == high else f"{low}{dash}{high}"


def flush(spans: Sequence[Span | None], worth: float, *, dash: str = DASH) -> list[str]:
    """Return spans as cells whose upper bounds stand below each other."""
    highs = [short(span.high / worth) if span is not None else "?" for span in spans]
    width = max(map(len, highs), default=0)
    return [
        "?" if span is None else f"{short(span.low / worth)} {dash} {high:>{width}}"
        for span, high in zip(spans, highs, strict=True)
    ]


def headline(plan: Plan) -> str:
    """Return what the plan is about."""
    about = ", ".join(part for part in (plan.framework, plan.model) if part)
    told = f"{shown(plan.path)} ({shown(about)})" if about else shown(plan.path)
    size = f" ({gib(plan.capacity)} GiB)" if plan.capacity is not None else ""
    return f"{told} on {shown(plan.target)}{size}"


def settings(plan: Plan) -> str:
    """Return what all rows have that do not say otherwise: ``deepspeed ZeRO-3, 2,048 tokens, …``."""
    backend = plan.backend or ""
    if plan.stage is not None:
        backend = f"{backend} ZeRO-{plan.stage}"
    found = [backend] if backend else []
    if plan.seq_len is not None:
        found.append(f"sequences of {plan.seq_len:,} tokens")
    if plan.checkpointing is not None:
        found.append(
            "no checkpointing" if plan.checkpointing == "none" else f"{plan.checkpointing} checkpointing"
        )
    return ", ".join(found)


def now(plan: Plan) -> str:
    """Return what the config combines as it stands, ``now 2 GPUs, micro-batch 4, … = effective batch 32``."""
    return (
        ""
        if plan.now is None
        else f"as it stands: {combination(plan.now)} = effective batch {plan.now.batch:,}"
    )


def title(planned: Planned, plan: Plan) -> str:
    """Return the head of a batch: ``effective batch 64: 782 steps per epoch, the last one short``."""
    batch = planned.batch
    told = f"effective batch {batch.size:,}"
    if batch.steps is None or plan.samples is None:
        return told
    rest = plan.samples % batch.size
    left = ""
    if rest:
        left = f", {rest:,} samples left out" if plan.drop_last else f", {rest:,} in the last"
    return (
        f"{told}: {batch.steps:,} step{'s' * (batch.steps != 1)} per epoch of {plan.samples:,} samples{left}"
    )


def matter(planned: Planned) -> list[PlanRow]:
    """Return the rows worth a look.

    Of each number of GPUs, stage and checkpointing the largest micro-batch that fits and the next one,
    which does not; of a number of GPUs where none fits, the row that comes closest. And what the config
    has.
    """
    advice = planned.advice
    kept = {row.number for row in (advice.best, advice.closest) if row is not None}
    kept |= {row.number for row in planned.batch.rows if row.now}
    for _, same in groupby(planned.batch.rows, key=lambda row: row.choice.gpus):
        rows = list(same)
        for _, alike in groupby(rows, key=lambda row: _kind(row.choice)):
            group = list(alike)
            fitting = [i for i, row in enumerate(group) if row.verdict == "fits"]
            if fitting:
                kept |= {row.number for row in group[fitting[-1] : fitting[-1] + 2]}
        if not any(row.verdict == "fits" for row in rows):
            kept.add(min(rows, key=lambda row: (row.need_gib.high, row.need_gib.low, row.number)).number)
    return [row for row in planned.batch.rows if row.number in kept]


def _kind(choice: Choice) -> tuple[object, ...]:
    return choice.gpus, choice.stage, choice.checkpointing


def combination(choice: Choice) -> str:
    """Return ``16 GPUs, micro-batch 2, 2 accumulation steps``."""
    found = [f"{choice.gpus:,} GPU{'s' * (choice.gpus != 1)}"]
    found.append(_size(choice))
    if choice.accum is not None:
        found.append(f"{choice.accum:,} accumulation step{'s' * (choice.accum != 1)}")
    if choice.stage is not None:
        found.append(f"ZeRO-{choice.stage}")
    if choice.checkpointing is not None:
        found.append(
            "no checkpointing" if choice.checkpointing == "none" else f"{choice.checkpointing} checkpointing"
        )
    return ", ".join(found)


def taken(row: PlanRow, *, dash: str = DASH) -> str:
    """Return ``20.79-30.46 of 23.51 GiB: tight``."""
    of = f" of {gib(row.fit.capacity_gib)}" if row.fit.capacity_gib is not None else ""
    return f"{spread(row.need_gib, dash=dash)}{of} GiB: {row.verdict}"


def work_scale(rows: Sequence[PlanRow]) -> tuple[str, str, int]:
    """Return the unit of GPU time that rows are told in: its sign, its name, its seconds."""
    unit, worth = scale([row.work for row in rows])
    if unit == "d":  # GPUs are rented by the hour
        unit, worth = "h", 3600
    return f"GPU-{unit}", {"s": "GPU-seconds", "min": "GPU-minutes", "h": "GPU-hours"}[unit], worth


def recommended(planned: Planned, *, dash: str = DASH) -> list[str]:
    """Return what to take and why, the first sentence first; or what comes closest."""
    advice, batch = planned.advice, planned.batch
    best = advice.best
    if best is None:
        return _nothing(planned, dash=dash)
    fitting = sum(row.verdict == "fits" for row in batch.rows)
    if fitting == 1:
        why = "the only row that fits for sure"
    elif best.work is not None:
        why = f"of the {fitting} rows that fit for sure the one that costs least at worst"
    else:
        why = f"of the {fitting} rows that fit for sure the one that computes least again, on the fewest GPUs"
    if best.work is not None:
        _, unit, worth = work_scale(batch.rows)
        per = "epoch" if best.epoch is not None else "step"
        why += f", {between(best.work, worth, dash=dash)} {unit} per {per}"
    return [
        f"take row {best.number}, {combination(best.choice)}: {why}",
        *(_against(r, planned, best, dash) for r in advice.rivals),
    ]


def _size(choice: Choice) -> str:
    return f"micro-batches of {choice.tokens:,} tokens" if choice.tokens else f"micro-batch {choice.micro:,}"


def _against(rival: Rival, planned: Planned, best: PlanRow, dash: str) -> str:
    row, choice = rival.row, rival.row.choice
    if rival.kind == "micro":
        return f"{_size(choice)} would take {taken(row, dash=dash)}"
    if rival.kind in ("gpus", "more"):
        gpus = f"{choice.gpus:,} GPU{'s' * (choice.gpus != 1)}"
        if row.verdict != "fits":
            return f"{gpus} would take {taken(row, dash=dash)} ({_size(choice)})"
        if row.work is None or best.work is None:
            return f"{gpus} would do as well" if rival.kind == "gpus" else f"{gpus} are not needed"
        told = f"{gpus} at {_size(choice)} (row {row.number})"
        if rounded(row.work.high) <= rounded(best.work.high):
            return f"{told} cost as much, and are {choice.gpus / best.choice.gpus:g} times as fast"
        _, unit, worth = work_scale(planned.batch.rows)
        most, least = short(row.work.high / worth), short(best.work.high / worth)
        return f"{told} cost up to {most} {unit} instead of {least}"
    if rival.kind == "stage":
        if row.verdict == "fits":
            return f"ZeRO-{choice.stage} would fit, too, and sends less (--zero-stage {choice.stage})"
        return f"ZeRO-{choice.stage} would take {taken(row, dash=dash)}"
    if row.verdict == "fits":
        return "it would fit without checkpointing, too, and computes less (--checkpointing off)"
    return f"without checkpointing it would take {taken(row, dash=dash)}"


def _nothing(planned: Planned, *, dash: str) -> list[str]:
    advice = planned.advice
    if advice.closest is None:
        return ["no row"]
    row = advice.closest
    unknown = all(one.verdict == "unknown" for one in planned.batch.rows)
    if unknown:
        return ["whether a row fits is not known"]
    told = f"row {row.number}, {combination(row.choice)}: {taken(row, dash=dash)}"
    found = [f"no row fits for sure; closest comes {told}"]
    if advice.enough is not None:
        other = advice.enough
        found.append(f"{combination(other.choice)}, would do: {taken(other, dash=dash)}")
    if advice.smallest is not None:
        name, size = advice.smallest
        found.append(f"the smallest GPU on which that row fits for sure is {shown(name)} ({gib(size)} GiB)")
    return found


def fewest(planned: Planned) -> str:
    """Return the fewest GPUs that work, in a sentence."""
    number = planned.advice.fewest
    return "" if number is None else f"fewest GPUs on which a row fits for sure: {number:,}"


def missing(batch: Batch) -> list[str]:
    """Return why some numbers of GPUs do not reach a batch, those with one reason together."""
    found: dict[str, list[int]] = {}
    for gpus, why in batch.without:
        found.setdefault(why, []).append(gpus)
    return [f"not on {_listed(counts)} GPU{'s' * (counts != [1])}: {why}" for why, counts in found.items()]


def _listed(numbers: Sequence[int]) -> str:
    words = [f"{n:,}" for n in numbers]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def left_out(plan: Plan) -> int:
    """Return how many rows are not shown by default."""
    return sum(len(one.batch.rows) - len(matter(one)) for one in plan.batches)


def notes(plan: Plan, *, dash: str = DASH) -> list[str]:
    """Return what the numbers rest on."""
    found = ["need: memory on the fullest GPU"]
    if plan.aside:
        found.append(f"of the GPUs {plan.aside:,} generate and do not train")
    if plan.added:
        found.append("nothing fits as configured, so rows with full checkpointing were added")
    if plan.timeless:
        found.append(f"no time is given: {plan.timeless}")
        return found
    if plan.utilisation is None or plan.rate is None:
        return found
    share = f"{between(Span(plan.utilisation.low * 100, plan.utilisation.high * 100), dash=dash)} %"
    told = f"time: operations of a step at {share} of {plan.rate / 1e12:g} TFLOPS (dense, 16 bits) per GPU"
    if plan.link is not None:
        link = between(Span(plan.link.low / 1e9, plan.link.high / 1e9), dash=dash)
        told += f"; what GPUs send each other over PCIe at {link} GB/s, at best meanwhile, at worst on top"
    if plan.sample_tokens is not None:
        told += f"; {plan.sample_tokens:,.0f} tokens per sample"
        if plan.sample_tokens == plan.seq_len:
            told += ", the longest there are"
    if plan.machines > 1:
        told += f"; what the network between {plan.machines:,} machines costs is not counted"
    found.append(told)
    return found
