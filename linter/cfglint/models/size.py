"""How large a model is: counted from its shape, or bounded by the size that its name gives.

A count is one closed form for each family. With h the hidden size, q = heads * head_dim, k = kv_heads *
head_dim and f the width of the feed-forward layer, a layer has h*q + 2*h*k + q*h weights for attention and
3*h*f for a gated feed-forward layer (2*h*f for a plain one); families differ in biases and norms, which
`FORMS` lists. The counts equal sum(p.numel()) of the transformers 5.23 classes on the meta device
(`tests/test_models_count.py` holds what those gave).

A shape is a mapping with the columns of models.yaml. Beside the facts that rules know it may hold what only
the count needs: ``q_rank`` (q_lora_rank), ``rope_dim``, ``nope_dim`` and ``value_dim`` (MLA), ``embed_dim``
(OPT's projected embeddings), ``max_positions`` (where positions are learned), ``attention_bias``,
``output_bias``, ``mlp_bias`` and ``qk_norm`` (a config that departs from its family), ``expert_hidden``
(experts between two projections), and ``other_params`` (a vision tower, and what a family has beside the
form: counted elsewhere, added here).

A hybrid has layers of several kinds, each counted as often as it stands: ``attention_layers``,
``mlp_layers``, ``ssm_layers`` (Mamba), ``linear_layers`` (Gated DeltaNet, or the short convolution of LFM2).

A name gives less: ``org/foo-7B-sft`` has about seven billion parameters, and the shape of the known models of
that size.
"""

from __future__ import annotations

import re
from math import ceil, floor

from cfglint.lang.values import NOTHING, Open, hull, interval, parts
from cfglint.models import EXPERTS, NOT_DENSE, PARTS, SHAPE
from cfglint.record import Record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    from cfglint.lang.values import Number

    Shape: TypeAlias = Mapping[str, Any]


class Form(Record):
    """What sets a family apart from Llama: RMS norms (two a layer), a gated MLP, and no biases.

    ``qkv_bias``, ``out_bias`` and ``mlp_bias`` say which linears have one; ``head_norm`` is ``head`` where
    the heads of queries and of keys share their norm's weights, ``whole`` where each number has its own;
    ``norms`` counts the norms of a layer; ``norm_size`` is 2 where a norm has a bias too; ``plain`` is a
    feed-forward layer of two matrices.
    """

    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    head_norm: str = ""
    norms: int = 2
    norm_size: int = 1
    final: int = 1  # norms outside the layers: the last one, and Bloom's after the embedding
    plain: bool = False
    positions: int | None = None  # learned positions beyond max_positions; None: none are learned
    head_bias: bool = False
    gate: bool = False  # queries come with a gate of their width
    state_norm: int = 1  # of a Mamba layer: its gated norm; Jamba's three small ones are told by the family
    more: int = 0  # numbers of a layer that stand alone


