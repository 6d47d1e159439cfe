"""What people see of the verdicts: the words, one interval, the main fix, and asks that can be typed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cfglint.engine.memory import span_of
from cfglint.features.diagnose.attribution import TRAINER
from cfglint.features.diagnose.compute import predictions
from cfglint.findings import Memory, MemoryCase, Report, Span
from cfglint.hardware.target import parse_target
from cfglint.report import render, verdicts
from golden import terminal  # noqa: F401 (a fixture)
from test_verdicts import GRPO, LINES, SFT
from tiers import in_turn

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
WIDTH = 80
PADDED = SFT + "pad_to_sequence_len: true\n"


def memory(verdict, need, bound, capacity=24.0, **more):
    return Memory("gpu", capacity, Span(*need), Span(*bound), verdict, **more)


@pytest.mark.parametrize(
    ("verdict", "need", "bound", "said", "sentence"),
    [
        ("fits", (10, 20), (9, 23), "fits", "fits: 10–20 of 24.0 GiB"),
        ("tight", (10, 20), (9, 25), "tight, probably fits", "tight, probably fits: 10–20 (at worst 25) of"),
        ("tight", (10, 24), (9, 25), "tight, probably fits", "tight, probably fits: 10–24 (at worst 25) of"),
        ("tight", (20, 28), (19, 30), "tight", "tight: 20–28 of 24.0 GiB"),
        ("tight", (24, 28), (19, 30), "tight", "tight: 24–28 of 24.0 GiB"),
        (
            "tight", (25, 28), (20, 30), "tight, probably oom",
            "tight, probably out of memory: 25–28 of 24.0 GiB",
        ),
        (
            "tight", (10, 20), (9, 23), "tight",
            "tight: 10–20 of 24.0 GiB, but the inference engine may not start",
        ),
        (
            "oom", (10, 20), (9, 23), "oom",
            "OUT OF MEMORY: the inference engine cannot start with 10–20 of 24.0 GiB",
        ),
        ("oom", (26, 28), (25, 30), "oom", "OUT OF MEMORY: 26–28 GiB needed per GPU, 24.0 there"),
    ],
)  # fmt: skip
def test_a_tight_job_says_what_it_probably_does(verdict, need, bound, said, sentence):
    found = memory(verdict, need, bound)
    assert verdicts.said(found) == said
    assert verdicts.verdict(found).startswith(sentence)


def test_cases_are_named_where_they_agree_and_where_they_differ():
    def case(verdict, name, need, bound):
        return MemoryCase({"trl.launcher": name}, verdict, Span(*need), Span(*bound))

    cases = (case("oom", "zero3", (26, 28), (25, 30)), case("oom", "ddp", (40, 50), (39, 55)))
    found = memory("oom", (26, 50), (25, 55), cases=cases)
    assert verdicts.verdict(found).startswith("OUT OF MEMORY with each launcher (zero3, ddp): 26–50 GiB")
    assert verdicts.note(found) == "with each launcher (zero3, ddp)"
    mixed = (case("fits", "zero3", (10, 20), (9, 21)), case("tight", "ddp", (10, 20), (9, 25)))
    found = memory("tight", (10, 20), (9, 25), cases=mixed)
    told = "depends on the launcher: fits with zero3 (10–20), tight (probably fits) with ddp (10–20)"
    assert verdicts.verdict(found) == f"{told}, of 24.0 GiB"
    assert verdicts.note(found) == told
    assert verdicts.note(memory("fits", (10, 20), (9, 21), gpus=2)) == "on 2 GPUs"


def test_cases_that_differ_have_a_line_each_and_few_of_many():
    def case(name, low, high):
        verdict = "fits" if high < 24 else "oom" if low > 24 else "tight"
        return MemoryCase({"trl.launcher": name}, verdict, Span(low, high), Span(low, high))

    cases = tuple(case(f"way{i}", 10.0 + 3 * i, 12.0 + 3 * i) for i in range(6))  # the last is out of memory
    found = memory("tight", (10, 27), (10, 27), cases=cases)
    head, *lines, more = verdicts.told(found)
    assert head == "depends on the launcher"
    assert lines == [f"way{i}  fits: {10 + 3 * i}–{12 + 3 * i} of 24.0 GiB" for i in range(3)]
    assert more == "and 3 more, 1 of them out of memory: -v shows them"
    assert len(verdicts.told(found, verbose=True)) == 1 + len(cases)
    agreed = memory("fits", (10, 15), (10, 15), cases=cases[:2])
    assert len(verdicts.told(agreed)) == 1, "the hull is enough where all come to one verdict"
    assert len(verdicts.told(agreed, verbose=True)) == 1 + 2


def test_markdown_fit_and_compare_tell_cases_and_numbers_of_gpus(terminal, tmp_path):  # noqa: F811
    for name, batch in (("a.yaml", 1), ("b.yaml", 4)):
        (tmp_path / name).write_text(GRPO.format(batch=batch), encoding="utf-8")
    gpus = ["--gpu", "h200:8", "--gpu", "rtx-4090"]
    _, page = terminal.run("check", tmp_path, ["a.yaml", "--no-detect", *gpus, "--format", "markdown"])
    rows = [line for line in page.splitlines() if line.startswith("| a.yaml")]
    assert any("depends on the launcher: " in row and "accelerate\\_config" in row for row in rows)
    assert any("on 1 GPU; nothing says how many" in row for row in rows)
    assert all(re.search(r"\| \d+\.\d–\d+\.\d \| \d+\.\d \|", row) for row in rows), "one number of decimals"
    _, page = terminal.run("compare", tmp_path, ["a.yaml", "b.yaml", "--no-detect", *gpus])
    told = " ".join(page.split())
    assert "A is tight" in told
    assert "depends on the launcher: " in told
    assert "on 1 GPU; B" in told
    _, page = terminal.run("fit", tmp_path, ["a.yaml", *gpus, "--format", "markdown"])
    assert "depends on the launcher: " in page
    assert "on 1 GPU" in page


# ── the main fix is there, and an "or" never without it ────────────────────────────────────────────────────
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_fix_is_told_in_twelve_lines(terminal, tmp_path, example):  # noqa: F811
    (tmp_path / "job.yaml").write_bytes(example.read_bytes())
    several = (["--gpu", "rtx-4090:4"], ["--gpu", "rtx-4090:4", "--gpu", "a40:4"], ["--gpu", "a10:2"])
    for gpus in in_turn(several, EXAMPLES.index(example), len(several)):
        words = ["job.yaml", "--no-detect", *gpus]
        _, page = terminal.run("check", tmp_path, [*words, "--width", str(WIDTH)])
        lines = page.partition("\n\n")[0].splitlines()
        assert len(lines) <= LINES
        fixes = [i for i, line in enumerate(lines) if line.startswith("   fix (")]
        _, text = terminal.run("check", tmp_path, [*words, "--format", "json"])
        findings = [f for f in json.loads(text)["findings"] if f["level"] != "info"]
        worst = [f for f in findings if any(f" {f['code']} {f['name']}" in line for line in lines)]
        assert bool(fixes) is any(f["fix"] for f in worst), lines
        for i, line in enumerate(lines):
            if re.match(r"   or\b", line) or line.startswith(("   memory:", "   if it still runs")):
                assert fixes
                assert fixes[0] < i


def test_a_long_path_wraps_where_nothing_is_found():
    path = "a/" * 50 + "job.yaml"
    report = Report()
    report.files = report.judged = 1
    found = memory("fits", (10, 20), (9, 23))
    from cfglint.findings import Job

    report.jobs = [Job(path, 0, "trl", "Qwen/Qwen2.5-7B-Instruct", found)]
    first, second, *_ = render(report, "text", width=WIDTH).splitlines()
    assert first == f"{path}"
    assert second == "    · trl · Qwen/Qwen2.5-7B-Instruct · gpu"


# ── one interval ──────────────────────────────────────────────────────────────────────────────────────────
def numbers(text):
    return [float(number) for number in re.findall(r"\d+\.?\d*", text)]


def test_messages_have_the_interval_of_the_verdict(terminal, tmp_path):  # noqa: F811
    (tmp_path / "job.yaml").write_text(PADDED.format(model="Qwen/Qwen2.5-7B-Instruct"), encoding="utf-8")
    gpus = [
        word for gpu in ("rtx-4090", "a10", "rtx-5080", "rtx-4080", "l4") for word in ("--gpu", f"{gpu}:1")
    ]
    _, text = terminal.run("check", tmp_path, ["job.yaml", "--no-detect", *gpus, "--format", "json"])
    report = json.loads(text)
    jobs = {job["target"]: job for job in report["jobs"]}
    told = [
        (jobs[f["target"]], re.search(r"it needs ([\d.]+)–([\d.]+) GiB(, at worst)?", f["message"]))
        for f in report["findings"]
        if f["code"] == "MEM104"
    ]
    assert len(told) > 1
    for job, needs in told:
        assert [float(needs[1]), float(needs[2])] == pytest.approx(job["need_gib"], abs=0.06)
        assert bool(needs[3]) is (job["need_gib"][1] <= job["capacity_gib"])


def test_a_bound_that_decides_is_named(cfglint, tmp_path):
    """A rule of one's own that the 90 % interval keeps and the bound does not."""
    config = tmp_path / "job.yaml"
    config.write_text(PADDED.format(model="Qwen/Qwen2.5-7B-Instruct"), encoding="utf-8")
    words = ["check", str(config), "--no-detect", "--gpu", "h200:1"]
    (job,) = json.loads(cfglint(*words, "--format", "json").stdout)["jobs"]
    limit = (job["need_gib"][1] + job["bound_gib"][1]) / 2
    (tmp_path / "own.rules").write_text(
        "rule OWN101 own-limit warning {\n"
        f"  need.total <= {limit:.3f} GiB\n"
        '  say "it needs {need.total}"\n'
        "  bad { need.total: 200 GiB }\n  good { need.total: 1 GiB }\n}\n"
    )
    words += ["--rules", str(tmp_path / "own.rules"), "--select", "OWN101", "--format", "json"]
    (finding,) = json.loads(cfglint(*words).stdout)["findings"]
    told = numbers(finding["message"])
    assert "at worst" in finding["message"]
    assert told == pytest.approx([*job["need_gib"], job["bound_gib"][1]], abs=0.06)
    assert any("99 % bounds" in fact["source"] for fact in finding["facts"])


