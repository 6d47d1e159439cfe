"""One mistake, one finding: where a rule and the framework's schema speak of the same key."""

from __future__ import annotations

import json

import pytest

from cfglint.api import check_text
from cfglint.cli import main
from golden import cases

TRL = """model_name_or_path: Qwen/Qwen2.5-1.5B-Instruct
dataset_name: trl-lib/ultrafeedback_binarized
beta: 0.1
output_dir: out
{}
"""
VLLM = """model: Qwen/Qwen2.5-7B-Instruct
host: 0.0.0.0
tensor-parallel-size: 2
max-num-seqs: 256
{}
"""


def deepspeed(zero: object) -> str:
    return json.dumps(
        {"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": True}, "zero_optimization": zero}
    )


def codes(text: str, path: str, **options: object) -> list[tuple[str, str | None]]:
    report = check_text(text, path=path, **options)  # type: ignore[arg-type]
    return sorted((f.code, f.target) for f in report.findings if f.level == "error")


@pytest.mark.parametrize(
    ("text", "path", "told"),
    [
        # The rule's own words: a bare no; a share; which stages there are.
        (TRL.format("eval_strategy: no"), "trl.yaml", ["RUN139"]),
        # A number that its fact cannot have: no rule of its own, no word of the schema, nothing about memory.
        (VLLM.format("gpu-memory-utilization: 90"), "vllm.yaml", ["CFG027"]),
        (deepspeed({"stage": 4}), "ds.json", ["PAR167"]),
        (
            deepspeed({"stage": 3, "offload_optimizer": {"device": "cpu", "max_in_cpu": 1e9}}),
            "ds.json",
            ["RUN168"],
        ),
        # The schema knows the key that was meant, and can rename it.
        (deepspeed({"stage": 3, "offload_params": {"device": "cpu"}}), "ds.json", ["CFG011"]),
        # No rule of its own speaks.
        (TRL.format("eval_strategy: sometimes"), "trl.yaml", ["CFG013"]),
        (TRL.format("optim: adamw_torh"), "trl.yaml", ["CFG013"]),
        (TRL.format("optim: shampoo"), "trl.yaml", []),  # a long list grows with each release
        (TRL.format("seed: many"), "trl.yaml", ["CFG009"]),
        # Two keys are two mistakes.
        (TRL.format("eval_strategy: no\nseed: many"), "trl.yaml", ["CFG009", "RUN139"]),
    ],
)
def test_a_mistake_is_told_once(text, path, told):
    assert [code for code, _ in codes(text, path)] == told


def test_the_one_that_is_told_is_the_same_on_every_target():
    text = VLLM.format("gpu-memory-utilization: 90")
    assert codes(text, "vllm.yaml", hardware=["rtx-4090:2", "a100-80gb:2"]) == [("CFG027", None)]


# Rules of one's own over a framework that has a schema: place, keys and target count, and no code.
def toy(needed: str, level: str = "error") -> dict[str, str]:
    at = "at $.gradient_accumulation_steps"
    return {"toy.rules": f'rule USR101 odd {level} for trl {{\n  {needed}\n  {at}\n  say "odd"\n}}\n'}


MANY = TRL.format("gradient_accumulation_steps: many")
ALONE = '$.gradient_accumulation_steps != "many"'


@pytest.mark.parametrize(
    ("needed", "told"),
    [
        (ALONE, ["USR101"]),
        # of how it goes with another key
        (f"{ALONE} or $.beta > 1", ["CFG009", "USR101"]),
    ],
)
def test_a_rule_about_two_keys_is_another_finding(needed, told):
    assert [code for code, _ in codes(MANY, "trl.yaml", rules=toy(needed))] == told


def test_a_rule_of_one_target_leaves_the_schemas_finding_for_the_other():
    rules = toy(f"{ALONE} or gpu.vram >= 40 GiB")
    found = codes(MANY, "trl.yaml", rules=rules, hardware=["rtx-4090:1", "a100-80gb:1"])
    assert [code for code, _ in found] == ["CFG009", "USR101"]
    found = codes(MANY, "trl.yaml", rules=rules, hardware="rtx-4090:1")
    assert [code for code, _ in found] == ["USR101"]


def test_a_warning_does_not_stand_for_an_error():
    report = check_text(MANY, path="trl.yaml", rules=toy(ALONE, "warning"))
    assert {"CFG009", "USR101"} <= {f.code for f in report.findings}


CODES = ("CFG009", "CFG011", "CFG012", "CFG013", "CFG014")
BAD = [case for code in CODES for case in cases(code) if not case.ok]


@pytest.mark.parametrize("case", BAD, ids=lambda case: f"{case.code}/{case.name}")
def test_a_text_is_judged_as_a_file_is(case, tmp_path, capsys):
    """The Python interface finds what the command finds, the schemas' findings and their fixes with it."""
    path = str(case.page.write_files(tmp_path) / case.name)
    own = check_text(case.data.decode(), path=path).findings
    main(["check", path, "--no-detect", "--format", "json"])
    told = json.loads(capsys.readouterr().out)["findings"]
    assert sorted((f.code, f.message, f.fix.title if f.fix else None) for f in own) == sorted(
        (f["code"], f["message"], f["fix"]["title"] if f.get("fix") else None) for f in told
    )
    assert case.code in {f.code for f in own}


def test_what_is_switched_off_leaves_the_schemas_finding(tmp_path, capsys):
    path = tmp_path / "trl.yaml"
    path.write_text(TRL.format("eval_strategy: no"))
    assert main(["check", str(path), "--ignore", "RUN139", "--no-detect"]) == 1
    assert "CFG013" in capsys.readouterr().out


def test_sections_that_share_a_part_share_its_mistake():
    shared = "  n_timesteps: 1000\n  policy: MlpPolicy\n  n_steps: 32\n  gamma: high\n"
    text = f"CartPole-v1: &one\n{shared}Pendulum-v1:\n  <<: *one\n  gae_lambda: low\nAcrobot-v1:\n{shared}"
    report = check_text(text, path="ppo.yml")
    lines = [text.count("\n", 0, f.place.start) + 1 for f in report.findings if f.code == "CFG009"]
    assert lines == [5, 8, 13]