_LLAMA = Form()
_BIASED = Form(qkv_bias=True, out_bias=True, mlp_bias=True, norm_size=2, plain=True)
_FAMILIES = (
    ("llama baichuan ernie4_5 gemma granite granitemoe internlm2 mistral mixtral smollm3 phi3", _LLAMA),
    ("dbrx deepseek deepseek_v2 deepseek_v3 ernie4_5_moe glm4_moe_lite llama4 ministral3 mistral4", _LLAMA),
    ("bamba granitemoehybrid jamba", _LLAMA),
    ("qwen qwen2 qwen2_moe chatglm glm", Form(qkv_bias=True)),
    ("qwen3 qwen3_moe exaone4 dots1 bailing_moe hunyuan_v1_dense hunyuan_v1_moe", Form(head_norm="head")),
    ("qwen3_next qwen3_5 qwen3_5_moe", Form(head_norm="head", gate=True)),
    ("lfm2 lfm2_moe", Form(head_norm="head")),
    ("glm4_moe seed_oss mimo", Form(qkv_bias=True)),
    ("apertus", Form(plain=True, head_norm="head", more=2)),  # the two numbers of xIELU
    ("nemotron_h nemotron_h_omni", Form(plain=True, norms=1)),
    ("mamba mamba2 falcon_mamba", Form(norms=1)),
    ("phimoe", Form(qkv_bias=True, out_bias=True, norm_size=2, head_bias=True)),
    ("falcon_h1", Form(state_norm=0)),
    ("glm4 gemma2", Form(norms=4)),
    ("gemma3", Form(norms=4, head_norm="head")),
    ("olmo2 olmo3 olmoe minimax_m2", Form(head_norm="whole")),
    ("cohere cohere2", Form(norms=1)),
    ("arcee mpt", Form(plain=True)),
    ("nemotron falcon", Form(plain=True, norm_size=2)),
    ("gpt_oss", Form(qkv_bias=True, out_bias=True, mlp_bias=True)),
    ("olmo", Form(norms=0, final=0)),  # its norms have no weights
    ("stablelm", Form(norm_size=2)),
    ("starcoder2 gpt_neox", _BIASED),
    ("phi", replace(_BIASED, norms=1, head_bias=True)),
    ("gptj", Form(mlp_bias=True, norms=1, norm_size=2, plain=True, head_bias=True)),
    ("gpt2", replace(_BIASED, positions=0)),
    ("gpt_neo", replace(_BIASED, qkv_bias=False, positions=0)),
    ("bloom", replace(_BIASED, final=2)),
    ("opt", replace(_BIASED, positions=2)),
)
ALONE = (
    *("afmoe", "deepseek_v4", "exaone_moe", "gemma3n", "gemma4", "gemma4_unified", "hy_v3", "kimi_linear"),
    *("mimo_v2_flash", "minimax_m3", "mllama", "muse_glimmer", "olmo_hybrid", "qwen2_5_omni", "qwen2_audio"),
    *("step3p7", "voxtral"),
)
"""Families without a form, in the catalogue as transformers counts them."""
FORMS: Mapping[str, Form] = {name: form for names, form in _FAMILIES for name in names.split()}
"""The families that the closed form knows, by the names of the column ``family``."""


def params(family: str, shape: Shape) -> int:
    """Return the number of parameters of a shape, tied embeddings counted once.

    An unknown family counts as Llama.
    """
    form = FORMS.get(family, _LLAMA)
    hidden, layers = shape["hidden"], shape["layers"]
    experts, mlp = shape.get("experts", 0), shape.get("mlp_layers", layers)
    dense = shape.get("dense_layers", 0) if experts else mlp
    norms = form.norms
    if family == "falcon":
        norms = 1 if shape["kv_heads"] == 1 else 2  # the multi-query Falcon has one norm for both halves
    narrow = shape.get("embed_dim") or hidden
    total = layers * (norms * form.norm_size * hidden + form.more)
    total += shape.get("attention_layers", layers) * _attention(family, form, shape)
    total += shape["ssm_layers"] * _state(family, form, shape) if shape.get("ssm_layers") else 0
    total += shape["linear_layers"] * _linear(shape) if shape.get("linear_layers") else 0
    total += dense * _feed_forward(form, shape, shape.get("ffn", 0))
    if experts:
        total += (mlp - dense) * _experts(family, form, shape, experts)
    total += shape["vocab"] * narrow * (1 if shape["tied"] else 2)
    if narrow != hidden:  # projections into the layers and out of them; the final norm is left out
        total += 2 * narrow * hidden
    else:
        total += form.final * form.norm_size * hidden
    if form.positions is not None:
        total += (shape["max_positions"] + form.positions) * hidden
    if form.head_bias:
        total += shape["vocab"]
    return int(total + shape.get("other_params", 0))


def active_params(family: str, shape: Shape) -> int:
    """Return the number of parameters that one token uses: all but the experts it is not routed to."""
    experts = shape.get("experts", 0)
    if not experts:
        return params(family, shape)
    form = FORMS.get(family, _LLAMA)
    idle = experts - shape["experts_per_token"]
    expert = _feed_forward(form, _inside(shape), shape["expert_ffn"])
    mlp = shape.get("mlp_layers", shape["layers"])
    return params(family, shape) - int(mlp - shape.get("dense_layers", 0)) * int(idle) * expert


