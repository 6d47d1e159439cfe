"""Linear layers of bitsandbytes in 4 bits: their storages, what they save, and their temporaries.

bitsandbytes' own kernels refuse fake tensors on a CPU. The layers here are of its class, so that PEFT puts
its own adapters for 4-bit layers on them; read in bitsandbytes 0.50.2:

- nn/modules.py:609-637, Linear4bit.forward: the input is cast to the compute dtype, the output back to the
  input's.
- autograd/_functions.py:300-394, MatMul4Bit: saves the packed weight and not its input; the backward pass
  dequantizes the whole weight in the compute dtype. So does the forward pass, but for few rows
  (backends/cuda/ops.py:584-800).
- functional.py: 4 bits a weight and a 32-bit scale for 64 of them; with double quantization an 8-bit scale,
  and a 32-bit one for 256 of those. Dequantization makes all scales fp32 first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import bitsandbytes as bnb
import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_BLOCK = 64  # weights that share a scale
_NESTED = 256  # scales that share one, with double quantization


def _dequantize(packed: Tensor, shape: tuple[int, int], dtype: torch.dtype, *, nested: bool) -> Tensor:
    scales = packed.new_empty(math.ceil(math.prod(shape) / _BLOCK), dtype=torch.float32) if nested else None
    weight = packed.new_empty(shape, dtype=dtype)
    del scales  # alive until the kernel is done
    return weight


class _MatMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, packed: Tensor, shape: tuple[int, int], nested: bool) -> Tensor:
        ctx.packed, ctx.shape, ctx.nested = packed, shape, nested
        return nn.functional.linear(rows, _dequantize(packed, shape, rows.dtype, nested=nested))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        weight = _dequantize(ctx.packed, ctx.shape, grads[0].dtype, nested=ctx.nested)
        return torch.matmul(grads[0], weight), None, None, None


class Linear4bit(bnb.nn.Linear4bit):
    """A 4-bit layer that has its shape only."""

    def __init__(self, layer: nn.Linear, compute: torch.dtype, *, nested: bool) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        numbers = self.in_features * self.out_features
        packed = nn.Parameter(torch.empty((-(-numbers // 2), 1), dtype=torch.uint8), requires_grad=False)
        packed.compress_statistics, packed.quant_type = nested, "nf4"  # type: ignore[attr-defined]
        self.weight = packed
        self.bias = layer.bias
        self.compute_dtype, self.nested = compute, nested
        scales = math.ceil(numbers / _BLOCK)
        self.register_buffer("absmax", torch.empty(scales, dtype=torch.uint8 if nested else torch.float32))
        if nested:
            self.register_buffer("absmax2", torch.empty(math.ceil(scales / _NESTED), dtype=torch.float32))

    def forward(self, x: Tensor) -> Tensor:
        """Return the product as bitsandbytes makes it."""
        shape = (self.out_features, self.in_features)
        out: Tensor = _MatMul.apply(x.to(self.compute_dtype), self.weight, shape, self.nested)
        if self.bias is not None:
            out += self.bias.to(self.compute_dtype)
        return out.to(x.dtype)


def quantize(model: PreTrainedModel, compute: torch.dtype, *, nested: bool) -> None:
    """Replace all linear layers but the output layer, as transformers does at loading."""
    named = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Linear)}
    head = model.get_output_embeddings()
    for name, layer in named.items():
        if layer is not head:
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, Linear4bit(layer, compute, nested=nested))
    model.is_loaded_in_4bit = True
    model.config._is_quantized, model.config.dtype = True, compute  # noqa: SLF001 — as transformers marks it


def lift(model: PreTrainedModel, kind: str) -> None:
    """Freeze the model and cast the rest to fp32, by PEFT itself, or the norms only."""
    if kind == "rest":
        from peft import prepare_model_for_kbit_training

        prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
        return
    for name, parameter in model.named_parameters():
        parameter.requires_grad = False
        if kind == "norms" and "norm" in name:
            parameter.data = parameter.data.float()
