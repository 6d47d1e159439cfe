"""Bare transformers.TrainingArguments: which files are recognised, and what each fact comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load
from cfglint.lang.values import needs_of

if TYPE_CHECKING:
    from cfglint.facts import Values
    from cfglint.lang.pack import Pack

ARGS = "output_dir: out\nnum_train_epochs: 1\n"
CLM = ARGS + "model_name_or_path: Qwen/Qwen2.5-0.5B\ndataset_name: wikitext\nblock_size: 1024\n"
OLD = ARGS + "gradient_checkpointing: true\n"
TRL = "model_name_or_path: Qwen/Qwen2.5-0.5B\ndataset_name: a/b\npacking: true\n"
ZERO = "deepspeed: {zero_optimization: {stage: 3, offload_optimizer: {device: cpu}}}\n"


def _values(pack: Pack, text: str, target: str = "h100-sxm:8", rules: str = "") -> Values:
    used = load({"mine.rules": rules}) if rules else pack
    run = Run(used, [parse_target(target)])
    (subject,) = run.subjects(read_text(text, "c.yaml"), judge_broken=True)
    assert subject.framework == "transformers"
    return run.judged(subject)[0].values


# What the file says, the fact, its value; None where nothing tells it.
TOLD = [
    (ARGS, "micro_batch_size", 8),
    (ARGS + "per_device_train_batch_size: 2\n", "micro_batch_size", 2),
    (ARGS, "grad_accum", 1),
    (ARGS, "train_gpus", 8),
    (ARGS + "per_device_train_batch_size: 2\n", "effective_batch_size", 16),
    (ARGS, "task", None),
    (ARGS, "trains", True),
    (ARGS, "generates", False),
    (ARGS, "dtype", None),
    (ARGS + "bf16: true\n", "dtype", "bf16"),
    (ARGS + "fp16: true\n", "dtype", "fp16"),
    (ARGS + "torch_dtype: float32\n", "dtype", "fp32"),
    (ARGS + "bf16: true\ndtype: bfloat16\n", "param_dtype", None),
    (ARGS + "bf16: true\n", "param_dtype", None),
    (ARGS + "bf16: true\n" + ZERO, "param_dtype", "bf16"),
    (ARGS + ZERO, "zero_stage", 3),
    (ARGS + ZERO, "offload_optimizer", True),
    (ARGS + ZERO, "offload_params", False),
    (ARGS + ZERO.replace("optimizer:", "param:"), "offload_params", True),
    (ARGS + ZERO.replace("optimizer:", "param:").replace("3", "2"), "offload_params", False),
    (ARGS, "zero_stage", None),
    (ARGS + "deepspeed: ds.json\n", "zero_stage", None),
    (ARGS + "fsdp: full_shard auto_wrap\n", "dp_shard", -1),
    (ARGS + "fsdp: full_shard auto_wrap offload\n", "dp_shard", -1),
    (ARGS + "fsdp: full_shard auto_wrap offload\n", "offload_params", True),
    (ARGS + "fsdp: full_shard auto_wrap\n", "offload_params", False),
    (ARGS + "fsdp: true\n", "train_backend", "fsdp"),
    (ARGS + "q_lora: true\n", "quantization", None),
    (ARGS + "q_lora: false\n", "quantization", "none"),
    (ARGS + "fsdp: true\nfsdp_config: {cpu_offload: true}\n", "offload_params", True),
    (ARGS, "gradient_checkpointing", "none"),
    (ARGS + "gradient_checkpointing: true\n", "gradient_checkpointing", "full"),
    (ARGS + "activation_checkpointing: true\n", "gradient_checkpointing", "full"),
    (OLD + "activation_checkpointing: false\n", "gradient_checkpointing", "none"),
    (OLD + "activation_checkpointing: null\n", "gradient_checkpointing", "full"),
    (ARGS, "optimizer", "adamw_fused"),
    (ARGS + "optim: adamw_bnb_8bit\n", "optimizer", "adamw_8bit"),
    (ARGS + "optim: galore_adamw\n", "optimizer", None),
    (ARGS + "use_liger_kernel: true\n", "fused_loss", "liger"),
    (
        ARGS + "use_liger_kernel: true\nliger_kernel_config: {fused_linear_cross_entropy: false}\n",
        "fused_loss",
        "none",
    ),
    (ARGS, "fused_loss", "none"),
    (CLM, "seq_len", 1024),
    (CLM, "packing", True),
    (CLM + "max_seq_length: 4096\n", "seq_len", 4096),
    (CLM + "max_seq_length: 4096\n", "packing", False),
    (ARGS + "max_seq_length: 128\n", "seq_len", 128),
    (ARGS, "seq_len", None),
    (ARGS, "dataloader_workers", 0),
    (ARGS + "dataloader_prefetch_factor: 4\n", "hf.prefetch", 4),
    (ARGS, "comm_timeout", 1800),
    (ARGS, "hf.eval_strategy", "no"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name", "value"), TOLD)
def test_binding(pack: Pack, text: str, name: str, value: object) -> None:
    values = _values(pack, text)
    if value is None:
        assert needs_of(values[name])
    else:
        assert values[name] == value


def test_one_gpu_holds_all(pack: Pack) -> None:
    values = _values(pack, ARGS + "bf16: true\ndtype: bfloat16\n", "a40:1")
    assert (values["dp_shard"], values["param_dtype"]) == (1, "bf16")


@pytest.mark.parametrize("key", ["predict_with_generate: true", "generation_num_beams: 1"])
def test_arguments_of_the_seq2seq_trainer_tell_the_task(pack: Pack, key: str) -> None:
    assert needs_of(_values(pack, CLM)["task"])
    assert _values(pack, f"{CLM}{key}\n")["task"] == "sft"


@pytest.mark.parametrize(
    ("flag", "task"),
    [
        ("--task DPO", "dpo"),
        ("--training_stage kto", "kto"),
        ("--task vqa --train_type SimPO", "orpo"),
        ("--stage rm", "rm"),
        ("--task vqa", None),
        ("--stage grpo", None),
    ],
)
def test_a_flag_that_names_the_method_tells_the_task(pack: Pack, flag: str, task: str | None) -> None:
    command = (
        "torchrun --nproc_per_node 4 own.py --model_name_or_path Qwen/Qwen2.5-7B --output_dir out --bf16 True"
    )
    text = f"{command} --per_device_train_batch_size 4 --logging_steps 1 --model_max_length 2048 {flag}\n"
    run = Run(pack, [parse_target("h100-sxm:4")])
    (subject,) = run.subjects(read_text(text, "run.sh"), judge_broken=True)  # or of one's own
    value = run.judged(subject)[0].values["task"]
    assert value == task if task else needs_of(value)


def test_memory_is_known_once_the_task_is_told(pack: Pack) -> None:
    text = CLM + "bf16: true\ndtype: bfloat16\n"
    assert needs_of(_values(pack, text, "a40:1")["trainer.memory"])
    told = _values(pack, text, "a40:1", rules="let task = pretrain\n")["trainer.memory"]
    assert not needs_of(told)
    assert 5 < told.lo / 2**30 < told.hi / 2**30 < 50


@pytest.mark.parametrize(
    "text",
    [
        CLM,
        ARGS + "task_name: mrpc\nmodel_name_or_path: bert-base-cased\n",
        "output_dir: out\nper_device_train_batch_size: 4\n",
    ],
)
def test_taken(pack: Pack, text: str) -> None:
    (subject,) = Run(pack).subjects(read_text(text, "c.yaml"), judge_broken=False)
    assert subject.framework == "transformers"


# Others' files with TrainingArguments in them.
OTHERS = [
    ("trl", "model_name_or_path: x\ndataset_name: y\noutput_dir: out\nnum_train_epochs: 1\n"),
    ("trl", "output_dir: out\nnum_generations: 8\nper_device_train_batch_size: 4\n"),
    ("llamafactory", ARGS + "model_name_or_path: x\nfinetuning_type: lora\nstage: sft\ndo_train: true\n"),
    ("axolotl", "base_model: x\nmicro_batch_size: 1\noutput_dir: out\nnum_train_epochs: 1\n"),
    (None, ARGS + "tuner_type: lora\nmodel: x\n"),
    (None, ARGS + "packing: true\n"),
    (None, "output_dir: out\n"),
    (None, "num_train_epochs: 1\nper_device_train_batch_size: 4\n"),
]


@pytest.mark.parametrize(("name", "text"), OTHERS)
def test_not_taken(pack: Pack, name: str | None, text: str) -> None:
    subjects = Run(pack).subjects(read_text(text, "c.yaml"), judge_broken=False)
    assert [subject.framework for subject in subjects] == ([name] if name else [])


def test_flags_of_a_program_may_be_anybodys(pack: Pack) -> None:
    text = "torchrun --nproc_per_node 2 run.py --output_dir out --num_train_epochs 1\n"
    (subject,) = Run(pack).subjects(read_text(text, "run.sh"), judge_broken=False)
    assert subject.framework == "user_script"  # which has no defaults


# Bytes of optimizer states for each parameter of the body and of the (tied) embedding, weights in bf16.
STATES = [
    ("adamw_torch_fused", 4, 4),
    ("adamw_bnb_8bit", 2 * (1 + 4 / 256), 8),
    ("lion_8bit", 1 + 4 / 256, 4),
    ("paged_adamw_8bit", 0, 0),
    ("paged_adamw_32bit", 0, 0),
    ("sgd", 0, 0),
    ("lion_32bit", 2, 2),
]


@pytest.mark.parametrize(
    "head",
    [
        ARGS + "model_name_or_path: Qwen/Qwen2.5-0.5B\ndtype: bfloat16\nbf16: true\n",
        TRL + "dtype: bfloat16\nbf16: true\n",
    ],
    ids=["transformers", "trl"],
)
@pytest.mark.parametrize(("optim", "body", "embedding"), STATES)
def test_only_eight_bit_states_of_the_embedding_are_fp32(
    pack: Pack, head: str, optim: str, body: float, embedding: float
) -> None:
    run = Run(pack, [parse_target("a40:1")])
    (subject,) = run.subjects(read_text(f"{head}optim: {optim}\n", "c.yaml"), judge_broken=True)
    values = run.judged(subject)[0].values
    table = values["params.embedding"]
    rest = values["model.params"] - table
    assert values["states.optimizer"] == pytest.approx(body * rest + embedding * table)
