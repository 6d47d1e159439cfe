"""``cfglint check``: lint files and folders, print a report, tell by the exit status."""

from __future__ import annotations

import sys

from cfglint import files
from cfglint.api import check_file
from cfglint.command import inputs, options
from cfglint.command.flags import Args, Parser
from cfglint.errors import UsageError
from cfglint.features.check.jobs import Outcome, outcomes
from cfglint.report import render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.engine.run import Run
    from cfglint.findings import Report


def parser() -> Parser:
    """Return the flags of ``check``."""
    about = "Lint configs for the GPUs that they will run on."
    return Parser("check", about, options.SHARED, positional=options.PATHS, many=True, default=["."])


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit status."""
    args = options.merged(parser().parse_args(arguments))
    run = options.run(args)
    announce(run.report, args)
    bad = judge(run, args)
    status = 2 if bad else failed(run.report, args)
    emit(run.report, args, bad=bad)
    return status


def say(line: str) -> None:
    """Print a notice where it does not mix with the report."""
    print(f"cfglint: {line}", file=sys.stderr)


def announce(report: Report, args: Args) -> None:
    """Print what there is to say about the targets."""
    if not args.quiet:
        for notice in report.notices:
            say(notice)


def judge(run: Run, args: Args) -> bool:
    """Judge all files; returns whether something could not be read or is for no framework, which was said."""
    wrong: list[str] = []
    found = list(inputs.find(args.paths, wrong.append))
    wrong += [outcome.error for outcome in outcomes(run, args, found, _check) if outcome.error is not None]
    complain(wrong)
    return bool(wrong)


def complain(wrong: list[str]) -> None:
    """Print errors, the same one once."""
    for line in dict.fromkeys(wrong):
        say(f"error: {line}")


def _check(run: Run, args: Args, path: str, named: bool, outcome: Outcome) -> None:
    explicit = named and not args.skip_unknown
    loaded = inputs.load(path, named=named)
    if loaded is None or not check_file(run, loaded[0], explicit=explicit):
        if explicit:
            raise UsageError(unknown(run, path))
        outcome.skipped = True


def unknown(run: Run, path: str) -> str:
    """Say that no framework recognises a file, and how to name one."""
    known = ", ".join(sorted(run.pack.frameworks))
    advice = f"name one with --framework ({known}), or pass --skip-unknown"
    return f"{path}: no framework recognises this file; {advice}"


def emit(report: Report, args: Args, *, bad: bool = False) -> None:
    """Print the report, or write it to ``--output-file``; ``bad`` says that errors were printed before."""
    form = args.format or "text"
    for_people = form in ("text", "concise")
    if bad and not report.files and for_people:
        return
    if args.quiet:
        report.findings = [f for f in report.findings if f.level == "error"]
        report.undecided = []
        if not report.findings and for_people:
            return
    if args.output_file is not None:
        text = render(report, form, color=False, width=0, verbose=args.verbose)
        files.write(args.output_file, text.encode("utf-8", "backslashreplace"))
        return
    color, width = _terminal(no_color=args.no_color)
    sys.stdout.write(render(report, form, color=color, width=width, verbose=args.verbose))


def _terminal(*, no_color: bool) -> tuple[bool, int]:
    """Return whether stdout takes colours, and its width, 0 for a pipe."""
    import os

    if not sys.stdout.isatty():
        return False, 0
    color = not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    try:
        return color, os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        return color, 80


def failed(report: Report, args: Args) -> int:
    """Return 1 if the report holds something at or above ``--fail-on``, else 0."""
    fail_on = args.fail_on or "error"
    if fail_on == "never":
        return 0
    worse = ("error", "warning", "info")[: ("error", "warning", "info").index(fail_on) + 1]
    return int(any(finding.level in worse for finding in report.findings))
