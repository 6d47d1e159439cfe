"""The page of a plan: for each batch a table, the row to take, and why not the others."""

from __future__ import annotations

from itertools import groupby

from cfglint.features.fit.page import wanting
from cfglint.features.plan.ranking import Plan, Planned, Rival, rounded
from cfglint.report.blocks import (
    DASH,
    Blank,
    Cell,
    Column,
    Markup,
    Paragraph,
    Range,
    Table,
    about,
    gib,
    heading,
    item,
    many,
    note,
    range_of,
    spread,
    verdict,
    with_capacity,
)
from cfglint.report.encode import encode, picked
from cfglint.report.verdicts import said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from cfglint.features.plan.compute import Choice, PlanRow
    from cfglint.features.plan.writer import Taken
    from cfglint.findings import Span
    from cfglint.report import Style
    from cfglint.report.blocks import AnyCell, Block

_LAUNCHED = {
    "num_gpus": "GPUs in all", "train_gpus": "GPUs for the trainer", "train_dp": "data-parallel ranks",
}  # fmt: skip
_OF_PLAN = ("target", "capacity_gib", "samples", "checkpointing_added", "needs")  # what JSON has of them
_OF_ROW = ("need_gib", "verdict", "step_s", "epoch_s", "now")
# seconds, and up to how many of it
_UNITS = (("s", 1, 600), ("min", 60, 180), ("h", 3600, 200), ("d", 86400, 0))
_GPU_TIME = {"s": "GPU-seconds", "min": "GPU-minutes", "h": "GPU-hours"}


def page(plans: Sequence[Plan], style: Style, *, every: bool) -> Iterator[Block]:
    """Yield for each plan a headline, then its batches, then what the numbers rest on."""
    for i, plan in enumerate(plans):
        if i:
            yield Blank()
        target = with_capacity(plan.target, plan.capacity_gib)
        yield heading(f"{about(plan.path, plan.framework, plan.model)} on {target}")
        if settings(plan) or style.markdown:
            yield Paragraph(settings(plan))
        if plan.now is not None:
            yield Paragraph(f"now: {combination(plan.now)} = effective batch {plan.now.batch:,}")
        for planned in plan.batches:
            yield Blank()
            yield heading(_title(planned, plan))
            yield from _batch(planned, style, every=every)
        yield Blank()
        yield from map(note, notes(plan))
        rows = sum(len(planned.batch.rows) for planned in plan.batches)
        hidden = 0 if every else rows - sum(len(matter(planned)) for planned in plan.batches)
        if style.markdown:
            if hidden:
                yield note(f"{hidden} more rows with --all")
            continue
        for wanted in plan.wanted:
            yield Paragraph(f"missing: {wanting(wanted, tries=False)}")
        if hidden:
            yield note(f"{rows - hidden} of {rows} rows are shown; --all shows every one")


def _batch(planned: Planned, style: Style, *, every: bool) -> Iterator[Block]:
    rows = list(planned.batch.rows) if every else matter(planned)
    if rows or style.markdown:
        yield _table(rows, planned, style)
    for text in _unreached(planned):
        yield item(text, lead="  ", rest="    ")
    if planned.advice.fewest_gpus is not None:
        text = f"fewest GPUs on which a row certainly fits: {planned.advice.fewest_gpus:,}"
        yield item(text, lead="  ", rest="    ")
    color = "yellow" if planned.advice.best is None else "green"
    for i, text in enumerate(recommended(planned) if rows or style.markdown else ()):
        yield item(text, "" if i else color, lead="    " if i else "  ", rest="      ")


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────
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
        for _, alike in groupby(rows, key=lambda row: (row.choice.zero_stage, row.choice.checkpointing)):
            group = list(alike)
            fitting = [i for i, row in enumerate(group) if row.verdict == "fits"]
            if fitting:
                kept |= {row.number for row in group[fitting[-1] : fitting[-1] + 2]}
        if not any(row.verdict == "fits" for row in rows):
            kept.add(min(rows, key=lambda row: (row.need_gib.high, row.need_gib.low, row.number)).number)
    return [row for row in planned.batch.rows if row.number in kept]


