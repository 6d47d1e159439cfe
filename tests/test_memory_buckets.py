"""What waits for a reduction: DeepSpeed's buckets, DDP's copies, and gradients that FSDP keeps whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.judge import values_for
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load
from cfglint.lang.values import Interval

MODEL = {"model_name_or_path": "Qwen/Qwen2.5-7B", "output_dir": "x", "bf16": True}
HIDDEN, PARAMETERS = 3584, 7_615_616_512


def values(config: dict[str, Any], framework: str = "transformers") -> Any:
    """Return the facts of a config on a machine of eight GPUs."""
    document = read_text(json.dumps(config), "config.json").documents[0]
    given = {name: fact[0] for name, fact in parse_target("h100-sxm:8").facts.items()}
    return values_for(Run(load()).subject_of(document, framework), given)


def zero(stage: int, **keys: Any) -> dict[str, Any]:
    """Return a Trainer's config with DeepSpeed's in it."""
    section = {"zero_optimization": {"stage": stage, **keys}, "bf16": {"enabled": True}}
    return {**MODEL, "packing": True, "deepspeed": section}


@pytest.mark.parametrize(
    ("keys", "elements"),
    [
        ({"reduce_bucket_size": 200_000_000}, 200_000_000),
        ({"reduce_bucket_size": "auto"}, HIDDEN * HIDDEN),
        ({"reduce_bucket_size": 200_000_000, "overlap_comm": True}, 2 * 200_000_000),
        ({"overlap_comm": False}, 500_000_000),
    ],
)
def test_stage_2_makes_its_buckets_in_the_backward_pass(keys: dict[str, Any], elements: int) -> None:
    told = values(zero(2, **keys), "trl")
    assert told["backward.buckets"] == 2 * elements
    assert told["deepspeed.buckets"] == 0


def test_stage_3_keeps_one_and_what_it_uses_again() -> None:
    told = values(zero(3, reduce_bucket_size=100_000_000, stage3_max_reuse_distance=0), "trl")
    assert told["backward.buckets"] == 0
    assert isinstance(told["deepspeed.buckets"], Interval)
    assert told["deepspeed.buckets"].lo == 2 * 100_000_000
    more = values(zero(3, reduce_bucket_size=100_000_000, stage3_max_reuse_distance=1_000_000_000), "trl")
    assert more["deepspeed.buckets"].hi - told["deepspeed.buckets"].hi == pytest.approx(2 * 1_000_000_000)


def test_data_parallel_copies_its_gradients() -> None:
    told = values(
        {"task": "sft", "model_path": "Qwen/Qwen2.5-7B", "train_backend": "ddp", "num_gpus": 8}, "facts"
    )
    assert told["ddp.buckets"] == told["states.gradients"] > 0
    alone = values(
        {"task": "sft", "model_path": "Qwen/Qwen2.5-7B", "train_backend": "ddp", "num_gpus": 1}, "facts"
    )
    assert alone["ddp.buckets"] == 0


@pytest.mark.parametrize(
    ("more", "whole"),
    [
        ({"gradient_accumulation_steps": 4}, 2 * PARAMETERS),
        ({"gradient_accumulation_steps": 1}, 0),
        (
            {
                "gradient_accumulation_steps": 4,
                "accelerator_config": {"gradient_accumulation_kwargs": {"sync_each_batch": True}},
            },
            0,
        ),
    ],
)
def test_the_trainer_keeps_the_gradients_of_fsdp_whole(more: dict[str, Any], whole: int) -> None:
    told = values({**MODEL, "fsdp": "full_shard auto_wrap", **more})
    assert told["train_backend"] == "fsdp"
    assert told["gradients.unsharded"] == whole
    if whole:
        assert told["gradients.at_loss"] == 0


def test_no_sync_is_nothing_under_an_older_fsdp2() -> None:
    config = {
        "base_model": "Qwen/Qwen2.5-7B",
        "datasets": [{"path": "x", "type": "alpaca"}],
        "bf16": True,
        "micro_batch_size": 1,
        "gradient_accumulation_steps": 4,
        "sequence_len": 2048,
        "optimizer": "adamw_torch_fused",
        "fsdp_config": {"offload_params": False},
    }
    first, second = (values({**config, "fsdp_version": version}, "axolotl") for version in (1, 2))
    assert first["gradients.unsharded"] == 2 * PARAMETERS
    kept = second["gradients.unsharded"]
    assert (kept.lo, kept.hi) == (0, 2 * PARAMETERS)
    # Shards take the place of what was whole: it widens no other moment.
    assert second["moment.step"].hi - second["moment.step"].lo < 2**30
