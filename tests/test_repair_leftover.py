"""A repair that moves a job to fewer GPUs tells which sizes of the file stay larger than those."""

from __future__ import annotations

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load
from cfglint.repair.attach import attach

COMMAND = (
    "torchrun --nproc_per_node=8 train.py --model_name_or_path Qwen/Qwen2.5-0.5B --dataset_name a/b "
    "--max_seq_length 512 --gradient_accumulation_steps 2"
)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("--fsdp_shard_degree 8", "fsdp_shard_degree 8 stays"),
        ("--tensor-parallel-size 4 --ref_gpus 3", "tensor_parallel_size 4 and ref_gpus 3 stay"),
        ("--fsdp_shard_degree 2", ""),
        ("--gpus_memory_limit yes --shards 8 --max_steps 900", ""),
    ],
)
def test_what_stays_larger_is_told(more: str, told: str) -> None:
    run = Run(load(), targets=(parse_target("rtx-4090:2"),))
    file = read_text(f"{COMMAND} {more} --per_device_train_batch_size 1\n", "run.sh")
    subject = next(iter(run.subjects(file, judge_broken=True)))
    judgements = run.judged(subject)
    found = list(run.findings(judgements))
    attach(run, judgements, found)
    fix = next(each.finding.fix for each in found if each.finding.code == "DOC104")
    assert fix is not None
    assert ("for more GPUs than there are" in fix.effect) == bool(told)
    assert told in fix.effect
    assert not told or fix.certainty != "sure"
