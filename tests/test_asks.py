"""What is not judged says the one thing to type, or the plain reason that there is none: over all cases."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from cfglint.document.tree import split_key
from cfglint.lang.pack import load
from golden import CASES, Terminal, page_of, terminal  # noqa: F401
from tiers import LONG

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from asks import ASKS, VERDICTS, a_model, walks

SHARED = os.environ.get("CFGLINT_SHARED")
ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(path.stem for path in CASES.glob("*.md"))
TARGETS = (["--gpu", "a40"], ["--gpu", "rtx-4090:2"], [])
KEY = re.compile(r"add --set ([^=\s]+)=\S+")
FLAGS = ("add :N to --gpu", "add --gpu ", "add --model-config PATH", "add --hardware FILE", "use --gpu ")
FRAMEWORK = re.compile(r"--framework (\w+) if (?:it keeps those|\S+ keeps the defaults) of \1$")
REASONS = re.compile(
    r"cfglint does not model \S"
    r"|it neither trains nor generates, and only that is modelled$"
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


def helps(ask: str, pack: object) -> bool:
    """Whether an ask holds something to type that cfglint takes, or says that nothing helps."""
    if any(flag in ask for flag in FLAGS) or (REASONS.match(ask) and "add " not in ask):
        return True
    framework = FRAMEWORK.search(ask)
    if framework is not None:
        return framework[1] in pack.frameworks  # type: ignore[attr-defined]
    keys = re.findall(r"--set ([^=\s]+)=\S+", ask) if "add --set " in ask else []
    return bool(keys) and all(split_key(key) for key in keys)


def unjudged(terminal: Terminal, folder: Path, flags: list[str]) -> list[tuple[str, str | None]]:  # noqa: F811
    _, page = terminal.run("check", folder, [".", "--no-detect", "--isolated", "--format", "json", *flags])
    return [(job["path"], job["ask"]) for job in json.loads(page)["jobs"] if job["verdict"] == "unknown"]


@pytest.mark.parametrize("code", PAGES if LONG else PAGES[::24])
def test_what_is_not_judged_says_what_to_type_or_why_not(code, terminal, tmp_path):  # noqa: F811
    for name, text in page_of(code).files.items():
        if not name.endswith(".rules"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
    pack = load()
    for path, ask in unjudged(terminal, tmp_path, TARGETS[PAGES.index(code) % len(TARGETS)]):
        assert ask, path
        assert helps(ask, pack), (path, ask)


def test_examples_too(terminal):  # noqa: F811
    pack = load()
    for flags in TARGETS:
        for path, ask in unjudged(terminal, ROOT / "examples", flags):
            assert ask, path
            assert helps(ask, pack), (path, ask)


@pytest.mark.parametrize(
    "ask", ["", "dtype", "nothing says dtype", "add --framework nobody if it keeps those of nobody"]
)
def test_a_bare_name_is_no_answer(ask):
    assert not helps(ask, load())


OWN = (
    "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-0.5B --learning_rate 1e-5 "
    "--max_length 1024\n"
)
OWN_TRAINER = (
    "deepspeed llava/train/train_mem.py --model_name_or_path $MODEL --output_dir out --bf16 True "
    "--per_device_train_batch_size 4 --logging_steps 1 --model_max_length 2048 --lora_enable True\n"
)
FROZEN = OWN_TRAINER.replace("--lora_enable True", "--tune_mm_mlp_adapter True")
AXOLOTL = (
    "base_model: Qwen/Qwen2.5-0.5B\ndatasets: [{path: a, type: alpaca}]\nsequence_len: 1024\n"
    "micro_batch_size: 1\ndeepspeed: own.json\n"
)


@pytest.mark.parametrize(
    ("name", "text"),
    [("own.sh", OWN), ("trainer.sh", OWN_TRAINER), ("frozen.sh", FROZEN), ("job.yaml", AXOLOTL)],
)
def test_answers_lead_to_a_verdict(tmp_path, name, text):
    """A job is judged once each thing that is asked for has been typed, which is at most three."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    with a_model() as model:
        (walk,) = walks(str(tmp_path / name), "a40:8", model)
    assert walk.end in VERDICTS, walk
    assert 1 <= len(walk.asks) <= ASKS


@pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no folder of real configs")
def test_asks_for_real_configs_end_in_a_verdict_or_a_reason():
    corpus = Path(SHARED or ".") / "corpus"
    paths = sorted(path for path in corpus.rglob("*") if path.suffix in (".sh", ".yaml", ".yml"))
    with a_model() as model:
        ends = [
            walk
            for path in (paths if LONG else paths[::60])
            for gpu in (("a100-80gb-sxm:8", "rtx-4090") if LONG else ("rtx-4090",))
            for walk in walks(str(path), gpu, model)
        ]
    assert any(walk.asks for walk in ends)
    assert [walk for walk in ends if walk.end == "dead end"] == []


OWN = """\
from dataclasses import dataclass, field

from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class Args:
    model_name: str = field(default="google/gemma-2b-it")
    length: int = field(default=1024)


args = HfArgumentParser(Args).parse_args_into_dataclasses()[0]
model = AutoModelForCausalLM.from_pretrained(args.model_name, torch_dtype="bfloat16")
given = TrainingArguments(output_dir="out", per_device_train_batch_size=1, bf16=True)
Trainer(model=model, args=given).train()
"""
TYPED = ["--set", "task=sft", "--set", "seq_len=1024"]


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ([], "fits"),
        (["--set", "model_name=meta-llama/Llama-3.1-70B"], "tight"),
        (["--set", "model_name=o/nobody"], "unknown"),
    ],
)
def test_a_flag_of_the_program_may_be_typed(cfglint, tmp_path, more, verdict):
    """Its other flags keep their defaults, and no case of defaults is ever out of memory."""
    (tmp_path / "train.py").write_text(OWN)
    words = ["--gpu", "a100-80gb-sxm:1", "--format", "json", *TYPED, *more]
    out = cfglint("check", str(tmp_path / "train.py"), *words).stdout
    (job,) = json.loads(out)["jobs"]
    assert job["verdict"] == verdict


@pytest.mark.parametrize(("head", "there"), [("CausalLM", True), ("SequenceClassification", False)])
def test_a_reward_model_has_no_logits(cfglint, tmp_path, head, there):
    (tmp_path / "train.py").write_text(OWN.replace("CausalLM", head))
    typed = ["--set", "seq_len=8192", *(["--set", "task=sft"] if there else [])]
    page = cfglint("fit", str(tmp_path / "train.py"), "--gpu", "a100-80gb-sxm:1", *typed).stdout
    assert ("L logits" in page) is there


def test_a_key_that_a_program_does_not_read_is_refused(cfglint, tmp_path):
    (tmp_path / "train.py").write_text(OWN)
    words = ["check", str(tmp_path / "train.py"), "--gpu", "a40", *TYPED]
    done = cfglint(*words, "--set", "max_length=4096")
    assert done.returncode == 2
    assert "nothing here reads max_length" in done.stderr
    for typed in ("length=N", "lora_targets=[A,B]", "attn_implementation=VALUE"):
        done = cfglint(*words, "--set", typed)
        assert (done.returncode, "stands for" in done.stderr) == (2, True), typed
    for typed in ("length=512", "learning_rate=1e-5", "attn_implementation=sdpa"):
        assert cfglint(*words, "--set", typed).returncode < 2, typed


LOOP = """\
import argparse

import deepspeed
from transformers import AutoModelForCausalLM

parser = argparse.ArgumentParser()
for name in ("model_name_or_path", "per_device_train_batch_size", "max_seq_len", "lr", "zero_stage"):
    parser.add_argument(f"--{name}")
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained(args.model_name_or_path)
engine, *_ = deepspeed.initialize(args=args, model=model)
"""
LAUNCH = (
    "deepspeed main.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 "
    "--max_seq_len 1024 --lr 1e-5 --zero_stage 3\n"
)


