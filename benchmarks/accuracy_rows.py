"""The rows of benchmarks/data, and what cfglint makes of each: see docs/accuracy.md."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "linter"))

from cfglint.document.reading import read_text  # noqa: E402
from cfglint.engine.judge import values_for  # noqa: E402
from cfglint.engine.run import Run  # noqa: E402
from cfglint.facts import missing  # noqa: E402
from cfglint.hardware.target import parse_target  # noqa: E402
from cfglint.lang.pack import load  # noqa: E402
from cfglint.lang.values import INF, Interval, needs_of  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cfglint.facts import Values
    from cfglint.lang.pack import Pack

GIB = 2**30
DATA = ROOT / "benchmarks" / "data"
PER_NODE = 8  # GPUs of a machine, where a row has more than one machine
RULES = ("MEM", "ENG")  # the rules that tell of memory


@dataclass(frozen=True, slots=True)
class Estimate:
    """What cfglint says of one number, in GiB; ``wants`` is not empty where it abstains."""

    lo: float
    hi: float
    wants: tuple[str, ...] = ()

    @property
    def middle(self) -> float:
        """The number to compare where one is wanted."""
        return (self.lo + self.hi) / 2

    @property
    def width(self) -> float:
        """The interval's width relative to its middle."""
        return (self.hi - self.lo) / self.middle if self.middle else 0.0

    def times(self, factor: float) -> Estimate:
        """Return the estimate of several alike."""
        return Estimate(self.lo * factor, self.hi * factor, self.wants)


@lru_cache
def pack() -> Pack:
    """Return the shipped rules, compiled once."""
    return load()


def rows(name: str) -> list[dict[str, Any]]:
    """Return a data file's rows."""
    found: list[dict[str, Any]] = yaml.load(
        (DATA / f"{name}.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader
    )
    return found


def oracle_rows() -> list[dict[str, Any]]:
    """Return what PyTorch's own accounting says of real steps, one case a line; none before it was run."""
    path = DATA / "oracle.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def oracle_estimate(row: Mapping[str, Any]) -> tuple[Values, Estimate]:
    """Return the values of a measured step, and what cfglint makes of its peak.

    A forward-only pass is one moment of a step, not a job of its own; a name without a value says nothing.
    """
    facts = {name: value for name, value in row["config"].items() if value != ""}
    forward = facts.pop("forward_only", False)
    facts["optimizer_embedding_bits"] = facts.pop("embedding_bits", 8)
    if not facts.get("lora_rank"):
        facts.pop("lora_targets", None)
    values = facts_of(facts)
    return values, estimate(values, "moment.logprobs" if forward else "trainer.allocated")


def target_of(row: Mapping[str, Any]) -> str | None:
    """Return a row's target as ``--gpu`` takes it, None where its GPU is not known."""
    name, number = row.get("gpu"), row.get("gpus")
    if name is None or number is None:
        return name
    nodes = number // PER_NODE if number > PER_NODE and number % PER_NODE == 0 else 1
    return f"{name}:{number // nodes}x{nodes}"


def facts_of(facts: Mapping[str, Any], target: str | None = None, untold: Iterable[str] = ()) -> Values:
    """Return the values of a facts file; what is ``untold`` is unknown, whatever its default."""
    rules = pack()
    text = json.dumps({"cfglint": "facts", **facts})
    document = read_text(text, "row.json").documents[0]
    given: dict[str, object] = {name: missing(name, rules.facts[name]) for name in untold}
    if target is not None:
        given.update({name: fact[0] for name, fact in parse_target(target).facts.items()})
    return values_for(Run(rules).subject_of(document, "facts"), given)


def values_of(row: Mapping[str, Any]) -> Values:
    """Return the values of a row on its own target.

    Which fused attention kernel ran makes no difference; what else nobody tells is unknown.
    """
    untold = [name for name in row.get("untold", ()) if name not in ("attn_impl", "enforce_eager")]
    return facts_of(row["facts"], target_of(row), untold)


def estimate(values: Values, *names: str) -> Estimate:
    """Return what the first of ``names`` that the rules know comes to."""
    known = pack().lets.keys() | pack().facts.keys()
    name = next((one for one in names if one in known), None)
    if name is None:
        return Estimate(0, INF, (f"no rule gives {names[-1]}",))
    value = values[name]
    wants = tuple(sorted(needs_of(value)))
    if isinstance(value, Interval):
        if not wants and value.hi == INF:
            wants = (f"{name} has no upper end",)
        return Estimate(value.lo / GIB, value.hi / GIB, wants)
    if isinstance(value, (int, float)):
        return Estimate(value / GIB, value / GIB)
    return Estimate(0, INF, wants or (f"{name} is no number",))


def quantity(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names to compare a published number with, the wanted one first."""
    what = row["of"]
    if what == "engine" and row["facts"].get("rollout_engine") == "hf":
        return ("need.total",)  # generation in the model's own process, not an engine that plans its memory
    if what != "trainer":
        return (f"{what}.memory" if what == "engine" else what,)
    statistic = row.get("likely", row["statistic"])
    if statistic in ("allocated", "active"):
        return "trainer.allocated_range", "trainer.allocated"
    if statistic == "nvidia-smi":
        return ("need.total",) if row["facts"].get("colocated") else ("trainer.seen",)
    return ("trainer.reserved",)


def published(row: Mapping[str, Any]) -> Estimate:
    """Return what cfglint expects where ``row`` has a published number; of several GPUs the sum."""
    if row.get("outside"):
        return Estimate(0, INF, tuple(f"a name for: {one}" for one in row["outside"]))
    found = estimate(values_of(row), *quantity(row))
    # Ranks of the rows that give a sum are alike (ZeRO, data parallel), so the fullest stands for each.
    return found.times(row["gpus"]) if row["scope"] == "sum_over_gpus" else found


def verdict(need: Estimate, capacity: Estimate) -> str:
    """Return error, may, fits, or unknown, as ``cfglint fit`` does."""
    if need.lo > capacity.hi:
        return "error"
    if need.wants or capacity.wants:
        return "unknown"
    return "fits" if need.hi <= capacity.lo else "may"


def outcome(row: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return cfglint's verdict on a run, and what it wanted where it abstains.

    The worse of the arithmetic (need.total against gpu.vram) and of the rules on memory at level error.
    """
    if row.get("outside"):
        return "unknown", tuple(f"a name for: {one}" for one in row["outside"])
    values = values_of(row)
    need, capacity = estimate(values, "need.total"), estimate(values, "gpu.vram")
    said = verdict(need, capacity)
    for rule in pack().rules:
        if rule.code.startswith(RULES) and rule.level == "error" and rule.covers("facts", values.version):
            truth = rule.test(values)
            if truth is False:
                return "error", ()
            if truth is not None and truth is not True and not needs_of(truth) and said != "error":
                said = "may"
    return said, (*need.wants, *capacity.wants) if said == "unknown" else ()


def host(row: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return the verdict on a machine's memory; pages say GB without saying which, so it spans both."""
    need = estimate(values_of(row), "host.memory")
    told = row.get("host_ram_gb")
    if told is None:
        return "unknown", (*need.wants, "the machine's memory")
    said = verdict(need, Estimate(told * 1e9 / GIB, told))
    return said, need.wants if said == "unknown" else ()
