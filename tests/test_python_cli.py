"""Programs in Python on the command line: which are found, fixes in place, and what starts them."""

import json
import textwrap

import pytest

from cfglint.cli import main

PROGRAM = """
import argparse
import torch
from peft import LoraConfig
from transformers import AutoModelForCausalLM
from trl import SFTConfig, SFTTrainer

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="Qwen/Qwen2.5-7B")
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--rank", type=int, default=16)
parser.add_argument("--optim", default="adamw_torch")


def train(args):
    model = AutoModelForCausalLM.from_pretrained(args.model, torch_dtype=torch.bfloat16)
    config = SFTConfig(
        output_dir="out",
        max_length=1024,
        gradient_checkpointing=True,
        bf16=True,
        per_device_train_batch_size=args.batch,
        optim=args.optim,
    )
    adapter = LoraConfig(r=args.rank)
    SFTTrainer(model=model, args=config, peft_config=adapter).train()


if __name__ == "__main__":
    train(parser.parse_args())
"""
PLAIN = """
from trl import SFTConfig, SFTTrainer

args = SFTConfig(output_dir="out", bf16=True, fp16=True, max_length=512)
SFTTrainer(model="Qwen/Qwen2.5-7B", args=args).train()
"""
RULES = ["--rule", "lora_rank <= 8", "--rule", "micro_batch_size <= 2", "--select", "CLI"]


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"))


def report(capsys, *words):
    main(["check", "--no-detect", "--isolated", "--format", "json", *words])
    return json.loads(capsys.readouterr().out)


def found(capsys, *words):
    return {(f["code"], f["path"], f["start"]["line"]) for f in report(capsys, *words)["findings"]}


def test_programs_that_train_are_found_in_folders(folder, capsys):
    write(
        folder,
        a_DOT_py=PLAIN,
        b_DOT_py="print('SFTConfig')\n",
        c_DOT_py="import torch\n",
        d__e_DOT_py="def SFTConfig(): pass\nSFTConfig()\n",
    )
    told = report(capsys, ".")
    assert {(f["code"], f["path"]) for f in told["findings"]} == {("PRC130", "a.py")}
    assert (told["summary"]["files"], told["summary"]["skipped"]) == (1, 2)  # b.py and d/e.py name the class
    assert main(["check", "--no-detect", "b.py"]) == 2
    assert main(["check", "--no-detect", "--skip-unknown", "b.py"]) == 0


def test_a_fix_edits_the_literal(folder):
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": PLAIN.splitlines(keepends=True)}]
    before = {"a.py": PLAIN, "b.ipynb": json.dumps({"cells": cells, "nbformat": 4}, indent=1)}
    for name, text in before.items():
        (folder / name).write_text(text)
    rules = ["--rule", "$.max_length <= 256", "--rule", "micro_batch_size <= 2", "--select", "CLI"]
    main(["fix", "--no-detect", "--isolated", "--unsafe", *rules, *before])
    after = {name: (folder / name).read_text() for name in before}
    batch = "per_device_train_batch_size=2, gradient_accumulation_steps=4"  # 8 in all, as by default
    assert after["a.py"] == PLAIN.replace("512)", f"256, {batch})")
    assert after["b.ipynb"] == before["b.ipynb"].replace("512)", f"256, {batch})")


def test_a_comment_switches_a_rule_off(folder, capsys):
    write(folder, a_DOT_py=PLAIN.replace("max_length=512)", "max_length=512)  # cfglint: ignore[PRC130]"))
    assert found(capsys, "a.py") == set()


@pytest.mark.parametrize(
    "start", ["python train.py", "torchrun --nproc_per_node 2 train.py", "uv run train.py"]
)
def test_a_command_and_its_program_are_one_job(folder, capsys, start):
    write(folder, train_DOT_py=PROGRAM, run_DOT_sh=f"{start} --batch 8\n")
    assert found(capsys, "run.sh", *RULES) == {("CLI001", "run.sh", 1), ("CLI002", "run.sh", 1)}
    write(folder, run_DOT_sh=f"{start} --batch 1 --rank 4\n")
    assert found(capsys, "run.sh", *RULES) == set()
    write(folder, run_DOT_sh=f'{start} --rank 32 "${{MORE[@]}}"\n')  # which may say --batch
    assert found(capsys, "run.sh", *RULES) == {("CLI001", "run.sh", 1)}


