"""What a launch script's own program says: its modules' flags and defaults, and the branches it takes."""

import json

import pytest

ARGUMENTS = """\
from dataclasses import dataclass, field
from typing import List, Optional
import transformers

LENGTH = 512

@dataclass
class ModelArguments:
    model_name_or_path: Optional[str] = field(default="Qwen/Qwen2.5-0.5B")
    load_in_4bit: bool = False

@dataclass
class TuningArguments(transformers.TrainingArguments):
    optim: str = "adamw_torch"
    model_max_length: int = LENGTH
    use_lora: bool = False
    lora_r: int = 64
"""
PROGRAM = """\
import transformers
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer
{imported}

def train():
    parser = transformers.HfArgumentParser((ModelArguments, TuningArguments))
    model_args, args = parser.parse_args_into_dataclasses()
    kwargs = {{}}
    if model_args.load_in_4bit:
        kwargs.update(quantization_config=BitsAndBytesConfig(load_in_4bit=True))
    model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path, **kwargs)
    if args.use_lora:
        model = get_peft_model(model, LoraConfig(r=args.lora_r, target_modules=["q_proj", "v_proj"]))
    Trainer(model=model, args=args).train()
{main}
"""
PARSED = "    model_args, args = parser.parse_args_into_dataclasses()\n"
FROM_FILE = """\
    if len(sys.argv) == 2 and sys.argv[1].endswith(".json"):
        model_args, args = parser.parse_json_file(json_file=os.path.abspath(sys.argv[1]))
    else:
    """
CALL = "if __name__ == '__main__':\n    train()\n"
LAUNCH = (
    "torchrun --nproc_per_node 8 {program} --output_dir out --bf16 True --per_device_train_batch_size 1 "
    "--logging_steps 1 {flags}\n"
)
LAYOUTS = {
    "one file": {"tune.py": ARGUMENTS + PROGRAM.format(imported="", main=CALL)},
    "flags, or a file in their place": {
        "tune.py": ARGUMENTS
        + PROGRAM.replace(PARSED, FROM_FILE + PARSED).format(imported="import os\nimport sys", main=CALL)
    },
    "arguments of a module": {
        "own/args.py": ARGUMENTS,
        "tune.py": PROGRAM.format(imported="from own.args import ModelArguments, TuningArguments", main=CALL),
    },
    "through its package": {
        "own/__init__.py": "from .args import ModelArguments, TuningArguments as Tuning\n",
        "own/args.py": ARGUMENTS,
        "tune.py": PROGRAM.format(
            imported="from own import ModelArguments, Tuning as TuningArguments", main=CALL
        ),
    },
    "all names of a package": {
        "own/__init__.py": "from .args import *\n",
        "own/args.py": ARGUMENTS,
        "tune.py": PROGRAM.format(imported="from own import *", main=CALL),
    },
    "main of a module": {
        "own/args.py": ARGUMENTS,
        "own/main.py": PROGRAM.format(
            imported="from .args import ModelArguments, TuningArguments", main=CALL
        ),
        "tune.py": "from own.main import train\ntrain()\n",
    },
}


def read(cfglint, folder, files, flags, *more):
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "run.sh").write_text(LAUNCH.format(program="tune.py", flags=flags))
    words = ["run.sh", "--gpu", "h100-sxm:8", "--format", "json", *more]
    (job,) = json.loads(cfglint("facts", *words).stdout)["jobs"]
    facts = {name: each.get("value") for name, each in job["facts"].items()}
    (judged,) = json.loads(cfglint("check", *words).stdout)["jobs"]
    return facts, judged


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("flags", "rank", "bits"),
    [
        ("", 0, "none"),
        ("--use_lora True", 64, "none"),
        ("--use_lora", 64, "none"),
        ("--use_lora True --lora_r 8 --load_in_4bit True", 8, "4"),
        ("--use_lora False --load_in_4bit False", 0, "none"),
    ],
)
def test_flags_decide_what_a_program_does(cfglint, folder, layout, flags, rank, bits):
    facts, judged = read(cfglint, folder, LAYOUTS[layout], flags)
    assert (facts["lora_rank"], str(facts["quantization"])) == (rank, bits)
    assert (facts["seq_len"], facts["optimizer"], facts["task"]) == (512, "adamw", "sft")
    assert judged["verdict"] == "fits"
    assert not any("task" in case["given"] for case in judged["cases"])


@pytest.mark.parametrize(("flag", "attention"), [("", "sdpa"), ("--flash True", "flash_attention_2")])
def test_flash_attention_is_used_where_its_switch_is_on(cfglint, folder, flag, attention):
    program = LAYOUTS["one file"]["tune.py"]
    program = program.replace("    use_lora:", "    flash: bool = False\n    use_lora:")
    program = program.replace("path, **kwargs", "path, use_flash_attention_2=args.flash, **kwargs")
    facts, _ = read(cfglint, folder, {"tune.py": program}, flag)
    assert facts["attn_impl"] == attention


