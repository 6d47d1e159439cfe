"""A project's own actor beside verl: what its loss is a mean of, and the GPUs that its script lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from cfglint.cli import main

MAIN = """
import hydra


@hydra.main(config_path="config", config_name="ppo_trainer", version_base=None)
def main(config):
    from own.workers import Worker
    from verl.trainer.ppo.ray_trainer import RayPPOTrainer
    RayPPOTrainer(config, Worker).fit()
"""
WORKERS = """
from own.actor import Actor
from verl.workers.fsdp_workers import ActorRolloutRefWorker


class Worker(ActorRolloutRefWorker):
    actor_class = Actor
"""
ACTOR = """
from verl.workers.actor.dp_actor import DataParallelPPOActor


class Actor(DataParallelPPOActor):
    def update_policy(self, data):
        for micro_batch in data.split(self.config.ppo_micro_batch_size_per_gpu):
            loss = self.loss_of(micro_batch)
            LOSS
"""
RUN = """export CUDA_VISIBLE_DEVICES=0,1
python3 -m own.main algorithm.adv_estimator=grpo data.train_batch_size=256 trainer.n_gpus_per_node=2 \\
    data.max_prompt_length=512 data.max_response_length=2048 actor_rollout_ref.rollout.n=4 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-3B-Instruct actor_rollout_ref.rollout.name=vllm \\
    actor_rollout_ref.model.use_remove_padding=True actor_rollout_ref.actor.ppo_mini_batch_size=128 \\
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=32 trainer.nnodes=1 \\
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8 \\
    actor_rollout_ref.rollout.tensor_model_parallel_size=1 \\
    actor_rollout_ref.rollout.gpu_memory_utilization=0.5
"""


def _project(loss: str) -> None:
    texts = {"own/__init__.py": "", "own/main.py": MAIN, "own/workers.py": WORKERS, "run.sh": RUN}
    texts["own/actor.py"] = ACTOR.replace("LOSS", loss)
    Path(".git").mkdir()
    Path("own").mkdir()
    for name, text in texts.items():
        Path(name).write_text(text, "utf-8")


@pytest.mark.parametrize(
    ("loss", "told"),
    [("(loss / self.gradient_accumulation).backward()", True), ("(loss * self.share).backward()", False)],
)
def test_a_mean_of_a_micro_batch_is_told_by_the_actor_itself(loss, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _project(loss)
    rule = ["--rule", "results.grouping == 0", "--select", "CLI001"]
    status = main(["check", "run.sh", *rule, "--framework", "verl", "--no-detect"])
    assert status == told, capsys.readouterr()


def test_more_processes_are_given_gpus(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _project("pass")
    options = ["--gpu", "l40s:4", "--no-detect", "--select", "PRF101", "--framework", "verl"]
    main(["fix", "run.sh", *options, "--fix-level", "info"])
    text = Path("run.sh").read_text("utf-8")
    assert "n_gpus_per_node=4" in text, capsys.readouterr()
    assert "CUDA_VISIBLE_DEVICES=0,1,2,3" in text
