"""DeepSpeed's JSON files: which are recognised, and what each fact comes from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cfglint.api import check_file
from cfglint.document.reading import read, read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.values import needs_of

if TYPE_CHECKING:
    from cfglint.facts import Values
    from cfglint.lang.pack import Pack

SHARED = os.environ.get("CFGLINT_SHARED")
CORPUS = Path(SHARED or ".") / "corpus"
FOLDERS = ("accelerate", "axolotl", "deepspeed", "llamafactory")


def _values(pack: Pack, text: str, target: str | None = "h100-sxm:8") -> Values:
    targets = [] if target is None else [parse_target(target)]
    run = Run(pack, targets)
    return run.judged(run.subjects(read_text(text, "c.json"), judge_broken=True)[0])[-1].values


def _file(**sections: str) -> str:
    """A file of these top-level keys beside a micro-batch."""
    keys = {"train_micro_batch_size_per_gpu": "2"} | sections
    return "{" + ", ".join(f'"{key}": {value}' for key, value in keys.items() if value) + "}"


PLAIN = _file()
BATCH = _file(train_micro_batch_size_per_gpu="", train_batch_size="64", zero_optimization='{"stage": 2}')
BOTH = _file(train_batch_size="64")
ALL = _file(train_batch_size="64", gradient_accumulation_steps="4")
AUTO = _file(
    train_micro_batch_size_per_gpu='"auto"',
    train_batch_size='"auto"',
    gradient_accumulation_steps='"auto"',
    bf16='{"enabled": "auto"}',
    fp16='{"enabled": "auto"}',
    zero_optimization='{"stage": 3}',
)
BF16 = _file(bf16='{"enabled": true}')
FP16 = _file(fp16='{"enabled": true}')


def _zero(stage: int, more: str = "", **sections: str) -> str:
    return _file(zero_optimization=f'{{"stage": {stage}{", " if more else ""}{more}}}', **sections)


def _adam(params: str, kind: str = "AdamW") -> str:
    return _file(optimizer=f'{{"type": "{kind}", "params": {{{params}}}}}')


# What the file says, the fact, its value.
TOLD = [
    (PLAIN, "trains", True),
    (PLAIN, "generates", False),
    (_file(hybrid_engine='{"enabled": true}'), "generates", True),
    (PLAIN, "train_backend", "deepspeed"),
    # batches: two of the three settle the third, one alone accumulates nothing
    (PLAIN, "micro_batch_size", 2),
    (PLAIN, "grad_accum", 1),
    (PLAIN, "train_batch_size", 16),
    (PLAIN, "effective_batch_size", 16),
    (BATCH, "micro_batch_size", 8),
    (BATCH, "grad_accum", 1),
    (BOTH, "grad_accum", 4),
    (BOTH, "micro_batch_size", 2),
    (ALL, "train_batch_size", 64),
    (_file(gradient_accumulation_steps="3"), "train_batch_size", 48),
    (_file(gradient_accumulation_steps="null"), "grad_accum", 1),
    # topology
    (PLAIN, "train_gpus", 8),
    (PLAIN, "train_dp", 8),
    (PLAIN, "train_tp", 1),
    (_file(tensor_parallel='{"autotp_size": 2}'), "train_tp", 2),
    (_file(tensor_parallel='{"autotp_size": 2}'), "train_dp", 4),
    (_file(tensor_parallel='{"autotp_size": 0}'), "train_tp", 1),
    (_file(sequence_parallel_size="2"), "sp", 2),
    (_file(sequence_parallel_size="2"), "train_dp", 4),
    (_file(sequence_parallel_size="2"), "train_batch_size", 8),
    (_file(sequence_parallel_size="2", data_parallel_size="4"), "num_gpus", 8),
    # ZeRO
    (PLAIN, "zero_stage", 0),
    (_zero(3), "zero_stage", 3),
    (_file(zero_optimization="true"), "zero_stage", 1),
    (_file(zero_optimization="false"), "zero_stage", 0),
    (PLAIN, "dp_shard", 1),
    (_zero(2), "offload_optimizer", False),
    (_zero(2, '"offload_optimizer": {"device": "cpu"}'), "offload_optimizer", True),
    (_zero(2, '"offload_optimizer": {"device": "none"}'), "offload_optimizer", False),
    (_zero(2, '"offload_optimizer": null'), "offload_optimizer", False),
    (_zero(0, '"offload_optimizer": {"device": "cpu"}'), "offload_optimizer", False),
    (_zero(2, '"cpu_offload": true'), "offload_optimizer", True),
    (_zero(2, '"cpu_offload": false'), "offload_optimizer", False),
    (_zero(2, '"offload_param": {"device": "cpu"}'), "offload_params", False),
    (_zero(3, '"offload_param": {"device": "cpu"}'), "offload_params", True),
    (_zero(3, '"offload_param": {"device": "nvme", "nvme_path": "/d"}'), "offload_params", True),
    (_zero(3, '"cpu_offload_param": true'), "offload_params", True),
    # precision
    (PLAIN, "dtype", "fp32"),
    (PLAIN, "param_dtype", "fp32"),
    (BF16, "dtype", "bf16"),
    (BF16, "param_dtype", "bf16"),
    (FP16, "dtype", "fp16"),
    (_file(bfloat16='{"enabled": true}'), "dtype", "bf16"),
    (_file(bfloat16='{"enabled": true}', bf16="{}"), "dtype", "fp32"),
    (_file(torch_autocast='{"enabled": true, "dtype": "bfloat16"}'), "dtype", "bf16"),
    (_file(torch_autocast='{"enabled": true, "dtype": "float16"}'), "dtype", "fp16"),
    (_file(torch_autocast='{"enabled": true, "dtype": "bfloat16"}'), "param_dtype", "fp32"),
    (BF16, "master_weights", True),
    (PLAIN, "master_weights", False),
    (_zero(2), "master_weights", True),
    (_zero(3), "master_weights", False),
    (BF16, "grad_dtype", "bf16"),
    (_file(bf16='{"enabled": true}', data_types='{"grad_accum_dtype": "fp32"}'), "grad_dtype", "fp32"),
    (_file(bf16='{"enabled": true}', data_types='{"grad_accum_dtype": null}'), "grad_dtype", "bf16"),
    # optimizer
    (_adam(""), "optimizer", "adamw_fused"),
    (_adam('"torch_adam": true'), "optimizer", "adamw"),
    (_adam("", "Lion"), "optimizer", "lion"),
    (_adam("", "Muon"), "optimizer", "muon"),
    (_adam("", "SGD"), "optimizer", "sgd"),
    (_adam('"momentum": 0.9', "SGD"), "optimizer", "sgd_momentum"),
    (_file(compile='{"deepcompile": true}'), "compile", True),
]

# What nothing tells, and the names that would settle it.
UNTOLD = [
    (PLAIN, "model_path", "model_path"),
    (PLAIN, "optimizer", "deepspeed.optimizer"),
    (PLAIN, "lora_rank", "deepspeed.rank"),
    (PLAIN, "gradient_checkpointing", "gradient_checkpointing"),
    (AUTO, "micro_batch_size", "deepspeed.micro"),
    (AUTO, "dtype", "deepspeed.fp16"),
    (AUTO, "train_batch_size", "deepspeed.batch"),
    (_file(elasticity='{"enabled": true}'), "micro_batch_size", "micro_batch_size"),
    (_file(tensor_parallel='{"autotp_size": 2}'), "train_batch_size", "deepspeed.own_ranks"),
    (
        _zero(3, '"offload_optimizer": {"device": "cpu", "ratio": 0.4}'),
        "offload_optimizer",
        "a model of the ratio 0.4",
    ),
    (
        _file(bf16='{"enabled": true, "bf16_master_weights_and_grads": true}'),
        "master_weights",
        "a model of half master",
    ),
    (_file(torch_autocast='{"enabled": true}'), "dtype", "deepspeed.autocast_dtype"),
]


def _ids(rows: list[tuple[str, str, object]]) -> list[str]:
    return [f"{i}-{row[1]}" for i, row in enumerate(rows)]


@pytest.mark.parametrize(("text", "name", "value"), TOLD, ids=_ids(TOLD))
def test_told(pack: Pack, text: str, name: str, value: object) -> None:
    assert _values(pack, text)[name] == value


@pytest.mark.parametrize(("text", "name", "need"), UNTOLD, ids=_ids(UNTOLD))
def test_untold(pack: Pack, text: str, name: str, need: str) -> None:
    found = _values(pack, text)[name]
    assert need in needs_of(found), (found, needs_of(found))


def test_three_batches_tell_the_gpus(pack: Pack) -> None:
    assert _values(pack, ALL, None)["num_gpus"] == 8
    assert needs_of(_values(pack, BOTH, None)["num_gpus"])


OTHERS = [
    '{"train_batch_size": 8, "lr": 0.1}',  # somebody's own loop
    '{"train_batch_size": 8, "optimizer": {"lr": 0.1}}',
    '{"train_batch_size": 8, "fp16": true}',
    '{"hidden_size": 768}',
    '{"deepspeed": {"zero_optimization": {"stage": 2}}}',
]


@pytest.mark.parametrize("text", OTHERS)
def test_not_taken(pack: Pack, text: str) -> None:
    assert not check_file(Run(pack), read(text.encode(), "c.json"), explicit=False)


@pytest.mark.long
@pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no folder of real configs")
def test_the_files_of_the_corpus_and_no_others(pack: Pack) -> None:
    taken = set()
    for path in sorted(CORPUS.rglob("*")):
        if path.suffix not in (".yaml", ".yml", ".json"):
            continue
        run = Run(pack, [parse_target("h100-sxm:8")])
        subjects = run.subjects(read(path.read_bytes(), path.name), judge_broken=False)
        names = {s.framework for s in subjects} if subjects else set()
        if any(getattr(f, "name", f) == "deepspeed" for f in names):
            taken.add(path.relative_to(CORPUS))
            assert check_file(run, read(path.read_bytes(), path.name))
            assert [f for f in run.report.findings if f.level == "error"] == [], path
    told = {p.relative_to(CORPUS) for p in CORPUS.rglob("*.json") if _configures_deepspeed(p)}
    assert taken == told
    assert {name.parts[0] for name in taken} == set(FOLDERS)
    assert len(taken) == 48


def _configures_deepspeed(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return "zero_optimization" in text or "train_batch_size" in text
