"""How large a model is: counted from its shape, or bounded by the size that its name gives.

A count is one closed form for each family. With h the hidden size, q = heads * head_dim, k = kv_heads *
head_dim and f the width of the feed-forward layer, a layer has h*q + 2*h*k + q*h weights for attention and
3*h*f for a gated feed-forward layer (2*h*f for a plain one); families differ in biases and norms, which
`FORMS` lists. The counts equal sum(p.numel()) of the transformers 5.23 classes on the meta device
(`tests/test_models_count.py` holds what those gave).

A shape is a mapping with the columns of models.yaml. Beside the facts that rules know it may hold what only
the count needs: ``q_rank`` (q_lora_rank), ``rope_dim``, ``nope_dim`` and ``value_dim`` (MLA), ``embed_dim``
(OPT's projected embeddings), ``max_positions`` (where positions are learned), ``attention_bias``,
``output_bias`` and ``mlp_bias`` (a config that departs from its family), and ``other_params`` (a vision
tower: counted elsewhere, added here).

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


_LLAMA = Form()
_BIASED = Form(qkv_bias=True, out_bias=True, mlp_bias=True, norm_size=2, plain=True)
_FAMILIES = (
    ("llama baichuan ernie4_5 gemma granite granitemoe internlm2 mistral mixtral smollm3 phi3", _LLAMA),
    ("deepseek_v2 deepseek_v3", _LLAMA),
    ("qwen qwen2 qwen2_moe chatglm glm", Form(qkv_bias=True)),
    ("qwen3 qwen3_moe exaone4", Form(head_norm="head")),
    ("glm4 gemma2", Form(norms=4)),
    ("gemma3", Form(norms=4, head_norm="head")),
    ("olmo2 olmo3 olmoe", Form(head_norm="whole")),
    ("cohere cohere2", Form(norms=1)),
    ("arcee mpt", Form(plain=True)),
    ("nemotron falcon", Form(plain=True, norm_size=2)),
    ("gpt_oss", Form(qkv_bias=True, out_bias=True, mlp_bias=True)),
    ("starcoder2 gpt_neox", _BIASED),
    ("phi", replace(_BIASED, norms=1, head_bias=True)),
    ("gpt2", replace(_BIASED, positions=0)),
    ("bloom", replace(_BIASED, final=2)),
    ("opt", replace(_BIASED, positions=2)),
)
FORMS: Mapping[str, Form] = {name: form for names, form in _FAMILIES for name in names.split()}
"""The families that the closed form knows, by the names of the column ``family``."""


def params(family: str, shape: Shape) -> int:
    """Return the number of parameters of a shape, tied embeddings counted once.

    An unknown family counts as Llama.
    """
    form = FORMS.get(family, _LLAMA)
    hidden, layers = shape["hidden"], shape["layers"]
    experts = shape.get("experts", 0)
    dense = shape.get("dense_layers", 0) if experts else layers
    norms = form.norms
    if family == "falcon":
        norms = 1 if shape["kv_heads"] == 1 else 2  # the multi-query Falcon has one norm for both halves
    narrow = shape.get("embed_dim") or hidden
    total = layers * (_attention(family, form, shape) + norms * form.norm_size * hidden)
    total += dense * _feed_forward(form, shape, shape.get("ffn", 0))
    if experts:
        total += (layers - dense) * _experts(family, form, shape, experts)
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
    expert = _feed_forward(form, shape, shape["expert_ffn"])
    return params(family, shape) - int(shape["layers"] - shape.get("dense_layers", 0)) * int(idle) * expert


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
    if form.head_norm:
        total += 2 * shape["head_dim"] if form.head_norm == "head" else queries + keys
    return int(total + (heads if family == "gpt_oss" else 0))  # its attention sinks


def _latent_attention(shape: Shape) -> int:
    """Count attention over a latent cache (MLA; DeepSeek-V2, arXiv 2405.04434, section 2.1)."""
    hidden, heads = shape["hidden"], shape["heads"]
    query, value, rank = shape["nope_dim"] + shape["rope_dim"], shape["value_dim"], shape["q_rank"]
    latent = shape["latent_dim"] - shape["rope_dim"]
    asked = hidden * rank + rank + rank * heads * query if rank else hidden * heads * query
    kept = hidden * shape["latent_dim"] + latent + latent * heads * (shape["nope_dim"] + value)
    return int(asked + kept + heads * value * hidden)


def _feed_forward(form: Form, shape: Shape, width: int) -> int:
    hidden, matrices = shape["hidden"], 2 if form.plain else 3
    biases = (matrices - 1) * width + hidden if shape.get("mlp_bias", form.mlp_bias) else 0
    return int(matrices * hidden * width + biases)


def _experts(family: str, form: Form, shape: Shape, experts: int) -> int:
    hidden, width, shared = shape["hidden"], shape["expert_ffn"], shape.get("shared_experts", 0)
    total = experts * _feed_forward(form, shape, width) + experts * hidden
    total += _feed_forward(form, shape, width * shared) if shared else 0
    if family == "qwen2_moe" and shared:
        total += hidden  # the gate of the shared expert
    return int(total + (experts if family == "gpt_oss" else 0))  # the router's bias


# ── by its name, or a number of parameters ──────────────────────────────────────────────────────────────────
# 8x7B, 30B, 1.5b, 1_6b, 7b1, 500M; a letter may come before it only as the end of a word (llama7b).
_SIZE = re.compile(
    r"(?:(?<![A-Za-z0-9._])|(?<=[^0-9A-Za-z][vV][0-9]_)|(?<=[0-9A-Za-z]_)|(?<=[A-Za-z]{3}))"
    r"(?:(?P<times>\d{1,3})[xX])?(?P<whole>\d{1,4})(?:[._](?P<part>\d{1,3}))?"
    r"(?P<unit>[bBmM])(?P<tail>\d)?(?![A-Za-z0-9])"
)
_ACTIVE = re.compile(r"(?<![A-Za-z0-9])[aA](\d{1,3}(?:\.\d{1,3})?)[bB](?![A-Za-z0-9])")
_BITS = re.compile(
    r"(?<![A-Za-z0-9])(awq|gptq|int4|int8|fp8|nf4|w4a16|w8a8|w8a16|4-?bit|8-?bit)(?![A-Za-z0-9])"
)

# What names leave out: a size is rounded, and often counts no embeddings, which weigh most in small models.
_BELOW = 0.15
_ABOVE = ((1e9, 0.30), (1.4e9, 0.70), (4e9, 0.40), (10e9, 0.25), (float("inf"), 0.15))
_WIDER = 0.30  # models whose shapes are taken as like
_OF_EXPERTS = (0.7, 1.0)  # experts share their attention: 8x7B has 46.7 billion
_OF_ACTIVE = (1.0, 2.2)  # and a token passes two of them

_LIKE_LLAMA = ("llama", "mistral", "qwen2")


def by_name(name: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, object] | None:
    """Return the figures that a name or a path gives, None for one that has no size."""
    for piece in reversed(name.replace("\\", "/").split("/")):
        for size in _SIZE.finditer(piece):
            count = _count(size)
            if not 5e6 <= count <= 5e12:
                continue
            times = int(size["times"] or 0)
            active = _ACTIVE.search(piece)
            figures = _figures(*_sizes(count, times, active), rows)
            figures["quantized_bits"] = _bits(name)
            return figures
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


def _spread(size: float) -> Number:
    below, above = margins(size)
    return interval(floor(size * (1 - below)), ceil(size * (1 + above)))


def _sizes(count: float, times: int, active: re.Match[str] | None) -> tuple[Number, Number]:
    """Return the bounds of all parameters, and of those that one token passes through."""
    if times > 1:
        low, high = _OF_EXPERTS
        some, more = _OF_ACTIVE
        total = count * times
        return (
            interval(floor(total * low), ceil(total * high)),
            interval(floor(count * some), ceil(count * more)),
        )
    if active is not None and float(active[1]) * 1e9 < count:
        return _spread(count), _spread(float(active[1]) * 1e9)
    return _spread(count), _spread(count)


def _bits(name: str) -> int:
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