def test_fit_explains_the_interval_that_it_shows(cfglint, tmp_path):
    config = tmp_path / "job.yaml"
    config.write_text(PADDED.format(model="Qwen/Qwen2.5-7B-Instruct"), encoding="utf-8")
    page = cfglint("fit", str(config), "--gpu", "h200:1").stdout
    row = json.loads(cfglint("fit", str(config), "--gpu", "h200:1", "--format", "json").stdout)["rows"][0]
    told = re.search(r"error\.likely .*?([\d.]+) GiB of the range", page.replace("\n", " "))
    assert "error.bound" not in page
    low, high = row["need_gib"]
    assert float(told[1]) <= high - low + 0.01


def test_diagnose_predicts_what_verify_predicts(run_on):
    values = run_on(ROOT / "examples" / "sft_zero3.yaml", parse_target("a40:4"))
    assert predictions(values)[TRAINER].span == span_of(values["trainer.seen"])


@pytest.fixture
def run_on():
    """Return a function that gives the values of a config on a target."""
    from cfglint.boundary import Boundary
    from cfglint.command import inputs
    from cfglint.document.reading import Library
    from cfglint.engine.run import Run
    from cfglint.lang.pack import load

    def values(path, target):
        boundary = Boundary([str(path.parent)])
        run = Run(load(), [target], library=Library(inputs.second, boundary))
        file, _ = inputs.load(str(path), boundary, named=True)
        (subject,) = run.subjects(file, judge_broken=False)
        return run.on(target, subject).values

    return values


