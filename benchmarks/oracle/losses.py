"""From the last hidden state to a loss, in chunks or as Liger's kernel does it; and to log-probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn
    from transformers import PreTrainedModel


def _chunked(hidden: Tensor, head: nn.Linear, labels: Tensor, chunks: int, softcap: float | None) -> Tensor:
    """Logits of one chunk at a time, computed again in the backward pass (torchtune, TRL)."""

    def part(rows: Tensor, wanted: Tensor) -> Tensor:
        logits = functional.linear(rows, head.weight, head.bias)
        if softcap is not None:
            logits = torch.tanh(logits / softcap) * softcap
        return functional.cross_entropy(logits.float(), wanted, reduction="sum")

    total = hidden.new_zeros((), dtype=torch.float32)
    for rows, wanted in zip(hidden.chunk(chunks), labels.chunk(chunks), strict=True):
        total = total + checkpoint(part, rows, wanted, use_reentrant=False)
    return total / labels.numel()


class _Liger(torch.autograd.Function):
    """The allocations of Liger 0.8.5 (ops/fused_linear_cross_entropy.py); its Triton kernels work in place.

    Gradients are made in the forward pass, for as many rows at a time as take the memory of the hidden state.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
        tokens, width = hidden.shape
        rows = min(tokens, 1 << (-(-tokens // -(-weight.shape[0] // width)) - 1).bit_length())
        autocast = torch.is_autocast_enabled("cpu")
        grad_hidden = torch.zeros_like(hidden)
        grad_weight = torch.zeros_like(weight) if weight.requires_grad else None
        losses = hidden.new_zeros(tokens, dtype=torch.float32)
        buffer = None if autocast else hidden.new_empty((rows, weight.shape[0]))
        for start in range(0, tokens, rows):
            piece = hidden[start : start + rows]
            if buffer is None:
                logits = piece @ weight.t()
            else:
                logits = torch.mm(piece, weight.t(), out=buffer[: len(piece)])
            losses[start : start + rows] = labels[start : start + rows]
            if buffer is None:
                grad_hidden[start : start + rows] = logits @ weight
            else:
                torch.mm(logits, weight, out=grad_hidden[start : start + rows])
            if grad_weight is not None:
                same = piece.to(logits.dtype)
                # Liger's addmm adds bf16 products to an fp32 sum in place. The CPU has none; what stands in
                # under autocast allocates as little, nothing.
                if autocast:
                    grad_weight.add_(0.0)
                else:
                    grad_weight.addmm_(logits.t(), same)
                del same
            del logits, piece
        ctx.save_for_backward(grad_hidden, grad_weight)
        return losses.sum()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor | None, None]:
        del grads
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden, grad_weight, None


def loss_function(kind: str, chunks: int) -> Callable[[Tensor, nn.Linear, Tensor, float | None], Tensor]:
    """Return a function of the last hidden state, the output layer, the labels and the logits' soft cap."""

    def apply(hidden: Tensor, head: nn.Linear, labels: Tensor, softcap: float | None) -> Tensor:
        hidden, labels = hidden.flatten(0, 1), labels.flatten()
        if kind == "chunked":
            return _chunked(hidden, head, labels, chunks, softcap)
        loss: Tensor = _Liger.apply(hidden, head.weight, labels)
        return loss

    return apply


_SEEN = ("pixel_values", "token_type_ids")


def install(model: PreTrainedModel, kind: str, chunks: int) -> None:
    """Replace the model's forward by one that ends in a loss of this kind.

    The loss belongs inside the model's forward pass: FSDP gathers the output layer only there.
    """
    compute = loss_function(kind, chunks)
    softcap = getattr(model.config, "final_logit_softcapping", None)

    decoder = model.model if model.base_model is model else model.base_model

    def forward(input_ids: Tensor, labels: Tensor, **kwargs: Any) -> Any:
        seen = {name: kwargs[name] for name in _SEEN if name in kwargs}  # without what PEFT passes through
        hidden = decoder(input_ids=input_ids, **seen).last_hidden_state
        return {"loss": compute(hidden, model.lm_head, labels, softcap)}

    model.forward = forward


def log_probabilities(logits: Tensor, labels: Tensor) -> Tensor:
    """Return each label's log-probability, in fp32, as RL trainers score answers."""
    return logits.float().log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
