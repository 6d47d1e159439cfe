"""What is known of models: their architectures, by Hugging Face id; here the columns that rules read."""

from __future__ import annotations

SHAPE = ("hidden", "layers", "heads", "kv_heads", "head_dim", "ffn", "vocab")
EXPERTS = ("experts", "experts_per_token", "expert_ffn", "shared_experts", "dense_layers")
STATE = (
    *("ssm_layers", "ssm_heads", "ssm_head_dim", "ssm_state", "ssm_groups", "ssm_conv", "ssm_inner"),
    *("linear_layers", "linear_key_heads", "linear_value_heads", "linear_key_dim", "linear_value_dim"),
)
VISION = (
    *("vision_hidden", "vision_layers", "vision_heads", "vision_ffn", "vision_patch", "vision_merge"),
    "vision_params",
)
NOT_DENSE = (*EXPERTS, "latent_dim", "quantized_bits", *STATE, "window", "window_layers", *VISION)
"""0 where a row says nothing of them."""
PARTS = ("attention_layers", "mlp_layers")
"""As many as there are layers, where a row says nothing of them."""
COLUMNS = ("family", "params", "active_params", *SHAPE, "tied", *NOT_DENSE, *PARTS, "named")
