"""Reading config.json: all ways of saying a shape, counts that are public, and what is wrong in a line."""

import json
import tempfile
from pathlib import Path

import pytest

from cfglint.errors import CfglintError
from cfglint.lang.values import Interval, Open, needs_of
from cfglint.models import COLUMNS
from cfglint.models.hf_config import ModelConfigError, read
from cfglint.models.registry import by_trunk, catalogue

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
QWEN = {
    "model_type": "qwen2",
    "hidden_size": 896,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "intermediate_size": 4864,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
}


def figures(config):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config.json")
        path.write_text(json.dumps(config))
        return read(str(path))


def written(folder, config, name="config.json"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(config))
    return folder


def test_a_file_or_its_folder(tmp_path):
    written(tmp_path, LLAMA)
    found = read(str(tmp_path))
    assert found == read(str(tmp_path / "config.json"))
    assert set(found) == set(COLUMNS)
    known = catalogue()["meta-llama/llama-3.1-8b"]
    assert {name: known[name] for name in COLUMNS} == found


# Numbers that the models' pages tell.
CONFIGS = {
    "qwen2": (QWEN, 494_032_768, {"tied": True, "head_dim": 64, "quantized_bits": 0}),
    "qwen3": (
        {
            "model_type": "qwen3",
            "hidden_size": 1024,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "intermediate_size": 3072,
            "vocab_size": 151936,
            "tie_word_embeddings": True,
            "attention_bias": False,
        },
        596_049_920,
        {"head_dim": 128},
    ),
    "gpt2": (
        {
            "model_type": "gpt2",
            "n_embd": 768,
            "n_layer": 12,
            "n_head": 12,
            "n_positions": 1024,
            "vocab_size": 50257,
        },
        124_439_808,
        {"ffn": 3072, "tied": True, "kv_heads": 12},
    ),
    "falcon-7b": (
        {
            "model_type": "falcon",
            "hidden_size": 4544,
            "num_hidden_layers": 32,
            "num_attention_heads": 71,
            "multi_query": True,
            "new_decoder_architecture": False,
            "vocab_size": 65024,
        },
        6_921_720_704,
        {"kv_heads": 1, "ffn": 4 * 4544},
    ),
    "bloom-560m": (
        {
            "model_type": "bloom",
            "n_embed": 1024,
            "hidden_size": 1024,
            "n_layer": 24,
            "num_attention_heads": 16,
            "vocab_size": 250880,
        },
        559_214_592,
        {"tied": True},
    ),
    "opt-125m": (
        {
            "model_type": "opt",
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "ffn_dim": 3072,
            "vocab_size": 50272,
            "max_position_embeddings": 2048,
            "word_embed_proj_dim": 768,
        },
        125_239_296,
        {},
    ),
    "pythia-160m": (
        {
            "model_type": "gpt_neox",
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
            "vocab_size": 50304,
            "tie_word_embeddings": False,
        },
        162_322_944,
        {"tied": False},
    ),
    "mpt-7b": (
        {
            "model_type": "mpt",
            "d_model": 4096,
            "n_layers": 32,
            "n_heads": 32,
            "expansion_ratio": 4,
            "vocab_size": 50432,
        },
        6_649_286_656,
        {"ffn": 16384},
    ),
    "chatglm3-6b": (
        {
            "model_type": "chatglm",
            "hidden_size": 4096,
            "num_layers": 28,
            "num_attention_heads": 32,
            "multi_query_group_num": 2,
            "kv_channels": 128,
            "ffn_hidden_size": 13696,
            "padded_vocab_size": 65024,
            "add_qkv_bias": True,
            "tie_word_embeddings": False,
        },
        6_243_584_000,
        {"kv_heads": 2},
    ),
    "baichuan2-7b": (
        {
            "model_type": "baichuan",
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "intermediate_size": 11008,
            "vocab_size": 125696,
            "tie_word_embeddings": False,
        },
        7_505_973_248,
        {},
    ),
    "qwen-7b": (
        {
            "model_type": "qwen",
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "kv_channels": 128,
            "intermediate_size": 22016,
            "vocab_size": 151936,
            "tie_word_embeddings": False,
        },
        7_721_324_544,
        {"ffn": 11008},
    ),
    "mixtral-8x7b": (
        {
            "model_type": "mixtral",
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "intermediate_size": 14336,
            "num_local_experts": 8,
            "num_experts_per_tok": 2,
            "vocab_size": 32000,
            "tie_word_embeddings": False,
        },
        46_702_792_704,
        {"experts": 8, "experts_per_token": 2, "expert_ffn": 14336, "active_params": 12_879_925_248},
    ),
    "deepseek-v2-lite": (
        {
            "model_type": "deepseek_v2",
            "hidden_size": 2048,
            "num_hidden_layers": 27,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "intermediate_size": 10944,
            "moe_intermediate_size": 1408,
            "n_routed_experts": 64,
            "n_shared_experts": 2,
            "num_experts_per_tok": 6,
            "first_k_dense_replace": 1,
            "kv_lora_rank": 512,
            "q_lora_rank": None,
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "vocab_size": 102400,
            "tie_word_embeddings": False,
        },
        15_706_484_224,
        {"experts": 64, "shared_experts": 2, "dense_layers": 1, "latent_dim": 576, "expert_ffn": 1408},
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_configs_are_counted_exactly(name):
    config, params, more = CONFIGS[name]
    found = figures(config)
    assert found["params"] == params
    assert {key: found[key] for key in more} == more
    assert found["family"] == config["model_type"]
    assert type(found["tied"]) is bool


def test_the_large_deepseek_is_as_large_as_it_is():
    lite = CONFIGS["deepseek-v2-lite"][0]
    large = {
        **lite,
        "model_type": "deepseek_v3",
        "hidden_size": 7168,
        "num_hidden_layers": 61,
        "num_attention_heads": 128,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "q_lora_rank": 1536,
        "vocab_size": 129280,
        "quantization_config": {"quant_method": "fp8", "fmt": "e4m3"},
    }
    found = figures(large)
    assert found["params"] == pytest.approx(671.0e9, rel=1e-3)
    assert found["active_params"] == pytest.approx(37.5e9, rel=0.02)
    assert (found["latent_dim"], found["quantized_bits"]) == (576, 8)


def test_the_text_part_of_a_model_that_sees():
    towers = {"vision_config": {"hidden_size": 1152, "num_hidden_layers": 27, "intermediate_size": 4304}}
    text = {
        "hidden_size": 2560,
        "num_hidden_layers": 34,
        "intermediate_size": 10240,
        "model_type": "gemma3_text",
    }
    found = figures({"model_type": "gemma3", "text_config": text, **towers})
    assert (found["family"], found["heads"], found["kv_heads"], found["head_dim"]) == ("gemma3", 8, 4, 256)
    assert (found["tied"], found["layers"]) == (True, 34)
    assert found["params"].lo < 4_300_079_472 < found["params"].hi, "what gemma-3-4b-it has in all"
    assert found["params"].lo >= 3.88e9, "the text part is there in any case"


@pytest.mark.parametrize(
    ("said", "bits"),
    [
        ({"quant_method": "gptq", "bits": 4}, 4),
        ({"quant_method": "gptq", "bits": 8}, 8),
        ({"quant_method": "awq", "bits": 4}, 4),
        ({"quant_method": "awq", "w_bit": 4}, 4),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False}, 4),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8),
        ({"quant_method": "fp8"}, 8),
        ({"quant_method": "fbgemm_fp8"}, 8),
        ({"quant_method": "mxfp4"}, 4),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 8}}}}, 8),
        (None, 0),
    ],
)
def test_bits_of_quantized_checkpoints(said, bits):
    assert figures({**LLAMA, "quantization_config": said})["quantized_bits"] == bits


