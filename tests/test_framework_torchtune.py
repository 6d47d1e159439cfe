"""torchtune: which files are its own, and what its keys come to, on small texts and on its real configs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cfglint.document.reading import read
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.values import needs_of, parts
from told import point

SHARED = os.environ.get("CFGLINT_SHARED")
CORPUS = Path(SHARED or ".") / "corpus"
needs_corpus = pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no folder of real configs")

FULL = """
# tune run full_finetune_distributed
model: {_component_: torchtune.models.llama3_1.llama3_1_8b}
tokenizer: {max_seq_len: 2048}
dataset: {_component_: torchtune.datasets.alpaca_dataset}
optimizer: {_component_: torch.optim.AdamW, lr: 2e-5}
loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}
batch_size: 2
gradient_accumulation_steps: 4
dtype: bf16
"""
LORA = FULL.replace("llama3_1.llama3_1_8b", "llama3_1.lora_llama3_1_8b, lora_attn_modules: [q_proj, v_proj]")
QLORA = LORA.replace("lora_llama", "qlora_llama")
DPO = LORA.replace("torchtune.modules.loss.LinearCrossEntropyLoss", "torchtune.rlhf.loss.DPOLoss")
FULL_DPO = DPO.replace("lora_llama3_1_8b, lora_attn_modules: [q_proj, v_proj]", "llama3_1_8b")
KD = LORA + "teacher_model: {_component_: torchtune.models.llama3_1.qlora_llama3_1_70b}\n"
PPO = """
policy_model: {_component_: torchtune.models.mistral.mistral_7b}
tokenizer: {max_seq_len: 512}
optimizer: {_component_: torch.optim.AdamW}
loss: {_component_: torchtune.rlhf.loss.PPOLoss}
dtype: bf16
batch_size: 64
forward_batch_size: 16
ppo_batch_size: 32
gradient_accumulation_steps: 4
max_generated_tokens: 58
kl_coeff: 0.01
"""
GRPO = """
model: {_component_: torchtune.models.llama3_2.llama3_2_3b}
tokenizer: {max_seq_len: 256}
optimizer: {_component_: torch.optim.AdamW}
loss: {_component_: torchtune.dev.grpo.loss.GRPOSimpleLoss, kl_coeff: 0.01}
dtype: bf16
batch_size: 1
grpo_samples: 16
forward_batch_size: 1
max_generated_tokens: 512
num_steps: 200
"""
ASYNC = """
model: {_component_: torchtune.models.qwen2_5.qwen2_5_3b}
orchestration:
  {num_inference_workers: 4, num_postprocessing_workers: 1, num_training_workers: 2, num_steps: 250}
inference: {engine: vllm, tensor_parallel_dim: 2, max_generated_tokens: 512, group_size: 16}
training:
  batch_size: 16
  enable_activation_checkpointing: True
  optimizer: {_component_: torch.optim.AdamW, fused: True}
  loss: {_component_: torchtune.dev.rl.linear_grpo_loss.LinearGRPOLoss, kl_coeff: 0.01}
