"""What a program computes of its flags: sums of lengths, the layers of an adapter, weights lifted to fp32."""

import json

import pytest

LINEAR = """\
def find_all_linear_names(model):
    names = set()
    for name, module in model.named_modules():
        if {skips}isinstance(module, torch.nn.Linear):
            names.add(name.split(".")[-1])
    return sorted(names)
"""
PROGRAM = """\
from dataclasses import dataclass
from typing import Optional
import torch
from peft import LoraConfig, TaskType, get_peft_model
from transformers import AutoModelForCausalLM, HfArgumentParser
from trl import DPOConfig, DPOTrainer


@dataclass
class Arguments:
    model_name_or_path: Optional[str] = None
    max_source_length: Optional[int] = 256
    max_target_length: Optional[int] = 256
    target_modules: Optional[str] = None


{linear}

def main():
    args = HfArgumentParser(Arguments).parse_args_into_dataclasses(return_remaining_strings=True)[0]
    length = args.max_source_length + args.max_target_length
    model = AutoModelForCausalLM.from_pretrained(args.model_name_or_path, dtype=torch.bfloat16)
    targets = args.target_modules.split(",") if args.target_modules else None
    if targets and "all" in targets:
        targets = find_all_linear_names(model)
    config = LoraConfig(r=8, target_modules=targets)
    {adapted}
{lift}
    DPOTrainer(model, args=DPOConfig(max_length=length, bf16=True), peft_config=config).train()


if __name__ == "__main__":
    main()
"""
LIFT = (
    "    for param in filter(lambda p: p.requires_grad, model.parameters()):\n"
    "        param.data = param.data.to(torch.float32)\n"
)
FLAGS = "--model_name_or_path Qwen/Qwen2.5-1.5B --max_source_length 1024 --target_modules"


def _facts(cfglint, folder, targets, *, skips="", lift="", adapted="pass"):
    text = PROGRAM.format(linear=LINEAR.format(skips=skips), lift=lift, adapted=adapted)
    (folder / "tune.py").write_text(text)
    (folder / "run.sh").write_text(f"torchrun --nproc_per_node 2 tune.py {FLAGS} {targets}\n")
    said = cfglint("facts", "run.sh", "--gpu", "h100-sxm:2", "--format", "json").stdout
    (job,) = json.loads(said)["jobs"]
    return {name: each.get("value") for name, each in job["facts"].items()}


@pytest.mark.parametrize(
    ("targets", "skips", "layers"),
    [
        ("all", "", ["all-linear"]),
        ("q_proj,v_proj", "", ["q_proj", "v_proj"]),
        ("all", '"vision" not in name and ', None),
    ],
)
def test_layers_that_a_flag_names(cfglint, folder, targets, skips, layers):
    facts = _facts(cfglint, folder, targets, skips=skips)
    assert facts.get("lora_targets") == layers
    assert facts["seq_len"] == 1024 + 256


@pytest.mark.parametrize(
    ("lift", "adapted", "dtype"),
    [("", "pass", "bf16"), (LIFT, "pass", "fp32"), (LIFT, "model = get_peft_model(model, config)", "bf16")],
)
def test_weights_that_a_loop_lifts(cfglint, folder, lift, adapted, dtype):
    assert _facts(cfglint, folder, "all", lift=lift, adapted=adapted)["param_dtype"] == dtype


QUOTIENT = """\
import argparse
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=128)
parser.add_argument("--micro_batch_size", type=int, default=16)
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B", dtype=torch.bfloat16)
Trainer(
    model=model,
    args=TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=args.micro_batch_size,
        gradient_accumulation_steps=args.batch_size // args.micro_batch_size,
        bf16=True,
        gradient_checkpointing=True,
    ),
).train()
"""


def test_steps_that_follow_a_flag_let_it_move(cfglint, folder):
    """The accumulation steps are computed of the micro-batch, and no fix has to write them."""
    (folder / "tune.py").write_text(QUOTIENT)
    (folder / "run.sh").write_text("torchrun --nproc_per_node 1 tune.py --micro_batch_size 32\n")
    told = cfglint("check", "run.sh", "--gpu", "a100-40gb:1", "--set", "model_max_length=1024").stdout
    assert "fix (unsafe): set per_device_train_batch_size to " in told


@pytest.mark.parametrize(("given", "cut"), [("max_length=2048", 2048), ("beta=0.1", 512)])
def test_before_v0_9_the_dpo_trainer_cuts_pairs(cfglint, folder, given, cut):
    (folder / "tune.py").write_text(
        "from transformers import TrainingArguments\n"
        "from trl import DPOTrainer\n"
        f"DPOTrainer('Qwen/Qwen2.5-1.5B', args=TrainingArguments(output_dir='o'), {given}).train()\n"
    )
    said = cfglint("facts", "tune.py", "--gpu", "h100-sxm:2", "--format", "json").stdout
    (job,) = json.loads(said)["jobs"]
    assert job["facts"]["seq_len"]["value"] == cut


def test_deepspeed_s_file_may_end_in_conf(cfglint, folder):
    (folder / "tune.py").write_text("import transformers\n")
    (folder / "ds.conf").write_text('{"zero_optimization": {"stage": 3, "sub_group_size": 1e9}}\n')
    launch = "accelerate launch --num_processes 2 --use_deepspeed --deepspeed_config_file"
    flags = "--model_name_or_path Qwen/Qwen2.5-1.5B --per_device_train_batch_size 1 --max_seq_length 512"
    (folder / "run.sh").write_text(f"{launch} ds.conf tune.py {flags}\n")
    said = cfglint("facts", "run.sh", "--gpu", "h100-sxm:2", "--format", "json").stdout
    (job,) = json.loads(said)["jobs"]
    assert job["facts"]["zero_stage"]["value"] == 3
    (folder / "run.sh").write_text(f"{launch} other.conf tune.py {flags}\n")  # which git may not have
    assert "CFG021" not in cfglint("check", "run.sh", "--gpu", "h100-sxm:2", "--format", "json").stdout


SWITCH = """\
import argparse
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--model_name_or_path")
parser.add_argument("--use_lora", action="store_true")
parser.add_argument("--lora_rank", type=int, default=64)
parser.add_argument("--max_seq_length", type=int)
parser.add_argument("--per_device_train_batch_size", type=int)
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained(args.model_name_or_path)
if args.use_lora:
    model = get_peft_model(model, LoraConfig(r=args.lora_rank))
"""


@pytest.mark.parametrize(("switch", "rank"), [("", 0), ("--use_lora", 64), ("--lora_rank 8", 0)])
def test_a_switch_that_is_not_given_makes_no_adapters(cfglint, folder, switch, rank):
    (folder / "tune.py").write_text(SWITCH)
    flags = "--model_name_or_path Qwen/Qwen2.5-1.5B --per_device_train_batch_size 1 --max_seq_length 512"
    (folder / "run.sh").write_text(f"accelerate launch --num_processes 2 tune.py {flags} {switch}\n")
    said = cfglint("facts", "run.sh", "--gpu", "h100-sxm:2", "--format", "json").stdout
    (job,) = json.loads(said)["jobs"]
    assert job["facts"]["lora_rank"]["value"] == rank