def test_a_file_in_the_place_of_flags_is_read(cfglint, folder):
    program = LAYOUTS["flags, or a file in their place"]
    given = {
        "output_dir": "out",
        "bf16": True,
        "per_device_train_batch_size": 2,
        "lora_r": 8,
        "use_lora": True,
    }
    (folder / "args.json").write_text(json.dumps(given))
    (folder / "tune.py").write_text(program["tune.py"])
    (folder / "run.sh").write_text("torchrun --nproc_per_node 8 tune.py args.json\n")
    words = ["run.sh", "--gpu", "h100-sxm:8", "--format", "json"]
    (job,) = json.loads(cfglint("facts", *words).stdout)["jobs"]
    facts = {name: each.get("value") for name, each in job["facts"].items()}
    assert (facts["micro_batch_size"], facts["lora_rank"], facts["optimizer"]) == (2, 8, "adamw")


def test_a_prefix_that_is_tuned_is_no_full_training(cfglint, folder):
    program = LAYOUTS["one file"]["tune.py"].replace(
        "    use_lora:", "    pre_seq_len: int = None\n    use_lora:"
    )
    _, judged = read(
        cfglint, folder, {"tune.py": program}, "--pre_seq_len 128 --model_name_or_path Qwen/Qwen3-32B"
    )
    assert judged["verdict"] != "oom"


def test_what_is_typed_decides_too(cfglint, folder):
    facts, _ = read(cfglint, folder, LAYOUTS["one file"], "", "--set", "use_lora=true")
    assert facts["lora_rank"] == 64


@pytest.mark.parametrize("flags", ["", "--model_name_or_path Qwen/Qwen2.5-0.5B --lora_r 8"])
def test_what_is_typed_reaches_what_a_program_makes_of_its_flags(cfglint, folder, flags):
    typed = ("--set", "model_name_or_path=Qwen/Qwen2.5-7B", "--set", "use_lora=true", "--set", "lora_r=32")
    facts, _ = read(cfglint, folder, LAYOUTS["one file"], flags, *typed)
    assert (facts["model_path"], facts["lora_rank"]) == ("Qwen/Qwen2.5-7B", 32)


def test_flags_that_nobody_can_read_decide_nothing(cfglint, folder):
    facts, _ = read(cfglint, folder, LAYOUTS["one file"], "${MORE[@]}")
    assert "lora_rank" not in facts


@pytest.mark.parametrize(
    ("more", "tasks"),
    [
        ("", set()),
        ("class Own(Trainer):\n    pass\nTrainer = Own\n", set()),
        ("from own.pairs import Pairs as Trainer\n", {"sft", "dpo"}),
    ],
)
def test_a_task_is_a_case_only_where_the_program_may_have_it(cfglint, folder, more, tasks):
    files = {
        "tune.py": ARGUMENTS + PROGRAM.format(imported=more, main=CALL),
        "own/pairs.py": "from transformers import Trainer\nclass Pairs(Trainer):\n"
        "    def compute_loss(self, model, inputs):\n        return loss(inputs['x'], chosen, rejected)\n",
    }
    _, judged = read(cfglint, folder, files, "--model_name_or_path Qwen/Qwen2.5-7B")
    assert {case["given"].get("task") for case in judged["cases"]} - {None} == tasks


def test_the_folder_that_a_script_enters_is_where_its_program_is(cfglint, folder):
    inside = folder / "src" / "own"
    inside.mkdir(parents=True)
    (folder / "run").mkdir()
    (inside / "tune.py").write_text(LAYOUTS["one file"]["tune.py"])
    enter = 'ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"\ncd ${ROOT}/src/own\n'
    (folder / "run" / "go.sh").write_text(enter + LAUNCH.format(program="tune.py", flags="--use_lora"))
    told = cfglint("facts", "run/go.sh", "--gpu", "h100-sxm:8", "--format", "json").stdout
    assert json.loads(told)["jobs"][0]["facts"]["lora_rank"]["value"] == 64


OWN_GRPO = """\
from transformers import Trainer
from trl import GRPOConfig, ModelConfig, TrlParser

class Own(Trainer):
    def compute_loss(self, model, inputs):
        return self.score(model(**inputs).logits)

if __name__ == "__main__":
    args, model_args = TrlParser((GRPOConfig, ModelConfig)).parse_args_and_config()
    Own(model=model_args.model_name_or_path, args=args).train()
"""


def test_no_fused_loss_has_a_part_in_a_grpo_trainer_of_its_own(cfglint, folder):
    flags = "--model_name_or_path Qwen/Qwen2.5-7B --max_prompt_length 1024 --max_completion_length 2048"
    facts, _ = read(cfglint, folder, {"tune.py": OWN_GRPO}, f"{flags} --use_liger_kernel True")
    assert (facts["task"], facts["fused_loss"]) == ("grpo", "none")
    assert "seq_len" not in facts  # it may take all answers of a prompt at once