"""
EVALUATION = """
model: {_component_: torchtune.models.llama2.llama2_7b}
tasks: [truthfulqa_mc2]
batch_size: 8
dtype: bf16
"""


def changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


ADAMW = "_component_: torch.optim.AdamW, lr: 2e-5"
TABLE = [
    # what the file is for
    ("full", FULL, {"task": "sft", "trains": True, "generates": False, "colocated": False, "lora_rank": 0}),
    ("tensor parallel", FULL + "tensor_parallel_dim: 4\n", {"gpus.least": 4}),
    (
        "offload beside tensor parallelism",  # FSDP offloads, over two groups at least
        FULL + "tensor_parallel_dim: 4\nfsdp_cpu_offload: true\n",
        {"gpus.least": 8},
    ),
    (
        "offload of replicas",
        FULL + "tensor_parallel_dim: 2\ndata_parallel_replicate_dim: 4\nfsdp_cpu_offload: true\n",
        {"gpus.least": 8},
    ),
    ("lora", LORA, {"task": "sft", "lora_rank": 8, "lora.q": True, "lora.k": False, "lora.gate": False}),
    ("dpo", DPO, {"task": "dpo", "micro_batch_size": 2, "reference.present": False, "fused_loss": "none"}),
    ("full dpo", FULL_DPO, {"task": "dpo", "reference.present": True}),
    ("evaluation", EVALUATION, {"task": "inference", "trains": False, "train_gpus": 0}),
    (
        "distillation",
        KD,
        {
            "task": "distill",
            "teacher.present": True,
            "teacher.model_path": "meta-llama/Llama-3.1-70B",
            "teacher.quantization": "4",
        },
    ),
    (
        "ppo",
        PPO,
        {
            "task": "ppo",
            "num_gpus": 1,
            "micro_batch_size": 8,
            "effective_batch_size": 32,
            "rollout_batch_size": 64,
            "max_concurrent": 16,
            "max_prompt_len": 512,
            "max_new_tokens": 58,
            "seq_len": 570,
            "rollout_engine": "hf",
            "reference.present": True,
            "critic.present": True,
            "reward.present": True,
            "kl_coef": 0.01,
        },
    ),
    (
        "grpo",
        GRPO,
        {
            "task": "grpo",
            "n_samples": 16,
            "micro_batch_size": 16,
            "rollout_batch_size": 8,
            "grad_accum": 1,
            "max_steps": 200,
            "reference.present": True,
        },
    ),
    (
        "async grpo",
        ASYNC,
        {
            "task": "grpo",
            "rollout_engine": "vllm",
            "train_gpus": 2,
            "rollout_gpus": 8,
            "rollout_dp": 4,
            "rollout_tp": 2,
            "num_gpus": 11,
            "n_samples": 16,
            "optimizer": "adamw_fused",
            "gradient_checkpointing": "full",
            "reference.present": False,
            "max_steps": 250,
        },
    ),
    # model and precision
    ("model", FULL, {"model_path": "meta-llama/Llama-3.1-8B", "dtype": "bf16", "param_dtype": "bf16"}),
    ("lora's model", LORA, {"model_path": "meta-llama/Llama-3.1-8B", "quantization": "none"}),
    ("qlora", QLORA, {"model_path": "meta-llama/Llama-3.1-8B", "quantization": "4", "lora_rank": 8}),
    ("rank", changed(LORA, ("v_proj]", "v_proj], lora_rank: 64")), {"lora_rank": 64}),
    ("quantized base", changed(LORA, ("v_proj]", "v_proj], quantize_base: True")), {"quantization": "4"}),
    (
        "mlp",
        changed(LORA, ("v_proj]", "v_proj], apply_lora_to_mlp: True")),
        {"lora.gate": True, "lora.down": True},
    ),
    ("dtype null", changed(FULL, ("dtype: bf16", "dtype: null")), {"dtype": "fp32"}),
    (
        "unknown model",
        changed(FULL, ("torchtune.models.llama3_1.llama3_1_8b", "mine.model")),
        {"model_path": None},
    ),
    (
        "vision",
        changed(FULL, ("llama3_1.llama3_1_8b", "llama3_2_vision.llama3_2_vision_11b")),
        {"model_path": "meta-llama/Llama-3.2-11B-Vision", "need.total": None},
    ),
    # batch and length
    (
        "batch",
        FULL,
        {"micro_batch_size": 2, "grad_accum": 4, "train_dp": 8, "effective_batch_size": 64, "seq_len": 2048},
    ),
    ("no length", changed(FULL, ("max_seq_len: 2048", "max_seq_len: null")), {"seq_len": None}),
    ("not packed", FULL, {"packing": False}),
    ("packed", changed(FULL, ("alpaca_dataset}", "alpaca_dataset, packed: True}")), {"packing": True}),
    (
        "several",
        changed(FULL, ("dataset: {", "dataset: [{"), ("alpaca_dataset}", "a, packed: True}]")),
        {"packing": True},
    ),
    # optimizer and loss
    ("foreach", FULL, {"optimizer": "adamw", "optimizer_in_backward": False, "master_weights": False}),
    ("fused", changed(FULL, ("lr: 2e-5", "fused: True")), {"optimizer": "adamw_fused"}),
    ("fused null", changed(FULL, ("lr: 2e-5", "fused: null")), {"optimizer": "adamw"}),
    ("torchao", changed(FULL, (ADAMW, "_component_: torchao.optim.AdamW8bit")), {"optimizer": "adamw_8bit"}),
    (
        "paged",
        changed(FULL, (ADAMW, "_component_: bitsandbytes.optim.PagedAdamW8bit")),
        {"optimizer": "paged_adamw_8bit", "train_gpus": 1, "train_backend": "ddp", "num_gpus": 1},
    ),
    (
        "offloaded",
        changed(FULL, (ADAMW, "_component_: torchao.optim.CPUOffloadOptimizer")),
        {"optimizer": "adamw", "offload_optimizer": True},
    ),
    (
        "momentum",
        changed(FULL, (ADAMW, "_component_: torch.optim.SGD, momentum: 0.9")),
        {"optimizer": "sgd_momentum"},
    ),
    ("sgd", changed(FULL, (ADAMW, "_component_: torch.optim.SGD")), {"optimizer": "sgd"}),
    ("another", changed(FULL, (ADAMW, "_component_: mine.Shampoo")), {"optimizer": None}),
    ("in backward", FULL + "optimizer_in_bwd: True\n", {"optimizer_in_backward": True}),
    ("not in LoRA", LORA + "optimizer_in_bwd: True\n", {"optimizer_in_backward": False}),
    ("chunks", FULL, {"fused_loss": "chunked", "loss_chunks": 8}),
    (
        "16 chunks",
        changed(FULL, ("EntropyLoss}", "EntropyLoss, num_output_chunks: 16}")),
        {"loss_chunks": 16},
    ),
    (
        "plain loss",
        changed(FULL, ("torchtune.modules.loss.LinearCross", "torch.nn.Cross")),
        {"fused_loss": "none"},
    ),
    # checkpointing and offload
    ("off", FULL, {"gradient_checkpointing": "none", "activation_offload": False, "compile": False}),
    ("on", FULL + "enable_activation_checkpointing: True\n", {"gradient_checkpointing": "full"}),
    ("selective", FULL + "ac_mode: selective\nac_option: 2\n", {"gradient_checkpointing": "selective"}),
    (
        "both",
        FULL + "ac_mode: full\nenable_activation_checkpointing: True\n",
        {"gradient_checkpointing": "none"},
    ),
    ("offload", FULL + "enable_activation_offloading: True\n", {"activation_offload": True}),
    ("compile", FULL + "compile: {model: False, loss: True}\n", {"compile": False}),
    # topology, on eight GPUs
    (
        "fsdp",
        FULL,
        {"train_backend": "fsdp", "train_gpus": 8, "dp_shard": -1, "ranks.shard": 8, "fsdp_reshard": True},
    ),
    (
        "single device",
        changed(FULL, ("distributed", "single_device")),
        {"train_backend": "ddp", "train_gpus": 1, "num_gpus": 1, "dp_shard": 1},
    ),
    (
        "no recipe",
        changed(FULL, ("# tune run full_finetune_distributed", "")),
        {"torchtune.recipe": None, "train_backend": None, "train_tp": 1, "micro_batch_size": 2},
    ),
    ("no offload", FULL, {"offload_params": False}),
    ("cpu offload", FULL + "fsdp_cpu_offload: True\n", {"offload_params": True}),
    ("reshard", FULL + "fsdp_reshard_after_forward: False\n", {"fsdp_reshard": False}),
    ("tp", FULL + "tensor_parallel_dim: 4\n", {"train_tp": 4, "train_dp": 2, "ranks.shard": 2}),
    ("cp", FULL + "context_parallel_dim: 2\n", {"cp": 2, "train_dp": 4}),
    (
        "sizes",
        FULL + "data_parallel_shard_dim: 2\ndata_parallel_replicate_dim: 2\n",
        {"train_gpus": 4, "dp_replicate": 2, "ranks.shard": 2, "num_gpus": 4},
    ),
    (
        "sizes one by one",
        FULL.replace("llama3_1.llama3_1_8b", "llama2.llama2, num_layers: 22")
        + "checkpointer: {checkpoint_dir: /tmp/TinyLlama_v1.1/}\n",
        {"model_path": "/tmp/TinyLlama_v1.1/", "model.params": 1100048384},
    ),
    ("fp8", FULL + "enable_fp8_training: True\n", {"fp8_training": True}),
    ("epochs", FULL + "epochs: 3\nmax_steps_per_epoch: 100\n", {"num_epochs": 3, "max_steps": 300}),
    ("no limit", FULL + "epochs: 3\nmax_steps_per_epoch: null\n", {"max_steps": None}),
]


def _values(pack, text: str, target: str | None = "a100-80gb-sxm:8"):
    run = Run(pack, [parse_target(target)] if target else [])
    (subject,) = run.subjects(read(text.encode(), "x.yaml"), judge_broken=False)
    assert subject.framework == "torchtune"
    return run.judged(subject)[0].values


@pytest.mark.parametrize(("text", "facts"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_binding(pack, text: str, facts: dict[str, object]) -> None:
    values = _values(pack, text)
    assert {name: point(values[name]) for name in facts} == facts


def test_the_launch_says_how_many_gpus(pack) -> None:
    values = _values(pack, FULL, None)
    assert point(values["train_gpus"]) is None
    assert point(values["num_gpus"]) is None
    assert point(_values(pack, FULL, "a100-80gb-sxm:2")["train_gpus"]) == 2


def test_every_architecture_has_figures(pack) -> None:
    """A builder that is mapped to an id of the catalogue, for each builder that the map knows."""
    text = (Path(__file__).parents[1] / "rules/frameworks/torchtune.rules").read_text()
    table = text.split("let .hf(name) = match name {")[1].split("else:")[0]
    builders = [part.split('"')[1] for part in table.replace("\n", ",").split(",") if '": "' in part]
    assert len(builders) > 40
    for builder in builders:
        values = _values(pack, changed(FULL, ("llama3_1.llama3_1_8b", f"any.{builder}")))
        assert point(values["model.layers"]) is not None, builder


def _configs(folder: Path) -> list[Path]:
    return sorted(
        p for p in folder.rglob("*") if p.suffix in (".yaml", ".yml", ".json") and p.stat().st_size < 2**20
    )


@needs_corpus
def test_its_configs_are_recognised(pack) -> None:
    run = Run(pack)
    left = []
    for path in _configs(CORPUS / "torchtune"):
        subjects = run.subjects(read(path.read_bytes(), path.name), judge_broken=False)
        left += [path] * ([s.framework for s in subjects] != ["torchtune"])
    assert left == []


@needs_corpus
@pytest.mark.parametrize("target", [None, "h100-sxm:8", "a100-80gb-sxm:8"])
def test_no_error_on_a_maintained_example(pack, target: str | None) -> None:
    """The recipes' own configs run as they are on eight GPUs of 80 GB."""
    run = Run(pack, [parse_target(target)] if target else [])
    errors = []
    for path in _configs(CORPUS / "torchtune"):
        for subject in run.subjects(read(path.read_bytes(), path.name), judge_broken=False):
            found = run.findings(run.judged(subject))
            errors += [(path.name, f.finding.code) for f in found if f.finding.level == "error"]
    assert errors == []


