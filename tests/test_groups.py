"""Which flag of a program says how many processes share a model, and that it moves with them."""

from __future__ import annotations

from typing import Any

import pytest

from cfglint.document.python.groups import Groups, groups_of
from cfglint.document.python.modules import Modules
from cfglint.document.tree import File

CALL = "def start(args):\n    {}initialize_model_parallel({})\n"


TRAIN = """
parser = argparse.ArgumentParser()
parser.add_argument("--tensor_parallel_size", type=int, default=1)
parser.add_argument("--model_name_or_path")
parser.add_argument("--per_device_train_batch_size", type=int, default=1)
parser.add_argument("--learning_rate", type=float)
start(parser.parse_args())
"""


def _groups(text: str) -> Groups | None:
    return groups_of(File("train.py", text, "program"), Modules(lambda start, name: None))


@pytest.mark.parametrize(
    ("before", "size", "groups"),
    [
        ("", "args.tp_size", Groups("tp_size", "", shrink=False)),
        ("mpu.", "args.tp_size", Groups("tp_size", "", shrink=False)),
        ("size = args.tp_size or world()\n    ", "size", Groups("tp_size", "", shrink=False)),
        ("if args.shared: ", "args.tp_size", Groups("tp_size", "shared", shrink=False)),
        ("if ready: ", "args.tp_size", Groups("tp_size", "", shrink=False)),
        ("if args.shared and args.fast: ", "args.tp_size", None),
        ("if args.shared:\n        pass\n    else:\n        ", "args.tp_size", None),
        ("", "4", None),
        ("", "args.tp_size, args.pp_size", None),
        ("", "tensor_model_parallel_size=args.tp_size", Groups("tp_size", "", shrink=False)),
        ("", "args.tp_size, args.pp_size)\n    initialize_model_parallel(args.tp_size", None),
    ],
)
def test_the_flag_of_a_call(before: str, size: str, groups: Groups | None) -> None:
    assert _groups(CALL.format(before, size)) == groups


def test_groups_may_shrink() -> None:
    text = "def initialize_model_parallel(n):\n    world_size = 8\n    return min({}, world_size)\n"
    shrinks = (
        _groups(text.format(name) + CALL.format("", "args.tp")) for name in ("model_parallel_size_", "b")
    )
    assert [each.shrink for each in shrinks if each is not None] == [True, False]


def test_a_group_shrinks_with_the_processes(folder: Any, cfglint: Any) -> None:
    command = "torchrun --nproc_per_node {} train.py --learning_rate 1e-5 --tensor_parallel_size {}\n"
    program = "import argparse\n" + CALL.format("", "args.tensor_parallel_size") + TRAIN
    (folder / "run.sh").write_text(command.format(4, 4))
    (folder / "train.py").write_text(program)
    cfglint("fix", "--unsafe", "--accept-may", "--gpu", "rtx-3090:2", "run.sh")
    assert (folder / "run.sh").read_text() == command.format(2, 2)


def test_a_layout_of_a_file_shrinks_with_the_processes(folder: Any, cfglint: Any) -> None:
    (folder / "run.sh").write_text("torchrun --nproc_per_node 4 run_train.py --config-file grid.yaml\n")
    sizes = "parallelism:\n  dp: 2\n  pp: 1\n  tp: 2\noptimizer:\n  zero_stage: 0\n"
    tokens = "tokens:\n  batch_accumulation_per_replica: 3\n  micro_batch_size: 2\n  sequence_length: 512\n"
    (folder / "grid.yaml").write_text(sizes + tokens)
    out = cfglint("check", "--gpu", "rtx-3090:1", "run.sh").stdout
    steps = "tokens.batch_accumulation_per_replica to 6"
    assert (
        f"set parallelism.dp to 1, {steps}, parallelism.tp to 1 in grid.yaml and --nproc_per_node to 1" in out
    )
    assert "effective batch 12, tokens per step 6144, longest sequence 512: unchanged" in out


def test_a_file_that_a_program_writes_first_is_changed_there(folder: Any, cfglint: Any) -> None:
    launch = "torchrun --nproc_per_node 4 run_train.py --config-file grid.yaml\n"
    sizes = "parallelism:\n  dp: 2\n  pp: 1\n  tp: 2\noptimizer:\n  zero_stage: 0\n"
    tokens = "tokens:\n  batch_accumulation_per_replica: 3\n  micro_batch_size: 2\n  sequence_length: 512\n"
    (folder / "grid.yaml").write_text(sizes + tokens)
    (folder / "make_grid.py").write_text("from own import config\n\nconfig.save_as_yaml('conf/grid.yaml')\n")
    (folder / "run.sh").write_text(f"python make_grid.py\n{launch}")
    out = cfglint("check", "--gpu", "rtx-3090:1", "run.sh").stdout
    assert (
        "parallelism.tp to 1 in make_grid.py (which writes grid.yaml anew) and --nproc_per_node to 1" in out
    )
    (folder / "make_grid.py").write_text("from own import load\n\nload('grid.yaml')\n")
    assert " in grid.yaml and " in cfglint("check", "--gpu", "rtx-3090:1", "run.sh").stdout
    (folder / "run.sh").write_text(f"{launch}python make_grid.py\n")
    assert " in grid.yaml and " in cfglint("check", "--gpu", "rtx-3090:1", "run.sh").stdout


def test_what_may_not_be_enough_is_made_only_where_that_is_accepted(folder: Any, cfglint: Any) -> None:
    command = "torchrun --nproc_per_node {} train.py --learning_rate 1e-5\n"
    (folder / "run.sh").write_text(command.format(4))
    out = cfglint("check", "--gpu", "rtx-3090:2", "run.sh").stdout
    assert "1 fixable with cfglint fix --unsafe --accept-may" in out
    cfglint("fix", "--unsafe", "--gpu", "rtx-3090:2", "run.sh")
    assert (folder / "run.sh").read_text() == command.format(4)
    cfglint("fix", "--unsafe", "--accept-may", "--gpu", "rtx-3090:2", "run.sh")
    assert (folder / "run.sh").read_text() == command.format(2)
