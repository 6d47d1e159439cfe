"""Whose tokens OpenRLHF's policy loss is a mean of: a smaller micro-batch then weighs them differently."""

from __future__ import annotations

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load

OLDER = "--pretrain a/b --micro_train_batch_size 8 --train_batch_size 128 --advantage_estimator reinforce"
NEWER = (
    "--actor.model_name_or_path a/b --train.micro_batch_size 8 --train.batch_size 128 "
    "--algo.advantage.estimator grpo"
)


@pytest.mark.parametrize(
    ("program", "flags", "averaged"),
    [
        ("train_ppo_ray", OLDER, 8),  # before v0.10.2, which has the flags with dots
        ("train_ppo_ray", f"{OLDER} --packing_samples", 8),
        ("train_ppo_ray", NEWER, 0),  # over the tokens of the whole batch
        ("train_sft", OLDER.replace("--advantage_estimator reinforce", ""), 0),
    ],
)
def test_the_tokens_of_a_micro_batch(program: str, flags: str, averaged: int) -> None:
    run = Run(load(), targets=(parse_target("a100-80gb:8"),))
    file = read_text(f"python3 -m openrlhf.cli.{program} {flags}\n", "run.sh")
    (subject,) = run.subjects(file, judge_broken=False)
    (judged,) = run.judged(subject)
    assert judged.values["results.grouping"] == averaged
