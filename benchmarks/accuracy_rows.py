"""The rows of benchmarks/data, and what cfglint makes of each: see docs/accuracy.md."""

from __future__ import annotations

import json
import math
import re
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
from cfglint.facts import missing, stated  # noqa: E402
from cfglint.hardware.target import parse_target  # noqa: E402
from cfglint.lang.pack import load  # noqa: E402
from cfglint.lang.runtime import as_version  # noqa: E402
from cfglint.lang.values import INF, Interval, needs_of  # noqa: E402
from cfglint.models import NOT_DENSE, PARTS, VISION  # noqa: E402
from cfglint.models.registry import catalogue  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cfglint.facts import Values
    from cfglint.lang.pack import Pack

GIB = 2**30
DATA = ROOT / "benchmarks" / "data"
PER_NODE = 8  # GPUs of a machine, where a row has more than one machine
RULES = ("MEM", "ENG")  # the rules that tell of memory
# Whose code trains, by what a row calls its framework: the value of trainer.code (rules/memory/).
CODES = {
    "transformers": (
        *(
            "transformers",
            "peft",
            "ms-swift",
            "ms-swift 2",
            "trl",
            "llama-factory",
            "axolotl",
            "unsloth",
            "accelerate",
        ),
        *(
            "deepspeed",
            "deepspeed-chat",
            "fastchat",
            "yarn",
            "open-instruct",
            "dllm",
            "dfactory",
            "fsdp_qlora",
        ),
    ),
    "rl": ("verl", "openrlhf", "areal", "nemo-rl", "easyr1", "open-reasoner-zero", "skyrl"),
    "native": ("torchtune", "torchtitan", "litgpt", "prime-rl", "llm-foundry"),
    "megatron": (
        "megatron",
        "megatron-lm",
        "megatron-bridge",
        "megatron-llm",
        "slime",
        "gpt-neox",
        "ms-swift (megatron)",
    ),
}


_VALUES: dict[str, Values] = {}  # of rows by their id, which are asked for again and again


@dataclass(frozen=True, slots=True)
class Estimate:
    """What cfglint says of one number, in GiB; ``wants`` is not empty where it abstains."""

    lo: float
    hi: float
    wants: tuple[str, ...] = ()

    @property
    def middle(self) -> float:
        """The number to compare where one is wanted: errors are factors, so it is the geometric middle."""
        return math.sqrt(self.lo * self.hi) if self.lo > 0 and self.hi < INF else (self.lo + self.hi) / 2

    @property
    def width(self) -> float:
        """The interval's width relative to the point half way between its ends."""
        return 2 * (self.hi - self.lo) / (self.hi + self.lo) if self.hi + self.lo else 0.0

    def times(self, factor: float) -> Estimate:
        """Return the estimate of several alike."""
        return Estimate(self.lo * factor, self.hi * factor, self.wants)


@lru_cache
def pack() -> Pack:
    """Return the shipped rules, compiled once."""
    return load()


@lru_cache
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
    facts |= {
        "logits.bytes": 12,
        "liger.layers": False,
    }  # transformers' loss and layers, beside Liger's fused loss
    if facts.get("images_per_sample"):
        facts["image.pixels"] = facts.pop("image_pixels")  # of each picture, not the most of any
    else:
        facts.pop("image_pixels", None)
        facts.pop("images_per_sample", None)
        facts.pop("freeze_vision_tower", None)
    if not facts.get("amp"):
        facts.pop("amp", None)  # autocast over fp32 weights follows from the precisions
    if not facts.get("lora_rank"):
        facts.pop("lora_targets", None)
    if figures := row.get("figures"):
        every = {**dict.fromkeys(NOT_DENSE, 0), **dict.fromkeys(PARTS, figures["layers"]), **figures}
        facts |= {f"model.{name}": value for name, value in every.items()}
    else:
        facts |= _text_alone(str(facts.get("model_path", "")))
    values = facts_of(facts)
    return values, estimate(values, "moment.logprobs" if forward else "trainer.allocated")


def _text_alone(name: str) -> dict[str, object]:
    """Return the facts of a model without its vision tower, which the oracle's steps leave out."""
    row = catalogue().get(name.lower())
    if row is None or not row["vision_params"]:
        return {}
    alone: dict[str, object] = {f"model.{column}": 0 for column in VISION}
    for column in ("params", "active_params"):
        alone[f"model.{column}"] = row[column] - row["other_params"]  # type: ignore[operator]
    return alone


def target_of(row: Mapping[str, Any]) -> str | None:
    """Return a row's target as ``--gpu`` takes it, None where its GPU is not known."""
    name, number = row.get("gpu"), row.get("gpus")
    if name is None or number is None:
        return name
    nodes = number // PER_NODE if number > PER_NODE and number % PER_NODE == 0 else 1
    return f"{name}:{number // nodes}x{nodes}"


def code_of(framework: str) -> str:
    """Return whose code trains in a framework of a row; those that nobody listed are unknown."""
    name = framework.lower()
    plain = re.split(r"[ +(]", name)[0]
    found = (code for wanted in (name, plain) for code, names in CODES.items() if wanted in names)
    return next(found, "unknown")


