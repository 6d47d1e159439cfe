"""The configurations that the accuracy benchmark rests on, and which of them are kept from the fit."""

from __future__ import annotations

import dataclasses
from typing import Any

from oracle import sight
from oracle.case import Case
from oracle.models import shapes

# Formulas are written while looking at rows of the other models only. Whole models are held out, from every
# family, and measured at other sequence lengths; this list stood before the first row was measured.
HOLD_OUT = frozenset(
    {
        *("Qwen/Qwen2.5-3B", "Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-72B"),
        *("meta-llama/Llama-3.2-3B", "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B"),
        *("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "HuggingFaceTB/SmolLM2-360M", "mistralai/Mistral-7B-v0.3"),
        *("mistralai/Mistral-Nemo-Base-2407", "Qwen/Qwen3-1.7B", "Qwen/Qwen3-14B", "Qwen/Qwen3-235B-A22B"),
        *("google/gemma-2b", "google/gemma-2-9b", "google/gemma-3-4b-it", "google/gemma-3-27b-it"),
        *("openai-community/gpt2-xl", "microsoft/phi-2", "microsoft/Phi-3-mini-4k-instruct"),
        *("allenai/OLMo-2-1124-7B", "mistralai/Mixtral-8x22B-v0.1"),
    }
)

# Models by how many configurations they are measured in; llama and qwen2 first.
_THOROUGH = ("Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-3B")
_FAIRLY = ("meta-llama/Llama-3.2-1B", "meta-llama/Llama-3.2-3B")
_SEVERAL = (
    "Qwen/Qwen2.5-1.5B",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B",  # a Qwen2.5-1.5B whose output layer is not tied
    "HuggingFaceTB/SmolLM2-1.7B",
    "Qwen/Qwen3-0.6B",
    "google/gemma-7b",
    "google/gemma-2-2b",
    "google/gemma-3-1b-it",
    "openai-community/gpt2",
    "microsoft/phi-1_5",
    "microsoft/Phi-4-mini-instruct",
    "allenai/OLMo-2-0425-1B",
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    "HuggingFaceTB/SmolLM2-360M",
    "mistralai/Mistral-7B-v0.3",
    "Qwen/Qwen3-1.7B",
    "google/gemma-2b",
    "google/gemma-2-9b",
    "google/gemma-3-4b-it",
    "openai-community/gpt2-xl",
    "microsoft/phi-2",
    "microsoft/Phi-3-mini-4k-instruct",
    "allenai/OLMo-2-1124-7B",
)
_LARGE = (
    "meta-llama/Llama-2-7b-hf",
    "Qwen/Qwen2.5-14B",
    "meta-llama/Llama-2-70b-hf",
    "Qwen/Qwen3-32B",
    "google/gemma-2-27b",
    "microsoft/phi-4",
    "mistralai/Mixtral-8x7B-v0.1",
    "Qwen/Qwen3-30B-A3B",
    "Qwen/Qwen2.5-7B",
    "meta-llama/Llama-3.1-8B",
    "mistralai/Mistral-Nemo-Base-2407",
    "Qwen/Qwen3-14B",
    "google/gemma-3-27b-it",
    "meta-llama/Llama-3.1-70B",
    "mistralai/Mixtral-8x22B-v0.1",
    "Qwen/Qwen3-235B-A22B",
)

_MIXTURES = (
    *("mistralai/Mixtral-8x7B-v0.1", "Qwen/Qwen3-30B-A3B", "mistralai/Mixtral-8x22B-v0.1"),
    "Qwen/Qwen3-235B-A22B",
)

_FULL = {"gradient_checkpointing": "full"}
_AUTOCAST = {"param_dtype": "fp32"}
_FP32 = {"param_dtype": "fp32", "dtype": "fp32"}
_QV = {"lora_rank": 16, "lora_targets": ("q_proj", "v_proj")}
_ALL = {"lora_rank": 16, "lora_targets": ("all-linear",)}
_MLP = {"lora_rank": 8, "lora_targets": ("gate_proj", "down_proj")}
_QKVO = {"lora_rank": 64, "lora_targets": ("q_proj", "k_proj", "v_proj", "o_proj")}
_SHARD = {"param_dtype": "fp32", "dp_shard": 8}
_AMP = {"amp": True}
_DROP = {"lora_dropout": 0.05}
_WIDE = {"lora_dtype": "fp32"}
_NF4 = {"quantization": 4, "lora_dtype": "bf16"}
_NORMS = _NF4 | {"kbit_lift": "norms"}
_LIFT = _NF4 | _WIDE | {"kbit_lift": "rest"}


def _shape(micro_batch_size: int, seq_len: int) -> dict[str, Any]:
    return {"micro_batch_size": micro_batch_size, "seq_len": seq_len}


_FEW: tuple[dict[str, Any], ...] = (
    _SHARD | _FULL | _shape(1, 4096),
    _SHARD | _FULL | _shape(2, 1024) | {"dp_shard": 64},
    _ALL | _FULL | _shape(1, 2048),
)
_SOME: tuple[dict[str, Any], ...] = (
    _shape(1, 2048),
    _FULL | _shape(2, 2048),
    _FULL | _shape(1, 256),
    _AUTOCAST | _shape(2, 1024),
    _AUTOCAST | _FULL | _shape(1, 4096),
    _ALL | _shape(1, 2048),
    _ALL | _FULL | _shape(4, 1024),
    _SHARD | _FULL | _shape(1, 2048),
    _FULL | _shape(1, 4096) | {"fused_loss": "chunked", "optimizer": "adamw_fused"},
    _shape(1, 1024) | {"attn_impl": "eager"},
    _shape(2, 2048) | {"forward_only": True, "optimizer": "none"},
)
_MANY: tuple[dict[str, Any], ...] = (
    *_SOME,
    _FULL | _shape(1, 512) | {"optimizer": "adamw_fused"},
    _QV | _shape(2, 1024),
    _shape(4, 512),
    _shape(2, 4096),
    _FULL | _shape(1, 8192),
    _FULL | _shape(8, 512),
    _FULL | _shape(1, 32768),
    _AUTOCAST | _shape(1, 2048),
    _AUTOCAST | _FULL | _shape(1, 256),
    _AUTOCAST | _FULL | _shape(1, 2048) | {"optimizer": "adamw_fused"},
    _FP32 | _shape(1, 2048),
    _FP32 | _FULL | _shape(1, 2048),
    _FP32 | _shape(1, 1024) | {"attn_impl": "sdpa"},
    _FULL | _shape(1, 1024) | {"master_weights": True},
    _shape(1, 2048) | {"master_weights": True},
    _FULL | _shape(1, 1024) | {"optimizer": "adamw_8bit"},
    _FULL | _shape(1, 2048) | {"optimizer": "adamw_8bit", "embedding_bits": 32},
    _shape(1, 512) | {"optimizer": "sgd"},
    _FULL | _shape(1, 512) | {"optimizer": "sgd"},
    _FULL | _shape(1, 1024) | {"optimizer": "sgd_momentum"},
    _FULL | _shape(1, 256) | {"optimizer": "adafactor"},
    _QV | _FULL | _shape(1, 4096),
    _MLP | _shape(1, 2048),
    _QKVO | _shape(1, 2048),
    _QKVO | _FULL | _shape(1, 2048),
    _ALL | _shape(1, 2048) | {"lora_dtype": "fp32"},
    _QV | _FULL | _shape(1, 2048) | {"lora_dtype": "fp32"},
    _ALL | _AUTOCAST | _shape(1, 2048),
    _ALL | _FULL | _shape(1, 4096) | {"fused_loss": "chunked"},
    _ALL | _FULL | _shape(2, 2048) | {"dp_shard": 4},
    _SHARD | _shape(1, 2048),
    _SHARD | _shape(1, 2048) | {"fsdp_reshard": False},
    _SHARD | _FULL | _shape(1, 2048) | {"fsdp_reshard": False},
    _SHARD | _FULL | _shape(1, 2048) | {"dp_shard": 2},
    _SHARD | _FULL | _shape(4, 1024) | {"dp_shard": 16},
    _SHARD | _FULL | _shape(1, 256) | {"dp_shard": 4},
    _FULL | _shape(1, 2048) | {"dp_shard": 4},
    _SHARD | _FULL | _shape(1, 4096) | {"fused_loss": "chunked"},
    _shape(1, 2048) | {"fused_loss": "chunked", "loss_chunks": 16, "optimizer": "adamw_fused"},
    _shape(4, 2048) | {"fused_loss": "liger", "optimizer": "adamw_fused"},
    _FULL | _shape(1, 4096) | {"fused_loss": "liger", "optimizer": "adamw_fused"},
    _AUTOCAST | _FULL | _shape(1, 2048) | {"fused_loss": "liger"},
    _AUTOCAST | _FULL | _shape(1, 2048) | {"fused_loss": "chunked"},
    _FULL | _shape(2, 2048) | {"attn_impl": "eager"},
    _AUTOCAST | _shape(1, 1024) | {"attn_impl": "eager"},
    _shape(1, 2048) | {"attn_impl": "sdpa"},
    _FULL | _shape(1, 2048) | {"grad_accum": 2},
    _shape(1, 1024) | {"grad_accum": 4, "optimizer": "adamw_fused"},
    _SHARD | _FULL | _shape(1, 2048) | {"grad_accum": 2},
    _SHARD | _FULL | _shape(1, 512) | {"grad_accum": 2, "unsynced_accumulation": True},
    _SHARD | _FULL | _shape(1, 2048) | {"grad_accum": 3, "unsynced_accumulation": True},
    _QV | _shape(4, 2048) | {"forward_only": True, "optimizer": "none"},
)

# For the shapes of other architectures: SGD and long sequences, so that activations are most of the peak.
_BARE = {"optimizer": "sgd"}
_SHAPES: tuple[dict[str, Any], ...] = (
    _BARE | _shape(2, 4096),
    _BARE | _FULL | _shape(1, 8192),
    _BARE | _AUTOCAST | _shape(1, 4096),
    _BARE | _AUTOCAST | _FULL | _shape(1, 8192),
    _shape(1, 2048),
    _SHARD | _FULL | _shape(1, 4096),
    _FULL | _shape(1, 8192) | {"fused_loss": "chunked", "optimizer": "adamw_fused"},
    _ALL | _shape(2, 4096),
    _ALL | _FULL | _shape(4, 4096),
    _ALL | _AUTOCAST | _shape(1, 4096),
    _ALL | _shape(1, 8192) | {"fused_loss": "chunked"},
    _QV | _shape(2, 2048),
)

_BRIEF = tuple(_SHAPES[at] for at in (0, 1, 2, 7, 8))  # of families beside

# Models that see: their tower trained or frozen, with and without recomputation; adapters on the language
# model alone,
# or on the tower too.
_SEEN = {"images_per_sample": 1}
_FROZEN = {"freeze_vision_tower": True}
_SIGHTS: tuple[dict[str, Any], ...] = (
    _BARE | _SEEN | _shape(1, 2048),
    _BARE | _SEEN | _FULL | _shape(1, 4096) | {"images_per_sample": 3},
    _BARE | _SEEN | _FROZEN | _shape(2, 2048),
    _BARE | _SEEN | _FROZEN | _FULL | _shape(1, 4096) | {"images_per_sample": 3},
    _BARE | _SEEN | _FROZEN | _QKVO | _shape(1, 2048),
    _BARE | _SEEN | _FROZEN | _ALL | _FULL | _shape(1, 4096) | {"images_per_sample": 3},
    _BARE | _SEEN | _ALL | _shape(1, 2048),
    _BARE | _SEEN | _ALL | _FULL | _shape(2, 4096),
    _BARE | _SEEN | _AUTOCAST | _shape(1, 2048),
    _BARE | _SEEN | _AUTOCAST | _FULL | _shape(1, 2048) | {"images_per_sample": 2},
    _SEEN | _SHARD | _FULL | _shape(1, 4096) | {"images_per_sample": 3},
    _SEEN | _FROZEN | _ALL | _AMP | _WIDE | _FULL | _shape(1, 2048) | {"fused_loss": "chunked"},
)

_FAIRLY_MANY = (*_SOME, *_MANY[len(_SOME) :: 2])

# Adapters as Hugging Face's Trainer runs them, under autocast, and on a 4-bit base, of which frameworks lift
# more or less to fp32 (kbit_lift); without autocast, as loops of their own do.
_KBIT_FEW: tuple[dict[str, Any], ...] = (
    _ALL | _NF4 | _AMP | _FULL | _shape(1, 2048),
    _ALL | _LIFT | _AMP | _FULL | _shape(1, 4096),
)
_KBIT_SOME: tuple[dict[str, Any], ...] = (
    *_KBIT_FEW,
    _ALL | _AMP | _WIDE | _shape(1, 1024),
    _ALL | _NF4 | _WIDE | _AMP | _shape(1, 1024),
    _ALL | _NORMS | _AMP | _shape(2, 1024),
    _ALL | _LIFT | _AMP | _shape(1, 1024),
    _QKVO | _LIFT | _FULL | _shape(2, 1024) | {"double_quantization": False},
)
_KBIT: tuple[dict[str, Any], ...] = (
    *_KBIT_SOME,
    _QV | _AMP | _WIDE | _FULL | _shape(1, 512),
    _ALL | _NORMS | _AMP | _FULL | _shape(1, 2048),
    _ALL | _LIFT | _shape(1, 1024),
    _QV | _LIFT | _AMP | _shape(1, 2048),
    _MLP | _NF4 | _AMP | _shape(1, 2048),
    _ALL | _NF4 | _AMP | _FULL | _shape(1, 4096) | {"fused_loss": "chunked"},
    _ALL | _NF4 | _FULL | _shape(1, 256),
    _QKVO | _AMP | _WIDE | _FULL | _shape(1, 2048) | {"attn_impl": "eager"},
    _QKVO | _LIFT | _FULL | _shape(1, 2048) | {"attn_impl": "eager"},
    _ALL | _AMP | _WIDE | _shape(1, 1024) | _DROP,
    _ALL | _NF4 | _AMP | _shape(1, 1024) | _DROP,
    _ALL | _LIFT | _AMP | _shape(1, 1024) | _DROP,
    _ALL | _LIFT | _AMP | _FULL | _shape(1, 512) | {"optimizer": "sgd"},
    _ALL | _NF4 | _WIDE | _AMP | _FULL | _shape(1, 1024) | {"grad_accum": 2},
)

# A mixture's frozen experts without recomputation, and adapters on experts.
_KBIT_EXPERTS: tuple[dict[str, Any], ...] = (
    _QV | _AMP | _WIDE | _shape(1, 1024),
    _ALL | _AMP | _WIDE | _FULL | _shape(1, 1024) | {"lora_experts": "fused"},
)

# Models whose linear layers are all nn.Linear, one or two of each family.
_KBIT_MODELS = (
    *("Qwen/Qwen2.5-1.5B", "HuggingFaceTB/SmolLM2-1.7B", "Qwen/Qwen3-0.6B", "google/gemma-2-2b"),
    *("google/gemma-3-1b-it", "microsoft/Phi-4-mini-instruct", "allenai/OLMo-2-0425-1B"),
    *("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "mistralai/Mistral-7B-v0.3", "Qwen/Qwen3-1.7B"),
    *("google/gemma-2-9b", "google/gemma-3-4b-it", "microsoft/Phi-3-mini-4k-instruct"),
    "allenai/OLMo-2-1124-7B",
)
_KBIT_LARGE = (
    *("meta-llama/Llama-2-7b-hf", "Qwen/Qwen2.5-14B", "Qwen/Qwen3-32B", "microsoft/phi-4"),
    *("Qwen/Qwen2.5-7B", "meta-llama/Llama-3.1-8B", "Qwen/Qwen3-14B", "meta-llama/Llama-3.1-70B"),
)

_GPT2_POSITIONS = 1024  # its position table ends there
# Their linear layers have other names, so only all-linear means the same.
_OTHER_NAMES = ("openai-community/", "microsoft/Phi-3", "microsoft/Phi-4", "microsoft/phi-4")
_EXPERTS = ("mistralai/Mixtral", "Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-235B")
# PyTorch's grouped products take no fp32 under autocast.
_GROUPED = tuple(name for name, row in shapes().items() if "experts" in row["figures"])


def held_out(model: str) -> bool:
    """Whether a model's rows are kept from the fit."""
    return model in HOLD_OUT or bool(shapes().get(model, {}).get("held_out"))


def _fit(model: str, case: Case) -> Case | None:
    """Return the configuration as this model takes it."""
    if held_out(model):
        case = dataclasses.replace(case, seq_len=case.seq_len * 3 // 2)
    if model.startswith("openai-community/"):
        case = dataclasses.replace(case, seq_len=min(case.seq_len, _GPT2_POSITIONS))
    if case.lora_targets not in ((), ("all-linear",)) and model.startswith(_OTHER_NAMES):
        return None
    if case.images_per_sample:
        case = dataclasses.replace(case, image_pixels=sight.pixels(shapes()[model], large=held_out(model)))
    figures = shapes().get(model, {}).get("figures", {})
    # The shapes have their attention layers last; frozen layers below them would keep nothing.
    without = figures.get("attention_layers", figures.get("layers")) != figures.get("layers")
    if case.lora_targets == ("all-linear",) and model in _GROUPED:
        case = dataclasses.replace(case, lora_targets=_QKVO["lora_targets"])
    if case.lora_rank and "latent_dim" in figures:  # other names for the layers of latent attention
        return None
    heads_only = (_QV["lora_targets"], _QKVO["lora_targets"])
    if (case.autocast and model in _GROUPED) or (without and case.lora_targets in heads_only):
        return None
    if case.lora_targets == ("all-linear",) and figures.get("ssm_layers"):
        # PEFT leaves a Mamba layer's output projection alone: its kernel takes the weight itself.
        attention = _QV["lora_targets"] if figures.get("attention_layers", 1) else ()
        case = dataclasses.replace(case, lora_targets=(*attention, "in_proj"))
    if case.lora_rank and model.startswith(_EXPERTS) and not case.lora_experts:
        return dataclasses.replace(case, lora_targets=("q_proj", "v_proj"))
    return case


def grid() -> list[tuple[str, Case]]:
    """Return all configurations with the set that each belongs to: the fit set, then breadth before depth."""
    rows: dict[Case, tuple[str, int]] = {}
    for models, settings in (
        *((_THOROUGH, _MANY), (_FAIRLY, _FAIRLY_MANY), (_SEVERAL, _SOME), (_LARGE, _FEW)),
        *((_THOROUGH + _FAIRLY, _KBIT), (_KBIT_MODELS, _KBIT_SOME), (_KBIT_LARGE, _KBIT_FEW)),
        (tuple(name for name, row in shapes().items() if "sees" not in row and "brief" not in row), _SHAPES),
        (tuple(name for name, row in shapes().items() if "brief" in row), _BRIEF),
        (tuple(name for name, row in shapes().items() if "sees" in row), _SIGHTS),
        (_MIXTURES, _KBIT_EXPERTS),
    ):
        for model in models:
            for depth, fields in enumerate(settings):
                case = _fit(model, Case(model_path=model, **fields))
                if case:
                    rows[case] = ("holdout", depth) if held_out(model) else ("fit", 0)
    return [(rows[case][0], case) for case in sorted(rows, key=rows.__getitem__)]
