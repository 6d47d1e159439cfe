"""``cfglint diagnose LOG…``: reads why memory ran out, and with the config what fixes it."""

from __future__ import annotations

from cfglint import files
from cfglint.command import PAGES, form, free, inputs, options, output, parse, setup, switch, text
from cfglint.errors import UsageError
from cfglint.features.diagnose.compute import Job, diagnosis, target_of
from cfglint.features.diagnose.log import Log, read
from cfglint.features.diagnose.messages import KINDS
from cfglint.features.diagnose.page import SYMBOLS, render_diagnosis

_CHUNK = 1 << 20


class DiagnoseOptions(options.Options):
    """The flags of ``diagnose``. The log says which GPU, not the settings."""

    command = "diagnose"
    about = (
        "Find out from a job's log what held the memory when it ran out; with --config, derive a fix from "
        "the measured numbers."
    )
    offers = (
        *("config", "log_gpu", "framework", "set", "model_config", "online", "rules"),
        *("format", "output_file", "quiet", "no_color"),
    )
    also = ("rule",)

    logs: list[str] = free("LOG", "a job's log, - for stdin", many=True, needed=True)
    config: str | None = text("the job's config, to compare with and to fix", "PATH")
    log_gpu: str | None = text(
        "the GPU of the log, if its memory matches several", "NAME[:N[xNODES]]", name="gpu"
    )
    format: str | None = form(PAGES)
    quiet: bool = switch("no notices", short="q", group="output")


def main(arguments: list[str]) -> int:
    """Run the command: 0 where the log shows a failure, 1 where it shows none."""
    args = options.merged(parse(DiagnoseOptions, arguments))
    log = sum((_read(path) for path in args.logs), Log())
    output.announce(log.cut, args)
    if not log.incidents:
        names = ", ".join("standard input" if path == "-" else path for path in args.logs)
        output.tell(
            f"{names}: nothing in {log.lines:,} lines says that memory ran out; recognised are "
            f"{'; '.join(KINDS.values())}"
        )
        return 1
    account = diagnosis(log, None if args.config is None else _job(args, args.config, log))
    form = args.format or "text"
    output.emit(lambda style: render_diagnosis(account, form, style), args, SYMBOLS)
    return 0


def _read(path: str) -> Log:
    try:
        return read(files.chunks(path, _CHUNK), "stdin" if path == "-" else path)
    except OSError as error:
        raise UsageError(f"{path}: cannot read the log: {files.why(error)}") from None


def _job(args: DiagnoseOptions, config: str, log: Log) -> Job:
    target, chosen = target_of(log, args.log_gpu)
    run = setup.run(args, [target])
    subject, *_ = inputs.recognised(run, inputs.named(config, args.boundary), config)
    return Job(config, run, subject, target, chosen)
