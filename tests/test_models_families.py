"""config.json files as transformers 5.23 writes them, with the counts of its classes on the meta device."""

import json
import tempfile
from pathlib import Path

import pytest

from cfglint.lang.values import parts
from cfglint.models import COLUMNS, VISION
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
# The same for hybrids and other mixtures, with four layers.
FOUR = {**SMALL, "num_hidden_layers": 4}
LINEAR = {"linear_num_key_heads": 4, "linear_num_value_heads": 8, "linear_conv_kernel_dim": 4, "head_dim": 64}
LINEAR |= {"linear_key_head_dim": 32, "linear_value_head_dim": 32}
SSM = {"mamba_n_heads": 16, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 32, "mamba_d_conv": 4}
BLOCKS = {"mamba_num_heads": 16, "mamba_head_dim": 64, "n_groups": 2, "ssm_state_size": 32, "conv_kernel": 4}
ROUTED = {"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 256}
ROUTED |= {"n_shared_experts": 1, "first_k_dense_replace": 1}
LOCAL = {"num_local_experts": 8, "num_experts_per_tok": 2}
SHORT = {"layer_types": ["conv", "conv", "full_attention", "conv"], "conv_L_cache": 3}
ONE = {"layer_types": ["mamba", "attention", "mamba", "mamba"], "shared_intermediate_size": 1024}
TURNS = {"attn_layer_period": 4, "attn_layer_offset": 2, "expert_layer_period": 2, "num_experts": 8}
STATE = {"mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2}
GIVEN = {"moe_num_experts": 8, "moe_k": 2, "moe_intermediate_size": 256, "moe_num_shared_experts": 2}
HYBRIDS = [
    ("qwen3_next", {**LINEAR, **EXPERTS, "shared_expert_intermediate_size": 512}, 19_297_040),
    ("qwen3_5_text", LINEAR, 9_841_424),
    ("qwen3_5_moe_text", {**LINEAR, **EXPERTS, "shared_expert_intermediate_size": 256}, 17_724_176),
    ("lfm2", {**SHORT, "block_auto_adjust_ff_dim": False}, 11_125_888),
    ("lfm2", {"full_attn_idxs": [1, 3], "conv_L_cache": 3, "intermediate_size": 1536}, 10_731_264),
    ("lfm2_moe", {**SHORT, **EXPERTS, "num_dense_layers": 2}, 14_279_808),
    ("apertus", {}, 7_844_872),
    ("nemotron_h", {**BLOCKS, "hybrid_override_pattern": "M-M*", "head_dim": 64}, 6_037_344),
    (
        "nemotron_h",
        {**BLOCKS, **ROUTED, "hybrid_override_pattern": "ME*E", "moe_shared_expert_intermediate_size": 512}
        | {"head_dim": 64, "first_k_dense_replace": 0},
        8_586_416,
    ),
    ("falcon_h1", {**SSM, "mamba_d_ssm": 1024, "head_dim": 64}, 16_418_752),
    ("bamba", {**SSM, "attn_layer_indices": [1]}, 12_836_432),
    ("granitemoehybrid", {**SSM, **ONE, **LOCAL, "intermediate_size": 512}, 38_018_640),
    ("granitemoehybrid", {**SSM, **ONE, "num_local_experts": 0}, 12_836_432),
    ("jamba", {**TURNS, **STATE, "num_experts_per_tok": 2}, 35_088_064),
    ("mamba", {"state_size": 16, "conv_kernel": 4, "intermediate_size": 1024}, 7_805_440),
    (
        "mamba2",
        {"state_size": 32, "conv_kernel": 4, "num_heads": 16, "head_dim": 64, "n_groups": 2},
        7_640_256,
    ),
    (
        "llama4_text",
        {"num_local_experts": 8, "num_experts_per_tok": 1, "intermediate_size": 256}
        | {"intermediate_size_mlp": 1024, "interleave_moe_layer_step": 2, "head_dim": 64},
        13_881_856,
    ),
    ("glm4_moe", {**ROUTED, "attention_bias": True, "use_qk_norm": True, "head_dim": 64}, 15_855_616),
    ("glm4_moe", {**ROUTED, "attention_bias": True, "use_qk_norm": False, "head_dim": 64}, 15_855_104),
    ("glm4_moe_lite", {**LATENT, **ROUTED, "q_lora_rank": 128}, 14_509_312),
    ("seed_oss", {"attention_bias": True, "attention_out_bias": False, "head_dim": 64}, 9_944_576),
    ("minimax_m2", {**LOCAL, "intermediate_size": 256, "head_dim": 64}, 16_251_904),
    ("ernie4_5_moe", {**GIVEN, "moe_layer_start_index": 1}, 17_031_704),
    ("dots1", {**ROUTED, "head_dim": 64}, 15_852_544),
    ("ministral3", {"head_dim": 64}, 9_941_504),
    ("phimoe", {**LOCAL, "attention_bias": True, "lm_head_bias": True}, 54_008_808),
    ("hunyuan_v1_dense", {"head_dim": 64}, 9_942_016),
    ("hunyuan_v1_moe", {"head_dim": 64, "num_experts": 8, "moe_topk": 2}, 60_290_048),
]


def figures(config):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config.json")
        path.write_text(json.dumps(config))
        return read(str(path))


@pytest.mark.parametrize(("model_type", "more", "counted"), COUNTED)
def test_what_transformers_counts(model_type, more, counted):
    assert figures({**SMALL, "model_type": model_type, **more})["params"] == counted


@pytest.mark.parametrize(("model_type", "more", "counted"), HYBRIDS)
def test_what_transformers_counts_of_hybrids(model_type, more, counted):
    assert figures({**FOUR, "model_type": model_type, **more})["params"] == counted


def test_blocks_in_a_list_and_experts_between_two_projections():
    config = {**FOUR, **BLOCKS, **ROUTED, "model_type": "nemotron_h", "head_dim": 64, "moe_latent_size": 128}
    config |= {"layers_block_type": ["mamba", "moe", "attention", "moe"], "first_k_dense_replace": 0}
    config |= {"moe_shared_expert_intermediate_size": 512}
    del config["num_hidden_layers"]
    found = figures(config)
    assert found["params"] == 5_702_832, "as transformers counts"
    assert found["params"] - found["active_params"] == 2 * (8 - 2) * 2 * 128 * 256
    assert (found["layers"], found["attention_layers"], found["mlp_layers"]) == (4, 1, 2)


def test_layers_of_hybrids_by_their_kinds():
    kinds = ("attention_layers", "mlp_layers", "ssm_layers", "linear_layers")
    told = {
        model_type + str(index): tuple(
            figures({**FOUR, "model_type": model_type, **more})[kind] for kind in kinds
        )
        for index, (model_type, more, _) in enumerate(HYBRIDS)
    }
    assert told["qwen3_next0"] == (1, 4, 0, 3)
    assert told["lfm24"] == (2, 4, 0, 2)
    assert told["nemotron_h7"] == (1, 1, 2, 0)
    assert told["nemotron_h8"] == (1, 2, 1, 0)
    assert told["falcon_h19"] == (4, 4, 4, 0)
    assert told["jamba13"] == (1, 4, 3, 0)
    assert told["mamba14"] == (0, 0, 4, 0)
    assert told["ministral324"] == (4, 4, 0, 0)


WINDOWS = [
    ("gemma2", {"sliding_window": 4096}, (4096, 2)),
    ("gemma3_text", {"sliding_window": 512, "num_hidden_layers": 26}, (512, 22)),
    ("gemma3_text", {"sliding_window": 512, "sliding_window_pattern": 2}, (512, 2)),
    (
        "gpt_oss",
        {**LOCAL, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 2},
        (128, 2),
    ),
    ("mistral", {"sliding_window": 4096}, (4096, 4)),
    ("mistral", {"sliding_window": None}, (0, 0)),
    ("qwen2", {"sliding_window": 4096, "use_sliding_window": False}, (0, 0)),
    ("qwen2", {"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 3}, (4096, 1)),
    ("olmo3", {"sliding_window": 4096}, (4096, 3)),
    ("exaone4", {"sliding_window": 4096, "sliding_window_pattern": "LLLG"}, (4096, 3)),
    ("llama", {"sliding_window": 4096}, (0, 0)),
]


@pytest.mark.parametrize(("model_type", "more", "told"), WINDOWS)
def test_sliding_windows(model_type, more, told):
    found = figures({**FOUR, "model_type": model_type, **more})
    assert (found["window"], found["window_layers"]) == told


def test_a_vision_tower_has_its_own_columns():
    tower = {"depth": 27, "hidden_size": 1152, "num_heads": 16, "intermediate_size": 4304, "patch_size": 16}
    config = {"model_type": "qwen3_vl", "vision_config": {**tower, "spatial_merge_size": 2}}
    found = figures({**config, "text_config": {**SMALL, "model_type": "qwen3_vl_text"}})
    assert [found[column] for column in VISION[:-1]] == [1152, 27, 16, 4304, 16, 2]
    plain = figures({**SMALL, "model_type": "qwen3"})
    assert found["params"].lo == plain["params"]
    assert found["params"].hi == plain["params"] + found["vision_params"].hi
    assert [plain[column] for column in VISION] == [0] * len(VISION)
    shuffled = {"model_type": "internvl", "downsample_ratio": 0.5, "vision_config": {"hidden_size": 1024}}
    assert figures({**shuffled, "text_config": {**SMALL, "model_type": "qwen2"}})["vision_merge"] == 2


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
    left = (*VISION, "window", "window_layers")
    same = [column for column in COLUMNS if not column.endswith("params") and column not in left]
    assert {column: found[column] for column in same} == {column: row[column] for column in same}
