"""A repair that moves a job to fewer GPUs tells which sizes of the file stay larger than those."""

from __future__ import annotations

import pytest

from cfglint.text import apply_edits
from found import found_in

COMMAND = (
    "torchrun --nproc_per_node=8 train.py --model_name_or_path Qwen/Qwen2.5-0.5B --dataset_name a/b "
    "--max_seq_length 512 --gradient_accumulation_steps 2"
)
VERL = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64 "
    "actor_rollout_ref.model.path=$MODEL actor_rollout_ref.actor.strategy=fsdp "
    "actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.rollout.name=vllm "
    "actor_rollout_ref.actor.use_dynamic_bsz=True trainer.nnodes=1 trainer.n_gpus_per_node=8"
)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("--fsdp_shard_degree 8", "fsdp_shard_degree 8 stays"),
        ("--tensor-parallel-size 4 --ref_gpus 3", "tensor_parallel_size 4 and ref_gpus 3 stay"),
        ("--fsdp_shard_degree 2", ""),
        ("--gpus_memory_limit yes --shards 8 --max_steps 900", ""),
    ],
)
def test_what_stays_larger_is_told(more: str, told: str) -> None:
    fix = found_in(f"{COMMAND} {more} --per_device_train_batch_size 1\n", "rtx-4090:2")["DOC104"].fix
    assert fix is not None
    assert ("for more GPUs than there are" in fix.effect) == bool(told)
    assert told in fix.effect
    assert not told or fix.certainty != "sure"


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ("python -m mine.sample --gpu_count 4 --batch_size 8", "--gpu_count 4 of sample (line 1) stays"),
        ("torchrun --nproc_per_node $((2 * 2)) -m mine.label", "the 4 processes of label (line 1) stay"),
        ("torchrun --nproc_per_node 4 -m mine.label --x 1", ""),  # they move along
        ("python -m mine.sample --gpu_count 2 --batch_size 8", ""),
    ],
)
def test_what_other_commands_ask_for_is_told(other: str, told: str) -> None:
    fix = found_in(f"{other}\n{COMMAND}\n", "rtx-4090:2")["DOC104"].fix
    assert fix is not None
    assert told in fix.effect
    assert ("change that by hand" in fix.effect) == bool(told)


def test_a_batch_that_deepspeeds_file_fixes_is_told() -> None:
    config = (
        "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_machines: 1\n"
        "num_processes: 8\n"
        "deepspeed_config:\n  deepspeed_config_file:\n"
        "    {train_batch_size: 8, train_micro_batch_size_per_gpu: 1, zero_optimization: {stage: 3}}\n"
    )
    finding = found_in(config, "rtx-4090:2", "ds.yaml")["DOC105"]
    assert finding.fix is None
    assert "passes × 2 processes make 2: write that there" in finding.unfixed


SERVED = """CUDA_VISIBLE_DEVICES=0,1,2,3 swift rollout --model Qwen/Qwen3-0.6B > rollout.log 2>&1 &

CUDA_VISIBLE_DEVICES=4,5,6,7 NPROC_PER_NODE=4 swift rlhf --rlhf_type grpo --model Qwen/Qwen3-0.6B \\
    --use_vllm true --vllm_mode server --vllm_server_host 127.0.0.1 --vllm_server_port 8000 \\
    --num_generations 8 \\
    --tuner_type lora --max_completion_length 512 --per_device_train_batch_size 2 \\
    --gradient_accumulation_steps 2 --dataset a/b
"""


def test_a_trainer_is_not_put_onto_the_gpus_of_a_server() -> None:
    found = found_in(SERVED, "l40s:4")
    assert found["DOC119"].fix is None
    told = "change the GPUs in CUDA_VISIBLE_DEVICES (4,5,6,7, line 3) by hand"  # once, of two keys
    assert found["DOC119"].unfixed == told
    fix = found["DOC108"].fix
    assert fix is not None
    assert (
        "CUDA_VISIBLE_DEVICES=0,1 for the command in line 1, with engines for 2, and 2,3 for this"
        in fix.effect
    )


SERVE = "vllm serve Qwen/Qwen2.5-72B-Instruct --tensor-parallel-size 8 --pipeline-parallel-size 2\n"


@pytest.mark.parametrize(
    ("head", "after"),
    [
        ("--nodes=2\n#SBATCH --gpus-per-node=8", "--nodes=1\n#SBATCH --gpus-per-node=8"),
        ("-N 2\n#SBATCH --gres=gpu:h100:8", "-N 1\n#SBATCH --gres=gpu:h100:8"),
        ("--nodes=2\n#SBATCH --gpus=16\n#SBATCH -n 2", "--nodes=1\n#SBATCH --gpus=8\n#SBATCH -n 1"),
        ("--time=01:00:00", "--time=01:00:00"),
    ],
)
def test_what_a_job_asks_of_slurm_moves_along(head: str, after: str) -> None:
    text = f"#!/bin/bash\n#SBATCH {head}\n{SERVE}"
    fix = found_in(text, "h100-sxm:8")["ENG238"].fix
    assert fix is not None
    assert "still asks for" not in fix.effect
    expected = f"#!/bin/bash\n#SBATCH {after}\n{SERVE.replace('size 2', 'size 1')}"
    assert apply_edits(text, fix.edits) == expected


RAY = """CUDA_VISIBLE_DEVICES=4,5,6,7 python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B-Instruct data.train_batch_size=64 \\
    actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.use_dynamic_bsz=True \\
    actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.tensor_model_parallel_size=1 \\
    trainer.n_gpus_per_node=4 trainer.nnodes=1
"""


def test_gpus_that_are_there_are_enough_for_the_job_that_is_given_them() -> None:
    fix = found_in(RAY, "a40:2")["DOC119"].fix
    assert fix is not None
    text = apply_edits(RAY, fix.edits)
    assert "CUDA_VISIBLE_DEVICES=0,1 " in text
    assert "trainer.n_gpus_per_node=2 " in text


def test_sizes_that_a_script_exports_stay() -> None:
    command = "torchrun --nproc_per_node 8 train.py --lr 1e-5 --micro-batch-size 4 --global-batch-size 96"
    own = "--tensor_model_parallel_size $TP"  # which rules judge
    fix = found_in(f"export LLM_TP=4 VISION_TP=2 EPOCHS=9 TP=2\n{command} {own}\n", "l40s:4")["DOC104"].fix
    assert fix is not None
    assert fix.certainty == "may"
    assert "; LLM_TP 4 and VISION_TP 2 stay, for more GPUs than there are" in fix.effect
    assert all(each.same for each in fix.results if each.name == "effective batch")
    fix = found_in(f"export LLM_TP=2\n{command}\n", "l40s:4")["DOC104"].fix
    assert fix is not None
    assert "LLM_TP" not in fix.effect


def test_a_micro_batch_of_all_gpus_grows_on_each() -> None:
    more = " actor_rollout_ref.rollout.log_prob_micro_batch_size=80"
    fix = found_in(f"{VERL}{more}\n", "l40s:4")["PAR190"].fix
    assert fix is not None
    assert "log_prob_micro_batch_size 80 is shared out among all GPUs: 20 on each then, not 10" in fix.effect
