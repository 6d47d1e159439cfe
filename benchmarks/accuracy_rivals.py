"""What people ask today: the arithmetic of seven public estimators for one GPU, to hold cfglint against.

Each is written anew from its source, and answers only what it knows of: most know neither adapters nor
quantization, and then say what full fine-tuning takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accuracy_rows import GIB, Estimate, values_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cfglint.facts import Values

_ONE = ("train_tp", "pp", "cp", "sp", "ep", "num_gpus", "micro_batch_size")


# What the estimators ask of a row beside numbers, where its config tells.
_ASKED = (
    *("train_backend", "zero_stage", "gradient_checkpointing", "param_dtype", "dtype", "master_weights"),
    *("quantization", "lora_rank", "offload_params", "offload_optimizer"),
)
_NOTHING = (0, False, "none")


class Job:
    """A row's numbers, as the estimators ask for them; attributes are None where the row leaves them open."""

    def __init__(self, row: Mapping[str, Any], values: Values) -> None:
        told = {name: values[name] for name in _ASKED} if "config" in row else {}
        self.facts: Mapping[str, Any] = row["facts"] | {
            name: one for name, one in told.items() if isinstance(one, (int, str)) and one not in _NOTHING
        }
        self.values = values
        self.tp, self.pp, self.cp, self.sp, self.ep, self.gpus, self.batch = (
            self.number(name) or 1.0 for name in _ONE
        )
        self.dp = max(1.0, self.gpus / (self.tp * self.pp * self.cp * self.sp))

    def number(self, name: str) -> float | None:
        """Return a fact's value, if it is one number."""
        value = self.values[name]
        return float(value) if isinstance(value, (int, float)) else None

    def shape(self, *names: str) -> list[float] | None:
        """Return facts of the model, None if one of them is open."""
        found = [self.number(f"model.{name}") for name in names]
        return None if None in found else [one for one in found if one is not None]

    @property
    def tokens(self) -> float | None:
        """Tokens of a micro-batch on one rank."""
        length = self.number("seq_len")
        return None if length is None else self.batch * length / (self.cp * self.sp)

    @property
    def stage(self) -> int:
        """The ZeRO stage; FSDP counts as the third, Megatron's distributed optimizer as the first."""
        usual = {"fsdp": 3, "megatron": 1}
        return int(self.facts.get("zero_stage", usual.get(self.facts.get("train_backend", ""), 0)))

    @property
    def recomputes(self) -> str:
        """None, selective or full."""
        return str(self.facts.get("gradient_checkpointing", "none"))


def deepspeed(job: Job) -> float | None:
    """DeepSpeed's estimate_zero2/3_model_states_mem_needs (stage_1_and_2.py:3089-3096, stage3.py:3744-3780).

    Without a stage, FSDP counts as stage 3 and a lone GPU as stage 2. It knows neither adapters nor
    activations. The largest layer is the module with most parameters of its own: the embedding.
    """
    shape = job.shape("params", "vocab", "hidden")
    params, facts = job.number("model.params"), job.facts
    if params is None:
        return None
    stage = facts.get("zero_stage", 3 if facts.get("train_backend") == "fsdp" else 2)
    if stage == 0:
        return 18 * params
    if stage in (1, 2):
        return 2 * params if facts.get("offload_optimizer") else 2 * params + 18 * params / job.gpus
    if shape is None:
        return None
    largest = 4 * shape[1] * shape[2]
    if facts.get("offload_params"):
        return largest
    return largest + (2 if facts.get("offload_optimizer") else 18) * params / job.gpus


def accelerate(job: Job) -> float | None:
    """``accelerate estimate-memory``, "Training using Adam": 16 bytes a parameter in fp32, 8 in 16 bits.

    The largest of model, gradients, optimizer and step (commands/estimate.py @00e4d264); for quantized models
    it says N/A. It knows one GPU, so its number is not divided.
    """
    params = job.number("model.params")
    if params is None or job.facts.get("quantization"):
        return None
    return params * (16 if job.facts.get("param_dtype", job.facts.get("dtype")) == "fp32" else 8)


def sixteen(job: Job) -> float | None:
    """Sixteen bytes a parameter, over all GPUs (the ZeRO paper's count of Adam in mixed precision)."""
    params = job.number("model.params")
    return None if params is None else 16 * params / job.gpus


