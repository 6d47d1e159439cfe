"""`cfglint facts PATH…`: what was read of each job, from where, and what was not."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from cfglint.cli import main

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = Draft202012Validator(json.loads((ROOT / "schemas" / "facts.schema.json").read_text("utf-8")))
SCRIPT = """#!/bin/bash
MODEL=Qwen/Qwen2.5-7B
torchrun --nproc_per_node=8 -m trl.scripts.sft --model_name_or_path $MODEL --dataset_name a/b \\
  --per_device_train_batch_size 4 --gradient_accumulation_steps $ACC --bf16 --max_length 2048 --foo 3
torchrun other.py --a 4
submit 'torchrun --nproc_per_node 4 -m trl.scripts.sft --model_name_or_path x --dataset_name y'
"""


@pytest.fixture
def data(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def facts_of(files, *arguments, status=0):
        for name, text in files.items():
            Path(name).write_text(text, "utf-8")
        assert main(["facts", *(arguments or ["."]), "--format", "json", "--no-detect"]) == status
        read = json.loads(capsys.readouterr().out)
        SCHEMA.validate(read)
        return read

    return facts_of


def value(job, name):
    fact = job["facts"][name]
    return fact["value"], fact["source"]


def test_each_fact_has_its_place(data):
    (job,) = data({"train.sh": SCRIPT})["jobs"]
    assert (job["path"], job["line"], job["framework"], job["sure"]) == ("train.sh", 3, "trl", "certain")
    assert (job["program"], job["launcher"], job["target"]) == ("trl.scripts.sft", "torchrun", None)
    assert value(job, "model_path") == ("Qwen/Qwen2.5-7B", "train.sh:2")
    assert value(job, "micro_batch_size") == (4, "train.sh:4")
    assert value(job, "train_gpus") == (8, "train.sh:3")
    assert value(job, "dtype") == ("bf16", "derived from train.sh:4")
    assert value(job, "model.layers") == (28, "catalogue")
    assert value(job, "comm_timeout")[0] == "1800 s"
    assert value(job, "gradient_checkpointing")[1].startswith("default of trl (trl/trainer/base_config.py")


def test_what_is_unknown_says_why_and_what_to_type(data):
    (job,) = data({"train.sh": SCRIPT}, "train.sh")["jobs"]
    unknown = job["unknown"]
    assert "grad_accum" not in job["facts"]
    assert unknown["grad_accum"]["why"].startswith("ACC is set outside of the script")
    assert unknown["grad_accum"]["give"] == "--set gradient_accumulation_steps=VALUE"
    assert unknown["gpu.vram"]["give"] == "--gpu NAME"
    assert job["ignored"] == ["--foo"]


def test_what_was_typed_is_read(data):
    flags = ["--set", "gradient_accumulation_steps=2", "--gpu", "a100-80gb-sxm:8"]
    (job,) = data({"train.sh": SCRIPT}, "train.sh", *flags)["jobs"]
    assert value(job, "grad_accum") == (2, "--set gradient_accumulation_steps=2")
    assert value(job, "gpu.count")[0] == 8
    assert value(job, "gpu.vram")[0] == "79.14 GiB"
    assert not {"grad_accum", "gpu.vram", "gpu.capability"} & set(job["unknown"])


def test_each_target_is_a_job_of_its_own(data):
    read = data({"train.sh": SCRIPT}, "train.sh", "--gpu", "a40:8", "--gpu", "h100-sxm:8")
    assert [job["target"] for job in read["jobs"]] == ["a40:8", "h100-sxm:8"]


def test_launches_that_are_not_read_are_told(data):
    unread = data({"train.sh": SCRIPT})["unread"]
    assert [(each["path"], each["line"]) for each in unread] == [("train.sh", 5), ("train.sh", 6)]
    assert "no framework recognises other.py" in unread[0]["why"]
    assert "not followed" in unread[1]["why"]


def test_what_is_unknown_of_a_model_asks_for_its_config(data):
    text = SCRIPT.replace("Qwen/Qwen2.5-7B", "./my-model")
    (job,) = data({"train.sh": text}, "train.sh", "--gpu", "a40:8")["jobs"]
    gives = {name: each["give"] for name, each in job["unknown"].items() if name.startswith("model")}
    assert gives
    assert set(gives.values()) == {"--model-config PATH"}


def test_a_named_framework_is_not_told_as_recognised(data):
    text = "base_model: a/b\nsequence_len: 8\nmicro_batch_size: 2\n"
    (job,) = data({"c.yaml": text}, "c.yaml", "--framework", "axolotl")["jobs"]
    assert (job["framework"], job["sure"], job["because"]) == ("axolotl", None, "")
    assert (job["program"], job["launcher"]) == (None, None)


def test_a_value_in_another_file_says_the_way(data):
    files = {
        "z3.json": '{"zero_optimization": {"stage": 3}}',
        "c.yaml": "base_model: a/b\nsequence_len: 8\nmicro_batch_size: 2\ndeepspeed: z3.json\n",
    }
    (job,) = data(files, "c.yaml")["jobs"]
    assert value(job, "zero_stage") == (3, "z3.json:1 through deepspeed at line 4")


def test_a_file_without_a_job_is_told_by_the_status(data):
    assert data({"c.yaml": "a: 1\n"}, "c.yaml", status=1)["jobs"] == []
    assert data({"c.yaml": "a: 1\n"}, ".")["jobs"] == []


def test_every_example_fits_the_schema(data):
    read = data({}, str(ROOT / "examples"))
    assert len(read["jobs"]) > 5
    for job in read["jobs"]:
        assert job["facts"]


def test_a_facts_file_is_read_back(data):
    """What `facts` says of a job describes the same job as a facts file."""
    (job,) = data({"train.sh": SCRIPT}, "train.sh", "--set", "gradient_accumulation_steps=2")["jobs"]
    kept = {name: fact["value"] for name, fact in job["facts"].items() if fact["kind"] == "file"}
    lines = [f"{name}: {json.dumps(value)}" for name, value in kept.items()]
    (again,) = data({"facts.yaml": "\n".join(["cfglint: facts", *lines, ""])}, "facts.yaml")["jobs"]
    assert again["framework"] == "facts"
    assert {name: again["facts"][name]["value"] for name in kept} == kept


def test_the_page_is_short(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("train.sh").write_text(SCRIPT, "utf-8")
    assert main(["facts", "train.sh", "--no-detect"]) == 0
    page = capsys.readouterr().out
    assert page.startswith(
        "train.sh:3: trl, certain (recognised by its program)\n  torchrun starts trl.scripts.sft\n"
    )
    assert "  micro_batch_size  4                line 4\n" in page
    assert "line 2 (7.62B parameters, 28 layers, hidden 3584)\n" in page
    assert "  ignored   --foo\n" in page
    assert "--set gradient_accumulation_steps=VALUE\n" in page
    assert page.endswith("\n1 job read; 2 launches not read\n")
    assert main(["facts", "train.sh", "--no-detect", "--verbose"]) == 0
    assert "gradient_checkpointing    full" in capsys.readouterr().out


def test_what_nothing_reads_is_told_and_nothing_else(data):
    files = {
        "c.yaml": "model_name_or_path: a/b\ndataset_name: c\noutput_dir: x-sft\nlearning_rat: 1\n"
        "logging_steps: 5\nddp_timeout: 60\ndeepspeed: z3.json\nmine: {a: 1, b: [2]}\n"
    }
    (job,) = data(files, "c.yaml")["jobs"]
    assert job["ignored"] == ["learning_rat", "mine.a", "mine.b"]


def test_a_config_within_a_launch_is_one_job(data):
    files = {
        "c.yaml": "model_name_or_path: a/b\ndataset_name: c\nmax_length: 512\n",
        "run.sh": "trl sft --config c.yaml --num_processes 2\n",
    }
    (job,) = data(files, "run.sh")["jobs"]
    assert value(job, "seq_len")[0] == 512
    assert value(job, "seq_len")[1].startswith("c.yaml:3 through ")
    assert value(job, "train_gpus") == (2, "run.sh:1")


@pytest.mark.parametrize(
    ("path", "known"), [("$HOME/verl", True), ("<clone>/verl_agents:$PYTHONPATH", False), (".", True)]
)
def test_a_copy_of_a_framework_on_the_path_has_defaults_of_its_own(data, path, known):
    lines = [
        f'export PYTHONPATH="{path}"',
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.n=2",
        "",
    ]
    (job,) = data({"run.sh": "\n".join(lines)}, "run.sh")["jobs"]
    assert job["facts"]["n_samples"]["value"] == 2
    assert ("use_dynamic_bsz" in job["facts"]) is known
