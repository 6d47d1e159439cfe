"""Whose tokens OpenRLHF's policy loss is a mean of: a smaller micro-batch then weighs them differently."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cfglint.cli import main
from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load

if TYPE_CHECKING:
    from pathlib import Path

OLDER = "--pretrain a/b --micro_train_batch_size 8 --train_batch_size 128 --advantage_estimator reinforce"
NEWER = (
    "--actor.model_name_or_path a/b --train.micro_batch_size 8 --train.batch_size 128 "
    "--algo.advantage.estimator grpo"
)

OLD_SFT = OLDER.replace("--advantage_estimator reinforce", "")
NEW_SFT = "--model.model_name_or_path a/b --train.micro_batch_size 8 --train.batch_size 128"


@pytest.mark.parametrize(
    ("program", "flags", "averaged"),
    [
        ("train_ppo_ray", OLDER, 8),  # before v0.10.2, which has the flags with dots
        ("train_ppo_ray", f"{OLDER} --packing_samples", 8),
        ("train_ppo_ray", NEWER, 0),  # over the tokens of the whole batch
        ("train_sft", OLD_SFT, 8),
        ("train_sft", NEW_SFT, 0),
        ("train_dpo", f"{OLD_SFT} --nll_loss_coef 0.1", 0),  # a mean of each answer
    ],
)
def test_the_tokens_of_a_micro_batch(program: str, flags: str, averaged: int) -> None:
    run = Run(load(), targets=(parse_target("a100-80gb:8"),))
    file = read_text(f"python3 -m openrlhf.cli.{program} {flags}\n", "run.sh")
    (subject,) = run.subjects(file, judge_broken=False)
    (judged,) = run.judged(subject)
    assert judged.values["results.grouping"] == averaged


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        (f"train_kto {OLD_SFT}", "ref_offload"),
        (f"train_dpo {NEW_SFT}", "ref.offload"),
        (f"train_ppo_ray {OLDER} --colocate_actor_ref", "ref_reward_offload"),
    ],
)
def test_the_flag_that_sends_the_reference_away(
    command: str, flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.sh"
    path.write_text(f"python3 -m openrlhf.cli.{command}\n", "utf-8")
    rule = ["--select", "CLI", "--rule", "reference.present -> reference.offload == true"]
    main(["check", str(path), "--gpu", "a100-80gb-sxm:8", *rule, "--format", "json"])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert f"--{flag}" in json.dumps(finding["fix"])
