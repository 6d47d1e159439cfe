"""foundation-model-stack/fms-acceleration: its reference benchmarks on A100-80GB, a CSV per scenario file.

Each line is 100 steps of TRL's SFTTrainer (fms-hf-tuning) on data packed to 4,096 tokens, with
checkpointing and flash attention (scripts/benchmarks/defaults.yaml), on one GPU or with FSDP's full shard
(accelerate.yaml). Peaks are PyTorch's allocated bytes of rank 0 (Trainer's memory metrics), and nvidia-
smi's used memory averaged over the GPUs, less what was used before. What a line leaves out stands in its
scenario (scenarios*.yaml: dropout of the adapters) or follows from the versions (refs/requirements*.txt). A
line without a loss is a run that died; benchmark.py drops its message, so it counts as out of memory only
where nvidia-smi saw a full card.

Left out: the project's own loss kernel without Liger (nothing in the vocabulary says what it keeps),
mixtures of experts on padded data (a100_80gb_moe.csv) and refs_orca (lengths are not told).
"""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rows import ATTENTION, GIB, measured, outcome, thinned

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "linter"))

from cfglint.models.size import params

if TYPE_CHECKING:
    from rows import Checkout, Row

NAME = "foundation-model-stack/fms-acceleration"
COMMIT = "876e2ed6fc4e966785e3f4315f5ee3cdf8e3d097"
PREFIX = "fmsaccel-"

FOLDER = "scripts/benchmarks/refs"
# A file, and how many rows of a group it may give: allocated, nvidia-smi.
FILES = {"a100_80gb": (16, 8), "a100_80gb_granite": (16, 8), "a100_80gb_liger": (6, 4)}
FULL_CARD = 76_000  # MiB of the card's 81,920 that nvidia-smi saw where a run died

# Names of checkpoints, and the catalogue's name of the same architecture.
MODELS = {
    "bigcode/gpt_bigcode-santacoder": ("bigcode/gpt_bigcode-santacoder", "gpt_bigcode"),
    "mistralai/Mistral-7B-v0.1": ("mistralai/Mistral-7B-v0.1", "llama"),
    "mistralai/Mixtral-8x7B-Instruct-v0.1": ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral"),
    "NousResearch/Llama-2-70b-hf": ("meta-llama/Llama-2-70b-hf", "llama"),
    "TheBloke/Mistral-7B-v0.1-GPTQ": ("mistralai/Mistral-7B-v0.1", "llama"),
    "TheBloke/Mixtral-8x7B-Instruct-v0.1-GPTQ": ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral"),
    "TheBloke/Llama-2-70B-GPTQ": ("meta-llama/Llama-2-70b-hf", "llama"),
    "meta-llama/Meta-Llama-3-8B": ("meta-llama/Meta-Llama-3-8B", "llama"),
    "TechxGenus/Meta-Llama-3-8B-GPTQ": ("meta-llama/Meta-Llama-3-8B", "llama"),
    "ibm/PowerLM-3b": ("ibm/PowerLM-3b", "granite"),
}
# Not in the catalogue: its shape is that of its config.json.
SHAPES: dict[str, Row] = {
    "ibm/PowerLM-3b": {
        "family": "granite",
        "hidden": 2304,
        "layers": 40,
        "heads": 36,
        "kv_heads": 36,
        "head_dim": 64,
        "ffn": 9216,
        "vocab": 49152,
        "tied": True,
    },
}
NO_EXPERTS = ("experts", "experts_per_token", "expert_ffn", "shared_experts", "dense_layers", "latent_dim")
# What prepares the quantized base; the project's plugin leaves its norms in 16 bits.
NOTES = {
    "baseline-peft-bnb": "base prepared by TRL: norms in fp32, embeddings and head in bf16",
    "accelerated-peft-bnb": "base prepared by the project's plugin: norms stay in bf16",
    "accelerated-peft-autogptq": "base prepared by the project's plugin: norms stay in fp16",
}
# transformers 4.46 to 4.48 (refs/requirements.txt has 4.48.1) shift the fp32 logits in a copy while the
# 16-bit ones are held: 2 + 4 + 4 bytes and the log-softmax (loss/loss_utils.py: ForCausalLMLoss).
SHIFTING, SHIFTED = ("a100_80gb",), 14
ASSUMED = ["optimizer"]
MISSING = ["A100 SXM or PCIe"]


