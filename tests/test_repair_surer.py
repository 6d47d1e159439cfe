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


ANSWERS = """
from transformers import Trainer
from trl import GRPOConfig, ModelConfig, ScriptArguments, TrlParser
class AnswersTrainer(Trainer):
    def compute_loss(self, model, inputs):
        return self.own(model, inputs)
parser = TrlParser((ScriptArguments, GRPOConfig, ModelConfig))
script_args, training_args, model_args = parser.parse_args_and_config()
trainer = AnswersTrainer(model=model_args.model_name_or_path, args=training_args)
trainer.train()
"""
ANSWERED = (
    "torchrun --nproc_per_node 4 own.py --deepspeed zero2.json --output_dir out --beta 0.1 --bf16 true "
    "--model_name_or_path Qwen/Qwen2-VL-7B-Instruct --dataset_name own --max_prompt_length 8192 "
    "--per_device_train_batch_size 1 --gradient_accumulation_steps 1 --logging_steps 1 --num_generations 4 "
    "--gradient_checkpointing true --torch_dtype bfloat16 --attn_implementation flash_attention_2\n"
)


def test_what_leaves_next_to_no_room_comes_after_what_leaves_some(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "own.py").write_text(ANSWERS)
    host = {"device": "cpu", "pin_memory": True}
    for name, zero in (
        ("zero2", {"stage": 2}),
        ("zero3", {"stage": 3}),
        ("zero3_offload", {"stage": 3, "offload_optimizer": host, "offload_param": host}),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps({**ZERO, "zero_optimization": zero}))
    (tmp_path / "run.sh").write_text(ANSWERED)
    target = ("--gpu", "a100-40gb-pcie:4", "--no-detect", "--format", "json", "--isolated")
    main(["check", str(tmp_path / "run.sh"), *target])
    found = json.loads(capsys.readouterr().out)["findings"]
    finding = next(each for each in found if each["code"] == "MEM105")
    titles = [each["title"] for each in (finding["fix"], *finding["alternatives"])]
    assert titles[:2] == [f"set deepspeed to {name}.json" for name in ("zero3_offload", "zero3")]
