"""``cfglint plan``: what makes up an effective batch on some GPUs, whether it fits, what to take."""

from __future__ import annotations

from cfglint import files
from cfglint.command import PAGES, form, free, inputs, number, options, output, parse, setup, switch, text
from cfglint.errors import UsageError
from cfglint.features.fit import SYMBOLS, run_for, subject_of
from cfglint.features.plan.compute import OFF, ON, STAGES, Ask, Planner, PlanRow
from cfglint.features.plan.page import as_data, combination, page, what_was_taken
from cfglint.features.plan.ranking import Plan, plan_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Subject

CHECKPOINTING = {"both": (OFF, ON), "on": (ON,), "off": (OFF,)}
_MOST = 10_000_000  # sequences of a batch


class PlanOptions(options.Options):
    """The flags of ``plan``."""

    command = "plan"
    about = (
        "List the GPUs, micro-batches and accumulations that make an effective batch: memory, time, the best."
    )
    offers = (
        *("effective_batch", "gpus", "micro_batch", "zero_stage", "checkpointing"),
        *("samples", "sample_tokens", *options.MODEL, "write", "diff", "row"),
        *("all", "verbose", "format", "output_file", "fail_on", "quiet", "no_color"),
    )
    also = ("rule",)

    path: str = free("PATH", "a config, - for stdin", needed=True)
    effective_batch: str | None = text(
        "sequences per optimizer step, such as 64,128,256 (default: the config's own)",
        "N,…",
        group="what to combine",
    )
    gpus: str | None = text(
        "numbers of GPUs, such as 4,8,16 (default: the target's, the config's, or 1,2,4,…)",
        "N,…",
        group="what to combine",
    )
    micro_batch: str | None = text(
        "sequences per GPU and pass, or tokens if the trainer counts tokens (default: all divisors)",
        "N,…",
        group="what to combine",
    )
    zero_stage: str | None = text(
        "ZeRO stages 0,1,2,3, or all (default: the config's)", "N,…", group="what to combine"
    )
    checkpointing: str | None = text(
        "both, on or off (default: the config's; also on if nothing fits)",
        "WHICH",
        choices=tuple(CHECKPOINTING),
        group="what to combine",
    )
    samples: int | None = number(
        "samples in the data set, to compute steps and time per epoch", "N", group="time"
    )
    sample_tokens: int | None = number(
        "average tokens per sample (default: the longest sequence)", "N", group="time"
    )
    write: bool = switch("put the recommended row into the file", group="writing a row")
    diff: bool = switch("show as a patch what --write would change", group="writing a row")
    row: int | None = number(
        "use this row instead of the recommended one; alone, show its patch", "K", group="writing a row"
    )
    all: bool = switch("show every row, not only those at the limit", group="output")
    verbose: bool = switch("as --all", short="v", group="output")
    format: str | None = form(PAGES)
    fail_on: str | None = text(
        "exit with 1 if a batch has no row that certainly fits: oom (default: never)",
        "VERDICT",
        choices=("oom", "never"),
        group="output",
    )
    quiet: bool = switch("no notices", short="q", group="output")


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit status."""
    args = options.merged(parse(PlanOptions, arguments))
    asked = _ask(args)
    targets, notices = setup.targets(args)
    if not targets:
        raise UsageError("cfglint plan needs a GPU, such as --gpu rtx-4090")
    writes = args.write or args.diff or args.row is not None
    if writes and len(targets) > 1:
        raise UsageError("a row is written for one GPU: give one --gpu")
    run = run_for(args, targets)
    subject = subject_of(run, inputs.named(args.path, args.boundary), args.path, notices)
    samples = {"samples": args.samples, "sample_tokens": args.sample_tokens}
    given = {name: value for name, (value, _) in run.given.items()}
    given.update((name, value) for name, value in samples.items() if value is not None)
    planners = [Planner(subject, target, given) for target in run.targets]
    plans = [plan_of(planner, asked, args.path) for planner in planners]
    output.announce(notices, args)
    if writes:
        return _take(run, subject, planners[0], plans[0], args)
    every = args.all or args.verbose
    output.emit_page(args, lambda style: page(plans, style, every=every), lambda: as_data(plans), SYMBOLS)
    hopeless = any(planned.advice.best is None for plan in plans for planned in plan.batches)
    return int(args.fail_on == "oom" and hopeless)


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
    numbers = set()
    for word in text.split(","):
        number = word.strip().replace("_", "")
        if not (number.isascii() and number.isdigit() and len(number) <= 9 and low <= int(number) <= high):
            several = "0,1,2,3 or all" if flag == "--zero-stage" else "numbers such as 4,8,16"
            raise UsageError(f"{flag} takes {several}, not {word.strip()!r}")
        numbers.add(int(number))
    return tuple(sorted(numbers))


# ── --write and --diff: one row of a plan, put into the file ─────────────────────────────────────────────
def _take(run: Run, subject: Subject, planner: Planner, plan: Plan, args: PlanOptions) -> int:
    """Write or show a row; returns the exit status. Raises UsageError where there is none to write."""
    from cfglint.features.plan.writer import take

    row = _row(plan, args.row)
    taken = take(run, subject, planner, row)
    if not taken.proven:
        raise UsageError(
            f"{args.path}: row {row.number} cannot be written into this file; set it by hand: "
            f"{combination(row.choice)}"
        )
    file = subject.document.file
    if args.diff or not args.write:
        output.put(output.patch(args.path, file, taken.text).encode("utf-8", "surrogateescape"))
    elif args.path == "-":
        output.put(file.encode(taken.text))
    elif taken.changes:
        files.write(args.path, file.encode(taken.text), over=file.encode(file.text))
    output.announce(what_was_taken(taken, row), args)
    return 0


def _row(plan: Plan, number: int | None) -> PlanRow:
    if len(plan.batches) > 1:
        raise UsageError("a row is written for one batch: give one --effective-batch")
    (planned,) = plan.batches
    if number is not None:
        rows = planned.batch.rows
        if number > len(rows):
            raise UsageError(f"--row {number}: there are {len(rows)} rows; cfglint plan --all lists them")
        return rows[number - 1]
    if planned.advice.best is None:
        near = planned.advice.closest
        advice = f"; the closest is --row {near.number}" if near is not None else ""
        raise UsageError(f"no row certainly fits, so none is written{advice}")
    return planned.advice.best
