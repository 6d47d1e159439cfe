"""What fuzzing starts from: the project's own examples and cases, by kind of input."""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path

from golden import CASES, Page

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 6_000  # bytes of a seed; longer ones are slow and show nothing else
BETWEEN = "=== "  # begins the line that names a file, where one input is several

TASK = """\
resources: {accelerators: A100-80GB:8}
num_nodes: 2
run: |
  torchrun --nproc_per_node 8 train.py --per_device_train_batch_size 8 \\
    --output_dir out --model_name_or_path Qwen/Qwen2.5-7B --bf16 true
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: sft}
spec:
  template:
    spec:
      nodeSelector: {nvidia.com/gpu.product: NVIDIA-A40}
      containers:
        - name: main
          image: trl
          command: ["accelerate", "launch", "train.py"]
          args: ["--per_device_train_batch_size=8", "--output_dir", "out"]
          resources: {limits: {nvidia.com/gpu: 4}}
        - name: serve
          command: [bash, -c, "vllm serve Qwen/Qwen2.5-7B --tensor-parallel-size 3"]
"""
COMPOSE = """\
services:
  vllm:
    image: vllm/vllm-openai
    command: --model Qwen/Qwen2.5-7B --gpu-memory-utilization 0.95
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]}}}
  train:
    command: ["python", "-m", "verl.trainer.main_ppo", "data.train_batch_size=256"]
"""
POD = '{"gpuTypeIds": ["NVIDIA A40"], "gpuCount": 2, "dockerStartCmd": ["bash", "-c", "python train.py --a 1"]}\n'
SHEET = """\
{"cfglint": "hardware", "version": 1, "driver": "550.54", "cuda": "12.4", "nodes": 2,
 "devices": [{"name": "NVIDIA A40", "count": 4, "total_mib": 46068, "usable_mib": 45400, "capability": "8.6"},
  {"name": "NVIDIA H100 80GB HBM3", "mig": "3g.40gb"}]}
"""
SETTINGS = """\
gpu = ["a40:8"]
rules = ["own.rules"]
rule = ["gpu.vram < 48 -> mem_fraction <= 0.5"]
select = ["MEM", "CFG"]
ignore = ["PRF"]
set = ["grpo.num_prompts_per_step=4"]
hardware = "sheet.json"
framework = "trl==0.12"
model_config = "config.json"
format = "json"
fail_on = "warning"
fix_level = "info"
detect = false
skip_unknown = true
annotate = true
jobs = 2
[frameworks]
"*.yaml" = "trl"
"conf/**/x.toml" = "torchtitan"
"""
MODELS = (
    '{"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28, '
    '"num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064, "tie_word_embeddings": false, '
    '"max_position_embeddings": 32768, "torch_dtype": "bfloat16"}',
    '{"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 128, '
    '"n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, '
    '"first_k_dense_replace": 3, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64, '
    '"qk_nope_head_dim": 128, "v_head_dim": 128, "intermediate_size": 18432, "vocab_size": 129280, '
    '"rope_scaling": {"type": "yarn", "factor": 40}, "quantization_config": {"quant_method": "fp8"}}',
    '{"model_type": "qwen2_vl", "text_config": {"hidden_size": 1536, "num_hidden_layers": 28, '
    '"num_attention_heads": 12, "layer_types": ["full_attention"], "intermediate_size": 8960, '
    '"vocab_size": 151936}, "vision_config": {"depth": 32, "embed_dim": 1280}}',
)
LAYERS = (
    "=== train.yaml\ndefaults: base.yaml\npolicy:\n  model_name: Qwen/Qwen2.5-1.5B-Instruct\n"
    "  train_global_batch_size: 511\n  train_micro_batch_size: 4\n  precision: ${policy.dtype}\n"
    "cluster: {gpus_per_node: 8, num_nodes: 1}\n"
    "grpo: {num_prompts_per_step: 32, num_generations_per_prompt: 16}\n"
    "=== base.yaml\ndefaults: [deep.yaml]\npolicy: {dtensor_cfg: {enabled: true}, dtype: bfloat16}\n"
    "=== deep.yaml\npolicy: {max_total_sequence_length: 512}\n",
    "=== train.yaml\ndefaults: [actor: big, _self_]\n"
    "actor_rollout_ref:\n  model: {path: Qwen/Qwen2.5-7B}\n"
    "  rollout: {name: vllm, tensor_model_parallel_size: 3, gpu_memory_utilization: 0.6}\n"
    "data: {train_batch_size: 100}\ntrainer: {n_gpus_per_node: 8, nnodes: 1}\nalgorithm: {adv_estimator: grpo}\n"
    "=== actor/big.yaml\n# @package actor_rollout_ref.actor\nppo_mini_batch_size: 256\nppo_micro_batch_size_per_gpu: 4\n",
    "=== train.yaml\nmodel_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 8\nnum_train_epochs: 1\n"
    "output_dir: out\ndeepspeed: ds.json\n"
    '=== ds.json\n{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 3, "zero_optimization": {"stage": 3}}\n',
    "=== run.sh\naccelerate launch --config_file acc.yaml train.py --config train.yaml --bf16 true\n"
    "=== acc.yaml\ndistributed_type: FSDP\nnum_processes: 8\n"
    "=== train.yaml\nmodel_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 8\noutput_dir: out\n",
)


