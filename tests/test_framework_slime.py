"""slime: which launch scripts are its own, and what its flags come to, on scripts in the form of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from golden import page_of
from told import point

if TYPE_CHECKING:
    from cfglint.facts import Values
    from cfglint.lang.pack import Pack

GRPO = page_of("BAT270").files["ok_slime_budget.sh"]


def _with(*changes: tuple[str, str]) -> str:
    """Return the script with flags set anew, or taken out (``-``); those that it lacked come first."""
    text = GRPO
    for flag, value in changes:
        lines = text.split("\n")
        found = [i for i, line in enumerate(lines) if line.split()[:1] == [f"--{flag}"]]
        tail = " \\" if found and lines[found[0]].endswith("\\") else ""
        new = f"   --{flag} {value}".rstrip() + tail
        if found:
            lines[found[0]] = new if value != "-" else "   \\" if tail else ""
        else:
            lines.insert(lines.index("MISC_ARGS=(") + 1, new)
        text = "\n".join(lines)
    return text


def _switch(*flags: str) -> str:
    return _with(*((flag, "") for flag in flags))


APART = _with(("colocate", "-"), ("rollout-num-gpus", "4"))
SFT = _with(("loss-type", "sft_loss"), ("debug-train-only", ""), ("colocate", "-"))
PPO = _with(("advantage-estimator", "ppo"))
NAMED = GRPO.replace("MODEL_ARGS=(", "UNUSED=(").replace("set -ex", "set -ex\nsource models/qwen3-4B.sh")
HIDDEN = NAMED.replace("   ${MISC_ARGS[@]}", "   ${MISC_ARGS[@]} ${CLUSTER_ARGS[@]}")
PARTED = GRPO.replace("PERF_ARGS=(", "UNUSED_PERF=(").replace("set -ex", "set -ex\nsource perf.sh")
DETECTED = GRPO.replace("set -ex", "NUM_GPUS=$(nvidia-smi -L | wc -l)\nset -ex").replace(
    "gpus-per-node 8", "gpus-per-node ${NUM_GPUS}"
)
MOE = _with(("num-experts", "128"), ("moe-router-topk", "8"), ("moe-ffn-hidden-size", "768"), ("swiglu", ""))
UNEVEN = _with(("pipeline-model-parallel-size", "4"), ("decoder-last-pipeline-num-layers", "6"))

TOLD: list[tuple[str, str, object]] = [
    (GRPO, "task", "grpo"),
    (PPO, "task", "ppo"),
    (SFT, "task", "sft"),
    (_with(("loss-type", "custom_loss")), "task", None),
    (GRPO, "generates", True),
    (SFT, "generates", False),
    (_switch("debug-rollout-only"), "trains", False),
    # topology
    (GRPO, "train_gpus", 8),
    (GRPO, "num_gpus", 8),
    (GRPO, "colocated", True),
    (GRPO, "rollout_gpus", 8),
    (APART, "colocated", False),
    (APART, "rollout_gpus", 4),
    (APART, "gpus_needed", 12),
    (_with(("rollout-num-gpus", "4")), "rollout_gpus", 4),
    (_with(("rollout-num-gpus", "4")), "num_gpus", 8),
    (SFT, "rollout_gpus", 0),
    (SFT, "num_gpus", 8),
    (_with(("actor-num-nodes", "4")), "num_gpus", 32),
    (DETECTED, "train_gpus", 16),
    (GRPO, "train_backend", "megatron"),
    (GRPO, "train_tp", 2),
    (GRPO, "train_dp", 4),
    (GRPO, "ep", 1),
    (GRPO, "etp", 2),
    (_with(("context-parallel-size", "2")), "cp", 2),
    (GRPO, "shard_stage", 1),
    (GRPO, "layers.local", 36),
    (UNEVEN, "layers.local", 10),
    (GRPO, "comm_timeout", 600),
    (_with(("distributed-timeout-minutes", "30")), "comm_timeout", 1800),
    # the model that Megatron builds is the one of the checkpoint
    (GRPO, "model_path", "/data/Qwen3-4B"),
    (GRPO, "model.params", 4_022_982_656),
    (GRPO, "model.tied", True),
    (_switch("untie-embeddings-and-output-weights"), "model.params", 4_022_982_656 + 152_064 * 2560),
    (GRPO, "model.kv_heads", 8),
    (GRPO, "model.head_dim", 128),
    (MOE, "model.experts", 128),
    (MOE, "model.expert_ffn", 768),
    (GRPO, "dtype", "bf16"),
    (_switch("fp16"), "dtype", "fp16"),
    (GRPO, "param_dtype", "bf16"),
    (GRPO, "master_weights", True),
    (GRPO, "grad_dtype", "fp32"),
    # Megatron turns it on for bf16 by itself.
    (_with(("accumulate-allreduce-grads-in-fp32", "-")), "grad_dtype", "fp32"),
    (_with(("accumulate-allreduce-grads-in-fp32", "-"), ("grad-reduce-in-bf16", "")), "grad_dtype", "bf16"),
    # memory
    (GRPO, "packing", True),
    (GRPO, "use_dynamic_bsz", True),
    (GRPO, "max_tokens_per_microbatch", 9216),
    (_with(("context-parallel-size", "2")), "max_tokens_per_microbatch", 18432),
    (_with(("use-dynamic-batch-size", "-")), "micro_batch_size", 1),
    (_with(("use-dynamic-batch-size", "-")), "max_tokens_per_microbatch", None),
    (_with(("use-dynamic-batch-size", "-"), ("micro-batch-size", "2")), "grad_accum", 32),
    (GRPO, "slime.logprob_tokens", 9216),
    (_with(("log-probs-max-tokens-per-gpu", "32768")), "slime.logprob_tokens", 32768),
    (GRPO, "gradient_checkpointing", "full"),
    (_with(("recompute-granularity", "selective")), "gradient_checkpointing", "selective"),
    (_with(("recompute-granularity", "-")), "gradient_checkpointing", "none"),
    (_with(("recompute-method", "block")), "gradient_checkpointing", "full"),
    (GRPO, "offload_optimizer", False),
    (_switch("optimizer-cpu-offload"), "offload_optimizer", True),
    (_with(("optimizer-cpu-offload", ""), ("optimizer-offload-fraction", "0.5")), "offload_optimizer", None),
    (GRPO, "optimizer", "adamw_fused"),
    (_with(("optimizer", "sgd")), "optimizer", "sgd_momentum"),
    # other models
    (GRPO, "reference.present", True),
    (GRPO, "others.resident", 0),
    (GRPO, "kl_coef", 0.01),
    (_with(("use-kl-loss", "-")), "reference.present", False),
    (PPO, "critic.present", True),
    (PPO, "critic.offload", True),
    (GRPO, "critic.present", False),
    # rollout
    (GRPO, "rollout_engine", "sglang"),
    (GRPO, "rollout_tp", 2),
    (GRPO, "rollout_dp", 4),
    (_with(("sglang-pp-size", "2")), "rollout_tp", 1),
    (_switch("sglang-enable-dp-attention"), "rollout_tp", 2),
    (GRPO, "mem_fraction", 0.7),
    (GRPO, "mem_fraction_auto", False),
    (_with(("sglang-mem-fraction-static", "-")), "mem_fraction_auto", True),
    (GRPO, "max_new_tokens", 4096),
    (GRPO, "max_prompt_len", None),
    (_with(("rollout-max-context-len", "8192")), "max_prompt_len", 8191),
    (_with(("rollout-max-context-len", "8192")), "longest_sequence", 8192),
    (_with(("rollout-max-prompt-len", "1024")), "longest_sequence", 5120),
    (_switch("sglang-disable-cuda-graph"), "enforce_eager", True),
    (GRPO, "sleep_mode", True),
    (GRPO, "train_offload", True),
    (APART, "sleep_mode", False),
    (APART, "train_offload", False),
    (_switch("no-offload-rollout"), "sleep_mode", False),
    (_switch("no-offload-train"), "train_offload", False),
    (_with(("update-weight-transport", "disk")), "weight_update_mode", "disk"),
    # batches: prompts, answers
    (GRPO, "rollout_batch_size", 32),
    (GRPO, "n_samples", 8),
    (GRPO, "train_batch_size", 256),
    (GRPO, "effective_batch_size", 256),
    (_with(("global-batch-size", "-"), ("num-steps-per-rollout", "4")), "train_batch_size", 64),
    (_with(("global-batch-size", "64")), "n_minibatches", 4),
    (GRPO, "max_steps", 300),
    (_with(("num-rollout", "-"), ("num-epoch", "3")), "num_epochs", 3),
    # lists of flags from elsewhere: slime's MODEL_ARGS tell of the model alone, others may say anything
    (NAMED, "colocated", True),
    (NAMED, "megatron.hides", False),
    (NAMED, "etp", 2),
    (HIDDEN, "megatron.hides", True),
    (HIDDEN, "train_tp", 2),
    (HIDDEN, "ep", None),
    (HIDDEN, "offload_optimizer", None),
    (PARTED, "train_tp", None),
    (PARTED, "gradient_checkpointing", None),
    (PARTED, "use_dynamic_bsz", None),
    (PARTED, "trainer.memory", None),
]


def _values(pack: Pack, text: str) -> Values:
    run = Run(pack, [parse_target("h100-sxm:16")])
    (subject,) = run.subjects(read_text(text, "run.sh"), judge_broken=False)
    assert subject.framework == "slime"
    return run.judged(subject)[-1].values


@pytest.mark.parametrize(
    ("text", "name", "value"), TOLD, ids=[f"{name}-{i}" for i, (_, name, _) in enumerate(TOLD)]
)
def test_binding(pack: Pack, text: str, name: str, value: object) -> None:
    assert point(_values(pack, text)[name]) == value


@pytest.mark.parametrize("program", ["train.py", "train_async.py", "/opt/slime/train.py"])
def test_its_scripts_are_taken(pack: Pack, program: str) -> None:
    text = GRPO.replace("python3 train.py", f"python3 {program}")
    (subject,) = Run(pack).subjects(read_text(text, "run.sh"), judge_broken=False)
    assert subject.framework == "slime"


@pytest.mark.parametrize(
    "text",
    [
        "python3 train.py --rollout-batch-size 8 --pretrain x --actor_num_gpus_per_node 8\n",
        "python3 -m my.cli --rollout_batch_size 8 --vllm_num_engines 4 --actor_num_gpus_per_node 8\n",
        "python3 train.py --hf-checkpoint x --num-gpus 8\n",
        "python3 tools/convert_hf_to_torch_dist.py --hf-checkpoint x --save y\n",
    ],
    ids=["a fork of OpenRLHF", "a descendant of OpenRLHF", "another trainer", "a tool"],
)
def test_others_are_not(pack: Pack, text: str) -> None:
    found = Run(pack).subjects(read_text(text, "run.sh"), judge_broken=False)
    assert "slime" not in [s.framework for s in found]
