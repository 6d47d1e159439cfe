"""Optimizers: torch's own where they run with fake tensors, else stand-ins that allocate the same."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import torch
from torch.distributed.tensor import DTensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

_SMALL = 4096  # below this bitsandbytes keeps 32-bit states (min_8bit_size)
_BLOCK = 256  # values that share one scale


def _local(tensor: Tensor) -> Tensor:
    return tensor._local_tensor if isinstance(tensor, DTensor) else tensor  # noqa: SLF001


class _InPlace(torch.optim.Optimizer):
    """One kernel for each tensor, in place: states, and no temporaries."""

    def __init__(self, params: Sequence[Tensor], states: Callable[[Tensor], dict[str, Tensor]]) -> None:
        super().__init__(params, {"lr": 1e-5})
        self._states = states

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        del closure
        for param in itertools.chain.from_iterable(group["params"] for group in self.param_groups):
            if param.grad is not None:
                local = _local(param)
                if not self.state[param]:
                    self.state[param] = self._states(local)
                local.add_(0.0)


def _master(param: Tensor) -> dict[str, Tensor]:
    """FusedAdam of apex and TransformerEngine, with master_weights: fp32 weights and two moments."""
    names = ("master", "exp_avg", "exp_avg_sq")
    return {name: torch.zeros_like(param, dtype=torch.float32) for name in names}


def _eight_bit(wide: frozenset[int]) -> Callable[[Tensor], dict[str, Tensor]]:
    """AdamW8bit of bitsandbytes: two bytes for a parameter and two fp32 scales for a block of them."""

    def states(param: Tensor) -> dict[str, Tensor]:
        if param.numel() < _SMALL or id(param) in wide:
            return {name: torch.zeros_like(param, dtype=torch.float32) for name in ("state1", "state2")}
        blocks = -(-param.numel() // _BLOCK)
        return {
            **{name: torch.zeros_like(param, dtype=torch.uint8) for name in ("state1", "state2")},
            **{name: param.new_zeros(blocks, dtype=torch.float32) for name in ("absmax1", "absmax2")},
        }

    return states


def make(
    kind: str, params: Sequence[Tensor], *, master: bool, wide: Sequence[Tensor]
) -> torch.optim.Optimizer:
    """Return an optimizer; `wide` are parameters whose states stay 32-bit in an 8-bit optimizer."""
    if master:
        if kind not in ("adamw", "adamw_fused"):
            raise NotImplementedError(f"master weights with {kind}")
        return _InPlace(params, _master)
    match kind:
        case "adamw":
            return torch.optim.AdamW(params, lr=1e-5, foreach=True)  # torch's default on CUDA
        case "adamw_fused":
            return torch.optim.AdamW(params, lr=1e-5, fused=True)
        case "sgd" | "sgd_momentum":
            momentum = 0.9 if kind == "sgd_momentum" else 0.0
            return torch.optim.SGD(params, lr=1e-5, momentum=momentum, foreach=True)
        case "adamw_8bit":
            return _InPlace(params, _eight_bit(frozenset(id(_local(param)) for param in wide)))
        case "adafactor":
            from transformers.optimization import Adafactor

            # As transformers' Trainer makes it.
            return Adafactor(params, lr=1e-5, scale_parameter=False, relative_step=False)
    raise NotImplementedError(f"optimizer {kind}")
