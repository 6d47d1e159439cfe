"""MooreThreads/SimuMax: the runs of Megatron-LM on eight B200 that its release checks its estimates against.

docs/b200/b200_release_v1.2_summary.json has, per case, PyTorch's allocated and reserved peaks of each rank.
Only the measured numbers are taken. Models are cut to a few layers; their shapes come from configs/models,
the flags from simu_tools/megatron_scripts: distributed optimizer with fp32 gradients, sequence parallel, no
recomputation, mock data. A case's number of micro-batches leaves its peak alone (the file names one source
for all), so each setting gives two rows, allocated and reserved.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rows import measured

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "linter"))

from cfglint.models.size import active_params, params

if TYPE_CHECKING:
    from rows import Checkout, Row

NAME = "MooreThreads/SimuMax"
COMMIT = "4dcaae513ba7679d56c116a17cd4a691ec41e252"
PREFIX = "simumax-"

SUMMARY = "docs/b200/b200_release_v1.2_summary.json"
FILES = {
    "llama3-70b": ("llama3-70b", "llama"),
    "llama3-405b": ("llama3-405b_padding_128", "llama"),
    "deepseekv2": ("deepseekv2", "deepseek_v2"),
    "deepseekv3": ("deepseekv3", "deepseek_v3"),
}
# Of mixtures, no command: the loss of --cross-entropy-fusion-impl te, and --moe-expert-capacity-factor 1.
MIXTURES: Row = {"logits.bytes": 4, "expert_capacity": 1}
GPUS = 8
NOTE = "cross-entropy fusion of Transformer Engine"
MIB = 1024


def collect(source: Checkout) -> tuple[list[Row], list[Row]]:
    """Return the measured rows; nothing died."""
    found: list[Row] = []
    for case in json.loads(source.read(SUMMARY))["rows"]:
        name = case["case"]
        if case.get("memory_source_case", name) != name:
            continue
        sizes = {key: int(value) for key, value in re.findall(r"(tp|pp|cp|ep|seq)(\d+)", name)}
        model = next(model for model in FILES if name.replace("_", "-").startswith(model))
        file, family = FILES[model]
        facts = _facts(
            _shape(json.loads(source.read(f"configs/models/{file}.json")), case["layer_num"]), family
        )
        facts |= _layout(sizes, case["mbc"])
        if family != "llama":
            facts |= MIXTURES
        peaks = case["peak_memory_by_rank_mb"].values()
        found += [
            measured(
                f"{PREFIX}{name}-{statistic}",
                source.at(f"{SUMMARY} {name}"),
                family,
                max(rank[f"max_{statistic}_mb"] for rank in peaks) / MIB,
                statistic,
                "b200",
                facts,
                framework="megatron",
                command=_command(facts) if family == "llama" else None,
                framework_of_run="Megatron-LM core with Transformer Engine",
                note=NOTE if family == "llama" else f"{NOTE}; experts' tokens padded to capacity 1",
            )
            for statistic in ("allocated", "reserved")
        ]
    return found, []


def _command(facts: Row) -> str:
    """Return the launch of a dense model, with the flags of simu_tools/megatron_scripts."""
    tp, pp, cp = (facts[name] for name in ("train_tp", "pp", "cp"))
    flags = {
        "num-layers": facts["model.layers"],
        "hidden-size": facts["model.hidden"],
        "ffn-hidden-size": facts["model.ffn"],
        "num-attention-heads": facts["model.heads"],
        "num-query-groups": facts["model.kv_heads"],
        "kv-channels": facts["model.head_dim"],
        "vocab-size": facts["model.vocab"],
        "normalization": "RMSNorm",
        "position-embedding-type": "rope",
        "attention-dropout": 0,
        "hidden-dropout": 0,
        "cross-entropy-fusion-impl": "te",
        "cp-comm-type": "a2a",
        "tensor-model-parallel-size": tp,
        "pipeline-model-parallel-size": pp,
        "context-parallel-size": cp,
        "seq-length": facts["seq_len"],
        "micro-batch-size": facts["micro_batch_size"],
        "global-batch-size": facts["grad_accum"] * facts["train_dp"],
        "train-iters": 10,
    }
    switches = (
        "group-query-attention swiglu disable-bias-linear untie-embeddings-and-output-weights "
        "use-distributed-optimizer use-flash-attn sequence-parallel bf16 cross-entropy-loss-fusion"
    )
    words = [*(f"--{name} {value}" for name, value in flags.items()), *(f"--{s}" for s in switches.split())]
    return f"torchrun --nproc_per_node {GPUS} pretrain_gpt.py {' '.join(words)}"


def _shape(config: Row, layers: int) -> Row:
    shape = {"hidden": config["hidden_size"], "layers": layers, "heads": config["head_num"]}
    shape |= {
        "kv_heads": config["kv_head_num"],
        "head_dim": config["head_size"],
        "ffn": config["intermediate_size"],
    }
    shape |= {"vocab": config["vocab_size"], "tied": False}
    if config["model_type"] != "moe":
        return shape
    rope, nope = config["qk_pos_emb_head_dim"], config["qk_head_dim"]
    width = config["moe_ffn_hidden_size"]
    shape |= {
        "head_dim": nope + rope,
        "latent_dim": config["kv_lora_rank"] + rope,
        "q_rank": config["q_lora_rank"],
    }
    shape |= {"rope_dim": rope, "nope_dim": nope, "value_dim": config["v_head_dim"]}
    shape |= {"experts": config["expert_num"], "experts_per_token": config["topk"], "expert_ffn": width}
    # run_pretrain_deepseekv2.sh: the first layer is dense in both models
    return shape | {
        "shared_experts": config["moe_shared_expert_intermediate_size"] // width,
        "dense_layers": 1,
    }


def _facts(shape: Row, family: str) -> Row:
    figures = {
        "family": family,
        "params": params(family, shape),
        "active_params": active_params(family, shape),
    }
    figures |= {"quantized_bits": 0, "latent_dim": 0, "experts": 0, "experts_per_token": 0, "expert_ffn": 0}
    figures |= {"shared_experts": 0, "dense_layers": 0} | shape
    only_counted = ("q_rank", "rope_dim", "nope_dim", "value_dim")
    return {f"model.{name}": value for name, value in figures.items() if name not in only_counted}


def _layout(sizes: dict[str, int], micro_batches: int) -> Row:
    pp, cp = sizes.get("pp", 1), sizes.get("cp", 1)
    facts: Row = {
        "task": "pretrain",
        "num_gpus": GPUS,
        "train_backend": "megatron",
        "train_tp": sizes["tp"],
        "pp": pp,
    }
    facts |= {"cp": cp, "ep": sizes.get("ep", 1), "train_dp": GPUS // (sizes["tp"] * pp * cp)}
    facts |= {"dtype": "bf16", "param_dtype": "bf16", "grad_dtype": "fp32", "master_weights": True}
    facts |= {
        "attn_impl": "flash",
        "micro_batch_size": 1,
        "seq_len": sizes.get("seq", 4096),
        "pad_to_max": True,
    }
    facts |= {"grad_accum": micro_batches, "n_microbatches": micro_batches, "gradient_checkpointing": "none"}
    return facts | {"optimizer": "adamw_fused", "fused_loss": "none"}
