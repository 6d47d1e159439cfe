"""A lack of memory never stops a job from recomputing; what splits a sequence splits all passes over it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cfglint.lang import tree as t
from cfglint.repair.allowed import to_the_point
from cfglint.repair.tracks import Option, Track
from found import found_in

if TYPE_CHECKING:
    from collections.abc import Iterable

SKYRL = (
    "python -m skyrl.train.entrypoints.main_base trainer.strategy=fsdp trainer.placement.colocate_all=true "
    "trainer.policy.model.path=Qwen/Qwen2.5-3B-Instruct trainer.placement.policy_num_gpus_per_node=8 "
    "trainer.placement.ref_num_gpus_per_node=8 trainer.algorithm.use_kl_loss=true "
    "trainer.train_batch_size=32 trainer.policy_mini_batch_size=8 generator.n_samples_per_prompt=4 "
    "trainer.max_prompt_length=24000 "
    "trainer.micro_train_batch_size_per_gpu=2 trainer.micro_forward_batch_size_per_gpu=8 "
    "generator.inference_engine.num_engines=4 generator.inference_engine.tensor_parallel_size=2 "
    "generator.inference_engine.gpu_memory_utilization=0.7 "
    "generator.sampling_params.max_generate_length=4000 "
)


def _option(track: Track, i: int) -> Option:
    facts = {track.knob.name: track.values[i]}
    return Option(track.knob.name, i + 1, True, facts, [], 1.0, "none", [""])


def _goal(code: str, *, held: bool = False) -> Any:
    return SimpleNamespace(code=code, held=held, rule=SimpleNamespace(requirement=code))


def _writer() -> Any:
    uses = {"MEM112": ["gradient_checkpointing"], "RUN900": ["gradient_checkpointing"], "RUN901": ["sp"]}
    names: Any = SimpleNamespace(names_in=lambda code: uses.get(code, []), derivation=lambda names: names)
    return SimpleNamespace(origins=names)


def _left(goals: Iterable[Any]) -> list[object]:
    track = Track(t.Knob("gradient_checkpointing", "any"), "full", ["none"], t.Move("any", 1.0))
    track.make = _option
    return [option.facts for one in to_the_point([track], list(goals), _writer()) for option in one.options()]


@pytest.mark.parametrize(
    ("goals", "stays"),
    [
        ([_goal("MEM112")], True),
        ([_goal("MEM112"), _goal("RUN901")], True),
        ([_goal("RUN900")], False),
        ([_goal("RUN900"), _goal("MEM112", held=True)], False),
        ([_goal("RUN900"), _goal("MEM112")], False),  # what refuses to recompute is mended with the memory
    ],
)
def test_memory_never_stops_recomputing(goals: list[Any], stays: bool) -> None:
    assert (_left(goals) == []) == stays


def test_skyrl_splits_a_sequence_of_the_policy_and_of_its_reference() -> None:
    finding = found_in(SKYRL, "rtx-4090:8")["MEM112"]
    assert finding.fix is not None
    assert "trainer.policy.sequence_parallel_size to" in finding.fix.title
    assert "trainer.ref.sequence_parallel_size to" in finding.fix.title


ROLL = """
pretrain: Qwen/Qwen2.5-7B
rollout_batch_size: 32
prompt_length: 1024
response_length: 7168
adv_estimator: reinforce
num_return_sequences_in_group: 8
actor_train:
  training_args: {per_device_train_batch_size: 1, gradient_accumulation_steps: 32}
  strategy_args:
    strategy_name: megatron_train
    strategy_config:
      {tensor_model_parallel_size: 4, use_distributed_optimizer: true, recompute_granularity: full}
  device_mapping: list(range(0,8))
  infer_batch_size: 1
actor_infer:
  strategy_args: {strategy_name: vllm, strategy_config: {gpu_memory_utilization: 0.7}}
  device_mapping: list(range(0,8))
reference:
  strategy_args: {strategy_name: megatron_infer, strategy_config: {tensor_model_parallel_size: 1}}
  device_mapping: list(range(0,8))
  infer_batch_size: 16
"""


@pytest.mark.parametrize(("more", "found"), [("", True), ("init_kl_coef: 0\n", False)])
def test_roll_has_a_reference_where_no_file_says_otherwise(more: str, found: bool) -> None:
    assert ("MEM116" in found_in(f"{ROLL}{more}", "a100-40gb-sxm:8", "roll.yaml")) == found


FSDP2 = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=32 "
    "data.max_prompt_length=512 data.max_response_length=512 trainer.nnodes=1 trainer.n_gpus_per_node=2 "
    "actor_rollout_ref.model.path=Qwen/Qwen2.5-14B-Instruct actor_rollout_ref.actor.ppo_mini_batch_size=32 "
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.rollout.name=vllm "
    "actor_rollout_ref.actor.strategy=fsdp2 actor_rollout_ref.actor.fsdp_config.offload_policy=True "
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 actor_rollout_ref.actor.use_kl_loss=False "
    "actor_rollout_ref.rollout.tensor_model_parallel_size=2 actor_rollout_ref.model.use_fused_kernels=True "
)


@pytest.mark.parametrize(("gpu", "found"), [("rtx-4090:2", True), ("a40:2", False)])
def test_what_is_offloaded_is_on_the_gpu_while_it_is_loaded(gpu: str, found: bool) -> None:
    assert ("MEM112" in found_in(FSDP2, gpu)) == found