def test_a_program_by_itself_says_what_it_says(folder, capsys):
    write(folder, train_DOT_py=PROGRAM)
    assert found(capsys, "train.py", *RULES) == set()  # its flags say the rest
    write(folder, train_DOT_py=PROGRAM.replace("r=args.rank", "r=64"))
    assert found(capsys, "train.py", *RULES) == {("CLI001", "train.py", 24)}


def test_argparse_takes_flags_cut_short(folder, capsys):
    long = PROGRAM.replace('"--batch"', '"--batch_size"').replace("args.batch,", "args.batch_size,")
    long = long.replace("default=4", "default=1")
    write(folder, train_DOT_py=long, run_DOT_sh="python train.py --batch_si 8 --rank 4\n")
    assert found(capsys, "run.sh", *RULES) == {("CLI002", "run.sh", 1)}
    write(folder, run_DOT_sh="python train.py --batch 8 --rank 4\n")  # a word may be another class's argument
    assert found(capsys, "run.sh", *RULES) == set()


def test_a_fix_of_a_flag_is_in_the_script(folder):
    write(folder, train_DOT_py=PROGRAM, run_DOT_sh="python train.py --batch 8 --rank 8\n")
    main(["fix", "--no-detect", "--unsafe", "run.sh", "--rule", "micro_batch_size <= 2", "--select", "CLI"])
    text = (folder / "run.sh").read_text()
    assert text.startswith("python train.py --batch 2 --rank 8")
    assert "--per_device_train_batch_size" not in text  # which the program does not take


def test_the_program_is_looked_for_where_people_start_it(folder, capsys):
    write(folder, jobs__run_DOT_sh="python src/train.py --batch 8\n", src__train_DOT_py=PROGRAM)
    assert ("CLI001", "jobs/run.sh", 1) in found(capsys, "jobs/run.sh", *RULES)
    write(folder, jobs__run_DOT_sh="python -m src.train --batch 8\n")
    assert ("CLI001", "jobs/run.sh", 1) in found(capsys, "jobs/run.sh", *RULES)
    write(folder, jobs__src__train_DOT_py=PROGRAM.replace("16", "4"))
    assert report(capsys, "--skip-unknown", "jobs/run.sh", *RULES)["findings"] == []  # it may be either


def test_a_program_outside_of_the_repository_is_not_read(folder, capsys):
    write(
        folder,
        repo__run_DOT_sh="python ../train.py --batch 8\npython link.py --batch 8\n",
        train_DOT_py=PROGRAM,
    )
    (folder / "repo" / ".git").mkdir()
    (folder / "repo" / "link.py").symlink_to("../train.py")
    assert report(capsys, "--skip-unknown", "repo/run.sh", *RULES)["findings"] == []


def test_dataclasses_are_flags(folder, capsys):
    program = """
        from dataclasses import dataclass, field
        from peft import LoraConfig
        from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

        @dataclass
        class Lora:
            lora_rank: int = field(default=64)

        @dataclass
        class Arguments(TrainingArguments):
            per_device_train_batch_size: int = 3

        args, lora = HfArgumentParser((Arguments, Lora)).parse_args_into_dataclasses()
        model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
        Trainer(model=model, args=args, peft_config=None)
        from trl import SFTTrainer
        SFTTrainer(model, args=args, peft_config=LoraConfig(r=lora.lora_rank))
    """.replace("        Trainer(model=model, args=args, peft_config=None)\n", "")
    write(folder, train_DOT_py=program, run_DOT_sh="torchrun --nproc_per_node 2 train.py --output_dir o\n")
    assert found(capsys, "run.sh", *RULES) == {("CLI001", "run.sh", 1), ("CLI002", "run.sh", 1)}
    write(
        folder,
        run_DOT_sh="torchrun --nproc_per_node 2 train.py --lora_rank 8 --per_device_train_batch_size 1\n",
    )
    assert found(capsys, "run.sh", *RULES) == set()


