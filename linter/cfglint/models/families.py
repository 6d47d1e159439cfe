"""What families of models say in ways of their own, by the model_type of a config.json.

That is what they leave out, and all beside a plain transformer: kinds of layers, sliding windows, a vision
tower. A family has a list of the layers' kinds, a pattern of letters, a period, or nothing where the class of
transformers 5.23 has a default (`_PERIODS`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

HUGE = 2**53  # beyond this a number is none of a model
# What the classes of transformers take where a config says nothing.
DEFAULTS: dict[str, dict[str, Any]] = {
    "gpt2": {"hidden": 768, "layers": 12, "heads": 12, "vocab": 50257, "max_positions": 1024},
    "gemma": {"head_dim": 256},
    "gemma2": {"heads": 8, "kv_heads": 4, "head_dim": 256, "vocab": 256000},
    "gemma3": {"heads": 8, "kv_heads": 4, "head_dim": 256, "vocab": 262208},
    "mistral": {"kv_heads": 8},
    "mixtral": {"kv_heads": 8, "experts": 8, "experts_per_token": 2},
    "qwen3": {"head_dim": 128},
    "hunyuan_v1_moe": {"shared_experts": 1},
}
ALIASES = {
    "gemma3_text": "gemma3",
    **dict.fromkeys(("qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"), "qwen2"),
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
    **{
        f"{name}_text": name
        for name in ("llama4", "qwen3_5", "qwen3_5_moe", "gemma3n", "gemma4", "gemma4_unified")
    },
    "glm4v_text": "glm4",
    "glm4v_moe_text": "glm4_moe",
    "minimax_m3_vl_text": "minimax_m3",
    "muse_glimmer_text": "muse_glimmer",
    "mllama_text_model": "mllama",
    "qwen2_5_omni_text": "qwen2",
    "qwen3_omni_moe_text": "qwen3_moe",
    **dict.fromkeys(("kimi_k2", "deepseek_v32", "glm_moe_dsa"), "deepseek_v3"),
    **dict.fromkeys(("bailing_moe", "bailing_moe_v2", "bailing_moe_linear"), "bailing_moe"),
    **dict.fromkeys(("hunyuan", "hunyuan_v1_dense"), "hunyuan_v1_dense"),
    **dict.fromkeys(("RefinedWebModel", "RefinedWeb"), "falcon"),
}
# Families whose embeddings are tied where nothing is said, whose layers are 4 x hidden wide where no width is
# given, whose classes read no key about biases, and that have no experts.
TIED = (
    "bloom", "cohere", "cohere2", "ernie4_5", "ernie4_5_moe", "falcon", "falcon_mamba", "gemma", "gemma2",
    "gemma3", "gpt2", "gpt_bigcode", "lfm2", "lfm2_moe", "mamba", "mpt", "opt", "smollm3", "starcoder2",
)  # fmt: skip
FOUR_TIMES = ("bloom", "falcon", "gpt2", "gpt_bigcode", "gpt_neo", "gptj", "mpt")
FIXED = ("qwen2", "qwen2_moe", "mistral", "mixtral", "phi3")
OWN_OUTPUT = ("glm", "glm4", "glm4_moe", "seed_oss")
DENSE = (
    "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "phi3", "granite", "internlm2",
    "smollm3", "ernie4_5", "exaone4", "olmo3", "ministral3", "seed_oss", "hunyuan_v1_dense", "apertus",
    "qwen3_5", "lfm2",
)  # fmt: skip
_LISTS = ("layer_types", "layers_block_type")
_PATTERN = "hybrid_override_pattern"
_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
# Kinds by the words that configs have for them; kinds that are no mixer of tokens are blocks of their own.
_ATTENTION = ("attention", "full_attention", "sliding_attention", "chunked_attention", "hybrid", "full")
_WINDOWED = ("sliding_attention", "chunked_attention")
_LINEAR = ("linear_attention", "conv")
_MLP = ("mlp", "moe")
# Every n-th layer sees everything, the others a window, where neither a list nor a pattern is given.
_PERIODS = {
    "gemma2": 2,
    "gemma3": 6,
    "gemma3n": 5,
    "gpt_oss": 2,
    "cohere2": 4,
    "olmo3": 4,
    "exaone4": 4,
    "llama4": 4,
}
_ALL = ("mistral", "mixtral", "phi3", "starcoder2", "ministral3")  # a window on each layer, if there is one
_FROM = ("qwen2", "qwen3", "qwen2_moe", "qwen3_moe")  # above max_window_layers, if use_sliding_window

_SSM = {
    "ssm_heads": ("mamba_n_heads", "mamba_num_heads"),
    "ssm_head_dim": ("mamba_d_head", "mamba_head_dim"),
    "ssm_state": ("mamba_d_state", "ssm_state_size", "state_size"),
    "ssm_groups": ("mamba_n_groups", "n_groups"),
    "ssm_conv": ("mamba_d_conv", "conv_kernel", "linear_conv_kernel_dim", "conv_L_cache"),
    "ssm_inner": ("mamba_d_ssm",),
}
_DELTA = {
    "linear_key_heads": "linear_num_key_heads",
    "linear_value_heads": "linear_num_value_heads",
    "linear_key_dim": "linear_key_head_dim",
    "linear_value_dim": "linear_value_head_dim",
}
_VISION = {
    "vision_hidden": ("embed_dim", "hidden_size", "width"),
    "vision_layers": ("depth", "num_hidden_layers", "layers"),
    "vision_heads": ("num_heads", "num_attention_heads"),
    "vision_ffn": ("intermediate_size",),
    "vision_patch": ("patch_size", "spatial_patch_size"),
    "vision_merge": ("spatial_merge_size",),
}


def whole(config: Mapping[str, Any], *keys: str) -> int | None:
    """Return the first whole number of some keys, None where none is there, or one that no model has."""
    for key in keys:
        value = config.get(key)
        if isinstance(value, list) and value and all(type(v) is int for v in value):
            value = max(value)
        if type(value) is int and abs(value) < HUGE:
            return value
    return None


def layer_kinds(config: Mapping[str, Any], family: str, layers: int) -> list[str]:
    """Return the kind of each layer; an empty list where all are as in a plain transformer."""
    for key in _LISTS:
        kinds = config.get(key)
        if isinstance(kinds, list) and kinds and all(isinstance(kind, str) for kind in kinds):
            return [str(kind) for kind in kinds[:layers] or kinds]
    pattern = config.get(_PATTERN)
    if isinstance(pattern, str):
        return [_LETTERS[letter] for letter in pattern if letter in _LETTERS]
    full = config.get("full_attn_idxs", config.get("attn_layer_indices"))
    if isinstance(full, list):
        other = "conv" if family.startswith("lfm2") else "mamba"
        return ["attention" if layer in full else other for layer in range(layers)]
    period = whole(config, "attn_layer_period")
    if period:  # Jamba
        offset = whole(config, "attn_layer_offset") or 0
        return ["attention" if layer % period == offset else "mamba" for layer in range(layers)]
    period = whole(config, "full_attention_interval")
    if period is None and family in ("qwen3_next", "qwen3_5", "qwen3_5_moe"):
        period = 4
    if period:
        return ["linear_attention" if (layer + 1) % period else "attention" for layer in range(layers)]
    return ["mamba"] * layers if family in ("mamba", "mamba2", "falcon_mamba") else []


def kinds(config: Mapping[str, Any], family: str, layers: int) -> dict[str, int]:
    """Return the columns that count layers by their kinds, and those of state-space and linear layers."""
    each = layer_kinds(config, family, layers)
    apart = any(kind in _MLP for kind in each)  # blocks of one kind each, as in Nemotron-H
    figures = dict(_windows(config, family, layers, each))
    mamba, linear = each.count("mamba"), sum(kind in _LINEAR for kind in each)
    if family == "falcon_h1":
        mamba, each = layers, []  # beside the attention of each layer
    if not (mamba or linear):
        return figures
    if each:
        figures["attention_layers"] = sum(kind in _ATTENTION for kind in each)
    if apart or family in ("mamba", "mamba2", "falcon_mamba"):
        figures["mlp_layers"] = sum(kind in _MLP for kind in each)
    figures.update({name: whole(config, *keys) or 0 for name, keys in _SSM.items()})
    if mamba:
        _complete_state(figures, config, family)
        figures["ssm_layers"] = mamba
    if linear:
        figures["linear_layers"] = linear
        figures.update({name: whole(config, key) or 0 for name, key in _DELTA.items()})
    return {
        name: value for name, value in figures.items() if value or name in ("attention_layers", "mlp_layers")
    }


def _complete_state(figures: dict[str, int], config: Mapping[str, Any], family: str) -> None:
    """Add the inner width of a Mamba layer, which families state as a width, a factor or as heads."""
    hidden = whole(config, "hidden_size", "d_model") or 0
    if family == "mamba2":
        figures["ssm_heads"] = whole(config, "num_heads") or 0
        figures["ssm_head_dim"] = whole(config, "head_dim") or 0
    wide = (whole(config, "mamba_expand", "expand") or 2) * hidden
    if family in ("mamba", "falcon_mamba"):
        wide = whole(config, "intermediate_size") or wide
    if family in ("nemotron_h", "mamba2"):
        wide = figures["ssm_heads"] * figures["ssm_head_dim"]
    figures["ssm_inner"] = figures["ssm_inner"] or wide
    if figures["ssm_heads"] and not figures["ssm_head_dim"]:  # "auto"
        figures["ssm_head_dim"] = figures["ssm_inner"] // figures["ssm_heads"]


def _windows(config: Mapping[str, Any], family: str, layers: int, each: list[str]) -> dict[str, int]:
    window = whole(config, "sliding_window") or whole(config, "attention_chunk_size") or 0
    if window <= 0 or config.get("use_sliding_window") is False:
        return {}
    windowed = sum(kind in _WINDOWED for kind in each)
    pattern = config.get("sliding_window_pattern")
    period = pattern if type(pattern) is int else len(pattern) if isinstance(pattern, str) else 0
    period = period or _PERIODS.get(family, 0)
    if not windowed and not each:
        if family in _ALL:
            windowed = layers
        elif family in _FROM:
            windowed = max(0, layers - (whole(config, "max_window_layers") or 0)) * _uses(config)
        elif period > 0:
            windowed = layers - layers // period
    return {"window": window, "window_layers": windowed} if windowed else {}


def _uses(config: Mapping[str, Any]) -> int:
    return int(config.get("use_sliding_window") is True)


def vision(config: Mapping[str, Any]) -> dict[str, int]:
    """Return the columns of a vision tower, without its parameters; none where the config has no tower."""
    tower = config.get("vision_config")
    if not isinstance(tower, dict):
        return {}
    figures = {name: value for name, keys in _VISION.items() if (value := whole(tower, *keys)) and value > 0}
    hidden, ratio = figures.get("vision_hidden", 0), tower.get("mlp_ratio")
    if "vision_ffn" not in figures and isinstance(ratio, (int, float)) and 0 < ratio < 100:
        figures["vision_ffn"] = int(hidden * ratio)
    merge = whole(config, "spatial_merge_size")
    shuffle = config.get("downsample_ratio")
    if merge:
        figures["vision_merge"] = merge
    elif isinstance(shuffle, float) and 0 < shuffle <= 1:
        figures["vision_merge"] = round(1 / shuffle)  # InternVL's pixel shuffle
    return figures
