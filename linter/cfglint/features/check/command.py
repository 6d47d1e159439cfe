"""``cfglint check``: lint files and folders, print a report, tell by the exit status."""

from __future__ import annotations

from cfglint.api import check_file
from cfglint.command import inputs, options, output
from cfglint.command.flags import Args, Parser
from cfglint.command.jobs import Outcome, outcomes
from cfglint.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.engine.run import Run


def parser() -> Parser:
    """Return the flags of ``check``."""
    about = "Lint configs for the GPUs that they will run on."
    return Parser("check", about, options.SHARED, positional=options.PATHS, many=True, default=["."])


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit status."""
    args = options.merged(parser().parse_args(arguments))
    run = options.run(args)
    output.announce(run.report.notices, args)
    bad = judge(run, args)
    status = 2 if bad else output.failed(run.report, args)
    output.emit_report(run.report, args, bad=bad)
    return status


def judge(run: Run, args: Args) -> bool:
    """Judge all files; returns whether something could not be read or is for no framework, which was said."""
    wrong: list[str] = []
    found = list(inputs.find(args.paths, wrong.append))
    wrong += [outcome.error for outcome in outcomes(run, args, found, _check) if outcome.error is not None]
    output.complain(wrong)
    return bool(wrong)


def _check(run: Run, args: Args, path: str, named: bool, outcome: Outcome) -> None:
    explicit = named and not args.skip_unknown
    loaded = inputs.load(path, named=named)
    if loaded is None or not check_file(run, loaded[0], explicit=explicit):
        if explicit:
            raise UsageError(inputs.unknown(run, path, inputs.SKIP))
        outcome.skipped = True
