"""The verdict and the errors on memory say the same: out of memory is an error finding, and the reverse."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from cfglint.boundary import Boundary
from cfglint.command import inputs
from cfglint.document.reading import Library, read, read_text
from cfglint.engine.judge import decides
from cfglint.engine.run import _DOUBTED, Run
from cfglint.hardware.target import parse_target
from golden import CASES, all_cases, page_of
from tiers import mostly_long

if TYPE_CHECKING:
    from pathlib import Path

    from cfglint.document.tree import File
    from cfglint.lang.pack import Pack

GPUS = ("rtx-3060:1", "h100-sxm:8")
EXAMPLES = sorted((CASES.parents[1] / "examples").glob("*.[ysl]*"))  # not rules
CODES = sorted(path.stem for path in CASES.glob("*.md"))
DECIDING = [code for code in CODES if code.startswith("MEM")]  # of whose configs many run out of memory
OTHERS = [code for code in CODES if code not in DECIDING]
FACTS: dict[str, tuple[object, ...]] = {
    "micro_batch_size": (1, 4, 32),
    "seq_len": (512, 4096, 32768),
    "gradient_checkpointing": ("full", "none"),
    "lora_rank": (0, 16),
    "quantization": ("none", "4"),
    "train_backend": ("ddp", "fsdp", "deepspeed"),
    "zero_stage": (0, 2, 3),
    "num_gpus": (1, 2, 8),
    "attn_impl": ("flash", "eager"),
    "optimizer": ("adamw", "adamw_8bit"),
    "mem_fraction": (0.05, 0.3, 0.9, 0.99),
    "max_prompt_len": (256, 4096),
    "max_new_tokens": (256, 8192),
    "max_concurrent": (8, 512),
    "context_length": (2048, 131072),
    "kv_pool_tokens": (10_000, 10_000_000),
    "colocated": ("true", "false"),
    "sleep_mode": ("true", "false"),
    "train_offload": ("true", "false"),
    "enforce_eager": ("true", "false"),
    "rollout_tp": (1, 2, 8),
    "rollout_dtype": ("bf16", "fp32", "fp8"),
}
MODELS = (
    "Qwen/Qwen2.5-0.5B",
    "Qwen/Qwen2.5-7B-Instruct",
    "Qwen/Qwen2.5-72B",
    "Qwen/Qwen3-30B-A3B",
    "acme/own-8b",
)


def _agree(pack: Pack, file: File, library: Library | None = None, ram: int = 0) -> set[str]:
    """Check a file on GPUs of several sizes in a machine with ``ram`` bytes, and return the verdicts."""
    deciding = {rule.code for rule in pack.rules if decides(rule)}
    given: dict[str, tuple[object, str]] = {"host.ram": (ram, "test")} if ram else {}
    targets = [parse_target(gpu) for gpu in GPUS]
    run = Run(pack, targets, library=library or Library(lambda *_: None), given=given)
    run.add(file, explicit=False)
    report = run.report
    sections = {job.start for job in report.jobs}
    for job in report.jobs if len(sections) == 1 else ():  # findings do not say of which section they are
        target = job.memory.target
        told = [f for f in report.findings if f.code in deciding and f.target in (target, None)]
        errors = [f.code for f in told if f.level == "error"]
        assert (job.memory.verdict == "oom") is bool(errors), (file.path, target, job.memory, errors)
        # What the numbers alone call out of memory breaks a rule, too, whose finding is then less sure.
        assert job.memory.ask != _DOUBTED or told, (file.path, target, job.memory)
    return {job.memory.verdict for job in report.jobs}


def _generated(seed: int) -> str:
    """Return a job in cfglint's own names, most facts left out or not as it happens."""
    chosen = random.Random(seed)
    task = chosen.choice(("sft", "dpo", "grpo", "inference"))
    facts: dict[str, object] = {"cfglint": "facts", "model_path": chosen.choice(MODELS), "task": task}
    if task in ("grpo", "inference"):
        facts["rollout_engine"] = chosen.choice(("vllm", "sglang", "hf"))
    for name, values in FACTS.items():
        value = chosen.choice(values)
        if chosen.random() < 0.7:
            facts[name] = value
    return "".join(f"{name}: {value}\n" for name, value in facts.items())


def test_of_generated_jobs(pack: Pack) -> None:
    verdicts: set[str] = set()
    for seed in range(80):
        verdicts |= _agree(pack, read_text(_generated(seed), "job.yaml"), ram=seed % 3 << 34)
    assert verdicts == {"fits", "tight", "oom", "unknown"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_of_examples(pack: Pack, path: Path) -> None:
    _agree(pack, read(path.read_bytes(), str(path)), Library(inputs.second, Boundary([str(path.parent)])))


@pytest.mark.parametrize("code", [*DECIDING, *mostly_long(OTHERS, 20)])
def test_of_cases(pack: Pack, code: str, tmp_path: Path) -> None:
    for name, text in page_of(code).files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    library = Library(inputs.second, Boundary([str(tmp_path)]))
    for case in (case for case in all_cases() if case.code == code):
        _agree(pack, read(case.data, str(tmp_path / case.name)), library)
