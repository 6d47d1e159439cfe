"""EasyR1 and its forks: older ones offload by other names, pad, and have no optimizer in bf16."""

import pytest

from cfglint.cli import main

CONFIG = """
data: {max_prompt_length: 1024, max_response_length: 1024, rollout_batch_size: 16}
algorithm: {adv_estimator: grpo}
worker:
  actor:
    global_batch_size: 16
    micro_batch_size_per_device_for_update: 16
    micro_batch_size_per_device_for_experience: 16
    model: {model_path: Qwen/Qwen2.5-7B-Instruct}
    offload: {PARAMS: true, OPTIMIZER: true}
  rollout: {n: 8, tensor_parallel_size: 2}
trainer: {nnodes: 1, n_gpus_per_node: 8}
"""


@pytest.mark.parametrize(
    ("params", "optimizer", "packs"),
    [("offload_params", "offload_optimizer", "true"), ("param_offload", "optimizer_offload", "false")],
)
def test_what_is_offloaded_by_either_name(params, optimizer, packs, tmp_path, monkeypatch, capsys):
    text = CONFIG.replace("PARAMS", params).replace("OPTIMIZER", optimizer)
    (tmp_path / "grpo.yaml").write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["facts", "grpo.yaml", "--gpu", "a40:8"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "train_offload true from line 10" in told
    assert f"packing {packs}" in told
