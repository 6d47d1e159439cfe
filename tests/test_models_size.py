"""What a name's size tells: bounds that hold for every model that is known, and shapes of models like it."""

import pytest

from cfglint.lang.values import Interval, Open, needs_of, parts
from cfglint.models import COLUMNS, SHAPE
from cfglint.models.registry import CATALOGUE, COUNTED, NAMED, catalogue, find
from cfglint.models.size import by_name, by_number, margins

ROWS = list(catalogue().values())
SIZED = [id_ for id_ in catalogue() if by_name(id_, ROWS) is not None]


def inside(value, bounds):
    low, high, _ = parts(bounds)
    return low <= value <= high


def test_most_models_have_a_size_in_their_name():
    assert len(SIZED) > 80


@pytest.mark.parametrize("id_", SIZED)
def test_every_known_model_lies_in_the_bounds_of_its_name(id_):
    row, told = catalogue()[id_], by_name(id_, ROWS)
    assert inside(row["params"], told["params"])
    if not row["experts"]:
        assert all(inside(row[column], told[column]) for column in SHAPE)
        assert isinstance(told["tied"], Open) or told["tied"] is row["tied"]


def test_a_folder_called_as_a_model_holds_it():
    exact = find("meta-llama/Llama-2-7b-hf")
    for name in ("Llama-2-7b-hf", "./Llama-2-7b-hf/", "/data/models/llama-2-7b-hf", "a/b/Llama-2-7b-hf"):
        assert all(find(name)[column] == exact[column] for column in COLUMNS), name
    for name in ("mine/Llama-2-7b-hf", "/data/Llama-2-7b-hf-sft", "mine/Meta-Llama-2-7b-chat"):
        assert all(find(name)[column] == exact[column] for column in COLUMNS), name
    for name in ("mine/Llama-2-7b-draft", "mine/draft-Llama-2-7b-hf"):  # may differ: the size alone is told
        assert find(name)["named"] is True, name


def test_a_copy_is_packed_as_its_name_says():
    plain = find("Qwen/Qwen2.5-7B-Instruct")
    for name, bits in {
        "Qwen/Qwen2.5-7B-Instruct-AWQ": 4,
        "unsloth/Qwen2.5-7B-Instruct-bnb-4bit": 4,
        "RedHatAI/Qwen2.5-7B-Instruct-FP8-dynamic": 8,
        "mlx-community/Qwen2.5-7B-Instruct-8bit": 8,
        "unsloth/Qwen2.5-7B": 0,
        "/models/Qwen2.5-7B-Instruct-GPTQ-Int4": 4,
    }.items():
        found = find(name)
        assert {column: found[column] for column in COLUMNS} == {
            **{column: plain[column] for column in COLUMNS},
            "quantized_bits": bits,
        }, name
        assert find.source_of(name) == CATALOGUE
    assert find("mirror/gpt-oss-20b")["quantized_bits"] == 4, "it is published in four bits"
    for name in ("unsloth/gpt-oss-20b-BF16", "axolotl-ai-co/gpt-oss-120b-dequantized"):
        assert find(name)["quantized_bits"] == 0
    assert find("mirror/glm-4-9b-0414")["family"] == "glm4", "as it is called; two share its trunk"
    assert find("mirror/glm-4-9b-chat")["family"] == "chatglm"
    scout = find("axolotl-quants/Llama-4-Scout-17B-16E-Linearized-bnb-nf4-bf16")
    assert scout["params"] == find("meta-llama/Llama-4-Scout-17B-16E")["params"]
    assert scout["quantized_bits"] == 4, "its experts are linear layers of their own, and no others"


# Names that tell what a token passes, or that there are experts, and not the whole.
MIXED = {
    "org/Llama-4-Scout-17B-16E-draft": None,
    "org/Llama-4-Maverick-17B-128E-draft": None,
    "org/foo-17b-128e": None,
    "org/foo-7B-8experts": None,
    "org/foo-moe-16b": None,
    "runs/foo-13b_pt-lr-2e-5": (13e9, 13e9),
    "org/foo-3_5B-MoE": None,
    "org/foo-13B-moe-A13B": None,
    "org/foo-A3B": None,
    "org/foo-E4B": None,
    "org/foo-7b-13b-merge": None,
    "org/FooMoE-1B-7B": (7e9, 1e9),
    "org/foo-moe-2b-16b": (16e9, 2e9),
    "org/foo-1.8B-A0.3B": (1.8e9, 0.3e9),
    "org/foo-1b-a400m": (1e9, 0.4e9),
    "org/foo-235BA22B": (235e9, 22e9),
    "org/foo-8x7B": (46.7e9, 12.9e9),
    "org/foo-7Bx2-moe": (12.9e9, 12.9e9),
}


