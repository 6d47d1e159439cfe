"""Build a transformers model from a row of the package's own catalogue, or of shapes.yaml."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
import yaml

from oracle import sight

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_CATALOGUE = Path(__file__).resolve().parents[2] / "linter/cfglint/models/models.yaml"
_SHAPES = Path(__file__).with_name("shapes.yaml")
# What a family's classes are called, where it is not the family's name in capitals.
_NAMES = {
    "gpt2": "GPT2",
    "olmo2": "Olmo2",
    "smollm3": "SmolLM3",
    "glm4_moe": "Glm4Moe",
    "gpt_oss": "GptOss",
    "qwen2_moe": "Qwen2Moe",
    "qwen3_moe": "Qwen3Moe",
    "granitemoe": "GraniteMoe",
    "seed_oss": "SeedOss",
    "granitemoehybrid": "GraniteMoeHybrid",
    "falcon_h1": "FalconH1",
    "nemotron_h": "NemotronH",
    "deepseek_v2": "DeepseekV2",
    "deepseek_v3": "DeepseekV3",
    "qwen3_next": "Qwen3Next",
    "ernie4_5": "Ernie4_5",
    "ernie4_5_moe": "Ernie4_5_Moe",
    "hunyuan_v1_dense": "HunYuanDenseV1",
    "minimax_m2": "MiniMaxM2",
    "stablelm": "StableLm",
    "gpt_neox": "GPTNeoX",
    "opt": "OPT",
    "glm4_moe_lite": "Glm4MoeLite",
    "lfm2_moe": "Lfm2Moe",
    "internlm3": "InternLM3",
}
_CLASSES = {
    "gemma3": ("Gemma3TextConfig", "Gemma3ForCausalLM"),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel"),
    "llama4_text": ("Llama4TextConfig", "Llama4ForCausalLM"),
    "qwen3_5": ("Qwen3_5TextConfig", "Qwen3_5ForCausalLM"),
    "qwen3_5_moe": ("Qwen3_5MoeTextConfig", "Qwen3_5MoeForCausalLM"),
}
_NO_HEAD_DIM = (  # these divide the hidden size
    *("phi", "phi3", "nemotron", "starcoder2", "gpt2", "cohere2", "olmo3", "olmoe", "granite"),
    *("granitemoe", "deepseek_v2", "deepseek_v3", "granitemoehybrid", "bamba", "cohere", "gpt_neox", "opt"),
    *("olmo", "stablelm", "phimoe", "glm4_moe_lite", "lfm2_moe", "ernie4_5_moe"),
)
_PADDED = (
    "phi3",
    "cohere",
    "cohere2",
    "hunyuan_v1_dense",
    "glm",
    "glm4",
    "granite",
    "granitemoe",
    "granitemoehybrid",
)
# What a row says to its class alone: more of the text model, how it sees, and more of the tower and of the
# whole.
_OWN = ("own", "brief", "sees", "text", "tower", "joint")
_HYBRID = ("granitemoehybrid", "bamba")


@cache
def shapes() -> dict[str, dict[str, Any]]:
    """Return the rows of shapes.yaml by their ids."""
    rows = yaml.load(_SHAPES.read_text(encoding="utf-8"), yaml.CSafeLoader)
    return {row["id"]: row for row in rows}


def row_of(model: str) -> dict[str, Any]:
    """Return a model's figures, and its family; `shape` where they are of some of its layers."""
    if model in shapes():
        row = shapes()[model]
        own = {name: row[name] for name in _OWN if name in row}
        return {**row["figures"], "family": row["family"], "shape": True, **own}
    for row in yaml.load(_CATALOGUE.read_text(encoding="utf-8"), yaml.CSafeLoader)["models"]:
        if model.lower() in (name.lower() for name in row.get("ids") or (row["id"],)):
            return {**row["figures"], "family": row["family"]}
    raise LookupError(f"{model} is not in {_CATALOGUE.name}")


