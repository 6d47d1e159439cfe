"""The page of what `cfglint verify` measured: a table for each GPU; and its JSON."""

from __future__ import annotations

from cfglint.record import Value
from cfglint.report import written
from cfglint.report.blocks import DASH, INF, Blank, Cell, Column, Line, Table, spread
from cfglint.report.order import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from cfglint.engine.memory import Span
    from cfglint.report import Style
    from cfglint.report.blocks import Block

_NARROWEST = 40  # cells of a line
_COLORS = {"inside": "green", "above": "red", "below": "yellow"}


class Process(Value):
    """One process: GiB that it holds (None where it is not told), its role, what was predicted."""

    pid: int
    name: str | None
    kind: str
    held_gib: float | None
    role: str | None
    predicted_gib: Span | None
    verdict: str


class Gpu(Value):
    """One GPU: what programs can have of it, what is in use by anyone, and its processes."""

    index: int
    name: str
    capacity_gib: float | None
    used_gib: float | None
    mig: bool
    processes: tuple[Process, ...]


class Verified(Value):
    """All GPUs; what was predicted by role, nothing without a config."""

    path: str | None
    predicted_gib: dict[str, Span]
    gpus: tuple[Gpu, ...]


def verdict_of(held: float | None, low: float, high: float) -> str:
    """Say where a measured number lies: inside, below, above, or unknown."""
    if held is None or high == INF:
        return "unknown"
    if held < low - 0.005:
        return "below"
    return "above" if held > high + 0.005 else "inside"


def render_verified(verified: Verified, form: str, style: Style) -> str:
    """Return ``verified`` as text or JSON, ending in a line break."""
    return written(form, style, lambda style: page(verified, style), lambda: as_data(verified))


def as_data(verified: Verified) -> dict[str, Any]:
    """Return the numbers as ``schemas/verified.schema.json`` describes them."""
    from cfglint.report.encode import encode

    return {"version": 1, **encode(verified)}


def page(verified: Verified, style: Style) -> Iterator[Block]:
    """Yield a table for each GPU."""
    width = max(style.width, _NARROWEST) if style.width else 0
    for i, gpu in enumerate(verified.gpus):
        if i:
            yield Blank()
        size = f", {gpu.capacity_gib:.2f} GiB usable" if gpu.capacity_gib is not None else ""
        used = f", {gpu.used_gib:.2f} in use" if gpu.used_gib is not None else ""
        yield Line([(f"GPU {gpu.index}: {shown(gpu.name)}{size}{used}", "bold")])
        if gpu.mig:
            yield _note("MIG is on: NVML tells of processes only to whoever may see all instances")
        if gpu.processes:
            yield from _processes(gpu, "predicted" if verified.path else "", width)
        elif (gpu.used_gib or 0) > 1:
            yield _note(
                "no process: memory is held by processes that NVML does not show here "
                "(in a container, run it outside)"
            )
        else:
            yield _note("no process")


def _note(text: str) -> Line:
    return Line([(text, "dim")])


def _processes(gpu: Gpu, head: str, width: int) -> Iterator[Block]:
    rows = [(str(p.pid), _held([p]), *_estimate(p), _called(p)) for p in gpu.processes]
    rows.append(("total", _held(gpu.processes), *_total(gpu), ""))
    pids, held, predicted, verdicts, names = zip(*rows, strict=True)
    columns = [Column("pid", pids), Column("held", held)]
    if head:
        columns.append(Column(head, predicted))
    if any(verdicts):
        words = [Cell([(word, _COLORS.get(word, ""))]) for word in verdicts]
        columns.append(Column("", words, left=True))
    columns.append(Column("", [Cell([(name, "dim")]) for name in names], left=True, cut=1))
    yield Table(columns, width=width)
    if any(process.held_gib is None for process in gpu.processes):
        yield _note("? the driver does not tell what a process holds (WDDM, MIG, or a container)")
    if any(process.verdict == "below" for process in gpu.processes):
        yield _note("below: a process that has not come to its peak yet holds less than was predicted")


def _held(processes: Sequence[Process]) -> str:
    """Return what processes hold together, as far as it is told."""
    sizes = [process.held_gib for process in processes if process.held_gib is not None]
    return f"{sum(sizes):.2f}" if sizes else "?"


def _estimate(process: Process) -> tuple[str, str]:
    """Return what was predicted of a process, and where its memory lies."""
    if process.predicted_gib is None:
        return "", ""
    return spread(process.predicted_gib).replace(DASH, f" {DASH} "), process.verdict


def _total(gpu: Gpu) -> tuple[str, str]:
    """Return what was predicted of the processes with a role together, and where the sum lies."""
    bounded = [p for p in gpu.processes if p.predicted_gib is not None and p.predicted_gib.high < INF]
    if len(bounded) < 2 or len({process.role for process in bounded}) < len(bounded):
        return "", ""
    spans = [process.predicted_gib for process in bounded if process.predicted_gib is not None]
    low, high = sum(span.low for span in spans), sum(span.high for span in spans)
    text = f"{low:.2f} {DASH} {high:.2f}"
    if any(process.held_gib is None for process in bounded):
        return text, ""
    return text, verdict_of(sum(process.held_gib or 0 for process in bounded), low, high)


def _called(process: Process) -> str:
    words = [word for word in (process.role, shown(process.name or "")) if word]
    return ": ".join(words) or "(its command line cannot be read)"
