"""A model's config.json: found in the cache of the Hugging Face Hub, and read into the registry's columns.

On ``--online``, it is fetched from the Hub; nothing else is fetched.
"""

from __future__ import annotations

import os
from math import ceil, floor

from cfglint import files
from cfglint.errors import UsageError
from cfglint.lang.values import NOTHING, Interval, Open, interval
from cfglint.models import COLUMNS, EXPERTS, NOT_DENSE, PARTS, families
from cfglint.models.families import HUGE, kinds, layer_kinds, vision, whole
from cfglint.models.size import FORMS, active_params, params

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

FILE = "config.json"
_ANEW = "download it again from the model's page"
UNSURE = 0.1  # how far an architecture that nobody wrote a form for may be from a Llama's
_LARGEST = 2**24  # bytes; a config.json has some thousands
MISSING = (
    "--online needs the package huggingface_hub, which is not installed; pip install 'cfglint-gpu[online]', "
    "or name the model's config.json with --model-config"
)


class ModelConfigError(UsageError, ValueError):
    """A config.json that cannot be used; the text says why and what to do."""


# Columns, and the keys that configs have for them; the first that is there counts.
_KEYS = {
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "kv_heads": ("num_key_value_heads", "multi_query_group_num", "num_kv_heads", "n_head_kv"),
    "head_dim": ("head_dim", "kv_channels", "attention_head_dim"),
    "ffn": ("intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner", "intermediate_dim"),
    "vocab": ("padded_vocab_size", "vocab_size"),
    "max_positions": ("max_position_embeddings", "n_positions", "seq_length", "max_seq_len"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
    "experts_per_token": ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k", "moe_k"),
    "expert_ffn": ("moe_intermediate_size", "expert_ffn_hidden_size"),
    "shared_experts": (
        *("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"),
    ),
    "dense_layers": ("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"),
}
# Where a config may say how long a sequence is (vllm/transformers_utils/model_arch_config_convertor.py:374).
_LENGTHS = (
    *("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"),
    *("max_target_positions", "max_sequence_length", "max_seq_length", "seq_len"),
)
# Kinds of rope scaling that leave the length as it is stated.
_UNSCALED = (
    "su", "longrope", "llama3", "default", "mrope", "yarn", "deepseek_yarn", "deepseek_llama_scaling",
)  # fmt: skip
# Where a config of several models has the language model.
_INNER = ("text_config", "llm_config", "language_config", "thinker_config")
# The width of all experts that each token passes, and how many layers lie between two that have experts.
_SHARED = (
    "shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size",
)  # fmt: skip
_STEPS = ("decoder_sparse_step", "interleave_moe_layer_step", "expert_layer_period", "moe_layer_interval")
_LATENT = ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "q_lora_rank")
_OWN_BIAS = {"chatglm": "add_qkv_bias", "stablelm": "use_qkv_bias"}
_BITS = ("bits", "w_bit", "nbits", "weight_bits")
_METHODS = (("fp8", 8), ("int8", 8), ("fp4", 4), ("nf4", 4))
_INDICES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_BYTES = {"float32": 4, "float64": 8, "float8_e4m3fn": 1}

_KINDS = {str: "string", list: "list", dict: "mapping", bool: "boolean", float: "fraction"}


def read(path: str) -> dict[str, object]:
    """Return the figures of the model whose config.json, or folder, is at ``path``.

    That may be anywhere, since weights are: numbers come from it, and no text. Raises ModelConfigError, which
    names the file and says what to do.
    """
    file = os.path.join(path, FILE) if files.is_folder(path) else path
    try:
        data = files.read_bytes(file, _LARGEST)
    except OSError as error:
        raise ModelConfigError(_unreadable(path, file, error)) from None
    config = _loaded(data, file)
    try:
        figures = _columns(config, file)
        if isinstance(figures["params"], Interval) and not figures["quantized_bits"]:
            stored = _stored(os.path.dirname(file), config, figures)
            if stored is not None:
                figures["params"] = stored
                if not figures["experts"]:
                    figures["active_params"] = stored
    except (OverflowError, RecursionError):
        raise ModelConfigError(
            f"{file}: its numbers or its nesting are not those of a model; {_ANEW}"
        ) from None
    return figures