def collect(source: Checkout) -> tuple[list[Row], list[Row]]:
    """Return the measured rows, and the runs that died."""
    published: list[Row] = []
    outcomes: list[Row] = []
    for file, (allocated, seen) in FILES.items():
        path = f"{FOLDER}/{file}.csv"
        rows: list[Row] = []
        for number, line in enumerate(csv.DictReader(io.StringIO(source.read(path))), 2):
            config = line["framework_config"]
            if "foak" in config and "liger" not in config:
                continue
            where = source.at(f"{path} line {number}")
            if line["train_loss"]:
                rows += _measured(line, file, where, f"{PREFIX}{file}-{number}")
            elif float(line["mem_nvidia_mem_reserved"]) >= FULL_CARD:
                outcomes.append(_died(line, file, where, f"{PREFIX}{file}-{number}"))
        published += thinned([row for row in rows if row["statistic"] == "allocated"], allocated)
        published += thinned([row for row in rows if row["statistic"] == "nvidia-smi"], seen)
    return published, thinned(outcomes, 12)


def _measured(line: Row, file: str, where: str, ident: str) -> list[Row]:
    family = MODELS[line["model_name_or_path"]][1]
    peaks = {
        "allocated": float(line["mem_peak_torch_mem_alloc_in_bytes"]) / GIB,
        "nvidia-smi": float(line["mem_nvidia_mem_reserved"]) / 1024,
    }
    return [
        measured(
            ident if statistic == "allocated" else f"{ident}-smi",
            where,
            family,
            peak,
            statistic,
            "a100-80gb-sxm",
            _facts(line, file),
            framework="trl",
            framework_of_run=_implementation(line),
            note=_note(line),
            assumed=ASSUMED,
            missing=MISSING,
        )
        for statistic, peak in peaks.items()
    ]


def _died(line: Row, file: str, where: str, ident: str) -> Row:
    return outcome(
        ident,
        where,
        MODELS[line["model_name_or_path"]][1],
        "oom",
        "a100-80gb-sxm",
        _facts(line, file),
        framework="trl",
        framework_of_run=_implementation(line),
        note=_note(line),
        seq_reached=True,
        assumed=ASSUMED,
        missing=[*MISSING, "the error's text"],
    )


def _implementation(line: Row) -> str | None:
    return "fms-acceleration" if "foak" in line["framework_config"] else None


def _note(line: Row) -> str | None:
    return NOTES.get(line["framework_config"].removesuffix("-foak-liger"))


def _facts(line: Row, file: str) -> Row:
    gpus = int(line["num_gpus"])
    model, family = MODELS[line["model_name_or_path"]]
    lora = line["peft_method"] == "lora"
    mixed = line["bf16"].lower() == "true" or line["fp16"].lower() == "true"
    dtype = "bf16" if line["torch_dtype"] == "bfloat16" else "fp16"
    # Accelerate lifts what FSDP trains to fp32 under a mixed precision; else weights stay in torch_dtype.
    lifted = mixed and gpus > 1 and not lora
    facts: Row = {"model_path": model} if model not in SHAPES else _shape(SHAPES[model])
    facts |= {"task": "sft", "num_gpus": gpus}
    facts |= (
        {"train_backend": "ddp"}
        if gpus == 1
        else {"train_backend": "fsdp", "dp_shard": gpus, "fsdp_reshard": True}
    )
    facts |= {"dtype": dtype, "param_dtype": "fp32" if lifted else dtype, "attn_impl": "flash"}
    if lora:
        names = [
            name for name in line["target_modules"].split() if (name == "c_attn") == (family == "gpt_bigcode")
        ]
        facts |= {
            "lora_rank": int(float(line["r"])),
            "lora_targets": names or ATTENTION,
            "lora_dtype": "fp32",
            "lora_dropout": 0.1,
        }
    if "bnb" in line["framework_config"] or "gptq" in line["framework_config"]:
        lifted_by = "norms" if "baseline" in line["framework_config"] else "none"
        facts |= {"quantization": 4, "kbit_lift": lifted_by, "double_quantization": True}
        if family == "mixtral":
            facts["quantized_experts"] = True  # linear layers until transformers 5
    facts["amp"] = mixed
    facts |= {"micro_batch_size": int(line["per_device_train_batch_size"])}
    # santacoder's tokenizer ends at 2,048, and its lines process that many tokens a sample.
    facts |= {"seq_len": 2048 if family == "gpt_bigcode" else 4096, "pad_to_max": True, "packing": True}
    facts |= {"gradient_checkpointing": "full", "optimizer": "adamw", "grad_accum": 1}
    # Both by default, of accelerate 1.0 and of transformers 4.
    facts |= {"checkpoint_reentrant": True} | ({"fsdp_version": 1} if gpus > 1 else {})
    if "liger" in line["framework_config"]:
        return facts | {"fused_loss": "liger"}
    facts["fused_loss"] = "none"
    return facts | ({"logits.bytes": SHIFTED} if file in SHIFTING else {})


def _shape(shape: Row) -> Row:
    total = params(shape["family"], shape)
    figures = {"params": total, "active_params": total, "quantized_bits": 0} | dict.fromkeys(NO_EXPERTS, 0)
    return {f"model.{name}": value for name, value in (figures | shape).items()}
