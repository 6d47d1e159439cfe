"""Moves that nobody would make: steps of many times the time, a stage that a script warns of itself."""

from __future__ import annotations

import pytest

from cfglint.findings import Fix
from cfglint.repair.wants import _is_endless, _slowness
from found import found_in

SFT = (
    "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-32B-Instruct --tuner_type lora --max_length 1024 "
    "--target_modules q_proj v_proj --dataset a/b --torch_dtype bfloat16 --per_device_train_batch_size 1 "
    "--gradient_accumulation_steps 2 --deepspeed zero2\n"
)


@pytest.mark.parametrize(("slower", "endless"), [((5, 40), True), ((0.5, 40), False), ((5, 9), False)])
def test_a_fix_with_endless_steps(slower: tuple[float, float], endless: bool) -> None:
    fix = Fix(1, "set deepspeed to zero3_offload", (), applicability="safe", slower=slower)
    assert _is_endless(fix) == endless


def test_how_long_a_step_takes_is_told() -> None:
    fix = Fix(1, "set deepspeed to zero3_offload", (), applicability="safe", slower=(5, 40))
    assert _slowness(fix) == (
        "what lets the job fit makes a step take 6 to 41 times as long; "
        "more than 20 times is not proposed (a rule of thumb)"
    )


@pytest.mark.parametrize(
    ("head", "moves"),
    [
        ("# ZeRO-3 with accumulation corrupts these adapters: keep stage 2.\n\n", False),
        ("# Runs on one machine; never tried with ZeRO-3.\n\n", True),
    ],
)
def test_what_the_head_of_a_script_warns_of_is_not_proposed(head: str, moves: bool) -> None:
    finding = found_in(head + SFT, "rtx-4090:8")["MEM105"]
    fixes = [finding.fix, *finding.alternatives]
    assert any(each is not None and "zero3" in each.title for each in fixes) == moves
