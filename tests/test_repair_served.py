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

NEMO = """
grpo:
  num_prompts_per_step: 16
  num_generations_per_prompt: 8
  max_num_steps: 300
loss_fn:
  reference_policy_kl_penalty: 0.01
  force_on_policy_ratio: false
  use_importance_sampling_correction: false
policy:
  model_name: Qwen/Qwen3-8B
  train_global_batch_size: 128
  train_micro_batch_size: 1
  logprob_batch_size: 2
  max_total_sequence_length: 3072
  precision: bfloat16
  dtensor_cfg:
    _v2: true
    enabled: true
    cpu_offload: false
    sequence_parallel: false
    activation_checkpointing: false
    tensor_parallel_size: 1
    context_parallel_size: 1
    lora_cfg: {enabled: false}
  megatron_cfg: {enabled: false}
  dynamic_batching: {enabled: false}
  sequence_packing: {enabled: false}
  optimizer:
    name: torch.optim.AdamW
    kwargs: {lr: 5.0e-6, foreach: false, fused: false}
  generation:
    backend: vllm
    max_new_tokens: ${policy.max_total_sequence_length}
    vllm_cfg:
      async_engine: false
      precision: ${policy.precision}
      kv_cache_dtype: auto
      tensor_parallel_size: 1
      pipeline_parallel_size: 1
      gpu_memory_utilization: 0.55
      max_model_len: ${policy.max_total_sequence_length}
      enforce_eager: false
    colocated: {enabled: true}
cluster:
  gpus_per_node: 8
  num_nodes: 1
"""


def test_what_may_be_enough_lets_the_engine_start() -> None:
    found = found_in(SCRIPT, "a40:8")
    assert "MEM201" in found
    fix = found["MEM112"].fix
    assert fix is not None
    assert "gpu_memory_utilization to 0.5" in fix.title
    assert fix.certainty == "may"


def test_an_engine_that_cannot_start_gets_a_share_before_samples_are_cut() -> None:
    found = found_in(NEMO, "rtx-3090:2", "grpo.yaml")
    assert "MEM201" in found
    fix = found["PAR199"].fix
    assert fix is not None
    assert fix.risk == "none"
    assert "cluster.gpus_per_node to 2" in fix.title
    assert "gpu_memory_utilization to 0.75" in fix.title
    assert "max_new_tokens" not in fix.title


def test_an_engine_that_may_start_gets_room_where_most_of_its_range_is_short() -> None:
    larger = NEMO.replace("Qwen3-8B", "Qwen2.5-32B").replace("gpus_per_node: 8", "gpus_per_node: 4")
    larger = larger.replace("async_engine: false", "async_engine: false\n      enforce_eager: true")
    larger = larger.replace("      enforce_eager: false\n", "")
    larger = larger.replace("auto\n      tensor_parallel_size: 1", "auto\n      tensor_parallel_size: 2")
    larger = larger.replace("activation_checkpointing: false", "activation_checkpointing: true")
    found = found_in(larger.replace("utilization: 0.55", "utilization: 0.73"), "l40s:4", "grpo.yaml")
    assert "MEM201" not in found or found["MEM201"].level == "info"
    fix = found["MEM112"].fix
    assert fix is not None
    assert fix.certainty == "may"
    assert "vllm_cfg.tensor_parallel_size to 4" in fix.title