# ── files ──────────────────────────────────────────────────────────────────────────────────────────────────
def _loaded(data: bytes, file: str) -> dict[str, Any]:
    import json

    try:
        config = json.loads(data)
    except json.JSONDecodeError as error:
        raise ModelConfigError(
            f"{file}:{error.lineno}:{error.colno}: not JSON: {error.msg}; {_ANEW}"
        ) from None
    except (UnicodeDecodeError, RecursionError):
        raise ModelConfigError(f"{file}: not JSON text; {_ANEW}") from None
    except ValueError:
        raise ModelConfigError(f"{file}: a number in it has more digits than can be read; {_ANEW}") from None
    if not isinstance(config, dict):
        raise ModelConfigError(f"{file}: a model's config must be an object {{…}}; {_ANEW}")
    return config


def _unreadable(path: str, file: str, error: OSError) -> str:
    if "base_model_name_or_path" in _beside(os.path.dirname(file), "adapter_config.json", _LARGEST):
        return f"{path}: this is an adapter; name the config.json of the base model that it names"
    if not isinstance(error, FileNotFoundError):
        return f"{file}: cannot be read: {files.why(error)}"
    if files.is_folder(path):
        return (
            f"{path}: no {FILE} is in this folder; name the folder of the model's weights, or the file itself"
        )
    return f"{path}: no such file or folder; name a {FILE}, or the folder that it is in"


def _beside(folder: str, name: str, most: int) -> dict[str, Any]:
    """Return what another file of the model holds, nothing where it cannot be read."""
    import json

    try:
        content = json.loads(files.read_bytes(os.path.join(folder, name), most))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _stored(folder: str, config: dict[str, Any], figures: dict[str, Any]) -> int | None:
    """Return the parameters by the size of the weights, where an index beside the config tells it."""
    for name in _INDICES:
        index = _beside(folder, name, 8 * _LARGEST)
        metadata = index.get("metadata")
        size = whole(metadata, "total_size") if isinstance(metadata, dict) else None
        if size is None or size <= 0:
            continue
        dtype = _inner(config).get("torch_dtype") or config.get("torch_dtype") or config.get("dtype")
        count = size // _BYTES.get(str(dtype), 2)
        stored = index.get("weight_map")
        if figures["tied"] is True and isinstance(stored, dict) and "lm_head.weight" in stored:
            count -= figures["vocab"] * figures["hidden"]  # stored twice, and one in memory
        return count
    return None


# ── columns ────────────────────────────────────────────────────────────────────────────────────────────────
def shape_of(config: dict[str, Any], file: str = FILE) -> tuple[str, dict[str, Any]]:
    """Return a config's family, and its shape as size.py counts it. Raises ModelConfigError."""
    inner = _inner(config)
    family = str(inner.get("model_type") or config.get("model_type") or "unknown")
    family = families.ALIASES.get(family, family)
    figures = {**_figures(inner, family, file), **vision(config)}
    figures["tied"] = _tied(config, inner, family)
    figures["quantized_bits"] = _bits(config.get("quantization_config") or inner.get("quantization_config"))
    return family, figures


def _columns(config: dict[str, Any], file: str) -> dict[str, object]:
    """Return the registry's columns, and the lengths that a config states."""
    family, figures = shape_of(config, file)
    figures = {**dict.fromkeys(NOT_DENSE, 0), **dict.fromkeys(PARTS, figures["layers"]), **figures}
    columns: dict[str, object] = {name: figures[name] for name in COLUMNS if name in figures}
    columns["named"] = False
    columns["family"] = family if family in FORMS else "unknown"  # no text of a file that may be anywhere
    share, towers = _margin(family, config, figures)
    tied = figures["tied"]
    least, most = ({**figures, "tied": state if isinstance(tied, Open) else tied} for state in (True, False))
    for name, count in (("params", params), ("active_params", active_params)):
        low, high = count(family, least), count(family, most)
        wide = share or towers
        columns[name] = interval(floor(low * (1 - share)), ceil(high * (1 + share) + towers)) if wide else low
    if towers:
        columns["vision_params"] = interval(0, ceil(towers))
    return {**columns, **_lengths(config, _inner(config))}


