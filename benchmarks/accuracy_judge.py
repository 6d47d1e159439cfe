"""What cfglint makes of the rows of one side: what its intervals hold, and which verdicts are wrong.

Each row is judged with errors that its own group did not measure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from accuracy_classes import POINTS, Path, implied, is_given, path_of, per_gpu, statistic_of
from accuracy_left_out import values_left_out
from accuracy_rows import Estimate, estimate, outcome, published, values_of
from accuracy_score import off
from accuracy_split import group_of, on

if TYPE_CHECKING:
    from collections.abc import Mapping

OPEN = ("class not told",)
NO_CLASS: Path = OPEN
WRONG = {("oom", "fits"), ("fits", "oom")}  # how a run ended, and a definite verdict


@dataclass(slots=True)
class Peak:
    """A published peak beside its estimates. Each truth is None where there is nothing to compare."""

    row: Mapping[str, Any]
    path: Path
    wants: tuple[str, ...]
    given: bool = False  # all facts of the estimate
    low: float = 0.0  # the interval for the row's own statistic, in GiB
    high: float = 0.0
    error: float = 0.0  # of the middle of the interval for the row's own statistic
    held: bool | None = None  # by that interval
    need: bool | None = None  # what the row says of the need, by need_gib
    bound: bool | None = None  # the same by the bounds that the verdict uses
    width: float = 0.0  # of need_gib, relative to its middle

    @property
    def judged(self) -> bool:
        """Whether there is an interval."""
        return not self.wants


@dataclass(slots=True)
class Run:
    """A run whose end is known, beside the verdict on it."""

    row: Mapping[str, Any]
    path: Path
    ended: str  # fits or oom
    verdict: str  # fits, tight, oom or unknown
    wants: tuple[str, ...] = field(default=())

    @property
    def definite(self) -> bool:
        """Whether the verdict is fits or oom."""
        return self.verdict in ("fits", "oom")

    @property
    def wrong(self) -> bool:
        """Whether it is definite, and not what happened."""
        return (self.ended, self.verdict) in WRONG


def meets(told: Estimate, peak: tuple[float, float]) -> bool:
    """Whether an interval meets what a page allows."""
    return told.lo <= peak[1] and told.hi >= peak[0]


def peak_of(row: Mapping[str, Any]) -> Peak:
    """Judge a published peak of a trainer."""
    values = values_left_out(row)
    told = published(row, values)
    ranks = row["gpus"] if row["scope"] == "sum_over_gpus" else 1
    told = told.times(1 / ranks)
    found = Peak(row, (path_of(values) or NO_CLASS)[-3:], told.wants)
    if told.wants:
        return found
    statistic = statistic_of(row)
    found.given = statistic is not None and is_given(estimate(values, POINTS[statistic]))
    found.low, found.high = told.lo, told.hi
    found.error, found.held = off(told.middle, per_gpu(row)), meets(told, per_gpu(row))
    likely, bound = estimate(values, "need.likely"), estimate(values, "need.total")
    found.width = likely.width
    need = dict(implied(row, values)).get("need")
    if need is not None:
        found.need, found.bound = meets(likely, need), meets(bound, need)
    return found


def peaks(side: str, *, ready: bool = True) -> list[Peak]:
    """Judge the published peaks of a side: those that state what an estimate needs, or the others."""
    return [
        peak_of(row)
        for row in on(side, "published")
        if row["peak_gib"] is not None and row["of"] == "trainer" and bool(row["estimator_ready"]) is ready
    ]


def runs(side: str) -> list[Run]:
    """Judge the runs of a side whose GPU is named: those of issues, and those that were measured."""
    found: list[Run] = []
    ended = [
        (row, row["result"])
        for row in on(side, "outcomes")
        if row["device"] == "gpu" and not row.get("opinion") and row["result"] in ("fits", "oom")
    ]
    measured = [(row, "fits") for row in on(side, "published") if row["ran"] and not row.get("outside")]
    for row, how in (*ended, *measured):
        if row["gpu"] or "gpu.vram" in row["facts"]:
            said, wants = outcome(row, values_left_out(row))
            found.append(Run(row, (path_of(values_of(row)) or NO_CLASS)[-3:], how, said, wants))
    return found


def groups(some: list[Peak]) -> int:
    """Return how many groups rows are of."""
    return len({group_of(one.row) for one in some})
