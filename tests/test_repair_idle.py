"""A job that does not fit is given a machine's idle GPUs before anything that changes its results."""

from __future__ import annotations

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load
from cfglint.repair.attach import attach

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
    run = Run(load(), targets=(parse_target("rtx-4090:8"),))
    batch = f"--per_device_train_batch_size {micro} --gradient_accumulation_steps {steps}"
    file = read_text(f"{COMMAND} {batch}\n", "run.sh")
    subject = next(iter(run.subjects(file, judge_broken=True)))
    judgements = run.judged(subject)
    found = list(run.findings(judgements))
    attach(run, judgements, found)
    fix = next(each.finding.fix for each in found if each.finding.code == "MEM105")
    assert fix is not None
    assert fix.risk == "none"
    assert "processes to 8" in fix.title
    assert told in fix.title
