"""An engine's context beyond prompt and answer is free to lower where verl's answers are of one turn."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cfglint.cli import main

if TYPE_CHECKING:
    from pathlib import Path

RUN = """\
python3 -m verl.trainer.main_ppo \\
  algorithm.adv_estimator=grpo \\
  data.train_batch_size=64 data.max_prompt_length=1024 data.max_response_length=1024 \\
  actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \\
  actor_rollout_ref.actor.ppo_mini_batch_size=64 \\
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \\
  actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 \\
  actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.max_model_len=32768 \\
  trainer.n_gpus_per_node=8 {more}
"""


@pytest.mark.parametrize(
    ("more", "applicability"),
    [
        ("data.filter_overlong_prompts=True", "safe"),
        ("", None),  # a longer prompt would be refused
        ("data.filter_overlong_prompts=True actor_rollout_ref.rollout.multi_turn.enable=True", None),
        ("data.filter_overlong_prompts=True +max_turns=4", None),
    ],
)
def test_the_context_of_one_turn(
    more: str, applicability: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.sh"
    path.write_text(RUN.format(more=more), "utf-8")
    rule = ["--select", "CLI", "--rule", "generates -> context_length <= 3000"]
    main(["check", str(path), "--gpu", "h100-sxm:8", *rule, "--format", "json"])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    fix = finding.get("fix") or {}
    assert fix.get("applicability") == applicability
    assert ("max_model_len to 2048" in json.dumps(fix)) == bool(applicability)


def test_a_key_of_a_base_that_is_not_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program's own config stands over verl's, which is elsewhere: verl's schema knows the keys of that."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "own" / "conf").mkdir(parents=True)
    (tmp_path / "own" / "conf" / "mine.yaml").write_text(
        "defaults: [ppo_trainer, _self_]\ndata: {return_raw_chat: true}\n", "utf-8"
    )
    path = tmp_path / "run.sh"
    own = "own.main --config-path=conf --config-name=mine"
    path.write_text(RUN.format(more="").replace("verl.trainer.main_ppo", own), "utf-8")
    rule = ["--select", "CLI", "--rule", "trains -> offload_params == true"]
    main(["check", str(path), "--gpu", "h100-sxm:8", *rule, "--format", "json"])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["fix"]["applicability"] == "unsafe"  # no release of verl is named, and the key is young
    assert "++actor_rollout_ref.actor.fsdp_config.offload_policy=true" in json.dumps(finding["fix"])


@pytest.mark.parametrize(
    ("version", "mode", "most"),
    [
        ("0.6.0", "async", 2048),  # prompt and answer, whatever the key says
        ("0.6.1", "sync", 4096),
        ("0.7.0", "async", 32768),  # what the model takes, whatever the key says
        ("0.7.1", "async", 4096),
    ],
)
def test_servers_that_set_the_context_themselves(
    version: str, mode: str, most: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.sh"
    text = RUN.format(more=f"actor_rollout_ref.rollout.mode={mode}").replace("len=32768", "len=4096")
    path.write_text(text, "utf-8")
    own = ["--framework", f"verl=={version}", "--select", "CLI", "--format", "json"]
    main(
        ["check", str(path), "--gpu", "h100-sxm:8", *own, "--rule", f"generates -> context_length == {most}"]
    )
    assert json.loads(capsys.readouterr().out)["findings"] == []
    main(["check", str(path), "--gpu", "h100-sxm:8", *own, "--rule", "generates -> context_length <= 3000"])
    told = capsys.readouterr().out
    assert "max_model_len to" not in told or version in ("0.6.1", "0.7.1")


@pytest.mark.parametrize(("program", "lowered"), [("verl.trainer.main_ppo", True), ("own.agents", False)])
def test_a_context_of_which_only_the_model_tells(
    program: str, lowered: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.sh"
    text = RUN.format(more="data.filter_overlong_prompts=True").replace("verl.trainer.main_ppo", program)
    text = text.replace("actor_rollout_ref.rollout.max_model_len=32768", "")
    path.write_text(text.replace("Qwen2.5-7B-Instruct", "Qwen3-4B-Instruct-2507"), "utf-8")
    own = ["--framework", "verl==0.9.1", "--select", "MEM202", "--format", "json"]
    main(["check", str(path), "--gpu", "a40:8", *own])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    fix = finding.get("fix") or {}
    assert ("max_model_len to 65536" in json.dumps(fix)) == lowered  # of an own one, an agent may go on
    assert fix.get("applicability") == "safe"
