"""One program is of one framework, whichever launcher starts it: what it makes decides, and not its flags."""

import json

import pytest

LAUNCHERS = (
    "python",
    "accelerate launch --num_processes 8",
    "torchrun --nproc_per_node 8",
    "deepspeed --num_gpus 8",
    "composer -n 8",
    "srun python -u",
)
COMMON = "--model_name_or_path Qwen/Qwen2.5-0.5B --dataset_name a/b --output_dir out --bf16 true"
SIZED = f"{COMMON} --per_device_train_batch_size 1"
FLAGS = ("", SIZED, f"{SIZED} --max_seq_length 512 --packing true")
PARSED = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, {imported}
(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
"""
PROGRAMS = {
    "transformers": {
        "plain": PARSED.format(imported="Trainer, TrainingArguments")
        + "Trainer(model=model, args=args).train()\n",
        "collator of TRL": PARSED.format(imported="Trainer, TrainingArguments")
        + "from trl import DataCollatorForCompletionOnlyLM\n"
        + "Trainer(model=model, args=args, data_collator=DataCollatorForCompletionOnlyLM('x')).train()\n",
        "a trainer of its own": PARSED.format(imported="Trainer, TrainingArguments")
        + "class Own(Trainer):\n    pass\nOwn(model=model, args=args).train()\n",
        "not by flags": "from transformers import Trainer, TrainingArguments\n"
        "Trainer(model=load(), args=TrainingArguments('o', per_device_train_batch_size=2)).train()\n",
    },
    "trl": {
        "parser": "from trl import ModelConfig, SFTConfig, SFTTrainer, TrlParser\n"
        "args, model = TrlParser((SFTConfig, ModelConfig)).parse_args_and_config()\n"
        "SFTTrainer(model=model.model_name_or_path, args=args).train()\n",
        "arguments of transformers": PARSED.format(imported="TrainingArguments")
        + "from trl import SFTTrainer\nSFTTrainer(model=model, args=args).train()\n",
        "whole package": "import trl\n"
        "trl.DPOTrainer(model='Qwen/Qwen2.5-0.5B', args=trl.DPOConfig(output_dir='o')).train()\n",
    },
    "user_script": {
        "loop": "import argparse\nfrom transformers import AutoModelForCausalLM\n"
        "parser = argparse.ArgumentParser()\nparser.add_argument('--lr', type=float, default=1e-5)\n"
        "args = parser.parse_args()\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B')\n"
        "for batch in data():\n    model(**batch).loss.backward()\n",
    },
}


@pytest.mark.parametrize(
    ("framework", "text"), [(name, text) for name, each in PROGRAMS.items() for text in each.values()]
)
def test_the_launcher_does_not_say_which_framework_it_is(cfglint, folder, framework, text):
    (folder / "train.py").write_text(text)
    for flags in FLAGS:
        names = []
        for number, launcher in enumerate(LAUNCHERS):
            names.append(f"run{number}.sh")
            (folder / names[-1]).write_text(f"{launcher} train.py {flags}\n")
        done = cfglint("facts", *names, "--no-detect", "--format", "json")
        found = [job["framework"] for job in json.loads(done.stdout)["jobs"]]
        assert found == [framework] * len(LAUNCHERS), flags


def test_a_program_is_found_by_pythons_path_and_behind_a_variable(cfglint, folder):
    (folder / "src" / "own").mkdir(parents=True)
    (folder / "src" / "own" / "tune.py").write_text(PROGRAMS["trl"]["parser"])
    flags = FLAGS[1]
    (folder / "module.sh").write_text(f"export PYTHONPATH=src\npython -m own.tune {flags}\n")
    (folder / "variable.sh").write_text(f"torchrun --nproc_per_node 8 $ROOT/src/own/tune.py {flags}\n")
    done = cfglint("facts", "module.sh", "variable.sh", "--no-detect", "--format", "json")
    assert [job["framework"] for job in json.loads(done.stdout)["jobs"]] == ["trl", "trl"]


def test_the_trainer_may_be_a_modules(cfglint, folder):
    (folder / "own").mkdir()
    (folder / "own" / "trainer.py").write_text(
        "from transformers import Trainer\nclass Own(Trainer):\n    pass\n"
    )
    (folder / "own" / "main.py").write_text(
        "from .trainer import Own\ndef main():\n    Own(args=read()).train()\n"
    )
    (folder / "train_mem.py").write_text("from own.main import main\nmain()\n")
    for launcher in LAUNCHERS:
        (folder / "run.sh").write_text(f"{launcher} train_mem.py {FLAGS[2]}\n")
        done = cfglint("facts", "run.sh", "--no-detect", "--format", "json")
        assert [job["framework"] for job in json.loads(done.stdout)["jobs"]] == ["transformers"], launcher
