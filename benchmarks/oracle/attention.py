"""Attention as CUDA kernels do it: what they save and need, without a mask and without repeated heads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface

if TYPE_CHECKING:
    from torch import Tensor, nn

# The names must not contain "flash": transformers would then look for the package.
NAMES = {"flash_attention_2": "oracle_fused", "sdpa": "oracle_sdpa", "eager": "eager"}


def _rounded(value: int, to: int) -> int:
    return -(-value // to) * to


class _Fused(torch.autograd.Function):
    """The tensors of flash-attn 2 (flash_api.cpp): q, k, v, out and the log-sum-exp are saved.

    PyTorch's own flash and memory-efficient kernels save the same five.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = torch.empty_like(q)
        lse = q.new_empty((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32)
        ctx.save_for_backward(q, k, v, out, lse)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        del grads
        q, k, v, _, lse = ctx.saved_tensors
        batch, length, heads, size = q.shape
        rows = _rounded(length, 128)
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        # These names keep the kernel's workspaces alive until it is done.
        softmax_d = lse.new_empty((batch, heads, rows))
        dq_accum = lse.new_empty((batch, rows, heads, _rounded(size, 32 if size <= 128 else 64)))
        if k.shape[2] != heads:  # each query head has its own dk and dv, summed by group afterwards
            expanded = torch.empty_like(q), torch.empty_like(q)
            del expanded
        del softmax_d, dq_accum
        return dq, dk, dv


def _half(tensor: Tensor) -> Tensor:
    # Rotary embeddings of an fp32 residual stream come out in fp32; transformers and autocast cast them back.
    if tensor.dtype == torch.float32 and torch.is_autocast_enabled("cpu"):
        return tensor.to(torch.get_autocast_dtype("cpu"))
    return tensor


def _flash(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **kwargs: Any
) -> tuple[Tensor, None]:
    # A quantized model's fp32 is cast to the model's dtype (transformers integrations/flash_attention.py).
    if hasattr(module.config, "_is_quantized"):
        query, key, value = (tensor.to(module.config.dtype) for tensor in (query, key, value))
    return _fused(module, query, key, value, *rest, **kwargs)


def _fused(
    _: nn.Module, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **kwargs: Any
) -> tuple[Tensor, None]:
    del rest, kwargs
    size = value.shape[-1]
    if size != query.shape[-1]:  # latent attention: transformers pads the values, flash-attn 2 takes one size
        value = functional.pad(value, [0, query.shape[-1] - size])
    query, key, value = (_half(tensor).transpose(1, 2) for tensor in (query, key, value))
    out: Tensor = _Fused.apply(query, key, value)
    return out[..., :size], None


def _sdpa(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *rest: Any,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    query, key, value = (_half(tensor) for tensor in (query, key, value))
    grouped = query.shape[1] != key.shape[1]
    if query.dtype == torch.float32 and grouped:
        # No fused kernel takes fp32 and grouped heads, so PyTorch falls back to its math kernel.
        out, _ = torch.ops.aten._scaled_dot_product_attention_math(  # noqa: SLF001
            query, key, value, None, 0.0, True, scale=scaling, enable_gqa=True
        )
        return out.transpose(1, 2).contiguous(), None
    return _fused(module, query, key, value, *rest, **kwargs)


def _no_mask(*args: Any, **kwargs: Any) -> None:
    del args, kwargs


def register() -> None:
    """Make the functions known to transformers."""
    for name, function in (("oracle_fused", _flash), ("oracle_sdpa", _sdpa)):
        AttentionInterface.register(name, function)
        AttentionMaskInterface.register(name, _no_mask)
