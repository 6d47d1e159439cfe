"""ms-swift's Megatron commands: facts, and memory against what its examples say they take."""

from __future__ import annotations

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from told import point

SFT = "NPROC_PER_NODE=2 megatron sft --model Qwen/Qwen2.5-7B-Instruct --max_length 2048 "
LORA = SFT + "--tuner_type lora --lora_rank 16 --target_modules all-linear "
FULL = "--recompute_granularity full --recompute_method uniform --recompute_num_layers 1 "
TABLE = [
    (
        SFT,
        {"framework.name": "swift_megatron", "task": "sft", "lora_rank": 0, "train_gpus": 2, "dtype": "bf16"},
    ),
    (SFT, {"micro_batch_size": 1, "grad_accum": 8, "gradient_checkpointing": "selective", "shard_stage": 1}),
    (
        SFT,
        {"model_path": "Qwen/Qwen2.5-7B-Instruct", "seq_len": 2048, "packing": False, "grad_dtype": "fp32"},
    ),
    (SFT + FULL, {"gradient_checkpointing": "full"}),
    (SFT + "--recompute_granularity none", {"gradient_checkpointing": "none"}),
    (
        SFT + "--tensor_model_parallel_size 2 --global_batch_size 32",
        {"train_tp": 2, "train_dp": 1, "grad_accum": 32},
    ),
    (LORA, {"lora_rank": 16}),
    (LORA.replace("tuner_type", "train_type"), {"lora_rank": 16}),
    (SFT.replace("sft", "pt"), {"task": "pretrain"}),
    (SFT.replace("sft", "rlhf") + "--rlhf_type dpo", {"task": "dpo", "reference.present": True}),
    (
        SFT.replace("sft", "rlhf") + "--rlhf_type grpo",
        {"task": "grpo", "generates": True, "trainer.memory": None},
    ),
]


@pytest.mark.parametrize(("command", "expected"), TABLE, ids=[str(i) for i in range(len(TABLE))])
def test_flags_are_read(pack, command, expected):
    values = _judged(pack, command, "a100-80gb-sxm:2")
    assert {name: point(values[name]) for name in expected} == expected


PACKED = (
    "--packing true --max_length 8192 --micro_batch_size 1 --global_batch_size 16 --sequence_parallel true "
)
# What the headers of examples/megatron say at 3602360a: the GPUs, and the GiB that each takes.
SAID = [
    (8, 80, PACKED + FULL + "--model Qwen/Qwen3-32B --tensor_model_parallel_size 8"),
    (
        8,
        57,
        PACKED + FULL + "--model Qwen/Qwen1.5-MoE-A2.7B --pipeline_model_parallel_size 2 "
        "--decoder_last_pipeline_num_layers 11 --expert_model_parallel_size 4",
    ),
]


@pytest.mark.parametrize(("gpus", "said", "flags"), SAID, ids=["dense", "moe"])
def test_memory_is_what_the_examples_take(pack, gpus, said, flags):
    values = _judged(pack, f"NPROC_PER_NODE={gpus} megatron sft {flags}", f"h100-sxm:{gpus}")
    estimate = values["trainer.memory"]
    assert estimate.lo / 2**30 < said < 1.2 * estimate.hi / 2**30


LOSSES = [
    ("", None, 6, 6),
    ("--cross_entropy_fusion_impl te", None, 2, 4),
    ("", (4, 1, 3), 2, 4),
    ("", (4, 3, 2), 6, 6),
]


@pytest.mark.parametrize(("flags", "version", "least", "most"), LOSSES)
def test_the_loss_is_the_releases(pack, flags, version, least, most):
    told = _judged(pack, SFT + flags, "a100-80gb-sxm:2", version)["logits.bytes"]
    assert (getattr(told, "lo", told), getattr(told, "hi", told)) == (least, most)


def _judged(pack, command, target, version=None):
    run = Run(pack, [parse_target(target)], framework="swift_megatron" if version else None, version=version)
    (subject,) = run.subjects(read_text(command + "\n", "train.sh"), judge_broken=True)
    return run.judged(subject)[0].values
