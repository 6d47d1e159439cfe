"""Models that see: configurations from a row, what a processor hands them, and where they look at data.

Fake tensors have no data. What a model reads of the pictures' grid is computed here for pictures of one
size, and where it counts the pictures' tokens, stand-ins allocate what PyTorch's CUDA kernels do.
"""

from __future__ import annotations

import contextlib
import math
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForImageTextToText
from transformers.initialization import no_init_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from transformers import PreTrainedModel

    from oracle.case import Case

_TEMPORAL = 2  # frames of a patch in Qwen's towers; a picture is shown twice
_GRIDS = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "glm4v")


def _tower(row: dict[str, Any]) -> dict[str, Any]:
    """Return a tower's configuration."""
    sees, hidden, ffn = row["sees"], row["vision_hidden"], row["vision_ffn"]
    depth, heads, patch = row["vision_layers"], row["vision_heads"], row["vision_patch"]
    if sees in _GRIDS:
        common = {"depth": depth, "num_heads": heads, "patch_size": patch}
        if sees == "qwen2_vl":
            return common | {"embed_dim": hidden, "hidden_size": row["hidden"], "mlp_ratio": ffn // hidden}
        common |= {"hidden_size": hidden, "intermediate_size": ffn, "out_hidden_size": row["hidden"]}
        return common | row.get("tower", {})
    return {
        "hidden_size": hidden,
        "intermediate_size": ffn,
        "num_hidden_layers": depth,
        "num_attention_heads": heads,
        "patch_size": patch,
    } | row["tower"]


def build(row: dict[str, Any], text: dict[str, Any], attention: str) -> PreTrainedModel:
    """Return the model of a row that sees; `text` is the configuration of its language model."""
    config = AutoConfig.for_model(
        row["sees"],
        text_config={**text, "use_cache": False, "model_type": row.get("text", "")}
        if row.get("text")
        else {**text, "use_cache": False},
        vision_config=_tower(row),
        tie_word_embeddings=row["tied"],
        **row.get("joint", {}),
    )
    for part in (config, config.text_config, config.vision_config):
        part._attn_implementation = attention  # noqa: SLF001 — the way to name a registered function
    config.use_cache = False
    with no_init_weights():
        model: PreTrainedModel = AutoModelForImageTextToText.from_config(config)
    model.tie_weights()
    if (model.get_input_embeddings().weight is model.get_output_embeddings().weight) is not row["tied"]:
        raise ValueError("embeddings are not tied as the row says")
    return model


def language_model(model: PreTrainedModel) -> torch.nn.Module:
    """Return the decoder of a model that sees."""
    inner: Any = model.model
    found: torch.nn.Module = inner.text_model if hasattr(inner, "text_model") else inner.language_model
    return found


def tower(model: PreTrainedModel) -> list[torch.nn.Module]:
    """Return the tower and what joins it to the language model."""
    words = ("visual", "vision_tower", "vision_model", "multi_modal_projector", "connector")
    return [part for name, part in model.model.named_children() if name in words]


def is_tower(name: str) -> bool:
    """Whether a parameter's name is one of a tower."""
    return any(word in name for word in ("visual", "vision", "multi_modal_projector", "connector"))


@dataclass(frozen=True, slots=True)
class Pictures:
    """What a forward pass is given of pictures, what is made of it beforehand, and how the model takes it."""

    look: Callable[..., Any] | None  # instead of the model's own method
    given: dict[str, Tensor]
    made: dict[str, Tensor]


class _Scatter(torch.autograd.Function):
    """masked_scatter: a copy, in which rows are replaced; its backward pass selects the rows again."""

    @staticmethod
    def forward(ctx: Any, base: Tensor, mask: Tensor, source: Tensor) -> Tensor:
        ctx.save_for_backward(mask.expand_as(base))
        ctx.shape = source.shape
        result = base.clone()
        places = base.new_empty(base.shape, dtype=torch.int64)  # prefix sums (native/cuda/IndexKernel.cpp)
        del places
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, Tensor | None]:
        first = torch.empty_like(grads[0]) if ctx.needs_input_grad[0] else None
        return first, None, grads[0].new_empty(ctx.shape) if ctx.needs_input_grad[2] else None


