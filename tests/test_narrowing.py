"""Where a verdict rests on a range: cases of attention kernels, and the fact that narrows the range most."""

from __future__ import annotations

import json
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
