"""PrimeIntellect-ai/prime-rl: its benchmark baselines, a JSON file per setting.

Each is a short run of the trainer alone on fake data of full length, with FSDP2 (fp32 weights, bf16
compute), compiled, one sequence a micro-batch; the peak is torch.cuda.max_memory_reserved of the last
steps. The commit is of January 2026, when all runs were taken with one state of the code; later ones mix
several. A setting that ran on several GPUs gives one row, of the smallest GPU.

What the code of that commit says (src/prime_rl/trainer): RL cuts the vocabulary into chunks of 2,048 for
its loss, SFT does not chunk; a LoRA benchmark holds four adapters of rank 16 (MAX_LORAS), in fp32 and on
each expert too.
"""

from __future__ import annotations

import json
from math import ceil
from typing import TYPE_CHECKING, Any

from rows import ALL_LINEAR, measured

if TYPE_CHECKING:
    from rows import Checkout, Row

NAME = "PrimeIntellect-ai/prime-rl"
COMMIT = "b798a90d6"
PREFIX = "primerl-"

# The catalogue's name of the same architecture, its family, and its vocabulary.
MODELS = {
    "Qwen/Qwen3-0.6B": ("Qwen/Qwen3-0.6B", "qwen3", 151936),
    "Qwen/Qwen3-4B-Instruct-2507": ("Qwen/Qwen3-4B-Instruct-2507", "qwen3", 151936),
    "Qwen/Qwen3-30B-A3B-Instruct-2507": ("Qwen/Qwen3-30B-A3B", "qwen3_moe", 151936),
    "Qwen/Qwen3-235B-A22B-Instruct-2507": ("Qwen/Qwen3-235B-A22B", "qwen3_moe", 151936),
    "PrimeIntellect/INTELLECT-3": ("zai-org/GLM-4.5-Air", "glm4_moe", 151552),
}
GPUS = {
    "NVIDIA RTX A6000": ("rtx-a6000", 48),
    "NVIDIA H100 80GB HBM3": ("h100-sxm", 80),
    "NVIDIA H200": ("h200", 141),
    "NVIDIA B200": ("b200", 180),
}
CHUNK = 2048  # columns of the vocabulary that RL's loss takes at a time
ADAPTERS = 4


def collect(source: Checkout) -> tuple[list[Row], list[Row]]:
    """Return the measured rows; the two runs that ran out of memory stand in outcomes.yaml since before."""
    runs = [(path, json.loads(source.read(path))) for path in source.names("benchmarks/baselines")]
    runs.sort(key=lambda run: GPUS[run[1]["config"]["device_name"]][1])
    published: dict[tuple[Any, ...], Row] = {}
    for path, run in runs:
        config = run["config"]
        gpu = GPUS[config["device_name"]][0]
        family = MODELS[config["model_name"]][1]
        ident = PREFIX + path.rsplit("/", 1)[1].removeprefix("benchmark-").removesuffix(".json")
        common: Row = {"framework": "prime-rl", "framework_of_run": "prime-rl", "assumed": ["fused_loss"]}
        common["missing"] = ["exact commit of the run (2026-01-15)"]
        adapters_of_experts = bool(config["lora_rank"]) and family.endswith("moe")
        if config["lora_rank"]:
            common["note"] = "four adapters of rank 16, of which one is trained"
        if config["success"]:
            key = tuple(
                config[name] for name in ("type", "num_gpus", "model_name", "lora_rank", "seq_len", "ac")
            )
            published.setdefault(
                key,
                measured(
                    ident,
                    source.at(path),
                    family,
                    run["metrics"]["peak_memory"]["gib"],
                    "reserved",
                    gpu,
                    _facts(config),
                    # How many of the experts' adapters have optimizer states is not told.
                    ready=not adapters_of_experts,
                    **common,
                ),
            )
    return list(published.values()), []


def _facts(config: Row) -> Row:
    gpus = config["num_gpus"]
    model, _, vocab = MODELS[config["model_name"]]
    learns = config["type"] == "rl"
    facts: Row = {"model_path": model, "task": "grpo" if learns else "sft", "num_gpus": gpus}
    facts |= {
        "train_backend": "fsdp",
        "dp_shard": gpus,
        "fsdp_reshard": True,
        "dtype": "bf16",
        "param_dtype": "fp32",
    }
    facts |= {"grad_dtype": "fp32", "attn_impl": "flash"}
    if config["lora_rank"]:
        facts |= {
            "lora_rank": config["lora_rank"] * ADAPTERS,
            "lora_targets": ALL_LINEAR,
            "lora_dtype": "fp32",
        }
    facts |= {"micro_batch_size": 1, "grad_accum": config["micro_batches"], "seq_len": config["seq_len"]}
    facts |= {"pad_to_max": True, "packing": True, "gradient_checkpointing": "full"}
    if config["ac"] == "Offload":
        facts["activation_offload"] = True
    facts |= {"optimizer": "adamw", "compile": True, "fused_loss": "chunked" if learns else "none"}
    if learns:
        facts |= {"loss_chunks": ceil(vocab / CHUNK), "kl_coef": 0.0, "generates": False}
    return facts
