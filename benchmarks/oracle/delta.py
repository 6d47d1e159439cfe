"""Gated DeltaNet as the kernels of flash-linear-attention and causal-conv1d compute it.

transformers takes both packages where they are installed, and else the same in plain PyTorch, which keeps
many times as much; people train with the kernels. Read in flash-linear-attention @bc3b101 and causal-conv1d
@HEAD:

- fla/ops/gated_delta_rule/chunk.py: ChunkGatedDeltaRuleFunction makes its inputs contiguous, and saves the
  normed queries and keys, the values, the decay's sums in fp32, beta, and a matrix of 64 numbers for each
  token and head. The backward pass computes w, u and the states at every 64th token again.
- causal_conv1d/causal_conv1d_interface.py: CausalConv1dFn saves its input.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torch import Tensor

_CHUNK = 64


class _Delta(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor) -> Tensor:
        q, k, v, g, beta = (one.contiguous() for one in (q, k, v, g, beta))
        batch, length, heads, width = v.shape
        chunks = -(-length // _CHUNK)
        normed = torch.empty_like(q), torch.empty_like(k)
        statistics = q.new_empty((2, batch, length, q.shape[2]), dtype=torch.float32)
        sums = torch.empty_like(g, dtype=torch.float32)
        solved = k.new_empty((batch, length, heads, _CHUNK))
        w, u = k.new_empty((batch, length, heads, k.shape[3])), torch.empty_like(v)
        states = k.new_empty((batch, chunks, heads, k.shape[3], width))
        fresh, out = torch.empty_like(u), torch.empty_like(v)
        ctx.save_for_backward(*normed, statistics, v, sums, beta, solved)
        del w, u, states, fresh
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        q, k, _, v, sums, beta, _ = ctx.saved_tensors
        out = grads[0].contiguous()
        batch, length, heads, width = v.shape
        chunks, groups = -(-length // _CHUNK), heads // q.shape[2]
        w, u = k.new_empty((batch, length, heads, k.shape[3])), torch.empty_like(v)
        states, fresh = k.new_empty((batch, chunks, heads, k.shape[3], width)), torch.empty_like(u)
        dv = torch.empty_like(out)
        dstates, dv = torch.empty_like(states), torch.empty_like(dv)
        dq, dk, dw = (torch.empty_like(w) for _ in range(3))
        dg = torch.empty_like(sums)
        if groups > 1:
            dq, dk = (one.view(batch, length, -1, groups, k.shape[3]).sum(3) for one in (dq, dk))
        dk2, dv = torch.empty_like(w), torch.empty_like(v)
        dg2, db = torch.empty_like(sums), torch.empty_like(beta)
        if groups > 1:
            dk2 = dk2.view(batch, length, -1, groups, k.shape[3]).sum(3)
        dg = torch.empty_like(dg)
        del w, u, states, fresh, dstates, dw, dk2, dg2
        dq = torch.empty_like(dq)  # through the norm
        dk = torch.empty_like(dk)
        return dq, dk, dv, dg, db


def chunk_gated_delta_rule(  # noqa: PLR0913 — the kernel's own arguments
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
) -> tuple[Tensor, None]:
    """Gated delta rule in chunks of 64 tokens; grouped queries and keys are taken as they are."""
    del scale, initial_state, output_final_state
    assert use_qk_l2norm_in_kernel
    result: Tensor = _Delta.apply(q, k, v, g, beta)
    return result, None


class _Conv(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        result = torch.empty_like(x)
        dweight = torch.empty_like(weight, dtype=torch.float32)
        del grads
        return result, dweight.to(weight.dtype)


def causal_conv1d_fn(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None
) -> Tensor:
    """Convolution and activation, of which the input is kept."""
    del bias, activation
    result: Tensor = _Conv.apply(x, weight)
    return result


def register() -> None:
    """Make the functions known to transformers, before it loads the code of a model that takes them."""
    conv = types.ModuleType("causal_conv1d")
    conv.causal_conv1d_fn = causal_conv1d_fn  # type: ignore[attr-defined]
    names = ("fla", "fla.ops", "fla.ops.gated_delta_rule")
    fla, ops, rule = (types.ModuleType(name) for name in names)
    rule.chunk_gated_delta_rule = chunk_gated_delta_rule  # type: ignore[attr-defined]
    fla.ops, ops.gated_delta_rule = ops, rule  # type: ignore[attr-defined]
    sys.modules |= dict(zip((*names, "causal_conv1d"), (fla, ops, rule, conv), strict=True))
