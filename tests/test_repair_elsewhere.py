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
