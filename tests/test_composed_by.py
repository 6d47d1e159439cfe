"""A member of one of Hydra's groups may read what the config of the folder above gives."""

MEMBER = """\
algorithm: {adv_estimator: grpo}
actor_rollout_ref:
  model: {path: Qwen/Qwen2.5-0.5B-Instruct}
  actor: {ppo_mini_batch_size: 64}
  rollout: {name: vllm}
trainer: {n_gpus_per_node: 8, nnodes: 1, default_local_dir: "${experiment.folder}/checkpoints"}
data: {train_batch_size: 64}
"""
WHOLE = """\
defaults:
  - rl: {member}
  - _self_
experiment: {{folder: out}}
"""


def findings(cfglint, folder, member: str) -> str:
    (folder / ".git").mkdir(exist_ok=True)
    (folder / "conf" / "rl").mkdir(parents=True, exist_ok=True)
    (folder / "conf" / "rl" / "small.yaml").write_text(MEMBER)
    (folder / "conf" / "all.yaml").write_text(WHOLE.format(member=member))
    return cfglint("check", "conf/rl/small.yaml", "--select", "CFG008", "--format", "json").stdout


def test_what_the_config_above_gives_is_not_missed(cfglint, folder):
    assert '"CFG008"' not in findings(cfglint, folder, "small")


def test_a_config_above_that_takes_another_member_gives_nothing(cfglint, folder):
    assert '"CFG008"' in findings(cfglint, folder, "large")
