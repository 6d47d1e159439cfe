"""``cfglint plan --write`` and ``--diff``: one row of a plan, put into the file."""

from __future__ import annotations

from cfglint import files
from cfglint.command import output
from cfglint.errors import UsageError
from cfglint.features.plan.page import combination
from cfglint.features.plan.page import taken as told
from cfglint.features.plan.writer import take as taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.engine.run import Run
    from cfglint.engine.subject import Subject
    from cfglint.features.plan.compute import Planner, PlanRow
    from cfglint.features.plan.options import PlanOptions
    from cfglint.features.plan.ranking import Plan
    from cfglint.features.plan.writer import Taken


def take(run: Run, subject: Subject, planner: Planner, plan: Plan, args: PlanOptions) -> int:
    """Write or show a row; returns the exit status. Raises UsageError where there is none to write."""
    row = _row(plan, args)
    found = taken(run, subject, planner, row)
    if not found.proven:
        raise UsageError(
            f"{args.path}: row {row.number} cannot be written: what the file then says does not come to it; "
            f"set it by hand: {combination(row.choice)}"
        )
    lines = _lines(found, row)
    if args.diff or not args.write:
        patch = output.patch(args.path, subject.document.file, found.text)
        output.put(patch.encode("utf-8", "surrogateescape"))
    elif args.path == "-":
        output.put(subject.document.file.encode(found.text))
    elif found.done:
        files.write(args.path, subject.document.file.encode(found.text))
    output.announce(lines, args)
    return 0


def _row(plan: Plan, args: PlanOptions) -> PlanRow:
    if len(plan.batches) > 1:
        raise UsageError("a row of one batch is written: name one --effective-batch")
    (one,) = plan.batches
    if args.row is not None:
        rows = one.batch.rows
        if args.row > len(rows):
            raise UsageError(f"--row {args.row}: there are {len(rows)} rows; cfglint plan --all lists them")
        return rows[args.row - 1]
    if one.advice.best is None:
        near = one.advice.closest
        advice = f"; --row {near.number} comes closest" if near is not None else ""
        raise UsageError(f"no row fits for sure, so none is written{advice}")
    return one.advice.best


def _lines(found: Taken, row: PlanRow) -> list[str]:
    """Say what was set, what is left to the launch, and what that comes to."""
    lines = [f"row {row.number}: {combination(row.choice)}; {told(row)}"]
    lines += [
        f"set {key} to {new}" + (f" (was {old})" if old is not None else "") for key, old, new in found.done
    ]
    if not found.done:
        lines.append("nothing in the file has to change")
    lines += [
        f"no key of the file can be set to that, so see to it when you launch: {_told(name, value)}"
        for name, value in found.launch
    ]
    lines += [f"cfglint check then finds {code}" for code in found.broken]
    return lines


def _told(name: str, value: object) -> str:
    gpus = {
        "num_gpus": "GPUs in all",
        "train_gpus": "GPUs for the trainer",
        "train_dp": "data-parallel ranks",
    }
    return f"{value} {gpus[name]}" if name in gpus else f"{name} {value}"
