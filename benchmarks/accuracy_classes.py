"""The classes of runs that errors are measured for, and what a published number says of each statistic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accuracy_rows import Estimate, estimate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cfglint.facts import Values

Path = tuple[str, ...]  # a class: the words that lead to it, from the most general

NARROW = 1.3  # of an estimate whose facts are all given: its upper end to its lower
POINTS = {  # what each statistic is compared with, before the model's own error
    "need": "trainer.estimate",
    "allocated": "trainer.allocated",
    "reserved": "trainer.reserves",  # batches of one shape
    "varying": "trainer.reserves",  # of several: the allocator's cache grows
    "process": "trainer.shows",
}
# Reserved bytes over allocated ones in runs of one shape that published both: 1.01 to 1.11 in Megatron
# (SimuMax, Megatron-Bridge), 1.05 to 1.28 with adapters (seven groups), 1.5 with FSDP and all weights
# (LambdaLabs). Where a page does not say that it read reserved bytes, nothing is known but the most.
CACHED = {"megatron": 1.12, "LoRA": 1.3, "QLoRA": 1.3}
CACHED_MOST = 1.5
READ = {"allocated": "allocated", "active": "allocated", "reserved": "reserved", "nvidia-smi": "process"}

# The names of the rules that give the words of a path: whose code it is, whether there are experts, what is
# trained, and whether GPUs share its states.
KINDS = ("dense", "MoE")
WORDS = ("error.code", "error.kind", "error.tuned", "error.states")


def path_of(values: Values) -> Path | None:
    """Return the class of a row's values; None where they leave it open."""
    words = tuple(values[name] for name in WORDS)
    path = tuple(word for word in words if isinstance(word, str))
    return path if len(path) == len(WORDS) else None


def statistic_of(row: Mapping[str, Any]) -> str | None:
    """Return what a row's number is; None where nobody knows, or where it is of more than a trainer."""
    if row["of"] != "trainer" or row.get("outside") or row["facts"].get("colocated"):
        return None
    return READ.get(row.get("likely", row["statistic"]))


def per_gpu(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return the published number, between the ends that its page allows."""
    ranks = row["gpus"] if row["scope"] == "sum_over_gpus" else 1
    low, high = row["peak_gib"]
    return low / ranks, high / ranks


def implied(row: Mapping[str, Any], values: Values) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield what a row says of each statistic, between two ends.

    What a process shows beside PyTorch's bytes is the model's own difference. Of reserved bytes an unknown
    part is cache (CACHED); where batches differ in length nobody knows how much, and they imply no need.
    """
    read, varies = statistic_of(row), values["shapes_vary"]
    if read is None or not isinstance(varies, bool):
        return
    if read == "allocated":
        told = [("allocated", (1.0, 1.0)), ("need", (1.0, 1.0))]
    elif varies:
        told = [("varying", (1.0, 1.0))]
    else:
        cached = (_cached(path_of(values) or ()) if row["statistic"] == read else CACHED_MOST, 1.0)
        told = [("allocated", cached), ("need", cached), ("reserved", (1.0, 1.0))]
    published = "allocated" if read == "allocated" else "reserved"
    shown = 0.0 if read != "process" else _point(values, "process") - _point(values, "reserved")
    low, high = per_gpu(row)
    low, high = max(low - shown, low / 2), max(high - shown, high / 2)
    for statistic, (most, least) in told:
        beside = 0.0
        if statistic == "need":
            beside = _point(values, "need") - _point(values, "allocated")
        if estimate(values, POINTS[statistic]).wants or estimate(values, POINTS[published]).wants:
            continue
        yield statistic, (low / most + beside, high / least + beside)


def _cached(path: Path) -> float:
    return min((CACHED[word] for word in path if word in CACHED), default=CACHED_MOST)


def _point(values: Values, statistic: str) -> float:
    return estimate(values, POINTS[statistic]).middle


def is_given(told: Estimate) -> bool:
    """Whether an estimate is a point, or nearly: its facts are all given."""
    return not told.wants and 0 < told.hi <= NARROW * told.lo
