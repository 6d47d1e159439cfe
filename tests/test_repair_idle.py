"""A job that does not fit is given a machine's idle GPUs before anything that changes its results."""

from __future__ import annotations

import pytest

from found import found_in

COMMAND = (
    "torchrun --nproc_per_node 2 -m trl.scripts.sft --model_name_or_path meta-llama/Llama-2-7b-hf "
    "--dataset_name a/b --max_length 1024 --gradient_checkpointing --bf16 --dtype bfloat16 "
    "--fsdp 'full_shard auto_wrap' --fsdp_config '{}' --use_liger_kernel"
)


@pytest.mark.parametrize(
    ("micro", "steps", "told"),
    [(1, 4, "gradient_accumulation_steps to 1"), (4, 1, "per_device_train_batch_size to 1")],
)
def test_idle_gpus_come_first(micro: int, steps: int, told: str) -> None:
    batch = f"--per_device_train_batch_size {micro} --gradient_accumulation_steps {steps}"
    fix = found_in(f"{COMMAND} {batch}\n", "rtx-4090:8")["MEM105"].fix
    assert fix is not None
    assert fix.risk == "none"
    assert "--nproc_per_node to 8" in fix.title
    assert told in fix.title
