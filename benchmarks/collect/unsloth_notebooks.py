"""unslothai/notebooks: what the notebooks' last run printed as torch's peak of reserved memory.

A notebook is its own configuration: model, adapters, batch and length are read from the code, the GPU and
the peak from the outputs. TEXT names those that train a language model on text alone and whose outputs are
of the model that the code names (the count of trainable parameters says so); where a run's peak was reached
before the training began there is no row. The samples are shorter than the limit unless they are packed.

Unsloth's own defaults at the time: adapters are in fp32, activations of its checkpointing go to the host,
samples of a batch are padded to its longest. Its loss (unsloth/models/llama.py, and unsloth_zoo, which
patches the other models): until 2024.11 a kernel over whole logits of 16 bits, which writes their gradient
over them; then cut cross-entropy, which makes none; from 2025.8 on chunks, which are four or more where
fp32 logits are larger than 1 GiB, and from 2025.9 on where they are larger than half of the memory that is
free (unsloth_zoo/fused_losses/cross_entropy_loss.py). Its downloads of 4-bit models leave some layers in 16
bits, which no notebook says. On a GPU without bf16 some models run on a stream of fp32 with products in
fp16 (FORCE_FLOAT32 in unsloth/models/loader.py), which has no name here.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rows import GIB, measured

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "linter"))

from cfglint.models.registry import catalogue

if TYPE_CHECKING:
    from rows import Checkout, Row

NAME = "unslothai/notebooks"
COMMIT = "bdda2efc7ad5ae129ea63cd2065d23c391406283"
PREFIX = "unslothnb-"

GPUS = {
    "Tesla T4": "t4",
    "NVIDIA L4": "l4",
    "NVIDIA A10G": "a10g",
    "NVIDIA A100-SXM4-40GB": "a100-40gb-sxm",
    "NVIDIA A100-SXM4-80GB": "a100-80gb-sxm",
}
EMBEDDINGS = ("embed_tokens", "lm_head")
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
TEXT: dict[str, tuple[str, str, Row]] = {  # notebook: model, family, and facts that its code leaves out
    "CodeGemma_(7B)-Conversational": ("google/gemma-7b", "gemma", {}),
    "ERNIE_4_5_21B_A3B_PT-Conversational": (
        "baidu/ERNIE-4.5-21B-A3B-PT",
        "ernie4_5_moe",
        {"lora_experts": "each", "quantized_experts": True},
    ),
    "FunctionGemma_(270M)": ("google/gemma-3-270m-it", "gemma3", {}),
    "FunctionGemma_(270M)-Mobile-Actions": ("google/gemma-3-270m-it", "gemma3", {}),
    "GLM_Flash_A100(80GB)": ("zai-org/GLM-4.7-Flash", "glm4_moe_lite", {}),
    "Gemma2_(2B)-Alpaca": ("google/gemma-2-2b", "gemma2", {}),
    "Gemma2_(9B)-Alpaca": ("google/gemma-2-9b", "gemma2", {}),
    "Gemma3_(270M)": ("google/gemma-3-270m-it", "gemma3", {}),
    "Gemma3_(270M)_Phone_Deployment": ("google/gemma-3-270m-it", "gemma3", {}),
    "Gemma3_(27B)_A100-Conversational": ("google/gemma-3-27b-it", "gemma3", {"freeze_vision_tower": True}),
    "Gemma3_(4B)": ("google/gemma-3-4b-it", "gemma3", {"freeze_vision_tower": True}),
    "Gemma4_(26B_A4B)-Text": (
        "google/gemma-4-26B-A4B-it",
        "gemma4",
        {"freeze_vision_tower": True, "lora_experts": "none"},
    ),
    "Gemma4_(31B)-Text": ("google/gemma-4-31B-it", "gemma4", {"freeze_vision_tower": True}),
    "Gemma4_(E2B)-Text": ("google/gemma-4-E2B-it", "gemma4", {"freeze_vision_tower": True}),
    "Gemma4_(E4B)-Text": ("google/gemma-4-E4B-it", "gemma4", {"freeze_vision_tower": True}),
    "LFM2.5_(1.2B)-Conversational": ("LiquidAI/LFM2.5-1.2B-Instruct", "lfm2", {}),
    "LFM2.5_(1.2B)-Text_Completion": ("LiquidAI/LFM2.5-1.2B-Base", "lfm2", {}),
    "LFM2.5_(1.2B)-Translation": ("LiquidAI/LFM2.5-1.2B-Base", "lfm2", {}),
    "Liquid_LFM2_(1.2B)-Conversational": ("LiquidAI/LFM2-1.2B", "lfm2", {}),
    "Llama3.1_(8B)-Alpaca": ("meta-llama/Llama-3.1-8B", "llama", {}),
    "Llama3.2_(1B)-RAFT": ("meta-llama/Llama-3.2-1B-Instruct", "llama", {}),
    "Llama3.2_(1B_and_3B)-Conversational": ("meta-llama/Llama-3.2-3B-Instruct", "llama", {}),
    "Llama3.3_(70B)_A100-Conversational": ("meta-llama/Llama-3.3-70B-Instruct", "llama", {}),
    "Llama3_(8B)-Alpaca": ("meta-llama/Meta-Llama-3-8B", "llama", {}),
    "Llama3_(8B)-Conversational": ("meta-llama/Meta-Llama-3-8B-Instruct", "llama", {}),
    "Llama3_(8B)-Ollama": ("meta-llama/Meta-Llama-3-8B", "llama", {}),
    "TinyLlama_(1.1B)-Alpaca": ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "llama", {}),
    "Magistral_(24B)-Reasoning-Conversational": (
        "mistralai/Magistral-Small-2509",
        "mistral",
        {"freeze_vision_tower": True},
    ),
    "Mistral_(7B)-Text_Completion": ("mistralai/Mistral-7B-v0.3", "mistral", {"lora_embeddings": True}),
    "Mistral_Nemo_(12B)-Alpaca": ("mistralai/Mistral-Nemo-Base-2407", "mistral", {}),
    "Mistral_Small_(22B)-Alpaca": ("mistralai/Mistral-Small-Instruct-2409", "mistral", {}),
    "Mistral_v0.3_(7B)-Alpaca": ("mistralai/Mistral-7B-v0.3", "mistral", {}),
    "Mistral_v0.3_(7B)-Conversational": ("mistralai/Mistral-7B-Instruct-v0.3", "mistral", {}),
    "Nemotron-3-Nano-30B-A3B_A100": ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nemotron_h", {}),
    "Phi_3.5_Mini-Conversational": ("microsoft/Phi-3.5-mini-instruct", "phi3", {}),
    "Phi_3_Medium-Conversational": ("microsoft/Phi-3-medium-4k-instruct", "phi3", {}),
    "Phi_4-Conversational": ("microsoft/phi-4", "phi3", {}),
    "Qwen2.5_(7B)-Alpaca": ("Qwen/Qwen2.5-7B", "qwen2", {}),
    "Qwen2.5_Coder_(14B)-Conversational": ("Qwen/Qwen2.5-Coder-14B-Instruct", "qwen2", {}),
    "Qwen2_(7B)-Alpaca": ("Qwen/Qwen2-7B", "qwen2", {}),
    "Qwen3_(0_6B)-Phone_Deployment": ("Qwen/Qwen3-0.6B", "qwen3", {}),
    "Qwen3_(14B)": ("Qwen/Qwen3-14B", "qwen3", {}),
    "Qwen3_(14B)-Alpaca": ("Qwen/Qwen3-14B-Base", "qwen3", {}),
    "Qwen3_(14B)-Reasoning-Conversational": ("Qwen/Qwen3-14B", "qwen3", {}),
    "Qwen3_(32B)_A100-Reasoning-Conversational": ("Qwen/Qwen3-32B", "qwen3", {}),
    "Qwen_3_5_27B_A100(80GB)": ("Qwen/Qwen3.5-27B", "qwen3_5", {"freeze_vision_tower": True}),
    "gpt-oss-(120B)_A100-Fine-tuning": (
        "openai/gpt-oss-120b",
        "gpt_oss",
        {"lora_targets": ATTENTION, "lora_experts": "none", "quantized_experts": True},
    ),
    "gpt-oss-(20B)-Fine-tuning": (
        "openai/gpt-oss-20b",
        "gpt_oss",
        {"lora_targets": ATTENTION, "lora_experts": "none", "quantized_experts": True},
    ),
}
OPTIMIZERS = {"adamw_torch": "adamw"}
CUT, CHUNKED, FREE = (2024, 11), (2025, 8), (2025, 9)  # versions from which the loss is another
UPCAST = "full finetuning uses more memory since we upcast weights to float32"


def collect(source: Checkout) -> tuple[list[Row], list[Row]]:
    """Return a row for each notebook of TEXT, and no outcomes."""
    found = (_row(name, source) for name in TEXT)
    return [row for row in found if row is not None], []


def _row(name: str, source: Checkout) -> Row | None:
    path = f"nb/{name}.ipynb"
    cells = [cell for cell in json.loads(source.read(path))["cells"] if cell["cell_type"] == "code"]
    code = re.split(r"(?m)^if False:", "\n".join("".join(cell["source"]) for cell in cells))
    said = "\n".join(_printed(cell) for cell in cells)
    peak = float(_first(r"Peak reserved memory = ([\d.]+) GB", said) or 0)
    start = float(_first(r"([\d.]+) GB of memory reserved", said) or 0)
    if peak <= start:
        return None
    gpu = GPUS[_first(r"GPU = (.*?)\. Max memory", said) or ""]
    model, family, more = TEXT[name]
    facts = _facts(code[0] + "\n".join(code[1:]), gpu) | {"model_path": model} | more | _batch(said)
    facts |= _loss(said, facts, start)
    if UPCAST in said:
        facts["param_dtype"] = "fp32"
    notes = [f"{start} GB reserved before the training"]
    if trained := _first(r"rainable parameters = ([\d,]+)", said):
        notes.append(f"{trained.replace(',', '')} parameters are trained")
    if '"embed_tokens"' in code[0] and "lora_embeddings" not in facts:
        notes.append("the embeddings have an adapter, too")
    common: Row = {"framework": "unsloth", "framework_of_run": "unsloth", "confidence": "medium"}
    common |= {"note": "; ".join(notes), "seq_reached": facts.get("packing", False), "ready": False}
    common["assumed"] = [
        one
        for one in ("attn_impl", "loss_chunks", "activation_offload", "param_dtype", "quantized_experts")
        if one in facts
    ]
    if "lora_rank" not in facts:
        common["untold"] = [one for one in ("param_dtype", "gradient_checkpointing") if one not in facts]
    if re.search(r"precision for \w+ won't work! Using float32", said):
        common["outside"] = ["products in fp16 on a stream of fp32"]
    common["missing"] = ["lengths of the samples", "layers that the 4-bit download leaves in 16 bits"]
    ident = PREFIX + re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")
    return measured(ident, source.at(path), family, peak, "reserved", gpu, facts, **common)


def _facts(code: str, gpu: str) -> Row:
    full = _first(r"full_finetuning *= *(\w+)", code) == "True"
    precision = "fp16" if gpu == "t4" else "bf16"
    facts: Row = {"task": "sft", "num_gpus": 1, "train_backend": "ddp"}
    facts |= {"dtype": precision, "attn_impl": "flash"}
    if not full:
        facts |= {"param_dtype": precision, "lora_dtype": "fp32", "amp": True}
        facts["lora_rank"] = int(_first(r"(?m)^ *r *= *(\d+)", code) or 16)
        targets = re.findall(r'"([\w.]+)"', _first(r"target_modules *= *\[([^\]]*)\]", code) or "")
        linear = [one.split(".")[-1] for one in targets if one not in EMBEDDINGS]
        facts["lora_targets"] = linear or ["all-linear"]
        if _first(r"load_in_4bit *= *(\w+)", code) == "True":
            facts["quantization"] = 4
    facts["micro_batch_size"] = int(_first(r"per_device_train_batch_size *= *(\d+)", code) or 0)
    facts["grad_accum"] = int(_first(r"gradient_accumulation_steps *= *(\d+)", code) or 1)
    facts["seq_len"] = int(_first(r"max_seq_length *= *(\d+)", code) or 2048)
    if _first(r"packing *= *(\w+)", code) == "True":
        facts |= {"packing": True, "pad_to_max": True}
    if not full:
        checkpointing = _first(r"use_gradient_checkpointing *= *\"?(\w+)", code) or "unsloth"
        facts |= {"gradient_checkpointing": "none" if checkpointing == "False" else "full"}
        facts |= {"activation_offload": True} if checkpointing == "unsloth" else {}
    optimizer = _first(r'optim *= *"(\w+)"', code) or "adamw_8bit"
    facts["optimizer"] = OPTIMIZERS.get(optimizer, optimizer)
    return facts


def _loss(said: str, facts: Row, start: float) -> Row:
    """Return what the printed version says of the loss; ``start`` GiB were reserved before the training."""
    found = _first(r"Unsloth[: ]+(?:Fast\D*?)?(20\d\d\.\d+)\.\d+", said)
    version = tuple(int(one) for one in found.split(".")) if found else (0,)
    if version < CUT:
        return {"fused_loss": "none", "logits.bytes": 2}
    if version < CHUNKED:
        return {"fused_loss": "fused"}
    vocab = catalogue()[facts["model_path"].lower()]["vocab"]
    logits = facts["micro_batch_size"] * facts["seq_len"] * vocab * 4 / GIB
    free = (float(_first(r"Max memory = ([\d.]+) GB", said) or 0) - start) / 2
    chunks = 4 * round(logits / (free if version >= FREE else 1) / 4)
    return {"fused_loss": "chunked", "loss_chunks": max(1, chunks)}


def _batch(said: str) -> Row:
    """Return the batch that the run printed: the code may have been edited since."""
    found = re.search(r"Batch size per device = (\d+) \| Gradient [Aa]ccumulation steps = (\d+)", said)
    return {"micro_batch_size": int(found[1]), "grad_accum": int(found[2])} if found else {}


def _printed(cell: Row) -> str:
    outputs = cell.get("outputs", ())
    texts = (out.get("text") or out.get("data", {}).get("text/plain") or "" for out in outputs)
    return "\n".join("".join(text) for text in texts)


def _first(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text)
    return found[1] if found else None
