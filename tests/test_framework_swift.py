"""ms-swift's commands: what each fact comes from, and what is not known."""

from __future__ import annotations

import pytest

from cfglint.cli import main
from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from told import point

FOUR = "NPROC_PER_NODE=4 swift "
SFT = "sft --model Qwen/Qwen2.5-7B --torch_dtype bfloat16 --max_length 2048 "
GRPO = "rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B --torch_dtype bfloat16 "
COLOCATED = GRPO + "--use_vllm true --vllm_mode colocate "
TABLE = [
    (FOUR + SFT, {"task": "sft", "train_gpus": 4, "micro_batch_size": 1, "grad_accum": 4, "lora_rank": 8}),
    (FOUR + SFT, {"gradient_checkpointing": "full", "zero_stage": 0, "dp_shard": 1, "quantization": "none"}),
    (FOUR + SFT, {"model_path": "Qwen/Qwen2.5-7B", "dtype": "bf16", "seq_len": 2048, "packing": False}),
    (FOUR + SFT, {"attn_impl": "sdpa", "lora_targets": ("all-linear",)}),
    (FOUR + SFT + "--target_modules all-linear", {"lora_targets": ("all-linear",)}),
    (FOUR + SFT + "--modules_to_save embed_tokens lm_head", {"lora_embeddings": True}),
    (FOUR + SFT + "--modules_to_save all-embedding", {"lora_embeddings": True}),
    (FOUR + SFT + "--modules_to_save norm", {"lora_embeddings": False}),
    (FOUR + SFT + "--experts_impl grouped_mm", {"hf.layout": "stacked"}),
    (FOUR + SFT + "--attn_impl flash_attn", {"attn_impl": "flash_attention_2"}),
    (FOUR + SFT + "--tuner_type full --deepspeed zero3", {"lora_rank": 0, "zero_stage": 3}),
    (
        FOUR + SFT + "--train_type full --deepspeed zero2_offload",
        {"zero_stage": 2, "offload_optimizer": True},
    ),
    (FOUR + SFT + "--gradient_accumulation_steps 2", {"effective_batch_size": 8}),
    (FOUR + SFT + "--quant_method bnb --quant_bits 4", {"quantization": "4"}),
    (FOUR + SFT + "--sequence_parallel_size 2 --packing true", {"sp": 2, "train_dp": 2, "packing": True}),
    (FOUR + SFT.replace("sft", "pt"), {"task": "pretrain"}),
    (FOUR + SFT.replace("sft", "rlhf --rlhf_type dpo"), {"task": "dpo", "generates": False}),
    (FOUR + GRPO, {"task": "grpo", "grad_accum": 1, "rollout_engine": "hf", "colocated": False}),
    (FOUR + COLOCATED, {"colocated": True, "mem_fraction": 0.9, "rollout_dp": 4, "sleep_mode": False}),
    (FOUR + COLOCATED + "--sleep_level 1", {"sleep_mode": True}),
    (FOUR + COLOCATED + "--vllm_max_model_len 512", {"seq_len": 512}),  # an answer alone may be as long
    # One process spreads the model over all GPUs that it sees: what each holds is not told.
    ("CUDA_VISIBLE_DEVICES=0 swift " + SFT, {"train_gpus": 1, "model_path": "Qwen/Qwen2.5-7B"}),
    ("CUDA_VISIBLE_DEVICES=0,1 swift " + SFT, {"model_path": None}),
    # Started by another launcher, its sharding is that one's.
    (
        "accelerate launch --use_fsdp --num_processes 4 swift/cli/sft.py --fp8 false " + SFT[4:],
        {"framework.name": "swift", "dp_shard": -1, "train_gpus": 4, "lora_rank": 8},
    ),
]


@pytest.mark.parametrize(("command", "expected"), TABLE, ids=[str(i) for i in range(len(TABLE))])
def test_flags_are_read(pack, command, expected):
    run = Run(pack, [parse_target("a100-80gb-sxm:4")])
    (subject,) = run.subjects(read_text(command + "\n", "train.sh"), judge_broken=True)
    values = run.judged(subject)[0].values
    assert {name: point(values[name]) for name in expected} == expected


def test_a_file_is_read_as_its_flags(pack):
    text = "model: Qwen/Qwen2.5-7B\ntuner_type: full\ndataset: data.jsonl\nper_device_train_batch_size: 2\n"
    run = Run(pack, [parse_target("a100-80gb-sxm")])
    (subject,) = run.subjects(read_text(text, "sft.yaml"), judge_broken=True)
    values = run.judged(subject)[0].values
    assert (values["framework.name"], values["lora_rank"], values["micro_batch_size"]) == ("swift", 0, 2)


def test_a_checkpoint_that_is_quantized_already_is_small(pack):
    run = Run(pack, [parse_target("rtx-4090")])
    sizes = []
    for model in ("Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4"):
        command = f"CUDA_VISIBLE_DEVICES=0 swift {SFT.replace('Qwen/Qwen2.5-7B', model)}\n"
        (subject,) = run.subjects(read_text(command, "train.sh"), judge_broken=True)
        sizes.append(run.judged(subject)[0].values["weights.resident"])
    whole, small = (size if isinstance(size, (int, float)) else size.hi for size in sizes)
    assert small < 0.75 * whole


def test_no_fused_loss_that_mixes_in_another_is_offered(tmp_path, capsys):
    command = (
        "swift {}--model Qwen/Qwen2.5-1.5B-Instruct --tuner_type lora --torch_dtype bfloat16 "
        "--max_length 4096 --dataset some/data --packing true "
        "--attn_impl flash_attn --per_device_train_batch_size 8\n"
    )
    teacher = "rlhf --rlhf_type gkd --teacher_model Qwen/Qwen2.5-3B-Instruct "
    for words, offered in ((teacher, False), ("sft ", True)):
        (tmp_path / "run.sh").write_text(command.format(words), encoding="utf-8")
        main(["check", str(tmp_path), "--no-detect", "--gpu", "rtx-3090:1"])
        assert ("use_liger_kernel" in capsys.readouterr().out) is offered, words
