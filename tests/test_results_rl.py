"""Which losses of RL frameworks are means of a micro-batch's tokens: a smaller one weighs them anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cfglint.cli import main
from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load

EASYR1 = """\
data: {{rollout_batch_size: 32}}
worker:
  actor:
    {{model: {{model_path: a/b}}, global_batch_size: 32, micro_batch_size_per_device_for_update: 4{actor}}}
  critic: {{{critic}}}
  rollout: {{n: 4}}
algorithm: {{adv_estimator: {estimator}}}
trainer: {{n_gpus_per_node: 8}}
"""
SKYRL = """\
trainer:
  policy: {{model: {{path: a/b}}}}
  policy_mini_batch_size: 32
  micro_train_batch_size_per_gpu: 4
  {more}
  algorithm: {{advantage_estimator: grpo{algorithm}}}
generator: {{{generator}}}
"""
ROLL = """\
pretrain: a/b
rollout_batch_size: 32
sequence_length: 512
{more}
actor_train:
  training_args: {{per_device_train_batch_size: 4, gradient_accumulation_steps: 8}}
  strategy_args: {{strategy_name: megatron_train}}
  device_mapping: list(range(0,8))
  {role}
actor_infer: {{device_mapping: "list(range(0,8))"}}
"""
ROLL_SFT = """\
pretrain: a/b
sequence_length: 512
sft_train:
  training_args: {{per_device_train_batch_size: 4, gradient_accumulation_steps: 8}}
  strategy_args: {{strategy_name: megatron_train}}
  device_mapping: list(range(0,8))
