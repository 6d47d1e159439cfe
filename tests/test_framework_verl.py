"""verl's configs, whole or as overrides: which are recognised, and what each fact comes from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cfglint.api import check_file
from cfglint.document.reading import read, read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.values import needs_of, parts

if TYPE_CHECKING:
    from cfglint.facts import Values
    from cfglint.lang.pack import Pack

SHARED = os.environ.get("CFGLINT_SHARED")
CORPUS = Path(SHARED or ".") / "corpus"
CONFIGS = "verl/verl/trainer/config"
EXPERIMENTAL = "verl/verl/experimental"
TRAINING = {
    f"{CONFIGS}/_generated_ppo_megatron_trainer.yaml",
    f"{CONFIGS}/_generated_ppo_trainer.yaml",
    f"{CONFIGS}/_generated_ppo_veomni_trainer.yaml",
    f"{CONFIGS}/ppo_trainer.yaml",
    f"{CONFIGS}/sft_trainer_engine.yaml",
    f"{EXPERIMENTAL}/fully_async_policy/config/fully_async_ppo_megatron_trainer.yaml",
    f"{EXPERIMENTAL}/fully_async_policy/config/fully_async_ppo_trainer.yaml",
    f"{EXPERIMENTAL}/one_step_off_policy/config/one_step_off_ppo_megatron_trainer.yaml",
    f"{EXPERIMENTAL}/one_step_off_policy/config/one_step_off_ppo_trainer.yaml",
}

QWEN = "Qwen/Qwen2.5-7B-Instruct"


def _rl(**parts: str) -> str:
    """Return overrides: ``parts`` are bodies of actor, rollout, ref, model, or of whole sections."""
    inner = {
        "model": f"path: {QWEN}",
        "actor": "ppo_micro_batch_size_per_gpu: 4",
        "rollout": "name: vllm",
        "ref": "",
    }
    inner |= {name: f"{inner[name]}, {body}" for name, body in parts.items() if name in inner}
    text = "actor_rollout_ref:\n" + "".join(
        f"  {name}: {{{body.strip(', ')}}}\n" for name, body in inner.items()
    )
    outer = {"algorithm": "adv_estimator: grpo"} | {k: v for k, v in parts.items() if k not in inner}
    return text + "".join(f"{name}: {{{body}}}\n" for name, body in outer.items())


GRPO = _rl()
PPO = _rl(algorithm="adv_estimator: gae", critic=f"model: {{path: {QWEN}}}, ppo_micro_batch_size_per_gpu: 4")
TOKENS = _rl(actor="use_dynamic_bsz: true, ppo_max_token_len_per_gpu: 8192")
MEGATRON = _rl(
    actor="strategy: megatron, megatron: {tensor_model_parallel_size: 2, pipeline_model_parallel_size: 2}"
)
OFFLOADED = _rl(actor="fsdp_config: {param_offload: true, optimizer_offload: true}")
KL = _rl(actor="use_kl_loss: true")
MEGATRON_KL = _rl(actor="use_kl_loss: true, strategy: megatron")
MEGATRON_AWAY = _rl(actor="use_kl_loss: true, strategy: megatron, megatron: {param_offload: true}")
RECOMPUTED = _rl(
    actor="strategy: megatron, megatron: {override_transformer_config: {recompute_granularity: full}}"
)
CPU_ADAM = _rl(
    actor="strategy: megatron, optim: {override_optimizer_config: "
    "{optimizer_cpu_offload: true, optimizer_offload_fraction: 1}}"
)
LONG = _rl(actor="use_dynamic_bsz: true, strategy: megatron, megatron: {context_parallel_size: 2}")
CRITIC_AWAY = _rl(
    algorithm="adv_estimator: gae", critic="fsdp: {param_offload: true, optimizer_offload: true}"
)
BNB = _rl(actor="optim: {optimizer: AdamW8bit, optimizer_impl: bitsandbytes.optim}")
SHORT_SFT = "data: {use_dynamic_bsz: false, train_batch_size: 128, micro_batch_size_per_gpu: 2}\n"
LORA = _rl(model="lora_rank: 32", actor="use_kl_loss: true")
APART = GRPO + "rollout: {nnodes: 1, n_gpus_per_node: 4}\n"
SERVERS = _rl(rollout="nnodes: 2, n_gpus_per_node: 8", trainer="v1: {trainer_mode: separate_async}")
REST = "model: {path: Qwen/Qwen2.5-7B}\ntrainer: {total_epochs: 2}\n"
SFT = "data: {train_batch_size: 128, micro_batch_size_per_gpu: 2}\n" + REST
FIXED_SFT = SHORT_SFT + REST
OLD_SFT = "data: {train_batch_size: 64}\nmodel: {partial_pretrain: Qwen/Qwen2.5-7B}\n"


def _values(pack: Pack, text: str, target: str | None = "h100-sxm:8", version: str = "") -> Values:
    targets = [] if target is None else [parse_target(target)]
    stated = tuple(float(part) for part in version.split(".")) if version else None
    run = Run(pack, targets, framework="verl" if version else None, version=stated)
    return run.judged(run.subjects(read_text(text, "c.yaml"), judge_broken=True)[0])[-1].values


# What the file says, the fact, its value. What it leaves out is what verl's own ppo_trainer.yaml says.
VEOMNI = _rl(
    actor="veomni: {expert_parallel_size: 4, ulysses_parallel_size: 2, fsdp_size: 8, "
    "optimizer_offload: true}, use_kl_loss: true, optim: {optimizer: adamw}",
    ref="veomni: {param_offload: true}",
)
VEOMNI_APART = _rl(actor="veomni: {fsdp_size: -1}, use_kl_loss: true", ref="veomni: {param_offload: false}")
TURBO = _rl(
    actor="strategy: fsdp_turbo, fsdp_config: {offload_policy: true, turbo_config: "
    "{distributed: {ulysses_parallel_size: 2}, memory: {recompute: true}}}",
    model="enable_gradient_checkpointing: false",
)
SFT_MEGATRON = SFT + (
    "engine: {strategy: megatron}\n"
    "optim: {optimizer: adam, override_optimizer_config: {optimizer_cpu_offload: true}}\n"
)

TOLD = [
    (VEOMNI, "train_backend", "fsdp"),
    (VEOMNI, "ep", 4),
    (VEOMNI, "sp", 2),
    (VEOMNI, "param_dtype", "fp32"),
    (VEOMNI, "optimizer", "adamw"),
    (VEOMNI, "verl.optimizer_offload", True),
    (VEOMNI, "verl.param_offload", False),
    (VEOMNI, "offload_params", False),
    (VEOMNI, "reference.offload", True),
    (SFT_MEGATRON, "optimizer", "adamw_fused"),
    (SFT_MEGATRON, "offload_optimizer", True),
    (GRPO, "task", "grpo"),
    (PPO, "task", "ppo"),
    (_rl(algorithm="use_kl_in_reward: false"), "task", "ppo"),  # gae is the default
    (_rl(algorithm="adv_estimator: gae", critic="enable: false"), "task", "grpo"),
    (_rl(critic="enable: true"), "critic.present", True),
    (SFT, "task", "sft"),
    (_rl(data="output_path: out.parquet"), "task", "inference"),
    (_rl(data="output_path: out.parquet"), "trains", False),
    (GRPO, "model_path", QWEN),
    # topology: the file's own GPUs
    (GRPO, "num_gpus", 8),
    (_rl(trainer="n_gpus_per_node: 4, nnodes: 2"), "train_gpus", 8),
    (GRPO, "colocated", True),
    (GRPO, "rollout_gpus", 8),
    (APART, "colocated", False),
    (APART, "rollout_gpus", 4),
    (APART, "gpus_needed", 12),
    (SERVERS, "colocated", False),
    (SERVERS, "rollout_gpus", 16),
    (GRPO, "train_backend", "fsdp"),
    (GRPO, "train_dp", 8),
    (_rl(actor="ulysses_sequence_parallel_size: 2"), "train_dp", 4),
    (_rl(actor="fsdp_config: {fsdp_size: 4}"), "ranks.shard", 4),
    (_rl(actor="fsdp_config: {fsdp_size: 8}"), "ranks.shard", 8),
    (MEGATRON, "train_backend", "megatron"),
    (MEGATRON, "train_tp", 2),
    (MEGATRON, "pp", 2),
    (MEGATRON, "etp", 2),
    (MEGATRON, "train_dp", 2),
    (MEGATRON, "shard_stage", 1),
    (_rl(actor="megatron: {tensor_model_parallel_size: 4}"), "verl.strategy", "megatron"),
    ("model_engine: megatron\n" + GRPO, "verl.strategy", "megatron"),
    ("defaults: [ppo_megatron_trainer, _self_]\n" + GRPO, "verl.strategy", "megatron"),
    (GRPO, "comm_timeout", 600),
    # precision: FSDP trains fp32 weights in bf16, Megatron 16-bit ones with fp32 copies
    (GRPO, "dtype", "bf16"),
    (GRPO, "param_dtype", "fp32"),
    (_rl(actor="fsdp_config: {model_dtype: bf16}"), "param_dtype", "bf16"),
    (_rl(actor="fsdp_config: {mixed_precision: {param_dtype: fp16}}"), "dtype", "fp16"),
    (GRPO, "master_weights", False),
    (MEGATRON, "param_dtype", "bf16"),
    (MEGATRON, "master_weights", True),
    (MEGATRON, "grad_dtype", "fp32"),
    (GRPO, "lora_rank", 0),
    (LORA, "lora_rank", 32),
    (LORA, "lora_targets", ("all-linear",)),
    (_rl(model="lora: {rank: 16}"), "lora_rank", 16),
    (_rl(model="target_modules: [q_proj]"), "lora_targets", ("q_proj",)),
    (GRPO, "attn_impl", "flash_attention_2"),
    (_rl(model="override_config: {attn_implementation: sdpa}"), "attn_impl", "sdpa"),
    # batches: prompts, sequences, sequences on a GPU
    (GRPO, "rollout_batch_size", 1024),
    (GRPO, "minibatch_size", 256),
    (_rl(rollout="n: 5"), "effective_batch_size", 256 * 5),
    (_rl(rollout="n: 5"), "n_minibatches", 4),
    (_rl(rollout="n: 5"), "grad_accum", 40),
    (GRPO, "micro_batch_size", 4),
    (_rl(actor="ulysses_sequence_parallel_size: 2"), "grad_accum", 16),
    ("actor_rollout_ref: {actor: {ppo_micro_batch_size: 32}}\n", "micro_batch_size", 4),
    ("actor_rollout_ref: {rollout: {log_prob_micro_batch_size: 64}}\n", "logprob_micro_batch_size", 8),
    (TOKENS, "max_tokens_per_microbatch", 8192),
    (
        _rl(actor="use_dynamic_bsz: true, ulysses_sequence_parallel_size: 2"),
        "max_tokens_per_microbatch",
        2 * 16384,
    ),
    (
        LONG,
        "max_tokens_per_microbatch",
        2 * 16384,
    ),
    (TOKENS, "verl.logprob_tokens", 8192),
    (TOKENS, "verl.logprob_dynamic", True),
    (GRPO, "packing", True),
    (GRPO, "seq_len", 1024),
    (_rl(data="max_prompt_length: 2048, max_response_length: 8192"), "seq_len", 10240),
    (GRPO, "gradient_checkpointing", "full"),
    (_rl(model="enable_gradient_checkpointing: false"), "gradient_checkpointing", "none"),
    (MEGATRON, "gradient_checkpointing", "none"),
    (
        RECOMPUTED,
        "gradient_checkpointing",
        "full",
    ),
    (GRPO, "optimizer", "adamw"),
    (MEGATRON, "optimizer", "adamw_fused"),
    (
        BNB,
        "optimizer",
        "adamw_8bit",
    ),
    # offload makes room for the engine, not in the training step
    (OFFLOADED, "offload_params", False),
    (OFFLOADED, "offload_optimizer", False),
    (OFFLOADED, "train_offload", True),
    (GRPO, "train_offload", False),
    (_rl(actor="strategy: fsdp2, fsdp_config: {offload_policy: true}"), "offload_params", True),
    (_rl(actor="fsdp_config: {offload_policy: true}"), "offload_params", False),
    (
        CPU_ADAM,
        "offload_optimizer",
        True,
    ),
    (GRPO, "fused_loss", "none"),
    (_rl(model="use_fused_kernels: true"), "fused_loss", "chunked"),
    # other models
    (GRPO, "reference.present", False),
    (KL, "reference.present", True),
    (_rl(algorithm="adv_estimator: grpo, use_kl_in_reward: true"), "reference.present", True),
    (LORA, "reference.present", False),
    (KL, "reference.offload", True),
    (MEGATRON_KL, "reference.offload", False),
    (
        MEGATRON_AWAY,
        "reference.offload",
        True,
    ),
    (PPO, "critic.model_path", QWEN),
    (PPO, "critic.offload", False),
    (
        CRITIC_AWAY,
        "critic.offload",
        True,
    ),
    (GRPO, "reward.present", False),
    (_rl(reward="reward_model: {enable: true, model_path: a/judge}"), "reward.model_path", "a/judge"),
    # rollout
    (GRPO, "rollout_engine", "vllm"),
    (GRPO, "mem_fraction", 0.5),
    (GRPO, "rollout_tp", 2),
    (GRPO, "rollout_dp", 4),
    (GRPO, "sleep_mode", True),
    (_rl(rollout="free_cache_engine: false"), "sleep_mode", False),
    (_rl(rollout="enable_sleep_mode: false"), "sleep_mode", False),
    (GRPO, "max_batched_tokens", 8192),
    (GRPO, "max_running_requests", 256),
    (GRPO, "enforce_eager", False),
    (_rl(rollout="max_model_len: 4096"), "context_length", 4096),
    (_rl(rollout="quantization: fp8"), "rollout_dtype", "fp8"),
    # run
    # engines whose memory is not modelled, and what their keys tell
    (TURBO, "offload_params", True),
    (TURBO, "weights.resident", 0),
    (TURBO, "gradient_checkpointing", "full"),
    (TURBO, "sp", 2),
    (_rl(actor="strategy: fsdp_turbo"), "offload_params", False),
    (_rl(actor="strategy: torchtitan, torchtitan: {offload_policy: true}"), "offload_params", True),
    (_rl(actor="strategy: torchtitan"), "gradient_checkpointing", "selective"),
    (GRPO, "num_epochs", 30),
    (SFT, "num_epochs", 2),
    (GRPO, "dataloader_workers", 8),
    # SFT: torchrun counts the GPUs
    (SFT, "train_gpus", 8),
    (SFT, "generates", False),
    (SFT, "train_batch_size", 128),
    (SFT, "max_tokens_per_microbatch", 8192),
    (FIXED_SFT, "micro_batch_size", 2),
    (FIXED_SFT, "grad_accum", 8),
    (OLD_SFT, "micro_batch_size", 4),
    (OLD_SFT, "seq_len", 1024),
    (OLD_SFT, "pad_to_max", True),
]

# What nothing tells, and the names that would settle it.
UNTOLD = [
    ("actor_rollout_ref: {actor: {use_dynamic_bsz: true}}\n", "rollout_engine", "rollout_engine"),
    ("actor_rollout_ref:\n  rollout:\n    name: ???\n", "rollout_engine", "actor_rollout_ref.rollout.name"),
    ("actor_rollout_ref: {actor: {use_dynamic_bsz: true}}\n", "model_path", "model_path"),
    (
        "defaults: [ppo_trainer]\nactor_rollout_ref: {model: {path: ~/models/deepseek-llm-7b-chat}}\n",
        "model_path",
        "model_path",
    ),
    ("actor_rollout_ref: {actor: {use_dynamic_bsz: false}}\n", "micro_batch_size", "micro_batch_size"),
    (_rl(actor="strategy: fsdp_turbo"), "train_backend", "a model of the train backend fsdp_turbo"),
    (_rl(actor="strategy: automodel"), "offload_params", "a model of the train backend automodel"),
    (VEOMNI_APART, "reference.offload", "a model of param_offload false"),
    (APART + "async_training: {use_dynamic_resource_scheduling: true}\n", "colocated", "colocated"),
]

# The same file under another version.
VERSIONS = [
    ("0.6.1", GRPO, "packing", False),
    ("0.6.1", GRPO, "pad_to_max", True),
    ("0.6.1", GRPO, "context_length", 1024),
    ("0.6.1", GRPO, "max_running_requests", 1024),
    ("0.6.1", GRPO, "unsynced_accumulation", False),
    ("0.9.0", GRPO, "unsynced_accumulation", True),
    ("0.5.0", "actor_rollout_ref: {actor: {use_dynamic_bsz: true}}\n", "rollout_engine", "vllm"),
    ("0.5.0", GRPO, "enforce_eager", True),
    ("0.6.1", _rl(rollout="name: sglang"), "attention_backend", "fa3"),
    (
        "0.6.1",
        MEGATRON_AWAY,
        "reference.offload",
        False,
    ),
]


def _ids(rows: list[tuple[object, ...]]) -> list[str]:
    return [f"{i}-{row[-2]}" for i, row in enumerate(rows)]


@pytest.mark.parametrize(("text", "name", "value"), TOLD, ids=_ids(TOLD))
def test_told(pack: Pack, text: str, name: str, value: object) -> None:
    found = _values(pack, text)[name]
    assert (tuple(found) if isinstance(found, list) else found) == value


@pytest.mark.parametrize(("text", "name", "need"), UNTOLD, ids=_ids(UNTOLD))
def test_untold(pack: Pack, text: str, name: str, need: str) -> None:
    assert any(need in n for n in needs_of(_values(pack, text)[name]))


@pytest.mark.parametrize(("version", "text", "name", "value"), VERSIONS, ids=_ids(VERSIONS))
def test_versions(pack: Pack, version: str, text: str, name: str, value: object) -> None:
    assert _values(pack, text, version=version)[name] == value


@pytest.mark.parametrize(
    ("key", "version"),
    [
        (_rl(rollout="load_format: dummy_dtensor"), (0, 5)),
        (_rl(rollout="mode: sync"), (0, 6, 1)),
        (_rl(critic="model: {fsdp_config: {param_offload: true}}"), (0, 7, 1)),
        (OLD_SFT, (0, 7, 1)),
    ],
)
def test_version_that_the_keys_tell(pack: Pack, key: str, version: tuple[int, ...]) -> None:
    assert _values(pack, key)["framework.version"] == version


def test_offload_lowers_what_the_engine_meets_and_not_what_training_needs(pack: Pack) -> None:
    here, away = _values(pack, GRPO), _values(pack, OFFLOADED)
    for name in ("trainer.asleep", "engine.trainer_there"):
        (least, _, kept), (_, most, left) = parts(here[name]), parts(away[name])
        assert not kept
        assert not left
        assert least > most
    assert parts(here["moment.step"]) == parts(away["moment.step"])


def test_without_a_target_the_files_own_gpus_count(pack: Pack) -> None:
    values = _values(pack, _rl(trainer="n_gpus_per_node: 2"), None)
    assert values["train_gpus"] == 2
    assert needs_of(values["gpu.vram"])


OTHERS = [
    "defaults: [my_base, _self_]\n" + GRPO,  # absent keys are those of a file that is not here
    "strategy: fsdp\nppo_mini_batch_size: 256\n",  # a part of verl's own config
    "model: {path: a/b}\ndata: {train_batch_size: 8}\n",
]


@pytest.mark.parametrize("text", OTHERS)
def test_not_taken(pack: Pack, text: str) -> None:
    assert not check_file(Run(pack), read(text.encode(), "c.yaml"), explicit=False)


@pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no folder of real configs")
def test_its_own_configs_have_no_error(pack: Pack) -> None:
    """They are completed on the command line: what is missing there is no error."""
    for name in sorted(TRAINING):
        run = Run(pack, [parse_target("h100-sxm:16")])
        check_file(run, read((CORPUS / name).read_bytes(), name))
        assert [f for f in run.report.findings if f.level == "error"] == [], name


# Runs that verl publishes as the least hardware that works (docs/perf/device_tuning.rst): target, overrides.
OFF = "fsdp_config: {param_offload: true, optimizer_offload: true}"
SEVEN_B = (
    "data: {train_batch_size: 1024, max_prompt_length: 1024, max_response_length: 1024}\n"
    "actor_rollout_ref:\n"
    "  model: {path: Qwen/Qwen2-7B-Instruct, use_remove_padding: true}\n"
    f"  actor: {{ppo_mini_batch_size: 256, ppo_micro_batch_size_per_gpu: 16, use_kl_loss: true, {OFF}}}\n"
    "  rollout: {name: vllm, gpu_memory_utilization: 0.6, n: 5, log_prob_micro_batch_size_per_gpu: 16}\n"
    "  ref: {log_prob_micro_batch_size_per_gpu: 16}\n"
)
FOURTEEN_B_LORA = (
    "data: {train_batch_size: 116, max_prompt_length: 512, max_response_length: 1024}\n"
    "actor_rollout_ref:\n"
    "  model: {path: Qwen/Qwen2.5-14B-Instruct, lora_rank: 32, use_remove_padding: true}\n"
    "  actor: {ppo_mini_batch_size: 116, ppo_micro_batch_size: 116, use_kl_loss: true, "
    f"ulysses_sequence_parallel_size: 2, entropy_coeff: 0.001, {OFF}}}\n"
    "  rollout: {name: vllm, gpu_memory_utilization: 0.25, n: 5, max_num_batched_tokens: 1536, "
    "max_model_len: 1536, enable_chunked_prefill: false, log_prob_micro_batch_size: 116}\n"
    "  ref: {log_prob_micro_batch_size: 116}\n"
)
RAN = [("h800:2", SEVEN_B), ("h100-sxm:2", FOURTEEN_B_LORA)]


@pytest.mark.parametrize(("target", "text"), RAN, ids=[row[0] for row in RAN])
def test_published_runs_have_no_error_where_they_ran(pack: Pack, target: str, text: str) -> None:
    text += "algorithm: {adv_estimator: grpo}\ntrainer: {n_gpus_per_node: 2}\n"
    run = Run(pack, [parse_target(target)], framework="verl", version=(0.0, 6.0, 1.0))
    assert check_file(run, read_text(text, "c.yaml"))
    assert [f for f in run.report.findings if f.level == "error"] == []
