"""prime-rl: which TOML files are its own, and what its keys come to, on small texts."""

from __future__ import annotations

import pytest

from cfglint.document.reading import read
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from told import point

BASE = """
[orchestrator]
{orchestrator}
[[orchestrator.train.source]]
name = "sums"
[trainer.optim]
lr = 1e-6
{optim}
[trainer.model]
{model}
[inference.vllm]
{vllm}
"""


def config(top: str = "", orchestrator: str = "", optim: str = "", model: str = "", vllm: str = "") -> str:
    return top + BASE.format(orchestrator=orchestrator, optim=optim, model=model, vllm=vllm)


NODES = '[deployment]\ntype = "multi_node"\nnum_train_nodes = 4\n'
SAMPLING = "[orchestrator.train.sampling]\nmax_completion_tokens = 512\n"
TABLE = [
    (
        "defaults",
        config(),
        {
            "task": "grpo",
            "trains": True,
            "generates": True,
            "colocated": False,
            "model_path": "Qwen/Qwen3-0.6B",
            "train_gpus": 1,
            "rollout_gpus": 1,
            "num_gpus": 2,
            "gpus_per_node": 8,
            "train_batch_size": 128,
            "n_samples": 1,
            "seq_len": 2048,
            "dtype": "bf16",
            "param_dtype": "fp32",
            "lora_rank": 0,
            "gradient_checkpointing": "full",
            "activation_offload": True,
            "offload_optimizer": True,
            "offload_params": False,
            "optimizer": "adamw_fused",
            "compile": True,
            "fused_loss": "chunked",
            "loss_chunks": 1,
            "rollout_engine": "vllm",
            "mem_fraction": 0.9,
            "rollout_tp": 1,
            "context_length": 40960,
            "max_new_tokens": None,
            "weight_update_mode": "nccl",
            "reference.present": False,
        },
    ),
    ("shared", config('seq_len = 8192\n[model]\nname = "m"\n'), {"model_path": "m", "seq_len": 8192}),
    ("own length", config("seq_len = 8192\n", model="seq_len = 4096"), {"seq_len": 4096}),
    ("own model", config(model='name = "m"'), {"model_path": "m"}),
    (
        "one node",
        config("[deployment]\nnum_train_gpus = 2\nnum_infer_gpus = 6\n", vllm="tensor_parallel_size = 2"),
        {"train_gpus": 2, "rollout_gpus": 6, "rollout_tp": 2, "rollout_dp": 3, "train_dp": 2, "num_nodes": 1},
    ),
    (
        "nodes",
        config(NODES + "num_infer_nodes = 12\n", model="cp = 2"),
        {"train_gpus": 32, "rollout_gpus": 96, "cp": 2, "train_dp": 16},
    ),
    (
        "nodes of the engine unknown",
        config(NODES),
        {"train_gpus": 32, "rollout_gpus": None},
    ),
    (
        "batch",
        config(orchestrator="batch_size = 512\ngroup_size = 16"),
        {"train_batch_size": 512, "n_samples": 16, "rollout_batch_size": 32},
    ),
    ("tokens", config(orchestrator="token_batch_size = 65_536"), {"train_batch_size": None}),
    ("lora", config(model="[trainer.model.lora]"), {"lora_rank": 16, "weight_update_mode": "filesystem"}),
    ("rank", config(model="[trainer.model.lora]\nrank = 8"), {"lora_rank": 8, "lora.q": True}),
    ("no lora", config(model='lora = "None"'), {"lora_rank": 0}),
    ("bf16", config(model='optimization_dtype = "bfloat16"'), {"param_dtype": "bf16"}),
    (
        "no checkpointing",
        config(model='ac = "None"\nac_offloading = "None"'),
        {"gradient_checkpointing": "none"},
    ),
    (
        "offloading switches it on",
        config(model='ac = "None"'),
        {"gradient_checkpointing": "full", "activation_offload": True},
    ),
    (
        "no offloading",
        config(model='ac_offloading = "None"'),
        {"gradient_checkpointing": "full", "activation_offload": False},
    ),
    ("offloading", config(model="[trainer.model.ac_offloading]"), {"activation_offload": True}),
    ("some layers", config(model="[trainer.model.ac]\nfreq = 2"), {"gradient_checkpointing": None}),
    ("parts", config(model='[trainer.model.ac]\nmode = "selective"'), {"gradient_checkpointing": None}),
    ("states here", config(model="optim_cpu_offload = false"), {"offload_optimizer": False}),
    (
        "all there",
        config(model="fsdp_cpu_offload = true"),
        {"offload_params": True, "offload_optimizer": True},
    ),
    ("muon", config(optim='type = "muon"'), {"optimizer": "muon"}),
    ("sign", config(optim='type = "sign_sgd"'), {"optimizer": None}),
    ("eager", config(model='compile = "None"'), {"compile": False}),
    ("compiled", config(model="[trainer.model.compile]\nfullgraph = true"), {"compile": True}),
    (
        "chunks",
        config("seq_len = 65536\n", model="fused_lm_head_token_chunk_size = 1024"),
        {"loss_chunks": 64},
    ),
    ("plain head", config(model='fused_lm_head_token_chunk_size = "disabled"'), {"fused_loss": "none"}),
    (
        "engine",
        config(
            vllm='gpu_memory_utilization = 0.7\nmax_model_len = 8192\nmax_num_seqs = 64\ndtype = "bfloat16"'
        ),
        {"mem_fraction": 0.7, "context_length": 8192, "max_running_requests": 64, "rollout_dtype": "bf16"},
    ),
    (
        "sampling",
        config().replace("[trainer.optim]", SAMPLING + "[trainer.optim]"),
        {"max_new_tokens": 512},
    ),
    (
        "an engine of one's own",
        config().replace("[inference.vllm]", ""),
        {"generates": False, "rollout_gpus": 0, "weight_update_mode": "filesystem"},
    ),
]


def _subjects(pack, text: str):
    run = Run(pack, [parse_target("h100-sxm:8")])
    return run, run.subjects(read(text.encode(), "x.toml"), judge_broken=False)


@pytest.mark.parametrize(("text", "facts"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_binding(pack, text: str, facts: dict[str, object]) -> None:
    run, (subject,) = _subjects(pack, text)
    assert subject.framework == "prime_rl"
    values = run.judged(subject)[0].values
    assert {name: point(values[name]) for name in facts} == facts


@pytest.mark.parametrize(
    "text",
    [
        "[orchestrator]\n[[orchestrator.train.env]]\nid = 'x'\n[trainer]\n[inference.model]\nname = 'x'\n",
        "[orchestrator]\nbatch_size = 1\n[[orchestrator.train.source]]\nname = 'x'\n",
        "[model]\nname = 'x'\n[data]\nseq_len = 1024\nbatch_size = 64\n",
    ],
    ids=["before July 2026", "the orchestrator alone", "sft"],
)
def test_others_are_not_taken(pack, text: str) -> None:
    assert not _subjects(pack, text)[1]
