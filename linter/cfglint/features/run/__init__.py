"""``cfglint run -- COMMAND``: judges a launch on the machine where it is to run, then becomes it.

The command is read as a script of one line would be, in the working folder, with the variables that launchers
read from the environment. What is printed goes to stderr: stdout is the command's own.
"""

from __future__ import annotations

import os
import shlex
import sys

from cfglint import files
from cfglint.api import check_file
from cfglint.budget import BUDGET, Alarm
from cfglint.command import free, inputs, options, output, parse, setup, switch
from cfglint.document.reading import read_text
from cfglint.document.shell.processes import ENVIRONMENT
from cfglint.engine.memory import GIB
from cfglint.engine.rows import FitRow, fit_rows
from cfglint.errors import UsageError
from cfglint.features.fit.compute import wanted
from cfglint.features.fit.page import wanting
from cfglint.report.blocks import spread
from cfglint.report.verdicts import said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from cfglint.document.tree import File
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Subject
    from cfglint.hardware.target import Target

_PATH = "<command>"
_FORCE = "--force starts it all the same"


class RunOptions(options.Options):
    """The flags of ``run``."""

    command = "run"
    about = (
        "Judge a launch on this machine, with the memory that is free now, then start it; exit with 1 "
        "without starting it if something would fail."
    )
    offers = (
        *("force", "dry_run", "gpu", "hardware", "no_detect", "framework", "model_config", "online"),
        *("rules", "rule", "isolated", "settings", "select", "ignore", "fail_on", "quiet", "verbose"),
        "no_color",
    )

    words: list[str] = free("-- COMMAND", "the launch, such as -- torchrun …", many=True, counted=True)
    force: bool = switch("start the command whatever was found", short="f")
    dry_run: bool = switch("judge the command and do not start it", short="n")


def main(arguments: list[str]) -> int:
    """Judge the command and become it; 1 where it was not started, 2 for a mistake in the flags."""
    args, words = _split(arguments)
    run = setup.run(args)
    output.announce(run.report.notices, args)
    file = read_text(_line(words), _PATH, form="shell")
    refused = _judge(run, args, file)
    if refused and not args.force:
        output.say(f"not started: {refused}" + ("" if args.dry_run else f"; {_FORCE}"))
        return 1
    if refused:
        output.announce([f"found, and ignored by --force: {refused}"], args)
    if not args.dry_run:
        _become(words)
    return 0


def _split(arguments: list[str]) -> tuple[RunOptions, list[str]]:
    """Return the flags, and the command behind ``--``. Raises UsageError."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    own, words = arguments[:at], arguments[at + 1 :]
    given = parse(RunOptions, own)
    if given.words:
        raise UsageError(f"put -- before the command: cfglint run -- {' '.join(given.words[:2])} …")
    if not words:
        raise UsageError("cfglint run needs a command: cfglint run -- torchrun …")
    # What the user starts here reads what it likes, so a config may name files anywhere.
    given.allow_outside = True
    return options.merged(given), words


def _line(words: Sequence[str]) -> str:
    """Return a script of one line that does what the command does here."""
    known = {name: value for name in ENVIRONMENT if (value := os.environ.get(name)) is not None}
    return (
        " ".join([*(f"{name}={shlex.quote(value)}" for name, value in known.items()), shlex.join(words)])
        + "\n"
    )


# ── the verdict ────────────────────────────────────────────────────────────────────────────────────────────
def _judge(run: Run, args: RunOptions, file: File) -> str:
    """Print what is found in the command, and its memory; returns why it is not to be started."""
    with BUDGET, Alarm():
        subjects = run.subjects(file, judge_broken=False) if check_file(run, file) else []
    if not subjects:
        unread = [why for _, why in inputs.unread(run, file, [])] or [
            "no training launch is recognised in it"
        ]
        output.announce([f"not judged: {why}" for why in unread], args)
        return ""
    if run.report.findings:
        output.emit_report(run.report, args, to=sys.stderr)
    reasons = []
    for subject in subjects:
        if args.verbose:
            _tell_facts(run, args, subject)
        for row, target in zip(fit_rows(run, subject), run.targets, strict=False):
            told, reason = _memory(run, subject, row, target)
            output.announce([f"{subject.framework} on {row.target}: {told}"], args)
            reasons += [reason] if reason else []
    if output.failed(run.report, args):
        number = len(run.report.findings)
        what = f"{number} finding{'s' * (number != 1)}" if number else "its memory"
        reasons.append(f"{what}, see above")
    return "; ".join(dict.fromkeys(reasons))


def _memory(run: Run, subject: Subject, row: FitRow, target: Target) -> tuple[str, str]:
    """Say what a job needs and what is there now, and why it cannot start, if so."""
    fact = target.facts.get("gpu.free")
    free_gib = fact[0] / GIB if fact is not None and isinstance(fact[0], int) else None
    if row.verdict == "unknown":
        values = run.on(target, subject).values
        missing = wanted(values, row.needs)
        return f"memory {said(row)}: {'; '.join(wanting(each, tries=False) for each in missing)}", ""
    word = "out of memory" if row.verdict == "oom" else said(row)
    need = f"needs {spread(row.need_gib)} GiB of {row.capacity_gib:.2f}"
    if free_gib is None:
        return f"{word}, {need}", ""
    told = f"{need}, and {free_gib:.2f} are free now"
    if row.need_gib.low > free_gib:
        return (
            f"out of memory, {told}",
            f"it needs at least {row.need_gib.low:.2f} GiB and {free_gib:.2f} are free",
        )
    if row.need_gib.high > free_gib and row.verdict == "fits":
        return f"tight, {told}", ""
    return f"{word}, {told}", ""


def _tell_facts(run: Run, args: RunOptions, subject: Subject) -> None:
    """Print what was read of the command: its arguments, with the environment's part in them."""
    from cfglint.features.facts.compute import job_of
    from cfglint.features.facts.page import page
    from cfglint.report import written

    jobs = [job_of(run, judged, None, "") for judged in run.judged(subject)]
    output.emit(
        lambda style: written("text", style, lambda _: page(jobs, [], verbose=False), dict),
        args,
        to=sys.stderr,
    )


# ── the start ──────────────────────────────────────────────────────────────────────────────────────────────
def _become(words: Sequence[str]) -> NoReturn:
    """Replace this process by the command. Raises UsageError where it cannot be started."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        files.become(words)
    except OSError as error:
        raise UsageError(f"{words[0]}: cannot be started: {files.why(error)}") from None