def _attention(family: str, form: Form, shape: Shape) -> int:
    hidden, heads = shape["hidden"], shape["heads"]
    if shape.get("latent_dim"):
        return _latent_attention(shape)
    queries, keys = heads * shape["head_dim"], shape["kv_heads"] * shape["head_dim"]
    total = 2 * hidden * queries + 2 * hidden * keys
    if shape.get("attention_bias", form.qkv_bias):
        total += queries + 2 * keys
    if shape.get("output_bias", form.out_bias):
        total += hidden
    if form.gate:
        total += hidden * queries
    if form.head_norm or shape.get("qk_norm"):
        total += queries + keys if form.head_norm == "whole" else 2 * shape["head_dim"]
    return int(total + (heads if family == "gpt_oss" else 0))  # its attention sinks


def _latent_attention(shape: Shape) -> int:
    """Count attention over a latent cache (MLA; DeepSeek-V2, arXiv 2405.04434, section 2.1)."""
    hidden, heads = shape["hidden"], shape["heads"]
    query, value, rank = shape["nope_dim"] + shape["rope_dim"], shape["value_dim"], shape["q_rank"]
    latent = shape["latent_dim"] - shape["rope_dim"]
    asked = hidden * rank + rank + rank * heads * query if rank else hidden * heads * query
    kept = hidden * shape["latent_dim"] + latent + latent * heads * (shape["nope_dim"] + value)
    return int(asked + kept + heads * value * hidden)


def _state(family: str, form: Form, shape: Shape) -> int:
    """Count a Mamba-2 layer (arXiv 2405.21060, section 7), or one of Mamba (arXiv 2312.00752)."""
    hidden, inner, state = shape["hidden"], shape["ssm_inner"], shape["ssm_state"]
    heads = shape.get("ssm_heads", 0)
    taps = shape["ssm_conv"] + 1  # and a bias
    if heads:
        shared = 2 * shape["ssm_groups"] * state  # B and C
        mixed = hidden * (2 * inner + shared + heads) + (inner + shared) * taps + 3 * heads
        return int(mixed + form.state_norm * inner + inner * hidden)
    rank = ceil(hidden / 16)
    mixed = 3 * hidden * inner + inner * taps + inner * (rank + 2 * state) + (rank + 1) * inner
    return int(mixed + inner * state + inner + (rank + 2 * state if family == "jamba" else 0))


def _linear(shape: Shape) -> int:
    """Count a Gated DeltaNet layer (arXiv 2412.06464) as in Qwen3-Next, or LFM2's convolution."""
    hidden, taps = shape["hidden"], shape["ssm_conv"]
    if not shape.get("linear_value_heads"):
        return int(4 * hidden * hidden + hidden * taps)
    keys = shape["linear_key_heads"] * shape["linear_key_dim"]
    heads, size = shape["linear_value_heads"], shape["linear_value_dim"]
    values = heads * size
    asked = hidden * (2 * keys + 2 * values + 2 * heads)
    return int(asked + (2 * keys + values) * taps + 2 * heads + size + values * hidden)


def _feed_forward(form: Form, shape: Shape, width: int) -> int:
    hidden, matrices = shape["hidden"], 2 if form.plain else 3
    biases = (matrices - 1) * width + hidden if shape.get("mlp_bias", form.mlp_bias) else 0
    return int(matrices * hidden * width + biases)


def _inside(shape: Shape) -> Shape:
    """Return the shape as an expert sees it: Nemotron 3 Super brings the tokens to a narrower width first."""
    return {**shape, "hidden": shape["expert_hidden"]} if shape.get("expert_hidden") else shape