def test_an_unknown_quantization_is_some_quantization():
    found = figures({**LLAMA, "quantization_config": {"quant_method": "odd"}})["quantized_bits"]
    assert (found.lo, found.hi) == (2, 8)


UNKNOWN = {**LLAMA, "model_type": "brand_new"}


def test_an_unknown_architecture_is_an_estimate():
    found = figures(UNKNOWN)
    count = 8_030_261_248
    assert found["family"] == "unknown"
    assert found["params"].lo == pytest.approx(0.9 * count)
    assert found["params"].hi == pytest.approx(1.1 * count)
    assert not needs_of(found["params"]), "nothing is missing: it is an estimate"
    del UNKNOWN["tie_word_embeddings"]
    found = figures(UNKNOWN)
    assert isinstance(found["tied"], Open)
    assert found["params"].lo < 0.9 * count < found["params"].hi


@pytest.mark.parametrize(("dtype", "size"), [("bfloat16", 2), ("float32", 4), (None, 2)])
def test_the_index_of_the_weights_tells_the_size(tmp_path, dtype, size):
    written(tmp_path, {**LLAMA, "model_type": "brand_new", "torch_dtype": dtype})
    index = {"metadata": {"total_size": 8_000_000_000 * size}, "weight_map": {"lm_head.weight": "a"}}
    written(tmp_path, index, "model.safetensors.index.json")
    assert read(str(tmp_path))["params"] == 8_000_000_000


