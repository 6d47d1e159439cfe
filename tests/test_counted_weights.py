"""Weights by kind and adapters, against what transformers and PEFT make: benchmarks/data/counts.jsonl.

`python -m oracle counts` counted them on the meta device, adapters with rank 1.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from accuracy_rows import facts_of  # noqa: E402

ROWS = [json.loads(line) for line in (ROOT / "benchmarks/data/counts.jsonl").read_text("utf-8").splitlines()]
WEIGHTS, ADAPTERS = 0.001, 0.15  # of all weights; of the adapters
# The catalogue has no columns for: a tower of sound, layers of two widths, and experts that differ by layer.
SOUND = ("Qwen/Qwen2.5-Omni-7B", "Qwen/Qwen3-Omni-30B-A3B-Instruct")
OTHERS = ("XiaomiMiMo/MiMo-V2-Flash",)
# Whose linear layers are of another make: Kimi's delta attention, Mamba with small norms, towers of sound.
ODD = (
    "Kimi-",
    "DeepSeek-V4",
    "Step-3.7",
    "gemma-4",
    "Jamba",
    "mpt",
    *(name.partition("/")[2] for name in SOUND),
)


def _facts(row: dict[str, Any], targets: list[str]) -> Any:
    tensors = [name for name in targets if ".experts." in name]
    return facts_of(
        {
            "model_path": row["model"],
            "lora_rank": 1,
            "lora_targets": [] if tensors else targets,
            "lora_parameters": tensors,
            "lora_experts": "fused",
            "freeze_vision_tower": False,
            "seq_len": 128,
            "micro_batch_size": 1,
        }
    )


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["model"] not in OTHERS], ids=lambda row: row["model"]
)
def test_weights(row: dict[str, Any]) -> None:
    """Experts, tables and tower are as many as the class of transformers has."""
    values, counted = _facts(row, ["all-linear"]), row["weights"]
    whole = sum(counted.values())
    for name, kind in (
        ("params.experts", "experts"),
        ("params.embeddings", "tables"),
        ("params.vision", "tower"),
    ):
        if kind == "tower" and row["model"] in SOUND:
            continue
        assert values[name] == pytest.approx(counted.get(kind, 0), abs=WEIGHTS * whole), name


def _adapted() -> list[tuple[dict[str, Any], str]]:
    return [
        (row, targets)
        for row in ROWS
        for targets, counted in row["lora"].items()
        if "failure" not in counted and not row["model"].partition("/")[2].startswith(ODD)
    ]


@pytest.mark.parametrize(("row", "targets"), _adapted(), ids=lambda part: str(part)[:60])
def test_adapters(row: dict[str, Any], targets: str) -> None:
    """PEFT's adapters by its own list or names; those of a tower count where all linear layers have one."""
    counted = row["lora"][targets]
    names = targets.split(",")
    if targets == "default":
        names = _facts(row, ["all-linear"])["lora.default_targets"]
    values = _facts(row, names)
    wanted = counted.get("text", 0) + (counted.get("tower", 0) if targets == "all-linear" else 0)
    assert values["lora.params"] == pytest.approx(wanted, rel=ADAPTERS)


PATTERNS = [
    row
    for row in map(json.loads, (ROOT / "benchmarks/data/patterns.jsonl").read_text("utf-8").splitlines())
    if "failure" not in row["lora"]
]


@pytest.mark.parametrize("row", PATTERNS, ids=lambda row: f"{row['model']} {row['targets']}"[:70])
def test_adapters_by_parents_patterns_and_numbers(row: dict[str, Any]) -> None:
    """What PEFT puts adapters on, given names with parents, a pattern, tensors, or one layer's number."""
    targets = row["targets"] if isinstance(row["targets"], list) else [row["targets"]]
    assert _facts(row, targets)["lora.params"] == pytest.approx(row["lora"]["text"], rel=ADAPTERS)
