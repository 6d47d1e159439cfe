"""``cfglint plan``: what makes up an effective batch on some GPUs, whether it fits, what to take."""

from __future__ import annotations

from cfglint.command import options, output, setup
from cfglint.command.flags import parse
from cfglint.engine.memory import Span
from cfglint.errors import UsageError
from cfglint.features.fit.command import SYMBOLS, _run, _subject
from cfglint.features.plan.compute import (
    STAGES,
    Ask,
    Choice,
    Planner,
    gpu_counts,
    nearest,
    unreachable,
    whole,
)
from cfglint.features.plan.options import CHECKPOINTING, PlanOptions
from cfglint.features.plan.page import render_plan
from cfglint.features.plan.ranking import Plan, planned
from cfglint.hardware.target import all_targets
from cfglint.lang.values import Interval, parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.memory import Wanted
    from cfglint.engine.run import Run
    from cfglint.facts import Values
    from cfglint.features.plan.compute import Shape

_MOST = 10_000_000  # sequences of a batch


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit status."""
    args = options.merged(parse(PlanOptions, arguments))
    asked = _ask(args)
    found, notices = setup.targets(args)
    if not found:
        raise UsageError("cfglint plan wants a GPU: name one, such as --gpu rtx-4090")
    writes = args.write or args.diff or args.row is not None
    if writes and len(found) > 1:
        raise UsageError("one row is written for one GPU: name one --gpu")
    run = _run(args, found)
    subject = _subject(run, args.path, notices)
    given = {"samples": args.samples, "sample_tokens": args.sample_tokens}
    given = {name: value for name, value in given.items() if value is not None}
    plans = []
    for target in run.targets:
        planner = Planner(subject, target, given)
        plans.append(_planned(run, planner, asked, args))
    output.announce(notices, args)
    if writes:
        from cfglint.features.plan.write_command import take

        return take(run, subject, planner, plans[0], args)
    form, every = args.format or "text", args.all or args.verbose
    output.emit(lambda style: render_plan(plans, form, style, every=every), args, SYMBOLS)
    failing = args.fail_on == "oom" and any(one.advice.best is None for plan in plans for one in plan.batches)
    return int(failing)


def _ask(args: PlanOptions) -> Ask:
    stages = args.zero_stage
    return Ask(
        _numbers("--effective-batch", args.effective_batch, 1, _MOST),
        _numbers("--gpus", args.gpus, 1, 1_000_000),
        _numbers("--micro-batch", args.micro_batch, 1, _MOST),
        STAGES if stages == "all" else _numbers("--zero-stage", stages, 0, 3),
        CHECKPOINTING.get(args.checkpointing or "", ()),
    )


def _numbers(flag: str, text: str | None, low: int, high: int) -> tuple[int, ...]:
    """Read ``4,8,16``; each once, the smallest first. Raises UsageError."""
    if text is None:
        return ()
    found = set()
    for word in text.split(","):
        number = word.strip().replace("_", "")
        if not (number.isascii() and number.isdigit() and len(number) <= 9 and low <= int(number) <= high):
            several = "0,1,2,3 or all" if flag == "--zero-stage" else "numbers such as 4,8,16"
            raise UsageError(f"{flag} takes {several}, not {word.strip()!r}")
        found.add(int(number))
    return tuple(sorted(found))


def _planned(run: Run, planner: Planner, asked: Ask, args: PlanOptions) -> Plan:
    shape, values, target = planner.shape, planner.values, planner.target
    if not asked.batches:
        if shape.batch is None:
            raise UsageError(
                f"{args.path}: what effective batch it has is not known; name one: --effective-batch 64"
            )
        asked = Ask((shape.batch,), asked.gpus, asked.micros, asked.stages, asked.checkpointing)
    if asked.stages and shape.backend not in ("deepspeed", "ddp", None):
        raise UsageError(
            f"--zero-stage speaks of DeepSpeed, and the trainer of this config is {shape.backend}"
        )
    counts = gpu_counts(shape, asked, target, stated=_stated(values))
    _reachable(planner, asked, counts)
    if not asked.gpus:
        sizes = asked.batches
        counts = tuple(g for g in counts if any(unreachable(shape, asked, n, g) is None for n in sizes))
    catalogue = sorted(
        (t for t in all_targets() if t.vram_gib and not t.facts["gpu.mig"][0]),
        key=lambda t: (t.vram_gib or 0, t.name),
    )
    batches, added = planned(planner, asked, counts, catalogue)
    needs = sorted({need for one in batches for row in one.batch.rows for need in row.fit.needs})
    rows = [row for one in batches for row in one.batch.rows]
    wanted: tuple[Wanted, ...] = ()
    if any(row.verdict == "unknown" for row in rows):
        from cfglint.features.fit.compute import wanted as missing_facts

        wanted = missing_facts(run.pack, values, planner.subject.framework, needs)
    model, checkpointing, rate = values["model_path"], values["gradient_checkpointing"], values["gpu.tflops"]
    timed = any(row.step_s is not None for row in rows)
    slow = timed and values["link.slow"] is True and any(row.choice.data_parallel > 1 for row in rows)
    return Plan(
        path=planner.subject.document.file.path,
        framework=planner.subject.framework,
        model=model if isinstance(model, str) else None,
        target=target.name,
        capacity_gib=target.vram_gib,
        batches=tuple(batches),
        stage=None if asked.stages else shape.stage,
        backend=shape.backend,
        checkpointing=checkpointing
        if isinstance(checkpointing, str) and not (asked.checkpointing or added)
        else None,
        seq_len=whole(values["seq_len"]),
        now=_now(shape),
        aside=shape.aside,
        machines=max(planner.machines(gpus) for gpus in counts),
        checkpointing_added=added,
        samples=whole(values["samples"]),
        drop_last=values["drop_last"] is True,
        sample_tokens=_plain(values["sample_tokens"]),
        rate=_plain(rate),
        utilisation=_bounds(values["utilisation"]) if timed else None,
        link=_bounds(values["link.pcie"]) if slow else None,
        timeless="" if timed else _timeless(values),
        needs=tuple(needs),
        wanted=wanted,
    )


def _now(shape: Shape) -> Choice | None:
    """Return what the config combines as it stands."""
    if not (shape.batch and shape.gpus and (shape.tokens or (shape.micro and shape.accum))):
        return None
    micro, accum = (None, None) if shape.tokens else (shape.micro, shape.accum)
    return Choice(shape.batch, shape.gpus, 0, micro, accum, shape.tokens)


def _stated(values: Values) -> bool:
    """Whether the file itself says how many GPUs there are, rather than a default."""
    names = ("num_gpus", "gpus_per_node", "train_gpus", "train_dp")
    if any(values.key_of(name) is not None for name in names):
        return True
    view = values.view
    return view is not None and any(
        view.has(path) for name in names for *_, paths, _ in values.bindings.get(name, ()) for path in paths
    )


def _reachable(planner: Planner, asked: Ask, counts: Sequence[int]) -> None:
    """Complain of a batch that no number of GPUs reaches. Raises UsageError."""
    for size in asked.batches:
        why = [unreachable(planner.shape, asked, size, gpus) for gpus in counts]
        if any(one is None for one in why):
            continue
        near = nearest(planner.shape, asked, size, counts)
        advice = f"; the nearest that can be reached: {' and '.join(map(str, near))}" if near else ""
        gpus = ", ".join(map(str, counts))
        raise UsageError(f"--effective-batch {size} cannot be reached on {gpus} GPUs: {why[-1]}{advice}")


def _plain(value: object) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _bounds(value: object) -> Span | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, Interval)):
        return None
    low, high, _ = parts(value)
    return Span(low, high)


def _timeless(values: Values) -> str:
    """Say why there is no time."""
    task = values["task"]
    if values["generates"] is not False:
        return "the job generates its samples, and how long that takes is in no rule"
    if isinstance(task, str) and task not in ("pretrain", "sft", "distill"):
        return f"a sample of {task} is more than one sequence, or scored against others"
    if _plain(values["gpu.tflops"]) is None:
        return f"the dense 16-bit rate of {values['gpu.name']} is not known"
    return "the rules do not come to one for this config (cfglint explain says what is missing)"