@cache
def _named() -> tuple[tuple[str, str], ...]:
    """Return names and texts of the files of all pages of cases."""
    pages = [Page(path) for path in sorted(CASES.glob("*.md"))]
    return tuple((name, text) for page in pages for name, text in page.files.items())


def _cases(*suffixes: str) -> list[str]:
    return [text for name, text in _named() if name.endswith(suffixes)]


def _read(*patterns: str) -> list[str]:
    return [path.read_text() for pattern in patterns for path in sorted(ROOT.glob(pattern))]


def _commands() -> list[str]:
    """Return command lines of the pages, a word to a line."""
    lines = []
    for path in sorted(CASES.glob("*.md"))[::8] + sorted(ROOT.glob("tests/*/pages.md")):
        for line in path.read_text().splitlines():
            if line.startswith("$ cfglint "):
                lines += ["\n".join(shlex.split(line)[2:])]
    return lines


def _manifests() -> list[str]:
    keys = ("\nrun:", "services:", "apiVersion:", "resources:")
    return [TASK, JOB, COMPOSE, POD] + [
        text for text in _cases(".yaml", ".json") if any(key in text for key in keys)
    ]


def _programs() -> list[str]:
    """Return the programs whose values are known, with what they import."""
    text = (ROOT / "tests" / "programs.md").read_text()
    fences = [part.partition("\n")[2] for part in text.split("```python")[1:]]
    return [f"from trl import SFTConfig\n{fence.partition('```')[0]}" for fence in fences]


_KINDS = {
    "yaml": lambda: [*_cases(".yaml"), *_read("examples/*.yaml")],
    "json": lambda: [*_cases(".json"), *_read("examples/*/*.json")],
    "toml": lambda: _cases(".toml"),
    "script": lambda: [*_cases(".sh", ".sbatch"), *_read("examples/*.sbatch")],
    "program": lambda: [*_cases(".py"), *_programs()],
    "manifest": _manifests,
    "rules": lambda: [*_cases(".rules"), *_read("examples/**/*.rules", "rules/*.rules")],
    "settings": lambda: [SETTINGS, *(line + "\n" for line in SETTINGS.splitlines())],
    "sheet": lambda: [SHEET],
    "model": lambda: list(MODELS),
    "log": lambda: _read("tests/logs/*.log", "examples/*.log"),
    "flags": _commands,
    "layers": lambda: list(LAYERS),
}
KINDS = tuple(_KINDS)


@cache
def seeds(kind: str) -> tuple[str, ...]:
    """Return the texts that inputs of a kind are made from, none of them long."""
    cut = [
        text if len(text) < LONGEST else text[:LONGEST].rpartition("\n")[0] + "\n" for text in _KINDS[kind]()
    ]
    return tuple(dict.fromkeys(cut))