REPEATING = """\
from transformers import Trainer
from trl import GRPOConfig, ModelConfig, TrlParser, get_peft_config

class OwnTrainer(Trainer):
    def __init__(self, model, args, peft_config=None):
        if is_deepspeed_zero3_enabled():
            self.ref_model = load(model)
        elif peft_config is None:
            {reference}
        else:
            self.ref_model = None
        self.num_generations = args.num_generations

    def compute_loss(self, model, inputs):
        prompt_mask = inputs["attention_mask"]
        {rows}
        return self.score(model(**inputs).logits, prompt_mask)

if __name__ == "__main__":
    args, model_args = TrlParser((GRPOConfig, ModelConfig)).parse_args_and_config()
    adapters = get_peft_config(model_args)
    OwnTrainer(model=model_args.model_name_or_path, args=args, peft_config=adapters).train()
"""
ROWS = "prompt_mask = prompt_mask.repeat_interleave(self.num_generations, dim=0)"
REFERENCE = "self.ref_model = create_reference_model(model)"


@pytest.mark.parametrize(
    ("rows", "reference", "flags", "has_rows"),
    [
        (ROWS, REFERENCE, "", True),
        (ROWS, REFERENCE, " --use_vllm true", False),  # whose variant is another
        ("prompt_mask = prompt_mask * 1", REFERENCE, "", False),
        (ROWS, "self.ref_model = None", "", False),
    ],
)
def test_a_process_takes_all_answers_of_its_prompts(cfglint, folder, rows, reference, flags, has_rows):
    given = "--model_name_or_path Qwen/Qwen2.5-0.5B --max_completion_length 512 --num_generations 4"
    given += " --per_device_train_batch_size 2 --bf16"
    files = {"tune.py": REPEATING.format(rows=rows, reference=reference)}
    facts, _ = read(cfglint, folder, files, given + flags)
    assert facts["task"] == "grpo"
    assert ("seq_len" in facts) == has_rows
    if has_rows:
        logits = []
        for number in (4, 8):
            more = ("--set", f"num_generations={number}", "--gpu", "h100-sxm:8", "--format", "json")
            (row,) = json.loads(cfglint("fit", "run.sh", *more).stdout)["rows"]
            logits.append(row["parts"]["logits"][1])
        assert logits[1] == pytest.approx(2 * logits[0], rel=0.01)


def test_a_program_in_the_folder_that_a_guide_goes_into_is_found(cfglint, folder):
    for name in ("deep/in/own/tune.py", "scripts/other.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(LAYOUTS["one file"]["tune.py"])
    (folder / "scripts" / "go.sh").write_text(LAUNCH.format(program="own/tune.py", flags="--use_lora"))

    def rank():
        told = cfglint("facts", "scripts/go.sh", "--gpu", "h100-sxm:8", "--format", "json").stdout
        return json.loads(told)["jobs"][0]["facts"].get("lora_rank", {}).get("value")

    assert rank() == 64
    (folder / "deep" / "out" / "own").mkdir(parents=True)
    (folder / "deep" / "out" / "own" / "tune.py").write_text("print()\n")  # as near: nobody knows which
    assert rank() is None


@pytest.mark.parametrize(
    ("llm", "rank", "lowest"), [("full", 0, 2048), ("frozen", 0, 64), ("lora", 64, 2048), ("", 64, 2048)]
)
def test_parts_that_are_tuned_each_in_its_way(cfglint, folder, llm, rank, lowest):
    flags = (
        f"--model_name_or_path Qwen/Qwen2.5-7B --model_max_length 2048 {'--tune_type_llm ' * bool(llm)}{llm}"
    )
    files = {
        "tune.py": LAYOUTS["one file"]["tune.py"].replace(
            "use_lora: bool", "tune_type_llm: str = ''\n    x: bool"
        )
    }
    facts, _ = read(cfglint, folder, files, f"{flags} --lora_r 64")
    length = facts["seq_len"]
    assert facts["lora_rank"] == rank
    assert (length[0] if isinstance(length, list) else length) == lowest


@pytest.mark.parametrize(("full", "rank"), [("", 64), ("True", 0), ("False", 64)])
def test_a_switch_for_full_training_turns_adapters_off(cfglint, folder, full, rank):
    source = LAYOUTS["one file"]["tune.py"]
    files = {"tune.py": source.replace("use_lora: bool = False", "full_finetune: bool = False")}
    files["tune.py"] = files["tune.py"].replace("if args.use_lora:", "if not args.full_finetune:")
    facts, _ = read(cfglint, folder, files, f"--lora_r 64 {'--full_finetune ' * bool(full)}{full}")
    assert facts["lora_rank"] == rank
