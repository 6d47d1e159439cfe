"""Axolotl's YAML files: which are recognised, and what each fact comes from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cfglint.document.reading import read, read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.values import needs_of
from cfglint.report.order import unchecked

if TYPE_CHECKING:
    from cfglint.facts import Values
    from cfglint.lang.pack import Pack

SHARED = os.environ.get("CFGLINT_SHARED")
CORPUS = Path(SHARED or ".") / "corpus"

BASE = "base_model: Qwen/Qwen2.5-1.5B\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\n"
FULL = BASE + "datasets: [{path: tatsu-lab/alpaca, type: alpaca}]\nsequence_len: 1024\n"
LORA = FULL + "adapter: lora\nlora_r: 16\nlora_target_linear: true\n"
QLORA = LORA.replace("adapter: lora", "adapter: qlora") + "load_in_4bit: true\n"
MIXTRAL = QLORA.replace("Qwen/Qwen2.5-1.5B", "mistralai/Mixtral-8x7B-v0.1")
FSDP1 = FULL + "fsdp: [full_shard, auto_wrap]\nfsdp_config: {fsdp_offload_params: true}\n"
FSDP2 = FULL + "fsdp_version: 2\nfsdp_config: {offload_params: false, reshard_after_forward: true}\n"
LAYERS = "liger_rms_norm: true\nliger_rope: true\nliger_glu_activation: true\n"
LIGER = FULL + "plugins: [axolotl.integrations.liger.LigerPlugin]\nliger_fused_linear_cross_entropy: true\n"
CCE = "plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\n"
GRPO = LORA + "rl: grpo\n"
SHIPPED = "deepspeed: deepspeed_configs/"
DIFFUSION = FULL + "plugins: [axolotl.integrations.diffusion.DiffusionPlugin]\n"

TOLD = [
    # the job
    (FULL, "task", "sft"),
    (BASE + "pretraining_dataset: [{path: allenai/c4}]\n", "task", "pretrain"),
    (FULL + "reward_model: true\n", "task", "rm"),
    (FULL + "kd_trainer: true\n", "task", "distill"),
    (FULL + "rl: ipo\n", "task", "dpo"),
    (FULL + "rl: orpo\n", "task", "orpo"),
    (FULL + "rl:\n", "task", "sft"),
    (GRPO, "task", "grpo"),
    (GRPO, "generates", True),
    (FULL, "generates", False),
    # batches and lengths
    (FULL, "micro_batch_size", 2),
    (FULL, "grad_accum", 4),
    (FULL, "effective_batch_size", 2 * 4 * 8),
    (FULL.replace("gradient_accumulation_steps: 4", "batch_size: 16"), "grad_accum", 8),
    (
        FULL.replace("gradient_accumulation_steps: 4", "gradient_accumulation_steps:\nbatch_size: 6"),
        "grad_accum",
        3,
    ),
    (FULL + "use_ray: true\nray_num_workers: 4\n", "train_gpus", 4),
    (FULL + "context_parallel_size: 2\n", "train_dp", 1),  # on two GPUs: PAR181
    (FULL + "sequence_parallel_degree: 4\n", "cp", 4),
    (FULL + "tensor_parallel_size: 2\n", "train_tp", 2),
    (FULL, "seq_len", 1024),
    (BASE, "seq_len", 512),
    (FULL, "packing", False),
    (FULL + "sample_packing: true\n", "packing", True),
    (FULL + "sample_packing: true\n", "pad_to_max", True),
    (FULL + "sample_packing: true\npad_to_sequence_len: false\n", "pad_to_max", False),
    (FULL + "rl: dpo\n", "micro.cap", 2 * 2 * 1024),
    # precision
    (FULL, "dtype", "bf16"),
    (FULL + "bf16: auto\n", "dtype", "bf16"),
    (FULL + "bf16: true\n", "param_dtype", "bf16"),
    (FULL + "bf16: false\nfp16: true\n", "dtype", "fp16"),
    (FULL + "fp16: true\n", "dtype", "fp16"),
    (FULL + "bf16: false\n", "dtype", "fp32"),
    (FULL + "bf16:\n", "dtype", "fp32"),
    (FULL + "bf16: false\nbfloat16: true\n", "dtype", "bf16"),
    (FULL + "tf32: auto\n", "tf32", True),
    (FULL + "tf32: false\n", "tf32", False),
    (FSDP1, "param_dtype", "fp32"),
    (FSDP2, "param_dtype", "bf16"),
    # sharding
    (FULL, "train_backend", "ddp"),
    (FULL + "context_parallel_size: 2\n", "train_backend", "ddp"),
    (FULL + "context_parallel_size: 2\n", "train_dp", 1),  # on two GPUs: PAR181
    (FSDP1, "train_backend", "fsdp"),
    (FSDP1, "offload_params", True),
    (FSDP2, "offload_params", False),
    (FSDP2 + "dp_shard_size: 4\n", "dp_shard", 4),
    (FSDP2 + "dp_shard_size: 4\n", "dp_replicate", 1),  # on four GPUs: PAR181
    (FSDP2, "dp_shard", -1),
    (FULL + "fsdp:\nfsdp_config:\n", "train_backend", "ddp"),
    (FULL + "deepspeed:\n", "zero_stage", 0),
    (FULL + SHIPPED + "zero1.json\n", "zero_stage", 1),
    (FULL + SHIPPED + "zero2.json\n", "offload_optimizer", True),
    (FULL + SHIPPED + "zero3_bf16.json\n", "zero_stage", 3),
    (FULL + SHIPPED + "zero3_bf16.json\n", "offload_params", False),
    (FULL + SHIPPED + "zero3_bf16_cpuoffload_all.json\n", "offload_params", True),
    (FULL + "deepspeed: {zero_optimization: {stage: 2}}\n", "zero_stage", 2),
    # adapters and quantization
    (FULL + "lora_r: 64\n", "lora_rank", 0),
    (FULL + "adapter:\nlora_r: 64\n", "lora_rank", 0),
    (LORA, "lora_rank", 16),
    (LORA, "lora.down", True),
    (LORA.replace("lora_target_linear: true", "lora_target_modules: [q_proj, v_proj]"), "lora.k", False),
    (LORA, "lora_dtype", "fp32"),
    (LORA + SHIPPED + "zero2.json\n", "lora_dtype", "bf16"),
    (LORA + "lora_modules_to_save: [embed_tokens, lm_head]\n", "lora_embeddings", True),
    (LORA, "quantization", "none"),
    (QLORA, "quantization", "4"),
    (LORA + "load_in_8bit: true\n", "quantization", "8"),
    (MIXTRAL + "quantize_moe_experts: true\n", "quantization", "4"),
    # what is kept, what is computed again
    (FULL, "gradient_checkpointing", "none"),
    (FULL + "gradient_checkpointing: true\n", "gradient_checkpointing", "full"),
    (FULL + "gradient_checkpointing: offload\n", "gradient_checkpointing", "full"),
    (FULL + "gradient_checkpointing: offload\n", "activation_offload", True),
    (LORA + "gradient_checkpointing: true\nactivation_offloading: true\n", "gradient_checkpointing", "none"),
    (
        LORA + "gradient_checkpointing: true\nactivation_offloading: hidden_states\n",
        "gradient_checkpointing",
        "full",
    ),
    (FULL + "gradient_checkpointing: true\n", "activation_offload", False),
    (FSDP2.replace("{", "{activation_checkpointing: true, "), "gradient_checkpointing", "full"),
    (FULL, "optimizer", "adamw_fused"),
    (FULL + "optimizer: adamw_bnb_8bit\n", "optimizer", "adamw_8bit"),
    (FULL + "optimizer: adamw_bnb_8bit\n", "optimizer_embedding_bits", 32),
    (FULL + "optimizer: adamw_torch_8bit\n", "optimizer_embedding_bits", 8),
    (FULL + "optimizer: muon\n", "optimizer", "muon"),
    (LIGER, "fused_loss", "liger"),
    (LIGER, "liger.layers", False),
    (LIGER + LAYERS, "liger.layers", True),
    (LIGER.replace("plugins", "plugin"), "fused_loss", "none"),
    (FULL + CCE, "fused_loss", "liger"),
    (FULL + CCE + "cut_cross_entropy: false\n", "fused_loss", "none"),
    (FULL + CCE + "rl: dpo\n", "fused_loss", "none"),
    (FULL + "torch_compile: auto\n", "compile", True),
    (FULL, "compile", False),
    # attention
    (FULL, "attn_impl", "sdpa"),
    (FULL + "attn_implementation: flash_attention_2\n", "attn_impl", "flash_attention_2"),
    (FULL + "flash_attention: true\n", "attn_impl", "flash_attention_2"),
    (FULL + "flash_attention:\nsdp_attention: true\n", "attn_impl", "sdpa"),
    (FULL + "xformers_attention: true\nflash_attention: true\n", "attn_impl", "xformers"),
    # kinds of training
    (FULL + "rl: simpo\n", "task", "orpo"),
    (FULL + "rl: ebft\nebft: {mode: structured}\n", "task", "grpo"),
    (FULL + "rl: ebft\nebft: {mode: structured}\n", "reference.present", True),
    (LORA + "rl: ebft\nebft: {mode: structured}\n", "reference.present", False),
    (FULL + "process_reward_model: true\n", "task", "sft"),
    (DIFFUSION, "task", "sft"),
    (DIFFUSION + "liger_fused_linear_cross_entropy: true\n", "fused_loss", "none"),
    (FULL + "expert_parallel_size: 4\n", "train_gpus", 4),
    (FSDP2 + "expert_parallel_size: 2\ndp_shard_size: 2\n", "num_gpus", 4),
    # other models, engine
    (FULL + "rl: dpo\n", "reference.present", True),
    (FULL + "rl: dpo\nprecompute_ref_log_probs: true\n", "reference.present", False),
    (LORA + "rl: dpo\n", "reference.present", False),
    (LORA + "rl: dpo\nrl_adapter_ref_model: true\n", "reference.present", True),
    (GRPO, "rollout_engine", "hf"),
    (GRPO, "n_samples", 8),
    (GRPO + "trl: {use_vllm: true}\n", "axolotl.vllm_mode", "server"),
    (GRPO + "trl: {use_vllm: true, vllm_mode: colocate}\n", "colocated", True),
    (GRPO + "trl: {use_vllm: true, vllm_mode: colocate}\n", "mem_fraction", 0.9),
    (GRPO + "trl: {use_vllm: true}\nvllm: {tensor_parallel_size: 2}\n", "rollout_gpus", 2),
    # the run
    (FULL, "num_epochs", 1),
    (FULL + "max_steps:\n", "max_steps", -1),
    (FULL, "eval_batch_size", 2 * 8),
    (FULL, "dataloader_workers", 8),
]

# Where only the launch tells, or what the memory model does not know: never guessed.
UNTOLD = [
    (FULL + "deepspeed: my/zero3.json\n", "zero_stage"),
    (FULL + SHIPPED + "zero3_bf16_cpuoffload_params.json\n", "offload_params"),
    (FULL + "optimizer: galore_adamw\n", "optimizer"),
    (FULL + "layer_offloading: true\n", "model.params"),
    (FULL + "rl: ebft\nebft: {mode: strided}\n", "task"),
    (LORA.replace("lora_target_linear: true", "lora_target_modules: '(.*)*.(q|v)_proj'"), "lora.q"),
    (MIXTRAL, "quantized_experts"),
    (GRPO + "trl: {use_vllm: true}\n", "train_gpus"),
]


def _values(pack: Pack, text: str, target: str) -> Values:
    run = Run(pack, [parse_target(target)])
    subject = run.subjects(read_text(text, "c.yaml"), judge_broken=True)[0]
    assert subject.framework == "axolotl"
    return run.judged(subject)[-1].values


@pytest.mark.parametrize(("text", "name", "value"), TOLD)
def test_what_the_file_tells(pack: Pack, text: str, name: str, value: object) -> None:
    assert _values(pack, text, "h100-sxm:8")[name] == value


@pytest.mark.parametrize(("text", "name"), UNTOLD)
def test_what_the_file_does_not_tell(pack: Pack, text: str, name: str) -> None:
    assert needs_of(_values(pack, text, "h100-sxm:8")[name])


def test_bf16_auto_asks_the_gpu(pack: Pack) -> None:
    assert _values(pack, FULL + "bf16: auto\n", "t4:1")["dtype"] == "fp16"
    assert _values(pack, FULL + "bf16: auto\nfp16: false\n", "t4:1")["dtype"] == "fp32"
    assert _values(pack, FULL + "bf16: true\n", "t4:1")["dtype"] == "bf16"


@pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no folder of real configs")
def test_recognised_in_the_corpus(pack: Pack) -> None:
    run = Run(pack, [])
    for path in sorted(CORPUS.rglob("*.y*ml")):
        data = path.read_bytes()
        if b"base_model" not in data:
            continue
        names = [s.framework for s in run.subjects(read(data, path.name), judge_broken=False)]
        if "axolotl" in path.parts:
            assert names == ["axolotl"], path
        else:
            assert "axolotl" not in names, path


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("adapter: lora\nunfrozen_parameters: [lm_head.weight]\n", "unfrozen_parameters"),
        ("max_memory: {0: 20GiB}\n", "max_memory"),
        ("gptq: true\n", "GPTQ"),
        ("expert_parallel_size: 2\ntensor_parallel_size: 2\n", "expert_parallel_size"),
        ("load_in_4bit: true\nlayer_offloading: true\n", "layer_offloading"),
    ],
)
def test_an_option_that_is_not_modelled_is_named_instead_of_the_model(
    pack: Pack, text: str, option: str
) -> None:
    run = Run(pack, [parse_target("h100-sxm:8")])
    assert run.add(read_text(FULL + text, "c.yaml"))
    (job,) = run.report.jobs
    assert (job.memory.verdict, job.memory.ask) == ("unknown", f"cfglint does not model {option}")
    assert unchecked(run.report, verbose=False) == []


def test_a_list_of_all_options_is_no_job(pack: Pack):
    clash = LORA + "warmup_steps: 10\nwarmup_ratio: 0.1\n"
    options = "".join(f"option_{number}:\n" for number in range(90))
    for text, codes in ((clash, {"RUN184"}), (clash + options, set())):
        run = Run(pack)
        run.add(read_text(text, "c.yaml"))
        assert {f.code for f in run.report.findings if f.code.startswith("RUN")} == codes
