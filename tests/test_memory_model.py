"""The trainer's memory (rules/memory/) against PyTorch's own accounting of real training steps.

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

HUGGING_FACE = {"logits.bytes": 12}  # the loss of transformers' models
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
    values = facts_of(
        {**HUGGING_FACE, "model_path": "Qwen/Qwen2.5-0.5B", "micro_batch_size": 1, "seq_len": 5120}
    )
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
    values = facts_of(
        {**HUGGING_FACE, "model_path": "Qwen/Qwen2.5-1.5B", "micro_batch_size": 4, "seq_len": 2048}
    )
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


QLORA = {
    "model_path": "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    "micro_batch_size": 2,
    "seq_len": 2048,
    "dtype": "bf16",
    "gradient_checkpointing": "full",
    "quantization": 4,
    "double_quantization": False,
    "lora_rank": 32,
    "lora_targets": ["q_proj", "k_proj", "v_proj", "o_proj"],
    "lora_dtype": "fp32",
    "optimizer": "adamw",
    "grad_accum": 1,
    "attn_impl": "sdpa",
}


def test_qlora_as_peft_prepares_it_on_a_t4() -> None:
    # Measured, 3.806 GiB: a loop without autocast whose logits, 4 bytes each, live through the backward pass.
    lifted = facts_of({**QLORA, "kbit_lift": "rest", "logits.bytes": "16 B"})["trainer.allocated"] / GIB
    assert abs(lifted / 3.806 - 1) < 0.02
    assert facts_of(QLORA)["trainer.allocated"] / GIB < 0.8 * lifted


def test_norms_that_return_their_input_s_precision_lift_nothing() -> None:
    gemma = {**QLORA, **HUGGING_FACE, "model_path": "google/gemma-2-2b"}
    norms, none = (facts_of({**gemma, "kbit_lift": lift})["trainer.allocated"] for lift in ("norms", "none"))
    assert norms == none
    assert facts_of({**gemma, "kbit_lift": "rest"})["trainer.allocated"] > 1.1 * none


@pytest.mark.parametrize(("experts", "params"), [("none", 13.6), ("each", 242.2), ("fused", 359.7)])
def test_adapters_on_a_mixture_s_experts(experts: str, params: float) -> None:
    facts = {"model_path": "mistralai/Mixtral-8x7B-v0.1", "lora_rank": 16, "lora_targets": ["all-linear"]}
    values = facts_of({**facts, "lora_experts": experts})
    assert abs(values["params.trained"] / 1e6 - params) < 0.1
    unknown = facts_of(facts)["params.trained"]
    assert (round(unknown.lo / 1e6, 1), round(unknown.hi / 1e6, 1)) == (13.6, 359.7)


MEGATRON = {"train_backend": "megatron", "dtype": "bf16", "grad_dtype": "fp32", "master_weights": True}


def test_megatron_s_distributed_optimizer_takes_6_and_12_over_d() -> None:
    job = {**MEGATRON, "optimizer": "adamw_fused", "num_gpus": 8, "micro_batch_size": 1, "seq_len": 4096}
    values = facts_of({**job, "model_path": "meta-llama/Llama-3.1-8B", "grad_accum": 1})
    assert values["trainer.states"] == values["model.params"] * (6 + 12 / 8)
    assert values["gradients.at_loss"] == 4 * values["model.params"]


def test_experts_states_are_shared_by_the_ranks_that_hold_them() -> None:
    job = {**MEGATRON, "optimizer": "adamw_fused", "num_gpus": 64, "ep": 8, "etp": 1}
    values = facts_of({**job, "model_path": "mistralai/Mixtral-8x7B-v0.1"})
    experts = values["params.experts"]
    dense = values["model.params"] - experts
    assert values["states.optimizer"] == pytest.approx(12 * (dense / 64 + experts / 8 / 8))


QWEN_VL = {
    "model_path": "Qwen/Qwen2.5-7B",
    "model.vision_hidden": 1280,
    "model.vision_layers": 32,
    "model.vision_ffn": 3420,
    "model.vision_patch": 14,
    "model.vision_merge": 2,
    "model.vision_params": 676_550_144,
    "micro_batch_size": 1,
    "seq_len": 20480,
    "images_per_sample": 1,
    "image_pixels": 16384 * 28 * 28,
}


def test_pixels_are_patches_and_cost_what_the_tower_keeps() -> None:
    trained = facts_of({**QWEN_VL, "freeze_vision_tower": False, "gradient_checkpointing": "none"})
    assert trained["image.tokens"].hi == 16384
    assert trained["vision.patches"].hi == 65536
    layers, joined = 32 * (28 * 1280 + 8 * 3420), 12 * 1280 + 2 * 6 * 14 * 14
    assert trained["vision.kept"].hi == 65536 * (layers + joined)
    frozen = facts_of({**QWEN_VL, "freeze_vision_tower": True})
    assert frozen["vision.kept"] == 0
    assert frozen["vision.passing"].hi > 0
    # transformers 5 has what enters a frozen tower's layers kept where layers are recomputed
    hooked = facts_of({**QWEN_VL, "freeze_vision_tower": True, "gradient_checkpointing": "full"})
    assert hooked["vision.kept"].hi == 65536 * (32 * 2 * 1280 + joined)


def test_a_picture_has_no_more_patches_than_the_sequence_has_room_for() -> None:
    short = facts_of({**QWEN_VL, "seq_len": 2048})
    assert short["vision.patches"].hi == 2048 * 4


def test_images_that_nobody_counts_are_none_or_one() -> None:
    untold = {name: value for name, value in QWEN_VL.items() if not name.startswith("image")}
    patches = facts_of(untold)["vision.patches"]
    assert patches.lo == 0
    assert patches.hi == 65536


def test_what_nobody_measured_is_a_range() -> None:
    sizes = {"model_path": "Qwen/Qwen2.5-7B", "micro_batch_size": 1, "seq_len": 4096, "model.tied": False}
    odd = facts_of({**sizes, "model.family": "frobnicator"})["activations.kept"]
    known = facts_of({**sizes, "model.family": "llama"})["activations.kept"]
    assert odd.lo < known < odd.hi


def test_only_attention_has_a_cache_and_mamba_a_state() -> None:
    row = {"model_path": "nvidia/Nemotron-H-8B-Base-8K", "task": "inference", "rollout_engine": "vllm"}
    values = facts_of({**row, "max_new_tokens": 4096})
    assert values["engine.kv_whole"] == 2 * 4 * 8 * 128 * 2
    state = 24 * (8192 * 128 * 4 + 3 * (8192 + 2 * 8 * 128) * 2)
    assert values["engine.state"].hi == state
