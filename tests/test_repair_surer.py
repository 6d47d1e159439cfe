"""What no edit of a command can make, and may not be enough, is told with what makes it enough."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cfglint.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ZERO = {
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "zero_optimization": {"stage": 3, "overlap_comm": True},
    "bf16": {"enabled": "auto"},
}
PROGRAM = """
from dataclasses import dataclass, field
import transformers
@dataclass
class TrainingArguments(transformers.TrainingArguments):
    optim: str = field(default="adamw_torch")
    task: str = field(default="SFT")
    model_name_or_path: str = field(default="")
    model_max_length: int = field(default=512)
parser = transformers.HfArgumentParser((TrainingArguments,))
(args,) = parser.parse_args_into_dataclasses()
model = transformers.AutoModelForCausalLM.from_pretrained(args.model_name_or_path)
trainer = transformers.Trainer(model=model, args=args)
trainer.train()
"""
COMMAND = (
    "deepspeed own.py --deepspeed conf/zero3.json --model_name_or_path huggyllama/llama-7b --task SFT "
    "--per_device_train_batch_size 16 --gradient_accumulation_steps 1 --bf16 True --output_dir out "
    "--logging_steps 1 --model_max_length 2048 --gradient_checkpointing True\n"
)


def test_offload_in_another_file_comes_with_a_smaller_micro_batch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "own"\ndependencies = ["transformers==4.31.0"]\n'
    )
    (tmp_path / "own.py").write_text(PROGRAM)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "zero3.json").write_text(json.dumps(ZERO))
    (tmp_path / "run.sh").write_text(COMMAND)
    target = ("--gpu", "rtx-3090:2", "--no-detect", "--format", "json", "--isolated")
    main(["check", str(tmp_path / "run.sh"), *target])
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    fix, other, *_ = found["fix"], *found["alternatives"]
    assert "per_device_train_batch_size to 4 and gradient_accumulation_steps to 4" in fix["title"]
    assert (fix["applicability"], fix["certainty"], fix["risk"]) == ("display", "sure", "numerics")
    assert "offload_param.device to cpu" in fix["title"]
    assert (other["certainty"], other["risk"]) == ("may", "none")
    assert "per_device" not in other["title"]
