"""What people ask today: the arithmetic of three estimators for one GPU, to hold cfglint against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accuracy_rows import GIB, Estimate, values_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cfglint.facts import Values

NAMES = ("deepspeed", "accelerate", "16 B/param")


def _number(values: Values, name: str) -> float | None:
    value = values[name]
    return float(value) if isinstance(value, (int, float)) else None


def deepspeed(row: Mapping[str, Any], values: Values) -> float | None:
    """DeepSpeed's estimate_zero2/3_model_states_mem_needs (stage_1_and_2.py:3089-3096, stage3.py:3744-3780).

    Without a stage, FSDP counts as stage 3 and a lone GPU as stage 2. It knows neither adapters nor
    activations. The largest layer is the module with most parameters of its own: the embedding.
    """
    facts = row["facts"]
    params, vocab, hidden = (_number(values, f"model.{name}") for name in ("params", "vocab", "hidden"))
    if params is None:
        return None
    gpus = float(facts.get("num_gpus", 1))
    stage = facts.get("zero_stage", 3 if facts.get("train_backend") == "fsdp" else 2)
    if stage == 0:
        return 18 * params
    if stage in (1, 2):
        return 2 * params if facts.get("offload_optimizer") else 2 * params + 18 * params / gpus
    if vocab is None or hidden is None:
        return None
    largest = 4 * vocab * hidden
    if facts.get("offload_params"):
        return largest
    return largest + (2 if facts.get("offload_optimizer") else 18) * params / gpus


def accelerate(row: Mapping[str, Any], values: Values) -> float | None:
    """``accelerate estimate-memory``, "Training using Adam": 16 bytes a parameter in fp32, 8 in 16 bits.

    The largest of model, gradients, optimizer and step (commands/estimate.py @00e4d264); for quantized models
    it says N/A. It knows one GPU, so its number is not divided.
    """
    params, facts = _number(values, "model.params"), row["facts"]
    if params is None or facts.get("quantization"):
        return None
    return params * (16 if facts.get("param_dtype", facts.get("dtype")) == "fp32" else 8)


def sixteen(row: Mapping[str, Any], values: Values) -> float | None:
    """Sixteen bytes a parameter, over all GPUs (the ZeRO paper's count of Adam in mixed precision)."""
    params, gpus = _number(values, "model.params"), row["facts"].get("num_gpus", 1)
    return None if params is None else 16 * params / float(gpus)


def rivals(row: Mapping[str, Any]) -> dict[str, Estimate | None]:
    """Return what each says of a training row, None where it says nothing."""
    if row["facts"].get("task") == "inference" or row.get("of", "trainer") != "trainer":
        return dict.fromkeys(NAMES)
    values = values_of(row)
    found: dict[str, Estimate | None] = {}
    for name, ask in zip(NAMES, (deepspeed, accelerate, sixteen), strict=True):
        told = ask(row, values)
        found[name] = None if told is None else Estimate(told / GIB, told / GIB)
    return found
