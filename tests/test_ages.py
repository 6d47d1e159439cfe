"""Where nobody says the version: keys that came later, defaults that changed, what older releases refuse."""

import json

import pytest

from cfglint.cli import main
from cfglint.schema.table import compiled

VERL = """python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    data.train_batch_size=256 \\
    data.max_prompt_length=1024 \\
    data.max_response_length=4096 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \\
    actor_rollout_ref.model.use_remove_padding=True \\
    actor_rollout_ref.model.enable_gradient_checkpointing=True \\
    actor_rollout_ref.actor.ppo_mini_batch_size=64 \\
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \\
    actor_rollout_ref.actor.entropy_coeff=0.001 \\
    actor_rollout_ref.actor.fsdp_config.param_offload=True \\
    actor_rollout_ref.actor.fsdp_config.optimizer_offload=True \\
    actor_rollout_ref.rollout.name=vllm \\
    actor_rollout_ref.rollout.tensor_model_parallel_size=2 \\
    actor_rollout_ref.rollout.gpu_memory_utilization=0.4 \\
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 \\
    actor_rollout_ref.rollout.n=8 \\
    actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=1 \\
    trainer.n_gpus_per_node=8{more}
"""
NEEDS = "needs verl >= 0.4"  # FSDP2's offload_policy


@pytest.fixture
def findings_of(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def found(name, text, gpu, framework=None):
        (tmp_path / name).write_text(text, "utf-8")
        named = ["--framework", framework] if framework else []
        main(["check", name, "--no-detect", "--gpu", gpu, "--format", "json", *named])
        return json.loads(capsys.readouterr().out)["findings"]

    return found


def fixes_of(findings_of, more="", framework=None):
    findings = findings_of("run.sh", VERL.format(more=more), "rtx-4090:8", framework)
    found = [each for each in findings if each["code"].startswith("MEM1")]
    return [fix for each in found for fix in (each["fix"], *each["alternatives"]) if fix is not None]


@pytest.mark.parametrize(
    ("more", "safe"),
    [
        ("", False),
        (" \\\n    trainer.rollout_data_dir=out", True),  # which came with the same release
        (" \\\n    +trainer.rollout_data_dir=out", None),  # which stops where the key is there
        (" \\\n    ++trainer.rollout_data_dir=out", False),
    ],
)
def test_a_key_that_older_releases_lack_is_safe_where_the_file_is_younger(findings_of, more, safe):
    later = [fix for fix in fixes_of(findings_of, more) if "offload_policy" in fix["title"]]
    assert bool(later) is (safe is not None)
    for fix in later:
        assert (fix["applicability"] == "safe") is safe
        assert (NEEDS in fix["effect"]) is not safe


@pytest.mark.parametrize(("version", "there"), [("0.3.0", False), ("0.4.0", True)])
def test_a_named_version_has_the_key_or_not(findings_of, version, there):
    fixes = fixes_of(findings_of, framework=f"verl=={version}")
    assert any("offload_policy" in fix["title"] for fix in fixes) is there
    assert not any(NEEDS in fix["effect"] for fix in fixes)


GRPO = """model_name_or_path: Qwen/Qwen2.5-7B
dataset_name: a/b
reward_model_name_or_path: a/reward
num_generations: 8
max_completion_length: 512
output_dir: out-grpo
use_vllm: true
vllm_tensor_parallel_size: 3
{more}"""


@pytest.mark.parametrize(
    ("more", "framework", "level"),
    [
        ("", None, "error"),  # people install the newest, where no key says that the file is older
        ("vllm_mode: colocate\n", None, "error"),
        ("", "trl==1.0.0", "error"),
    ],
)
def test_a_default_that_changed_is_that_of_the_newest(findings_of, more, framework, level):
    findings = findings_of("c.yaml", GRPO.format(more=more), "h100-sxm:8", framework)
    (finding,) = [each for each in findings if each["code"] == "PAR130"]
    assert finding["level"] == level
    assert finding["possible"] is (level == "warning")


def test_a_schema_tells_the_release_that_a_key_came_with():
    inner = {"type": "object", "properties": {"b": {}, "c": {}}}
    schema = {"type": "object", "properties": {"a": inner, "d": {}}}
    table = compiled({**schema, "x-since": {"0.4.0": ["a"], "0.5.1": ["a.c"], "0.6.0+": ["d"]}})
    assert table.came(("a",)) == table.came(("a", "b")) == (0, 4)
    assert table.came(("a", "c")) == (0, 5, 1)
    assert (0, 6) < table.came(("d",)) < (0, 6, 1)
    assert table.came(("e",)) is None


@pytest.mark.parametrize(
    ("more", "version"),
    [
        ("actor_rollout_ref.actor.fsdp_config.grad_offload=False", "0.2"),  # gone with v0.3
        ("trainer.val_generations_to_log_to_wandb=1", "0.3"),
        ("+trainer.val_generations_to_log_to_wandb=1", None),
        ("+trainer.val_before_train=True", "0.3"),  # Hydra appends nothing that is there: v0.4 has it
        ("++trainer.val_before_train=True", None),
        ("trainer.val_generations_to_log_to_wandb=1 trainer.rollout_data_dir=out", None),  # a fork has both
    ],
)
def test_a_key_that_is_gone_tells_the_last_release_that_has_it(tmp_path, capsys, more, version):
    (tmp_path / "run.sh").write_text(VERL.format(more=f" {more}"), "utf-8")
    main(["facts", str(tmp_path / "run.sh"), "--no-detect", "--format", "json"])
    facts = json.loads(capsys.readouterr().out)["jobs"][0]["facts"]
    assert facts.get("framework.version", {}).get("value") == version


def test_a_config_of_the_projects_own_has_what_it_has(tmp_path, capsys):
    (tmp_path / ".git").mkdir()
    (tmp_path / "conf").mkdir()
    text = "defaults: [ppo_trainer, _self_]\ntrainer: {val_generations_to_log_to_wandb: 1}\n"
    (tmp_path / "conf" / "mine.yaml").write_text(text, "utf-8")
    command = VERL.format(more="").replace("main_ppo", "main_ppo --config-path=conf --config-name=mine")
    (tmp_path / "run.sh").write_text(command, "utf-8")
    main(["facts", str(tmp_path / "run.sh"), "--no-detect", "--format", "json"])
    assert "framework.version" not in json.loads(capsys.readouterr().out)["jobs"][0]["facts"]
