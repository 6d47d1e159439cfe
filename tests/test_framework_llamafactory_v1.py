"""LLaMA-Factory's v1 files: which are recognised, and what each fact comes from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cfglint.document.reading import read, read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from told import point

if TYPE_CHECKING:
    from cfglint.facts import Values
    from cfglint.lang.pack import Pack

SHARED = os.environ.get("CFGLINT_SHARED")
FOLDER = Path(SHARED or ".") / "corpus" / "llamafactory" / "examples"

PLAIN = "model: Qwen/Qwen3-4B\nmodel_class: llm\ntrain_dataset: data/sums.yaml\n"
FSDP = PLAIN + "dist_config:\n  name: fsdp2\n"
DEEPSPEED = PLAIN + "dist_config: {name: deepspeed, config_file: examples/deepspeed/ds_z3_config.json}\n"
LORA = FSDP + "peft_config:\n  name: lora\n  r: 16\n"

TOLD: list[tuple[str, str, object]] = [
    (FSDP, "task", "sft"),
    (FSDP.replace("sums", "v1_dpo_demo"), "task", "dpo"),
    (FSDP + "pref_loss: simpo\n", "task", "dpo"),
    (FSDP.replace("llm", "cls"), "task", "rm"),
    (FSDP, "train_gpus", 8),
    (FSDP, "train_backend", "fsdp"),
    (DEEPSPEED, "train_backend", "deepspeed"),
    (PLAIN, "train_backend", "ddp"),
    (FSDP + "cp_size: 2\n", "train_dp", 4),
    (FSDP + "mp_replicate_size: 2\n", "ranks.shard", 4),
    (FSDP + "  reshard_after_forward: false\n", "fsdp_reshard", False),
    (DEEPSPEED, "zero_stage", 3),
    (DEEPSPEED, "offload_params", False),
    (DEEPSPEED.replace("z3", "z3_offload"), "offload_params", True),
    (DEEPSPEED.replace("z3", "z2_offload"), "offload_params", False),
    (DEEPSPEED.replace("z3", "z2_offload"), "offload_optimizer", True),
    (DEEPSPEED.replace("ds_z3_config", "mine"), "zero_stage", None),
    (FSDP + "  offload_params: true\n", "offload_params", True),
    (FSDP, "offload_optimizer", False),
    (FSDP, "model_path", "Qwen/Qwen3-4B"),
    (FSDP.replace("fsdp2", "fsdpturbo"), "model_path", None),
    (FSDP, "dtype", "bf16"),
    (FSDP + "bf16: false\n", "dtype", "fp32"),
    (PLAIN, "dtype", "fp32"),
    (FSDP, "param_dtype", "fp32"),
    (LORA, "param_dtype", "bf16"),
    (FSDP, "lora_rank", 0),
    (LORA, "lora_rank", 16),
    (LORA.replace("  r: 16\n", ""), "lora_rank", 8),
    (LORA.replace("lora", "freeze"), "lora_rank", 0),
    (LORA, "lora.down", True),
    (LORA + "  target_modules: [q_proj]\n", "lora.down", False),
    (LORA + "quant_config: {name: bnb, quantization_bit: 8}\n", "quantization", "8"),
    (LORA + "quant_config: {name: bnb}\n", "quantization", "4"),
    (LORA + "quant_config: null\n", "quantization", "none"),
    (FSDP, "attn_impl", "sdpa"),
    (FSDP, "micro_batch_size", 1),
    (FSDP, "effective_batch_size", 8),
    (FSDP + "global_batch_size: 64\nmicro_batch_size: 2\n", "grad_accum", 4),
    (FSDP, "seq_len", 2048),
    (FSDP.replace("llm", "cls"), "micro.cap", 4096),
    (FSDP, "packing", False),
    (FSDP + "batching_strategy: padding_free\n", "packing", True),
    (FSDP + "batching_strategy: dynamic_batching\n", "packing", False),
    (FSDP, "gradient_checkpointing", "full"),
    (FSDP + "enable_activation_checkpointing: false\n", "gradient_checkpointing", "none"),
    (FSDP, "optimizer", "adamw"),
    (FSDP + "optim_config: {name: muon}\n", "optimizer", "muon"),
    (FSDP, "num_epochs", 3),
    (FSDP + "max_steps: 10\n", "max_steps", 10),
    (FSDP + "max_steps: null\n", "max_steps", None),
    (FSDP, "comm_timeout", 18000),
]


def _values(pack: Pack, text: str) -> Values:
    run = Run(pack, [parse_target("h100-sxm:8")])
    (subject,) = run.subjects(read_text(text, "c.yaml"), judge_broken=True)
    assert subject.framework == "llamafactory_v1"
    return run.judged(subject)[-1].values


@pytest.mark.parametrize(
    ("text", "name", "value"), TOLD, ids=[f"{name}-{i}" for i, (_, name, _) in enumerate(TOLD)]
)
def test_binding(pack: Pack, text: str, name: str, value: object) -> None:
    assert point(_values(pack, text)[name]) == value


@pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no folder of real configs")
def test_every_training_file_is_recognised(pack: Pack) -> None:
    """What is left over answers, merges adapters, or lists tokens; it trains nothing."""
    run, left = Run(pack), []
    for path in sorted(FOLDER.rglob("*.yaml")):
        found = [s.framework for s in run.subjects(read(path.read_bytes(), path.name), judge_broken=False)]
        assert (found == ["llamafactory_v1"]) == ("v1" in path.parts), path
        if not found:
            left.append(path.parent.name)
    assert set(left) == {"inference", "merge_lora", "multi_tokens"}
