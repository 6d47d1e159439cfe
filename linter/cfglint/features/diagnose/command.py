"""``cfglint diagnose LOG…``: reads why memory ran out, and with the config what mends it."""

from __future__ import annotations

import os

from cfglint import files
from cfglint.command import inputs, options, output
from cfglint.command.flags import TEXT, Args, Flag, Parser
from cfglint.errors import UsageError
from cfglint.features.diagnose.render import FORMATS, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.engine.run import Run
    from cfglint.engine.subject import Subject
    from cfglint.facts import Values
    from cfglint.features.diagnose.attribution import Failure, Holder, Share
    from cfglint.features.diagnose.compute import Diagnosis, Judgement, Repair, Told
    from cfglint.features.diagnose.incident import Log
    from cfglint.findings import Finding
    from cfglint.hardware.target import Target
    from cfglint.report import Style

_SHARED = {flag.name: flag for flag in options.SHARED}
_CHUNK = 1 << 20
FLAGS = (
    Flag("config", "the config of the job: what it asked for, and the fix", kind=TEXT, metavar="PATH"),
    Flag("gpu", "the GPU of the log, where its memory fits several", kind=TEXT, metavar="NAME[:N[xNODES]]"),
    *(_SHARED[name] for name in ("framework", "set", "model-config", "online", "rules")),
    Flag(
        "format", f"one of {', '.join(FORMATS)} (default: text)", kind=TEXT, metavar="FORM", choices=FORMATS,
        group="output",
    ),
    _SHARED["output-file"],
    Flag("quiet", "no notices", short="q", group="output"),
    _SHARED["no-color"],
)  # fmt: skip


def parser() -> Parser:
    """Return the flags of ``diagnose``."""
    about = (
        "Who held what when memory ran out, by the log of the job; with --config, the fix that the "
        "measured numbers "
        "ask for."
    )
    return Parser(
        "diagnose",
        about,
        FLAGS,
        positional=("logs", "LOG", "the log of a job, - for stdin"),
        many=True,
        needed=True,
    )


def main(arguments: list[str]) -> int:
    """Run the command: 0 where the log tells of a failure, 1 where it tells of none."""
    args = parser().parse_args(arguments)
    if not args.logs:
        raise UsageError("cfglint diagnose wants LOG; see cfglint diagnose --help")
    form, args.format = args.format, None
    gpu, args.gpu = args.gpu, None
    args.hardware, args.no_detect = None, True
    args.rule = args.select = args.ignore = None
    args = options.merged(args)
    args.format, args.gpu, args.hardware = form, gpu, None  # the log tells which GPU, not the settings
    args.select = args.ignore = None
    log = _read(args.logs)
    if not log.incidents:
        from cfglint.features.diagnose.incident import KINDS

        names = ", ".join("standard input" if path == "-" else path for path in args.logs)
        print(
            f"{names}: nothing in {log.lines:,} lines tells that memory ran out; known are "
            f"{'; '.join(KINDS.values())}"
        )
        return 1
    diagnosis, form = _diagnosis(args, log), args.format or "text"

    def page(style: Style) -> str:
        return render(diagnosis, form, color=style.color, width=style.width, plain=not style.unicode)

    output.emit(page, args, "\u2013\u2014")
    return 0


def _read(paths: list[str]) -> Log:
    from cfglint.features.diagnose.incident import Log
    from cfglint.features.diagnose.read import read

    logs = []
    for path in paths:
        try:
            logs.append(read(files.chunks(path, _CHUNK), "stdin" if path == "-" else path))
        except OSError as error:
            raise UsageError(f"{path}: no log can be read here: {files.why(error)}") from None
    return Log(
        tuple(one for log in logs for one in log.incidents),
        tuple(note for log in logs for note in log.notes),
        sum(log.lines for log in logs),
        tuple(line for log in logs for line in log.products),
    )


def _diagnosis(args: Args, log: Log) -> Diagnosis:
    from cfglint.features.diagnose.attribution import failures, share_of
    from cfglint.features.diagnose.compute import Diagnosis

    found = failures(log.incidents)
    if args.config is None:
        return Diagnosis(tuple(_told(log, one, share_of(log, one.first), trains=False) for one in found))
    run, subject, target, chosen = _config(args, found[0], log.products)
    values = _values(run, subject, target)
    told = tuple(
        _told(
            log, one, _asked(values, args.config) or share_of(log, one.first), trains=values["trains"] is True
        )
        for one in found
    )
    return Diagnosis(told, _judgement(run, subject, target, chosen, told, values))


def _told(log: Log, failure: Failure, share: Share | None, *, trains: bool) -> Told:
    from cfglint.features.diagnose.attribution import holders
    from cfglint.features.diagnose.compute import Told
    from cfglint.features.diagnose.log_advice import advice

    held = holders(failure.first, share, trains=trains)
    again = sum(one.same(failure.first) for one in log.incidents) - 1
    return Told(failure, held, tuple(advice(failure.first, held, share, log)), again)


