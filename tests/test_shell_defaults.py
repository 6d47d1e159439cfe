"""Numbers that a branch of a script gives a job where no cluster does, and the batch that rests on them."""

from __future__ import annotations

from found import found_in

CLUSTER = """\
if [ $MASTER_ADDR ]; then
  echo $MASTER_ADDR
else
  MASTER_ADDR=127.0.0.1
  WORLD_SIZE=1
fi
torchrun --nproc_per_node 8 --nnodes $WORLD_SIZE --master_addr $MASTER_ADDR train.py \\
  --learning_rate 1e-5 --model_name_or_path org/own --per_device_train_batch_size 1 \\
  --gradient_accumulation_steps 4 --output_dir out
"""


def test_what_a_cluster_gives_together_has_its_default_together() -> None:
    fix = found_in(CLUSTER, "l40s:4", "bad.sh", {})["DOC104"].fix
    assert fix is not None
    assert fix.title.startswith("set --nproc_per_node to 4 and gradient_accumulation_steps to 8")
    set_before = found_in("WORLD_SIZE=2\n" + CLUSTER, "l40s:4", "bad.sh", {})
    assert "16 processes" not in set_before["DOC104"].message
