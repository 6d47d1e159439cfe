"""Build a transformers model from a row of the package's own catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import transformers
import yaml

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_CATALOGUE = Path(__file__).resolve().parents[2] / "linter/cfglint/models/models.yaml"
_CLASSES = {
    "llama": ("LlamaConfig", "LlamaForCausalLM"),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM"),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM"),
    "qwen3_moe": ("Qwen3MoeConfig", "Qwen3MoeForCausalLM"),
    "mixtral": ("MixtralConfig", "MixtralForCausalLM"),
    "gemma": ("GemmaConfig", "GemmaForCausalLM"),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM"),
    "gemma3": ("Gemma3TextConfig", "Gemma3ForCausalLM"),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel"),
    "phi": ("PhiConfig", "PhiForCausalLM"),
    "phi3": ("Phi3Config", "Phi3ForCausalLM"),
    "olmo2": ("Olmo2Config", "Olmo2ForCausalLM"),
}


def row_of(model: str) -> dict[str, Any]:
    """Return a model's figures, and its family."""
    for row in yaml.load(_CATALOGUE.read_text(encoding="utf-8"), yaml.CSafeLoader)["models"]:
        if row["id"].lower() == model.lower():
            return {**row["figures"], "family": row["family"]}
    raise LookupError(f"{model} is not in {_CATALOGUE.name}")


def _settings(row: dict[str, Any], seq_len: int) -> dict[str, Any]:
    positions = max(seq_len, 4096)
    if row["family"] == "gpt2":
        return {
            "n_embd": row["hidden"],
            "n_layer": row["layers"],
            "n_head": row["heads"],
            "n_inner": row["ffn"],
            "n_positions": row["max_positions"],  # a trained table: its size counts
            "vocab_size": row["vocab"],
        }
    settings = {
        "hidden_size": row["hidden"],
        "num_hidden_layers": row["layers"],
        "num_attention_heads": row["heads"],
        "num_key_value_heads": row["kv_heads"],
        "intermediate_size": row["ffn"],
        "vocab_size": row["vocab"],
        "tie_word_embeddings": row["tied"],
        "max_position_embeddings": positions,
    }
    if row["family"] not in ("phi", "phi3"):  # these divide the hidden size
        settings["head_dim"] = row["head_dim"]
    if row["family"] == "phi3":
        settings |= {"original_max_position_embeddings": positions, "pad_token_id": 0}
    if row["family"] == "gemma3":
        settings["query_pre_attn_scalar"] = row["head_dim"]
    if row.get("experts"):
        expert_ffn = row["expert_ffn"]
        settings |= (
            {"num_local_experts": row["experts"], "intermediate_size": expert_ffn}
            if row["family"] == "mixtral"
            else {"num_experts": row["experts"], "moe_intermediate_size": expert_ffn}
        )
        settings["num_experts_per_tok"] = row["experts_per_token"]
    return settings


def build(row: dict[str, Any], seq_len: int, attention: str) -> PreTrainedModel:
    """Return the model of a catalogue row, in the default dtype and without its weights."""
    config_class, model_class = (getattr(transformers, name) for name in _CLASSES[row["family"]])
    config = config_class(**_settings(row, seq_len), use_cache=False)
    config._attn_implementation = attention  # noqa: SLF001 — the way to name a registered function without checks
    model: PreTrainedModel = model_class(config)
    counted = sum(parameter.numel() for parameter in model.parameters())
    if counted != row["params"]:
        raise ValueError(f"{counted} parameters, the catalogue says {row['params']}")
    return model
