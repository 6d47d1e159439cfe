"""What is known of models: their architectures, by Hugging Face id; here the columns that rules read."""

from __future__ import annotations

SHAPE = ("hidden", "layers", "heads", "kv_heads", "head_dim", "ffn", "vocab")
EXPERTS = ("experts", "experts_per_token", "expert_ffn", "shared_experts", "dense_layers")
NOT_DENSE = (*EXPERTS, "latent_dim", "quantized_bits")
COLUMNS = ("family", "params", "active_params", *SHAPE, "tied", *NOT_DENSE)
