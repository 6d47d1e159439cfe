"""A fix gives a program its flags as the program's own parser spells them, and only where they count."""

import json

import pytest

LAUNCH = "deepspeed --num_gpus 8 train.py --train_data x --batch-size 4 --learning_rate 1e-5 --fp16{more}\n"
PROGRAM = """\
import torch
from own import get_args

if __name__ == "__main__":
    args = get_args()
"""
PARSER = """\
import argparse

def get_args():
    parser = argparse.ArgumentParser()
    group = parser.add_argument_group("training")
    group.add_argument("--train_data")
    group.add_argument("--batch-size", type=int, default=4)
    group.add_argument("--learning_rate", type=float, default=1e-5)
    group.add_argument("--fp16", action="store_true")
    group.add_argument("--deepspeed_config")
    group.add_argument({options}, type=int, default=1)
    return parser.parse_args()
"""


@pytest.fixture
def fixed(cfglint, folder):
    """Return the script after ``fix``."""

    def fix(options: str, more: str = "", does: str = "") -> str:
        (folder / "own").mkdir()
        (folder / "own" / "__init__.py").write_text("from .arguments import get_args\n")
        (folder / "own" / "arguments.py").write_text(PARSER.format(options=options))
        (folder / "train.py").write_text(PROGRAM + does)
        (folder / "run.sh").write_text(LAUNCH.format(more=more))
        cfglint("fix", "run.sh", "--gpu", "l40s:4", "--unsafe", "--accept-may")
        return (folder / "run.sh").read_text()

    return fix


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ('"--gradient-accumulation-steps"', "--gradient-accumulation-steps"),
        ('"--gradient_accumulation_steps"', "--gradient_accumulation_steps"),
        ('"-g", "--gradient-accumulation-steps"', "--gradient-accumulation-steps"),
        ('"--gradient-accumulation-steps", "--gradient_accumulation_steps"', "--gradient_accumulation_steps"),
    ],
)
def test_a_new_flag_is_spelled_as_its_parser_has_it(fixed, options: str, flag: str) -> None:
    text = fixed(options)
    assert "--num_gpus 4" in text
    assert text.rstrip().endswith(f" {flag} 2")


SAYS = """    config["gradient_accumulation_steps"] = args.gradient_accumulation_steps
"""
TAKES = """    args.gradient_accumulation_steps = config["gradient_accumulation_steps"]
"""


@pytest.mark.parametrize(
    ("passes", "does", "adds"),
    [(1, "", False), ("auto", "", True), (1, SAYS, True), (1, SAYS + TAKES, False)],
)
def test_a_flag_does_not_count_beside_deepspeeds_file(fixed, folder, passes, does: str, adds: bool) -> None:
    said = {"gradient_accumulation_steps": passes, "bf16": {"enabled": True}}
    (folder / "ds.json").write_text(json.dumps(said))
    text = fixed('"--gradient-accumulation-steps"', " --deepspeed_config ds.json", does)
    assert ("--num_gpus 4" in text) is adds  # else its file has to say twice the passes
    assert ("--gradient-accumulation-steps 2" in text) is adds