@pytest.mark.parametrize("name", MIXED)
def test_a_name_with_experts_tells_the_whole_or_nothing(name):
    found, true = find(name), MIXED[name]
    if true is None:
        assert found is None
        return
    assert inside(true[0], found["params"])
    assert inside(true[1], found["active_params"])
    assert found["named"] is True


def test_a_name_without_a_size_tells_nothing():
    for name in ("org/gpt2", "org/model", "", "/", "foo-3bit", "checkpoint-500", "run7", "a-b", "1e-6"):
        assert find(name) is None, name
        assert find.source_of(name) == ""
    assert find("mine/Foo1.5-MoE-A2.7B") is None, "what one token passes is not the whole"
    assert find("x-99999B") is None


SIZES = {
    "org/foo-7B-sft": 7e9,
    "org/foo-7b": 7e9,
    "1.5B": 1.5e9,
    "500M": 0.5e9,
    "foo_0.5b_sft": 0.5e9,
    "org/bloomlike-7b1": 7.1e9,
    "org/stable-2-1_6b": 1.6e9,
    "llama7b": 7e9,
    "/ckpt/foo-7b/checkpoint-500": 7e9,
    "/ckpt/foo-7b/checkpoint-500/": 7e9,
    "C:\\models\\foo-13B": 13e9,
    "hdfs://store/foo-1.5B-grpo": 1.5e9,
    "foo-125m": 125e6,
    "foo-1.1B-step-50K-105b": 1.1e9,
    "foo-600m.bin": 600e6,
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name):
    found, size = find(name), SIZES[name]
    below, above = margins(size)
    assert found["params"].lo == pytest.approx(size * (1 - below))
    assert found["params"].hi == pytest.approx(size * (1 + above))
    assert found["active_params"].hi == found["params"].hi
    assert find.source_of(name) == NAMED
    assert set(found) == set(COLUMNS)
    dense = ("experts", "experts_per_token", "expert_ffn", "shared_experts", "dense_layers", "latent_dim")
    assert all(found[column] == 0 for column in dense)
    assert not any(needs_of(value) for value in found.values()), "an estimate wants nothing"


def test_experts():
    found = find("org/merged-8x7B-sft")
    assert inside(46.7e9, found["params"])
    assert inside(12.9e9, found["active_params"])
    assert inside(8, found["experts"])
    found = find("org/sft-30B-A3B")
    assert inside(30.5e9, found["params"])
    assert inside(3.35e9, found["active_params"])
    assert inside(128, found["experts"])
    assert isinstance(found["hidden"], Interval), "one model of that size does not settle the shape"


def test_bits_in_a_name():
    bits = {
        "foo-7B-AWQ": 4,
        "foo-7B-GPTQ-Int8": 8,
        "foo-7b-bnb-4bit": 4,
        "foo-7B-FP8": 8,
        "foo-7B-Int4": 4,
        "foo-7B": 0,
    }
    assert {name: find(name)["quantized_bits"] for name in bits} == bits


def test_a_number_of_parameters():
    found = find(7e9)
    assert (found["params"], found["active_params"], type(found["params"])) == (
        7_000_000_000,
        7_000_000_000,
        int,
    )
    assert find.source_of(7e9) == COUNTED
    assert found["hidden"].lo <= 4096 <= found["hidden"].hi
    assert by_number(0, ROWS) is None
    assert by_number(float("inf"), ROWS) is None
    huge, tiny = find(3e12), find(1e6)
    assert huge["layers"] == max(row["layers"] for row in ROWS if not row["experts"])
    assert tiny["hidden"] >= 1


def test_the_family_is_said_where_all_are_alike():
    row = {**catalogue()["meta-llama/llama-3.1-8b"]}
    assert by_name("x-8B", [row])["family"] == "llama"
    assert by_name("x-8B", [row, {**row, "family": "qwen2", "hidden": 3584}])["family"] == "llama"
    assert by_name("x-8B", [row, {**row, "family": "gemma"}])["family"] == "unknown"


def test_two_models_below_and_above_where_none_is_near():
    row = catalogue()["meta-llama/llama-3.1-8b"]
    rows = [{**row, "params": size * 10**9, "hidden": size} for size in (1, 2, 100, 200)]
    assert (by_name("x-20B", rows)["hidden"].lo, by_name("x-20B", rows)["hidden"].hi) == (2, 100)
    assert (by_name("x-100B", rows)["hidden"].lo, by_name("x-100B", rows)["hidden"].hi) == (2, 200)
