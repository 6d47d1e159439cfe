"""What is not judged says the one thing to type, or the plain reason that there is none: over all cases."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cfglint.document.tree import split_key
from cfglint.lang.pack import load
from golden import CASES, Terminal, page_of, terminal  # noqa: F401
from tiers import LONG

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(path.stem for path in CASES.glob("*.md"))
TARGETS = (["--gpu", "a40"], ["--gpu", "rtx-4090:2"], [])
KEY = re.compile(r"add --set ([^=\s]+)=\S+")
KEYS = re.compile(r"add --set KEY=VALUE for (.+?)(?: and \d+ more; cfglint facts lists them)?$")
FACT = re.compile(r"try cfglint fit --vary ([^=\s]+)=\S+$")
FLAGS = ("add :N to --gpu", "add --gpu NAME", "add --model-config PATH", "add --hardware FILE", "use --gpu ")
REASONS = re.compile(
    r"cfglint does not model \S"
    r"|cfglint cannot read \S"
    r"|the file \S+ is named, but not here$"
    r"|the file that starts the job says which model it is$"
    r"|a value has another type than its key takes$"
    r"|the command ends before its last flags$"
    r"|it takes \d+ GPUs of a machine"
    r"|it would run out of memory, but what it rests on may not hold$"
    r"|nothing says the command's "  # and no fact stands for it
    r"|.*\? (?:check the script|the command takes some)"
)


def helps(ask: str, facts: object) -> bool:
    """Whether an ask holds something to type that cfglint takes, or says that nothing helps."""
    if any(flag in ask for flag in FLAGS) or REASONS.match(ask):
        return True
    if several := KEYS.search(ask):
        return all(split_key(key) for key in several[1].split(", "))
    if one := KEY.search(ask):
        return bool(split_key(one[1]))
    fact = FACT.search(ask)
    return fact is not None and fact[1] in facts  # type: ignore[operator]


def unjudged(terminal: Terminal, folder: Path, flags: list[str]) -> list[tuple[str, str | None]]:  # noqa: F811
    _, page = terminal.run("check", folder, [".", "--no-detect", "--isolated", "--format", "json", *flags])
    return [(job["path"], job["ask"]) for job in json.loads(page)["jobs"] if job["verdict"] == "unknown"]


@pytest.mark.parametrize("code", PAGES if LONG else PAGES[::8])
def test_what_is_not_judged_says_what_to_type_or_why_not(code, terminal, tmp_path):  # noqa: F811
    for name, text in page_of(code).files.items():
        if not name.endswith(".rules"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
    facts = load().facts
    for path, ask in unjudged(terminal, tmp_path, TARGETS[PAGES.index(code) % len(TARGETS)]):
        assert ask, path
        assert helps(ask, facts), (path, ask)


def test_examples_too(terminal):  # noqa: F811
    facts = load().facts
    for flags in TARGETS:
        for path, ask in unjudged(terminal, ROOT / "examples", flags):
            assert ask, path
            assert helps(ask, facts), (path, ask)


@pytest.mark.parametrize("ask", ["", "dtype", "nothing says dtype", "try cfglint fit --vary no.such=1"])
def test_a_bare_name_is_no_answer(ask):
    assert not helps(ask, load().facts)


OWN = (
    "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-0.5B --learning_rate 1e-5 "
    "--max_length 1024\n"
)
ANSWERS = {"gradient_checkpointing": "true", "per_device_train_batch_size": "1", "zero_stage": "2"}
ANSWERS["task"] = "sft"


def test_answers_lead_to_a_verdict(terminal, tmp_path):  # noqa: F811
    """A program of one's own is judged once each thing that is asked for has been typed."""
    (tmp_path / "run.sh").write_text(OWN, encoding="utf-8")
    flags = ["--gpu", "a40:8"]
    ((_, ask),) = unjudged(terminal, tmp_path, flags)
    for key in KEYS.search(ask)[1].split(", "):
        flags += ["--set", f"{key}={ANSWERS[key]}"]
    for _ in range(3):
        _, page = terminal.run("fit", tmp_path, ["run.sh", "--no-detect", "--isolated", *flags])
        wanted = [fact for line in page.splitlines() if (fact := FACT.search(line))]
        if not wanted:
            break
        flags += ["--vary", f"{wanted[0][1]}={ANSWERS[wanted[0][1]]}"]
    assert flags[-2:] == ["--vary", "task=sft"]
    assert re.search(r" sft +fits ", page)
