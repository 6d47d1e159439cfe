"""``cfglint check``: lint files and folders, print a report, tell by the exit status."""

from __future__ import annotations

from cfglint.api import check_file
from cfglint.command import free, inputs, options, output, parse, setup
from cfglint.command.setup import Outcome, outcomes
from cfglint.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.engine.run import Run


class CheckOptions(options.Options):
    """The flags of ``check``."""

    command = "check"
    about = "Check configs for the GPUs that they will run on."
    offers = options.SHARED

    paths: list[str] = free("PATH", options.PATHS, many=True, default=["."])


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit status."""
    args = options.merged(parse(CheckOptions, arguments))
    run = setup.run(args)
    output.announce(run.report.notices, args)
    bad = judge(run, args)
    status = 2 if bad else output.failed(run.report, args)
    output.emit_report(run.report, args, bad=bad)
    return status


def judge(run: Run, args: CheckOptions) -> bool:
    """Judge all files; returns whether something could not be read or is for no framework, which was said."""
    wrong: list[str] = []
    run.report.unread = 0
    paths = list(inputs.find(args.paths, args.boundary, wrong.append))
    wrong += [outcome.error for outcome in outcomes(run, args, paths, _check) if outcome.error is not None]
    output.complain(wrong)
    return bool(wrong)


def _check(run: Run, args: CheckOptions, path: str, named: bool, outcome: Outcome) -> None:
    explicit = named and not args.skip_unknown
    file, _ = inputs.load(path, args.boundary, named=named)
    judged = check_file(run, file, explicit=explicit)
    if not judged and explicit:
        raise UsageError(inputs.unknown(path, inputs.SKIP))
    judged = judged or (inputs.was_recognised(run, file) and check_file(run, file))
    missed = inputs.launches_missed(run, file, judged=judged)
    outcome.report.unread = len(inputs.unread(run, file, missed))
    if judged:
        outcome.in_part = inputs.why_in_part(missed)
    else:
        outcome.skipped = inputs.why_unknown(file, missed)
