"""Reads the config.json that Hugging Face models come with into the columns of the registry."""

from __future__ import annotations

import json
import os
from math import ceil, floor
from typing import TYPE_CHECKING

from cfglint import files
from cfglint.errors import UsageError
from cfglint.lang.values import NOTHING, Interval, Open, interval
from cfglint.models.count import FORMS, active_params, params

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FILE = "config.json"
UNSURE = 0.1  # how far an architecture that nobody wrote a form for may be from a Llama's
_LARGEST = 2**24  # bytes; a config.json has some thousands


class ModelConfigError(UsageError, ValueError):
    """A config.json that cannot be used; the text says why and what to do."""


# Columns, and the keys that configs have for them; the first that is there counts.
_KEYS = {
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "kv_heads": ("num_key_value_heads", "multi_query_group_num", "num_kv_heads", "n_head_kv"),
    "head_dim": ("head_dim", "kv_channels"),
    "ffn": ("intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner", "intermediate_dim"),
    "vocab": ("padded_vocab_size", "vocab_size"),
    "max_positions": ("max_position_embeddings", "n_positions", "seq_length", "max_seq_len"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
    "experts_per_token": ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k"),
    "expert_ffn": ("moe_intermediate_size", "expert_ffn_hidden_size"),
    "shared_experts": ("n_shared_experts", "num_shared_experts", "num_shared_expert"),
    "dense_layers": ("first_k_dense_replace",),
}
# What the classes of transformers take where a config says nothing.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "gpt2": {"hidden": 768, "layers": 12, "heads": 12, "vocab": 50257, "max_positions": 1024},
    "gemma": {"head_dim": 256},
    "gemma2": {"heads": 8, "kv_heads": 4, "head_dim": 256, "vocab": 256000},
    "gemma3": {"heads": 8, "kv_heads": 4, "head_dim": 256, "vocab": 262208},
    "mistral": {"kv_heads": 8},
    "mixtral": {"kv_heads": 8, "experts": 8, "experts_per_token": 2},
    "qwen3": {"head_dim": 128},
}
_TIED = (
    "bloom",
    "falcon",
    "gemma",
    "gemma2",
    "gemma3",
    "gpt2",
    "gpt_bigcode",
    "mpt",
    "opt",
    "smollm3",
    "starcoder2",
)
_INNER = ("text_config", "llm_config", "language_config", "thinker_config")
_ALIASES = {
    "gemma3_text": "gemma3",
    "qwen2_vl": "qwen2",
    "qwen2_vl_text": "qwen2",
    "qwen2_5_vl": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
    "RefinedWebModel": "falcon",
    "RefinedWeb": "falcon",
}
_FOUR_TIMES = ("bloom", "falcon", "gpt2", "gpt_bigcode", "mpt")  # where no width is given, 4 x hidden
_BYTES = {"float32": 4, "float64": 8, "float8_e4m3fn": 1}


def read(path: str) -> dict[str, object]:
    """Return the figures of the model whose config.json, or folder, stands at ``path``.

    Raises ModelConfigError, whose text names the file and says what to do.
    """
    file = os.path.join(path, FILE) if files.is_folder(path) else path
    try:
        data = files.read_bytes(file, _LARGEST)
    except OSError as error:
        raise ModelConfigError(_unreadable(path, file, error)) from None
    figures = figures_of(data, file)
    if isinstance(figures["params"], Interval) and not figures["quantized_bits"]:
        stored = _stored(os.path.dirname(file), data, figures)
        if stored is not None:
            figures["params"] = stored
            if not figures["experts"]:
                figures["active_params"] = stored
    return figures


def figures_of(data: bytes, file: str) -> dict[str, object]:
    """Return the figures that the text of a config.json gives; ``file`` is its name in messages."""
    config = _loaded(data, file)
    inner = _inner(config)
    family = str(inner.get("model_type") or config.get("model_type") or "unknown")
    family = _ALIASES.get(family, family)
    figures = _figures(inner, family, file)
    lengths = _lengths(config, inner)
    figures["tied"] = _tied(config, inner, family)
    figures["quantized_bits"] = _bits(config.get("quantization_config") or inner.get("quantization_config"))
    return {**_told(figures, family, config), **lengths}


