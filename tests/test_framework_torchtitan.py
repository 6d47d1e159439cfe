"""torchtitan: which TOML files are its own, and what its keys come to, on small texts and real configs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cfglint.document.reading import read
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from told import point

SHARED = os.environ.get("CFGLINT_SHARED")
CORPUS = Path(SHARED or ".") / "corpus"
needs_corpus = pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no folder of real configs")
SUFFIXES = (".yaml", ".yml", ".json", ".toml")


def config(training: str = "", parallelism: str = "", model: str = "", rest: str = "") -> str:
    named = model or 'name = "llama3"\nflavor = "8B"'
    return f"[model]\n{named}\n[training]\n{training}\n[parallelism]\n{parallelism}\n{rest}\n"


TABLE = [
    (
        "defaults",
        config(),
        {
            "task": "pretrain",
            "trains": True,
            "generates": False,
            "model_path": "meta-llama/Llama-3.1-8B",
            "micro_batch_size": 8,
            "seq_len": 2048,
            "grad_accum": 1,
            "train_dp": 8,
            "effective_batch_size": 64,
            "train_backend": "fsdp",
            "ranks.shard": 8,
            "param_dtype": "fp32",
            "dtype": "bf16",
            "master_weights": False,
            "gradient_checkpointing": "selective",
            "optimizer": "adamw_fused",
            "offload_params": False,
            "fsdp_reshard": True,
            "compile": False,
            "packing": True,
            "fp8_training": False,
            "attn_impl": "sdpa",
            "max_steps": 10000,
            "num_gpus": None,
        },
    ),
    # batch
    ("local", config("local_batch_size = 2"), {"micro_batch_size": 2, "effective_batch_size": 16}),
    (
        "global",
        config("local_batch_size = 2\nglobal_batch_size = 64"),
        {"grad_accum": 4, "effective_batch_size": 64, "train_batch_size": 64},
    ),
    ("one pass", config("global_batch_size = -1"), {"grad_accum": 1, "effective_batch_size": 64}),
    (
        "pipeline",
        config("local_batch_size = 8", "pipeline_parallel_degree = 2"),
        {"micro_batch_size": 1, "n_microbatches": 8, "train_dp": 4, "fsdp_reshard": False},
    ),
    (
        "pipeline parts",
        config("local_batch_size = 8", "pipeline_parallel_degree = 2\npipeline_parallel_microbatch_size = 4"),
        {"micro_batch_size": 4, "n_microbatches": 2, "effective_batch_size": 32},
    ),
    # sizes
    (
        "tp",
        config("", "tensor_parallel_degree = 4"),
        {"train_dp": 2, "ranks.shard": 2, "train_backend": "fsdp", "train_tp": 4},
    ),
    (
        "tp alone",
        config('mixed_precision_param = "bfloat16"', "tensor_parallel_degree = 8"),
        {"train_dp": 1, "train_backend": "ddp", "dtype": "fp32", "param_dtype": "fp32"},
    ),
    (
        "cp",
        config("", "context_parallel_degree = 8"),
        {"train_dp": 1, "cp": 8, "ranks.shard": 8, "train_backend": "fsdp", "dtype": "bf16"},
    ),
    (
        "hsdp",
        config("", "data_parallel_replicate_degree = 2"),
        {"train_dp": 8, "ranks.shard": 4, "dp_replicate": 2},
    ),
    (
        "ddp",
        config("", "data_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 8"),
        {"train_backend": "ddp", "num_gpus": 8, "ranks.shard": 1, "dtype": "bf16"},
    ),
    (
        "fixed",
        config("", "data_parallel_shard_degree = 4\ntensor_parallel_degree = 2"),
        {"num_gpus": 8, "train_gpus": 8, "train_dp": 4},
    ),
    ("experts", config("", "expert_parallel_degree = 4"), {"ep": 4, "etp": 1}),
    ("never", config("", 'fsdp_reshard_after_forward = "never"'), {"fsdp_reshard": False}),
    (
        "always",
        config("", 'fsdp_reshard_after_forward = "always"\npipeline_parallel_degree = 2'),
        {"fsdp_reshard": True},
    ),
    # precision
    (
        "bf16",
        config('dtype = "bfloat16"'),
        {"param_dtype": "bf16", "dtype": "bf16", "master_weights": False},
    ),
    ("fp32", config('mixed_precision_param = "float32"'), {"dtype": "fp32"}),
    (
        "float8",
        config(model='name = "llama3"\nflavor = "8B"\nconverters = ["quantize.linear.float8"]'),
        {"fp8_training": True},
    ),
    # memory
    (
        "no checkpointing",
        config(rest='[activation_checkpoint]\nmode = "none"'),
        {"gradient_checkpointing": "none"},
    ),
    ("full", config(rest='[activation_checkpoint]\nmode = "full"'), {"gradient_checkpointing": "full"}),
    (
        "budget",
        config(rest='[activation_checkpoint]\nmode = "memory_budget"'),
        {"gradient_checkpointing": None},
    ),
    (
        "every third",
        config(rest='[activation_checkpoint]\nselective_ac_option = "3"'),
        {"torchtitan.every": 3},
    ),
    (
        "op",
        config(rest='[activation_checkpoint]\nselective_ac_option = "op"'),
        {"torchtitan.every": 0},
    ),
    (
        "offload",
        config("enable_cpu_offload = true"),
        {"offload_params": True, "offload_optimizer": True},
    ),
    (
        "foreach",
        config(rest='[optimizer]\nimplementation = "foreach"'),
        {"optimizer": "adamw"},
    ),
    ("another", config(rest='[optimizer]\nname = "Muon"'), {"optimizer": None}),
    (
        "in backward",
        config(rest="[optimizer]\nearly_step_in_backward = true"),
        {"optimizer_in_backward": True},
    ),
    ("compile", config(rest="[compile]\nenable = true"), {"compile": True}),
    (
        "loss alone",
        config(rest='[compile]\nenable = true\ncomponents = ["loss"]'),
        {"compile": False},
    ),
    # models
    (
        "qwen",
        config(model='name = "qwen3"\nflavor = "30B-A3B"'),
        {"model_path": "Qwen/Qwen3-30B-A3B", "moe": True},
    ),
    ("debug", config(model='name = "llama3"\nflavor = "debugmodel"'), {"model_path": None}),
    (
        "flex",
        config(model='name = "llama3"\nflavor = "8B_flex"'),
        {"attn_impl": "flex_attention"},
    ),
    ("flux", config(model='name = "flux"\nflavor = "flux-dev"'), {"model_path": None, "seq_len": None}),
    (
        "transformers",
        config(
            model='name = "transformers_modeling_backend"\nflavor = "full"',
            rest='[hf_transformers]\nmodel = "Qwen/Qwen3-4B"',
        ),
        {"model_path": "Qwen/Qwen3-4B"},
    ),
    (
        "the rest",
        config(
            "steps = 1_000\n[training.dataloader]\nnum_workers = 4", rest="[comm]\ntrain_timeout_seconds = 30"
        ),
        {"max_steps": 1000, "dataloader_workers": 4, "comm_timeout": 30},
    ),
]


def _values(pack, text: str, target: str | None = "a100-80gb-sxm:8"):
    run = Run(pack, [parse_target(target)] if target else [])
    (subject,) = run.subjects(read(text.encode(), "x.toml"), judge_broken=False)
    assert subject.framework == "torchtitan"
    return run.judged(subject)[0].values


@pytest.mark.parametrize(("text", "facts"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_binding(pack, text: str, facts: dict[str, object]) -> None:
    values = _values(pack, text)
    assert {name: point(values[name]) for name in facts} == facts


def test_the_launch_says_how_many_gpus(pack) -> None:
    values = _values(pack, config(), None)
    assert point(values["train_gpus"]) is None
    assert point(_values(pack, config(), "a100-80gb-sxm:2")["train_gpus"]) == 2
    assert point(_values(pack, config(), "a100-80gb-sxm:1")["train_backend"]) == "ddp"


def test_older_files_have_other_keys(pack) -> None:
    """Before June 2025 local_batch_size was batch_size; what was renamed with it is not bound."""
    text = '[model]\nflavor = "8B"\n[training]\nbatch_size = 8\n'
    assert not Run(pack).subjects(read(text.encode(), "x.toml"), judge_broken=False)


def _configs(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES and p.stat().st_size < 2**20)


@needs_corpus
def test_its_configs_are_recognised(pack) -> None:
    run = Run(pack)
    found = _configs(CORPUS / "torchtitan_toml")
    assert len(found) == 23
    for path in found:
        subjects = run.subjects(read(path.read_bytes(), path.name), judge_broken=False)
        assert [s.framework for s in subjects] == ["torchtitan"], path


@needs_corpus
def test_no_finding_without_a_target(pack) -> None:
    for path in _configs(CORPUS / "torchtitan_toml"):
        run = Run(pack)
        for subject in run.subjects(read(path.read_bytes(), path.name), judge_broken=False):
            found = run.findings(run.judged(subject))
            assert [f.finding.code for f in found if f.finding.level == "error"] == [], path
