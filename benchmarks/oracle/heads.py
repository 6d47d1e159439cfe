"""Bytes per logit of what stands between a trainer's output layer and its loss, at each moment of a step.

Where a trainer's package installs without a GPU, its own function runs; Triton kernels, which need one, are
left out and allocate nothing. Where it does not install, what its source allocates is in stand_ins.py.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import importlib.util
import sys
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

from oracle.stand_ins import Compiled, FlashCrossEntropy, LogSoftmax, Softmax, compiled, kept_by_compiler
from oracle.tracker import Tracker

if TYPE_CHECKING:
    from collections.abc import Callable

    Score = Callable[[Any, Tensor], Tensor]

_BARE = ("verl", "litgpt")
_HIDDEN = 8  # a hidden state and a head so small that only logits count
SHAPES = {"fit": (4096, 32768), "holdout": (6144, 50280)}  # tokens and vocabulary


@dataclass(frozen=True, slots=True)
class Head:
    """From 16-bit logits to a scalar; `of` is an installed package, or says where the code was read."""

    trainer: str
    name: str
    score: Score
    of: str
    trains: bool = True  # False: it scores answers without gradients
    fp32: bool = False  # the logits are lifted first: by FSDP's output_dtype, Megatron's module, accelerate
    holds: bool = False  # the trainer's loop keeps the logits until the backward pass is over
    parts: int = 0  # the output layer itself works in as many chunks


def bare(package: str) -> None:
    """Make a package's modules importable one by one: what its `__init__` wants may not be there."""
    if package in sys.modules or package not in _BARE:
        return
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(package)
    module = types.ModuleType(package)
    module.__path__ = list(spec.submodule_search_locations)
    module.__spec__ = spec
    sys.modules[package] = module


def own(package: str, module: str, name: str) -> Any:
    """Return a function of an installed trainer."""
    bare(package)
    return getattr(importlib.import_module(f"{package}.{module}"), name)


def version_of(head: Head) -> str:
    """Return the installed version, or where the source was read."""
    if " " in head.of:
        return head.of
    names = importlib.metadata.packages_distributions().get(head.of, [head.of])
    return f"{head.of} {importlib.metadata.version(names[0])}"


def measure_head(head: Head, shape: str) -> dict[str, float]:
    """Return bytes per logit: the most in each pass, and what is kept between them."""
    rows, vocab = SHAPES[shape]
    numbers = rows * vocab
    if compiled_from := getattr(head.score, "original", None):
        large = kept_by_compiler(compiled_from, torch.bfloat16)
        if large:
            raise ValueError(f"{head.trainer}: the compiled {head.name} keeps {large}")
    with FakeTensorMode():
        hidden = torch.zeros(rows, _HIDDEN, dtype=torch.bfloat16, requires_grad=head.trains)
        weight = torch.zeros(vocab, _HIDDEN, dtype=torch.bfloat16)
        labels = torch.zeros(rows, dtype=torch.long)
        tracker = Tracker(lambda: ())
        for tensor in (hidden, weight, labels):
            tracker.hold(tensor, "inputs")
        base = tracker.total
        with tracker, torch.set_grad_enabled(head.trains):
            tracker.enter("forward")
            held: list[Any] = []
            loss = head.score(_logits(head, hidden, weight, held), labels)
            gc.collect()
            kept = tracker.total - base
            if head.trains:
                tracker.enter("backward")
                loss.backward()  # type: ignore[no-untyped-call]
            held.clear()
    most = {phase: (peak.total - base) / numbers for phase, peak in tracker.peaks.items()}
    return {"kept": round(kept / numbers, 2), **{phase: round(value, 2) for phase, value in most.items()}}


def _logits(head: Head, hidden: Tensor, weight: Tensor, held: list[Any]) -> Any:
    if head.parts:
        pieces = [functional.linear(part, weight) for part in hidden.chunk(head.parts)]
        pieces = [piece.float() for piece in pieces] if head.fp32 else pieces
        held += pieces if head.holds else []
        return pieces
    logits = functional.linear(hidden, weight)
    if head.fp32:
        logits = logits.float()
    if head.holds:
        held.append(logits)
    return logits


# ── the heads ──
def _transformers(logits: Tensor, labels: Tensor) -> Tensor:
    loss: Tensor = own("transformers", "loss.loss_utils", "ForCausalLMLoss")(
        logits[None], labels[None], vocab_size=logits.shape[-1]
    )
    return loss