def test_fire_takes_parameters_as_flags(folder, capsys):
    program = """
        import fire
        from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

        def train(base: str = "Qwen/Qwen2.5-7B", micro: int = 4):
            args = TrainingArguments(output_dir="o", per_device_train_batch_size=micro)
            Trainer(model=AutoModelForCausalLM.from_pretrained(base), args=args)

        if __name__ == "__main__":
            fire.Fire(train)
    """
    write(folder, train_DOT_py=program, run_DOT_sh="python train.py --micro 2\n")
    rules = ["--rule", "micro_batch_size <= 2", "--select", "CLI"]
    assert found(capsys, "run.sh", *rules) == set()
    write(folder, run_DOT_sh="python train.py\n")
    assert found(capsys, "run.sh", *rules) == {("CLI001", "run.sh", 1)}


def test_the_config_of_a_hydra_program_is_its_base(folder, capsys):
    program = """
        import hydra

        @hydra.main(config_path="config", config_name="base", version_base=None)
        def main(config):
            print(config)
    """
    base = """
        data: {train_batch_size: 64, max_prompt_length: 512, max_response_length: 512}
        actor_rollout_ref:
          model: {path: Qwen/Qwen2.5-7B}
          actor: {ppo_mini_batch_size: 64, ppo_micro_batch_size_per_gpu: 16}
          rollout: {name: vllm, n: 4, log_prob_micro_batch_size_per_gpu: 8, tensor_model_parallel_size: 1}
          ref: {log_prob_micro_batch_size_per_gpu: 8}
        algorithm: {adv_estimator: grpo}
        trainer: {n_gpus_per_node: 8, nnodes: 1}
    """
    write(folder, my__main_DOT_py=program, my__config__base_DOT_yaml=base)
    write(folder, run_DOT_sh="python my/main.py actor_rollout_ref.rollout.n=8 trainer.nnodes=1\n")
    rules = ["--rule", "micro_batch_size <= 8", "--rule", "n_samples <= 4", "--select", "CLI"]
    told = report(capsys, "run.sh", *rules)["findings"]
    assert {(f["code"], f["start"]["line"]) for f in told} == {("CLI001", 1), ("CLI002", 1)}
    assert "my/config/base.yaml" in json.dumps(told)


def test_a_program_that_costs_too_much_hides_no_other(folder, capsys):
    write(folder, a_DOT_py=PLAIN, b_DOT_py="from trl import SFTConfig\nx = " + "-" * 20_000 + "1\n")
    assert {code for code, _, _ in found(capsys, ".")} == {"PRC130"}
    assert {code for code, _, _ in found(capsys, "a.py", "b.py")} == {"PRC130", "CFG023"}
    write(folder, run_DOT_sh="python b.py --output_dir o --per_device_train_batch_size 1 --bf16 --fp16\n")
    assert {code for code, _, _ in found(capsys, "run.sh")} == {"PRC130"}


def test_a_model_that_is_not_followed_leaves_its_flag(folder, capsys):
    program = PROGRAM.replace(
        "model = Auto", "from mine import load\n    model = load(args.model)\n    unused = Auto"
    )
    flag = 'parser.add_argument("--model_name_or_path")\n'
    write(folder, train_DOT_py=program.replace("\n\ndef train", f"{flag}\n\ndef train"))
    write(folder, run_DOT_sh="python train.py --model_name_or_path Qwen/Qwen2.5-7B --batch 8\n")
    rules = ["--rule", "model.layers <= 8", "--rule", "lora_rank >= 64", "--select", "CLI"]
    assert found(capsys, "run.sh", *rules) == {("CLI001", "run.sh", 1), ("CLI002", "run.sh", 1)}
    write(
        folder,
        train_DOT_py=program.replace(", peft_config=adapter", "").replace("\n\ndef", f"{flag}\n\ndef", 1),
    )
    assert found(capsys, "run.sh", *rules) == {("CLI001", "run.sh", 1)}  # it may have an adapter
