"""Which comments a fix makes untrue, and that nothing is said of others."""

import json

import pytest

from cfglint.document.reading import read_text
from cfglint.findings import MemoryChange
from cfglint.repair.patch import Change
from cfglint.repair.stale import stale
from cfglint.text import Edit, apply_edits

BATCH = ("per_device_train_batch_size", "8", "4")
SHARE = ("sglang.mem_fraction_static", "0.8", "0.5")
LENGTH = ("max_length", "1024", "512")
GPUS = ("tensor_parallel_size", "8", "4")
DTYPE = ("optim", "adamw_torch", "adamw_8bit")
HELD = [MemoryChange("trainer", (70.2, 72.9), (40.1, 41.8)), MemoryChange("headroom", (5, 9), (36, 39))]
OF_LORA = ("lora_rank", "64", "32")

SAID = [
    (SHARE, "36 of the A40's 44.4 GiB", "36 GiB"),
    (SHARE, "takes 35.5 of 44.4 GB", "35.5 GiB"),
    (SHARE, "0.8 of the GPU", "0.8"),
    (SHARE, "80% for the engine", "80%"),
    (GPUS, "8 GPUs", "8"),
    (GPUS, "all 8 GPUs", "8"),
    (GPUS, "one engine on 8 cards", "8"),
    (BATCH, "4 * 8 = 32 per step", "8"),
    (BATCH, "2 x 8 samples", "8"),
    (BATCH, "8 * 4 = 32", "8"),
    (BATCH, "8 or rather 4", None),
    (BATCH, "8 * 2 = 16", "8"),
    (BATCH, "8", "8"),
    (BATCH, "increases to 8", "8"),
    (BATCH, "Reduced from 16 to 8 (faster)", "8"),
    (BATCH, "from 16 to 8", None),
    (BATCH, "Keep batch_size=8 for stability", "8"),
    (BATCH, "batch size 8 fits on one A40", "8"),
    (BATCH, "must be 8", "8"),
    (BATCH, "8 per GPU, 64 in all", "8"),
    (BATCH, "peak 71 GiB", "71 GiB"),
    (BATCH, "71.5 GB on an A100", "71.5 GiB"),
    (BATCH, "fills 80 GB", None),
    (BATCH, "8 GiB", None),
    (LENGTH, "1,024 tokens", "1,024"),
    (LENGTH, "1k tokens", "1k"),
    (LENGTH, "1_024", "1_024"),
    (LENGTH, "1024 tokens per sample", "1024"),
    (DTYPE, "adamw_torch keeps 8 bytes per parameter", "adamw_torch"),
    (OF_LORA, "rank 64 for 7B models", "64"),
    (("actor.kl_beta", "0.1", "1.0"), "0.1", "0.1"),
]
TRUE = [
    *((BATCH, comment) for comment in (
        '"1 2 4 8"', '"8 16"', "1, 2, 4 or 8",
        "2 | 4 | 8", "4/8/16", "4-8", "up to 8", "8+", ">= 8", "<8", "8 or more", "8 to 16",
        "default 8", "(default: 8)", "8 is the default", "defaults to 8", "was 8", "upstream: 8",
        "reduced from 8", "8 if it fits", "8 on an A100, 4 otherwise", "e.g. 8", "try 8 first",
        "the paper has 8", "recommended: 8", "8 GPUs", "runs on 8 cards",
        "8 heads", "8 hours", "8B model", "llama-8b", "8bit", "8-bit", "v8", "1.8",
        "0.8", "8.5", "18", "80", "8%", "2**8", "#8", "issue 8", "layer 8", "dp=8", "epochs: 8", "beta 8",
        "8: fits on 80 GB", "8 -> 4", "8 = off", "multiple of 8", "less than 8", "cfglint: was 8 (MEM104)",
        "see https://example.com/8", "2024-8-1", "8x7B", "a power of two", "eight", "8e5", "1,8", "8,192",
    )),
    *((SHARE, comment) for comment in (
        "0.8 or 0.9", "44.4 GiB in all", "0.80.1", "of 48 GB", "2 of 48 GB", "python 0.8", "80", "36 layers",
    )),
    *((LENGTH, comment) for comment in (
        "1024 samples", "1k steps", "supports up to 1024", "1024x1024", "1 k",
    )),
    *((DTYPE, comment) for comment in (
        "adamw_torch_fused", "adamw", "default adamw_torch", "adamw_torch or lion",
        '"adamw_torch", "lion"', "lion, adamw_torch", "one of adamw_torch, lion",
    )),
    (("gradient_accumulation_steps", "4", "8"), "This can run on 4 GPUs"),
    (("flash_attention", "false", "true"), "false"),
    (("workers", "0", "4"), "0 workers load in the main process"),
    (("bf16", "no", "yes"), "no"),
]  # fmt: skip


def said(setting, comment, text=None):
    key, old, new = setting
    name = key.rpartition(".")[2]
    text = f"{name}: {old}  # {comment}\n" if text is None else text
    at = text.index(f"{name}: {old}") + len(name) + 2
    document = read_text(text, "a.yaml").documents[0]
    change = Change(Edit(at, at + len(old), new), "", key, old)
    return list(stale(document, [change], HELD))