def _table(rows: Sequence[PlanRow], planned: Planned, style: Style) -> Table:
    """Return the rows; in a terminal that is too narrow, columns of time are left out."""
    best = planned.advice.best
    chosen = [best is not None and row.number == best.number for row in rows]
    arrow = "→" if style.unicode else ">"
    numbers = [str(row.number) for row in rows]
    columns = []
    if style.markdown:
        columns.append(Column("", [Markup(f"**{arrow}**" if mark else "") for mark in chosen], left=True))
    else:
        numbers = [f"{arrow} {n}" if mark else n for n, mark in zip(numbers, chosen, strict=True)]
    columns += [Column("row", numbers), *_axes(rows, style)]
    columns.append(Column("need, GiB", [range_of(row.need_gib, 1) for row in rows]))
    verdicts = [verdict(row.fit, " (now)" if row.now else "", brief=True) for row in rows]
    columns += [Column("verdict", verdicts, left=True), *_times(rows)]
    if not style.markdown and any(row.now for row in rows):
        columns.append(Column("", [Cell([("now" if row.now else "", "dim")]) for row in rows], left=True))
    bold = () if style.markdown else {i for i, mark in enumerate(chosen) if mark}
    return Table(columns, bold=bold)


def _axes(rows: Sequence[PlanRow], style: Style) -> Iterator[Column]:
    """Yield the columns that say what a row combines."""
    choices = [row.choice for row in rows]
    for head, texts in (
        ("GPUs", [f"{choice.gpus:,}" for choice in choices]),
        ("tokens", [_number(choice.micro_batch_tokens) for choice in choices]),
        ("micro", [_number(choice.micro_batch) for choice in choices]),
        ("accum", [_number(choice.accumulation) for choice in choices]),
        ("ZeRO", [_number(choice.zero_stage) for choice in choices]),
        ("ckpt", [choice.checkpointing or "" for choice in choices]),
    ):
        if any(texts):
            yield Column(head, texts, left=head == "ckpt" and style.markdown)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _times(rows: Sequence[PlanRow]) -> Iterator[Column]:
    """Yield the columns of time: of a step, of an epoch, and GPU-hours; none where nothing is known."""
    steps, epochs = [row.step_s for row in rows], [row.epoch_s for row in rows]
    for head, spans, drop in (("step", steps, 1 if any(epochs) else 4), ("epoch", epochs, 3)):
        if any(spans):
            unit, worth = _scale(spans)
            yield Column(f"{head}, {unit}", _durations(spans, worth), drop=drop)
    if any(row.work for row in rows):
        unit, worth = _work_scale(rows)
        yield Column(f"GPU-{unit}", _durations([row.work for row in rows], worth), drop=2)


def _scale(spans: Sequence[Span | None]) -> tuple[str, int]:
    """Return the unit in which durations of a column are told, and its seconds."""
    most = max((span.high for span in spans if span is not None), default=0)
    return next((unit, worth) for unit, worth, upto in _UNITS if most < upto * worth or not upto)


def _work_scale(rows: Sequence[PlanRow]) -> tuple[str, int]:
    """Return the unit of GPU time that rows are told in, and its seconds."""
    unit, worth = _scale([row.work for row in rows])
    return ("h", 3600) if unit == "d" else (unit, worth)  # GPUs are rented by the hour


def _durations(spans: Sequence[Span | None], worth: int) -> list[AnyCell]:
    return ["?" if span is None else _range(span, worth) for span in spans]


def _range(span: Span, worth: float = 1) -> Range:
    return Range(short(span.low / worth), short(span.high / worth))


def short(value: float) -> str:
    """Return a number in two digits or so: ``0.03``, ``5.5``, ``12``, ``1,204``; whole ones as they are."""
    if 0 < value < 0.095:
        return f"{value:.1g}"
    return f"{value:.1f}" if round(value, 1) < 10 and value != int(value) else f"{value:,.0f}"


# ── what a plan is about ─────────────────────────────────────────────────────────────────────────────────
def settings(plan: Plan) -> str:
    """Return what all rows have that do not say otherwise: ``deepspeed ZeRO-3, 2,048 tokens, …``."""
    backend = plan.backend or ""
    if plan.stage is not None:
        backend = f"{backend} ZeRO-{plan.stage}"
    tokens = "" if plan.seq_len is None else f"sequences of {plan.seq_len:,} tokens"
    return ", ".join(part for part in (backend, tokens, _checkpointing(plan.checkpointing)) if part)


def _checkpointing(kind: str | None) -> str:
    return {None: "", "none": "no checkpointing"}.get(kind, f"{kind} checkpointing")


