"""The allocations of losses whose package needs a GPU: facts read in their source, which each names."""

# ruff: noqa: D102 (what forward and backward of an autograd function are)
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


class FlashCrossEntropy(torch.autograd.Function):
    """flash_attn/ops/triton/cross_entropy.py: keeps the logits, and may write their gradient over them."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, inplace: bool) -> Tensor:
        ctx.save_for_backward(logits)
        ctx.inplace = inplace
        return logits.new_empty(logits.shape[0], dtype=torch.float32)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        del grads
        (logits,) = ctx.saved_tensors
        return (logits if ctx.inplace else torch.empty_like(logits)), None


class Softmax(torch.autograd.Function):
    """slime/utils/ppo_utils.py:187-336 @624b824: one new tensor becomes the softmax and then the gradient."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        softmax = (logits.float() - logits.amax(-1, keepdim=True)).exp_()
        ctx.save_for_backward(softmax)
        return softmax.sum(-1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (softmax,) = ctx.saved_tensors
        result: Tensor = softmax.neg_().mul_(grads[0].unsqueeze(-1))
        return result


class LogSoftmax(torch.autograd.Function):
    """nemo_rl/distributed/model_utils.py:120-207 @7ea279a: keeps the softmax, and makes a new gradient."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        shifted = logits.float() - logits.amax(-1, keepdim=True)
        logprobs = shifted - shifted.exp().sum(-1, keepdim=True).log()
        del shifted
        ctx.save_for_backward(logprobs.exp())
        return logprobs.sum(-1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (softmax,) = ctx.saved_tensors
        result: Tensor = softmax.neg().mul_(grads[0].unsqueeze(-1))
        return result


class Compiled(torch.autograd.Function):
    """A compiled log-softmax, gather or entropy: it keeps the logits and a number for each row."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        ctx.save_for_backward(logits)
        return logits.new_empty(logits.shape[0], dtype=torch.float32)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        del grads
        (logits,) = ctx.saved_tensors
        return torch.empty_like(logits)


def compiled(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Stand in for a compiled function that keeps nothing but its logits, as kept_by_compiler tells."""

    def score(logits: Tensor, labels: Tensor) -> Tensor:
        del labels
        result: Tensor = Compiled.apply(logits)
        return result.sum()

    score.original = function  # type: ignore[attr-defined]
    return score


def kept_by_compiler(function: Callable[[Tensor, Tensor], Tensor], dtype: torch.dtype) -> list[str]:
    """Return the large tensors that a compiled function keeps for its backward pass, besides its input."""
    from functorch.compile import aot_function, make_boxed_func, min_cut_rematerialization_partition
    from torch._inductor.decomposition import select_decomp_table

    rows, vocab = 64, 512
    found: list[str] = []

    def forward(graph: Any, inputs: Any) -> Any:
        del inputs
        outputs = next(node for node in graph.graph.nodes if node.op == "output").args[0]
        for node in outputs:
            value = getattr(node, "meta", {}).get("val")
            if isinstance(value, Tensor) and value.numel() >= rows * vocab and node.op != "placeholder":
                found.append(str(value.dtype))
        return make_boxed_func(graph.forward)

    logits = torch.randn(rows, vocab, dtype=dtype, requires_grad=True)
    labels = torch.zeros(rows, dtype=torch.long)
    run = aot_function(
        function,
        fw_compiler=forward,
        bw_compiler=lambda graph, _: make_boxed_func(graph.forward),
        partition_fn=min_cut_rematerialization_partition,
        decompositions=select_decomp_table(),
    )
    run(logits, labels).sum().backward()
    return found
