"""XTuner's configs in Python, and the commands that start them: what each fact comes from."""

from __future__ import annotations

import pytest

from cfglint.document.candidates import may_be_settings
from cfglint.document.edits import insert_key, replace_value
from cfglint.document.python.settings import parse_settings
from cfglint.document.reading import Library, read_text
from cfglint.document.scalars import PYTHON
from cfglint.document.tree import Scalar, target
from cfglint.document.view import View
from cfglint.engine.cases import cases_of
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.values import needs_of
from cfglint.text import apply_edits
from told import point

HEAD = """
import torch
from mmengine.optim import AmpOptimWrapper
from peft import LoraConfig
from torch.optim import AdamW
from torch.utils.data import ConcatDataset
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer, TrainingArguments
from xtuner.dataset import LLaVADataset, process_hf_dataset
from xtuner.dataset.preference_dataset import build_preference_dataset
from xtuner.engine.runner import TrainLoop
from xtuner.model import DPO, ORPO, InternVL_V1_5, LLaVAModel, SupervisedFinetune
from xtuner.model.reward import RewardModel

name = "Qwen/Qwen2.5-1.5B"
max_length = int(2048 - (336 / 14) ** 2)
sequence_parallel_size = 1
batch_size = 2
accumulative_counts = 16
accumulative_counts *= sequence_parallel_size
data = dict(type=process_hf_dataset, max_length=max_length, pack_to_max_length=False)
"""
LLM = "llm=dict(type=AutoModelForCausalLM.from_pretrained, pretrained_model_name_or_path=name)"
TAIL = """
train_dataloader = dict(batch_size=batch_size, num_workers=4, dataset=DATA)
optim_wrapper = dict(type=AmpOptimWrapper, optimizer=dict(type=AdamW, lr=1e-4),
                     accumulative_counts=accumulative_counts, dtype="bfloat16")
train_cfg = dict(type=TrainLoop, max_epochs=3)
"""


def config(model: str, data: str = "data", more: str = "") -> str:
    return f"{HEAD}\nmodel = dict({model})\n{more}{TAIL.replace('DATA', data)}"