def test_a_step_in_the_backward_pass_frees_the_critics_gradients_too(pack):
    at_once = _values(pack, PPO.replace("gradient_accumulation_steps: 4", "gradient_accumulation_steps: 1"))
    in_backward = _values(
        pack,
        PPO.replace(
            "gradient_accumulation_steps: 4", "gradient_accumulation_steps: 1\noptimizer_in_bwd: true"
        ),
    )
    saved = point(at_once["others.resident"]) - point(in_backward["others.resident"])
    assert 12 < saved / 2**30 < 14, "Mistral's value model has 7.1 billion gradients of two bytes"


@pytest.mark.parametrize(
    ("keys", "path", "frozen"),
    [
        ("llama4_scout_17b_16e", "meta-llama/Llama-4-Scout-17B-16E", True),
        ("llama4_scout_17b_16e, encoder_trainable: true", "meta-llama/Llama-4-Scout-17B-16E", False),
        ("lora_llama4_scout_17b_16e, decoder_trainable: lora", "meta-llama/Llama-4-Scout-17B-16E", True),
        ("llama4_scout_17b_16e, decoder_trainable: false", None, True),
        ("lora_llama4_scout_17b_16e, decoder_trainable: full", None, True),
    ],
)
def test_llama_4_is_known_where_its_decoder_is_trained(pack, keys, path, frozen):
    values = _values(pack, changed(FULL, ("llama3_1.llama3_1_8b", f"llama4.{keys}")))
    assert (values["model_path"] if path else point(values["model.layers"])) == path
    assert values["freeze_vision_tower"] is frozen


@pytest.mark.parametrize(
    ("keys", "least", "most"),
    [
        ("decoder_trainable: false", 0.23, 0.26),  # 1.75 of 10.6 billion weights, and a tower of 0.87
        ("encoder_trainable: false", 0.15, 0.18),
        ("decoder_trainable: true, fusion_trainable: false", 0.8, 0.88),
    ],
)
def test_of_llama_3_2_vision_the_states_are_known(pack, keys, least, most):
    builder = f"llama3_2_vision.llama3_2_vision_11b, {keys}"
    values = _values(pack, changed(FULL, ("llama3_1.llama3_1_8b", builder)))
    low, high, _ = parts(values["trained_share"])
    assert least < low < high < most
    assert values["model_path"] == "meta-llama/Llama-3.2-11B-Vision"
    assert needs_of(values["need.total"])  # of its images, nothing is