class _Deepstack(torch.autograd.Function):
    """What Qwen3-VL adds to the first layers' output: `h = h.clone(); h[mask] = h[mask] + features`."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, features: Tensor) -> Tensor:
        ctx.shape = features.shape
        result = hidden.clone()
        rows = torch.empty_like(features)
        added = torch.empty_like(rows)
        del rows, added
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None]:
        if not ctx.needs_input_grad[0]:
            return None, grads[0].new_empty(ctx.shape)
        kept = torch.empty_like(grads[0])
        rows = grads[0].new_empty(ctx.shape)
        spread = torch.empty_like(grads[0])
        kept = kept.add(spread)
        return kept, rows if ctx.needs_input_grad[1] else None


def _deepstack(_: Any, hidden: Tensor, mask: Tensor, features: Tensor) -> Tensor:
    del mask
    result: Tensor = _Deepstack.apply(hidden, features.to(hidden.dtype))
    return result


def _positions(_: Any, hidden: Tensor, *rest: Any) -> Tensor:
    del rest
    return hidden + torch.empty_like(hidden)


def _scatter(base: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    result: Tensor = _Scatter.apply(base, mask, source.to(base.dtype))
    return result


@contextlib.contextmanager
def blind(model: PreTrainedModel, seen: Pictures) -> Iterator[None]:
    """Replace what looks at data, and let towers take all pictures in one call of the fused kernel."""
    with contextlib.ExitStack() as patches:
        patches.enter_context(mock.patch.object(Tensor, "masked_scatter", _scatter))
        if seen.look:
            patches.enter_context(mock.patch.object(model.model, "get_image_features", seen.look))
        fused = "_attn_implementation"
        for module in {sys.modules[type(part).__module__] for part in model.modules()}:
            for name, value in (
                ("torch_compilable_check", lambda *_, **__: None),
                (
                    "is_flash_attention_requested",
                    lambda config: getattr(config, fused) == "oracle_fused",
                ),
            ):
                if hasattr(module, name):
                    patches.enter_context(mock.patch.object(module, name, value))
        positions = getattr(getattr(model.model, "visual", None), "embeddings", None)
        if positions is not None:  # GLM-4.1V samples its positions from a table
            patches.enter_context(mock.patch.object(type(positions), "forward", _positions))
        decoder = type(language_model(model))
        if hasattr(decoder, "_deepstack_process"):
            patches.enter_context(mock.patch.object(decoder, "_deepstack_process", _deepstack))
        yield


def _grid(case: Case, row: dict[str, Any], model: PreTrainedModel) -> Pictures:
    patch, merge = row["vision_patch"], 2
    pictures = case.images_per_sample * case.micro_batch_size
    each = case.image_pixels // patch**2
    patches = pictures * each
    pixels = torch.zeros((patches, 3 * _TEMPORAL * patch**2))
    places = torch.zeros((patches, 2), dtype=torch.long)
    ends = torch.zeros(pictures + 1, dtype=torch.int32)
    given: dict[str, Any] = {"position_ids": places, "cu_seqlens": ends, "max_seqlen": each}
    if row["sees"] == "qwen2_5_vl":
        windows = torch.zeros(patches // 64 + 1, dtype=torch.int32)
        given |= {"window_index": torch.zeros(patches // merge**2, dtype=torch.long)}
        given |= {"cu_window_seqlens": windows, "max_window_seqlen": 64}
    elif row["sees"] not in ("qwen2_vl", "glm4v"):
        given["interp_indices"] = torch.zeros((patches, 4), dtype=torch.long)
        given["interp_weights"] = torch.zeros((patches, 4))

    def look(*_: Any, **__: Any) -> Any:
        seen = model.model.visual(pixels.to(model.model.visual.dtype), grid_thw=None, **given)
        tokens = [each // merge**2] * pictures
        seen.pooler_output = torch.split(seen.pooler_output, tokens)
        if "deepstack_features" in seen:
            seen.deepstack_features = [torch.split(one, tokens) for one in seen.deepstack_features]
        return seen

    made = {name: one for name, one in given.items() if isinstance(one, Tensor)}
    return Pictures(look, {"pixel_values": pixels}, made)


def _pixtral(model: PreTrainedModel, pixels: Tensor, sizes: list[tuple[int, int]]) -> Callable[..., Any]:
    own: Any = model.model

    def look(*_: Any, **__: Any) -> Any:
        """Look as Mistral 3 does, whose pictures are of any size."""
        seen = own.vision_tower(pixels.to(own.dtype), image_sizes=sizes, output_hidden_states=True)
        features = own.multi_modal_projector(seen.hidden_states[-1].squeeze(0), sizes)
        return SimpleNamespace(pooler_output=[features.squeeze(0)])

    return look


def _square(case: Case, row: dict[str, Any], model: PreTrainedModel) -> Pictures:
    """Pictures of one size, or tiles of it."""
    side = math.isqrt(case.image_pixels)
    pictures = case.images_per_sample * case.micro_batch_size
    pixels = torch.zeros((pictures, 3, side, side))
    given = {"pixel_values": pixels}
    if row["sees"] == "mistral3":
        return Pictures(_pixtral(model, pixels, [(side, side)] * pictures), given, {})
    if row["sees"] == "gemma3":
        given["token_type_ids"] = torch.zeros((case.micro_batch_size, case.seq_len), dtype=torch.long)
    if not hasattr(model.model, "vision_model"):
        return Pictures(None, given, {})
    own = model.model
    sides = side // row["vision_patch"]

    def look(*_: Any, **__: Any) -> Any:
        """Look as Idefics 3 and SmolVLM do, but for leaving out pictures that are padding."""
        mask = torch.ones((pictures, sides, sides), dtype=torch.bool)
        seen = own.vision_model(pixel_values=pixels.to(own.dtype), patch_attention_mask=mask)
        features = own.connector(seen.last_hidden_state)
        return SimpleNamespace(pooler_output=[features.reshape(-1, features.shape[-1])])

    return Pictures(look, given, {})


def pixels(row: dict[str, Any], *, large: bool) -> int:
    """Return a picture's pixels: a tower's own size, or what becomes 784 or 1764 tokens."""
    if row["sees"] not in (*_GRIDS, "mistral3"):
        size = row["tower"]["image_size"]
        return int((size if isinstance(size, int) else size[0]) ** 2)
    return int(((42 if large else 28) * 2 * row["figures"]["vision_patch"]) ** 2)


def pictures(case: Case, row: dict[str, Any], model: PreTrainedModel) -> Pictures:
    """Return the pictures of a micro-batch."""
    return (_grid if row["sees"] in _GRIDS else _square)(case, row, model)