"""
GROUP = (
    "python -u open_instruct/grpo_fast.py --model_name_or_path a/b --per_device_train_batch_size 4 "
    "--num_unique_prompts_rollout 16 --num_samples_per_prompt_rollout 4 --num_learners_per_node 4{more}"
)
OWN = (
    "accelerate launch --num_processes 8 open_instruct/{program}.py --model_name_or_path a/b "
    "--per_device_train_batch_size 4 --gradient_accumulation_steps 2 --max_seq_length 512"
)


def grouping(text: str, name: str, framework: str = "", version: tuple[int, ...] | None = None) -> object:
    run = Run(load(), targets=(parse_target("a100-80gb-sxm:8"),))
    if version is not None:
        run.framework, run.version = framework, version
    file = read_text(text, name)
    (subject,) = run.subjects(file, judge_broken=False)
    assert not framework or subject.framework == framework
    (judged,) = run.judged(subject)
    return judged.values["results.grouping"]


@pytest.mark.parametrize(
    ("given", "version", "averaged"),
    [
        ({}, (0, 3, 1), 4),
        ({}, (0, 3, 2), 0),
        ({}, None, 0),
        ({"actor": ", loss_avg_mode: seq"}, (0, 3, 1), 0),
        ({"actor": ", loss_avg_mode: seq"}, (0, 3, 2), 4),  # weighed by tokens again
        ({"critic": "loss_avg_mode: seq"}, (0, 3, 2), 0),  # there is none
        ({"critic": "loss_avg_mode: seq", "estimator": "gae"}, (0, 3, 2), 4),
        ({"actor": ", offload: {param_offload: true}"}, None, 4),  # names of before v0.3
        ({"actor": ", ulysses_sequence_parallel_size: 1"}, None, 4),
    ],
)
def test_easyr1(given: dict[str, str], version: tuple[int, ...] | None, averaged: int) -> None:
    text = EASYR1.format(**{"actor": "", "critic": "", "estimator": "grpo", **given})
    assert grouping(text, "c.yaml", "easyr1", version) == averaged


@pytest.mark.parametrize(
    ("given", "version", "averaged"),
    [
        ({}, (0, 3, 0), 0),
        ({}, (0, 1, 0), 4),
        ({"generator": "num_inference_engines: 4"}, None, 4),  # of skyrl_train
        ({"generator": "num_inference_engines: 4", "algorithm": ", loss_reduction: sequence_mean"}, None, 0),
        ({"algorithm": ", loss_reduction: token_mean_legacy"}, (0, 3, 0), 4),
        ({"algorithm": ", use_entropy_loss: true"}, (0, 3, 0), 4),
        ({"algorithm": ", policy_loss_type: kl_cov"}, (0, 3, 0), 4),
        ({"more": "max_tokens_per_microbatch: 8192"}, (0, 3, 0), 0),
        ({"more": "{max_tokens_per_microbatch: 8192, strategy: megatron}"}, (0, 3, 0), 8192),
    ],
)
def test_skyrl(given: dict[str, str], version: tuple[int, ...] | None, averaged: int) -> None:
    more = given.get("more", "").strip("{}").replace(", ", "\n  ")
    text = SKYRL.format(**{"algorithm": "", "generator": "n_samples_per_prompt: 4", **given, "more": more})
    assert grouping(text, "c.yaml", "skyrl", version) == averaged


@pytest.mark.parametrize(
    ("text", "version", "averaged"),
    [
        (ROLL.format(more="", role=""), (0, 1), 0),  # a mean for each sequence
        (ROLL.format(more="loss_agg_mode: token-mean", role=""), (0, 1), 4),
        (ROLL.format(more="loss_agg_mode: token-mean", role=""), (0, 2), 0),
        (ROLL.format(more="loss_agg_mode: seq-mean-token-sum-norm", role=""), (0, 1), 4),
        (ROLL.format(more="", role="apply_loss_scale: false"), (0, 3), 4),
        (ROLL_SFT.format(), (0, 1), 4),
        (ROLL_SFT.format(), (0, 3), 0),
    ],
)
def test_roll(text: str, version: tuple[int, ...], averaged: int) -> None:
    assert grouping(text, "c.yaml", "roll", version) == averaged


@pytest.mark.parametrize(
    ("command", "averaged"),
    [
        (GROUP.format(more=""), 0),
        (GROUP.format(more=" --masked_mean_axis 1"), 4),  # gone with the mean of a micro-batch
        (OWN.format(program="finetune"), 4),
        (OWN.format(program="dpo_tune_cache"), 0),  # pairs
    ],
)
def test_open_instruct(command: str, averaged: int) -> None:
    assert grouping(f"{command}\n", "run.sh") == averaged


VERL = (
    "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=a/b algorithm.adv_estimator=grpo "
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4{more}"
)


@pytest.mark.parametrize(
    ("more", "version", "averaged"),
    [
        ("", (0, 15, 2), 0),
        ("", (0, 16, 0), 4),
        ("", (0, 21, 0), 4),
        ("", (0, 22, 0), 0),
        ("loss_type: dr_grpo", (0, 21, 0), 0),
        ("loss_type: bnpo", (1, 9, 0), 4),
        ("use_liger_kernel: true", (1, 9, 0), 0),  # the pass is the round
        ("use_liger_kernel: true\ngradient_accumulation_steps: 2", (1, 9, 0), 4),
        ("use_liger_kernel: true\nloss_type: grpo", (1, 9, 0), 0),
        ("entropy_coef: 0.01", (1, 9, 0), 0),
        ("entropy_coef: 0.01\nloss_type: grpo", (1, 9, 0), 4),
        ("top_entropy_quantile: 0.2", (1, 9, 0), 4),
    ],
)
def test_grpo_of_trl(more: str, version: tuple[int, ...], averaged: int) -> None:
    text = "model_name_or_path: a/b\ndataset_name: c/d\nnum_generations: 8\nper_device_train_batch_size: 4\n"
    assert grouping(f"{text}{more}\n", "c.yaml", "trl", version) == averaged


@pytest.mark.parametrize(
    ("script", "more", "averaged"),
    [
        ("orpo", "", 4),
        ("cpo", "", 4),
        ("cpo", "--cpo_alpha 0.0", 0),
        ("ppo", "", 4),
        ("dpo", "", 0),
        ("dpo", "--rpo_alpha 1.0", 4),
        ("dpo", "--loss_type sft", 4),
    ],
)
def test_the_preferred_answers_of_trl(script: str, more: str, averaged: int) -> None:
    text = (
        f"accelerate launch examples/scripts/{script}.py --model_name_or_path a/b --dataset_name c/d "
        f"--per_device_train_batch_size 4 {more}\n"
    )
    assert grouping(text, "run.sh") == averaged


@pytest.mark.parametrize(
    ("more", "version", "averaged"),
    [
        ("", (0, 7), 4),
        (" actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean", (0, 7), 0),
        (" actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum-norm", (0, 7), 4),
        (" actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum-norm", (0, 8), 0),
        (" actor_rollout_ref.actor.policy_loss.loss_mode=kl_cov", (0, 8), 4),
    ],
)
def test_verl(more: str, version: tuple[int, ...], averaged: int) -> None:
    assert grouping(f"{VERL.format(more=more)}\n", "run.sh", "verl", version) == averaged


@pytest.mark.parametrize(("version", "averaged"), [((0, 2, 0), 4), ((0, 3, 0), 0)])
def test_nemo_rl(version: tuple[int, ...], averaged: int) -> None:
    text = (
        "grpo: {num_prompts_per_step: 32}\npolicy:\n  model_name: a/b\n  train_global_batch_size: 512\n"
        "  train_micro_batch_size: 4\n  max_total_sequence_length: 512\n"
        "  dtensor_cfg: {enabled: true}\n  dynamic_batching: {enabled: false}\n"
    )
    assert grouping(text, "c.yaml", "nemo_rl", version) == averaged


@pytest.mark.parametrize(("more", "averaged"), [("", 0), (", m2_threshold: 0.04", 8192)])
def test_areal(more: str, averaged: int) -> None:
    text = (
        "experiment_name: e\ntrial_name: t\nallocation_mode: sglang:d4+fsdp:d4\n"
        f"actor: {{path: a/b, mb_spec: {{max_tokens_per_mb: 8192}}, optimizer: {{lr: 1.0e-5}}{more}}}\n"
        "cluster: {n_gpus_per_node: 8}\ngconfig: {n_samples: 4}\ntrain_dataset: {batch_size: 32, path: c}\n"
        "rollout: {max_concurrent_rollouts: 32}\n"
    )
    assert grouping(text, "c.yaml", "areal", (1, 0)) == averaged


@pytest.mark.parametrize(("version", "averaged"), [((0, 4, 0), 4), ((0, 5, 0), 0)])
def test_prime_rl(version: tuple[int, ...], averaged: int) -> None:
    text = '[model]\nname = "x"\n[data]\ntype = "sft"\nbatch_size = 64\nmicro_batch_size = 4\nseq_len = 128\n'
    assert grouping(text, "sft.toml", "prime_rl_sft", version) == averaged


def test_micro_batches_of_a_fixed_number_are_a_round(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Half a micro-batch in each of as many is half a round, unless the number follows the accumulation."""
    for more, safe in (("", "safe"), ("steps_per_generation: 4\n", "unsafe")):
        (tmp_path / "c.yaml").write_text(
            "model_name_or_path: Qwen/Qwen2.5-0.5B\ndataset_name: c/d\nnum_generations: 4\n"
            f"per_device_train_batch_size: 8\ngradient_accumulation_steps: 4\n{more}",
            "utf-8",
        )
        own = ["--rule", "micro_batch_size <= 4", "--select", "CLI", "--format", "json"]
        main(
            ["check", str(tmp_path / "c.yaml"), "--gpu", "a100-80gb-sxm:2", "--framework", "trl==1.9.0", *own]
        )
        (finding,) = json.loads(capsys.readouterr().out)["findings"]
        assert finding["fix"]["applicability"] == safe


def test_the_copy_of_easyr1_says_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its package has the name of ByteDance's, which another folder may hold, or a requirement name."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(EASYR1.format(actor="", critic="", estimator="grpo"), "utf-8")
    package = Path("verl")
    (package / "trainer" / "config").mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "0.3.1"\n', "utf-8")
    Path("requirements.txt").write_text("verl==0.3.0\n", "utf-8")

    def applicability() -> str:
        own = ["--rule", "micro_batch_size <= 1", "--select", "CLI", "--format", "json"]
        main(["check", "c.yaml", "--gpu", "a100-80gb-sxm:8", *own])
        (finding,) = json.loads(capsys.readouterr().out)["findings"]
        return str(finding["fix"]["applicability"])

    assert applicability() == "safe", "ByteDance's"
    (package / "trainer" / "config.py").write_text("", "utf-8")
    assert applicability() == "unsafe"
    (package / "__init__.py").write_text('__version__ = "0.3.2"\n', "utf-8")
    assert applicability() == "safe"
