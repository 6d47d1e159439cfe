"""Run a step of Hugging Face's trainers on a tiny model: bytes per logit at each moment.

Trainers, datasets and accelerate are the installed ones, and the tensors are real but on a CPU. The model
has a hidden size of 8, so what a step takes is logits and what comes of them.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.metadata
import tempfile
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch

from oracle.cuda import like_cuda
from oracle.tracker import Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Far more tokens than TRL takes at a time (128 to 4096), but few enough to generate them.
_VOCAB, _HIDDEN, _TOKENS = 8192, 8, 1024
_ANSWER = 256


@dataclass(frozen=True, slots=True)
class Step:
    """A trainer's step; `settings` go to its config class, `rows` is how many sequences a micro-batch has."""

    trainer: str  # Trainer, SFT, DPO, GRPO, KTO
    settings: dict[str, Any] = field(default_factory=dict)
    sequences: int = 2
    weights: str = "bf16"

    @property
    def name(self) -> str:
        """The settings, in a few words."""
        return ", ".join([self.weights, *(f"{key} {value}" for key, value in self.settings.items())])

    @property
    def numbers(self) -> int:
        """Logits of a micro-batch: of both answers in DPO, of the answers alone in GRPO."""
        if self.trainer == "GRPO":
            return self.sequences * _ANSWER * _VOCAB
        return self.sequences * (2 if self.trainer == "DPO" else 1) * _TOKENS * _VOCAB