def _experts(row: dict[str, Any]) -> dict[str, Any]:
    """Return how a family calls the sizes of its experts."""
    number, width, shared = row["experts"], row["expert_ffn"], row.get("shared_experts", 0)
    deepseek = {
        "n_routed_experts": number,
        "n_shared_experts": shared,
        "first_k_dense_replace": row.get("dense_layers", 0),
        "n_group": 1,
        "topk_group": 1,
    }
    named: dict[str, dict[str, Any]] = {
        "mixtral": {"num_local_experts": number, "intermediate_size": width},
        "gpt_oss": {"num_local_experts": number, "intermediate_size": width},
        "granitemoe": {"num_local_experts": number, "intermediate_size": width},
        "olmoe": {"num_experts": number, "intermediate_size": width},
        "granitemoehybrid": {"num_local_experts": number, "intermediate_size": width},
        **{
            name: {"num_experts": number, "shared_expert_intermediate_size": shared * width}
            for name in ("qwen2_moe", "qwen3_next", "qwen3_5_moe")
        },
        "phimoe": {"num_local_experts": number, "intermediate_size": width},
        "minimax_m2": {"num_local_experts": number, "intermediate_size": width},
        "ernie4_5_moe": {
            "moe_num_experts": number,
            "moe_k": row["experts_per_token"],
            "moe_num_shared_experts": shared,
            "moe_layer_start_index": row.get("dense_layers", 0),
        },
        "lfm2_moe": {"num_experts": number, "num_dense_layers": row.get("dense_layers", 0)},
        "dots1": deepseek,
        "glm4_moe_lite": {
            **{key: value for key, value in deepseek.items() if key != "first_k_dense_replace"},
            "mlp_layer_types": ["dense"] * row.get("dense_layers", 0)
            + ["sparse"] * (row["layers"] - row.get("dense_layers", 0)),
        },
        "glm4_moe": {**deepseek, "use_qk_norm": True},
        "deepseek_v2": deepseek,
        "deepseek_v3": deepseek,
        "llama4_text": {
            "num_local_experts": number,
            "intermediate_size": width,
            "intermediate_size_mlp": row["ffn"],
            "interleave_moe_layer_step": 2 if row.get("dense_layers") else 1,
        },
    }
    own = named.get(row["family"], {"num_experts": number})
    if "intermediate_size" not in own:
        own["moe_intermediate_size"] = width
    return {**own, "num_experts_per_tok": row["experts_per_token"]}


def _blocks(row: dict[str, Any]) -> list[str]:
    """Return a hybrid's layers: attention last, and in Nemotron-H Mamba and feed-forward layers by turns."""
    if row["family"] != "nemotron_h":
        return ["mamba"] * row["ssm_layers"] + ["attention"] * row["attention_layers"]
    pairs = ["mamba", "mlp"] * row["mlp_layers"] + ["mamba"] * (row["ssm_layers"] - row["mlp_layers"])
    return pairs + ["attention"] * row["attention_layers"]


def _scan(row: dict[str, Any]) -> dict[str, Any]:
    """Return how a family calls the sizes of its Mamba layers."""
    family = row["family"]
    sizes = {
        "n_heads": row.get("ssm_heads"),
        "d_head": row.get("ssm_head_dim"),
        "n_groups": row.get("ssm_groups"),
        "d_state": row["ssm_state"],
        "d_conv": row["ssm_conv"],
    }
    if family == "falcon_h1":
        return {f"mamba_{name}": size for name, size in sizes.items()} | {"mamba_d_ssm": row["ssm_inner"]}
    expand = row["ssm_inner"] // row["hidden"]
    if family in _HYBRID:
        places = [at for at, kind in enumerate(_blocks(row)) if kind == "attention"]
        where = {"attn_layer_indices": places} if family == "bamba" else {"layer_types": _blocks(row)}
        if family == "granitemoehybrid":
            where |= {"shared_intermediate_size": row["ffn"], "num_local_experts": 0}
        return {f"mamba_{name}": size for name, size in sizes.items()} | {"mamba_expand": expand} | where
    common = {"state_size": row["ssm_state"], "conv_kernel": row["ssm_conv"], "expand": expand}
    if family == "mamba":
        return common
    if family == "mamba2":
        return common | {
            "num_heads": row["ssm_heads"],
            "head_dim": row["ssm_head_dim"],
            "n_groups": row["ssm_groups"],
        }
    return {
        "layers_block_type": _blocks(row),
        "mamba_num_heads": row["ssm_heads"],
        "mamba_head_dim": row["ssm_head_dim"],
        "ssm_state_size": row["ssm_state"],
        "n_groups": row["ssm_groups"],
        "conv_kernel": row["ssm_conv"],
    }


