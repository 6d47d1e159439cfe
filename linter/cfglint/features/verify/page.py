"""What `cfglint verify` measured, as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfglint.features.fit.words import DASH, INF, spread
from cfglint.report.order import shown

if TYPE_CHECKING:
    from cfglint.engine.memory import Span

_GIB = 2**30
_LEAST = 40


@dataclass(frozen=True, slots=True)
class Process:
    """One process: bytes that it holds (None where it is not told), its role, what was predicted."""

    pid: int
    name: str
    held: int | None
    kind: str
    role: str | None
    predicted: Span | None

    @property
    def verdict(self) -> str:
        """Where the measured number lies: inside, below, above, or unknown."""
        if self.held is None or self.predicted is None or self.predicted.high == INF:
            return "unknown"
        gib = self.held / _GIB
        if gib < self.predicted.low - 0.005:
            return "below"
        return "above" if gib > self.predicted.high + 0.005 else "inside"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU: what programs can have of it, what is in use by anyone, and its processes."""

    index: int
    name: str
    capacity: int | None
    used: int | None
    processes: tuple[Process, ...]
    mig: bool


@dataclass(frozen=True, slots=True)
class Verified:
    """All GPUs; ``predicted`` by role, empty without a config."""

    path: str | None
    predicted: dict[str, Span]
    gpus: tuple[Gpu, ...]


def as_text(found: Verified, *, color: bool, width: int, plain: bool) -> str:
    """Return a table for each GPU."""
    dash = "-" if plain else DASH
    rows: list[list[tuple[str, str]]] = []
    for gpu in found.gpus:
        if rows:
            rows.append([("", "")])
        rows += _gpu(gpu, found, dash, max(width, _LEAST) if width else 0)
    if color:
        from cfglint.report.terminal import painted

        return painted(rows)
    return "\n".join("".join(text for text, _ in row).rstrip() for row in rows) + "\n"


def _gpu(gpu: Gpu, found: Verified, dash: str, width: int) -> list[list[tuple[str, str]]]:
    size = f", {gpu.capacity / _GIB:.2f} GiB usable" if gpu.capacity is not None else ""
    used = f", {gpu.used / _GIB:.2f} in use" if gpu.used is not None else ""
    rows = [[(f"GPU {gpu.index}: {shown(gpu.name)}{size}{used}", "bold")]]
    if gpu.mig:
        rows.append([("MIG is on: NVML tells of processes only to whoever may see all instances", "dim")])
    if not gpu.processes:
        why = (
            " by processes that NVML does not show here (in a container, run it outside)"
            if (gpu.used or 0) > _GIB
            else ""
        )
        rows.append([(f"no process{': memory is held' + why if why else ''}", "dim")])
        return rows
    cells = [("pid", "held", "predicted" if found.path else "", "", "")]
    for one in gpu.processes:
        held = f"{one.held / _GIB:.2f}" if one.held is not None else "?"
        predicted = spread(one.predicted, dash=f" {dash} ") if one.predicted is not None else ""
        verdict = "" if one.predicted is None else one.verdict
        name = f"{one.role}: {shown(one.name)}" if one.role and one.name else one.role or shown(one.name)
        cells.append((str(one.pid), held, predicted, verdict, name or "(its command line cannot be read)"))
    told = [one.held for one in gpu.processes if one.held is not None]
    total = _total(gpu, dash)
    cells.append(("total", f"{sum(told) / _GIB:.2f}" if told else "?", total[0], total[1], ""))
    widths = [max(len(row[i]) for row in cells) for i in range(4)]
    styles = {"inside": "green", "above": "red", "below": "yellow"}
    for i, row in enumerate(cells):
        left = f"{row[0]:>{widths[0]}}  {row[1]:>{widths[1]}}"
        left += f"  {row[2]:>{widths[2]}}" if widths[2] else ""
        verdict = f"  {row[3]:<{widths[3]}}" if widths[3] else ""
        room = width - len(left) - len(verdict) - 2 if width else 10**6
        name = row[4] if len(row[4]) <= room else row[4][: max(room - 1, 0)] + ("~" if dash == "-" else "…")
        rows.append(
            [
                (left, "dim" if i == 0 else ""),
                (verdict, styles.get(row[3], "")),
                (f"  {name}" if name else "", "dim"),
            ]
        )
    if len(told) < len(gpu.processes):
        rows.append([("? the driver does not tell what a process holds (WDDM, MIG, or a container)", "dim")])
    if any(one.verdict == "below" for one in gpu.processes):
        rows.append(
            [("below: a process that has not come to its peak yet holds less than was predicted", "dim")]
        )
    return rows


def _total(gpu: Gpu, dash: str) -> tuple[str, str]:
    """Return what was predicted of the processes with a role together, and where the sum lies."""
    known = [one for one in gpu.processes if one.predicted is not None and one.predicted.high < INF]
    if len(known) < 2 or len({one.role for one in known}) < len(known):
        return "", ""
    spans = [one.predicted for one in known if one.predicted is not None]
    low, high = sum(span.low for span in spans), sum(span.high for span in spans)
    text = f"{low:.2f} {dash} {high:.2f}"
    if any(one.held is None for one in known):
        return text, ""
    held = sum(one.held or 0 for one in known) / _GIB
    return text, "below" if held < low - 0.005 else "above" if held > high + 0.005 else "inside"


def as_json(found: Verified) -> str:
    """Return the numbers as JSON; schemas/verified.schema.json describes it."""
    data = {
        "version": 1,
        "path": found.path,
        "predicted_gib": {role: _bounds(span) for role, span in sorted(found.predicted.items())},
        "gpus": [
            {
                "index": gpu.index,
                "name": gpu.name,
                "capacity_gib": _gib(gpu.capacity),
                "used_gib": _gib(gpu.used),
                "mig": gpu.mig,
                "processes": [
                    {
                        "pid": one.pid,
                        "name": one.name or None,
                        "kind": one.kind,
                        "held_gib": _gib(one.held),
                        "role": one.role,
                        "predicted_gib": _bounds(one.predicted) if one.predicted is not None else None,
                        "verdict": one.verdict,
                    }
                    for one in gpu.processes
                ],
            }
            for gpu in found.gpus
        ],
    }
    return json.dumps(data, indent=2) + "\n"


def _gib(value: int | None) -> float | None:
    return None if value is None else round(value / _GIB, 4)


def _bounds(span: Span) -> list[float | None]:
    return [None if bound == INF else round(bound, 4) for bound in (span.low, span.high)]