LOADED = "type=AutoModelForCausalLM.from_pretrained, pretrained_model_name_or_path=name, load_in_8bit=True"
BITS = "quantization_config=dict(type=BitsAndBytesConfig, load_in_4bit=True)"
QLORA = f"type=SupervisedFinetune, {LLM[:-1]}, {BITS}), lora=dict(type=LoraConfig, r=64)"
FULL = f"type=SupervisedFinetune, {LLM}"
PREFERENCES = "dict(type=build_preference_dataset, max_length=1024)"
TABLE = [
    (
        config(FULL),
        {"model_path": "Qwen/Qwen2.5-1.5B", "task": "sft", "lora_rank": 0, "quantization": "none"},
    ),
    (config(FULL), {"micro_batch_size": 2, "grad_accum": 16, "seq_len": 1472, "packing": False}),
    (config(FULL), {"num_epochs": 3, "optimizer": "adamw", "dataloader_workers": 4, "sp": 1}),
    (config(FULL), {"gradient_checkpointing": "full", "zero_stage": None, "reference.present": False}),
    (config(f"{FULL}, use_activation_checkpointing=False"), {"gradient_checkpointing": "none"}),
    (config(QLORA), {"lora_rank": 64, "quantization": "4", "lora_embeddings": False}),
    (config(f"{FULL}, lora=None"), {"lora_rank": 0}),
    (config(f"{FULL}, lora=dict(type=LoraConfig)"), {"lora_rank": 8}),
    (config(f"type=DPO, {LLM}", PREFERENCES), {"task": "dpo", "seq_len": 1024, "reference.present": True}),
    (config(f"type=DPO, {LLM}, lora=dict(type=LoraConfig, r=4)", PREFERENCES), {"reference.present": False}),
    (config(f"type=ORPO, {LLM}", PREFERENCES), {"task": "orpo", "packing": False}),
    (config(f"type=RewardModel, {LLM}", PREFERENCES), {"task": "rm", "lora_rank": 0}),
    (
        config(f"type=LLaVAModel, {LLM}, freeze_llm=True", "dict(type=LLaVADataset, max_length=max_length)"),
        {"model_path": "Qwen/Qwen2.5-1.5B", "lora_rank": None, "task": "sft", "seq_len": 1472},
    ),
    (
        config(
            "type=InternVL_V1_5, model_path=name, quantization_llm=True, llm_lora=dict(type=LoraConfig, r=16)"
        ),
        {"model_path": "Qwen/Qwen2.5-1.5B", "lora_rank": 16, "quantization": "4"},
    ),
    (
        config(FULL, "dict(type=ConcatDataset, datasets=[data, data])"),
        {"seq_len": 1472, "packing": False, "micro_batch_size": 2},
    ),
    (
        config(
            LOADED,
            more="framework = 'huggingface'\nlora = dict(type=LoraConfig, r=16, target_modules=['up_proj'])\n"
            "training_args = dict(type=TrainingArguments, per_device_train_batch_size=3, fp16=True)\n",
        ),
        {
            "lora_rank": 16,
            "lora_targets": ("up_proj",),
            "micro_batch_size": 3,
            "grad_accum": 1,
            "dtype": "fp16",
        },
    ),
    # A length that a loop or a base sets is not known.
    (
        config(FULL).replace("max_length = int", "for max_length in range(4): pass\nunused = int"),
        {"seq_len": None},
    ),
    (config(FULL, more="from mmengine.config import read_base\n"), {"task": None, "sp": 1}),
]
LAUNCHES = [
    ("NPROC_PER_NODE=8 xtuner train my.py", {"train_gpus": 8, "zero_stage": 0, "dtype": "bf16"}),
    ("NPROC_PER_NODE=8 xtuner train my.py --deepspeed deepspeed_zero2", {"zero_stage": 2, "grad_accum": 16}),
    (
        "NPROC_PER_NODE=4 NNODES=2 xtuner train my.py --deepspeed deepspeed_zero3_offload",
        {"train_gpus": 8, "num_nodes": 2, "zero_stage": 3, "offload_params": True, "offload_optimizer": True},
    ),
    (
        "xtuner train my.py --deepspeed deepspeed_zero1",
        {"train_gpus": 1, "zero_stage": 1, "param_dtype": "bf16"},
    ),
    ("xtuner train --deepspeed x/deepspeed_zero2.json my.py", {"zero_stage": 2, "micro_batch_size": 2}),
    (
        "srun -n 16 xtuner train my.py --launcher slurm --deepspeed deepspeed_zero2",
        {"train_gpus": 16, "train_dp": 16},
    ),
    (
        "torchrun --nproc_per_node 4 xtuner/tools/train.py my.py --launcher pytorch",
        {"train_gpus": 4, "lora_rank": 0, "framework.name": "xtuner"},
    ),
    (
        "xtuner train my.py --cfg-options train_dataloader.batch_size=8 model.lora.r=4 --seed 1",
        {"micro_batch_size": 8, "grad_accum": 16},
    ),
    # A config of XTuner's own package, by its name, is not here.
    (
        "xtuner train internlm2_7b_qlora_alpaca_e3 --deepspeed deepspeed_zero2",
        {"framework.name": "xtuner", "zero_stage": 2, "micro_batch_size": None, "lora_rank": None},
    ),
    ('xtuner train "$1"', {"framework.name": "xtuner", "model_path": None}),
]


def values_of(pack, text, path, files=()):
    library = Library(dict(files).get)
    run = Run(pack, [parse_target("a100-80gb-sxm:8")], library=library)
    (subject,) = run.subjects(read_text(text, path), judge_broken=True)
    return run.judged(subject)[0].values


@pytest.mark.parametrize(("text", "expected"), TABLE, ids=[str(i) for i in range(len(TABLE))])
def test_a_config_is_read(pack, text, expected):
    values = values_of(pack, text, "my.py")
    assert values["framework.name"] == "xtuner"
    assert {name: point(values[name]) for name in expected} == expected


@pytest.mark.parametrize(("command", "expected"), LAUNCHES, ids=[str(i) for i in range(len(LAUNCHES))])
def test_a_command_is_laid_over_its_config(pack, command, expected):
    values = values_of(pack, command + "\n", "train.sh", {"my.py": config(FULL).encode()})
    assert {name: point(values[name]) for name in expected} == expected


