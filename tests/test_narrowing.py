"""Where a verdict rests on a range: cases of attention kernels, and the fact that narrows the range most."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from golden import terminal  # noqa: F401 (a fixture)

if TYPE_CHECKING:
    from pathlib import Path

LONG = (
    "model_name_or_path: {model}\ndataset_name: d\nmax_length: {length}\npacking: true\n"
    "per_device_train_batch_size: 1\nattn_implementation: ${{oc.env:NOT_SET}}\noutput_dir: o\n"
    "accelerate_config: zero3\n"
)
AXOLOTL = (
    "base_model: Qwen/Qwen2.5-7B\ndatasets: [{path: d, type: alpaca}]\nsequence_len: 32768\nlora_r: 8\n"
    "adapter: lora\nlora_target_linear: true\nmicro_batch_size: 1\nsample_packing: true\nbf16: true\n"
    "gradient_checkpointing: true\nattn_implementation: ${NOT_SET}\n"
)


def job(terminal, folder: Path, text: str, *flags: str, name: str = "a.yaml") -> dict:  # noqa: F811
    (folder / name).write_text(text, encoding="utf-8")
    words = [name, "--no-detect", "--gpu", "a100-80gb-sxm:8", *flags, "--format", "json"]
    return json.loads(terminal.run("check", folder, words)[1])["jobs"][0]


# ── the attention kernel ───────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("model", "kernels", "ask"),
    [
        ("Qwen/Qwen2.5-7B", ["sdpa", "eager"], "attn_implementation=sdpa"),
        ("openai/gpt-oss-20b", ["eager", "flash_attention_2"], "attn_implementation=eager"),
    ],
)
def test_a_kernel_that_matters_makes_cases_the_default_first(terminal, tmp_path, model, kernels, ask):  # noqa: F811
    found = job(terminal, tmp_path, LONG.format(model=model, length=16384))
    assert [case["given"]["attn_impl"] for case in found["cases"]] == kernels
    assert f"--set {ask}" in found["ask"]
    told = job(terminal, tmp_path, LONG.format(model=model, length=16384), "--set", ask)
    assert not told["cases"]
    assert told["need_gib"] == pytest.approx(found["cases"][0]["need_gib"])


def test_a_kernel_of_short_sequences_makes_none(terminal, tmp_path):  # noqa: F811
    text = LONG.format(model="Qwen/Qwen2.5-7B", length=1024)
    found, ends = job(terminal, tmp_path, text), []
    assert (found["verdict"], found["cases"]) == ("fits", [])
    for kernel in ("sdpa", "eager"):
        ends += job(terminal, tmp_path, text, "--set", f"attn_implementation={kernel}")["need_gib"]
    assert found["need_gib"] == pytest.approx([min(ends), max(ends)], rel=0.02)


def test_a_kernel_is_asked_for_by_the_key_of_the_framework(terminal, tmp_path):  # noqa: F811
    assert "--set attn_implementation=sdpa" in job(terminal, tmp_path, AXOLOTL)["ask"]


def test_a_default_without_sdpa_is_eager(terminal, tmp_path):  # noqa: F811
    text = LONG.format(model="openai/gpt-oss-20b", length=4096).replace("${oc.env:NOT_SET}", "null")
    eager = job(terminal, tmp_path, text, "--set", "attn_implementation=eager")
    flash = job(terminal, tmp_path, text, "--set", "attn_implementation=flash_attention_2")
    assert job(terminal, tmp_path, text)["need_gib"] == eager["need_gib"] > flash["need_gib"]


def test_an_upper_end_that_says_nothing_is_not_told(terminal, tmp_path):  # noqa: F811
    text = LONG.format(model="Qwen/Qwen2.5-72B", length=32768)
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    page = terminal.run("check", tmp_path, ["a.yaml", "--no-detect", "--gpu", "a100-80gb-sxm:8"])[1]
    assert "OUT OF MEMORY with each attention kernel (sdpa, eager): at least" in " ".join(page.split())


# ── what narrows a range ───────────────────────────────────────────────────────────────────────────────────
TIGHT = LONG.format(model="Qwen/Qwen2.5-7B", length=8192).replace("${oc.env:NOT_SET}", "sdpa")
TIGHT = TIGHT.replace("device_train_batch_size: 1", "device_train_batch_size: 4")
SHARE = re.compile(r"([\d.]+) of the range's ([\d.]+) GiB")


def shares(ask: str) -> tuple[float, float]:
    found = SHARE.search(ask)
    assert found is not None, ask
    return float(found[1]), float(found[2])


def test_the_fact_that_narrows_most_is_asked_for(terminal, tmp_path):  # noqa: F811
    found = job(terminal, tmp_path, TIGHT)
    assert found["verdict"] == "tight"
    assert found["ask"].endswith("which version of TRL? add --framework trl==VERSION")
    gain, whole = shares(found["ask"])
    low, high = found["need_gib"]
    assert whole == pytest.approx(high - low, abs=0.6)
    widths = []
    for version in ("1.16.0", "1.0.0"):
        ends = job(terminal, tmp_path, TIGHT, "--framework", f"trl=={version}")["need_gib"]
        widths.append(ends[1] - ends[0])
    assert min(widths) <= whole - gain <= max(widths) + 0.6


def test_what_nobody_can_type_is_named(terminal, tmp_path):  # noqa: F811
    text = (
        "cfglint: facts\nmodel_path: Qwen/Qwen2.5-7B\ntask: sft\nnum_gpus: 8\ndp_shard: 8\n"
        "seq_len: 32768\ngradient_checkpointing: full\ndtype: bf16\nparam_dtype: bf16\n"
    )
    ask = job(terminal, tmp_path, text)["ask"]
    assert ask.endswith(" GiB: bytes that the loss keeps per logit")
    gain, whole = shares(ask)
    assert gain >= whole / 3


def test_a_key_that_is_there_is_not_asked_for(terminal, tmp_path):  # noqa: F811
    text = AXOLOTL.replace("Qwen/Qwen2.5-7B", "Qwen/Qwen3-30B-A3B").replace("${NOT_SET}", "sdpa")
    text = text.replace("32768", "4096").replace("adapter: lora\n", "").replace("lora_r: 8\n", "")
    text += (
        "expert_parallel_size: 4\ndp_shard_size: 2\nfsdp_version: 2\nfsdp_config: {}\n"
        "gradient_accumulation_steps: 1\noptimizer: adamw_torch\nlearning_rate: 1e-5\n"
    )
    assert "--set dp_shard_size" not in (job(terminal, tmp_path, text)["ask"] or "")


def test_what_fits_asks_nothing_and_loads_nothing(terminal, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr("cfglint.engine.memory._narrowing", None)
    text = LONG.format(model="Qwen/Qwen2.5-0.5B", length=1024).replace("${oc.env:NOT_SET}", "sdpa")
    assert job(terminal, tmp_path, text)["ask"] is None


def test_a_table_of_many_targets_has_the_question_alone(terminal, tmp_path):  # noqa: F811
    (tmp_path / "a.yaml").write_text(TIGHT, encoding="utf-8")
    page = " ".join(terminal.run("fit", tmp_path, ["a.yaml", "--gpu", "all"])[1].split())
    assert "which version of TRL? add --framework trl==VERSION" in page
    assert not re.search(r"of the range's", page)


# ── the model is asked for by the framework's key ──────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("framework", "text", "key"),
    [
        ("axolotl", "datasets: [{path: d, type: alpaca}]\nsequence_len: 512\n", "base_model"),
        ("llamafactory", "stage: sft\ndataset: d\nfinetuning_type: lora\n", "model_name_or_path"),
        ("trl", "dataset_name: d\nmax_length: 512\n", "model_name_or_path"),
        ("trl", "model_name_or_path: /data/own\ndataset_name: d\nmax_length: 512\n", ""),
    ],
)
def test_a_model_is_asked_for_by_its_key(terminal, tmp_path, framework, text, key):  # noqa: F811
    ask = job(terminal, tmp_path, text, "--framework", framework)["ask"]
    assert ask.startswith(f"which model? add {f'--set {key}=NAME' if key else '--model-config PATH'}")
