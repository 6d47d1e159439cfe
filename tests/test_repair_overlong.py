"""Where answers get shorter, so does their end on which the reward falls; or nothing is done."""

from __future__ import annotations

import pytest

_VERL = """
data: {max_prompt_length: 1024, max_response_length: 4096, train_batch_size: 64}
algorithm: {adv_estimator: grpo}
actor_rollout_ref:
  model: {path: Qwen/Qwen2.5-7B}
  actor: {ppo_mini_batch_size: 32, ppo_micro_batch_size_per_gpu: 1}
  rollout: {name: vllm, n: 8, log_prob_micro_batch_size_per_gpu: 1}
reward: {reward_kwargs: {overlong_buffer_cfg: {enable: ENABLED, len: 1024}, max_resp_len: 4096}}
trainer: {n_gpus_per_node: 8, nnodes: 1}
"""
_AREAL = """
experiment_name: x
trial_name: y
cluster: {n_nodes: 1, n_gpus_per_node: 8}
allocation_mode: sglang:d4+fsdp:d4
gconfig: {n_samples: 4, max_new_tokens: 4096}
actor: {path: Qwen/Qwen2.5-7B, overlong_reward_penalty: true, overlong_tokens: 1024}
train_dataset: {batch_size: 32, max_length: 1024}
"""
_NEMO = """
grpo:
  num_prompts_per_step: 32
  num_generations_per_prompt: 16
  reward_shaping: {enabled: true, overlong_buffer_length: 1024, max_response_length: 4096}
policy:
  model_name: Qwen/Qwen2.5-1.5B
  train_global_batch_size: 512
  max_total_sequence_length: 8192
  generation: {backend: vllm, max_new_tokens: 4096, vllm_cfg: {max_model_len: 8192}}
cluster: {gpus_per_node: 8, num_nodes: 1}
"""
_SKYRL = """
trainer:
  policy: {model: {path: Qwen/Qwen2.5-7B}}
  placement: {policy_num_gpus_per_node: 8}
  algorithm: {advantage_estimator: grpo, overlong_buffer_len: 1024}
generator: {sampling_params: {max_generate_length: 4096}}
"""
_EASYR1 = """
data: {max_prompt_length: 1024, max_response_length: 4096, rollout_batch_size: 128}
algorithm: {adv_estimator: grpo}
worker:
  actor:
    model: {model_path: Qwen/Qwen2.5-7B}
    global_batch_size: 64
    micro_batch_size_per_device_for_update: 1
  rollout: {n: 4, tensor_parallel_size: 1}
  reward: {reward_function_kwargs: KWARGS}
trainer: {n_gpus_per_node: 8, nnodes: 1}
"""


@pytest.mark.parametrize(
    ("text", "there", "gone"),
    [
        (_VERL.replace("ENABLED", "true"), ["e_length: 2048", "len: 512", "max_resp_len: 2048"], "1024}"),
        (_VERL.replace("ENABLED", "false"), ["e_length: 2048", "len: 1024", "max_resp_len: 2048"], "512"),
        (_AREAL, ["max_new_tokens: 2048", "overlong_tokens: 512"], "4096"),
        (_NEMO, ["max_new_tokens: 2048", "overlong_buffer_length: 512", "max_response_length: 2048"], "4096"),
        (_NEMO.replace("1024", "3072"), ["max_new_tokens: 4096", "overlong_buffer_length: 3072"], "2048"),
        (_SKYRL, ["max_generate_length: 2048", "overlong_buffer_len: 512"], "4096"),
        (
            _EASYR1.replace("KWARGS", "{max_response_length: 4096, overlong_buffer_length: 1024}"),
            ["max_response_length: 2048, roll", "{max_response_length: 2048, overlong_buffer_length: 512}"],
            "4096",
        ),
        (_EASYR1.replace("KWARGS", "'{\"max_response_length\": 4096}'"), ["e_length: 4096, roll"], "2048"),
    ],
)
def test_the_buffer_moves_with_the_answer(cfglint, folder, text: str, there: list[str], gone: str) -> None:
    (folder / "c.yaml").write_text(text)
    done = cfglint("fix", "c.yaml", "--rule", "max_new_tokens <= 2048", "--select", "CLI", "--unsafe")
    assert done.returncode in (0, 1), done.stderr
    fixed = (folder / "c.yaml").read_text()
    assert all(part in fixed for part in there), fixed
    assert gone not in fixed
