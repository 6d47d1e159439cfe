"""Sequences stay whole where smaller micro-batches do for the memory, and a step takes no longer."""

from __future__ import annotations

import pytest

from found import found_in

_SKYRL = """
trainer:
  policy: {model: {path: Qwen/Qwen2.5-1.5B-Instruct}}
  placement: {colocate_all: true, policy_num_gpus_per_node: 4, ref_num_gpus_per_node: 4}
  strategy: fsdp
  train_batch_size: 1024
  policy_mini_batch_size: 256
  micro_train_batch_size_per_gpu: MICRO
  micro_forward_batch_size_per_gpu: MICRO
  max_prompt_length: 512
  algorithm: {advantage_estimator: grpo, use_kl_loss: false}
generator:
  n_samples_per_prompt: 5
  sampling_params: {max_generate_length: LENGTH}
  inference_engine: {num_engines: 4, tensor_parallel_size: 1}
"""


@pytest.mark.parametrize(("micro", "length", "split"), [(64, 1024, False), (1, 32256, True)])
def test_sequences_are_split_where_one_is_too_long(micro: int, length: int, split: bool) -> None:
    text = _SKYRL.replace("MICRO", str(micro)).replace("LENGTH", str(length))
    fix = found_in(text, "rtx-4090:4", "c.yaml")["MEM112"].fix
    assert fix is not None
    assert ("sequence_parallel_size" in fix.title) is split
