"""State-space layers as CUDA kernels compute them: what mamba_ssm keeps for the backward pass.

The same layer in plain PyTorch keeps many times as much; people train with the kernels. transformers takes
its functions from a module of this name, so one is put there before a model's code is loaded.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor


class _Combined(torch.autograd.Function):
    """MambaSplitConv1dScanCombinedFn of mamba_ssm (ops/triton/ssd_combined.py).

    It saves the projected input, the scan's output and the gated norm's statistics. Convolution, states and
    the output layer's input are computed again in the backward pass.
    """

    @staticmethod
    def forward(
        ctx: Any, projected: Tensor, conv: Tensor, norm: Tensor | None, out: Tensor, sizes: tuple[int, ...]
    ) -> Tensor:
        inner, heads, state, chunk = sizes
        batch, length, _ = projected.shape
        mixed = projected.new_empty((batch, length, conv.shape[0]))
        states = projected.new_empty((batch, -(-length // chunk), inner, state), dtype=torch.float32)
        scanned = projected.new_empty((batch, length, inner))
        steps = projected.new_empty((2, batch, heads, length), dtype=torch.float32)
        normed = scanned
        statistics = None
        if norm is not None:
            normed = torch.empty_like(scanned)
            statistics = projected.new_empty((batch * length,), dtype=torch.float32)
        if torch.is_autocast_enabled("cpu"):
            normed, out = normed.to(torch.bfloat16), out.to(torch.bfloat16)
        result = functional.linear(normed, out)
        ctx.save_for_backward(projected, conv, scanned, norm, statistics, out)
        ctx.sizes = sizes
        del mixed, states, steps
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        inner, heads, state, chunk = ctx.sizes
        projected, conv, scanned, norm, _, out = ctx.saved_tensors
        batch, length, _ = projected.shape
        again = torch.empty_like(scanned)
        mixed = projected.new_empty((batch, length, conv.shape[0]))
        dprojected, dmixed = torch.empty_like(projected), torch.empty_like(mixed)
        dout = functional.linear(grads[0], out.t())
        dscanned = torch.empty_like(dout) if norm is not None else dout
        states = projected.new_empty((2, batch, -(-length // chunk), inner, state), dtype=torch.float32)
        steps = projected.new_empty((4, batch, heads, length), dtype=torch.float32)
        del states, steps, dscanned, dout
        weight = None
        if ctx.needs_input_grad[3]:
            weight = torch.einsum("bso,bsd->od", grads[0], again.to(grads[0].dtype))
        del again, mixed, dmixed
        dnorm = None if norm is None else torch.empty_like(norm)
        return dprojected, torch.empty_like(conv), dnorm, weight, None


def mamba_split_conv1d_scan_combined(  # noqa: PLR0913 — the kernel's own arguments
    zxbcdt: Tensor,
    conv1d_weight: Tensor,
    conv1d_bias: Tensor | None,
    dt_bias: Tensor,
    A: Tensor,  # noqa: N803 — the kernel's own names
    D: Tensor,  # noqa: N803
    chunk_size: int,
    rmsnorm_weight: Tensor | None = None,
    outproj_weight: Tensor | None = None,
    headdim: int | None = None,
    ngroups: int = 1,
) -> Tensor:
    """Mamba-2's layer between its input projection and the residual stream."""
    del conv1d_bias, dt_bias, A
    assert outproj_weight is not None
    assert headdim is not None
    heads = D.shape[0]
    state = (conv1d_weight.shape[0] - heads * headdim) // ngroups // 2
    result: Tensor = _Combined.apply(
        zxbcdt, conv1d_weight, rmsnorm_weight, outproj_weight, (heads * headdim, heads, state, chunk_size)
    )
    return result


class _Inner(torch.autograd.Function):
    """MambaInnerFn of mamba_ssm (ops/selective_scan_interface.py), checkpoint level 1.

    It saves the projected input, the small projections, B and C, the scan's state at every 2048th token and
    its output; the convolution and the steps are computed again.
    """

    @staticmethod
    def forward(ctx: Any, xz: Tensor, small: Tensor, step: Tensor, out: Tensor, decay: Tensor) -> Tensor:
        batch, double, length = xz.shape
        inner, state, rank = double // 2, decay.shape[1], step.shape[1]
        if torch.is_autocast_enabled("cpu"):
            small, step, out = (one.to(torch.bfloat16) for one in (small, step, out))
        conv = xz.new_empty((batch, inner, length))
        smalls = functional.linear(conv.transpose(1, 2).reshape(-1, inner), small)
        delta = (step @ smalls[:, :rank].t()).view(inner, batch, length).transpose(0, 1)
        before, after = (xz.new_empty((batch, 1, state, length)) for _ in range(2))
        scanned, gated = (xz.new_empty((batch, inner, length)) for _ in range(2))
        marks = xz.new_empty((batch, inner, -(-length // 2048), 2 * state), dtype=torch.float32)
        result = functional.linear(gated.transpose(1, 2), out)
        ctx.save_for_backward(xz, smalls, small, step, out, decay, before, after, marks, scanned)
        del conv, delta, gated
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        xz, smalls, small, step, out, decay, before, after, _, scanned = ctx.saved_tensors
        conv, delta = torch.empty_like(scanned), torch.empty_like(scanned)
        dxz = torch.empty_like(xz)
        dout = functional.linear(grads[0], out.t())
        dconv, ddelta, gated = (torch.empty_like(scanned) for _ in range(3))
        dbefore, dafter = (torch.empty_like(one, dtype=torch.float32) for one in (before, after))
        pairs = zip((small, step, out), ctx.needs_input_grad[1:4], strict=True)
        weights = [torch.empty_like(one) if need else None for one, need in pairs]
        dsmalls = torch.empty_like(smalls)
        del conv, delta, dout, dconv, ddelta, gated, dbefore, dafter, dsmalls
        return dxz, *weights, torch.empty_like(decay)


def mamba_inner_fn(  # noqa: PLR0913
    xz: Tensor,
    conv1d_weight: Tensor,
    conv1d_bias: Tensor | None,
    x_proj_weight: Tensor,
    delta_proj_weight: Tensor,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    A: Tensor,  # noqa: N803
    B: Tensor | None = None,  # noqa: N803
    C: Tensor | None = None,  # noqa: N803
    D: Tensor | None = None,  # noqa: N803
    delta_bias: Tensor | None = None,
    delta_softplus: bool = True,
) -> Tensor:
    """Mamba's layer between its input projection and the residual stream."""
    del conv1d_weight, conv1d_bias, out_proj_bias, B, C, D, delta_bias, delta_softplus
    result: Tensor = _Inner.apply(xz, x_proj_weight, delta_proj_weight, out_proj_weight, A)
    return result


def register() -> None:
    """Make the functions known to transformers, before it loads the code of a model that takes them."""
    module = types.ModuleType("mamba_ssm")
    for function in (mamba_split_conv1d_scan_combined, mamba_inner_fn):
        setattr(module, function.__name__, function)
    sys.modules["mamba_ssm"] = module
