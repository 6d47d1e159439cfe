"""What a fix adds to a command is what the program takes: its style, its words, its own arguments."""

from __future__ import annotations

import pytest

from cfglint.document.compose import edited
from cfglint.document.reading import Library, read_text
from cfglint.engine.describe import Origins
from cfglint.engine.judge import values_for
from cfglint.engine.run import Run
from cfglint.lang.pack import load
from cfglint.repair.write import Writer

FLAT = "deepspeed --module openrlhf.cli.train_sft --pretrain m --dataset d --save_path out"
DOTTED = "deepspeed --module openrlhf.cli.train_sft --model.model_name_or_path m --data.dataset d"
VERL = "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=m data.train_batch_size=64"
TRANSFORMERS = (
    "torchrun --nproc_per_node 8 tune.py --model_name_or_path m --output_dir out --logging_steps 1 "
    "--per_device_train_batch_size 4"
)
RECIPE = "torchrun --nproc_per_node 4 finetune_it.py --config-path conf ++train_config.batch_size_training=6"
RECIPE_ACCUMULATES = "++train_config.gradient_accumulation_steps=2"
MEGATRON = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 64 --global-batch-size 8 "
    "--tensor-model-parallel-size 2 --micro-batch-size 4 --bf16"
)


@pytest.fixture(scope="module")
def pack():
    return load()


def added(pack, command: str, name: str, value: object, files: dict[str, str] | None = None) -> str | None:
    """Return what a command becomes so that a fact is worth a value: the words that are new, None without."""
    found = {path: text.encode() for path, text in (files or {}).items()}
    run = Run(pack, selected=lambda _: False, library=Library(lambda by, path=None: found.get(path or by)))
    subject = next(s for s in run.subjects(read_text(f"{command}\n", "run.sh"), judge_broken=True))
    writer = Writer(subject, Origins(run.finder.symbols, values_for(subject, {}), {}, subject.framework))
    way = writer.writes(name, value)
    patch = writer.patch(way.keys) if way is not None else None
    if patch is None:
        return None
    text = edited(subject.document, patch.edits).file.text
    return " ".join(word for word in text.split() if word not in command.split())


@pytest.mark.parametrize(
    ("command", "name", "value", "words"),
    [
        # a program of one's own with Hydra, whose config does not have the key
        (RECIPE, "grad_accum", 2, "++train_config.gradient_accumulation_steps=2"),
        (RECIPE.replace(" ++", " +"), "grad_accum", 2, "++train_config.gradient_accumulation_steps=2"),
        (f"{RECIPE} ++train_config.gradient_accumulation_steps=4", "grad_accum", 2, RECIPE_ACCUMULATES),
        # a fork with flat flags, or an older version, and a newer one with dots
        (FLAT, "offload_optimizer", True, "--adam_offload"),
        (DOTTED, "offload_optimizer", True, "--ds.adam_offload"),
        (f"{FLAT} --adam_offload", "zero_stage", 3, "--zero_stage 3"),
        # a flag without words takes none
        (FLAT, "gradient_checkpointing", "full", "--gradient_checkpointing"),
        (DOTTED, "gradient_checkpointing", "full", "--model.gradient_checkpointing_enable"),
        # HfArgumentParser's switches take words
        (
            f"{TRANSFORMERS} --save_strategy no",
            "gradient_checkpointing",
            "full",
            "--gradient_checkpointing True",
        ),
        (
            TRANSFORMERS,
            "gradient_checkpointing",
            "full",
            None,
        ),  # these flags may be those of a parser of its own
        (f"{TRANSFORMERS} --save_strategy no", "tf32", True, "--tf32 True"),
        (f"{TRANSFORMERS} --tf32 True", "tf32", False, "False"),
        (f"{TRANSFORMERS} --gradient_checkpointing", "gradient_checkpointing", "none", "False"),
        # overrides have no dashes, and ++ where the config does not have the key
        (VERL, "enforce_eager", True, "actor_rollout_ref.rollout.enforce_eager=true"),
        (VERL, "attn_impl", "sdpa", "++actor_rollout_ref.model.override_config.attn_implementation=sdpa"),
        # what the program asserts beside
        (
            MEGATRON,
            "gradient_checkpointing",
            "full",
            "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
        ),
        (
            MEGATRON,
            "offload_optimizer",
            True,
            "--optimizer-cpu-offload --use-precision-aware-optimizer --use-distributed-optimizer",
        ),
        (
            f"{MEGATRON} --use-distributed-optimizer",
            "offload_optimizer",
            True,
            "--optimizer-cpu-offload --use-precision-aware-optimizer",
        ),
        (MEGATRON, "dtype", "fp16", "--fp16"),
        (
            f"{MEGATRON} --recompute-granularity selective --recompute-num-layers 1 --recompute-method block",
            "gradient_checkpointing",
            "full",
            "full",
        ),
        (f"{MEGATRON} --recompute-method uniform", "gradient_checkpointing", "selective", None),
    ],
)
def test_what_a_command_gets(pack, command: str, name: str, value: object, words: str | None) -> None:
    assert added(pack, command, name, value) == words