def _title(planned: Planned, plan: Plan) -> str:
    """Return the head of a batch: ``effective batch 64: 782 steps per epoch, the last one short``."""
    batch = planned.batch
    text = f"effective batch {batch.effective_batch:,}"
    if batch.steps_per_epoch is None or plan.samples is None:
        return text
    left = plan.samples % batch.effective_batch
    rest = ""
    if left:
        rest = f", {left:,} samples left out" if plan.drop_last else f", {left:,} in the last"
    return f"{text}: {many(batch.steps_per_epoch, 'step')} per epoch of {plan.samples:,} samples{rest}"


def notes(plan: Plan) -> list[str]:
    """Return what the numbers rest on."""
    texts = ["need: memory on the most loaded GPU"]
    if plan.aside:
        texts.append(f"{plan.aside:,} of the GPUs generate and do not train")
    if plan.checkpointing_added:
        texts.append("nothing fits as configured, so rows with full checkpointing were added")
    if plan.timeless:
        texts.append(f"no time: {plan.timeless}")
    elif plan.utilisation is not None and plan.rate is not None:
        share = Range(short(plan.utilisation.low * 100), short(plan.utilisation.high * 100))
        texts.append(_time(plan, share, plan.rate))
    return texts


def _time(plan: Plan, share: Range, rate: float) -> str:
    text = f"time: operations of a step at {share} % of {rate / 1e12:g} TFLOPS (dense, 16 bits) per GPU"
    if plan.link is not None:
        link = _range(plan.link, 1e9)
        text += f"; traffic between GPUs over PCIe at {link} GB/s, at best overlapped, at worst on top"
    if plan.sample_tokens is not None:
        text += f"; {plan.sample_tokens:,.0f} tokens per sample"
        if plan.sample_tokens == plan.seq_len:
            text += ", the longest"
    if plan.machines > 1:
        text += f"; the network between {plan.machines:,} machines is not counted"
    return text


# ── which row to take ────────────────────────────────────────────────────────────────────────────────────
def combination(choice: Choice) -> str:
    """Return ``16 GPUs, micro-batch 2, 2 accumulation steps``."""
    parts = [
        many(choice.gpus, "GPU"),
        _size(choice),
        "" if choice.accumulation is None else many(choice.accumulation, "accumulation step"),
        "" if choice.zero_stage is None else f"ZeRO-{choice.zero_stage}",
        _checkpointing(choice.checkpointing),
    ]
    return ", ".join(part for part in parts if part)


def _size(choice: Choice) -> str:
    if choice.micro_batch_tokens:
        return f"micro-batches of {choice.micro_batch_tokens:,} tokens"
    return f"micro-batch {choice.micro_batch:,}"


def takes(row: PlanRow) -> str:
    """Return ``20.79-30.46 of 23.51 GiB: tight``."""
    of = f" of {gib(row.fit.capacity_gib)}" if row.fit.capacity_gib is not None else ""
    return f"{spread(row.need_gib)}{of} GiB: {said(row.fit)}"


def _unreached(planned: Planned) -> list[str]:
    """Return why some numbers of GPUs do not reach a batch, those with one reason together."""
    counts: dict[str, list[int]] = {}
    for without in planned.batch.without:
        counts.setdefault(without.why, []).append(without.gpus)
    return [f"not on {_listed(gpus)} GPU{'s' * (gpus != [1])}: {why}" for why, gpus in counts.items()]


def _listed(numbers: Sequence[int]) -> str:
    *first, last = [f"{n:,}" for n in numbers]
    return f"{', '.join(first)} or {last}" if first else last


def recommended(planned: Planned) -> list[str]:
    """Return what to take and why, the first sentence first; or what comes closest."""
    rows, best = planned.batch.rows, planned.advice.best
    if best is None:
        return _nothing(planned)
    fitting = sum(row.verdict == "fits" for row in rows)
    if fitting == 1:
        why = "the only row that certainly fits"
    elif best.work is not None:
        why = f"of the {fitting} rows that certainly fit, the cheapest in the worst case"
    else:
        why = f"of the {fitting} rows that certainly fit, the one that recomputes least on the fewest GPUs"
    if best.work is not None:
        unit, worth = _work_scale(rows)
        per = "epoch" if best.epoch_s is not None else "step"
        why += f", {_range(best.work, worth)} {_GPU_TIME[unit]} per {per}"
    against = [_against(rival, planned, best) for rival in planned.advice.rivals]
    return [f"take row {best.number}, {combination(best.choice)}: {why}", *against]