def _flash(*, inplace: bool, entropy: Callable[[Tensor], Tensor] | None = None) -> Score:
    """Return log-probabilities by flash attention's kernel, perhaps with an entropy term."""

    def score(logits: Tensor, labels: Tensor) -> Tensor:
        del labels
        scored: Tensor = FlashCrossEntropy.apply(logits, inplace)
        return scored.sum() + entropy(logits).sum() if entropy else scored.sum()

    return score


def _verl(name: str, *more: int) -> Callable[[Tensor], Tensor]:
    """Return one of verl's entropies."""
    return lambda logits: own("verl", "utils.torch_functional", name)(logits, *more)


def _rows(function: Callable[..., Tensor]) -> Score:
    """Give a function that loops over sequences eight of them."""
    return lambda logits, labels: function(logits.view(8, -1, logits.shape[-1]), labels.view(8, -1)).sum()


def _parts(function: Callable[[Tensor], Tensor], count: int) -> Score:
    """Cut the logits into as many pieces: each gives the whole a gradient of its own."""
    return lambda logits, _: torch.cat([function(part) for part in logits.chunk(count)]).sum()


def _scaled(function: Score) -> Score:
    """Divide by the temperature first."""
    return lambda logits, labels: function(logits / 1.0, labels)


def _only(entropy: Callable[[Tensor], Tensor]) -> Score:
    return lambda logits, _: entropy(logits)


def _selective(logits: Tensor, labels: Tensor) -> Tensor:
    found: Tensor = own("trl", "trainer.utils", "selective_log_softmax")(logits, labels)
    return found


def _verl_torch(logits: Tensor, labels: Tensor) -> Tensor:
    found: Tensor = own("verl", "utils.torch_functional", "logprobs_from_logits_v2")(logits, labels)
    return found


def _litgpt(logits: Tensor, labels: Tensor) -> Tensor:
    loss: Tensor = own("litgpt", "utils", "chunked_cross_entropy")(logits[None, :-1], labels[None, 1:])
    return loss


def _litgpt_chunks(logits: list[Tensor], labels: Tensor) -> Tensor:
    """Take the loss of the head's chunks, which Fabric has lifted to fp32 (finetune/lora.py:355)."""
    pieces = [piece[None] for piece in logits]
    loss: Tensor = own("litgpt", "utils", "chunked_cross_entropy")(pieces, labels[None])
    return loss


def _megatron(logits: Tensor, labels: Tensor) -> Tensor:
    megatron_group()
    module = "core.tensor_parallel.cross_entropy"
    loss: Tensor = own("megatron", module, "vocab_parallel_cross_entropy")(logits, labels)
    return loss.sum()


def _verl_megatron(logits: Tensor, labels: Tensor) -> Tensor:
    """verl/workers/engine/megatron/transformer_impl.py:1209-1239: the entropy works on a copy."""
    copy = logits.clone()
    entropy: Tensor = own("verl", "utils.megatron.tensor_parallel", "vocab_parallel_entropy")(logits)
    return entropy.sum() + _megatron(copy, labels)


def megatron_group() -> None:
    """Make Megatron's groups of one process."""
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    state = importlib.import_module("megatron.core.parallel_state")
    if not dist.is_initialized():
        dist.init_process_group("fake", rank=0, world_size=1, store=FakeStore())
        state.initialize_model_parallel()


def _chunks(logits: list[Tensor], labels: Tensor) -> Tensor:
    """Take the log-softmax of one fp32 chunk at a time."""
    pairs = zip(logits, labels.chunk(len(logits)), strict=True)
    return torch.stack([functional.cross_entropy(x.float(), y, reduction="sum") for x, y in pairs]).sum()


def _compiled_chunks(logits: list[Tensor], labels: Tensor) -> Tensor:
    del labels
    return torch.stack([Compiled.apply(part).sum() for part in logits]).sum()


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(logits, labels, reduction="none").sum()


def _wide_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(logits.float(), labels, reduction="sum")


def _gather(logits: Tensor, labels: Tensor) -> Tensor:
    return logits.float().log_softmax(-1).gather(-1, labels[:, None]).sum()


def _cut(logits: Tensor, labels: Tensor) -> Tensor:
    return logits[:-1].log_softmax(-1).gather(-1, labels[1:, None]).sum()


def _twice(logits: Tensor, labels: Tensor) -> Tensor:
    """Keep the policy's log-softmax while the reference's is computed."""
    loss = _cut(logits, labels)
    with torch.no_grad():
        _cut(torch.empty_like(logits), labels)
    return loss