# ── asks ──────────────────────────────────────────────────────────────────────────────────────────────────
UNSLOTH = """\
model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct
stage: sft
do_train: true
finetuning_type: full
dataset: alpaca_en_demo
template: llama3
cutoff_len: 2048
output_dir: out
use_unsloth: true
per_device_train_batch_size: 1
bf16: true
"""
QLORA = SFT.replace("lora_target_linear: true\n", "load_in_4bit: true\n").replace("lora\n", "qlora\n")
SCRIPT = "#!/bin/bash\n#SBATCH --gpus=rtx_4090:4\n"
LAUNCH = "deepspeed --num_gpus 8 --module openrlhf.cli.train_rm --pretrain Qwen/Qwen3-4B --dataset x\n"


@pytest.fixture
def ask(terminal, tmp_path):  # noqa: F811
    """Return a function that gives what the only job of a file asks for."""

    def asked(text: str, *flags: str, name: str = "job.yaml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        _, page = terminal.run("check", tmp_path, [name, "--no-detect", "--format", "json", *flags])
        (job,) = json.loads(page)["jobs"]
        return job["ask"] or ""

    return asked


def test_a_key_that_is_asked_for_settles_it(ask):
    flags = ["--gpu", "a100-80gb-sxm:1"]
    text = QLORA.format(model="Qwen/Qwen3-Next-80B-A3B-Instruct")
    assert ask(text, *flags) == "add --set lora_target_modules=VALUE"
    assert "lora_target_modules" not in ask(text, *flags, "--set", "lora_target_modules=[q_proj]")


def test_a_key_that_settles_nothing_is_not_asked_for(ask):
    """Unsloth has a step of its own, whatever the model."""
    told = ask(UNSLOTH, "--gpu", "h200:1")
    assert told.startswith("cfglint does not model")
    assert told.endswith("use_unsloth")
    assert told == ask(UNSLOTH, "--gpu", "h200:1", "--set", "model_name_or_path=meta-llama/Llama-3.2-1B")


def test_a_fact_without_a_key_is_stated_by_its_name(ask, cfglint, tmp_path):
    gpu = ["--gpu", "a40:4"]
    told = ask(SFT.format(model="Qwen/Qwen2.5-7B-Instruct") + "deepspeed: own.json\n", *gpu)
    what, _, flags = told.partition("? add ")
    assert what.startswith("which ZeRO stage")
    words = flags.partition(" (or")[0].split()
    done = cfglint("check", str(tmp_path / "job.yaml"), *words, *gpu, "--format", "json")
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["verdict"] != "unknown"


def test_more_gpus_are_asked_for_where_the_gpu_was_named(ask):
    told = ask(LAUNCH, "--gpu", "rtx-4090:4", name="run.sh")
    assert (
        told
        == "it takes 8 GPUs of a machine, one for each process that deepspeed starts: use --gpu rtx-4090:8"
    )
    assert ask(LAUNCH, "--gpu", "rtx-4090:8", name="run.sh") != told
    told = ask(SCRIPT + LAUNCH, name="run.sbatch")
    assert told.startswith("it takes 8 GPUs of a machine, one for each process that ")


def test_a_file_that_is_named_and_not_here_is_asked_for_first(ask):
    told = ask("axolotl train configs/train.yaml\n", "--gpu", "h200:1", name="run.sh")
    assert told == "the file configs/train.yaml is named, but not here"


@pytest.mark.parametrize(
    ("model", "gpu", "words", "status"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "h200:1", "error,tight,not-judged", 0),
        ("Qwen/Qwen2.5-7B-Instruct", "rtx-3060:1", "never,tight", 1),
        ("Qwen/Qwen2.5-7B-Instruct", "rtx-3060:1", "never", 0),
        ("acme/own", "h200:1", "error,tight", 0),
        ("acme/own", "h200:1", "never,tight,not-judged", 1),
    ],
)
def test_fail_on_words_of_verdicts(cfglint, tmp_path, model, gpu, words, status):
    (tmp_path / "job.yaml").write_text(SFT.format(model=model), encoding="utf-8")
    done = cfglint("check", str(tmp_path / "job.yaml"), "--no-detect", "--gpu", gpu, "--fail-on", words)
    assert done.returncode == status


