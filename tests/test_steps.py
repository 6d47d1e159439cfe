"""A program that counts micro-batches as steps: no fix accumulates more."""

from __future__ import annotations

from typing import Any

import pytest

from cfglint.document.python.modules import Modules
from cfglint.document.python.steps import counts_micro
from cfglint.document.tree import File

LOOP = """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--model_name_or_path")
parser.add_argument("--per_device_train_batch_size", type=int, default=8)
parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
parser.add_argument("--learning_rate", type=float, default=1e-4)
parser.add_argument("--max_train_steps", type=int, default=100)


def main(args):
    done_steps = 0
    for epoch in range(3):
        for number, batch in enumerate(loader):
{body}
            if done_steps >= args.max_train_steps:
                break


main(parser.parse_args())
"""
WITHIN = "            with accelerator.accumulate(model):\n                step(batch)\n{}"
SKIPPED = """
            if (number + 1) % args.gradient_accumulation_steps:
                continue
            done_steps += 1
"""
COUNTED = WITHIN.format("            done_steps += 1")


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        (COUNTED, True),
        (WITHIN.format("                done_steps += 1"), True),
        (WITHIN.format("            if accelerator.sync_gradients:\n                done_steps += 1"), False),
        (
            SKIPPED,
            False,
        ),
        ("            step(batch)\n            done_steps += 1", False),
        (WITHIN.format("            seen += 1"), False),
    ],
)
def test_what_a_loop_counts(body: str, counts: bool) -> None:
    file = File("train.py", LOOP.format(body=body), "program")
    assert counts_micro(file, Modules(lambda start, name: None)) is counts


@pytest.mark.parametrize(
    ("body", "moved"),
    [
        (COUNTED, "--per_device_train_batch_size 8 --gradient_accumulation_steps 2"),
        (
            COUNTED.replace("done_steps += 1", "pass"),
            "--per_device_train_batch_size 4 --gradient_accumulation_steps 4",
        ),
    ],
)
def test_the_micro_batch_keeps_the_batch(folder: Any, cfglint: Any, body: str, moved: str) -> None:
    command = "accelerate launch --num_processes {} --num_machines 1 train.py --learning_rate 1e-4 {}\n"
    (folder / "train.py").write_text(LOOP.format(body=body))
    own = "--per_device_train_batch_size 4 --gradient_accumulation_steps 2"
    (folder / "run.sh").write_text(command.format(4, own))
    cfglint("fix", "--unsafe", "--accept-may", "--gpu", "rtx-3090:2", "run.sh")
    assert (folder / "run.sh").read_text() == command.format(2, moved)