def _lengths(config: dict[str, Any], inner: dict[str, Any]) -> dict[str, object]:
    """Return `positions`, what the config itself states, and `context`, the longest that vLLM makes of it.

    Versions of vLLM differ about YaRN, so `context` is the largest that one of them takes.
    """
    lengths = {key: length for key in _LENGTHS if (length := whole(inner, key) or 0) > 0}
    positions = lengths.get("max_position_embeddings")
    columns: dict[str, object] = {} if positions is None else {"positions": positions}
    if not lengths:
        return columns
    least = min(lengths.values())
    scaling = inner.get("rope_parameters") or inner.get("rope_scaling") or {}
    several = _dicts(scaling.values()) if isinstance(scaling, dict) else []
    longest = max(_scaled(least, part) for part in several or [scaling])
    columns["context"] = max(longest, *(whole(part, "model_max_length") or 0 for part in (config, inner)), 0)
    return columns


def _scaled(length: int, scaling: Any) -> int:
    factor = scaling.get("factor") if isinstance(scaling, dict) else None
    if not isinstance(factor, (int, float)) or not 0 < factor < HUGE:
        return length
    kind = scaling.get("rope_type") or scaling.get("type")
    if kind not in _UNSCALED:
        return ceil(length * max(1, factor))
    start = whole(scaling, "original_max_position_embeddings")
    return max(length, ceil(start * factor)) if "yarn" in str(kind) and start is not None else length


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
            value = families.DEFAULTS.get(family, {}).get(name)
        if isinstance(value, (list, tuple)) and value and all(type(v) is int for v in value):
            value = max(value)  # one number for each layer; the largest is the fullest
        if value is None:
            continue
        if type(value) is not int or not 0 <= value < HUGE:
            key = next((k for k in keys if config.get(k) is not None), keys[0])
            kind = _KINDS.get(type(value), "number of that size")
            raise ModelConfigError(f"{file}: {key} is a whole number, not a {kind}; correct it")
        figures[name] = value
    if "layers" not in figures and (each := layer_kinds(config, family, 0)):
        figures["layers"] = len(each)
    _complete(figures, config, family)
    missing = [name for name in ("hidden", "layers", "heads", "ffn", "vocab") if not figures.get(name)]
    if missing:
        wanted = ", ".join(_KEYS[name][0].removeprefix("padded_") for name in missing)
        raise ModelConfigError(
            f"{file}: missing {wanted}; add it from the model's page, or name another file"
        )
    if "head_dim" not in figures:
        figures["head_dim"] = max(1, figures["hidden"] // figures["heads"])
    figures["kv_heads"] = figures.get("kv_heads") or figures["heads"]
    return figures


def _complete(figures: dict[str, Any], config: dict[str, Any], family: str) -> None:
    """Add what a family says in a way of its own."""
    if family == "lfm2" and config.get("block_auto_adjust_ff_dim", True) and "ffn" in figures:
        unit = whole(config, "block_multiple_of") or 256
        figures["ffn"] = ceil(int(2 * figures["ffn"] / 3) / unit) * unit
    if family == "glm4_moe" and config.get("use_qk_norm") is True:
        figures["qk_norm"] = True
    if family == "qwen" and "ffn" in figures:
        figures["ffn"] //= 2  # it counts both halves of the gated layer
    if family in families.FOUR_TIMES and not figures.get("ffn"):
        ratio = whole({"expansion_ratio": 4, **config}, "expansion_ratio")
        figures["ffn"] = (4 if ratio is None else ratio) * figures.get("hidden", 0)
    attention = config.get("attn_config") if family == "mpt" else None
    if isinstance(attention, dict) and (kv_heads := whole(attention, "kv_n_heads")) is not None:
        figures["kv_heads"] = kv_heads
    new_falcon = config.get("new_decoder_architecture") is True
    if (family == "falcon" and not new_falcon) or family == "gpt_bigcode":
        figures["kv_heads"] = 1 if config.get("multi_query", True) else figures.get("heads", 0)
    figures.setdefault("max_positions", 2048)
    if family == "opt" and (width := whole(config, "word_embed_proj_dim")) is not None:
        figures["embed_dim"] = width
    _complete_biases(figures, config, family)
    _complete_experts(figures, config, family)
    _complete_latent(figures, config)
    figures.update(kinds(config, family, figures.get("layers", 0)))
    if family == "nemotron_h" and not figures.get("ffn"):
        figures["ffn"] = figures["expert_ffn"]
    if family in ("mamba", "mamba2", "falcon_mamba"):  # no heads of attention, no feed-forward layer
        figures["heads"] = figures["kv_heads"] = figures.get("ssm_heads") or 1
        figures["head_dim"] = figures.get("ssm_head_dim") or figures.get("ssm_inner", 0)
        figures["ffn"] = figures.get("ssm_inner", 0)


def _complete_biases(figures: dict[str, Any], config: dict[str, Any], family: str) -> None:
    for key in ("attention_bias", "mlp_bias"):
        if isinstance(config.get(key), bool) and family not in families.FIXED:
            figures[key] = config[key]
    if "attention_bias" in figures and family not in families.OWN_OUTPUT:  # elsewhere it is the output's, too
        figures["output_bias"] = figures["attention_bias"]
    own = config.get(_OWN_BIAS.get(family, ""))
    if isinstance(own, bool):
        figures["attention_bias"] = own


def _complete_experts(figures: dict[str, Any], config: dict[str, Any], family: str) -> None:
    experts = figures.get("experts", 0)
    if not experts or experts == 1:
        figures.update(dict.fromkeys(EXPERTS, 0))
        if family == "granitemoehybrid":
            figures["ffn"] = whole(config, "shared_intermediate_size") or figures.get("ffn", 0)
        return
    figures.setdefault("expert_ffn", figures.get("ffn", 0))
    figures.setdefault("ffn", figures["expert_ffn"])
    figures.setdefault("experts_per_token", 1)
    if family == "llama4":
        figures.update(expert_ffn=figures["ffn"], shared_experts=1)
        figures["ffn"] = whole(config, "intermediate_size_mlp") or figures["ffn"]
    width = whole(config, *_SHARED)
    if width is not None and figures["expert_ffn"]:
        figures["shared_experts"] = round(width / figures["expert_ffn"])
    if latent := whole(config, "moe_latent_size"):
        figures["expert_hidden"] = latent
    layers = figures.get("layers", 0)
    dense = config.get("mlp_only_layers")
    if isinstance(dense, list):
        figures.setdefault("dense_layers", len(dense))
    sorts = config.get("mlp_layer_types")
    if isinstance(sorts, list):
        figures.setdefault("dense_layers", sorts.count("dense"))
    with_experts = config.get("moe_layers")
    if isinstance(with_experts, list):
        figures.setdefault("dense_layers", layers - len(with_experts))
    step = next((step for key in _STEPS if (step := whole(config, key))), 1)
    if step > 1:  # only every step-th layer has experts
        figures["dense_layers"] = max(figures.get("dense_layers", 0), layers - layers // step)
    for name in EXPERTS:
        figures.setdefault(name, 0)


def _complete_latent(figures: dict[str, Any], config: dict[str, Any]) -> None:
    kv_rank, rope, nope, value_dim, q_rank = (whole(config, key) or 0 for key in _LATENT)
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
        return family in families.TIED
    return Open(NOTHING)


def _bits(quantization: object) -> object:
    """Return the bits of a quantized checkpoint, 0 for none."""
    if not isinstance(quantization, dict):
        return 0
    for key, bits in (("load_in_4bit", 4), ("load_in_8bit", 8)):
        if quantization.get(key) is True:
            return bits
    groups = quantization.get("config_groups")
    parts = [part.get("weights") for part in _dicts(groups.values() if isinstance(groups, dict) else ())]
    stated = [whole(quantization, *_BITS), *(whole(weights, "num_bits") for weights in _dicts(parts))]
    if numbers := [number for number in stated if number is not None]:
        return numbers[0]
    method = str(quantization.get("quant_method", "")).lower()
    unknown = 4 if method == "awq" else Interval(2, 8, NOTHING)
    return next((bits for word, bits in _METHODS if word in method), unknown)


def _dicts(values: Iterable[object]) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)]


