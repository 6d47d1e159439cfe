"""A value that another file says is told with what mends the errors together."""

from __future__ import annotations

from found import found_in

BASE = """\
from torchtitan.components.optimizer import default_adamw
from torchtitan.config import ParallelismConfig, TrainingConfig
from torchtitan.models.deepseek_v3 import model_registry
from torchtitan.trainer import Trainer


def mixture() -> Trainer.Config:
    return Trainer.Config(
        model_spec=model_registry("16B"),
        optimizer=default_adamw(lr=3e-4),
        training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=8192, max_context_length=4096),
        parallelism=ParallelismConfig(expert_parallel_degree=8),
    )
"""
WRAPPED = """\
from mixture_base import mixture

from torchtitan.trainer import Trainer


def mixture_with_other_steps() -> Trainer.Config:
    config = mixture()
    config.training.steps = 200
    return config
"""


def test_one_move_mends_both_rules() -> None:
    found = found_in(WRAPPED, "h200:4", "wrapped.py", {"mixture_base.py": BASE})
    for code in ("PAR288", "PAR298"):
        fix = found[code].fix
        assert fix is not None, found[code].no_fix
        assert fix.title == "set parallelism.expert_parallel_degree to 4"
        assert not fix.edits


UNKNOWN_PROGRAM = """\
torchrun --nproc_per_node 4 train_heads.py --model_name_or_path lmsys/vicuna-7b-v1.3 --bf16 True \\
    --output_dir out --num_train_epochs 1 --per_device_train_batch_size 8 --gradient_accumulation_steps 4 \\
    --learning_rate 1e-3 --logging_steps 1 --model_max_length 2048
"""


def test_states_that_nothing_moves_are_told_by_their_size() -> None:
    told = found_in(UNKNOWN_PROGRAM, "rtx-4090", "train.sh")["MEM105"].unfixed
    assert "the model states take at least 24.6 GiB of a GPU that has 23.5" in told
    assert "no other hardware" not in told  # where nobody knows what the job takes
    assert "which other hardware the job runs is not known" in told
    assert "add --framework transformers" in told