def _against(rival: Rival, planned: Planned, best: PlanRow) -> str:
    row, choice = rival.row, rival.row.choice
    if rival.kind in ("gpus", "more"):
        return _other_gpus(rival, planned, best)
    if rival.kind == "micro":
        what, instead = _size(choice), ""
    elif rival.kind == "stage":
        what = f"ZeRO-{choice.zero_stage}"
        instead = f"{what} would fit too, and sends less (--zero-stage {choice.zero_stage})"
    else:
        what = "without checkpointing it"
        instead = "it would fit without checkpointing too, and computes less (--checkpointing off)"
    return instead if instead and row.verdict == "fits" else f"{what} would take {takes(row)}"


def _other_gpus(rival: Rival, planned: Planned, best: PlanRow) -> str:
    row, choice = rival.row, rival.row.choice
    gpus = many(choice.gpus, "GPU")
    if row.verdict != "fits":
        return f"{gpus} would take {takes(row)} ({_size(choice)})"
    if row.work is None or best.work is None:
        return f"{gpus} are enough too" if rival.kind == "gpus" else f"{gpus} are not needed"
    text = f"{gpus} at {_size(choice)} (row {row.number})"
    if rounded(row.work.high) <= rounded(best.work.high):
        return f"{text} cost as much and are {choice.gpus / best.choice.gpus:g} times as fast"
    unit, worth = _work_scale(planned.batch.rows)
    most, least = short(row.work.high / worth), short(best.work.high / worth)
    return f"{text} cost up to {most} {_GPU_TIME[unit]} instead of {least}"


def _nothing(planned: Planned) -> list[str]:
    advice, row = planned.advice, planned.advice.closest
    if row is None:
        return ["no row"]
    if all(each.verdict == "unknown" for each in planned.batch.rows):
        return ["no row could be judged"]
    texts = [
        f"no row certainly fits; the closest is row {row.number}, {combination(row.choice)}: {takes(row)}"
    ]
    if advice.enough is not None:
        texts.append(f"{combination(advice.enough.choice)}, is enough: {takes(advice.enough)}")
    if advice.smallest_gpu is not None:
        gpu = with_capacity(advice.smallest_gpu.gpu, advice.smallest_gpu.capacity_gib)
        texts.append(f"the smallest GPU on which that row certainly fits is {gpu}")
    return texts


# ── the row that was taken ───────────────────────────────────────────────────────────────────────────────
def what_was_taken(taken: Taken, row: PlanRow) -> list[str]:
    """Say what was set, what is left to the launch, and what that comes to."""
    lines = [f"row {row.number}: {combination(row.choice)}; {takes(row)}"]
    for change in taken.changes:
        was = "" if change.old is None else f" (was {change.old})"
        lines.append(f"set {change.key} to {change.new}{was}")
    if not taken.changes:
        lines.append("nothing in the file needs to change")
    for name, value in taken.launch.items():
        what = f"{value} {_LAUNCHED[name]}" if name in _LAUNCHED else f"{name} {value}"
        lines.append(f"no key of the file sets this; set it at launch: {what}")
    return lines + [f"cfglint check then finds {code}" for code in taken.broken]


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────
def as_data(plans: Sequence[Plan]) -> dict[str, Any]:
    """Return plans as ``schemas/plan.schema.json`` describes them."""
    return {
        "version": 1,
        "path": plans[0].path,
        "plans": [
            {
                **picked(plan, _OF_PLAN),
                "notes": [text.replace(DASH, "-") for text in notes(plan)],
                "batches": [_batch_data(planned) for planned in plan.batches],
            }
            for plan in plans
        ],
    }


def _batch_data(planned: Planned) -> dict[str, Any]:
    advice, batch = planned.advice, planned.batch
    return {
        "effective_batch": batch.effective_batch,
        "steps_per_epoch": batch.steps_per_epoch,
        "rows": [_row(row) for row in batch.rows],
        "without": encode(batch.without),
        "fewest_gpus": advice.fewest_gpus,
        "recommended": None if advice.best is None else advice.best.number,
        "closest": None if advice.closest is None else advice.closest.number,
        "enough": None if advice.enough is None else _row(advice.enough),
        "smallest_gpu": encode(advice.smallest_gpu),
        "reasons": [text.replace(DASH, "-") for text in recommended(planned)] if batch.rows else [],
    }


def _row(row: PlanRow) -> dict[str, Any]:
    return {"row": row.number or None, **encode(row.choice, omit=("batch",)), **picked(row, _OF_ROW)}
