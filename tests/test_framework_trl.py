"""TRL's YAML files: which are recognised, and what each fact comes from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cfglint.api import check_file
from cfglint.document.reading import read, read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.values import Interval, Open, needs_of

if TYPE_CHECKING:
    from cfglint.facts import Values
    from cfglint.lang.pack import Pack

SHARED = os.environ.get("CFGLINT_SHARED")
CORPUS = Path(SHARED or ".") / "corpus"

MODEL = "model_name_or_path: Qwen/Qwen2.5-1.5B\ndataset_name: a/b\n"
SFT = MODEL + "packing: false\n"
DPO = MODEL + "beta: 0.1\nloss_type: sigmoid\n"
GRPO = MODEL + "num_generations: 8\nmax_completion_length: 512\n"
VLLM = GRPO + "use_vllm: true\n"
QLORA = MODEL + "packing: false\nuse_peft: true\nload_in_4bit: true\nbf16: true\n"
ZERO3 = SFT + "accelerate_config: zero3\n"
HANDBOOK = (
    "model_name_or_path: Qwen/Qwen2.5-1.5B\ndataset_mixer: {a/b: 1.0}\ndataset_splits: [train, test]\n"
    "preprocessing_num_workers: 12\nmax_length: 1024\nmax_prompt_length: 512\n"
)
SIMPO = HANDBOOK + "beta: 2.5\ngamma_beta_ratio: 0.5\n"
INLINE = SFT + "deepspeed: {zero_optimization: {stage: 2, offload_optimizer: {device: cpu}}}\n"


def _values(pack: Pack, text: str, target: str | None = "h100-sxm:8", version: str = "") -> Values:
    targets = [] if target is None else [parse_target(target)]
    stated = tuple(float(part) for part in version.split(".")) if version else None
    run = Run(pack, targets, framework="trl" if version else None, version=stated)
    return run.judged(run.subjects(read_text(text, "c.yaml"), judge_broken=True)[0])[-1].values


# What the file says, the fact, its value.
TOLD = [
    (SIMPO, "task", "orpo"),
    (SIMPO, "seq_len", 1024),
    (SIMPO, "reference.present", False),
    (HANDBOOK + "beta: 0.1\noutput_dir: data/zephyr-dpo\n", "task", "dpo"),
    (SFT, "task", "sft"),
    (DPO, "task", "dpo"),
    (GRPO, "task", "grpo"),
    (MODEL + "beta: 0.1\noutput_dir: out/zephyr-7b-dpo\n", "task", "dpo"),
    (MODEL + "output_dir: out/zephyr-7b-sft\n", "task", "sft"),
    (SFT, "generates", False),
    (GRPO, "generates", True),
    (SFT, "model_path", "Qwen/Qwen2.5-1.5B"),
    # batches
    (SFT, "micro_batch_size", 8),
    (SFT + "per_device_train_batch_size: 2\n", "micro_batch_size", 2),
    (SFT, "grad_accum", 1),
    (SFT + "gradient_accumulation_steps: 4\n", "effective_batch_size", 8 * 4 * 8),
    (GRPO, "generation_batch_size", 8 * 8),
    (GRPO + "steps_per_generation: 4\n", "generation_batch_size", 8 * 8 * 4),
    (GRPO + "gradient_accumulation_steps: 2\n", "generation_batch_size", 8 * 8 * 2),
    (GRPO + "generation_batch_size: 24\n", "generation_batch_size", 24),
    (GRPO + "generation_batch_size: null\n", "generation_batch_size", 64),
    (GRPO + "gradient_accumulation_steps: 2\n", "rollout_batch_size", 8 * 8 * 2 / 8),
    (SFT + "eval_strategy: epoch\nper_device_eval_batch_size: 2\n", "eval_batch_size", 16),
    # open-r1's filter of a data set
    (GRPO + "pass_rate_min: 0.1\n", "trains", False),
    (GRPO + "pass_rate_min: 0.1\n", "generates", False),
    # the launch
    (SFT, "train_gpus", 8),
    (SFT + "num_processes: 4\n", "train_gpus", 4),
    (SFT + "num_processes: 4\n", "num_gpus", 4),
    (ZERO3, "zero_stage", 3),
    (ZERO3, "train_backend", "deepspeed"),
    (ZERO3, "offload_params", False),
    (SFT + "accelerate_config: fsdp2\n", "train_backend", "fsdp"),
    (SFT + "accelerate_config: multi_gpu\n", "train_backend", "ddp"),
    (INLINE, "zero_stage", 2),
    (INLINE, "offload_optimizer", True),
    (INLINE, "offload_params", False),
    (SFT, "comm_timeout", 1800),
    # precision: bf16 unless fp16; weights in fp32 unless dtype
    (SFT, "dtype", "bf16"),
    (SFT + "fp16: true\n", "dtype", "fp16"),
    (SFT + "bf16: null\nfp16: true\n", "dtype", "fp16"),
    (SFT + "bf16: false\n", "dtype", "fp32"),
    (SFT + "bf16: false\ndtype: float16\n", "dtype", "fp16"),
    (SFT + "accelerate_config: multi_gpu\n", "param_dtype", "fp32"),
    (SFT + "accelerate_config: multi_gpu\ndtype: bfloat16\n", "param_dtype", "bf16"),
    (SFT + "accelerate_config: multi_gpu\ntorch_dtype: bfloat16\n", "param_dtype", "bf16"),
    (SFT + "accelerate_config: multi_gpu\ntorch_dtype: null\n", "param_dtype", "fp32"),
    (ZERO3, "param_dtype", "bf16"),
    (ZERO3, "master_weights", True),
    (SFT + "accelerate_config: fsdp1\ndtype: bfloat16\n", "param_dtype", "fp32"),
    # adapters count with use_peft alone
    (SFT + "lora_r: 64\n", "lora_rank", 0),
    (SFT + "lora_r: 64\nuse_peft: true\n", "lora_rank", 64),
    (SFT + "use_peft: true\n", "lora_rank", 16),
    (SFT + "use_peft: true\n", "lora_targets", ("q_proj", "v_proj")),
    (SFT + "use_peft: true\nlora_target_modules: all-linear\n", "lora_targets", ("all-linear",)),
    (SFT + "use_peft: true\nlora_target_modules: [q_proj, o_proj]\n", "lora_targets", ("q_proj", "o_proj")),
    (SFT + "use_peft: true\naccelerate_config: multi_gpu\n", "lora_dtype", "fp32"),
    (SFT + "use_peft: true\nload_in_4bit: true\n", "lora_dtype", "bf16"),
    (SFT + "use_peft: true\nlora_modules_to_save: [lm_head]\n", "lora_embeddings", True),
    (SFT + "use_peft: true\nload_in_4bit: true\n", "quantization", "4"),
    (SFT + "load_in_8bit: true\n", "quantization", "8"),
    (SFT, "quantization", "none"),
    # memory
    (SFT, "seq_len", 1024),
    (SFT + "max_length: 4096\n", "seq_len", 4096),
    (SFT + "max_seq_length: 2048\n", "seq_len", 2048),
    (DPO, "micro.cap", 2 * 8 * 1024),
    (SFT, "micro.cap", 8 * 1024),
    (SFT, "packing", False),
    (MODEL + "packing: true\n", "packing", True),
    (DPO + "padding_free: true\n", "packing", True),
    (SFT, "gradient_checkpointing", "full"),
    (SFT + "gradient_checkpointing: false\n", "gradient_checkpointing", "none"),
    (SFT + "activation_checkpointing: false\n", "gradient_checkpointing", "none"),
    (SFT + "activation_offloading: true\n", "activation_offload", True),
    (SFT, "optimizer", "adamw_fused"),
    (SFT + "optim: adamw_torch\n", "optimizer", "adamw"),
    (SFT + "optim: paged_adamw_32bit\n", "optimizer", "paged_adamw"),
    (SFT + "optim: adamw_bnb_8bit\n", "optimizer", "adamw_8bit"),
    (SFT, "fused_loss", "chunked"),
    (SFT, "loss_chunks", 8 * 1024 / 256),
    (SFT + "loss_type: nll\n", "fused_loss", "chunked"),
    (SFT + "use_liger_kernel: true\n", "fused_loss", "liger"),
    (SFT + "torch_dtype: bfloat16\n", "fused_loss", "none"),
    (DPO, "fused_loss", "chunked"),
    (SFT, "attn_impl", "sdpa"),
    (SFT + "attn_implementation: null\n", "attn_impl", "sdpa"),
    (SFT + "torch_compile: true\n", "compile", True),
    # other models
    (SFT, "reference.present", False),
    (DPO, "reference.present", True),
    (DPO + "precompute_ref_log_probs: true\n", "reference.present", False),
    (DPO + "use_peft: true\n", "reference.present", False),
    (GRPO, "reference.present", False),
    (GRPO + "beta: 0.04\n", "reference.present", True),
    (GRPO, "kl_coef", 0),
    (GRPO, "reward.present", False),
    (GRPO + "reward_model_name_or_path: a/judge\n", "reward.present", True),
    (GRPO + "reward_model_name_or_path: a/judge\n", "reward.model_path", "a/judge"),
    # rollout
    (GRPO, "rollout_engine", "hf"),
    (GRPO, "colocated", False),
    (VLLM, "rollout_engine", "vllm"),
    (VLLM, "colocated", True),
    (VLLM + "vllm_mode: server\n", "colocated", False),
    (VLLM + "vllm_mode: server\n", "setup_timeout", 240),
    (VLLM, "mem_fraction", 0.3),
    (VLLM + "vllm_gpu_memory_utilization: 0.5\n", "mem_fraction", 0.5),
    (VLLM + "vllm_tensor_parallel_size: 2\n", "rollout_dp", 4),
    (VLLM, "sleep_mode", False),
    (VLLM + "vllm_enable_sleep_mode: true\n", "sleep_mode", True),
    (VLLM, "max_batched_tokens", 4096),
    (VLLM + "gradient_accumulation_steps: 2\n", "max_running_requests", 16),
    (VLLM + "vllm_max_model_length: 2048\n", "context_length", 2048),
    (VLLM + "vllm_max_model_length: 2048\n", "seq_len", Interval(512, 2048)),
    (GRPO, "n_samples", 8),
    (MODEL + "reward_funcs: x\n", "max_new_tokens", 512),
    (GRPO + "max_prompt_length: 256\n", "seq_len", 768),
    (GRPO + "max_prompt_length: 256\n", "max_prompt_len", 256),
    # run
    (SFT, "num_epochs", 3),
    (SFT, "max_steps", -1),
    (SFT, "dataloader_workers", 0),
    (SFT, "pin_memory", True),
]

# What nothing tells, and the names that would settle it.
UNTOLD = [
    (MODEL, "task", "task"),
    (MODEL + "beta: 0.1\n", "task", "task"),
    (SFT, "zero_stage", "trl.launcher"),
    (SFT, "offload_params", "trl.launcher"),
    (SFT + "deepspeed: ds_config.json\n", "zero_stage", "trl.launcher"),
    (SFT + "accelerate_config: my.yaml\n", "zero_stage", "trl.launcher"),
    (VLLM + "vllm_mode: server\n", "train_gpus", "trl.trainers"),
]

# The same file under another version.
VERSIONS = [
    ("0.18.0", SFT, "dtype", "fp32"),
    ("0.19.0", SFT, "dtype", "bf16"),
    ("0.21.0", SFT, "gradient_checkpointing", "none"),
    ("0.22.0", SFT, "gradient_checkpointing", "full"),
    ("0.18.0", GRPO, "kl_coef", 0.04),
    ("0.19.0", GRPO, "kl_coef", 0),
    ("0.17.0", VLLM, "colocated", False),
    ("0.29.0", VLLM, "colocated", False),
    ("1.0.0", VLLM, "colocated", True),
    ("1.5.0", SFT, "fused_loss", "none"),
    ("1.6.0", SFT, "fused_loss", "chunked"),
    ("1.14.0", SFT + "loss_type: nll\n", "fused_loss", "none"),
    ("1.14.0", DPO, "fused_loss", "none"),
    ("1.14.0", DPO + "accelerate_config: multi_gpu\n", "logits.bytes", 16),
    ("1.14.0", DPO + "accelerate_config: zero2\n", "logits.bytes", 10),  # which accelerate does not lift
    ("0.25.0", GRPO, "max_prompt_len", 512),
    ("0.25.0", VLLM, "context_length", 1024),
    ("1.9.0", MODEL + "reward_funcs: x\n", "max_new_tokens", 256),
    ("0.26.0", SFT + "accelerate_config: multi_gpu\n", "param_dtype", "fp32"),
    ("1.9.0", SFT + "accelerate_config: multi_gpu\ntorch_dtype: bfloat16\n", "param_dtype", "fp32"),
    ("0.21.0", QLORA, "kbit_lift", "norms"),
    ("0.21.0", QLORA.replace("bf16", "fp16"), "kbit_lift", "rest"),
    ("1.9.0", QLORA, "kbit_lift", "none"),
    ("0.28.0", QLORA + "beta: 0.1\nloss_type: sigmoid\n", "kbit_lift", "norms"),
    ("0.29.0", QLORA + "beta: 0.1\nloss_type: sigmoid\n", "kbit_lift", "none"),
    ("0.21.0", QLORA + "accelerate_config: multi_gpu\n", "lora_dtype", "fp32"),
    ("1.9.0", QLORA, "lora_dtype", "bf16"),
    ("1.9.0", QLORA + "accelerate_config: multi_gpu\n", "amp", True),
    ("1.9.0", QLORA + "accelerate_config: zero2\n", "amp", False),
]


def _ids(rows: list[tuple[object, ...]]) -> list[str]:
    return [f"{i}-{row[-2]}" for i, row in enumerate(rows)]


@pytest.mark.parametrize(("text", "name", "value"), TOLD, ids=_ids(TOLD))
def test_told(pack: Pack, text: str, name: str, value: object) -> None:
    found = _values(pack, text)[name]
    if isinstance(value, Interval):
        assert isinstance(found, Interval)
        assert (found.lo, found.hi) == (value.lo, value.hi)
    else:
        assert (tuple(found) if isinstance(found, list) else found) == value


@pytest.mark.parametrize(("text", "name", "need"), UNTOLD, ids=_ids(UNTOLD))
def test_untold(pack: Pack, text: str, name: str, need: str) -> None:
    assert need in needs_of(_values(pack, text)[name])


@pytest.mark.parametrize(("version", "text", "name", "value"), VERSIONS, ids=_ids(VERSIONS))
def test_versions(pack: Pack, version: str, text: str, name: str, value: object) -> None:
    assert _values(pack, text, version=version)[name] == value


def test_one_gpu_shares_nothing(pack: Pack) -> None:
    assert _values(pack, SFT, "a40:1")["train_backend"] == "ddp"


def test_without_a_target_the_gpus_are_unknown(pack: Pack) -> None:
    values = _values(pack, SFT, None)
    assert needs_of(values["effective_batch_size"])
    assert isinstance(values["colocated"], bool)
    assert not isinstance(values["task"], Open)


OTHERS = [
    MODEL + "max_length: 1024\npreprocessing_num_workers: 12\n",
    HANDBOOK.replace("dataset_splits: [train, test]\n", ""),
    "model_name_or_path: a/b\ndataset_name: x\nstage: sft\nfinetuning_type: lora\n",  # LLaMA-Factory
    "model_name_or_path: a/b\ndataset_name: wikitext\nblock_size: 1024\n",  # transformers' run_clm.py
    "rlhf_type: grpo\nmodel: a/b\nnum_generations: 8\nmax_completion_length: 512\n",  # ms-swift
    "base_model: a/b\nmodel_name_or_path: a/b\ndatasets: [{path: x}]\n",  # Axolotl
    "model_name_or_path: a/b\ndatasets: gsm8k,math\noutput_dir: out\n",  # an evaluation's: names in one text
    "model_name_or_path: a/b\n",
    "per_device_train_batch_size: 2\n",
]


@pytest.mark.parametrize("text", OTHERS)
def test_not_taken(pack: Pack, text: str) -> None:
    assert not check_file(Run(pack), read(text.encode(), "c.yaml"), explicit=False)


@pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no folder of real configs")
@pytest.mark.parametrize("launcher", ["zero3", "fsdp2"])
def test_published_recipes_have_no_error_where_they_ran(pack: Pack, launcher: str) -> None:
    """The alignment handbook's full fine-tuning recipes ran on eight GPUs of 80 GB."""
    for path in sorted((CORPUS / "alignment_handbook").rglob("*.yaml")):
        if "accelerate_configs" in path.parts:
            continue
        run = Run(pack, [parse_target("h100-sxm:8")], overrides=[f"accelerate_config={launcher}"])
        check_file(run, read(path.read_bytes(), path.name))
        assert [f for f in run.report.findings if f.level == "error"] == [], path