def megatron(job: Job) -> float | None:
    """Megatron's report_theoretical_memory (megatron/training/theoretical_memory_usage.py @00caa53a).

    18 bytes a parameter, or 6 and 12 shared by the data-parallel ranks; activations by Korthikanti et al.
    2022, with sequence parallelism and selective recomputation or without either. It knows no full one.
    """
    shape = job.shape("params", "vocab", "hidden", "layers", "ffn")
    if shape is None or job.tokens is None:
        return None
    params, vocab, hidden, layers, ffn = shape
    table = vocab * hidden
    tables = table if job.values["model.tied"] is True else 2 * table
    most = ((params - tables) / job.pp + (tables if job.pp == 1 else table)) / job.tp
    states = most * (6 + 12 / job.dp if job.stage else 18)
    at_once = min(1.0, (job.number("n_microbatches") or job.pp) / job.pp)
    if job.recomputes == "selective":
        kept = job.tokens * hidden * (18 + 4 * ffn / hidden) * layers + job.tokens * (8 + hidden) * job.pp
        kept = kept * at_once + (4 * job.tokens * (hidden + vocab) if job.pp == 1 else 0)
        return states + kept / job.tp
    kept = job.tokens * hidden * (10 + 24 / job.tp) * layers + job.tokens * (8 + hidden) * job.pp
    return states + 1.05 * (
        kept * at_once + (2 * job.tokens * (vocab / job.tp + hidden) if job.pp == 1 else 0)
    )


def llm_analysis(job: Job) -> float | None:
    """llm-analysis' estimated_peak_memory_per_gpu (llm_analysis/analysis.py:553-770, 2470 @d841e40a).

    Its defaults: 16-bit weights, Adam with fp32 copies (12 bytes), fp32 gradients, flash attention, dropout.
    """
    shape = job.shape("params", "vocab", "hidden", "layers", "ffn", "heads")
    if shape is None or job.tokens is None:
        return None
    params, vocab, hidden, layers, ffn, heads = shape
    top = max(1.0, job.number("model.experts_per_token") or 1.0)
    local, wide = params / (job.tp * job.pp), job.tokens * hidden
    states = local * (2 / (job.dp if job.stage == 3 else 1) + 12 / (job.dp if job.stage else 1))
    gradients = local * 4 / (job.dp if job.stage >= 2 else 1)
    attention = 0.0 if job.recomputes == "selective" else (2 * wide + 4 * heads * job.tokens) * 2 / job.tp
    layer = (2 * wide + 8 * wide / job.tp) + attention + wide
    layer += 2 * wide + 4 * ffn * job.tokens * top / job.tp + 8 * wide
    if job.recomputes == "full":
        layer = 2 * wide / job.tp
    logits = 2 * vocab * job.tokens / job.tp
    kept = layer * layers + 2 * wide / job.tp + logits + 4 * wide
    prefetched = 4 * (params - 2 * vocab * hidden) / layers / job.tp
    return states + max(kept, gradients) + max(prefetched, logits)


def cookbook(job: Job) -> float | None:
    """EleutherAI's transformer-math calculator (cookbook calc/calc_transformer_mem.py:267-388 @827ee3b2).

    Mixed precision with fp32 gradients, Adam's 12 bytes, ZeRO's buckets of 5e8 elements and 1e9 live
    parameters; with checkpointing it counts all but the attention's scores. ZeRO stage 1 is its default.
    """
    shape = job.shape("params", "hidden", "layers", "heads")
    length = job.number("seq_len")
    if shape is None or job.tokens is None or length is None:
        return None
    params, hidden, layers, heads = shape
    stage = job.stage or 1
    states = 2 * params / (job.tp * job.pp) / (job.gpus if stage == 3 else 1)
    states += 4 * params / (job.gpus if stage >= 2 else 1) + 12 * params / job.gpus
    buckets = 0.0 if job.gpus == 1 else 1e9 + (2e9 if stage == 3 else 0)
    per = 34 + (0 if job.recomputes == "full" else 5 * heads * length / hidden)
    return states + buckets + job.batch * length * hidden * layers * per


def llama_factory(job: Job) -> float | None:
    """LLaMA-Factory's table of hardware (README.md "Hardware Requirement" @00409ff2), over all GPUs.

    GB per billion parameters: 18 for mixed precision, 8 for pure bf16, 2 with adapters, or the bits' share of
    a byte where quantized.
    """
    params = job.number("model.params")
    if params is None:
        return None
    bits = job.facts.get("quantization")
    if job.facts.get("lora_rank"):
        each = {4: 0.5, 8: 1.0}.get(bits, 2.0) if bits else 2.0
    else:
        pure = job.facts.get("param_dtype", job.facts.get("dtype")) != "fp32"
        each = 8.0 if pure and not job.facts.get("master_weights") else 18.0
    return params * each / job.gpus


ASKED: dict[str, Callable[[Job], float | None]] = {
    "DeepSpeed": deepspeed,
    "accelerate": accelerate,
    "16 B/param": sixteen,
    "Megatron": megatron,
    "llm-analysis": llm_analysis,
    "EleutherAI cookbook": cookbook,
    "LLaMA-Factory's table": llama_factory,
}
NAMES = tuple(ASKED)


def rivals(row: Mapping[str, Any]) -> dict[str, Estimate | None]:
    """Return what each says of a training row, None where it says nothing."""
    if row["facts"].get("task") == "inference" or row.get("of", "trainer") != "trainer":
        return dict.fromkeys(NAMES)
    job = Job(row, values_of(row))
    told = {name: ask(job) for name, ask in ASKED.items()}
    return {name: None if one is None else Estimate(one / GIB, one / GIB) for name, one in told.items()}
