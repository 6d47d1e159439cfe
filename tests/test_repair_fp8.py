"""A repair that leaves FP8 for 16 bits is not called sure where memory is not known."""

from __future__ import annotations

import pytest

from found import found_in

NEMO = """
policy:
  model_name: {model}
  precision: bfloat16
  max_total_sequence_length: 1536
  train_global_batch_size: 512
  train_micro_batch_size: 1
  dtensor_cfg: {{enabled: false}}
  megatron_cfg:
    enabled: true
    tensor_model_parallel_size: 1
    pipeline_model_parallel_size: 1
    fp8_cfg: {{enabled: true, fp8: e4m3, fp8_recipe: blockwise, fp8_param: false}}
  generation:
    backend: vllm
    colocated: {{enabled: true}}
    vllm_cfg: {{tensor_parallel_size: 1, precision: {precision}, gpu_memory_utilization: 0.5}}
grpo: {{num_prompts_per_step: 64, num_generations_per_prompt: 8}}
cluster: {{gpus_per_node: 1, num_nodes: 1}}
"""


@pytest.mark.parametrize("precision", ["fp8", "bfloat16"])
def test_sixteen_bits_of_an_unknown_model_may_not_be_enough(precision: str) -> None:
    found = found_in(NEMO.format(model="see the guide", precision=precision), "rtx-4090", "grpo.yaml")
    fix = found["PRC117"].fix
    assert fix is not None
    assert fix.certainty == "may"
