"""NeMo-RL: which files are its own, and what its keys come to, on small texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cfglint.document.reading import read, read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.repair.solve import solving
from golden import page_of
from told import point

if TYPE_CHECKING:
    from cfglint.facts import Values
    from cfglint.lang.pack import Pack

GRPO = page_of("RUN261").files["ok_dtensor.yaml"]


def _with(*changes: str, text: str = GRPO) -> str:
    """Return the whole file with one line after another changed, each named by its place (``a.b: new``)."""
    for change in changes:
        path, _, new = change.partition(": ")
        lines, at = text.split("\n"), 0
        *sections, key = path.split(".")
        for depth, section in enumerate(sections):
            at = next(i for i in range(at, len(lines)) if lines[i].startswith(f"{'  ' * depth}{section}:"))
            at += 1
        indent = "  " * len(sections)
        found = next((i for i in range(at, len(lines)) if lines[i].startswith(f"{indent}{key}:")), None)
        if found is None:
            lines.insert(at, f"{indent}{key}: {new}")
        else:
            lines[found] = f"{indent}{key}: {new}"
        text = "\n".join(lines)
    return text


def _on_megatron(*changes: str) -> str:
    return _with("policy.dtensor_cfg.enabled: false", "policy.megatron_cfg.enabled: true", *changes)


def _task(section: str, *changes: str) -> str:
    """Return the file as one of another algorithm, without generation."""
    text = _with(*changes)
    head, _, rest = text.partition("grpo:")
    body = rest.partition("policy:")
    policy, _, cluster = body[2].partition("cluster:")
    kept = policy.partition("  generation:")[0]
    return f"{head}{section}\npolicy:{kept}cluster:{cluster}"


APART = "policy.generation.colocated.enabled: false"
ENGINE = "policy.generation.colocated.resources"
LORA = _with("policy.dtensor_cfg.lora_cfg.enabled: true")
DYNAMIC = _with("policy.sequence_packing.enabled: false", "policy.dynamic_batching.enabled: true")
PLAIN = _with("policy.sequence_packing.enabled: false")
SFT = _task("sft: {max_num_epochs: 2, max_num_steps: 60}", "policy.sequence_packing.enabled: false")
DPO = _task("dpo: {max_num_epochs: 1}", "policy.sequence_packing.enabled: false")
RM = _task("rm: {max_num_epochs: 1}", "policy.sequence_packing.enabled: false")
DISTILLED = GRPO.replace("grpo:", "distillation:") + (
    "teacher:\n  model_name: Qwen/Qwen2.5-7B\n  dtensor_cfg: {tensor_parallel_size: 4}\n"
)
PPO = GRPO.replace("grpo:", "ppo:") + "value: {model_name: Qwen/Qwen2.5-1.5B}\n"
SGLANG = _with(
    "policy.generation.backend: sglang",
    "policy.generation.sglang_cfg: {mem_fraction_static: 0.7, tp_size: 2, pp_size: 1}",
)
CHILD = """\
defaults: ../grpo_math_1B.yaml
policy:
  model_name: Qwen/Qwen2.5-7B
cluster:
  num_nodes: 4
  gpus_per_node: 8