def _softmax_gather(logits: Tensor, labels: Tensor) -> Tensor:
    return logits.log_softmax(-1).gather(-1, labels[:, None])


def _open_instruct(logits: Tensor, labels: Tensor) -> Tensor:
    """Score a copy at the temperature, compiled, and take its entropy for the log (grpo_utils.py:555-575)."""
    del labels
    logits = logits / 1.0
    scored: Tensor = Compiled.apply(logits)
    with torch.no_grad():
        softmax = logits.softmax(-1)
        torch.logsumexp(logits, -1) - (softmax * logits).sum(-1)
    return scored.sum()


_WIDE = {"fp32": True, "holds": True}
HEADS = (
    Head("transformers", "cross entropy", _transformers, "transformers"),
    Head("trl", "log-softmax of each sequence", _rows(_selective), "trl"),
    Head("trl", "log-softmax of each sequence, fp32", _rows(_selective), "trl", fp32=True),
    Head("trl", "scoring", _rows(_selective), "trl", trains=False),
    Head("trl", "scoring, fp32", _rows(_selective), "trl", trains=False, fp32=True),
    Head("llamafactory", "preferences", _cut, "llamafactory 0.9.5 trainer_utils.py:592", fp32=True),
    Head("llamafactory", "with a reference", _twice, "llamafactory 0.9.5 dpo/trainer.py:222", **_WIDE),
    Head("verl", "log-probabilities", _flash(inplace=True), "verl"),
    Head("verl", "at a temperature", _scaled(_flash(inplace=True)), "verl"),
    Head("verl", "without flash attention", _rows(_verl_torch), "verl"),
    Head("verl", "with entropy", _flash(inplace=False, entropy=_verl("entropy_from_logits")), "verl"),
    Head("verl", "with compiled entropy", _flash(inplace=False, entropy=Compiled.apply), "verl"),
    Head("verl", "scoring with entropy", _only(_verl("entropy_from_logits")), "verl", trains=False),
    Head("verl", "scoring with compiled entropy", _scaled(_only(Compiled.apply)), "verl", trains=False),
    Head("verl on Megatron", "log-probabilities", _megatron, "verl", fp32=True),
    Head("verl on Megatron", "with entropy", _verl_megatron, "verl", fp32=True),
    Head("litgpt", "whole", _litgpt, "litgpt", **_WIDE),
    Head("litgpt", "chunks of 128 tokens", _litgpt_chunks, "litgpt", parts=32, **_WIDE),
    Head("torchtune", "CEWithChunkedOutputLoss", _chunks, "torchtune 0.6.1", parts=8),
    Head("torchtune", "the same, compiled", _compiled_chunks, "torchtune 0.6.1", parts=8),
    Head("torchtitan", "cross entropy", _wide_cross_entropy, "torchtitan 0.3.0 loss.py:60"),
    Head("torchtitan", "compiled", compiled(_wide_cross_entropy), "torchtitan 0.3.0 loss.py:60"),
    Head("prime_rl", "SFT", _cross_entropy, "prime-rl @559b447", fp32=True),
    Head("prime_rl", "SFT, logits held", _cross_entropy, "prime-rl @v0.4.0", **_WIDE),
    Head("prime_rl", "RL without a fused head", _scaled(compiled(_gather)), "prime-rl @559b447", **_WIDE),
    Head("areal", "chunks", _parts(Compiled.apply, 4), "areal 1.0.4", holds=True),
    Head("areal on Megatron", "chunks", _parts(Compiled.apply, 4), "areal 1.0.4", **_WIDE),
    Head("open_instruct", "GRPO", _open_instruct, "open-instruct @e6c3044", holds=True),
    Head("openrlhf", "log-probabilities", _flash(inplace=False), "openrlhf 0.11.2", **_WIDE),
    Head(
        "openrlhf", "with entropy", _flash(inplace=False, entropy=Compiled.apply), "openrlhf 0.11.2", **_WIDE
    ),
    Head("skyrl", "log-probabilities", _flash(inplace=True), "skyrl 0.3.0", holds=True),
    Head("megatron", "cross entropy", _megatron, "megatron"),
    Head("slime", "eight answers", _parts(Softmax.apply, 8), "slime @624b824", **_WIDE),
    Head("nemo_rl", "FSDP", _gather, "NeMo-RL @7ea279a", **_WIDE),
    Head(
        "nemo_rl on Megatron", "log-probabilities", _parts(LogSoftmax.apply, 1), "NeMo-RL @7ea279a", **_WIDE
    ),
)
