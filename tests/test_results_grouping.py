"""Whose tokens a loss is a mean of, framework by framework: another micro-batch weighs them differently."""

from __future__ import annotations

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load

PACK = load()
Version = tuple[float, ...] | None
MEGATRON = "--tensor-model-parallel-size 1 --num-layers 8 --hidden-size 512 --micro-batch-size 8"
NEMO = "trainer.devices=8 model.tensor_model_parallel_size=1 model.micro_batch_size=8"
OWN = "--model_name_or_path a/b --per_device_train_batch_size 8 --learning_rate 1e-5 --max_len 512"
SWIFT = (
    "NPROC_PER_NODE=8 swift rlhf --model a/b --tuner_type full --dataset d --per_device_train_batch_size 8"
)
SFT = SWIFT.replace("rlhf", "sft")
MEGATRON_SWIFT = "NPROC_PER_NODE=8 megatron rlhf --model a/b --dataset d --micro_batch_size 8"
NEOX = "{num_layers: 8, hidden_size: 512, pipe_parallel_size: 0, train_micro_batch_size_per_gpu: 8, MORE}"
TUNE = """
model: {_component_: torchtune.models.llama3_1.llama3_1_8b}
optimizer: {_component_: torch.optim.AdamW}
batch_size: 8
"""
PPO = """
policy_model: {_component_: torchtune.models.mistral.mistral_7b}
optimizer: {_component_: torch.optim.AdamW}
ppo_batch_size: 32
gradient_accumulation_steps: 4
"""
AXOLOTL = (
    "base_model: a/b\ndatasets: [{path: d, type: chat_template}]\nmicro_batch_size: 8\nsequence_len: 2048\n"
)
FACTORY = """
model_name_or_path: a/b
finetuning_type: full
template: x
dataset: d
per_device_train_batch_size: 8
do_train: true
"""
XTUNER = """
from mmengine.dataset import DefaultSampler
from xtuner.dataset import process_hf_dataset
from xtuner.dataset.map_fns import alpaca_map_fn, pretrain_map_fn
from xtuner.model import SupervisedFinetune

model = dict(type=SupervisedFinetune, llm=dict(pretrained_model_name_or_path="a/b"))
train_dataset = dict(type=process_hf_dataset, dataset_map_fn=MAP, max_length=2048, pack_to_max_length=True)
train_dataloader = dict(batch_size=8, dataset=train_dataset)
optim_wrapper = dict(accumulative_counts=2)
"""


def grouping(
    text: str, path: str, framework: str | None = None, version: Version = None, name: str = "grouping"
) -> object:
    run = Run(PACK, targets=(parse_target("a100-80gb:8"),), framework=framework, version=version)
    (subject,) = run.subjects(read_text(text, path), judge_broken=False)
    (judged,) = run.judged(subject)
    return judged.values[f"results.{name}"]


@pytest.mark.parametrize(
    ("command", "averaged"),
    [
        (f"torchrun pretrain_gpt.py {MEGATRON}", 0),  # full blocks
        (f"torchrun pretrain_gpt.py {MEGATRON} --sft", 8),
        (f"torchrun pretrain_gpt.py {MEGATRON} --sft --calculate-per-token-loss", 0),
        (f"torchrun pretrain_bert.py {MEGATRON}", 8),  # as many words as are masked
        (f"torchrun finetune_llama.py {MEGATRON} --finetune_hf_dataset", 8),
        (f"python train_gpt_sft.py {NEMO}", 8),
        (f"python train_gpt_dpo.py {NEMO}", 0),  # a mean over pairs
        (f"python megatron_gpt_pretraining.py {NEMO}", 0),
        (f"torchrun --nproc_per_node 8 train_sft.py {OWN}", 8),  # of which no code is here
        (f"torchrun --nproc_per_node 8 train_vit.py {OWN}", 0),
        (SFT, 0),  # over the tokens of the whole step
        (f"{SFT} --label_smoothing_factor 0.1", 8),
        (f"{SWIFT} --rlhf_type dpo", 0),
        (f"{SWIFT} --rlhf_type dpo --rpo_alpha 0.1", 8),
        (f"{SWIFT} --rlhf_type dpo --loss_type sigmoid bco_pair", 8),
        (f"{SWIFT} --rlhf_type orpo", 8),
        (f"{SWIFT} --rlhf_type simpo", 8),
        (f"{SWIFT} --rlhf_type simpo --cpo_alpha 0", 0),
        (f"{SWIFT} --rlhf_type grpo", 0),  # a mean of each answer
        (f"{SWIFT} --rlhf_type grpo --loss_type bnpo", 8),
        (f"{SWIFT} --rlhf_type gkd --teacher_model a/c", 8),
        (f"{MEGATRON_SWIFT} --rlhf_type dpo", 0),
        (f"{MEGATRON_SWIFT} --rlhf_type dpo --rpo_alpha 0.1", 8),
        ("torchrun --nproc_per_node 8 finetuning.py --model_name a/b --lr 1e-4 --batch_size_training 8", 8),
    ],
)
def test_the_tokens_of_a_command(command: str, averaged: int) -> None:
    assert grouping(f"{command}\n", "run.sh") == averaged


