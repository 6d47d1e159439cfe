"""What families of models say in ways of their own, by the model_type of a config.json."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
    **{f"{name}_text": name for name in ("llama4", "qwen3_5", "qwen3_5_moe", "gemma3n", "gemma4")},
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
FOUR_TIMES = ("bloom", "falcon", "gpt2", "gpt_bigcode", "mpt")
FIXED = ("qwen2", "qwen2_moe", "mistral", "mixtral", "phi3")
OWN_OUTPUT = ("glm", "glm4", "glm4_moe", "seed_oss")
DENSE = (
    "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "phi3", "granite", "internlm2",
    "smollm3", "ernie4_5", "exaone4", "olmo3", "ministral3", "seed_oss", "hunyuan_v1_dense", "apertus",
    "qwen3_5", "lfm2",
)  # fmt: skip
