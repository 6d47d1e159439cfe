"""Megatron's recomputation in the verl releases that take it from the model's own keys."""

from __future__ import annotations

from found import found_in

CONFIG = """
data: {train_batch_size: 256, max_prompt_length: 1024, max_response_length: 15000}
actor_rollout_ref:
  hybrid_engine: true
  model:
    path: Qwen/Qwen2.5-7B-Instruct
    enable_gradient_checkpointing: SWITCH
    gradient_checkpointing_kwargs:
      activations_checkpoint_method: null
      activations_checkpoint_granularity: GRANULARITY
      activations_checkpoint_num_layers: null
  actor:
    strategy: megatron
    ppo_mini_batch_size: 64
    ppo_micro_batch_size_per_gpu: 1
    use_dynamic_bsz: false
    checkpoint: {contents: [model]}
    megatron:
      param_offload: true
      optimizer_offload: true
      tensor_model_parallel_size: 4
      pipeline_model_parallel_size: 2
      override_transformer_config: {}
  ref: {log_prob_micro_batch_size_per_gpu: 8, megatron: {param_offload: true}}
  rollout:
    name: vllm
    tensor_model_parallel_size: 4
    gpu_memory_utilization: 0.5
    log_prob_micro_batch_size_per_gpu: 8
    n: 4
algorithm: {adv_estimator: grpo}
trainer: {n_gpus_per_node: 8, nnodes: 1}
"""


def test_full_recomputation_is_written_to_the_models_own_keys() -> None:
    config = CONFIG.replace("SWITCH", "false").replace("GRANULARITY", "null")
    fix = found_in(config, "rtx-4090:8", "ppo.yaml")["MEM112"].fix
    assert fix is not None
    assert "actor_rollout_ref.model.enable_gradient_checkpointing to true" in fix.title
    assert "gradient_checkpointing_kwargs.activations_checkpoint_granularity to full" in fix.title
    assert "override_transformer_config" not in fix.title
    assert fix.risk == "none"


def test_the_switch_alone_recomputes_nothing() -> None:
    config = CONFIG.replace("SWITCH", "true").replace("GRANULARITY", "null")
    assert "MEM112" in found_in(config, "rtx-4090:8", "ppo.yaml")