# Where a config may say how long a sequence is (vllm/transformers_utils/model_arch_config_convertor.py:374).
_LENGTHS = (
    *("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"),
    *("max_target_positions", "max_sequence_length", "max_seq_length", "seq_len"),
)
# Kinds of rope scaling that leave the length as it is stated.
_UNSCALED = (
    "su",
    "longrope",
    "llama3",
    "default",
    "mrope",
    "yarn",
    "deepseek_yarn",
    "deepseek_llama_scaling",
)


def _lengths(config: dict[str, Any], inner: dict[str, Any]) -> dict[str, object]:
    """Return `positions`, what the config itself states, and `context`, the longest that vLLM makes of it.

    Versions of vLLM differ about YaRN, so `context` is the largest that one of them takes.
    """
    stated = [inner[key] for key in _LENGTHS if type(inner.get(key)) is int and inner[key] > 0]
    positions = inner.get("max_position_embeddings")
    found: dict[str, object] = {"positions": positions} if type(positions) is int and positions > 0 else {}
    if not stated:
        return found
    least = min(stated)
    scaling = inner.get("rope_parameters") or inner.get("rope_scaling") or {}
    several = [s for s in scaling.values() if isinstance(s, dict)] if isinstance(scaling, dict) else []
    longest = max(_scaled(least, one) for one in several or [scaling])
    other = [c.get("model_max_length") for c in (config, inner)]
    return {**found, "context": max(longest, *(n for n in other if type(n) is int), 0)}


def _scaled(length: int, scaling: Any) -> int:
    if not isinstance(scaling, dict):
        return length
    kind = scaling.get("rope_type") or scaling.get("type")
    factor = scaling.get("factor")
    if not isinstance(factor, (int, float)):
        return length
    start = scaling.get("original_max_position_embeddings")
    if kind in _UNSCALED:
        return max(length, ceil(start * factor)) if "yarn" in str(kind) and type(start) is int else length
    return ceil(length * max(1, factor))


def _told(figures: dict[str, Any], family: str, config: dict[str, Any]) -> dict[str, object]:
    """Return the registry's columns."""
    from cfglint.models.registry import COLUMNS

    told = {name: figures[name] for name in COLUMNS if name in figures}
    told["family"] = family
    less, more = _margin(family, config, figures)
    open_ = isinstance(figures["tied"], Open)
    for name, count in (("params", params), ("active_params", active_params)):
        low = count(family, {**figures, "tied": True} if open_ else figures)
        high = count(family, {**figures, "tied": False} if open_ else figures)
        told[name] = (
            interval(floor(low * (1 - less)), ceil(high * (1 + less) + more)) if less or more else low
        )
    return told


def _loaded(data: bytes, file: str) -> dict[str, Any]:
    advice = "download it anew from the model's page"
    try:
        config = json.loads(data)
    except json.JSONDecodeError as error:
        raise ModelConfigError(
            f"{file}:{error.lineno}:{error.colno}: not JSON: {error.msg}; {advice}"
        ) from None
    except (UnicodeDecodeError, RecursionError):
        raise ModelConfigError(f"{file}: not JSON text; {advice}") from None
    if not isinstance(config, dict):
        raise ModelConfigError(f"{file}: a model's config is an object {{…}}, and this is none; {advice}")
    return config


def _unreadable(path: str, file: str, error: OSError) -> str:
    base = _base_of_adapter(os.path.dirname(file))
    if base is not None:
        return f"{path}: it holds an adapter; name the config.json of its base model, {base}"
    if isinstance(error, FileNotFoundError) and files.is_folder(path):
        return (
            f"{path}: no {FILE} is in this folder; name the folder of the model's weights, or the file itself"
        )
    if isinstance(error, FileNotFoundError):
        return f"{path}: no such file or folder; name a {FILE}, or the folder that it is in"
    return f"{file}: cannot be read: {files.why(error)}"