def _more(row: dict[str, Any], positions: int) -> dict[str, Any]:
    """Return what else a family's configuration needs, or has another default for."""
    family = row["family"]
    more: dict[str, Any] = {"pad_token_id": 0} if family in _PADDED else {}
    match family:
        case "phi3":
            more["original_max_position_embeddings"] = positions
        case "gemma3":
            more["query_pre_attn_scalar"] = row["head_dim"]
        case "exaone4":
            more["layer_types"] = ["full_attention"] * row["layers"]
        case "starcoder2":
            more |= {"embedding_dropout": 0.0, "residual_dropout": 0.0, "attention_dropout": 0.0}
        case "seed_oss":
            more["residual_dropout"] = 0.0
        case "qwen3_next" | "qwen3_5" | "qwen3_5_moe":
            kinds = ["linear_attention"] * row["linear_layers"] + ["full_attention"] * row["attention_layers"]
            more |= {
                "layer_types": kinds,
                "linear_conv_kernel_dim": row["ssm_conv"],
                "linear_num_key_heads": row["linear_key_heads"],
                "linear_num_value_heads": row["linear_value_heads"],
                "linear_key_head_dim": row["linear_key_dim"],
                "linear_value_head_dim": row["linear_value_dim"],
            }
        case "lfm2_moe":
            kinds = ["conv"] * row["linear_layers"] + ["full_attention"] * row["attention_layers"]
            more["layer_types"] = kinds
        case "opt":
            more |= {"word_embed_proj_dim": row["hidden"], "ffn_dim": row["ffn"], "dropout": 0.0}
        case "lfm2":
            kinds = ["conv"] * row["linear_layers"] + ["full_attention"] * row["attention_layers"]
            more |= {"layer_types": kinds, "block_auto_adjust_ff_dim": False}
    return more | row.get("own", {})


def _settings(row: dict[str, Any], seq_len: int) -> dict[str, Any]:
    positions = max(seq_len, 4096)
    family = row["family"]
    if family == "gpt2":
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
        "vocab_size": row["vocab"],
        "tie_word_embeddings": row["tied"],
    }
    if family not in ("mamba", "mamba2"):
        settings |= {
            "num_attention_heads": row["heads"],
            "num_key_value_heads": row["kv_heads"],
            "intermediate_size": row["ffn"],
            "max_position_embeddings": positions,
        }
        if family not in _NO_HEAD_DIM:
            settings["head_dim"] = row["head_dim"]
    settings |= _more(row, positions)
    if row.get("ssm_layers"):
        settings |= _scan(row)
    if family == "nemotron_h":
        del settings["num_hidden_layers"]  # the list of its blocks says it
    return settings | (_experts(row) if row.get("experts") else {})


def _made(row: dict[str, Any], seq_len: int) -> tuple[Any, Any]:
    """Return the configuration of a catalogue row, and the class that takes it."""
    family = row["family"]
    name = _NAMES.get(family, family.capitalize())
    classes = _CLASSES.get(family, (f"{name}Config", f"{name}ForCausalLM"))
    config_class, model_class = (getattr(transformers, one) for one in classes)
    return config_class(**_settings(row, seq_len), use_cache=False), model_class


def on_meta(row: dict[str, Any]) -> PreTrainedModel:
    """Return the model of a catalogue row without storages, to be counted."""
    config, model_class = _made(row, row.get("max_positions", 4096))
    with torch.device("meta"):
        model: PreTrainedModel = model_class(config)
    return model


def build(row: dict[str, Any], seq_len: int, attention: str) -> PreTrainedModel:
    """Return the model of a catalogue row, in the default dtype and without its weights."""
    if row.get("sees"):
        return sight.build(row, _settings(row, seq_len), attention)
    config, model_class = _made(row, seq_len)
    config._attn_implementation = attention  # noqa: SLF001 — the way to name a registered function without checks
    model: PreTrainedModel = model_class(config)
    counted = sum(parameter.numel() for parameter in model.parameters())
    wanted = row.get("params", counted + row.get("vision_params", 0)) - row.get("vision_params", 0)
    if counted != wanted:
        raise ValueError(f"{counted} parameters, the catalogue says {row['params']}")
    return model


def figures(row: dict[str, Any], model: PreTrainedModel) -> dict[str, Any]:
    """Return what a rule is to read of a model that the catalogue does not have as it was measured."""
    if not row.get("shape"):
        return {}
    kept = {name: value for name, value in row.items() if name not in ("shape", *_OWN)}
    counted = {"params": sum(parameter.numel() for parameter in model.parameters())}
    if row.get("sees"):
        seen = (weight.numel() for name, weight in model.named_parameters() if sight.is_tower(name))
        counted["vision_params"] = sum(seen)
    return {**kept, **counted}