@pytest.mark.parametrize(
    ("text", "path", "version", "averaged"),
    [
        (TUNE, "a.yaml", None, 0),  # over the tokens of the whole step
        (TUNE, "a.yaml", (0, 3, 1), 8),
        (PPO, "a.yaml", None, 8),
        (NEOX.replace("MORE", "train_iters: 9"), "a.yml", None, 0),
        (NEOX.replace("MORE", "pack_impl: unpacked"), "a.yml", None, 8),
        (NEOX.replace("MORE", "pack_impl: unpacked, train_impl: dpo"), "a.yml", None, 0),
        (XTUNER.replace("MAP", "alpaca_map_fn"), "a.py", None, 8),  # prompts do not count
        (XTUNER.replace("MAP", "pretrain_map_fn"), "a.py", None, 0),
        (f"{AXOLOTL}rl: dpo", "a.yml", None, 0),
        (f"{AXOLOTL}rl: dpo\nrpo_alpha: 0.5", "a.yml", None, 8),
        (f"{AXOLOTL}rl: dpo\ndpo_loss_type: [sigmoid, sft]", "a.yml", None, 8),
        (f"{AXOLOTL}rl: orpo\norpo_alpha: 0.1", "a.yml", None, 8),
        (f"{AXOLOTL}rl: simpo\ncpo_alpha: 0", "a.yml", None, 0),
        (f"{FACTORY}stage: dpo\npref_ftx: 0.5", "a.yml", None, 0),  # a mean of each answer
        (f"{FACTORY}stage: dpo\npref_loss: kto_pair", "a.yml", None, 8),
        (f"{FACTORY}stage: ppo\nreward_model: a/c", "a.yml", None, 8),
        (f"{FACTORY}stage: sft\nuse_dft_loss: true", "a.yml", None, 0),  # is told the step's tokens
        (f"{FACTORY}stage: sft\nuse_asft_loss: true", "a.yml", None, 8),
    ],
)
def test_the_tokens_of_a_config(text: str, path: str, version: Version, averaged: int) -> None:
    assert grouping(text, path, "torchtune" if version else None, version) == averaged


def test_a_round_is_divided_by_the_passes_again() -> None:
    """ms-swift's dapo divides by a round's tokens, and the trainer by the number of passes."""
    more = "--rlhf_type grpo --gradient_accumulation_steps 4 --loss_type"
    assert grouping(f"{SWIFT} {more} dapo\n", "run.sh", name="summed") == 4
    assert grouping(f"{SWIFT} {more} grpo\n", "run.sh", name="summed") == 0


def test_a_loss_function_of_its_own_is_not_divided_by_the_passes() -> None:
    """transformers' Trainer leaves that to a ``compute_loss_func``, which ASFT's does not do."""
    asked = f"{FACTORY}stage: sft\ngradient_accumulation_steps: 4\nuse_"
    assert grouping(f"{asked}asft_loss: true", "a.yml", name="summed") == 4
    assert grouping(f"{asked}dft_loss: true", "a.yml", name="summed") == 0


@pytest.mark.parametrize(("kind", "version"), [("dpo", (3, 7, 0)), ("grpo", (3, 3, 0))])
def test_older_versions_of_swift(kind: str, version: Version) -> None:
    assert grouping(f"{SWIFT} --rlhf_type {kind}\n", "run.sh", "swift", version) == 8


EACH = "--num-experts 8 --moe-router-load-balancing-type seq_aux_loss"
MIXTURE = """
base_model: mistralai/Mixtral-8x7B-v0.1
datasets: [{path: a/b, type: alpaca}]
micro_batch_size: 8
sequence_len: 2048
model_config: {output_router_logits: WORD}
"""


@pytest.mark.parametrize(
    ("text", "path", "balanced"),
    [
        (f"torchrun pretrain_gpt.py {MEGATRON} --num-experts 8", "run.sh", 0),  # the default weighs nothing
        (f"torchrun pretrain_gpt.py {MEGATRON} --num-experts 8 --moe-aux-loss-coeff 1e-2", "run.sh", 8),
        (f"torchrun pretrain_gpt.py {MEGATRON} --num-experts 8 --moe-aux-loss-coeff 0", "run.sh", 0),
        (f"torchrun pretrain_gpt.py {MEGATRON} {EACH} --moe-aux-loss-coeff 1e-2", "run.sh", 0),
        (f"torchrun pretrain_gpt.py {MEGATRON} --moe-num-experts 8", "run.sh", 8),  # MegaBlocks' fork
        (f"torchrun pretrain_gpt.py {MEGATRON} --moe-num-experts 8 --moe-loss-weight 0", "run.sh", 0),
        (MIXTURE.replace("WORD", "true"), "a.yml", 8),
        (MIXTURE.replace("WORD", "false"), "a.yml", 0),
    ],
)
def test_what_the_experts_are_balanced_over(text: str, path: str, balanced: int) -> None:
    assert grouping(f"{text}\n", path, name="balance") == balanced
