"""EasyR1 and its forks: older ones offload by other names, pad, and have no optimizer in bf16."""

import pytest

from cfglint.cli import main
from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.repair.proposals import groups_of
from cfglint.repair.solve import solving
from cfglint.repair.vain import in_vain

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


def test_states_are_told_in_the_fewest_bytes(pack):
    """16 bytes of each parameter are no reason where an optimizer in bf16 keeps ten."""
    text = CONFIG.replace("PARAMS", "offload_params").replace("OPTIMIZER", "offload_optimizer")
    text = text.replace("update: 16", "update: 1")  # else all of it could be on the host
    run = Run(pack, [parse_target("rtx-4090:2")])
    judgements = run.judged(run.subjects(read_text(text, "grpo.yaml"), judge_broken=True)[0])
    with solving(run, judgements) as solver:
        groups = groups_of(solver, run.findings(judgements), "error")
        told = in_vain(solver, next(group for group in groups if group.code == "PAR199"), states=True)
        assert told.startswith(
            "7.6B weights with their gradients and optimizer take 113 GiB (16 bytes each), and 2"
        )
        assert (
            "adamw_bf16, 7.6B weights with their gradients and optimizer take 71 GiB (10 bytes each)" in told
        )
