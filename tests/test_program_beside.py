"""What the program that lies beside a config under its name says of the job: whether it trains at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from cfglint.cli import main

CONFIG = """
tokenizer_path: ${actor.path}
cluster: {n_nodes: 1, n_gpus_per_node: 1}
scheduler: {type: local}
rollout: {backend: "sglang:d1", max_concurrent_rollouts: 8}
gconfig: {n_samples: 1, max_new_tokens: 2048}
actor:
  backend: "fsdp:d1"
  path: Qwen/Qwen3-1.7B
  gradient_checkpointing: true
  mb_spec: {max_tokens_per_mb: 15360}
  optimizer: {type: adam, lr: 1.70e-5}
sglang: {context_length: 32768, mem_fraction_static: 0.8}
train_dataset: {batch_size: 4, path: openai/gsm8k, type: rl}
"""
ROLLS_OUT = """
from areal.api.cli_args import PPOConfig, load_expr_config
from areal.experimental.inference_service.controller.controller import RolloutControllerV2

config, _ = load_expr_config([], PPOConfig)
RolloutControllerV2(config=config.rollout)
"""
TRAINS = """
from areal import PPOTrainer
from areal.infra import RolloutController

PPOTrainer(None).train()
"""


@pytest.fixture
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(".git").mkdir()
    Path("agent.yaml").write_text(CONFIG, "utf-8")


@pytest.mark.usefixtures("_here")
@pytest.mark.parametrize(
    ("name", "program", "status"),
    [
        ("agent.py", ROLLS_OUT, 0),
        ("agent.py", TRAINS, 1),
        ("other.py", ROLLS_OUT, 1),
    ],
)
def test_a_job_without_a_trainer_is_judged_by_its_engine(name, program, status, capsys):
    Path(name).write_text(program, "utf-8")
    assert main(["check", "agent.yaml", "--gpu", "a40", "--select", "MEM101"]) == status, capsys.readouterr()
