"""What FSDP gathers, keeps and reduces, and the fullest stage of a pipeline (rules/memory/)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from accuracy_rows import Estimate, estimate, facts_of

LLAMA: dict[str, Any] = {
    "model_path": "meta-llama/Llama-3.1-8B",
    "task": "sft",
    "num_gpus": 2,
    "train_backend": "fsdp",
    "dp_shard": 2,
    "dtype": "bf16",
    "micro_batch_size": 4,
    "seq_len": 4096,
    "packing": True,
    "grad_accum": 1,
    "gradient_checkpointing": "full",
    "optimizer": "adamw_fused",
    "fused_loss": "liger",
    "attn_impl": "flash",
}
LORA = {"lora_rank": 16, "lora_targets": ["q_proj", "v_proj"]}
DEEPSEEK = {
    "model_path": "deepseek-ai/DeepSeek-V3",
    "task": "pretrain",
    "num_gpus": 256,
    "train_backend": "megatron",
    "pp": 16,
    "ep": 16,
    "micro_batch_size": 1,
    "seq_len": 4096,
    "pad_to_max": True,
    "grad_accum": 64,
    "n_microbatches": 64,
    "dtype": "bf16",
    "grad_dtype": "fp32",
    "master_weights": True,
    "gradient_checkpointing": "none",
    "optimizer": "adamw_fused",
    "fused_loss": "none",
    "attn_impl": "flash",
}


def told(name: str, **facts: Any) -> Estimate:
    found = estimate(facts_of(facts), name)
    assert not found.wants
    return found


def test_reentrant_checkpoints_of_frozen_layers_stay_in_fsdp1_and_with_their_gradients() -> None:
    inputs = 4 * 4096 * 4096 * 2 * 32 / 2**30  # tokens, hidden size, bytes, layers
    plain, hooked = (
        told("trainer.allocated", **LLAMA, **LORA, fsdp_version=1, checkpoint_reentrant=one)
        for one in (False, True)
    )
    assert hooked.lo - plain.lo == pytest.approx(inputs, rel=0.15)
    for other in ({"fsdp_version": 2}, {"fsdp_version": 1, "lora_rank": 0}):
        facts = LLAMA | LORA | {"checkpoint_reentrant": True} | other
        assert told("backward.hooked", **facts).hi == 0


def test_quantized_layers_are_gathered_as_they_are_packed_and_keep_their_scales() -> None:
    facts = LLAMA | LORA
    wide = told("gathered.layer", **facts)
    packed = told("gathered.layer", **facts, quantization=4)
    assert packed.lo == pytest.approx(wide.lo / 4)
    weights = [
        told("states.weights", **facts, quantization=4, double_quantization=one) for one in (True, False)
    ]
    scales = 6.98e9 * (1 / 16 - 0.016) / 2**30  # of the linear layers, on each of the two GPUs
    assert weights[1].lo - weights[0].lo == pytest.approx(scales, rel=0.02)


def test_tables_of_their_own_are_not_gathered_with_the_root() -> None:
    table = 128256 * 4096 * 2 / 2**30
    whole = told("gathered.root", **LLAMA)
    apart = told("gathered.root", **LLAMA, fsdp_apart=["embedding", "head"])
    assert whole.lo - apart.lo == pytest.approx(2 * table)
    assert told("gathered.alone", **LLAMA, fsdp_apart=["embedding", "head"]).lo == pytest.approx(table)


def test_gradients_are_reduced_in_the_precision_that_is_told() -> None:
    half, whole = (told("temporary.waiting", **LLAMA, reduce_dtype=one) for one in ("bf16", "fp32"))
    assert whole.lo == pytest.approx(2 * half.lo)


def test_the_fullest_stage_of_a_mixture_has_no_dense_layers() -> None:
    experts = told("experts.here", **DEEPSEEK).lo * 2**30
    assert experts == pytest.approx(4 * 256 / 16 * 3 * 7168 * 2048, rel=0.01)
    assert told("in_flight", **DEEPSEEK).lo * 2**30 == pytest.approx(15)


def test_experts_with_a_capacity_take_no_more() -> None:
    assert told("experts.load", **DEEPSEEK, expert_capacity=1).width == 0
    assert told("experts.load", **DEEPSEEK).width > 0