def _base_of_adapter(folder: str) -> str | None:
    try:
        found = json.loads(files.read_bytes(os.path.join(folder, "adapter_config.json"), _LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
    base = found.get("base_model_name_or_path") if isinstance(found, dict) else None
    return base if isinstance(base, str) else None


def _inner(config: dict[str, Any]) -> dict[str, Any]:
    """Return the part that describes the language model."""
    for _ in range(3):
        inner = next((config[key] for key in _INNER if isinstance(config.get(key), dict)), None)
        if inner is None or _first(config, _KEYS["layers"]) is not None:
            return config
        config = inner
    return config


def _first(config: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((config[key] for key in keys if config.get(key) is not None), None)


def _figures(config: dict[str, Any], family: str, file: str) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, keys in _KEYS.items():
        value = _first(config, keys)
        if value is None:
            value = _DEFAULTS.get(family, {}).get(name)
        if isinstance(value, (list, tuple)) and value and all(type(v) is int for v in value):
            value = max(value)  # one number for each layer; the largest is the fullest
        if value is None:
            continue
        if type(value) is not int or not 0 <= value < 2**53:
            key = next((k for k in keys if config.get(k) is not None), keys[0])
            raise ModelConfigError(
                f"{file}: {key} is a whole number, not {json.dumps(value)[:40]}; correct it"
            )
        figures[name] = value
    _complete(figures, config, family)
    missing = [name for name in ("hidden", "layers", "heads", "ffn", "vocab") if not figures.get(name)]
    if missing:
        wanted = ", ".join(_KEYS[name][0].removeprefix("padded_") for name in missing)
        raise ModelConfigError(
            f"{file}: it lacks {wanted}; add what the model's page says, or name another file"
        )
    if "head_dim" not in figures:
        figures["head_dim"] = max(1, figures["hidden"] // figures["heads"])
    figures["kv_heads"] = figures.get("kv_heads") or figures["heads"]
    return figures


def _complete(figures: dict[str, Any], config: dict[str, Any], family: str) -> None:
    """Add what a family says in a way of its own."""
    if family == "qwen" and "ffn" in figures:
        figures["ffn"] //= 2  # it counts both halves of the gated layer
    if family in _FOUR_TIMES and not figures.get("ffn"):
        ratio = config.get("expansion_ratio", 4)
        figures["ffn"] = (ratio if type(ratio) is int else 4) * figures.get("hidden", 0)
    if family == "mpt":
        attention = config.get("attn_config")
        kv = attention.get("kv_n_heads") if isinstance(attention, dict) else None
        figures.update({"kv_heads": kv} if type(kv) is int else {})
    new_falcon = config.get("new_decoder_architecture") is True
    if (family == "falcon" and not new_falcon) or family == "gpt_bigcode":
        figures["kv_heads"] = 1 if config.get("multi_query", True) else figures.get("heads", 0)
    figures.setdefault("max_positions", 2048)
    if family == "opt" and type(config.get("word_embed_proj_dim")) is int:
        figures["embed_dim"] = config["word_embed_proj_dim"]
    _complete_biases(figures, config, family)
    _complete_experts(figures, config)
    _complete_latent(figures, config)


def _complete_biases(figures: dict[str, Any], config: dict[str, Any], family: str) -> None:
    for key in ("attention_bias", "mlp_bias"):
        if isinstance(config.get(key), bool) and family not in _FIXED:
            figures[key] = config[key]
    if "attention_bias" in figures and family not in (
        "glm",
        "glm4",
    ):  # elsewhere it is that of the output too
        figures["output_bias"] = figures["attention_bias"]
    if family == "chatglm" and isinstance(config.get("add_qkv_bias"), bool):
        figures["attention_bias"] = config["add_qkv_bias"]


_FIXED = ("qwen2", "qwen2_moe", "mistral", "mixtral", "phi3")  # their classes read no such key


def _complete_experts(figures: dict[str, Any], config: dict[str, Any]) -> None:
    experts = figures.get("experts", 0)
    if not experts or experts == 1:
        figures.update(dict.fromkeys(_EXPERTS, 0))
        return
    figures.setdefault("expert_ffn", figures.get("ffn", 0))
    figures.setdefault("ffn", figures["expert_ffn"])
    figures.setdefault("experts_per_token", 1)
    width = config.get("shared_expert_intermediate_size")
    if type(width) is int and figures["expert_ffn"]:
        figures.setdefault("shared_experts", round(width / figures["expert_ffn"]))
    dense = config.get("mlp_only_layers")
    if isinstance(dense, list):
        figures.setdefault("dense_layers", len(dense))
    step = config.get("decoder_sparse_step")
    if type(step) is int and step > 1:  # only every step-th layer has experts
        layers = figures.get("layers", 0)
        figures["dense_layers"] = max(figures.get("dense_layers", 0), layers - layers // step)
    for name in _EXPERTS:
        figures.setdefault(name, 0)


_EXPERTS = ("experts", "experts_per_token", "expert_ffn", "shared_experts", "dense_layers")


def _complete_latent(figures: dict[str, Any], config: dict[str, Any]) -> None:
    keys = ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "q_lora_rank")
    numbers = [value if type(value := config.get(key)) is int else 0 for key in keys]
    kv_rank, rope, nope, value_dim, q_rank = numbers
    figures["latent_dim"] = kv_rank + rope if kv_rank else 0
    if kv_rank:
        figures.update(rope_dim=rope, nope_dim=nope, value_dim=value_dim, q_rank=q_rank)
        figures["head_dim"] = nope + rope


def _tied(config: dict[str, Any], inner: dict[str, Any], family: str) -> object:
    for source in (inner, config):
        value = source.get("tie_word_embeddings")
        if isinstance(value, bool):
            return value
    if family in FORMS or inner is not config:
        return family in _TIED
    return Open(NOTHING)


def _bits(said: object) -> object:
    """Return the bits of a quantized checkpoint, 0 for none."""
    if not isinstance(said, dict):
        return 0
    if said.get("load_in_4bit") is True:
        return 4
    if said.get("load_in_8bit") is True:
        return 8
    for key in ("bits", "w_bit", "nbits", "weight_bits"):
        if type(said.get(key)) is int:
            return said[key]
    method = str(said.get("quant_method", "")).lower()
    groups = said.get("config_groups")
    for group in groups.values() if isinstance(groups, dict) else ():
        weights = group.get("weights") if isinstance(group, dict) else None
        if isinstance(weights, dict) and type(weights.get("num_bits")) is int:
            return weights["num_bits"]
    if "fp8" in method or "int8" in method:
        return 8
    if "fp4" in method or "nf4" in method or method == "awq":
        return 4
    return Interval(2, 8, NOTHING)


def _margin(family: str, config: dict[str, Any], figures: dict[str, Any]) -> tuple[float, float]:
    """Return what the count may miss: a share of it to both sides, and parameters on top."""
    odd = family not in FORMS or (family in _DENSE and figures["experts"])
    odd = odd or (family == "falcon" and config.get("bias") is True)  # falcon-rw: no form is written for it
    share = UNSURE if odd else 0
    towers = [config[key] for key in ("vision_config", "audio_config") if isinstance(config.get(key), dict)]
    return share, sum(_tower(tower, figures) for tower in towers)


def _tower(config: dict[str, Any], figures: dict[str, Any]) -> float:
    """Return the most that an encoder of images or sound adds where the whole model is loaded."""
    width, depth = (
        _first(config, ("embed_dim", "hidden_size", "d_model")),
        _first(config, ("depth", *_KEYS["layers"])),
    )
    if type(width) is not int or type(depth) is not int:
        return 0.25 * params("llama", {**figures, "tied": True})
    inner = config.get("intermediate_size")
    inner = inner if type(inner) is int else 4 * width
    return 1.25 * depth * (4 * width * width + 3 * width * inner)  # a quarter for what joins it to the model


_DENSE = (
    *("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "phi3", "granite", "internlm2"),
    *("smollm3", "ernie4_5", "exaone4", "olmo3"),
)


def _stored(folder: str, data: bytes, figures: dict[str, Any]) -> int | None:
    """Return the parameters by the size of the weights, where an index beside the config tells it."""
    for name in ("model.safetensors.index.json", "pytorch_model.bin.index.json"):
        try:
            index = json.loads(files.read_bytes(os.path.join(folder, name), 8 * _LARGEST))
            size = index["metadata"]["total_size"]
            names = index.get("weight_map") or {}
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            continue
        if type(size) is not int or size <= 0:
            continue
        config = json.loads(data)
        dtype = _inner(config).get("torch_dtype") or config.get("torch_dtype") or config.get("dtype")
        count = size // _BYTES.get(str(dtype), 2)
        if figures["tied"] is True and "lm_head.weight" in names:
            count -= figures["vocab"] * figures["hidden"]  # stored twice, and one in memory
        return count
    return None
