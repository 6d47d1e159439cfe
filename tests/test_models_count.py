"""Counting parameters: what transformers counts, what the catalogue says, and laws that hold of any shape."""

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import cfglint.models
from cfglint.models import COLUMNS
from cfglint.models.registry import catalogue
from cfglint.models.size import ALONE, FORMS, active_params, params

FILES = [Path(cfglint.models.__file__).parent / name for name in ("models.yaml", "configs.yaml")]
TEXT = FILES[0].read_text("utf-8")
ROWS = [row for file in FILES for row in yaml.safe_load(file.read_text("utf-8"))["models"]]
NEEDED = {"hidden", "layers", "heads", "kv_heads", "head_dim", "ffn", "vocab", "tied", "params"}
SWITCHES = {"tied", "attention_bias", "output_bias", "mlp_bias", "qk_norm"}


def name_of(row):
    return (row.get("ids") or [row["id"]])[0]


def shape(hidden, layers, heads, kv_heads, ffn, vocab, *, tied=False, **more):
    given = {"hidden": hidden, "layers": layers, "heads": heads, "kv_heads": kv_heads, "ffn": ffn}
    return {**given, "head_dim": hidden // heads, "vocab": vocab, "tied": tied, **more}


LATENT = {"latent_dim": 576, "rope_dim": 64, "nope_dim": 128, "value_dim": 128}
V3 = {"experts": 256, "experts_per_token": 8, "expert_ffn": 2048, "shared_experts": 1, "dense_layers": 3}
LITE = {"experts": 64, "experts_per_token": 6, "expert_ffn": 1408, "shared_experts": 2, "dense_layers": 1}
SMALL = shape(512, 3, 8, 2, 1024, 1000)
# sum(p.numel()) of the family's class on the meta device, transformers 5.23.0.
COUNTED = [
    ("deepseek_v3", shape(7168, 61, 128, 128, 18432, 129280, **LATENT, **V3, q_rank=1536), 671_026_404_352),
    ("deepseek_v2", shape(2048, 27, 16, 16, 10944, 102400, **LATENT, **LITE, q_rank=0), 15_706_484_224),
    (
        "gpt_oss",
        shape(2880, 36, 64, 8, 2880, 201088, experts=128, experts_per_token=4, expert_ffn=2880)
        | {"head_dim": 64},
        116_829_156_672,
    ),
    (
        "qwen2_moe",
        shape(
            2048, 24, 16, 16, 5632, 151936, experts=60, experts_per_token=4, expert_ffn=1408, shared_experts=4
        ),
        14_315_784_192,
    ),
    ("glm4", shape(4096, 40, 32, 2, 13696, 151552), 9_400_094_720),
    ("glm4", shape(4096, 40, 32, 2, 13696, 151552, attention_bias=True), 9_400_279_040),
    ("glm", shape(4096, 40, 32, 2, 13696, 151552), 9_399_951_360),
    ("granite", shape(4096, 32, 32, 32, 11008, 32000), 6_738_415_616),
    ("mistral", SMALL, 7_712_256),
    ("smollm3", SMALL, 7_712_256),
    ("exaone4", SMALL, 7_712_640),
    ("olmo3", SMALL, 7_714_176),
    ("cohere2", SMALL, 7_710_720),
    ("arcee", SMALL, 6_139_392),
    ("nemotron", SMALL, 6_142_976),
    ("ernie4_5", SMALL | {"head_dim": 128}, 9_678_336),
    ("granitemoe", SMALL | {"experts": 8, "experts_per_token": 2, "expert_ffn": 1024}, 40_754_688),
    ("olmoe", SMALL | {"experts": 64, "experts_per_token": 8, "expert_ffn": 1024}, 305_083_776),
    ("cohere", shape(8192, 40, 64, 64, 22528, 256000, tied=True), 34_980_831_232),
    ("starcoder2", shape(3072, 30, 24, 2, 12288, 49152, tied=True), 3_030_371_328),
    ("falcon", shape(4544, 32, 71, 1, 18176, 65024, tied=True), 6_921_720_704),
    ("falcon", shape(8192, 60, 128, 8, 32768, 65024, tied=True), 41_303_293_952),
    ("mpt", shape(4096, 32, 32, 32, 16384, 50432, tied=True), 6_649_286_656),
    ("bloom", shape(4096, 30, 32, 32, 16384, 250880, tied=True), 7_069_016_064),
    ("opt", shape(5120, 40, 40, 40, 20480, 50272, tied=True, max_positions=2048), 12_853_473_280),
    ("opt", shape(1024, 24, 16, 16, 4096, 50272, tied=True, max_positions=2048, embed_dim=512), 331_196_416),
    ("gpt_neox", shape(6144, 44, 64, 64, 24576, 50432), 20_554_567_680),
]


@pytest.mark.parametrize(("family", "given_shape", "counted"), COUNTED)
def test_what_transformers_counts(family, given_shape, counted):
    assert params(family, given_shape) == counted


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_the_catalogue_counts_as_the_closed_form(row):
    family, figures = row["family"], row["figures"]
    assert family in FORMS or (family in ALONE and row["counted"] == "transformers")
    assert params(family, figures) == figures["params"]
    assert active_params(family, figures) == figures.get("active_params", figures["params"])


def test_rows_are_whole():
    seen = set()
    for row in ROWS:
        names = row.get("ids") or [row["id"]]
        assert ("id" in row) is not ("ids" in row), names
        for name in names:
            assert name.lower() not in seen, f"{name} stands twice"
            seen.add(name.lower())
        figures = row["figures"]
        assert set(figures) >= NEEDED, names
        for column, value in figures.items():
            assert type(value) is (bool if column in SWITCHES else int), (names, column)
        assert ("active_params" in figures) is ("experts" in figures), names
        assert figures["heads"] % figures["kv_heads"] == 0, names
        assert row["counted"] in ("public", "computed", "transformers", "form"), names
        assert row["source"], names
    assert set(catalogue()) == seen
    assert len(seen) > 300


def test_a_row_says_nothing_else_than_the_page_header_explains():
    head = TEXT[: TEXT.index("models:")]
    facts = {"experts", "experts_per_token", "expert_ffn", "shared_experts", "dense_layers", "latent_dim"}
    facts |= NEEDED | {"active_params", "max_positions", *COLUMNS}
    for row in ROWS:
        for column in set(row["figures"]) - facts:
            assert re.search(rf"\b{column}\b", head), column


def test_quantized_checkpoints_have_their_models_parameters():
    rows = catalogue()
    for name in ("qwen-7b-chat", "qwen-14b-chat", "qwen-72b-chat", "qwen-1_8b-chat"):
        plain, packed = rows[f"qwen/{name}"], rows[f"qwen/{name}-int4"]
        assert (plain["quantized_bits"], packed["quantized_bits"]) == (0, 4)
        assert {**plain, "quantized_bits": 4} == packed


SIZES = st.integers(1, 64)


@st.composite
def shapes(draw):
    kv_heads, group = draw(SIZES), draw(st.integers(1, 8))
    given = {name: draw(SIZES) for name in ("hidden", "layers", "head_dim", "ffn", "vocab", "max_positions")}
    given |= {"heads": kv_heads * group, "kv_heads": kv_heads, "tied": draw(st.booleans())}
    if draw(st.booleans()):
        experts = draw(st.integers(2, 16))
        given |= {"experts": experts, "experts_per_token": draw(st.integers(1, experts))}
        given |= {"expert_ffn": draw(SIZES), "shared_experts": draw(st.integers(0, 2))}
        given |= {"dense_layers": draw(st.integers(0, given["layers"]))}
    return given


def tensors(form, given):
    """List the sizes of a decoder's tensors one by one; norms have no biases here."""
    hidden, head = given["hidden"], given["head_dim"]
    yield from [given["vocab"] * hidden] * (1 if given["tied"] else 2)
    yield hidden
    for layer in range(given["layers"]):
        for heads in (given["heads"], given["kv_heads"], given["kv_heads"]):
            yield hidden * heads * head
            yield heads * head if form.qkv_bias else 0
        yield given["heads"] * head * hidden
        yield from [hidden] * form.norms
        yield 2 * head if form.head_norm == "head" else 0
        if "experts" in given and layer >= given["dense_layers"]:
            yield given["experts"] * hidden
            for _ in range(given["experts"] + given["shared_experts"]):
                yield from [hidden * given["expert_ffn"]] * 3
        else:
            yield from [hidden * given["ffn"]] * 3


@given(st.sampled_from(["llama", "qwen2", "qwen3", "qwen3_moe", "mixtral", "gemma2", "gemma3"]), shapes())
def test_it_is_the_sum_of_the_tensors(family, given):
    assert params(family, given) == sum(tensors(FORMS[family], given))


@given(st.sampled_from(sorted(FORMS)), shapes())
def test_laws_of_any_shape(family, given):
    whole, active = params(family, given), active_params(family, given)
    assert type(whole) is int
    assert 0 < active <= whole
    if "experts" not in given or given["experts_per_token"] == given["experts"]:
        assert active == whole
    assert params(family, {**given, "other_params": 7}) == whole + 7
    table = given["vocab"] * given["hidden"]
    assert params(family, {**given, "tied": False}) - params(family, {**given, "tied": True}) == table
    for column in ("layers", "heads", "vocab", "hidden"):
        assert params(family, {**given, column: given[column] + 1}) > whole, column


@given(shapes())
def test_a_family_that_nobody_knows_counts_as_llama(given):
    assert params("brand_new", given) == params("llama", given)