def test_fail_on_tight(cfglint, tmp_path):
    """A job whose cases differ is tight, and no finding says so."""
    (tmp_path / "job.yaml").write_text(GRPO.format(batch=1), encoding="utf-8")
    words = ["check", str(tmp_path / "job.yaml"), "--no-detect", "--gpu", "h200:8"]
    assert json.loads(cfglint(*words, "--format", "json").stdout)["jobs"][0]["verdict"] == "tight"
    assert cfglint(*words).returncode == 0
    assert cfglint(*words, "--fail-on", "tight").returncode == 1


def test_the_parts_of_one_case_add_up_to_its_need(cfglint, tmp_path):
    """The verdict line has the needs of all cases, the parts are those of the likeliest."""
    (tmp_path / "job.yaml").write_text(GRPO.format(batch=1), encoding="utf-8")
    words = ["fit", str(tmp_path / "job.yaml"), "--gpu", "h200:8"]
    (row,) = json.loads(cfglint(*words, "--format", "json").stdout)["rows"]
    page = cfglint(*words).stdout
    first = row["cases"][0]
    assert f"parts and peak are of this case: {first['given']['trl.launcher']}" in page
    shown = numbers(re.search(r"^= need(.*)$", page, re.MULTILINE)[1])
    assert shown == pytest.approx(first["need_gib"], abs=0.06)
    assert shown != pytest.approx(row["need_gib"], abs=0.06)