@pytest.mark.parametrize(
    ("more", "ask"),
    [
        ("", None),
        ("reward_model = AutoModelForCausalLM.from_pretrained('o/judge')\n", "task"),
        ("teacher = load(args)\n", "task"),
        ("chosen, rejected = batch\n", "task"),
    ],
)
def test_a_loop_of_ones_own_trains_one_model_where_its_program_names_no_other(cfglint, tmp_path, more, ask):
    (tmp_path / "main.py").write_text(LOOP + more)
    (tmp_path / "run.sh").write_text(LAUNCH)
    words = ["check", str(tmp_path / "run.sh"), "--gpu", "h100-sxm:8", "--format", "json"]
    (job,) = json.loads(cfglint(*words).stdout)["jobs"]
    assert (job["verdict"] == "fits") is (ask is None)
    assert ask is None or f"--set {ask}=" in job["ask"]


BEHIND = """\
import transformers
from transformers import Trainer
from . import chats

def train():
    parser = transformers.HfArgumentParser(transformers.TrainingArguments)
    model = transformers.AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
    Trainer(model=model, args=parser.parse_args_into_dataclasses()[0], train_dataset=chats.read()).train()
"""


@pytest.mark.parametrize(
    ("more", "task"),
    [
        ("", "sft"),
        ("teacher = transformers.AutoModelForCausalLM.from_pretrained('o/judge')\n", None),
        (
            "class Longest(Trainer):\n    def get_sampler(self):\n        return self.longest\n",
            "sft",
        ),
        ("class Pairs(Trainer):\n    def compute_loss(self, model):\n        return self.ref_model\n", None),
        ("from .pairs import PairsTrainer\n", None),
        ("from transformers import AutoModelForSequenceClassification\n", None),
    ],
)
def test_what_lies_behind_the_module_that_makes_a_trainer_is_not_asked(cfglint, tmp_path, more, task):
    project = tmp_path / "project"
    project.mkdir()
    (project / "__init__.py").write_text("")
    many = [f"part{n}" for n in range(30)]  # more than are read
    (project / "chats.py").write_text("".join(f"from . import {name}\n" for name in many))
    for name in many:
        (project / f"{name}.py").write_text("chosen, rejected, reward_model = 1, 2, 3\n")
    (project / "train.py").write_text(BEHIND + more)
    (tmp_path / "main.py").write_text("from project.train import train\n\ntrain()\n")
    flags = "--output_dir out --per_device_train_batch_size 1 --learning_rate 1e-5 --bf16 True"
    (tmp_path / "run.sh").write_text(f"torchrun --nproc_per_node 8 main.py {flags}\n")
    words = ["facts", str(tmp_path / "run.sh"), "--gpu", "h100-sxm:8", "--format", "json"]
    (job,) = json.loads(cfglint(*words).stdout)["jobs"]
    assert job["facts"].get("task", {}).get("value") == task


def test_a_path_whose_folder_is_not_known_names_its_model_and_is_not_null(cfglint, tmp_path):
    """`${HOME}/models/Qwen/…` is surely a text: a rule that asks whether the key is set goes on with it."""
    script = (
        "MODEL=${HOME}/models/Qwen/Qwen2.5-0.5B\n"
        'python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path="$MODEL" '
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 trainer.n_gpus_per_node=8 trainer.nnodes=1\n"
    )
    (tmp_path / "run.sh").write_text(script)
    words = ["facts", str(tmp_path / "run.sh"), "--gpu", "h100-sxm:8", "--format", "json"]
    assert '"model.params"' in cfglint(*words).stdout


CHAINED = (
    "deepspeed train.py --model_name_or_path $MODEL --output_dir out --bf16 True --logging_steps 1 "
    "--per_device_train_batch_size 4 --model_max_length 2048 --lora_enable True --deepspeed zero2.json\n"
)


def test_all_that_a_verdict_lacks_is_asked_at_once(tmp_path):
    (tmp_path / "run.sh").write_text(CHAINED)
    with a_model() as model:
        (walk,) = walks(str(tmp_path / "run.sh"), "a100-80gb-sxm:8", model)
    assert walk.end in VERDICTS, walk
    (ask,) = walk.asks
    assert ask.startswith("which model? add --set model_name_or_path=NAME")
    assert ask.endswith(", and --framework transformers if train.py keeps the defaults of transformers")