def _experts(family: str, form: Form, shape: Shape, experts: int) -> int:
    hidden, width, shared = shape["hidden"], shape["expert_ffn"], shape.get("shared_experts", 0)
    total = experts * _feed_forward(form, _inside(shape), width) + experts * hidden
    total += 2 * hidden * shape["expert_hidden"] if shape.get("expert_hidden") else 0
    total += _feed_forward(form, shape, width * shared) if shared else 0
    if family in _GATED_SHARED and shared:
        total += hidden  # the gate of the shared expert
    return int(total + (experts if family in ("gpt_oss", "ernie4_5_moe") else 0))  # the router's bias


# ── by its name, or a number of parameters ──────────────────────────────────────────────────────────────────
# 8x7B, 7Bx2, 30B, 1.5b, 1_6b, 7b1, 500M; a letter may come before it only as the end of a word (llama7b).
_SIZE = re.compile(
    r"(?:(?<![A-Za-z0-9._])|(?<=[^0-9A-Za-z][vV][0-9]_)|(?<=[0-9A-Za-z]_)|(?<=[A-Za-z]{3}))"
    r"(?:(?P<times>\d{1,3})[xX])?(?P<whole>\d{1,4})(?:(?:\.|_(?=\d[bBmM]))(?P<part>\d{1,3}))?"
    r"(?P<unit>[bBmM])(?:(?P<tail>\d)|[xX](?P<copies>\d{1,3}))?(?:(?=[aA]\d)|(?![A-Za-z0-9]))"
)
# A3B, a400m: what a token passes.
_ACTIVE = re.compile(r"(?:(?<![A-Za-z0-9])|(?<=\d[bB]))[aA](\d{1,3}(?:[._]\d{1,3})?)([bBmM])(?![A-Za-z0-9])")
# 16E, 64experts, moe: there are experts. What such a name's size counts (all of them, or what a token passes)
# is not said: deepseek-moe-16b has 16 billion, Llama-4-Scout-17B-16E 109, LLaMA-MoE-v1-3_5B 6.7.
# 2e-5 is a rate.
_MIXED = re.compile(
    r"(?i)(?<![a-z0-9])\d{1,4}(?:e(?!-\d)|experts?)(?![a-z0-9])|moe(?![a-z])|mixture|mixtral|scout|maverick"
    r"|(?<![a-z])a\d{1,3}(?:[._]\d{1,3})?[bm](?![a-z0-9])|(?<![a-z0-9])llama-?4(?![0-9.])"
)
_BITS = re.compile(
    r"(?<![A-Za-z0-9])(awq|gptq|int4|int8|fp8|nf4|nvfp4|mxfp4|fp4|w4a16|w8a8|w8a16|4-?bit|8-?bit)(?![A-Za-z0-9])"
)

# What names leave out: a size is rounded, and often counts no embeddings, which weigh most in small models.
_BELOW = 0.15
_ABOVE = ((1e9, 0.30), (1.4e9, 0.70), (4e9, 0.40), (10e9, 0.25), (float("inf"), 0.15))
_SEES = re.compile(r"(?i)(?<![a-z])(vl|vlm|omni|vision|audio|voxtral|llava|internvl|multimodal)(?![a-z])")
_TOWERS = 0.2  # more above, for what sees or hears: Qwen2.5-Omni-3B has 4.7 billion
_WIDER = 0.30  # models whose shapes are taken as like
_OF_EXPERTS = (0.7, 1.0)  # experts share their attention: 8x7B has 46.7 billion
_OF_ACTIVE = (1.0, 2.2)  # and a token passes two of them

_GATED_SHARED = ("qwen2_moe", "qwen3_next", "qwen3_5_moe")
_LIKE_LLAMA = ("llama", "mistral", "qwen2")


def by_name(name: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, object] | None:
    """Return the figures that a name or a path gives, None for one that has no size.

    None, too, where the name has experts and does not tell the whole: 17B-16E is what a token passes.
    """
    for piece in reversed(name.replace("\\", "/").split("/")):
        found = [(size, _count(size)) for size in _SIZE.finditer(piece)]
        found = [(size, count) for size, count in found if 5e6 <= count <= 5e12]
        if not found:
            continue
        sizes = _sizes(piece, found)
        if sizes is None:
            return None
        return {**_figures(*sizes, rows), "quantized_bits": bits(name)}
    return None


