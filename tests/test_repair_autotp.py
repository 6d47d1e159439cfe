"""DeepSpeed's own tensor parallelism (AutoTP) and ZeRO stage 3: refused until 0.19.3."""

import json

import pytest

from cfglint.cli import main

TRAIN = """
model_name_or_path: Qwen/Qwen2.5-14B-Instruct
dataset_name: trl-lib/Capybara
output_dir: out
per_device_train_batch_size: 1
max_length: 1024
packing: true
bf16: true
deepspeed: ds_z2.json
"""
SWIFT = """NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset data.jsonl \\
  --tuner_type full --torch_dtype bfloat16 --per_device_train_batch_size 4 --max_length 4096 \\
  --deepspeed {0} --deepspeed_autotp_size 2
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    for stage in (2, 3):
        config = {
            "zero_optimization": {"stage": stage},
            "bf16": {"enabled": True},
            "tensor_parallel": {"autotp_size": 2},
        }
        batch = {"train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto"}
        (tmp_path / f"ds_z{stage}.json").write_text(json.dumps(config | batch), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _check(capsys, name, *flags):
    main(["check", name, "--no-detect", *flags])
    return capsys.readouterr().out


@pytest.mark.parametrize(("pin", "told"), [("0.17.1", True), ("0.19.5", False), (None, False)])
def test_a_trainer_whose_file_asks_for_both(project, capsys, pin, told):
    (project / "sft.yaml").write_text(TRAIN.replace("z2", "z3"), "utf-8")
    if pin:
        (project / "requirements.txt").write_text(f"deepspeed=={pin}\ntrl==0.29.0\n", "utf-8")
    assert ("PAR176" in _check(capsys, "sft.yaml", "--gpu", "a100-80gb:8")) is told


@pytest.mark.parametrize(("pin", "told"), [("0.18.9", False), ("0.19.5", True), (None, False)])
def test_stage_3_is_offered_where_deepspeed_takes_it(project, capsys, pin, told):
    (project / "sft.yaml").write_text(TRAIN, "utf-8")
    if pin:
        (project / "requirements.txt").write_text(f"deepspeed=={pin}\ntrl==0.29.0\n", "utf-8")
    out = _check(capsys, "sft.yaml", "--gpu", "a40:8", "--set", "task=sft")
    assert "OUT OF MEMORY" in out
    assert ("ds_z3.json" in out) is told


@pytest.mark.parametrize(("pin", "told"), [("0.18.9", True), ("0.19.5", False)])
def test_a_flag_of_ms_swift(project, capsys, pin, told):
    (project / "run.sh").write_text(SWIFT.format("zero3"), "utf-8")
    (project / "requirements.txt").write_text(f"deepspeed=={pin}\n", "utf-8")
    assert ("PAR176" in _check(capsys, "run.sh", "--gpu", "a100-80gb:8")) is told
