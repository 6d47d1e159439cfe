"""What a trainer's loss takes per logit (rules/frameworks) against what its own functions allocated.

benchmarks/oracle ran them (`python -m oracle trainers`); benchmarks/data/oracle_trainers.jsonl keeps the
numbers, so this needs no PyTorch.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.judge import values_for
from cfglint.engine.run import Run
from cfglint.lang.pack import load
from cfglint.lang.values import Interval

DATA = Path(__file__).resolve().parents[1] / "benchmarks" / "data" / "oracle_trainers.jsonl"
ROWS = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
SMALL = 0.4  # what tiny hidden states, heads and chunks add, in bytes per logit

_TRL = {"model_name_or_path": "Qwen/Qwen2.5-7B", "max_length": 2048, "bf16": True}
_DPO = {**_TRL, "beta": 0.1, "output_dir": "dpo"}
_GRPO = {
    "model_name_or_path": "Qwen/Qwen2.5-7B",
    "num_generations": 8,
    "max_completion_length": 512,
    "bf16": True,
}
_LLAMAFACTORY = {
    "model_name_or_path": "Qwen/Qwen2.5-7B",
    "stage": "dpo",
    "finetuning_type": "full",
    "template": "x",
}
_TITAN = {"model": {"name": "llama3", "flavor": "8B"}, "compile": {"enable": True}}
_OPENRLHF = {"ds": {"packing_samples": True}, "actor": {"entropy_coef": 0.01}}


def _verl(strategy: str = "fsdp", **actor: Any) -> dict[str, Any]:
    return {
        "actor_rollout_ref": {"actor": {"strategy": strategy, **actor}},
        "algorithm": {"adv_estimator": "grpo"},
    }


# A trainer's config, the version, and the row of its loss.
CASES = [
    ("transformers", {"per_device_train_batch_size": 1, "output_dir": "x"}, "", "Trainer", "bf16, bf16 True"),
    ("trl", _DPO, "1.13.0", "DPO", "bf16, bf16 True"),
    ("trl", _DPO, "1.13.0", "DPO", "bf16, bf16 True, precompute_ref_log_probs True"),
    ("trl", {**_DPO, "bf16": False, "dtype": "bfloat16"}, "1.13.0", "DPO", "bf16, bf16 False"),
    ("trl", _GRPO, "1.13.0", "GRPO", "bf16, bf16 True"),
    ("trl", {**_GRPO, "bf16": False, "dtype": "bfloat16"}, "1.13.0", "GRPO", "bf16, bf16 False"),
    ("llamafactory", _LLAMAFACTORY, "", "llamafactory", "with a reference"),
    ("llamafactory", {**_LLAMAFACTORY, "pref_loss": "orpo"}, "", "llamafactory", "preferences"),
    ("verl", _verl(), "0.9.1", "verl", "log-probabilities"),
    ("verl", _verl(), "0.9.0", "verl", "at a temperature"),
    ("verl", _verl(entropy_coeff=0.01), "0.8.0", "verl", "with compiled entropy"),
    ("verl", _verl(entropy_coeff=0.01, use_torch_compile=False), "0.8.0", "verl", "with entropy"),
    ("verl", _verl("megatron"), "0.9.1", "verl on Megatron", "log-probabilities"),
    ("verl", _verl("megatron", entropy_coeff=0.01), "0.9.1", "verl on Megatron", "with entropy"),
    ("torchtitan", _TITAN, "", "torchtitan", "compiled"),
    ("openrlhf", {**_OPENRLHF, "actor": {}}, "", "openrlhf", "log-probabilities"),
    ("nemo_rl", {"policy": {"dtensor_cfg": {"enabled": True}}}, "", "nemo_rl", "FSDP"),
    (
        "nemo_rl",
        {"policy": {"megatron_cfg": {"enabled": True}}},
        "",
        "nemo_rl on Megatron",
        "log-probabilities",
    ),
    ("open_instruct", {"pack_length": 4096}, "", "open_instruct", "GRPO"),
    ("skyrl", {"trainer": {"strategy": "fsdp2"}}, "", "skyrl", "log-probabilities"),
    ("slime", {"hf_checkpoint": "Qwen/Qwen3-4B"}, "", "slime", "eight answers"),
    ("areal", {"actor": {"path": "Qwen/Qwen3-4B", "backend": "fsdp:d8"}}, "", "areal", "chunks"),
    (
        "areal",
        {"actor": {"path": "Qwen/Qwen3-4B", "backend": "megatron:d8"}},
        "",
        "areal on Megatron",
        "chunks",
    ),
    ("prime_rl_sft", {"model": {"name": "Qwen/Qwen3-0.6B"}}, "0.4.0", "prime_rl", "SFT, logits held"),
    ("prime_rl_sft", {"model": {"name": "Qwen/Qwen3-0.6B"}}, "0.6.0", "prime_rl", "SFT"),
]


def bytes_of(framework: str, config: dict[str, Any], version: str) -> Any:
    """Return what the rules say that a logit takes."""
    told = tuple(float(part) for part in version.split(".")) if version else None
    document = read_text(json.dumps(config), "config.json").documents[0]
    subject = Run(load()).subject_of(document, framework, told)
    return values_for(subject, {})["logits.bytes"]


@pytest.mark.parametrize(("framework", "config", "version", "trainer", "loss"), CASES)
def test_the_rules_say_what_the_loss_took(
    framework: str, config: dict[str, Any], version: str, trainer: str, loss: str
) -> None:
    rows = [row for row in ROWS if row["trainer"] == trainer and row["loss"] == loss]
    old = [row for row in rows if version and row["of"].endswith(version)]
    told = bytes_of(framework, config, version)
    low, high = (told.lo, told.hi) if isinstance(told, Interval) else (told, told)
    assert rows
    for row in old or rows:
        took = max(row["forward"], row["backward"])
        assert low - SMALL <= took <= high + SMALL, (row, told)


@pytest.mark.parametrize("trainer", ["SFT", "DPO", "GRPO"])
def test_trl_takes_tiles_of_the_head(trainer: str) -> None:
    """From v1.15 on the loss takes a tile of 32768 rows of the head, and gradients in fp32.

    Where nothing says the version, it may be as much as all logits take.
    """
    (row,) = (
        one
        for one in ROWS
        if one["trainer"] == trainer and one["of"] == "trl 1.16.0" and one["loss"] == "bf16, bf16 True"
    )
    config = {
        **(_GRPO if trainer == "GRPO" else _DPO),
        "dtype": "bfloat16",
        "accelerate_config": "single_gpu",
    }
    document = read_text(json.dumps(config), "config.json").documents[0]
    scored = row["tokens"] // 2 if trainer == "DPO" else row["tokens"]  # prompts, half of them, are left out
    shape = {"tokens": scored, "model.hidden": 8, "model.vocab": row["vocab"], "model.params": 200_000}
    told, untold, before = (
        values_for(Run(load()).subject_of(document, "trl", version), shape)["logits.at_loss"]
        for version in ((1.0, 16.0), None, (1.0, 5.0))
    )
    took = max(row["forward"], row["backward"]) * row["tokens"] * row["vocab"]
    assert told == pytest.approx(took, rel=0.02)
    assert untold.lo == told
    assert untold.hi == (before.hi if isinstance(before, Interval) else before)


def test_other_shapes_take_the_same() -> None:
    """A loss is linear in its logits: a length and a vocabulary that nobody looked at give the same bytes."""
    by_shape = {(row["trainer"], row["loss"], row["of"], row["set"]): row for row in ROWS if "vocab" in row}
    held = [row for row in by_shape.values() if row["set"] == "holdout"]
    assert len(held) >= 25
    for row in held:
        fitted = by_shape[row["trainer"], row["loss"], row["of"], "fit"]
        for moment in ("kept", "forward", "backward"):
            assert row.get(moment) == pytest.approx(fitted.get(moment), abs=0.05), (row, fitted)
