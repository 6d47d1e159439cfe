"""A Hydra config that a program of a package overrides at each launch is no job of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFIG = """actor_rollout_ref:
  model: {path: PATH}
  actor: {ppo_mini_batch_size: 8, ppo_micro_batch_size_per_gpu: 16}
  rollout: {name: vllm, n: 8, log_prob_micro_batch_size_per_gpu: 8}
algorithm: {adv_estimator: grpo}
data: {train_batch_size: 64}
trainer: {n_gpus_per_node: 8, nnodes: 1}
"""
MAIN = '@hydra.main(config_path="config", config_name="ppo", version_base=None)\ndef main(config): ...\n'
COMMAND = (
    "python3 -m rl.trainer.main_ppo data.train_batch_size=8 \\\n"
    "  actor_rollout_ref.model.path=Qwen/Qwen2.5-7B trainer.nnodes=1 data.train_files=a\n"
)
PLACEHOLDER, OWN = "~/models/a", "Qwen/Qwen2.5-7B"


@pytest.fixture
def judged(cfglint, tmp_path, monkeypatch):
    """Return whether the config of a program is judged as a job."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)

    def of(command: str, *, model: str = OWN, package: bool = True, name: str = "ppo") -> bool:
        files = {
            "rl/trainer/main_ppo.py": MAIN,
            f"rl/trainer/config/{name}.yaml": CONFIG.replace("PATH", model),
            "run.sh": command,
        }
        for init in ("rl/__init__.py", "rl/trainer/__init__.py") if package else ():
            files[init] = ""
        for path, text in files.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(text, "utf-8")
        said = cfglint("check", f"rl/trainer/config/{name}.yaml", "--gpu", "a40:8").stdout
        assert ("defaults of" in said) == ("0 jobs checked" in said), said
        return "0 jobs checked" not in said

    return of


def test_a_config_that_launches_override_is_no_job(judged):
    assert not judged(COMMAND)


def test_a_config_without_launches_that_override_it_is_a_job(judged):
    assert judged("python3 -m rl.trainer.main_ppo data.train_batch_size=8\n")
    assert judged(COMMAND.replace("main_ppo", "main_ppo --config-name=other"))


def test_a_config_beside_the_one_that_is_overridden(judged):
    assert judged(COMMAND, name="exp1")
    assert not judged(COMMAND, name="exp1", model=PLACEHOLDER)
    assert not judged(COMMAND.replace("main_ppo", "main_ppo --config-name=exp1.yaml"), name="exp1")


def test_a_script_of_ones_own_with_its_config_is_a_job(judged):
    assert judged("python rl/trainer/main_ppo.py a.b=1 c.d=2 e.f=3\n", package=False)
    assert not judged("python rl/trainer/main_ppo.py a.b=1 c.d=2 e.f=3\n", package=False, model=PLACEHOLDER)
