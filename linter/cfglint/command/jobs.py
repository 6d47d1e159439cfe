"""Shares files among processes (``--jobs``): the same results in the same order as one process gives."""

from __future__ import annotations

import os

from cfglint.errors import CfglintError, bug
from cfglint.findings import Report
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeAlias, TypeVar

    from cfglint.command.options import Options
    from cfglint.engine.run import Run
    from cfglint.findings import Fix
    from cfglint.hardware.target import Target

    Own = TypeVar("Own", bound=Options)
    # Judges one file, named or found in a folder, and completes the outcome; the report is the run's own.
    Task: TypeAlias = Callable[[Run, Own, str, bool, "Outcome"], None]

_CHUNK = 8  # files that a process takes at once


class Outcome(Record):
    """What came of one file: what was found, and ``error``, the line to print where it could not be judged.

    ``content``, ``applied`` and ``diff`` are what ``fix`` makes of it: the new bytes (None: leave the file
    alone), a line for each fix, and the patch.
    """

    path: str
    error: str | None = None
    report: Report = field(factory=Report)
    fixes: int = 0
    skipped: bool = False
    content: bytes | None = None
    applied: list[str] = field(factory=list)
    diff: str = ""


def outcomes(run: Run, args: Own, files: Sequence[tuple[str, bool]], task: Task[Own]) -> Iterator[Outcome]:
    """Yield what ``task`` makes of each file, in order, and gather what it found in the run's report."""
    for outcome in _each(run, args, files, task):
        _gather(run, outcome)
        yield outcome


def _each(run: Run, args: Own, files: Sequence[tuple[str, bool]], task: Task[Own]) -> Iterator[Outcome]:
    # Only this process has the user's stdin.
    jobs = args.jobs or 1
    if jobs == 1 or len(files) < 2 or any(path == "-" for path, _ in files):
        for path, named in files:
            yield _apart(run, args, path, named, task)
        return
    from concurrent.futures import ProcessPoolExecutor

    processes = min(jobs, -(-len(files) // _CHUNK))  # there is nothing to do for more
    with ProcessPoolExecutor(processes, initializer=_begin, initargs=(args, run.targets, task)) as pool:
        yield from pool.map(_one, files, chunksize=_CHUNK)


def _apart(run: Run, args: Own, path: str, named: bool, task: Task[Own]) -> Outcome:
    """Judge one file into a report of its own, its fixes numbered from 1; what fails, fails alone."""
    outcome = Outcome(path)
    whole, fixes = run.report, run.fixes
    run.report, run.fixes = outcome.report, 0
    try:
        task(run, args, path, named, outcome)
    except CfglintError as error:
        outcome.error = str(error)
    except Exception as error:
        if "CFGLINT_TRACEBACK" in os.environ:
            raise
        outcome.error = f"{path}: {bug(error)}"
    outcome.fixes = run.fixes
    run.report, run.fixes = whole, fixes
    return outcome


def _gather(run: Run, outcome: Outcome) -> None:
    report, part = run.report, outcome.report
    fixes: dict[int, Fix] = {}
    for finding in part.findings:
        for fix in (finding.fix, *finding.alternatives):
            if fix is not None and fix.number:
                fixes[id(fix)] = fix
    for fix in fixes.values():
        fix.number += run.fixes
    run.fixes += outcome.fixes
    names = {target.name for target in report.targets}
    report.targets += [target for target in part.targets if target.name not in names]
    report.findings += part.findings
    report.undecided += part.undecided
    report.texts.update(part.texts)
    report.files += part.files
    report.skipped += outcome.skipped


_state: list[tuple[Run, Any, Task[Any]]] = []


def _begin(args: Own, targets: Sequence[Target], task: Task[Own]) -> None:
    """Set a worker up. The main process has said all that there is to say about flags and targets."""
    from cfglint.command import setup

    _state[:] = [(setup.run(args, targets), args, task)]


def _one(file: tuple[str, bool]) -> Outcome:
    run, args, task = _state[0]
    return _apart(run, args, *file, task)
