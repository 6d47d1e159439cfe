"""Jobs of verl that never update what they hold: weights and what passes through them, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cfglint.cli import main

SFT = """torchrun --nnodes=1 --nproc_per_node=16 -m verl.trainer.sft_trainer \\
    data.train_files=x.parquet data.train_batch_size=64 data.micro_batch_size_per_gpu=1 \\
    data.use_dynamic_bsz=false data.max_length=4096 model.path=Qwen/Qwen2.5-32B-Instruct \\
    ENGINE engine.dtype=bfloat16 engine.forward_only=FORWARD trainer.nnodes=1 trainer.n_gpus_per_node=16
"""
MEGATRON = """engine=megatron engine.tensor_model_parallel_size=4 engine.pipeline_model_parallel_size=2 \\
    engine.context_parallel_size=2"""
FSDP = "engine=fsdp engine.strategy=fsdp2"
PPO = """python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64 \\
    data.max_prompt_length=1024 data.max_response_length=4096 actor_rollout_ref.rollout.n=4 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-14B-Instruct actor_rollout_ref.rollout.name=vllm \\
    actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \\
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2 \\
    actor_rollout_ref.rollout.gpu_memory_utilization=0.5 trainer.n_gpus_per_node=4 trainer.nnodes=1 MORE
"""


def _need(text: str, gpus: str, capsys: pytest.CaptureFixture[str]) -> list[float]:
    Path("run.sh").write_text(text, "utf-8")
    main(["check", "run.sh", "--gpu", gpus, "--format", "json"])
    need: list[float] = json.loads(capsys.readouterr().out)["jobs"][0]["need_gib"]
    return need


def _sft(engine: str, forward: str) -> str:
    return SFT.replace("ENGINE", engine).replace("FORWARD", forward)


@pytest.mark.parametrize("engine", [MEGATRON, FSDP])
def test_an_engine_of_forward_passes_keeps_weights_alone(engine, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    only, trained = (_need(_sft(engine, word), "h200:16", capsys) for word in ("true", "false"))
    assert only[1] < 0.5 * trained[0]


def test_its_processes_are_fewer_in_a_layout_that_fits(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("run.sh").write_text(_sft(MEGATRON, "true"), "utf-8")
    main(["check", "run.sh", "--gpu", "l40s:4", "--no-detect"])
    told = capsys.readouterr().out
    assert "fix (safe)" in told
    assert "--nproc_per_node to 4" in told
    main(["fix", "run.sh", "--gpu", "l40s:4", "--no-detect"])
    assert main(["check", "run.sh", "--gpu", "l40s:4", "--no-detect"]) == 0, capsys.readouterr()


@pytest.mark.parametrize(
    ("more", "updates"),
    [
        ("trainer.val_only=True", False),
        ("trainer.val_only=True trainer.val_before_train=False", True),  # then it trains
        ("", True),
    ],
)
def test_who_only_validates_has_no_step(more, updates, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    least, _ = _need(PPO.replace("MORE", more), "l40s:4", capsys)
    assert (least > 44.4) == updates
