"""Where the CPU's composite operators allocate otherwise than CUDA's, do as CUDA does."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._pytree import tree_map

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Operators that autocast runs in fp32 on CUDA and not on a CPU (aten/src/ATen/autocast_mode.h), as far as the
# models here use them. Without these the tanh GELU of GPT-2 and Phi, which takes a power, would stay in bf16.
_FP32 = (
    *((torch, name) for name in ("pow", "rsqrt", "exp", "softmax", "log_softmax", "sum", "cumsum")),
    *(
        (Tensor, name)
        for name in ("pow", "__pow__", "rsqrt", "exp", "softmax", "log_softmax", "sum", "cumsum")
    ),
    *((functional, name) for name in ("softmax", "log_softmax", "layer_norm")),
)


def _wide(leaf: Any) -> Any:
    return leaf.float() if isinstance(leaf, Tensor) and leaf.dtype == torch.bfloat16 else leaf


def _casting(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def cast(*args: Any, **kwargs: Any) -> Any:
        return function(*(tree_map(_wide, args) if torch.is_autocast_enabled("cpu") else args), **kwargs)

    return cast


def _dropout(tensor: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    del inplace
    return torch.native_dropout(tensor, p, training)[0] if training and p else tensor


_is_enabled = torch.is_autocast_enabled


def _enabled(device: str = "cpu") -> bool:
    return _is_enabled(device)


@contextlib.contextmanager
def like_cuda(*, autocast: bool) -> Iterator[None]:
    """Keep a byte per element for dropout, as CUDA's fused kernel does, and cast as CUDA's autocast does."""
    with contextlib.ExitStack() as patches:
        patches.enter_context(mock.patch.object(functional, "dropout", _dropout))
        # PEFT asks for autocast without naming a device, which means CUDA.
        patches.enter_context(mock.patch.object(torch, "is_autocast_enabled", _enabled))
        # A TorchFunctionMode would do, were it not suspended during the backward pass, which recomputes.
        for owner, name in _FP32 if autocast else ():
            patches.enter_context(mock.patch.object(owner, name, _casting(getattr(owner, name))))
        yield
