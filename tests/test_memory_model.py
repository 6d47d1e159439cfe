"""The trainer's memory (rules/memory.rules) against PyTorch's own accounting of real training steps.

benchmarks/oracle measured them with fake tensors; benchmarks/data/oracle.jsonl keeps the numbers, so this
needs no PyTorch. The rows marked holdout are of models that nobody looked at while the formulas were written.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from accuracy_rows import GIB, facts_of, oracle_estimate, oracle_rows

ROWS = [row for row in oracle_rows() if "failure" not in row]


def error(row: dict[str, Any]) -> float:
    """Return how far off the estimate is, of the measured peak."""
    _, told = oracle_estimate(row)
    assert not told.wants, (told.wants, row["config"])
    return told.middle * GIB / row["peak_bytes"] - 1


def test_there_are_enough_steps_of_enough_architectures() -> None:
    families = {str(facts_of({"model_path": row["config"]["model_path"]})["model.family"]) for row in ROWS}
    assert len(ROWS) >= 60
    assert len(families) >= 10
    assert sum(row["set"] == "holdout" for row in ROWS) >= 30


@pytest.mark.parametrize("part", ["fit", "holdout"])
def test_the_model_comes_within_half_a_percent(part: str) -> None:
    errors = [abs(error(row)) for row in ROWS if row["set"] == part]
    assert statistics.median(errors) <= 0.005
    assert max(errors) <= 0.05


def test_a_point_where_everything_is_known() -> None:
    values = facts_of({"model_path": "Qwen/Qwen2.5-0.5B", "micro_batch_size": 1, "seq_len": 5120})
    assert isinstance(values["trainer.allocated"], (int, float))
    assert abs(values["trainer.allocated"] / GIB - 18.06) < 0.1  # PyTorch's accounting of this step


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ({"micro_batch_size": 16}, {"micro_batch_size": 8}),
        ({"seq_len": 4096}, {"seq_len": 2048}),
        ({"gradient_checkpointing": "none"}, {"gradient_checkpointing": "full"}),
        ({"optimizer": "adamw"}, {"optimizer": "adamw_8bit"}),
        ({"fused_loss": "none"}, {"fused_loss": "chunked"}),
        ({"lora_rank": 0}, {"lora_rank": 16, "lora_targets": ["q_proj", "v_proj"]}),
        ({"num_gpus": 8, "dp_shard": 1}, {"num_gpus": 8, "dp_shard": 8}),
        (
            {"num_gpus": 8, "zero_stage": 1, "micro_batch_size": 1},
            {"num_gpus": 8, "zero_stage": 2, "micro_batch_size": 1},
        ),
        ({"num_gpus": 8, "zero_stage": 2}, {"num_gpus": 8, "zero_stage": 3}),
        ({"offload_optimizer": False}, {"offload_optimizer": True}),
        ({"attn_impl": "eager", "gradient_checkpointing": "none"}, {"gradient_checkpointing": "none"}),
        ({"param_dtype": "fp32"}, {"param_dtype": "bf16"}),
        ({"task": "ppo"}, {"task": "grpo"}),
        ({"evaluator": {"model_path": "Qwen/Qwen2.5-14B"}}, {}),
        (
            {"evaluator": {"model_path": "Qwen/Qwen2.5-14B"}},
            {"evaluator": {"model_path": "Qwen/Qwen2.5-14B", "quantization": 8}},
        ),
    ],
    ids=lambda facts: ",".join(f"{k}={v}" for k, v in facts.items()) or "nothing",
)
def test_what_a_setting_costs(more: dict[str, Any], less: dict[str, Any]) -> None:
    base = {
        "model_path": "Qwen/Qwen2.5-7B",
        "micro_batch_size": 8,
        "seq_len": 2048,
        "gradient_checkpointing": "full",
    }
    high, low = (facts_of({**base, **facts})["trainer.memory"] for facts in (more, less))
    assert high.hi > low.hi, (high, low)


def test_parts_add_up_to_the_need() -> None:
    values = facts_of({"model_path": "Qwen/Qwen2.5-1.5B", "micro_batch_size": 4, "seq_len": 2048})
    parts = [
        values[f"need.{part}"] for part in ("weights", "gradients", "optimizer", "activations", "logits")
    ]
    total = sum(parts) + values["need.engine"]
    assert total == pytest.approx(values["trainer.allocated"], rel=1e-9)


def test_a_token_budget_of_rl_is_an_upper_bound() -> None:
    values = facts_of(
        {
            "model_path": "Qwen/Qwen2.5-0.5B",
            "task": "grpo",
            "rollout_engine": "sglang",
            "mem_fraction": 0.5,
            "max_tokens_per_microbatch": 8192,
            "rollout_batch_size": 8,
            "n_samples": 4,
            "max_prompt_len": 256,
            "max_new_tokens": 256,
        }
    )
    tokens = values["micro.tokens"]
    assert (tokens.lo, tokens.hi) == (4096, 8192)