def _margin(family: str, config: dict[str, Any], figures: dict[str, Any]) -> tuple[float, float]:
    """Return what the count may miss: a share of it to both sides, and parameters on top."""
    odd = family not in FORMS or (family in families.DENSE and figures["experts"])
    odd = odd or (family == "falcon" and config.get("bias") is True)  # falcon-rw: no form is written for it
    towers = _dicts(config.get(key) for key in ("vision_config", "audio_config"))
    return UNSURE if odd else 0, sum(_tower(tower, figures) for tower in towers)


def _tower(config: dict[str, Any], figures: dict[str, Any]) -> float:
    """Return the most that an encoder of images or sound adds where the whole model is loaded."""
    width = _first(config, ("embed_dim", "hidden_size", "d_model"))
    depth = _first(config, ("depth", *_KEYS["layers"]))
    if type(width) is not int or type(depth) is not int or max(abs(width), abs(depth)) >= HUGE:
        return 0.25 * params("llama", {**figures, "tied": True})
    inner = whole(config, "intermediate_size")
    inner = 4 * width if inner is None else inner
    return 1.25 * depth * (4 * width * width + 3 * width * inner)  # a quarter for what joins it to the model


# ── the Hub ────────────────────────────────────────────────────────────────────────────────────────────────
class FetchError(Exception):
    """The Hub did not give a config.json; the text says why. ``final``: it is out of reach for any model."""

    final = False