def by_number(count: float, rows: Iterable[Mapping[str, Any]]) -> dict[str, object] | None:
    """Return the figures of a dense model with ``count`` parameters."""
    if not 1 <= count < 2**60:
        return None
    count = int(count)
    return _figures(count, count, rows)


def _count(size: re.Match[str]) -> float:
    part = size["part"] or size["tail"] or "0"
    number = float(f"{size['whole']}.{part}")
    return number * (1e9 if size["unit"] in "bB" else 1e6)


def margins(size: float) -> tuple[float, float]:
    """Return how far a model may be below and above the size in its name, as fractions of it."""
    return _BELOW, next(above for bound, above in _ABOVE if size < bound)


def _spread(size: float, piece: str = "") -> Number:
    below, above = margins(size)
    above += _TOWERS if _SEES.search(piece) else 0
    return interval(floor(size * (1 - below)), ceil(size * (1 + above)))


def _sizes(piece: str, found: Sequence[tuple[re.Match[str], float]]) -> tuple[Number, Number] | None:
    """Return the bounds of all parameters and of those that one token passes; None where none are told."""
    (first, count), *others = found
    times = int(first["times"] or first["copies"] or 0)
    if times > 1:
        (low, high), (some, more) = _OF_EXPERTS, _OF_ACTIVE
        total = count * times
        return (
            interval(floor(total * low), ceil(total * high)),
            interval(floor(count * some), ceil(count * more)),
        )
    mixed, active = _MIXED.search(piece) is not None, _ACTIVE.search(piece)
    if active is not None:
        passed = float(active[1].replace("_", ".")) * (1e9 if active[2] in "bB" else 1e6)
        return (_spread(count, piece), _spread(passed, piece)) if passed < count else None
    if others and first.end() + 1 == others[0][0].start():  # OLMoE-1B-7B; of two others nobody knows which
        second = others[0][1]
        return (_spread(second, piece), _spread(count, piece)) if mixed and count < second else None
    return None if mixed else (_spread(count, piece), _spread(count, piece))


def bits(name: str) -> int:
    """Return the bits of a weight that a name tells, 0 where it tells none."""
    marks = _BITS.findall(name.lower())
    return (8 if any("8" in word for word in marks) else 4) if marks else 0


def _figures(total: Number, active: Number, rows: Iterable[Mapping[str, Any]]) -> dict[str, object]:
    moe = parts(active) != parts(total)
    alike = _alike(total, [row for row in rows if bool(row["experts"]) is moe])
    figures: dict[str, object] = {**dict.fromkeys(NOT_DENSE, 0), "params": total, "active_params": active}
    for column in (*SHAPE, *EXPERTS, "latent_dim"):
        figures[column] = hull([row[column] for row in alike]) if moe or column in SHAPE else 0
    figures.update(dict.fromkeys(PARTS, figures["layers"]), named=True)
    tied = {row["tied"] for row in alike}
    figures["tied"] = tied.pop() if len(tied) == 1 else Open(NOTHING)
    llama = all(row["family"] in _LIKE_LLAMA for row in alike)
    figures["family"] = "llama" if llama else "unknown"
    return figures


def _alike(total: Number, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the models of about this size; with fewer than two shapes, the next ones below and above too."""
    low, high, _ = parts(total)
    bottom, top = low * (1 - _WIDER), high * (1 + _WIDER)
    alike = [row for row in rows if bottom <= row["params"] <= top]
    if len({tuple(row[column] for column in SHAPE) for row in alike}) > 1:
        return alike
    smaller = [row for row in rows if row["params"] < bottom]
    larger = [row for row in rows if row["params"] > top]
    alike += [max(smaller, key=_params)] if smaller else []
    return alike + ([min(larger, key=_params)] if larger else [])


def _params(row: Mapping[str, Any]) -> float:
    return float(row["params"])