OWN = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--output_dir")
parser.add_argument("--per_device_train_batch_size", type=int, default=4)
parser.add_argument("--model_name_or_path")
parser.add_argument("--logging_steps", type=int)
{}
args = parser.parse_args()
"""


SWITCH = "--gradient_checkpointing"


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("", None),
        (f'parser.add_argument("{SWITCH}", type=bool)', f"{SWITCH} True"),
        (f'parser.add_argument("{SWITCH}", action="store_true")', SWITCH),
        (f'parser.add_argument("{SWITCH}", choices=["unsloth"])', None),
        ("parser = more(parser)", None),
    ],
)
def test_the_programs_own_arguments_count(pack, argument: str, words: str | None) -> None:
    files = {"tune.py": OWN.format(argument)}
    assert added(pack, TRANSFORMERS, "gradient_checkpointing", "full", files) == words


def test_the_words_of_its_modules_count(pack) -> None:
    """A parser that is not followed is known by its words where those of the command are among them."""
    words = "output_dir per_device_train_batch_size model_name_or_path logging-steps"
    options = "WORDS = [" + ", ".join(f'"--{word}"' for word in words.split()) + "{}]\n"
    files = {
        "tune.py": "from own.options import WORDS\nimport own.build\nargs = own.build.parser(WORDS)\n",
        "own/build.py": "def parser(options):\n    return load(options)\n",
    }
    few = {**files, "own/options.py": options.format("")}
    more = {**files, "own/options.py": options.format(f', "{SWITCH}"')}
    name, value = "gradient_checkpointing", "full"
    assert added(pack, TRANSFORMERS, name, value, few) is None
    assert added(pack, TRANSFORMERS, name, value, more) == f"{SWITCH} True"
    strange = f"{TRANSFORMERS} --bf16 True --save_strategy no"  # which a library must take
    assert added(pack, strange, name, value, few) == SWITCH  # and True, which stands there already


PLAIN = """
from dataclasses import dataclass
from transformers import HfArgumentParser, TrainingArguments
from trl import {trl}


@dataclass
class Own:
    model_name_or_path: str
    max_length: int = 512


own, args{more} = HfArgumentParser((Own, TrainingArguments{filled})).parse_args_into_dataclasses()
trainer = DPOTrainer(own.model_name_or_path, args=args, max_length=own.max_length)
"""


@pytest.mark.parametrize(
    ("trl", "more", "name", "value", "words"),
    [
        ("DPOTrainer", "", "gradient_checkpointing", "full", f"{SWITCH} True"),
        ("DPOTrainer", "", "attn_impl", "flash_attention_2", None),
        ("DPOTrainer, ModelConfig", ", ModelConfig", "attn_impl", "eager", "--attn_implementation eager"),
    ],
)
def test_a_parser_of_transformers_arguments_takes_no_others(
    pack, trl: str, more: str, name: str, value: str, words: str | None
) -> None:
    rest = ", others" if more else ""
    files = {"tune.py": PLAIN.format(trl=trl, more=rest, filled=more)}
    assert added(pack, TRANSFORMERS, name, value, files) == words


LLAMAFACTORY = """model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: full
template: qwen
cutoff_len: 2048
gradient_accumulation_steps: 8
output_dir: out
bf16: true
"""
SYNCS = "accelerator_config.gradient_accumulation_kwargs.sync_each_batch=True"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("accelerate launch --use_fsdp src/train.py sft.yaml output_dir=there", SYNCS),  # OmegaConf.from_cli
        ("accelerate launch --use_fsdp src/train.py --stage sft --template qwen --cutoff_len 2048", None),
    ],
)
def test_overrides_that_are_merged_take_dots(pack, command: str, words: str | None) -> None:
    assert added(pack, command, "unsynced_accumulation", False, {"sft.yaml": LLAMAFACTORY}) == words