"""
MEGATRON_CHILD = CHILD.replace(
    "cluster:", "  megatron_cfg: {enabled: true, tensor_model_parallel_size: 4}\ncluster:"
)

TOLD: list[tuple[str, str, object]] = [
    (GRPO, "task", "grpo"),
    (PPO, "task", "ppo"),
    (SFT, "task", "sft"),
    (DPO, "task", "dpo"),
    (RM, "task", "rm"),
    (DISTILLED, "task", "distill"),
    (CHILD, "task", "grpo"),
    (CHILD.replace("grpo_math_1B", "sft"), "task", "sft"),
    (CHILD.replace("../grpo_math_1B", "dpo"), "task", "dpo"),
    (GRPO, "model_path", "Qwen/Qwen2.5-1.5B"),
    (GRPO, "generates", True),
    (SFT, "generates", False),
    (DISTILLED, "generates", True),
    # topology
    (GRPO, "num_gpus", 8),
    (GRPO, "colocated", True),
    (GRPO, "train_gpus", 8),
    (GRPO, "rollout_gpus", 8),
    (GRPO, "rollout_dp", 8),
    (SFT, "train_gpus", 8),
    (SFT, "colocated", False),
    (SFT, "rollout_gpus", 0),
    (_with(APART, f"{ENGINE}: {{gpus_per_node: 2}}"), "train_gpus", 6),
    (_with(APART, f"{ENGINE}: {{gpus_per_node: 2}}"), "rollout_gpus", 2),
    (
        _with(APART, f"{ENGINE}: {{gpus_per_node: 8, num_nodes: 1}}", "cluster.num_nodes: 4"),
        "train_gpus",
        24,
    ),
    (
        _with(APART, f"{ENGINE}: {{gpus_per_node: 8, num_nodes: 1}}", "cluster.num_nodes: 4"),
        "rollout_gpus",
        8,
    ),
    (
        _with(APART, f"{ENGINE}: {{gpus_per_node: 8, num_nodes: 1}}", "cluster.num_nodes: 4"),
        "rollout_nodes",
        1,
    ),
    (GRPO + "env:\n  reward_model: {resources: {gpus_per_node: 4, num_nodes: 1}}\n", "train_gpus", None),
    (GRPO, "train_backend", "fsdp"),
    (_on_megatron(), "train_backend", "megatron"),
    (_with("policy.dtensor_cfg.tensor_parallel_size: 2"), "train_tp", 2),
    (_with("policy.dtensor_cfg.context_parallel_size: 2"), "cp", 2),
    (_with("policy.dtensor_cfg.context_parallel_size: 2"), "train_dp", 4),
    (_with("policy.megatron_cfg.tensor_model_parallel_size: 4"), "train_tp", 1),
    (_on_megatron("policy.megatron_cfg.tensor_model_parallel_size: 4"), "train_tp", 4),
    (_on_megatron("policy.megatron_cfg.pipeline_model_parallel_size: 2"), "pp", 2),
    (_on_megatron("policy.megatron_cfg.expert_model_parallel_size: 8"), "ep", 8),
    (_on_megatron(), "etp", 1),
    (GRPO, "pp", 1),
    (GRPO, "shard_stage", 3),
    (_on_megatron(), "shard_stage", 1),
    (_on_megatron("policy.megatron_cfg.optimizer.use_distributed_optimizer: false"), "shard_stage", 0),
    (_with("policy.dtensor_cfg.dp_replicate_size: 2"), "ranks.shard", 4),
    # precision: DTensor trains fp32 weights in bf16, Megatron 16-bit ones with fp32 copies
    (GRPO, "dtype", "bf16"),
    (GRPO, "param_dtype", "fp32"),
    (GRPO, "master_weights", False),
    (_on_megatron(), "param_dtype", "bf16"),
    (_on_megatron(), "master_weights", True),
    (_on_megatron(), "grad_dtype", "bf16"),
    (
        _on_megatron("policy.megatron_cfg.distributed_data_parallel_config.grad_reduce_in_fp32: true"),
        "grad_dtype",
        "fp32",
    ),
    (_with("policy.precision: float16"), "dtype", "fp16"),
    (GRPO, "lora_rank", 0),
    (LORA, "lora_rank", 16),
    (LORA, "lora_targets", ("all-linear",)),
    (LORA, "lora_dtype", "fp32"),
    (_on_megatron("policy.megatron_cfg.peft: {enabled: true, dim: 32}"), "lora_rank", 32),
    (_on_megatron("policy.megatron_cfg.fp8_cfg: {enabled: true}"), "fp8_training", True),
    (GRPO, "attn_impl", "flash_attention_2"),
    (PLAIN, "attn_impl", "sdpa"),
    # memory
    (GRPO, "packing", True),
    (GRPO, "use_dynamic_bsz", False),
    (GRPO, "max_tokens_per_microbatch", 8192),
    (GRPO, "packed_whole", True),
    (DYNAMIC, "packing", False),
    (DYNAMIC, "use_dynamic_bsz", True),
    (DYNAMIC, "max_tokens_per_microbatch", 8192),
    (PLAIN, "max_tokens_per_microbatch", None),
    (PLAIN, "micro.cap", 8192),
    (PLAIN, "grad_accum", 16),
    (DPO, "micro.cap", 16384),
    (GRPO, "micro_batch_size", 4),
    (GRPO, "logprob_micro_batch_size", 4),
    (GRPO, "seq_len", 2048),
    (GRPO, "gradient_checkpointing", "full"),
    (_with("policy.dtensor_cfg.activation_checkpointing: false"), "gradient_checkpointing", "none"),
    (_on_megatron(), "gradient_checkpointing", "full"),
    (
        _on_megatron("policy.megatron_cfg.recompute_granularity: selective"),
        "gradient_checkpointing",
        "selective",
    ),
    (GRPO, "optimizer", "adamw_fused"),
    (_with("policy.optimizer.kwargs: {lr: 1.0e-6}"), "optimizer", "adamw"),
    (_with("policy.optimizer.name: torch.optim.SGD"), "optimizer", "sgd"),
    (_with("policy.optimizer.name: my.Optimizer"), "optimizer", None),
    (_on_megatron(), "optimizer", "adamw_fused"),
    (_on_megatron("policy.megatron_cfg.optimizer.optimizer: sgd"), "optimizer", "sgd_momentum"),
    (_with("policy.dtensor_cfg.cpu_offload: true"), "offload_params", True),
    (_with("policy.dtensor_cfg.cpu_offload: true"), "offload_optimizer", True),
    (_on_megatron(), "offload_optimizer", False),
    (
        _on_megatron(
            "policy.megatron_cfg.optimizer.optimizer_cpu_offload: true",
            "policy.megatron_cfg.optimizer.optimizer_offload_fraction: 1.0",
        ),
        "offload_optimizer",
        True,
    ),
    (
        _on_megatron(
            "policy.megatron_cfg.optimizer.optimizer_cpu_offload: true",
            "policy.megatron_cfg.optimizer.optimizer_offload_fraction: 0.5",
        ),
        "offload_optimizer",
        None,
    ),
    (_on_megatron("policy.megatron_cfg.optimizer.use_precision_aware_optimizer: true"), "offload.share", 1),
    (
        _on_megatron("policy.megatron_cfg.optimizer.use_precision_aware_optimizer: false"),
        "offload.share",
        pytest.approx(2 / 3),
    ),
    (GRPO, "fused_loss", "none"),
    (_on_megatron("policy.megatron_cfg.use_fused_linear_logprobs: true"), "fused_loss", "chunked"),
    (RM, "logits.bytes", 0),
    # other models wait on the host
    (GRPO, "kl_coef", 0.01),
    (GRPO, "reference.present", True),
    (GRPO, "reference.offload", True),
    (GRPO, "others.resident", 0),
    (_with("loss_fn.reference_policy_kl_penalty: 0.0"), "reference.present", False),
    (SFT, "reference.present", False),
    (DPO, "reference.present", True),
    (PPO, "critic.present", True),
    (PPO, "critic.offload", True),
    (GRPO, "critic.present", False),
    (DISTILLED, "teacher.present", True),
    (DISTILLED, "teacher.model_path", "Qwen/Qwen2.5-7B"),
    (DISTILLED, "nemo.teacher_tp", 4),
    # rollout
    (GRPO, "rollout_engine", "vllm"),
    (GRPO, "mem_fraction", 0.6),
    (GRPO, "rollout_tp", 1),
    (GRPO, "rollout_pp", 1),
    (GRPO, "engine.replicas", 1),
    (_with("policy.model_name: Qwen/Qwen3-30B-A3B"), "fsdp_reshard", None),  # of two cases
    (
        _with(
            "policy.model_name: Qwen/Qwen3-30B-A3B",
            "policy.dtensor_cfg.moe_parallelizer: {reshard_after_forward: true}",
        ),
        "fsdp_reshard",
        True,
    ),
    (GRPO, "fsdp_reshard", True),
    (_with("policy.generation.vllm_cfg.expert_parallel_size: 4"), "engine.replicas", 4),  # of one GPU each
    (GRPO, "rollout_dtype", "bf16"),
    (GRPO, "kv_cache_dtype", "auto"),
    (GRPO, "context_length", 2048),
    (GRPO, "max_new_tokens", 2048),
    (GRPO, "enforce_eager", False),
    (GRPO, "sleep_mode", True),
    (_with(APART, f"{ENGINE}: {{gpus_per_node: 2}}"), "sleep_mode", False),
    (SGLANG, "mem_fraction", 0.7),
    (SGLANG, "rollout_tp", 2),
    (_with("policy.generation.backend: megatron"), "rollout_engine", None),
    # batches: prompts, answers, sequences
    (GRPO, "rollout_batch_size", 32),
    (GRPO, "n_samples", 16),
    (GRPO, "train_batch_size", 512),
    (GRPO, "effective_batch_size", 512),
    (_with("policy.train_global_batch_size: 128"), "n_minibatches", 4),
    (SFT, "n_samples", 1),
    (SFT, "num_epochs", 2),
    (GRPO, "max_steps", 500),
    (GRPO + "data: {num_workers: 3}\n", "dataloader_workers", 3),
    # what NeMo-RL's own classes say where a whole file does not
    (GRPO.replace("  num_generations_per_prompt: 16\n", ""), "n_samples", 16),
    (GRPO.replace("  num_prompts_per_step: 32\n", ""), "rollout_batch_size", 32),
    (GRPO.replace("  reference_policy_kl_penalty: 0.01\n", ""), "kl_coef", 0.01),
    (GRPO.replace("  train_micro_batch_size: 4\n", ""), "micro_batch_size", None),
    # what a file leaves to the one that it builds on is unknown
    (CHILD, "num_gpus", 32),
    (CHILD, "train_tp", None),
    (CHILD, "n_samples", None),
    (CHILD, "kl_coef", None),
    (CHILD, "packing", None),
    (CHILD, "lora_rank", None),
    (CHILD, "colocated", None),
    (CHILD, "train_backend", None),
    (CHILD, "trainer.memory", None),
    (MEGATRON_CHILD, "train_backend", "megatron"),
    (MEGATRON_CHILD, "train_tp", 4),
    (MEGATRON_CHILD, "pp", None),
]

TAKEN = {
    "whole": GRPO,
    "child": CHILD,
    "a few keys": "defaults: sft.yaml\npolicy:\n  sequence_packing: {enabled: true}\n",
    "one of another folder": "defaults: ../../dpo.yaml\ncluster: {num_nodes: 2}\n",
}
LEFT = {
    "evaluation": "eval: {metric: pass@k}\ngeneration: {backend: vllm}\ncluster: {gpus_per_node: 1}\n",
    "torchtune": "policy_model: {_component_: torchtune.models.llama3_2.llama3_2_1b}\npolicy: {}\n",
    "Hydra": "defaults: [base, _self_]\npolicy: {lr: 1}\n",
    "a robot's": "policy: {type: act}\noutput_dir: x\n",
}


def _values(pack: Pack, text: str) -> Values:
    run = Run(pack, [parse_target("h100-sxm:8")])
    (subject,) = run.subjects(read_text(text, "c.yaml"), judge_broken=False)
    assert subject.framework == "nemo_rl"
    return run.judged(subject)[-1].values


@pytest.mark.parametrize(
    ("text", "name", "value"), TOLD, ids=[f"{name}-{i}" for i, (_, name, _) in enumerate(TOLD)]
)
def test_binding(pack: Pack, text: str, name: str, value: object) -> None:
    assert point(_values(pack, text)[name]) == value


def _frameworks(pack: Pack, data: bytes, name: str) -> list[str]:
    return [s.framework for s in Run(pack).subjects(read(data, name), judge_broken=False)]


@pytest.mark.parametrize("text", TAKEN.values(), ids=TAKEN)
def test_its_files_are_taken(pack: Pack, text: str) -> None:
    assert _frameworks(pack, text.encode(), "c.yaml") == ["nemo_rl"]


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_others_are_not(pack: Pack, text: str) -> None:
    assert "nemo_rl" not in _frameworks(pack, text.encode(), "c.yaml")


TIGHT = _on_megatron(
    "policy.model_name: Qwen/Qwen2.5-1.5B",
    "policy.megatron_cfg.distributed_data_parallel_config.overlap_param_gather: true",
    "policy.megatron_cfg.use_fused_linear_logprobs: false",
)


def _options(pack: Pack, text: str, target: str, code: str) -> list[tuple[str, object, list[str]]]:
    """Return what a search may move for a finding: the knob, its value, and the rules that it harms."""
    run = Run(pack, [parse_target(target)])
    judged = run.judged(run.subjects(read_text(text, "c.yaml"), judge_broken=True)[0])
    with solving(run, judged) as solver:
        options = [
            track.option(i) for track in solver.tracks(solver.goals(code)) for i in range(min(len(track), 16))
        ]
        return [
            (
                option.knob,
                option.facts[option.knob],
                [rule.code for rule in solver.trials.harmed(judged[0], option.facts)],
            )
            for option in options
            if option is not None
        ]


UNPACKED = _with(
    "policy.sequence_packing.enabled: false",
    "policy.generation.temperature: 1.0",
    "policy.generation.top_p: 1.0",
    "policy.train_micro_batch_size: 16",
    text=TIGHT,
)


def test_fused_log_probabilities_come_with_what_they_need(pack: Pack) -> None:
    found = _options(pack, UNPACKED, "rtx-3090:8", "MEM112")
    (harmed,) = [codes for knob, value, codes in found if (knob, value) == ("fused_loss", "chunked")]
    assert not harmed


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        (["policy.sequence_packing.enabled: true"], "RUN266"),
        (["policy.generation.top_k: 40"], "RUN268"),
        (["policy.generation.temperature: 0.6"], "RUN269"),
        (["async_rl: {max_buffered_rollouts: 128}"], "RUN273"),
        (["policy.draft: {enabled: true}"], "RUN275"),
        (["policy.megatron_cfg.mtp_num_layers: 1"], "RUN276"),
        (["policy.megatron_cfg.tensor_model_parallel_size: 2"], "PAR272"),
    ],
)
def test_fused_log_probabilities_stay_off_where_they_break(pack: Pack, changes: list[str], rule: str) -> None:
    found = _options(pack, _with(*changes, text=UNPACKED), "rtx-3090:8", "MEM112")
    fused = [codes for knob, value, codes in found if (knob, value) == ("fused_loss", "chunked")]
    assert all(rule in codes for codes in fused)


@pytest.mark.parametrize(
    ("target", "most"), [("rtx-3090:4", 4), ("rtx-3090:2", 2), ("rtx-3090:1", 1), ("rtx-3090", 1)]
)
def test_a_job_may_take_all_gpus_of_its_machine_and_no_more(pack: Pack, target: str, most: int) -> None:
    found = _options(pack, _with("cluster.gpus_per_node: 1", text=TIGHT), target, "MEM112")
    assert max((value for knob, value, _ in found if knob == "gpus_per_node"), default=1) == most
