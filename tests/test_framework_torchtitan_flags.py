"""torchtitan's launch flags since its configs are Python: what is recognised, and what the flags come to."""

from __future__ import annotations

import pytest

from cfglint.document.reading import read
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load
from cfglint.repair.attach import attach

MICRO = "--training.num_tokens_per_microbatch_per_dp_rank 8192 "
LAUNCH = "torchrun --nproc_per_node=8 -m torchtitan.train --module llama3 --config llama3_8b {flags}\n"


@pytest.fixture(scope="module")
def run() -> Run:
    return Run(load())


def _subjects(run: Run, text: str):
    return run.subjects(read(text.encode(), "train.sh"), judge_broken=False)


@pytest.mark.parametrize(
    ("flags", "name", "value"),
    [
        ("", "num_gpus", 8),
        ("--parallelism.pipeline-parallel-degree 2", "torchtitan_flags.piped", True),
        ("--parallelism.pipeline_parallel_degree=1", "torchtitan_flags.piped", False),
        (MICRO, "torchtitan_flags.unit", 8192),
        (MICRO + "--parallelism.data_parallel_shard_degree 4", "torchtitan_flags.unit", 32768),
        (MICRO + "--parallelism.data_parallel_shard_degree -1", "torchtitan_flags.unit", 8192),
        (
            MICRO + "--parallelism.pipeline_parallel_degree 2 --parallelism.num_pp_microbatches 4",
            "torchtitan_flags.unit",
            32768,
        ),
        (MICRO + "--parallelism.num_pp_microbatches 4", "torchtitan_flags.unit", 8192),
    ],
)
def test_what_the_flags_come_to(run: Run, flags: str, name: str, value: object) -> None:
    (subject,) = _subjects(run, LAUNCH.format(flags=flags))
    assert subject.framework == "torchtitan_flags"
    assert run.judged(subject)[0].values[name] == value


@pytest.mark.parametrize(
    "text",
    [
        "torchrun --nproc_per_node=8 -m torchtitan.train --job.config_file train.toml\n",
        "torchrun --nproc_per_node=8 -m mytrainer.train --module llama3 --config llama3_8b\n",
        "torchrun --nproc_per_node=8 -m torchtitan.train --config llama3_8b.toml\n",
    ],
)
def test_other_launches_are_not_taken(run: Run, text: str) -> None:
    assert all(subject.framework != "torchtitan_flags" for subject in _subjects(run, text))


@pytest.mark.parametrize(
    ("flags", "applicability"),
    [("", "unsafe"), (" --training.num_tokens_per_train_step 524288", "safe")],
)
def test_fewer_processes_keep_a_batch_that_the_flags_say(flags: str, applicability: str) -> None:
    text = f"torchrun --nproc_per_node=8 -m torchtitan.train --module llama3 --config mine{flags}\n"
    run = Run(load(), [parse_target("rtx-3090:2")])
    (subject,) = run.subjects(read(text.encode(), "a.sh"), judge_broken=True)
    judged = run.judged(subject)
    found = run.findings(judged)
    attach(run, judged, found)
    (fix,) = [each.finding.fix for each in found if each.finding.code == "DOC104"]
    assert fix.applicability == applicability