@pytest.mark.parametrize(("setting", "comment", "says"), SAID)
def test_said(setting, comment, says):
    assert [each.says for each in said(setting, comment)] == ([says] if says else [])


@pytest.mark.parametrize(("setting", "comment"), TRUE)
def test_nothing_is_said_of_what_stays_true(setting, comment):
    assert said(setting, comment) == []


@pytest.mark.parametrize(
    ("above", "lines"),
    [
        ("# batch size 8 fits on an A40\n", [1]),
        ("# one A40\n# train batch size: 8, no more\n", []),  # a setting that is told of
        ("# the batch size is 8\n# on one A40\n", [1]),
        ("# 8 GPUs\n", []),
        ("# 8\n", []),
        ("# per_device_train_batch_size: 8\n", []),
        ("#SBATCH --batch-size 8\n", []),
        ("# batch size 8\n\n", []),
        ("other: 1  # batch size 8\n", []),
    ],
)
def test_the_comment_above(above, lines):
    text = f"{above}per_device_train_batch_size: 8\n"
    found = said(BATCH, "", text)
    assert [text.count("\n", 0, each.start) + 1 for each in found] == lines


def test_a_hash_that_begins_no_comment():
    key = BATCH[0]
    for text in (f'{{{key}: 8, note: "x # 8"}}\n', f"{{{key}: 8, note: it's#8}}\n", f"{key}: 8\n"):
        assert said(BATCH, "", text) == []
    assert [each.says for each in said(BATCH, "", f'{{{key}: 8, note: "x # 8"}} # 8 each\n')] == ["8"]


PROGRAM = """\
from trl import SFTConfig, SFTTrainer

args = SFTConfig(
    output_dir="out",  # 8
    per_device_train_batch_size=8,  # 8 samples "each"
    # the batch size is 8
)
SFTTrainer("Qwen/Qwen2.5-0.5B", args=args, train_dataset=None).train()
"""
FILES = {
    "job.yaml": (
        "model_name_or_path: Qwen/Qwen2.5-0.5B\ndataset_name: x\noutput_dir: out\n"
        "per_device_train_batch_size: 8  # 8 samples\n"
    ),
    "job.sh": (
        "# batch size 8 fits\nBATCH=8  # 8 samples\ntrl sft --model_name_or_path Qwen/Qwen2.5-0.5B \\\n"
        "  --dataset_name x --output_dir out --per_device_train_batch_size $BATCH\n"
    ),
    "one_line.sh": (
        "trl sft --model_name_or_path Qwen/Qwen2.5-0.5B --dataset_name x --output_dir out "
        "--per_device_train_batch_size 8  # 8 samples\n"
    ),
    "job.py": PROGRAM,
    "job.ipynb": json.dumps(
        {
            "cells": [
                {
                    "cell_type": "code",
                    "execution_count": None,
                    "metadata": {},
                    "outputs": [],
                    "source": PROGRAM.splitlines(keepends=True),
                }
            ],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5,
        },
        indent=1,
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_in_each_kind_of_file(cfglint, tmp_path, name):
    """The report names the line; --annotate says what the sentence was true of, and nothing else changes."""
    path = tmp_path / name
    path.write_text(FILES[name])
    rule = ["--select", "CLI", "--rule", "micro_batch_size <= 4", "--no-detect"]
    done = cfglint("check", path, *rule, "--format", "json")
    (finding,) = json.loads(done.stdout)["findings"]
    told = finding["fix"]["stale"]
    lines = FILES[name].splitlines()
    assert told
    for each in told:
        assert (each["says"], each["was"]) == ("8", "8")
        assert "8 samples" in lines[each["line"] - 1] or "batch size 8" in lines[each["line"] - 1]
    assert f"the comment on line {told[0]['line']} still says 8" in cfglint("check", path, *rule, "-v").stdout
    done = cfglint("fix", path, *rule, "--unsafe")
    assert "a comment beside it still says 8" in done.stderr
    assert path.read_text() == apply_edits(
        FILES[name],
        [Edit(e["start"]["offset"], e["end"]["offset"], e["text"]) for e in finding["fix"]["edits"]],
    )
    path.write_text(FILES[name])
    done = cfglint("fix", path, *rule, "--unsafe", "--annotate")
    assert "still says" not in done.stderr
    text = path.read_text()
    assert text.count("when it was 8: ") == len(told)
    assert "# when it was 8: 8 samples" in text
    assert json.loads(text) if name.endswith(".ipynb") else text
    again = cfglint("fix", path, *rule, "--unsafe", "--annotate")
    assert (again.returncode, path.read_text()) == (0, text)


def test_toml(cfglint, tmp_path):
    text = '[training]\nlocal_batch_size = 8  # 8 samples, "all" of one GPU\n'
    text += '[model]\nname = "llama3"\nflavor = "8B"\n'
    path = tmp_path / "job.toml"
    path.write_text(text)
    rule = ["--select", "CLI", "--rule", "micro_batch_size <= 4", "--no-detect", "--framework", "torchtitan"]
    done = cfglint("fix", path, *rule, "--unsafe", "--annotate")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        path.read_text()
        .splitlines()[1]
        .startswith('local_batch_size = 4  # when it was 8: 8 samples, "all" of one GPU  # cfglint: was 8')
    )