def test_a_head_that_is_stored_twice_counts_once(tmp_path):
    written(tmp_path, {**LLAMA, "model_type": "brand_new", "tie_word_embeddings": True})
    index = {"metadata": {"total_size": 16_000_000_000}, "weight_map": {"lm_head.weight": "a"}}
    written(tmp_path, index, "model.safetensors.index.json")
    assert read(str(tmp_path))["params"] == 8_000_000_000 - 128256 * 4096


@pytest.mark.parametrize("index", ["{", "[]", '{"metadata": {"total_size": "much"}}', '{"metadata": null}'])
def test_a_broken_index_is_passed_by(tmp_path, index):
    written(tmp_path, {**LLAMA, "model_type": "brand_new"})
    (tmp_path / "model.safetensors.index.json").write_text(index)
    assert isinstance(read(str(tmp_path))["params"], Interval)


BROKEN = {
    "{": "config.json:1:2: not JSON",
    "[1]": "an object",
    "\x00": "not JSON",
    "{}": "missing hidden_size, num_hidden_layers, num_attention_heads, intermediate_size, vocab_size; add",
    json.dumps({**LLAMA, "hidden_size": "wide"}): "hidden_size is a whole number, not a string",
    json.dumps({**LLAMA, "num_hidden_layers": -1}): "num_hidden_layers is a whole number",
    json.dumps({**LLAMA, "num_hidden_layers": 0}): "missing num_hidden_layers",
    json.dumps({**LLAMA, "vocab_size": 1.5}): "vocab_size is a whole number",
    json.dumps({**LLAMA, "vocab_size": True}): "vocab_size is a whole number",
    "[" * 100_000: "not JSON",
    '{"hidden_size": ' + "7" * 5000 + "}": "more digits than can be read; download",
    json.dumps({**LLAMA, "hidden_size": 10**400}): "hidden_size is a whole number",
    json.dumps({**LLAMA, "hidden_size": 1e300}): "hidden_size is a whole number",
    '{"a": ' * 900 + "1" + "}" * 900: "missing hidden_size",
    json.dumps({**LLAMA, "hidden_size": 0})[:-1] + ', "head_dim": ' + "[" * 900 + "]" * 900 + "}": "; ",
}


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: text[:20])
def test_what_is_wrong_is_said_in_a_line(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ModelConfigError) as caught:
        read(str(tmp_path))
    said = str(caught.value)
    assert BROKEN[text] in said
    assert said.startswith(str(tmp_path / "config.json"))
    assert "\n" not in said
    assert "; " in said, "it says what to do"
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, CfglintError)


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192}
LENGTHS = {
    "as stated": ({"max_position_embeddings": 8192}, 8192, 8192),
    "the least of several": ({"max_position_embeddings": 8192, "seq_length": 4096}, 8192, 4096),
    "another name": ({"n_positions": 1024}, None, 1024),
    "a longer one beside": ({"max_position_embeddings": 8192, "model_max_length": 131072}, 8192, 131072),
    "linear scaling": (
        {"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 4.0}},
        4096,
        16384,
    ),
    "Llama 3's own, stated in full": (
        {"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
        131072,
        131072,
    ),
    "YaRN, not yet in the number": ({"max_position_embeddings": 8192, "rope_scaling": YARN}, 8192, 32768),
    "YaRN, in the number": ({"max_position_embeddings": 32768, "rope_parameters": YARN}, 32768, 32768),
    "one for each kind of layer": (
        {
            "max_position_embeddings": 8192,
            "rope_parameters": {"full": YARN, "window": {"rope_type": "default"}},
        },
        8192,
        32768,
    ),
    "null": ({"max_position_embeddings": 8192, "rope_scaling": None}, 8192, 8192),
    "nothing": ({}, None, None),
    "no number": ({"model_max_length": "long", "rope_scaling": "yarn"}, None, None),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_how_long_a_sequence_may_be(name):
    config, positions, context = LENGTHS[name]
    found = figures({**LLAMA, **config})
    assert found.get("positions") == positions
    assert found.get("context") == context


def test_the_catalogue_tells_the_length_of_a_checkpoint_and_not_of_its_kin():
    assert catalogue()["qwen/qwen2.5-7b-instruct"]["context"] == 32768
    assert "context" not in catalogue()["qwen/qwen2.5-7b"]
    assert not any("positions" in row for row in catalogue().values())
    assert not any("context" in row for row in by_trunk().values())


def test_nothing_there(tmp_path):
    with pytest.raises(ModelConfigError, match=r"no such file or folder; name a config\.json"):
        read(str(tmp_path / "none"))
    with pytest.raises(ModelConfigError, match=r"no config\.json is in this folder; name"):
        read(str(tmp_path))
    written(tmp_path, {"base_model_name_or_path": "org/base"}, "adapter_config.json")
    with pytest.raises(ModelConfigError, match=r"an adapter; name the config\.json of the base model"):
        read(str(tmp_path))
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelConfigError, match="not JSON text; download"):
        read(str(tmp_path / "bytes.json"))


@pytest.mark.parametrize("number", ["1" + "0" * 400, "-1" + "0" * 400, "1e999", "-1e999", "1e300", "NaN"])
def test_figures_that_no_model_has_are_unknown(tmp_path, number):
    odd = (
        *("max_target_positions", "model_max_length", "kv_lora_rank", "decoder_sparse_step"),
        *("vision_config", "quantization_config", "rope_scaling", "yarn", "expansion_ratio", "model_type"),
    )
    parts = {
        "vision_config": {"hidden_size": "N", "num_hidden_layers": "N", "intermediate_size": "N"},
        "quantization_config": {"bits": "N"},
        "rope_scaling": {"rope_type": "dynamic", "factor": "N"},
        "yarn": {"rope_type": "yarn", "factor": "N", "original_max_position_embeddings": "N"},
    }
    for family in ("llama", "mpt", "deepseek_v3", "brand_new"):
        for key in odd:
            config = {**LLAMA, "max_position_embeddings": 8192, "model_type": family}
            config["rope_scaling" if key == "yarn" else key] = parts.get(key, "N")
            (tmp_path / "config.json").write_text(json.dumps(config).replace('"N"', number))
            found = read(str(tmp_path))
            assert all(abs(v) < 2**64 for v in found.values() if type(v) is int), (family, key)


def test_an_index_that_is_none_is_passed_by(tmp_path):
    written(tmp_path, {**LLAMA, "model_type": "brand_new", "tie_word_embeddings": True})
    written(tmp_path, {"metadata": {"total_size": 2**34}, "weight_map": 7}, "model.safetensors.index.json")
    assert read(str(tmp_path))["params"] == 2**33


def test_odd_values_never_end_in_another_error():
    keys = (
        "quantization_config",
        "text_config",
        "vision_config",
        "mlp_only_layers",
        "attn_config",
        "model_type",
    )
    keys += (
        "kv_lora_rank",
        "tie_word_embeddings",
        "num_local_experts",
        "n_shared_experts",
        "num_key_value_heads",
    )
    for key in keys:
        for value in (None, 0, 1, 7, -1, 1.5, "x", [], [3], {}, {"a": 1}, True, {"config_groups": {"x": 1}}):
            for family in ("llama", "falcon", "mpt", "opt", "gpt2", "brand_new", "deepseek_v3"):
                try:
                    found = figures({**LLAMA, "model_type": family, key: value})
                except ModelConfigError:
                    continue
                assert set(found) == set(COLUMNS)
