"""What `diagnose` found out: the data behind its forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cfglint.engine.memory import FitRow, Span
    from cfglint.features.diagnose.attribution import Failure, Holder
    from cfglint.features.diagnose.measured import Prediction
    from cfglint.findings import Finding, Fix


@dataclass(frozen=True, slots=True)
class Told:
    """A failure with its processes and what its numbers advise."""

    failure: Failure
    holders: tuple[Holder, ...]
    advice: tuple[str, ...]
    again: int = 0  # how often the same message was printed besides


@dataclass(frozen=True, slots=True)
class Repair:
    """A fix of the config, proven on the measured numbers: the need before and after, and the patch."""

    finding: Finding
    fix: Fix
    before: FitRow
    after: FitRow
    parts: tuple[tuple[str, Span, Span], ...]  # engine and trainer, before and after
    diff: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """A config beside the log: what was predicted, what was put in its place, and what mends it."""

    path: str
    text: str
    target: str
    gpu: str
    chosen: str
    predictions: dict[str, Prediction]
    corrections: dict[str, tuple[object, str]]
    findings: tuple[Finding, ...]
    repairs: tuple[Repair, ...]
    row: FitRow


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All failures of the logs, the first in full, and the config's part where one was given."""

    told: tuple[Told, ...]
    judgement: Judgement | None = None
