"""LLaMA-Factory's YAML files: which are recognised, and what each fact comes from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cfglint.cli import main
from cfglint.document.reading import read, read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.values import needs_of

if TYPE_CHECKING:
    from cfglint.facts import Values
    from cfglint.lang.pack import Pack

SHARED = os.environ.get("CFGLINT_SHARED")
CORPUS = Path(SHARED or ".") / "corpus"

SFT = "model_name_or_path: Qwen/Qwen2.5-1.5B\nstage: sft\ndo_train: true\ncutoff_len: 1024\nfinetuning_type: "
LORA = SFT + "lora\n"
FULL = SFT + "full\n"
MEGATRON = FULL + "bf16: true\ntensor_model_parallel_size: 2\n"
Z3 = "deepspeed: examples/deepspeed/ds_z3_config.json\n"


def _values(pack: Pack, text: str, target: str) -> Values:
    run = Run(pack, [parse_target(target)])
    return run.judged(run.subjects(read_text(text, "c.yaml"), judge_broken=True)[0])[-1].values


TOLD = [
    (LORA, "task", "sft"),
    (LORA.replace("sft", "pt"), "task", "pretrain"),
    (LORA.replace("sft", "pt"), "packing", True),
    (LORA, "packing", False),
    (LORA + "quantization_bit: 4\n", "kbit_lift", "none"),
    (LORA + "quantization_bit: 4\nupcast_layernorm: true\n", "kbit_lift", "norms"),
    (LORA + "quantization_bit: 4\n", "double_quantization", True),
    (LORA + "neat_packing: true\n", "packing", True),
    (LORA, "seq_len", 1024),
    (LORA, "micro_batch_size", 8),
    (LORA + "per_device_train_batch_size: 2\n", "micro_batch_size", 2),
    (LORA + "gradient_accumulation_steps: 4\n", "effective_batch_size", 8 * 4 * 8),
    (LORA + "ray_num_workers: 4\n", "train_gpus", 4),
    (LORA, "train_gpus", 8),
    (LORA, "lora_rank", 8),
    (LORA + "lora_rank: 64\n", "lora_rank", 64),
    (FULL + "lora_rank: 64\n", "lora_rank", 0),
    (LORA, "lora.down", True),
    (LORA + "lora_target: q_proj,v_proj\n", "lora.v", True),
    (LORA + "lora_target: q_proj,v_proj\n", "lora.k", False),
    (LORA + "quantization_bit: 4\n", "quantization", "4"),
    (LORA + "quantization_bit: null\n", "quantization", "none"),
    (LORA, "gradient_checkpointing", "full"),
    (LORA + "disable_gradient_checkpointing: true\n", "gradient_checkpointing", "none"),
    (LORA + "bf16: true\n", "dtype", "bf16"),
    (FULL, "dtype", "fp32"),
    (FULL + "bf16: true\n" + Z3, "param_dtype", "bf16"),
    (FULL + "pure_bf16: true\n", "param_dtype", "bf16"),
    (FULL + Z3, "zero_stage", 3),
    (FULL + Z3, "offload_params", False),
    (FULL + Z3.replace("z3", "z3_offload"), "offload_params", True),
    (FULL + Z3.replace("z3", "z2_offload"), "offload_optimizer", True),
    (FULL + Z3.replace("z3", "z2_offload"), "offload_params", False),
    (FULL, "optimizer", "adamw_fused"),
    (FULL + "optim: paged_adamw_8bit\n", "optimizer", "paged_adamw_8bit"),
    (FULL + "flash_attn: fa2\n", "attn_impl", "flash_attention_2"),
    (FULL, "attn_impl", "sdpa"),
    (FULL + "enable_liger_kernel: true\n", "fused_loss", "liger"),
    (FULL.replace("sft", "dpo") + "enable_liger_kernel: true\n", "fused_loss", "none"),
    (FULL.replace("sft", "dpo"), "reference.present", True),
    (LORA.replace("sft", "dpo"), "reference.present", False),
    (FULL.replace("sft", "dpo") + "pref_loss: simpo\n", "reference.present", False),
    (FULL.replace("sft", "dpo") + "pref_loss: orpo\n", "task", "orpo"),
    (FULL.replace("sft", "dpo"), "micro.cap", 2 * 8 * 1024),
    (MEGATRON, "train_backend", "megatron"),
    (MEGATRON, "zero_stage", 0),
    (MEGATRON, "param_dtype", "bf16"),
    (MEGATRON, "gradient_checkpointing", "none"),
    (MEGATRON + "recompute_granularity: full\n", "gradient_checkpointing", "full"),
    (MEGATRON + "accumulate_allreduce_grads_in_fp32: true\n", "grad_dtype", "fp32"),
    (MEGATRON + "variable_seq_lengths: true\n", "grad_dtype", "fp32"),  # mcore_adapter, with bf16
    (MEGATRON.replace("bf16: true", "fp16: true") + "variable_seq_lengths: true\n", "grad_dtype", "fp16"),
    (MEGATRON + "mixed_precision: bf16_mixed\n", "grad_dtype", "fp32"),
    (MEGATRON + "mixed_precision: bf16_mixed\n", "shard_stage", 1),
    (MEGATRON + "variable_seq_lengths: true\n", "shard_stage", 0),
]

# Where only the launch tells, or what the memory model does not know: never guessed.
UNTOLD = [
    (FULL, "zero_stage"),
    (FULL + "deepspeed: my.json\n", "zero_stage"),
    (LORA, "dtype"),
]


@pytest.mark.parametrize(("text", "name", "value"), TOLD)
def test_what_the_file_tells(pack: Pack, text: str, name: str, value: object) -> None:
    assert _values(pack, text, "h100-sxm:8")[name] == value


def test_one_gpu_shares_nothing(pack: Pack) -> None:
    values = _values(pack, FULL + "bf16: true\n", "h100-sxm:1")
    assert values["zero_stage"] == 0
    assert values["param_dtype"] == "fp32"


@pytest.mark.parametrize(("text", "name"), UNTOLD)
def test_what_the_file_does_not_tell(pack: Pack, text: str, name: str) -> None:
    assert needs_of(_values(pack, text, "h100-sxm:8")[name])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (FULL + "tensor_model_parallel_size: 2\nfp8: hybrid\n", "Megatron with these options"),
        (FULL + "use_unsloth: true\n", "use_unsloth"),
    ],
)
def test_what_is_not_modelled_is_named_instead_of_the_model(pack: Pack, text: str, what: str) -> None:
    assert needs_of(_values(pack, text, "h100-sxm:8")["model.params"]) == {f"a model of {what}"}


@pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no folder of real configs")
def test_recognised_in_the_corpus(pack: Pack) -> None:
    run = Run(pack, [])
    for path in sorted(CORPUS.rglob("*.y*ml")):
        data = path.read_bytes()
        if b"model_name_or_path" not in data:
            continue
        subjects = run.subjects(read(data, path.name), judge_broken=False)
        names = [s.framework for s in subjects]
        trains = "llamafactory" in path.parts and b"do_train" in data
        assert ("llamafactory" in names) == trains, path


def test_experts_need_more_gpus_than_the_stages(tmp_path, capsys):
    config = (
        "model_name_or_path: Qwen/Qwen3-30B-A3B\nstage: sft\ndo_train: true\nfinetuning_type: full\n"
        "dataset: alpaca\ntemplate: qwen3\ncutoff_len: 2048\nbf16: true\noutput_dir: out\n"
        "per_device_train_batch_size: 1\ntensor_model_parallel_size: {}\n"
        "pipeline_model_parallel_size: 2\nexpert_model_parallel_size: {}\n"
        "use_distributed_optimizer: true\nrecompute_granularity: full\n"
    )
    for tensor, expert, gpus in ((1, 4, 8), (1, 2, 4), (4, 2, 8), (2, 1, 4)):
        (tmp_path / "run.yaml").write_text(config.format(tensor, expert), encoding="utf-8")
        main(["check", str(tmp_path), "--no-detect", "--gpu", "rtx-4090"])
        assert f"on {gpus} GPUs; nothing says how many" in capsys.readouterr().out, (tensor, expert)
