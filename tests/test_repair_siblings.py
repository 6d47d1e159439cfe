"""DeepSpeed's files of a project beside the one in use, which shard more or send more to the host."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cfglint.api import check_text

if TYPE_CHECKING:
    from pathlib import Path

    from cfglint.findings import Finding

AUTO = {
    "bf16": {"enabled": "auto"},
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
}
HOST = {"device": "cpu"}
ZERO = {
    "zero2": {"stage": 2},
    "zero3": {"stage": 3},
    "zero3_offload": {"stage": 3, "offload_optimizer": HOST, "offload_param": HOST},
}
GRPO = """HOME_OF_RUN="$( cd "$( dirname "${BASH_SOURCE[0]}" )" && pwd )"
torchrun --nproc_per_node="8" mine/grpo_pairs.py \\
    --model_name_or_path Qwen/Qwen2.5-3B-Instruct \\
    --num_generations 8 --max_completion_length 512 --bf16 \\
    --per_device_train_batch_size 8 --gradient_accumulation_steps 2 \\
    --deepspeed ${HOME_OF_RUN}/ds/zero2.json
"""


def found(folder: Path, script: str, gpu: str, code: str) -> Finding:
    """Return the first finding of a rule in a script of a folder that has some of DeepSpeed's files."""
    (folder / "ds").mkdir()
    for name, zero in ZERO.items():
        (folder / "ds" / f"{name}.json").write_text(json.dumps({**AUTO, "zero_optimization": zero}))
    (folder / "run.sh").write_text(script)

    def read(path: str) -> bytes | None:
        place = folder / path
        return place.read_bytes() if place.is_file() else None

    report = check_text(script, path=str(folder / "run.sh"), hardware=gpu, read=read)
    return next(each for each in report.findings if each.code == code)


@pytest.mark.parametrize(
    ("gpu", "more", "named"),
    [
        ("rtx-3090:2", "", "zero3_offload"),  # 9 bytes each on two GPUs are 26 GiB, 8 of ZeRO-3 are 23
        ("l40s:2", "", ""),
        ("rtx-3090:2", " --use_peft true", ""),
        ("l40s:4", " Qwen/Qwen3-8B", "zero3"),  # 5.5 bytes each are 42 GiB, 4 are 31
    ],
)
def test_fewer_gpus_that_do_not_keep_what_each_has_take_another_file(
    tmp_path: Path, gpu: str, more: str, named: str
) -> None:
    script = GRPO.replace(" Qwen/Qwen2.5-3B-Instruct", more) if "/" in more else f"{GRPO.rstrip()}{more}\n"
    fix = found(tmp_path, script, gpu, "DOC104").fix
    assert fix is not None
    assert (fix.applicability, fix.certainty) == ("safe", "may")
    assert ("${HOME_OF_RUN}/ds/" in fix.title) == bool(named)
    assert not named or fix.title.endswith(f"ds/{named}.json")
    assert [edit.new for edit in fix.edits if "ds/" in edit.new] == ([f"/ds/{named}.json"] if named else [])