def home(path: str, environ: Mapping[str, str]) -> str:
    """Return a path with its ``~`` replaced."""
    if path == "~" or path.startswith(("~/", "~\\")):
        own = environ.get("HOME") or os.path.expanduser("~")
        return own + path[1:]
    return path


def is_id(name: str) -> bool:
    """Whether a name may be that of a model on the Hub: ``name`` or ``org/name``."""
    return name.count("/") <= 1 and not name.startswith((".", "~", "/")) and not set(name) & set(":\\ \0")


def kept(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the path of a model's config.json in the Hub's local cache; None where that holds none."""
    if not name or not is_id(name):
        return None
    # as huggingface_hub finds it
    cache = environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE")
    if not cache:
        general = environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
        cache = os.path.join(environ.get("HF_HOME") or os.path.join(general, "huggingface"), "hub")
    base = os.path.join(home(cache, environ), "models--" + name.replace("/", "--"))
    try:
        revision = files.read_text(os.path.join(base, "refs", "main"), "ascii", most=200).strip()
    except (OSError, ValueError):
        return None
    path = os.path.join(base, "snapshots", revision, FILE)
    return path if files.is_file(path) else None


def ready() -> None:
    """Raise UsageError if what this takes is not installed."""
    from importlib.util import find_spec

    if find_spec("huggingface_hub") is None:
        raise UsageError(MISSING)


def fetch(name: str) -> str:
    """Return the local path of a model's config.json. Raises FetchError; UsageError if it cannot try."""
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import LocalEntryNotFoundError
    except ImportError:
        raise UsageError(MISSING) from None
    import logging

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # what failed is said once, below
    try:
        return str(hf_hub_download(name, FILE))
    except LocalEntryNotFoundError:
        problem = FetchError("it cannot be reached; check the connection, or run without --online")
        problem.final = True
        raise problem from None
    except Exception as error:  # noqa: BLE001 (its own, of requests, of the disk: none is ours to tell apart)
        lines = str(error).strip().splitlines()
        raise FetchError(lines[0] if lines else type(error).__name__) from None