def tokenizer() -> Any:
    """Return a tokenizer that knows words by their number."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import PreTrainedTokenizerFast

    words = {"<pad>": 0, "<eos>": 1, **{f"w{n}": n for n in range(2, 64)}}
    inner = Tokenizer(WordLevel(words, unk_token="<pad>"))
    inner.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>")


def model(weights: str, where: str) -> Any:
    """Return a Llama of one layer, and keep it in a folder."""
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = LlamaConfig(
        vocab_size=_VOCAB,
        hidden_size=_HIDDEN,
        intermediate_size=_HIDDEN,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=1,
    )
    torch.manual_seed(0)
    made = LlamaForCausalLM(shape).to(torch.bfloat16 if weights == "bf16" else torch.float32)
    made.save_pretrained(where)  # DPO, KTO and GRPO load their reference from where the model came from
    return LlamaForCausalLM.from_pretrained(where, dtype=made.dtype)


def _words(count: int) -> str:
    return " ".join(f"w{2 + n % 60}" for n in range(count))


def _dataset(step: Step) -> Any:
    from datasets import Dataset

    half = _TOKENS // 2
    rows = {
        "Trainer": {"input_ids": [2] * _TOKENS, "labels": [2] * _TOKENS},
        "SFT": {"text": _words(_TOKENS - 1)},
        "DPO": {"prompt": _words(half), "chosen": _words(half), "rejected": _words(half)},
        "KTO": {"prompt": _words(half), "completion": _words(half), "label": True},
        "GRPO": {"prompt": _words(8)},
    }[step.trainer]
    return Dataset.from_list([rows] * 32)


def _trainer(step: Step, where: str) -> Any:
    common = {
        "output_dir": where,
        "per_device_train_batch_size": step.sequences,
        "max_steps": 2,
        "report_to": [],
        "save_strategy": "no",
        "use_cpu": True,
        "logging_steps": 100,
        "optim": "sgd",
        **step.settings,
    }
    if step.trainer == "Trainer":
        from transformers import Trainer, TrainingArguments

        return Trainer(model(step.weights, where), TrainingArguments(**common), train_dataset=_dataset(step))
    import trl

    kind = getattr(trl, f"{step.trainer}Trainer")
    limits: dict[str, Any] = {} if step.trainer == "GRPO" else {"max_length": _TOKENS}
    if step.trainer == "GRPO":
        limits = {"num_generations": step.sequences, "max_completion_length": _ANSWER}
    more: dict[str, Any] = {"reward_funcs": lambda completions, **_: [1.0] * len(completions)}
    return kind(
        model=model(step.weights, where),
        args=getattr(trl, f"{step.trainer}Config")(**limits, **common),
        train_dataset=_dataset(step),
        processing_class=tokenizer(),
        **(more if step.trainer == "GRPO" else {}),
    )


def _watch(trainer: Any, tracker: Tracker, kept: list[int]) -> Callable[..., Any]:
    """Book the forward pass and the backward pass of the second step."""
    step, compute, backward = trainer.training_step, trainer.compute_loss, trainer.accelerator.backward
    steps: list[int] = []
    now = contextlib.ExitStack()

    def computed(*args: Any, **kwargs: Any) -> Any:
        if len(steps) == 2:  # generation and scoring are over
            now.enter_context(tracker)
        tracker.enter("forward")
        found = compute(*args, **kwargs)
        gc.collect()
        kept.append(tracker.total)
        return found

    def backed(*args: Any, **kwargs: Any) -> Any:
        tracker.enter("backward")
        return backward(*args, **kwargs)

    def training_step(*args: Any, **kwargs: Any) -> Any:
        steps.append(1)
        with now:
            return step(*args, **kwargs)

    trainer.compute_loss, trainer.accelerator.backward = computed, backed
    trainer.training_step = training_step
    return training_step


class _Nothing:
    """Stands in for a Triton kernel, which needs a GPU and allocates nothing."""

    def __getitem__(self, grid: object) -> Callable[..., None]:
        return lambda *_, **__: None


@contextlib.contextmanager
def _kernels() -> Iterator[None]:
    """Let TRL take the way that it takes on a GPU, with kernels that do nothing."""
    try:
        from trl.kernels import chunked_logprob
        from trl.trainer import utils
    except ImportError:  # before v1.14
        yield
        return
    with contextlib.ExitStack() as patches:
        for owner, name, put in (
            (chunked_logprob, "_use_triton", lambda _: True),
            (utils, "_use_triton", lambda _: True),
            (chunked_logprob, "_forward_kernel", _Nothing()),
            (chunked_logprob, "_backward_kernel", _Nothing()),
            (chunked_logprob, "_addmm_fp32", lambda *_: None),  # CUDA's adds in place
        ):
            patches.enter_context(mock.patch.object(owner, name, put))
        yield


@contextlib.contextmanager
def _no_prompts(trainer: Any) -> Iterator[None]:
    """Give every answer its full length, whatever the tiny model would say."""
    config = getattr(trainer, "generation_config", None)
    if config is not None:
        config.min_new_tokens, config.eos_token_id = _ANSWER, None
    yield


def measure_step(step: Step) -> dict[str, object]:
    """Return bytes per logit: the most in each pass, and what is kept between them."""
    warnings.simplefilter("ignore")
    kept: list[int] = []
    with tempfile.TemporaryDirectory() as where:
        trainer = _trainer(step, where)
        tracker = Tracker(lambda: ())
        _watch(trainer, tracker, kept)
        with _no_prompts(trainer), _kernels(), like_cuda(autocast=bool(step.settings.get("bf16"))):
            trainer.train()
    most = {phase: round(peak.total / step.numbers, 2) for phase, peak in tracker.peaks.items()}
    package = "transformers" if step.trainer == "Trainer" else "trl"
    return {
        "of": f"{package} {importlib.metadata.version(package)}",
        "tokens": step.numbers // _VOCAB,
        "vocab": _VOCAB,
        "kept": round(kept[-1] / step.numbers, 2),
        **most,
    }


_MIXED = {"bf16": True}
_PLAIN = {"bf16": False}
STEPS = (
    Step("Trainer", _MIXED),
    Step("Trainer", _PLAIN),
    Step("Trainer", _MIXED, weights="fp32"),
    Step("SFT", _MIXED),
    Step("DPO", _MIXED),
    Step("DPO", _PLAIN),
    Step("DPO", _MIXED | {"precompute_ref_log_probs": True}),
    Step("KTO", _MIXED),
    Step("GRPO", _MIXED, sequences=8),
    Step("GRPO", _PLAIN, sequences=8),
)
