"""prime-rl's SFT and its parts started one by one: which TOML files are theirs, what their keys come to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cfglint.document.reading import read
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from told import point

if TYPE_CHECKING:
    from cfglint.engine.subject import Subject
    from cfglint.lang.pack import Pack


def _sft(model: str = "", data: str = "", rest: str = "") -> str:
    return (
        f'[ckpt]\n[model]\nname = "Qwen/Qwen3-4B"\n{model}\n'
        f'[data]\nname = "x"\nseq_len = 4096\nbatch_size = 32\n{data}\n{rest}\n'
    )


NODES = '[deployment]\ntype = "multi_node"\nnum_train_nodes = 4\n'
TWO = "[deployment]\nnum_train_gpus = 2\n"
TRAINER = '[model]\nname = "Qwen/Qwen3-4B"\nseq_len = 2048\n[optim]\nlr = 1e-6\n[ckpt]\n'
ORCHESTRATOR = (
    'batch_size = 128\ngroup_size = 16\n[model]\nname = "m"\n'
    '[train.sampling]\nmax_completion_tokens = 512\n[[train.source]]\nname = "sums"\n'
)
INFERENCE = '[vllm]\nmodel = "Qwen/Qwen3-4B"\ntensor_parallel_size = 2\n[slurm]\njob_name = "x"\n'

TOLD: list[tuple[str, str, object]] = [
    (_sft(), "task", "sft"),
    (_sft(), "trains", True),
    (_sft(), "generates", False),
    (_sft(), "train_gpus", 1),
    (_sft(rest=TWO), "train_gpus", 2),
    (_sft(rest=TWO), "num_gpus", 2),
    (_sft(rest=NODES), "train_gpus", 32),
    (_sft(rest=NODES.replace("num_train_nodes = 4\n", "")), "train_gpus", 16),
    (_sft(rest=TWO + "[inference]\n[eval]\n"), "gpus_needed", 3),
    (_sft("cp = 2", rest=TWO), "train_dp", 1),
    (_sft(rest=TWO), "grad_accum", 16),
    (_sft("cp = 2", rest=TWO), "grad_accum", 32),
    (_sft(data="micro_batch_size = 4", rest=TWO), "grad_accum", 4),
    (_sft(data="micro_batch_size = 4"), "micro_batch_size", 4),
    (_sft(), "effective_batch_size", 32),
    (_sft(), "seq_len", 4096),
    (_sft(), "packing", True),
    (_sft(), "param_dtype", "fp32"),
    (_sft('optimization_dtype = "bfloat16"'), "param_dtype", "bf16"),
    (_sft("[model.lora]\nrank = 8"), "lora_rank", 8),
    (_sft("[model.lora]"), "lora_rank", 16),
    (_sft('lora = "None"'), "lora_rank", 0),
    (_sft(), "gradient_checkpointing", "full"),
    (_sft('ac = "None"\nac_offloading = "None"'), "gradient_checkpointing", "none"),
    (_sft('ac_offloading = "None"'), "activation_offload", False),
    (_sft(), "offload_optimizer", True),
    (_sft("optim_cpu_offload = false"), "offload_optimizer", False),
    (_sft("full_offload = true\noptim_cpu_offload = false"), "offload_optimizer", True),
    (_sft(rest='[optim]\ntype = "muon"'), "optimizer", "muon"),
    (_sft(), "fused_loss", "chunked"),  # from v0.8.0 on, SFT too
    (_sft("[model.vlm]"), "freeze_vision_tower", True),
    (TRAINER, "task", "grpo"),
    (TRAINER, "train_gpus", 8),
    (TRAINER, "seq_len", 2048),
    (TRAINER, "fused_loss", "chunked"),
    (TRAINER, "train_batch_size", None),
    (ORCHESTRATOR, "trains", False),
    (ORCHESTRATOR, "n_samples", 16),
    (ORCHESTRATOR, "rollout_batch_size", 8),
    (ORCHESTRATOR, "max_new_tokens", 512),
    (INFERENCE, "task", "inference"),
    (INFERENCE, "rollout_tp", 2),
    (INFERENCE, "mem_fraction", 0.9),
]

NAMES = {
    "sft": (_sft(), "prime_rl_sft"),
    "trainer": (TRAINER, "prime_rl_sft"),
    "orchestrator": (ORCHESTRATOR, "prime_rl_orchestrator"),
    "inference": (INFERENCE, "prime_rl_inference"),
    "somebody's own": ('[model]\nname = "m"\n[data]\nseq_len = 1\nbatch_size = 2\n[optim]\nlr = 1.0\n', None),
    "torchtitan": ('[model]\nname = "m"\nflavor = "8B"\nseq_len = 1\n[optim]\nlr = 1.0\n[ckpt]\n', None),
    "inference that says only a model": ('[model]\nname = "m"\n', None),
}


def _subjects(pack: Pack, text: str) -> tuple[Run, list[Subject]]:
    run = Run(pack, [parse_target("h100-sxm:8")])
    return run, run.subjects(read(text.encode(), "x.toml"), judge_broken=False)


@pytest.mark.parametrize(
    ("text", "name", "value"), TOLD, ids=[f"{name}-{i}" for i, (_, name, _) in enumerate(TOLD)]
)
def test_binding(pack: Pack, text: str, name: str, value: object) -> None:
    run, (subject,) = _subjects(pack, text)
    assert point(run.judged(subject)[-1].values[name]) == value


@pytest.mark.parametrize(("text", "name"), NAMES.values(), ids=NAMES)
def test_which_is_whose(pack: Pack, text: str, name: str | None) -> None:
    assert [s.framework for s in _subjects(pack, text)[1]] == ([name] if name else [])
