"""``cfglint plan`` through the real command: what it prints where, how it exits, and what it writes."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from cfglint.api import check_file
from cfglint.document.reading import read
from cfglint.engine.judge import values_for
from cfglint.engine.rows import fit_rows
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load
from tiers import sampled

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "qwen3_4b_zero3.yaml"
SCHEMA = json.loads((ROOT / "schemas" / "plan.schema.json").read_text("utf-8"))
GPUS = ["--gpu", "rtx-4090", "--gpus", "4,8,16"]


@pytest.fixture
def zero3(folder):
    path = folder / "zero3.yaml"
    path.write_bytes(EXAMPLE.read_bytes())
    return path


@pytest.fixture
def plan(cfglint):
    def run(*flags, path=EXAMPLE, **more):
        return cfglint("plan", path, "--no-detect", *flags, **more)

    return run


def facts_of(path, *names, gpu="rtx-4090"):
    pack = load()
    run = Run(pack, [parse_target(gpu)])
    (subject,) = run.subjects(read(path.read_bytes(), path.name), judge_broken=False)
    values = values_for(subject, {n: f[0] for n, f in run.targets[0].facts.items()})
    (row,) = fit_rows(run, subject)
    return [values[name] for name in names], row


@pytest.mark.parametrize(
    ("flags", "status"),
    [
        ([*GPUS, "--effective-batch", "64"], 0),
        ([*GPUS, "--effective-batch", "64", "--fail-on", "oom"], 0),
        (["--gpu", "rtx-4090:4", "--effective-batch", "64"], 0),
        (["--gpu", "rtx-4090:4", "--effective-batch", "64", "--fail-on", "oom"], 1),
        (["--gpu", "rtx-4090:4", "--effective-batch", "64", "--fail-on", "never"], 0),
        (["--gpu", "rtx-4090:4", "--gpu", "h200:4", "--effective-batch", "64", "--fail-on", "oom"], 1),
        (["--gpu", "h200:4", "--effective-batch", "64", "--fail-on", "oom"], 0),
    ],
)
def test_status(plan, flags, status):
    done = plan(*flags, "--format", "json")
    assert done.returncode == status
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "cfglint plan needs a GPU, such as --gpu rtx-4090"),
        (["--gpu", "rtx-4900"], "unknown GPU 'rtx-4900'; did you mean"),
        ([*GPUS, "--effective-batch", "50"], "--effective-batch 50 cannot be reached on 4, 8, 16 GPUs"),
        ([*GPUS, "--effective-batch", "50"], "the nearest possible: 48 and 52"),
        ([*GPUS, "--effective-batch", "64,50"], "--effective-batch 50 cannot be reached"),
        (
            [*GPUS, "--effective-batch", "64", "--micro-batch", "3"],
            "the nearest possible: 60 and 72",
        ),
        ([*GPUS, "--effective-batch", "0"], "--effective-batch takes numbers such as 4,8,16, not '0'"),
        ([*GPUS, "--effective-batch", "64,x"], "--effective-batch takes numbers such as 4,8,16, not 'x'"),
        (["--gpu", "a40", "--gpus", "4,"], "--gpus takes numbers such as 4,8,16, not ''"),
        ([*GPUS, "--zero-stage", "4"], "--zero-stage takes 0,1,2,3 or all, not '4'"),
        ([*GPUS, "--checkpointing", "maybe"], "--checkpointing takes both, on, off, not 'maybe'"),
        ([*GPUS, "--samples", "0"], "--samples takes a whole number, 1 or more, not '0'"),
        ([*GPUS, "--effective-batch", "64,128", "--write"], "give one --effective-batch"),
        (["--gpu", "a40", "--gpu", "a100", "--write"], "a row is written for one GPU: give one --gpu"),
        ([*GPUS, "--effective-batch", "64", "--row", "99", "--diff"], "--row 99: there are 12 rows"),
        (
            ["--gpu", "rtx-4090:4", "--effective-batch", "64", "--diff"],
            "no row certainly fits, so none is written; the closest is --row 1",
        ),
        ([*GPUS, "--set", "task=inference"], "this config trains nothing"),
        (
            [*GPUS, "--set", "zero_stage=0", "--set", "dp_shard=2", "--zero-stage", "2"],
            "this config's trainer is fsdp",
        ),
        ([*GPUS, "--format", "svg"], "--format takes text, json, markdown, not 'svg'"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(plan, flags, said):
    done = plan(*flags)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


@pytest.mark.parametrize(
    "flags",
    [
        [*GPUS, "--effective-batch", "64,128", "--samples", "50000"],
        [*GPUS, "--effective-batch", "64", "--zero-stage", "all", "--checkpointing", "both"],
        ["--gpu", "rtx-4090:2"],
        ["--gpu", "rtx-4090", "--gpus", "3,4", "--effective-batch", "64"],
        ["--gpu", "a40", "--gpu", "h200:8", "--effective-batch", "16", "--set", "task=dpo"],
        ["--gpu", "mi300x", "--set", "model_path=nobody/nothing"],
    ],
)
def test_json(plan, flags):
    done = plan(*flags, "--format", "json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(data)
    for batch in (batch for one in data["plans"] for batch in one["batches"]):
        rows = batch["rows"]
        assert [row["row"] for row in rows] == list(range(1, len(rows) + 1))
        for row in rows:
            assert row["micro_batch"] * row["accumulation"] * row["data_parallel"] == batch["effective_batch"]
        fitting = {row["gpus"] for row in rows if row["verdict"] == "fits"}
        assert batch["fewest_gpus"] == min(fitting, default=None)
        assert (batch["recommended"] is None) == (not fitting)
        assert (batch["closest"] is None) == bool(fitting)


def test_the_schema_is_one():
    Draft202012Validator.check_schema(SCHEMA)


def test_without_a_batch_the_configs_own(plan):
    data = json.loads(plan("--gpu", "h200", "--format", "json").stdout)
    (batch,) = data["plans"][0]["batches"]
    assert batch["effective_batch"] == 32
    (now,) = [row for row in batch["rows"] if row["now"]]
    assert (now["gpus"], now["micro_batch"], now["accumulation"]) == (2, 4, 4)


def test_the_number_of_gpus_that_nobody_states(plan, folder):
    path = folder / "c.yaml"
    path.write_text("cfglint: facts\nmodel_path: Qwen/Qwen3-0.6B\nseq_len: 512\nmicro_batch_size: 1\n")
    data = json.loads(plan("--gpu", "h200", "--effective-batch", "8", "--format", "json", path=path).stdout)
    assert {row["gpus"] for row in data["plans"][0]["batches"][0]["rows"]} == {1, 2, 4, 8}


def test_all_rows(plan):
    some = plan(*GPUS, "--effective-batch", "64").stdout
    every = plan(*GPUS, "--effective-batch", "64", "--all").stdout
    (shown,) = re.findall(r"^(\d+) of 12 rows are shown; --all shows every one$", some, re.MULTILINE)
    assert "rows are shown" not in every
    assert len(every.splitlines()) == len(some.splitlines()) + 12 - int(shown) - 1
    assert plan(*GPUS, "--effective-batch", "64", "-v").stdout == every


def test_a_file_instead_of_stdout(plan, folder):
    done = plan(*GPUS, "--effective-batch", "64", "--output-file", "plan.txt")
    assert done.stdout == ""
    assert "take row " in (folder / "plan.txt").read_text("utf-8")


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────
def test_write_changes_what_it_must_and_nothing_else(plan, zero3):
    before = zero3.read_text()
    done = plan(*GPUS, "--effective-batch", "128", "--write", path=zero3)
    assert done.returncode == 0
    assert done.stdout == ""
    said = re.search(r"row \d+: (\d+) GPUs, micro-batch (\d+), (\d+) accumulation steps", done.stderr)
    gpus, micro, accum = map(int, said.groups())
    assert gpus * micro * accum == 128
    after = zero3.read_text()
    changed = [(a, b) for a, b in zip(before.splitlines(), after.splitlines(), strict=True) if a != b]
    assert [b for _, b in changed] == [
        changed[0][0].replace("2", str(gpus), 1), f"micro_batch_size: {micro}", f"grad_accum: {accum}",
    ]  # fmt: skip
    (batch, dp), row = facts_of(zero3, "effective_batch_size", "ranks.data")
    assert (batch, dp) == (128, gpus)
    assert row.verdict == "fits"
    again = plan(*GPUS, "--effective-batch", "128", "--write", path=zero3)
    assert "nothing in the file needs to change" in again.stderr
    assert zero3.read_text() == after


def test_every_row_can_be_written_and_comes_to_itself(plan, zero3):
    text = zero3.read_bytes()
    flags = [
        *GPUS,
        "--effective-batch",
        "64",
        "--zero-stage",
        "2,3",
        "--checkpointing",
        "both",
        "--micro-batch",
        "1,4",
    ]
    rows = json.loads(plan(*flags, "--format", "json").stdout)["plans"][0]["batches"][0]["rows"]
    for row in sampled(rows):
        zero3.write_bytes(text)
        done = plan(*flags, "--row", row["row"], "--write", path=zero3)
        assert done.returncode == 0, done.stderr
        names = ("num_gpus", "micro_batch_size", "grad_accum", "zero_stage", "gradient_checkpointing")
        facts, fit = facts_of(zero3, *names)
        assert facts == [
            row["gpus"], row["micro_batch"], row["accumulation"], row["zero_stage"], row["checkpointing"],
        ]  # fmt: skip
        assert [round(fit.need_gib.low, 4), round(fit.need_gib.high, 4)] == row["need_gib"]


def test_diff_is_a_patch_that_git_takes(plan, zero3):
    before = zero3.read_bytes()
    done = plan(*GPUS, "--effective-batch", "64", "--diff", path="zero3.yaml")
    assert done.returncode == 0
    assert zero3.read_bytes() == before
    applied = subprocess.run(
        ["git", "apply", "-"], input=done.stdout, text=True, cwd=zero3.parent, check=False
    )
    assert applied.returncode == 0
    written = dict(re.findall(r"(?m)^\+(num_gpus|micro_batch_size): (\d+)", done.stdout))
    assert facts_of(zero3, *written)[0] == [int(value) for value in written.values()]
    assert "num_gpus" in written


def test_stdin_to_stdout(plan):
    text = EXAMPLE.read_bytes()
    done = plan(*GPUS, "--effective-batch", "64", "--write", path="-", stdin=text)
    assert done.stdout.count("\n") == text.count(b"\n")
    assert "micro_batch_size: 1\n" in done.stdout


def test_gpus_told_by_the_machine(plan, folder):
    path = folder / "c.yaml"
    head = "cfglint: facts\nmodel_path: Qwen/Qwen3-0.6B\nnum_nodes: 2\n"
    path.write_text(head + "gpus_per_node: 1\nzero_stage: 2\nmicro_batch_size: 1\nseq_len: 512\n")
    flags = ["--gpu", "h200", "--gpus", "8", "--effective-batch", "32", "--micro-batch", "2"]
    done = plan(*flags, "--write", path=path)
    assert done.returncode == 0, done.stderr
    tail = "gpus_per_node: 4\nzero_stage: 2\nmicro_batch_size: 2\nseq_len: 512\ngrad_accum: 2\n"
    assert path.read_text() == head + tail
    assert facts_of(path, "num_gpus", "effective_batch_size", gpu="h200")[0] == [8, 32]


def test_a_batch_that_the_file_states_goes_with_its_factors(plan, folder):
    path = folder / "c.yaml"
    path.write_text(
        "cfglint: facts\nmodel_path: Qwen/Qwen3-0.6B\nzero_stage: 2\nnum_gpus: 2\ntrain_dp: 2\n"
        "effective_batch_size: 8\nmicro_batch_size: 1\ngrad_accum: 4\nseq_len: 512\n"
    )
    done = plan("--gpu", "h200", "--gpus", "4", "--effective-batch", "64", "--write", path=path)
    assert done.returncode == 0, done.stderr
    names = ("num_gpus", "train_dp", "effective_batch_size", "micro_batch_size", "grad_accum")
    (gpus, dp, batch, micro, accum), _ = facts_of(path, *names, gpu="h200")
    assert (gpus, dp, batch) == (4, 4, 64)
    assert micro * accum * dp == 64


def test_what_no_key_gives_is_left_to_the_launch(plan, config):
    before = config.read_text()
    flags = ["--gpu", "a40", "--gpus", "2", "--effective-batch", "64", "--row", "3"]
    done = plan(*flags, "--write", path=config)
    assert done.returncode == 0, done.stderr
    assert "set it at launch: 2 data-parallel ranks" in done.stderr
    changed = [b for a, b in zip(before.splitlines(), config.read_text().splitlines(), strict=True) if a != b]
    assert changed == ["  n_gpus_per_node: 2", "    max_tokens_per_mb: 2048", "  batch_size: 16"]


def test_a_rule_that_a_row_breaks_is_told(plan, zero3, folder):
    (folder / "own.rules").write_text("num_gpus <= 4\n")
    done = plan(*GPUS, "--effective-batch", "64", "--write", "--rules", "own.rules", path=zero3)
    assert "cfglint check then finds USR001" in done.stderr


def test_after_writing_check_finds_no_memory_error(plan, zero3):
    pack = load()
    plan(*GPUS, "--effective-batch", "256", "--write", path=zero3)
    run = Run(pack, [parse_target("rtx-4090:16")])
    check_file(run, read(zero3.read_bytes(), "zero3.yaml"), explicit=True)
    assert not [f for f in run.report.findings if f.code.startswith("MEM") and f.level == "error"]