def test_what_a_base_sets_is_not_known(pack):
    text = config(FULL).replace("sequence_parallel_size = 1", "from mmengine.config import read_base")
    text = text.replace(
        "accumulative_counts *= sequence_parallel_size\n", "with read_base():\n    from .x import *\n"
    )
    values = values_of(pack, text, "my.py")
    assert point(values["sp"]) is None
    assert point(values["model_path"]) is None or point(values["task"]) == "sft"


@pytest.mark.parametrize(
    "text",
    [
        "import xtuner\nmodel = dict(a=1)\ntrain_cfg = dict(b=2)\n",
        "from mmdet.models import Net\nmodel = dict(type=Net)\ntrain_cfg = dict(b=2)  # xtuner\n",
        "from xtuner.model import DPO\nmodel = DPO(llm=dict(type='x'))\ntrain_cfg = dict(b=2)\n",
        "def f():\n    from xtuner.model import DPO\n    model = dict(type=DPO)\n    train_cfg = dict(b=2)\n",
        "from xtuner.model import DPO\nmodel = dict(type=DPO)\n",
        "from xtuner.model import DPO\nmodel = dict(type=DPO\n",
    ],
)
def test_other_programs_are_none(text):
    assert may_be_settings(text)
    assert parse_settings(text) == []


def test_a_value_is_edited_where_it_is_defined():
    (document,) = read_text(config(FULL), "my.py").documents
    text, view = document.file.text, View(document, PYTHON)

    def changed(path, value):
        node = target(view.place(path)[0])
        assert isinstance(node, Scalar)
        edit = replace_value(document, node, value, PYTHON)
        assert edit is not None
        return apply_edits(text, [edit])

    assert changed(("train_dataloader", "batch_size"), 1) == text.replace("batch_size = 2", "batch_size = 1")
    expected = text.replace("accumulative_counts = 16", "accumulative_counts = 32")
    assert changed(("optim_wrapper", "accumulative_counts"), 32) == expected
    edit = insert_key(document, ("model", "use_activation_checkpointing"), True, PYTHON)
    added = text.replace(f"{LLM})", f"{LLM}, use_activation_checkpointing=True)")
    assert edit is not None
    assert apply_edits(text, [edit]) == added


def test_a_mapping_that_is_read_twice_is_one():
    (document,) = read_text(config(FULL), "my.py").documents
    entries = document.root.entries
    assert target(entries["train_dataloader"].value.entries["dataset"].value) is target(entries["data"].value)


def test_the_fix_of_a_command_is_an_option_of_the_config():
    (document,) = read_text("xtuner train my.py --deepspeed deepspeed_zero2\n", "train.sh").documents
    edit = insert_key(document, ("train_dataloader", "batch_size"), 1, PYTHON)
    assert edit is not None
    expected = "xtuner train my.py --deepspeed deepspeed_zero2 --cfg-options train_dataloader.batch_size=1\n"
    assert apply_edits(document.file.text, [edit]) == expected
    (told,) = read_text("xtuner train my.py --cfg-options a=1\n", "train.sh").documents
    assert insert_key(told, ("train_dataloader", "batch_size"), 1, PYTHON) is None


CASES = [
    (FULL, {("deepspeed_zero2", None): True, ("none", "bf16"): True, ("none", "fp32"): True}),
    (QLORA, {("deepspeed_zero3", None): True, ("none", None): True}),
    (f"type=RewardModel, {LLM}", {("deepspeed_zero2", None): True}),
    (f"type=DPO, {LLM}", {("deepspeed_zero1", None): True, ("none", "fp32"): True}),
]


@pytest.mark.parametrize(("model", "wanted"), CASES)
def test_each_way_to_launch_a_config_is_judged(pack, model, wanted):
    values = values_of(pack, config(model), "my.py")
    cases = {
        (case.chosen["xtuner.launch"], case.chosen.get("xtuner.weights")): not needs_of(
            case.values["need.total"]
        )
        for case in cases_of(values)
    }
    assert cases.items() >= wanted.items()
    assert all(cases.values())
