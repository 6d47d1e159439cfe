"""config.json files as transformers 5.23 writes them, with the counts of its classes on the meta device."""

import json
import tempfile
from pathlib import Path

import pytest

from cfglint.lang.values import parts
from cfglint.models import COLUMNS
from cfglint.models.hf_config import read
from cfglint.models.registry import catalogue

SMALL = {
    "hidden_size": 512,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 1024,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 256}
LATENT = {
    "num_hidden_layers": 4,
    "num_key_value_heads": 8,
    "moe_intermediate_size": 256,
    "n_shared_experts": 2,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 64,
    "qk_rope_head_dim": 16,
    "qk_nope_head_dim": 32,
    "v_head_dim": 32,
}
COUNTED = [
    ("llama", {}, 7_712_256),
    ("llama", {"attention_bias": True, "mlp_bias": True}, 7_723_776),
    ("mistral", {}, 7_712_256),
    ("smollm3", {}, 7_712_256),
    ("qwen2", {}, 7_714_560),
    ("qwen3", {"head_dim": 128}, 9_679_104),
    ("qwen3", {"head_dim": 128, "attention_bias": True}, 9_685_248),
    ("gemma", {"head_dim": 256}, 13_610_496),
    ("gemma2", {"head_dim": 256, "tie_word_embeddings": True}, 13_101_568),
    ("gemma3_text", {"head_dim": 64, "tie_word_embeddings": True}, 7_203_712),
    ("phi3", {}, 7_712_256),
    ("olmo2", {}, 7_714_176),
    ("cohere", {"tie_word_embeddings": True}, 7_198_720),
    ("starcoder2", {"tie_word_embeddings": True}, 5_639_424),
    ("glm", {"head_dim": 128, "attention_bias": True}, 9_682_944),
    ("mixtral", {"num_local_experts": 8, "num_experts_per_tok": 2}, 40_754_688),
    ("qwen3_moe", {**EXPERTS, "mlp_only_layers": [0]}, 10_866_560),
    ("qwen3_moe", {**EXPERTS, "num_hidden_layers": 4, "decoder_sparse_step": 2}, 13_095_936),
    ("deepseek_v2", {**LATENT, "q_lora_rank": None}, 16_016_128),
    ("deepseek_v2", {**LATENT, "q_lora_rank": 128}, 15_688_960),
    ("deepseek_v3", {**LATENT, "q_lora_rank": 128}, 15_688_960),
]


def figures(config):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config.json")
        path.write_text(json.dumps(config))
        return read(str(path))


@pytest.mark.parametrize(("model_type", "more", "counted"), COUNTED)
def test_what_transformers_counts(model_type, more, counted):
    assert figures({**SMALL, "model_type": model_type, **more})["params"] == counted


def test_a_variant_without_a_form_is_an_estimate():
    falcon = {"model_type": "falcon", "hidden_size": 512, "num_hidden_layers": 3, "num_attention_heads": 8}
    falcon |= {"vocab_size": 1000}
    assert figures(falcon)["params"] == 8_577_024
    old = figures({**falcon, "multi_query": False, "bias": True, "alibi": True, "parallel_attn": False})
    low, high, needs = parts(old["params"])
    assert low < 9_970_176 < high
    assert not needs


# Fields of config.json by the columns that they are read into, for families without fields of their own.
FIELDS = {
    "hidden": "hidden_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "ffn": "intermediate_size",
    "vocab": "vocab_size",
    "tied": "tie_word_embeddings",
    "experts": "n_routed_experts",
    "experts_per_token": "num_experts_per_tok",
    "expert_ffn": "moe_intermediate_size",
    "shared_experts": "n_shared_experts",
    "dense_layers": "first_k_dense_replace",
    "q_rank": "q_lora_rank",
    "rope_dim": "qk_rope_head_dim",
    "nope_dim": "qk_nope_head_dim",
    "value_dim": "v_head_dim",
    "attention_bias": "attention_bias",
}
PLAIN = {"llama", "qwen2", "qwen3", "qwen3_moe", "mixtral", "gemma", "gemma2", "gemma3", "phi3", "olmo2"}
PLAIN |= {"deepseek_v2", "deepseek_v3", "glm4", "internlm2"}
ROWS = {id(row): (name, row) for name, row in catalogue().items()}.values()


@pytest.mark.parametrize(("name", "row"), [pair for pair in ROWS if pair[1]["family"] in PLAIN])
def test_a_config_gives_the_row_of_the_catalogue(tmp_path, name, row):
    config = {field: row[column] for column, field in FIELDS.items() if row.get(column) not in (None, 0)}
    config |= {"model_type": row["family"], "tie_word_embeddings": row["tied"]}
    if row["latent_dim"]:
        config["kv_lora_rank"] = row["latent_dim"] - row["rope_dim"]
    if row["quantized_bits"]:
        config["quantization_config"] = {"quant_method": "gptq", "bits": row["quantized_bits"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = read(str(tmp_path))
    beside = row.get("other_params", 0)  # a vision tower, which this config does not have
    assert found["params"] == row["params"] - beside
    assert found["active_params"] == row["active_params"] - beside
    same = [column for column in COLUMNS if not column.endswith("params")]
    assert {column: found[column] for column in same} == {column: row[column] for column in same}
