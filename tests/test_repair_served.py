"""What may let a trainer fit leaves room for the engine's cache, too."""

from __future__ import annotations

from found import found_in

SCRIPT = """
N=$(( 32 * 8 ))
python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    data.train_batch_size=$N \\
    data.max_prompt_length=512 \\
    data.max_response_length=2048 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-72B-Instruct \\
    actor_rollout_ref.model.lora_rank=16 \\
    actor_rollout_ref.model.lora_alpha=16 \\
    actor_rollout_ref.model.target_modules=all-linear \\
    actor_rollout_ref.model.use_remove_padding=True \\
    actor_rollout_ref.actor.ppo_mini_batch_size=$N \\
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=128 \\
    actor_rollout_ref.actor.fsdp_config.param_offload=True \\
    actor_rollout_ref.actor.fsdp_config.optimizer_offload=True \\
    actor_rollout_ref.rollout.name=vllm \\
    actor_rollout_ref.rollout.tensor_model_parallel_size=8 \\
    actor_rollout_ref.rollout.gpu_memory_utilization=0.4 \\
    actor_rollout_ref.rollout.max_num_seqs=512 \\
    actor_rollout_ref.rollout.max_num_batched_tokens=2560 \\
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=64 \\
    trainer.n_gpus_per_node=8 \\
    trainer.use_legacy_worker_impl=enable \\
    actor_rollout_ref.actor.ulysses_sequence_parallel_size=8 \\
    actor_rollout_ref.rollout.max_model_len=2560 \\
    trainer.nnodes=1
"""


def test_what_may_be_enough_lets_the_engine_start() -> None:
    found = found_in(SCRIPT, "a40:8")
    assert "MEM201" in found
    fix = found["MEM112"].fix
    assert fix is not None
    assert "gpu_memory_utilization to 0.5" in fix.title
    assert fix.certainty == "may"