def facts_of(facts: Mapping[str, Any], target: str | None = None, untold: Iterable[str] = ()) -> Values:
    """Return the values of a facts file; what is ``untold`` is unknown, whatever its default."""
    rules = pack()
    text = json.dumps({"cfglint": "facts", **facts})
    document = read_text(text, "row.json").documents[0]
    given: dict[str, object] = {name: missing(name, rules.facts[name]) for name in untold}
    if target is not None:
        given.update({name: fact[0] for name, fact in parse_target(target).facts.items()})
    return values_for(Run(rules).subject_of(document, "facts"), given)


def launched(command: str, target: str | None) -> Values:
    """Return the values of a launch, as cfglint reads it in a script."""
    run = Run(pack(), [parse_target(target)] if target else [])
    (subject,) = run.subjects(read_text(f"{command}\n", "train.sh"), judge_broken=True)
    return run.judged(subject)[0].values


def configured(row: Mapping[str, Any]) -> Values:
    """Return the values of a row's config, as its framework reads it, on the row's GPUs.

    ``reader`` names the block where the framework's own name does not, ``version`` the framework's; the facts
    lie over the config.
    """
    rules = pack()
    run = Run(rules)
    document = read_text(json.dumps(row["config"]), "config.json").documents[0]
    given: dict[str, object] = {name: stated(rules, name, value) for name, value in row["facts"].items()}
    given.update({name: missing(name, rules.facts[name]) for name in untold_of(row)})
    given["seq_cuts"] = row.get("seq_reached") is False
    if (target := target_of(row)) is not None:
        given.update({name: fact[0] for name, fact in parse_target(target).facts.items()})
    version = as_version(row["version"]) if "version" in row else None
    subject = run.subject_of(document, row.get("reader", row["framework"]), version)  # type: ignore[arg-type]
    return values_for(subject, given)


def untold_of(row: Mapping[str, Any]) -> list[str]:
    """Return the facts that nobody tells of a row; which fused kernel ran makes no difference."""
    return [one for one in row.get("untold", ()) if one not in ("attn_impl", "enforce_eager")]


def values_of(row: Mapping[str, Any]) -> Values:
    """Return the values of a row on its own target.

    A row with a ``command`` or a ``config`` is read as its framework reads it; the others are facts files, in
    which what nobody tells is unknown.
    """
    name = row["id"]
    if name not in _VALUES and "command" in row:
        _VALUES[name] = launched(row["command"], target_of(row))
    elif name not in _VALUES and "config" in row:
        _VALUES[name] = configured(row)
    elif name not in _VALUES:
        facts = {"trainer.code": code_of(row["framework"]), **row["facts"]}
        if row.get("seq_reached") is False:  # the page gives the limit, and not the lengths
            facts["seq_cuts"] = True
        _VALUES[name] = facts_of(facts, target_of(row), untold_of(row))
    return _VALUES[name]


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


def published(row: Mapping[str, Any], values: Values) -> Estimate:
    """Return what values expect where their row has a published number; of several GPUs the sum."""
    if row.get("outside"):
        return Estimate(0, INF, tuple(f"a name for: {one}" for one in row["outside"]))
    found = estimate(values, *quantity(row))
    # Ranks of the rows that give a sum are alike (ZeRO, data parallel), so the fullest stands for each.
    return found.times(row["gpus"]) if row["scope"] == "sum_over_gpus" else found


def verdict(need: Estimate, capacity: Estimate) -> str:
    """Return oom, tight, fits, or unknown, as ``cfglint fit`` does."""
    if need.lo > capacity.hi:
        return "oom"
    if need.wants or capacity.wants:
        return "unknown"
    return "fits" if need.hi <= capacity.lo else "tight"


def outcome(row: Mapping[str, Any], values: Values) -> tuple[str, tuple[str, ...]]:
    """Return the verdict on a run, and what was wanted where there is none.

    The worse of the arithmetic (need.total against gpu.vram) and of the rules on memory at level error.
    """
    if row.get("outside"):
        return "unknown", tuple(f"a name for: {one}" for one in row["outside"])
    need, capacity = estimate(values, "need.total"), estimate(values, "gpu.vram")
    said = verdict(need, capacity)
    for rule in pack().rules:
        if rule.code.startswith(RULES) and rule.level == "error" and rule.covers("facts", values.version):
            truth = rule.test(values)
            if truth is False:
                return "oom", ()
            if truth is not None and truth is not True and not needs_of(truth) and said != "oom":
                said = "tight"
    return said, (*need.wants, *capacity.wants) if said == "unknown" else ()


def host(row: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return the verdict on a machine's memory; pages say GB without saying which, so it spans both."""
    need = estimate(values_of(row), "need.host", "host.memory")
    told = row.get("host_ram_gb")
    if told is None:
        return "unknown", (*need.wants, "the machine's memory")
    said = verdict(need, Estimate(told * 1e9 / GIB, told))
    return said, need.wants if said == "unknown" else ()
