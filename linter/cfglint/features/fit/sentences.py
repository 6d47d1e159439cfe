"""What a fit says beside its tables: whose parts they are, the phases, the peak, a machine's own memory."""

from __future__ import annotations

from cfglint.report import verdicts
from cfglint.report.blocks import INF, spread
from cfglint.text import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cfglint.engine.rows import FitRow, Trainer, Turns
    from cfglint.findings import Span


def is_open(row: FitRow, span: Span) -> bool:
    """Whether the upper end says nothing: where names are missing, one that is far above the lower."""
    return span.high == INF or (row.verdict == "unknown" and span.high > 2 * span.low)


def cases_of_parts(rows: Iterable[FitRow]) -> list[str]:
    """Say whose parts and peak are shown, where a job has several cases."""
    named = dict.fromkeys(verdicts.case_of(row.cases[0]) for row in rows if row.cases)
    return [f"parts and peak are of this case: {' or '.join(named)}"] if named else []


def peaks(rows: Iterable[FitRow]) -> list[str]:
    """Return the peak of the trainer, with its targets where they differ."""
    targets: dict[str, list[str]] = {}
    for row in rows:
        if row.trainer is not None and not is_open(row, row.trainer.allocated_gib):
            targets.setdefault(_peak(row.trainer), []).append(shown(row.target))
    if len(targets) == 1:
        return list(targets)
    return [f"{', '.join(names)}: {line}" for line, names in targets.items()]


def phases(rows: Iterable[FitRow]) -> list[str]:
    """Say what each phase takes where engine and trainer take turns; with its targets where they differ."""
    targets: dict[str, list[str]] = {}
    for row in rows:
        if row.turns is not None and not is_open(row, row.need_of_parts):
            targets.setdefault(_phases(row.turns), []).append(shown(row.target))
    if len(targets) == 1:
        return list(targets)
    return [f"{', '.join(names)}: {line}" for line, names in targets.items()]


def _phases(turns: Turns) -> str:
    (engine, kept), (asleep, trainer) = turns.generating, turns.training
    generation = f"{spread(engine)} of the engine + {spread(kept)} of the idle trainer"
    training = f"{spread(asleep)} of the sleeping engine + {spread(trainer)} of the trainer"
    parts = [
        f"generation {spread(turns.together(engine, kept))} ({generation})",
        f"training {spread(turns.together(asleep, trainer))} ({training})",
    ]
    if not turns.generates:
        parts.reverse()
    return f"parts are of the larger of two phases: {parts[0]}; {parts[1]}"


def machines(rows: Iterable[FitRow]) -> list[str]:
    """Return what a job takes of its machines' memory and disks, with its targets where they differ."""
    targets: dict[str, list[str]] = {}
    for row in rows:
        host, disk = (verdicts.most(each) for each in (row.host_gib, row.disk_gib))
        line = f"memory of each machine itself: {host}; checkpoints on disk: {disk}"
        targets.setdefault(line, []).append(shown(row.target))
    if len(targets) == 1:
        return list(targets)
    return [f"{', '.join(names)}: {line}" for line, names in targets.items()]


def _peak(trainer: Trainer) -> str:
    """Return when the trainer needs most, and what PyTorch then holds."""
    when = f"peak at {shown(trainer.moment)}; " if trainer.moment else "at its peak "
    allocated, reserved = spread(trainer.allocated_gib), spread(trainer.reserves)
    return f"{when}PyTorch allocates {allocated} GiB, reserves {reserved}"