def _asked(values: Values, path: str) -> Share | None:
    """Return the share that a config gives its engine, None where that is not known."""
    from cfglint.features.diagnose.attribution import Share

    fraction, engine = values["mem_fraction"], values["rollout_engine"]
    if values["generates"] is False or isinstance(fraction, bool) or not isinstance(fraction, (int, float)):
        return None
    return Share(float(fraction), engine if isinstance(engine, str) else None, os.path.basename(path))


def _config(args: Args, failure: Failure, products: tuple[str, ...]) -> tuple[Run, Subject, Target, str]:
    """Return the run, the config's document, and the target with the sentence that says how it was chosen."""
    from cfglint.features.diagnose.attribution import gpu_of
    from cfglint.hardware.target import parse_target

    capacity = failure.first.capacity
    if args.gpu:
        target = parse_target(args.gpu)
        chosen = f"judged for {target.name}, as --gpu says"
        if (
            capacity is not None
            and target.vram_gib is not None
            and abs(target.vram_gib - capacity / 2**30) > 0.02 * target.vram_gib
        ):
            chosen += f"; the log's GPU has {capacity / 2**30:.2f} GiB, that one {target.vram_gib:.2f}"
    elif capacity is not None:
        target, chosen = gpu_of(capacity, failure.first.at, products)
    else:
        raise UsageError(
            f"{failure.first.at}: the message does not tell the GPU's memory; name the GPU with --gpu"
        )
    run = options.run(args, [target])
    subjects = inputs.recognised(run, inputs.named(args.config), args.config)
    return run, subjects[0], target, chosen


def _values(run: Run, subject: Subject, target: Target) -> Values:
    return run.on(target, subject).values


def _judgement(
    base: Run, subject: Subject, target: Target, chosen: str, told: tuple[Told, ...], values: Values
) -> Judgement:
    from cfglint.engine.memory import fit_rows
    from cfglint.features.diagnose.compute import Judgement
    from cfglint.features.diagnose.measured import corrections, measured_target, predictions

    held: list[tuple[Holder, str]] = [(h, one.failure.first.at) for one in told for h in one.holders]
    facts = corrections(values, held)
    run = base.but(targets=[measured_target(target, facts)], named=True)
    found = _findings(run, subject)
    row = next(fit_rows(run, subject))
    file = subject.document.file
    return Judgement(
        file.path, file.text, target.name, target.gpu, chosen, predictions(values), facts, tuple(found),
        tuple(_repairs(run, subject, found)), row,
    )  # fmt: skip


def _findings(run: Run, subject: Subject) -> list[Finding]:
    """Return what the rules find about memory, the worst first, with the fixes that were derived."""
    from cfglint.api import check_file
    from cfglint.findings import LEVELS

    check_file(run, subject.document.file)
    found = [f for f in run.report.findings if f.code.startswith("MEM")]
    return sorted(found, key=lambda f: (-LEVELS.index(f.level), f.possible))


def _repairs(run: Run, subject: Subject, found: list[Finding]) -> Iterator[Repair]:
    """Yield the fixes that make the config fit, or fit better: each once, the first two of them."""
    from cfglint.engine.memory import VERDICTS

    made: list[Repair] = []
    seen: set[object] = set()
    for finding in found:
        for fix in (finding.fix, *finding.alternatives):
            if fix is None or not fix.edits or fix.edits in seen:
                continue
            seen.add(fix.edits)
            repair = _repair(run, subject, finding, fix)
            if repair is None:
                continue
            before, after = (VERDICTS.index(row.verdict) for row in (repair.before, repair.after))
            # An engine that does not start for want of memory breaks a rule though all of it would fit.
            if after < before or (after == before == 0 and finding.level == "error"):
                made.append(repair)
    made.sort(
        key=lambda r: (r.after.verdict != "fits", r.fix.certainty != "sure", r.fix.applicability != "safe")
    )
    yield from made[:2]


def _repair(run: Run, subject: Subject, finding: Finding, fix: object) -> Repair | None:
    from cfglint.document.reading import read_text
    from cfglint.engine.memory import fit_rows, span_of
    from cfglint.features.diagnose.compute import Repair
    from cfglint.findings import Fix
    from cfglint.report.diff import unified
    from cfglint.text import apply_edits

    assert isinstance(fix, Fix)
    file = subject.document.file
    text = apply_edits(file.text, fix.edits)
    again = subject.document.again(read_text(text, file.path, bom=file.bom))
    if again is None:
        return None
    mended = run.subject(again, subject.framework)
    rows = [next(fit_rows(run, one)) for one in (subject, mended)]
    (target,) = run.targets
    values = [_values(run, one, target) for one in (subject, mended)]
    parts = tuple(
        (name, span_of(values[0][f"{name}.memory"]), span_of(values[1][f"{name}.memory"]))
        for name, present in (("engine", "generates"), ("trainer", "trains"))
        if values[0][present] is not False
    )
    return Repair(finding, fix, rows[0], rows[1], parts, unified(file.path, file.text, text))
