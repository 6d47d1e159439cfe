"""What a task rents: where its job moves to fewer machines, their number moves along."""

from cfglint.cli import main

TASK = """\
resources:
  accelerators: L40S:4
num_nodes: 2
run: |
  python -m skyrl.train.entrypoints.main_base \\
    trainer.policy.model.path="Qwen/Qwen2.5-1.5B-Instruct" \\
    trainer.placement.colocate_all=true \\
    trainer.strategy=fsdp \\
    trainer.placement.policy_num_gpus_per_node=4 \\
    trainer.placement.ref_num_gpus_per_node=4 \\
    trainer.placement.ref_num_nodes="$SKYPILOT_NUM_NODES" \\
    trainer.placement.policy_num_nodes="$SKYPILOT_NUM_NODES" \\
    generator.inference_engine.num_engines=8 \\
    trainer.train_batch_size=1024 \\
    trainer.policy_mini_batch_size=256 \\
    trainer.micro_forward_batch_size_per_gpu=4 \\
    trainer.micro_train_batch_size_per_gpu=4
"""


def test_a_task_rents_no_machines_that_stay_idle(tmp_path, capsys):
    path = tmp_path / "task.yaml"
    path.write_text(TASK, "utf-8")
    main(["fix", "--diff", "--unsafe", "--accept-may", str(path), "--gpu", "l40s:4"])
    changed = capsys.readouterr().out
    assert "+num_nodes: 1\n" in changed
    assert '+    trainer.placement.policy_num_nodes="1" \\\n' in changed
