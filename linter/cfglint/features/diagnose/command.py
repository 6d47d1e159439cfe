"""``cfglint diagnose LOG…``: reads why memory ran out, and with the config what mends it."""

from __future__ import annotations

from cfglint import files
from cfglint.command import inputs, options, output
from cfglint.command.flags import TEXT, Args, Flag, Parser
from cfglint.errors import UsageError
from cfglint.features.diagnose.compute import Job, diagnosis, target_of
from cfglint.features.diagnose.log import Log, read
from cfglint.features.diagnose.messages import KINDS
from cfglint.features.diagnose.page import FORMATS, as_data, page
from cfglint.record import replace
from cfglint.report import written
from cfglint.report.blocks import DASH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.report import Style

_SHARED = {flag.name: flag for flag in options.SHARED}
_CHUNK = 1 << 20
_LEAST = 40  # cells of a line
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
        "Who held what when memory ran out, by the log of the job; with --config, the fix that the measured "
        "numbers ask for."
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
    log = sum((_read(path) for path in args.logs), Log())
    if not log.incidents:
        names = ", ".join("standard input" if path == "-" else path for path in args.logs)
        print(
            f"{names}: nothing in {log.lines:,} lines tells that memory ran out; known are "
            f"{'; '.join(KINDS.values())}"
        )
        return 1
    found = diagnosis(log, _job(args, log) if args.config is not None else None)
    form = args.format or "text"

    def text(style: Style) -> str:
        style = replace(style, width=style.width and max(style.width, _LEAST), loose=True)
        return written(form, style, lambda style: page(found, style), lambda: as_data(found))

    output.emit(text, args, f"{DASH}—")
    return 0


def _read(path: str) -> Log:
    try:
        return read(files.chunks(path, _CHUNK), "stdin" if path == "-" else path)
    except OSError as error:
        raise UsageError(f"{path}: no log can be read here: {files.why(error)}") from None


def _job(args: Args, log: Log) -> Job:
    target, chosen = target_of(log, args.gpu)
    run = options.run(args, [target])
    subject, *_ = inputs.recognised(run, inputs.named(args.config), args.config)
    return Job(args.config, run, subject, target, chosen)
