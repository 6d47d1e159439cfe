"""The verdict on each job: what it is where facts are left open, where it stands, what it makes fail."""

from __future__ import annotations

import json

import pytest

from cfglint.engine.find import Finder
from cfglint.engine.likelihood import is_likely
from cfglint.facts import Values
from cfglint.lang.values import Interval
from golden import page_of, terminal  # noqa: F401 (a fixture)

LINES = 12  # of a job on a terminal of 80 cells
GRPO = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
learning_rate: 1.0e-6
per_device_train_batch_size: {batch}
gradient_checkpointing: true
bf16: true
num_generations: 8
max_prompt_length: 512
max_completion_length: 1024
use_vllm: true
vllm_mode: colocate
vllm_gpu_memory_utilization: 0.6
"""
SFT = """\
base_model: {model}
datasets: [{{path: tatsu-lab/alpaca, type: alpaca}}]
sequence_len: 2048
micro_batch_size: 1
gradient_accumulation_steps: 4
optimizer: adamw_torch
gradient_checkpointing: true
bf16: true
sample_packing: true
adapter: lora
lora_r: 16
lora_target_linear: true
"""
LAUNCHER = """\
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
mixed_precision: bf16
num_machines: 1
num_processes: 8
"""


@pytest.fixture
def judged(terminal, tmp_path):  # noqa: F811
    """Return a function that gives the status, the jobs of the JSON report and its errors on memory."""

    def judge(text: str, *flags: str):
        (tmp_path / "job.yaml").write_text(text, encoding="utf-8")
        words = ["job.yaml", "--no-detect", "--format", "json", *flags]
        status, page = terminal.run("check", tmp_path, words)
        report = json.loads(page)
        errors = [f for f in report["findings"] if f["level"] == "error" and f["code"].startswith("MEM")]
        return status, report["jobs"], errors

    return judge


def test_the_bounds_decide(judged):
    for gpu, verdict in (("h200:1", "fits"), ("rtx-3060:1", "oom")):
        status, (job,), errors = judged(SFT.format(model="Qwen/Qwen2.5-7B-Instruct"), "--gpu", gpu)
        assert job["verdict"] == verdict
        assert bool(errors) is (verdict == "oom")
        assert status == (verdict == "oom")
        low, high = job["bound_gib"]
        assert low <= job["need_gib"][0] <= job["need_gib"][1] <= high
        assert (high <= job["capacity_gib"]) is (verdict == "fits")
        assert job["cases"] == []
        assert job["ask"] is None


def test_cases_that_agree_are_one_verdict(judged):
    _, (job,), errors = judged(GRPO.format(batch=4), "--gpu", "rtx-4090:2")
    assert job["verdict"] == "oom"
    assert errors
    assert len(job["cases"]) > 1
    assert {case["verdict"] for case in job["cases"]} == {"oom"}
    assert all(list(case["given"]) == ["trl.launcher"] for case in job["cases"])


def test_cases_that_differ_are_told_apart(judged):
    _, (job,), errors = judged(GRPO.format(batch=1), "--gpu", "h200:8")
    verdicts = [case["verdict"] for case in job["cases"]]
    assert job["verdict"] == "tight"
    assert len(set(verdicts)) > 1
    assert not errors
    assert "accelerate_config" in job["ask"]
    assert job["cases"][0]["given"] == {"trl.launcher": "zero3"}  # the likeliest
    named = [judged(GRPO.format(batch=1), "--gpu", "h200:8", "--set", f"accelerate_config={name}")
             for name in ("zero3", "multi_gpu")]  # fmt: skip
    by_name = {case["given"]["trl.launcher"]: case for case in job["cases"]}
    for (_, (one,), _), name in zip(named, ("zero3", "multi_gpu"), strict=True):
        assert one["verdict"] == by_name[name]["verdict"]
        assert one["bound_gib"] == by_name[name]["bound_gib"]


def test_a_gpu_without_a_number_is_one_where_the_config_asks_for_none(judged):
    text = SFT.format(model="Qwen/Qwen2.5-7B-Instruct")
    _, (open_,), _ = judged(text, "--gpu", "h200")
    _, (one,), _ = judged(text, "--gpu", "h200:1")
    assert open_["gpus"] == 1
    assert one["gpus"] is None
    assert open_["bound_gib"] == one["bound_gib"]
    assert open_["ask"] == "nothing says how many it runs on: add :N to --gpu"


@pytest.mark.parametrize(
    ("text", "flags", "ask"),
    [
        (SFT.format(model="Qwen/Qwen2.5-7B-Instruct"), [], "which GPU? add --gpu NAME"),
        (SFT.format(model="acme/own-7b"), ["--gpu", "h200:1"], "which model? add --model-config PATH"),
        (SFT.format(model="acme/own-7b"), ["--gpu", "rtx-3060:1"], "which model? add --model-config PATH"),
        (SFT.format(model="acme/own"), ["--gpu", "h200:1"], "which model? add --model-config PATH"),
        (LAUNCHER, ["--gpu", "h200:8"], "the file that starts the job says which model it is"),
    ],
)
def test_what_is_not_judged_says_what_to_type(judged, terminal, tmp_path, text, flags, ask):  # noqa: F811
    status, (job,), errors = judged(text, *flags)
    assert (job["verdict"], job["ask"], errors, status) == ("unknown", ask, [], 0)
    for more, expected in (([], 0), (["--fail-on", "error,not-judged"], 1), (["--fail-on", "never"], 0)):
        status, page = terminal.run("check", tmp_path, ["job.yaml", "--no-detect", *flags, *more])
        assert status == expected
        assert f"memory not judged: {ask}" in page.splitlines()[1]
        assert "no findings" not in page


def test_rules_on_memory_that_are_not_selected_ask_nothing(judged):
    _, jobs, _ = judged(SFT.format(model="acme/own"), "--select", "CFG")
    assert jobs == []


def test_each_command_of_a_script_is_a_job(terminal, tmp_path):  # noqa: F811
    launch = "trl sft --model_name_or_path Qwen/Qwen2.5-{}B --dataset_name x --max_length 512\n"
    (tmp_path / "run.sh").write_text("".join(map(launch.format, ("0.5", "72"))), encoding="utf-8")
    words = ["run.sh", "--no-detect", "--gpu", "h100-sxm:1", "--format", "json"]
    _, page = terminal.run("check", tmp_path, words)
    jobs = json.loads(page)["jobs"]
    assert [(job["line"], job["verdict"]) for job in jobs] == [(1, "fits"), (2, "oom")]


def test_the_verdict_is_first_and_a_job_takes_few_lines(terminal, tmp_path):  # noqa: F811
    text = GRPO.format(batch=4) + "beta: 10\nnum_generation: 3\nsave_step: 3\nlog_step: 4\n"
    (tmp_path / "job.yaml").write_text(text, encoding="utf-8")
    words = ["job.yaml", "--no-detect", "--gpu", "rtx-4090:2", "--gpu", "a40:4", "--width", "80"]
    _, page = terminal.run("check", tmp_path, words)
    job, _, rest = page.partition("\n\n")
    assert job.splitlines()[0] == "job.yaml \u00b7 trl \u00b7 Qwen/Qwen2.5-7B-Instruct"
    assert job.splitlines()[1].startswith("  rtx-4090:2  OUT OF MEMORY with each launcher (zero3, ")
    assert len(job.splitlines()) <= LINES + 2  # a fix says all that it does, and what becomes of the results
    assert "   results: " in job
    assert "1 job: 1 out of memory" in rest
    _, whole = terminal.run("check", tmp_path, [*words[:-2], "--verbose"])
    assert len(whole.splitlines()) > 2 * LINES


@pytest.mark.parametrize(
    ("low", "high", "likely"),
    [
        (70, 78, False),
        (70, 88, False),  # its middle is below 80
        (70, 95, True),
        (60, 150, False),  # wide for what is seldom: half of half as much again
        (60, 400, False),  # however wide it is
        (66, 400, True),
        (30, 400, False),
        (81, 400, True),
    ],
)
def test_a_wide_range_is_judged_by_its_first_part(pack, low, high, likely):
    finder, gib = Finder(pack), 2**30
    needed = finder.symbols.rules["MEM104"].requirement
    values = Values(pack, given={"gpu.vram": 80 * gib, "trainer.memory": Interval(low * gib, high * gib)})
    assert is_likely(needed, finder.evaluator, values) is likely


def test_pods_that_share_a_part_are_one_job(terminal, tmp_path):  # noqa: F811
    (tmp_path / "job.yaml").write_text(page_of("DOC101").files["bad_kubernetes.yaml"], encoding="utf-8")
    words = ["job.yaml", "--no-detect", "--gpu", "rtx-3060:1", "--format", "json"]
    _, page = terminal.run("check", tmp_path, words)
    assert [job["verdict"] for job in json.loads(page)["jobs"]] == ["oom"]


def test_a_version_that_nobody_says_is_asked_for_where_it_decides(judged):
    text = (
        "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\ndataset_name: x\nmax_length: 4096\npacking: true\n"
        "per_device_train_batch_size: 8\nlearning_rate: 1.0e-5\nbf16: true\nuse_peft: true\nlora_r: 16\n"
        "gradient_checkpointing: true\n"
    )
    verdicts = {}
    for version in ("", "==1.16.0", "==1.0.0"):
        _, (job,), _ = judged(text, "--gpu", "a100-80gb-sxm:1", "--framework", f"trl{version}")
        verdicts[version] = job
    assert verdicts[""]["verdict"] == "tight"
    assert verdicts[""]["ask"].endswith(" GiB: which version of TRL? add --framework trl==VERSION")
    assert verdicts["==1.16.0"]["verdict"] == "fits"
    assert verdicts["==1.0.0"]["verdict"] != "fits"
    (low, _), (_, high) = verdicts["==1.16.0"]["bound_gib"], verdicts["==1.0.0"]["bound_gib"]
    assert verdicts[""]["bound_gib"] == pytest.approx([low, high], rel=0.02)


def test_a_script_that_asks_the_machine_trains_on_its_gpus(terminal, tmp_path):  # noqa: F811
    (tmp_path / "run.sh").write_text(
        "GPUS=$(python -c 'import torch; print(torch.cuda.device_count())')\n"
        "torchrun --nproc_per_node $GPUS finetune.py --model_name_or_path Qwen/Qwen2.5-72B --data_path x "
        "--bf16 True --output_dir y --per_device_train_batch_size 1 --use_lora True --lora_r 16 "
        "--deepspeed ds.json\n",
        encoding="utf-8",
    )
    for gpu, warned in (("rtx-3060:1", True), ("b300:8", False)):
        words = ["run.sh", "--no-detect", "--gpu", gpu, "--format", "json", "--select", "MEM1"]
        _, page = terminal.run("check", tmp_path, words)
        told = [(f["code"], f["level"]) for f in json.loads(page)["findings"] if f["level"] != "info"]
        assert told == [("MEM105", "warning")] * warned
