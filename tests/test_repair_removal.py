"""Keys that keep a run from starting are taken away; what that puts at risk is said as it is."""

from __future__ import annotations

import json

import pytest

_LAUNCH = """compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
deepspeed_config:
  deepspeed_config_file: ds.json
  zero3_init_flag: true
mixed_precision: fp16
num_machines: 1
num_processes: 8
"""


def _folder(folder, launch, **sections):
    (folder / "c.yaml").write_text(launch)
    ds = {"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto", **sections}
    (folder / "ds.json").write_text(json.dumps(ds))


def _fix(cfglint, folder, *flags):
    done = cfglint("fix", "c.yaml", "--gpu", "a100-80gb:8", *flags)
    assert done.returncode in (0, 1), done.stderr
    return (folder / "c.yaml").read_text()


def test_what_the_file_beside_it_says_is_not_needed(cfglint, folder):
    _folder(folder, _LAUNCH, fp16={"enabled": True})
    assert _fix(cfglint, folder) == _LAUNCH.replace("mixed_precision: fp16\n", "")


def test_a_diff_shows_it(cfglint, folder):
    _folder(folder, _LAUNCH, fp16={"enabled": True})
    done = cfglint("fix", "c.yaml", "--gpu", "a100-80gb:8", "--diff")
    assert "\n-mixed_precision: fp16\n" in done.stdout
    assert (folder / "c.yaml").read_text() == _LAUNCH


def test_another_precision_is_never_safe(cfglint, folder):
    _folder(folder, _LAUNCH, bf16={"enabled": True})
    assert _fix(cfglint, folder) == _LAUNCH
    assert _fix(cfglint, folder, "--unsafe") == _LAUNCH.replace("mixed_precision: fp16\n", "")


@pytest.mark.parametrize(
    "line", ["gradient_accumulation_steps: 8", "gradient_clipping: 1.0", "zero_stage: 3"]
)
def test_what_nobody_else_says_is_never_safe(cfglint, folder, line):
    rest = _LAUNCH.replace("mixed_precision: fp16\n", "")
    launch = rest.replace("  zero3", f"  {line}\n  zero3")
    _folder(folder, launch, fp16={"enabled": True})
    assert _fix(cfglint, folder) == launch
    assert _fix(cfglint, folder, "--unsafe") == rest


def test_the_same_stage_is_not_needed(cfglint, folder):
    launch = _LAUNCH.replace("mixed_precision: fp16\n", "")
    _folder(folder, launch, fp16={"enabled": True})
    (folder / "c.yaml").write_text(launch.replace("  zero3", "  zero_stage: 2\n  zero3"))
    assert _fix(cfglint, folder) == launch


_BLOCK = "framework mine {\n  dialect omegaconf\n  detect has($.training)\n}\n"


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        ("not has($.training.n)", "m: 1\n  n: 3", "m: 1"),
        ("not has($.training.n or $.training.k)", "m: 1\n  n: 3\n  k: 4", "m: 1"),
        ("not (has($.training.n) and has($.training.m))", "m: 1\n  n: 3", "m: 1"),
        ("not has($.training.n)", "n: 3", "n: 3"),  # its framework would no longer know it
        ("not has($.training.n)", "m: ${.n}\n  n: 3", "m: ${.n}\n  n: 3"),  # another key reads it
        ("not has($.training.n)", "m: 1\n  n: {k: 1}", "m: 1\n  n: {k: 1}"),  # more than one setting
        ("has($.training.m) and not has($.training.m)", "m: 1\n  n: 3", "m: 1\n  n: 3"),
    ],
)
def test_a_rule_of_ones_own(cfglint, folder, rule, before, after):
    (folder / "own.rules").write_text(_BLOCK)
    (folder / "c.yaml").write_text(f"training:\n  {before}\nother: 1\n")
    cfglint("fix", "c.yaml", "--rules", "own.rules", "--rule", rule, "--select", "CLI", "--unsafe")
    got = (folder / "c.yaml").read_text()
    assert got == f"training:\n  {after}\nother: 1\n"
