"""How sure a finding is: what in a project makes an error a warning, or an info."""

from __future__ import annotations

from pathlib import Path

import pytest

GRPO = (
    "model_name_or_path: a/b\nnum_generations: 8\nmax_completion_length: 64\nper_device_train_batch_size: 8\n"
)
OPENRLHF = "python3 -m openrlhf.cli.train_ppo_ray {}--ds.packing_samples --algo.advantage.estimator gae"
FLAGS = """if [ "$NODES" = 2 ]; then
  more="--vllm.num_engines 2 --vllm.tensor_parallel_size 2"
else
  more="--vllm.num_engines 1 --vllm.tensor_parallel_size 1"
fi
"""
PROGRAM = """import yaml
from dataclasses import dataclass
from transformers import HfArgumentParser, Trainer, TrainingArguments
@dataclass
class Args(TrainingArguments):
    load_best_model_at_end: bool = True
    save_strategy: str = "no"
    eval_strategy: str = "steps"
parser = HfArgumentParser(Args)
args, = parser.parse_args_into_dataclasses()
Trainer(model="a/b", args=args).train()
"""
AXOLOTL = """base_model: a/b
datasets: [{path: c, type: alpaca}]
sequence_len: 512
micro_batch_size: 1
gradient_accumulation_steps: 1
flash_attn_rms_norm: true
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository, and how its files are written."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)

    def write(**files: str) -> None:
        for name, text in files.items():
            path = Path(name.replace("__", "/").replace("_DOT_", "."))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")

    return write


@pytest.fixture
def level(cfglint):
    """Return the level that a finding has, empty where it is not made."""

    def of(code: str, path: str = ".") -> str:
        said = cfglint("check", path, "--no-detect", "--format", "concise").stdout
        return next((line.split()[1] for line in said.splitlines() if f" {code} " in line), "")

    return of


def test_a_config_that_hydra_composes_for_a_program_of_its_own(project, level):
    project(configs__a_DOT_yaml=f"{GRPO}db_type: duckdb\n")
    assert level("CFG012") == "warning"
    project(train_DOT_py='@hydra.main(config_path="configs", config_name="a")\ndef main(c): ...\n')
    assert level("CFG012") == "info"


def test_flags_that_nobody_can_read_may_say_what_is_absent(project, level):
    project(run_DOT_sh=OPENRLHF.format(""))
    assert level("RUN284") == "error"
    project(run_DOT_sh=FLAGS + OPENRLHF.format("$more "))
    assert level("RUN284") == "info"


def test_a_program_that_reads_a_config_by_itself_may_change_its_defaults(project, level):
    project(train_DOT_py=PROGRAM, c_DOT_yaml="training: {load_best_model_at_end: false}\n")
    project(run_DOT_sh="python train.py --output_dir out\n")
    assert level("RUN137", "run.sh") == "error"
    project(run_DOT_sh="python train.py --config c.yaml --output_dir out\n")
    assert level("RUN137", "run.sh") == ""


def test_a_key_that_a_version_removed_is_surely_wrong_where_the_version_is_known(project, level):
    project(a_DOT_yaml=AXOLOTL)
    assert level("CFG180") == "warning"
    project(requirements_DOT_txt="axolotl==0.17.0\n")
    assert level("CFG180") == "error"
    project(requirements_DOT_txt="axolotl==0.16.0\n")
    assert level("CFG180") == ""


def test_a_program_that_imports_no_trl_has_the_lengths_of_its_own(project, level):
    program = PROGRAM.replace(
        "class Args(TrainingArguments):", "class Args(TrainingArguments):\n    max_seq_length: int = 0"
    )
    command = (
        "python train.py --model_name_or_path a/b --dataset_name c --max_seq_length 80 --output_dir out\n"
    )
    project(run_DOT_sh=command, requirements_DOT_txt="trl==0.23.0\n")
    assert level("BAT136", "run.sh")
    project(train_DOT_py=program)
    assert level("BAT136", "run.sh") == ""


class TestUse:
    """A file that looks like one of Axolotl's, in a repository with programs of its own."""

    FILE = f"{AXOLOTL}save_steps: 10\nsaves_per_epoch: 2\n"

    @pytest.mark.parametrize(
        "files",
        [
            {"own_DOT_py": "from axolotl.cli import train\n"},
            {"own_DOT_py": "import os\n", "run_DOT_sh": "accelerate launch -m axolotl.cli.train a.yaml\n"},
            {"own_DOT_py": "import os\n", "requirements_DOT_txt": "axolotl\n"},
            {"own_DOT_py": "import os\n", "sky_DOT_yaml": "run: |\n  axolotl train a.yaml\n"},
            {"setup_DOT_py": "setup(install_requires=['axolotl'])\n"},
            {"own_DOT_py": "import os\n", "README_DOT_md": "```\n$ axolotl train a.yaml\n```\n"},
            {"README_DOT_md": "Nothing runs here.\n"},
        ],
    )
    def test_its_package_is_named(self, project, level, files):
        project(a_DOT_yaml=self.FILE, **files)
        assert level("RUN185") == "error"

    @pytest.mark.parametrize("guide", ["We took Axolotl's format.\n", "```\ncd axolotl\n```\n"])
    def test_nothing_names_its_package(self, project, level, guide):
        project(a_DOT_yaml=self.FILE, own_DOT_py="import yaml  # as axolotl does\n", README_DOT_md=guide)
        assert level("RUN185") == "info"

    def test_somebody_names_it(self, project, level):
        project(a_DOT_yaml=self.FILE, own_DOT_py="import yaml\n")
        project(cfglint_DOT_toml='framework = "axolotl"\n')
        assert level("RUN185") == "error"


def test_a_launch_has_flags_before_its_launcher_s_config(project, level):
    config = "distributed_type: DEEPSPEED\nnum_processes: 2\nmixed_precision: bf16\n"
    named = "deepspeed_config: {deepspeed_config_file: ds.json}\n"
    launch = "accelerate launch --config_file a.yaml {} train.py --bf16\n"
    project(a_DOT_yaml=config + named, train_DOT_py="import accelerate\n", run_DOT_sh=launch.format(""))
    assert level("RUN170") == "error"
    project(run_DOT_sh=launch.format("--mixed_precision bf16"))
    assert level("RUN170") == "warning"


def test_a_section_that_the_project_s_own_code_asks_for_is_no_unknown_key(project, level):
    config = "model_name_or_path: a/b\nstage: sft\ndo_train: true\nfinetuning_type: lora\ntemplate: qwen\n"
    config += "dataset: d\ncutoff_len: 512\nmine: {a: 1}\n"
    project(a_DOT_yaml=config, own_DOT_py="import llamafactory\n")
    assert level("CFG012") == "warning"
    project(own_DOT_py="import llamafactory\nfor key in c:\n    if key == 'mine':\n        use(c[key])\n")
    assert level("CFG012") == ""


def test_files_of_a_folder_that_is_not_here_may_be_others(project, level):
    command = "deepspeed --module trl.scripts.sft --model_name_or_path a/b --dataset_name c --output_dir out"
    command += " --deepspeed ds.json --per_device_train_batch_size 1 --gradient_accumulation_steps 2\n"
    project(ds_DOT_json='{"gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2}}')
    project(run_DOT_sh=command)
    assert level("DOC121", "run.sh") == "error"
    project(run_DOT_sh=f'cd "$(dirname "$0")"\n{command}')
    assert level("DOC121", "run.sh") == "error"
    project(run_DOT_sh=f"cd /home/me/elsewhere\n{command}")
    assert level("DOC121", "run.sh") == "warning"


def test_processes_that_each_launch_gives_are_not_the_files(project, cfglint):
    project(acc_DOT_yaml="distributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 8\n")
    check = ("check", "acc.yaml", "--gpu", "rtx-3090:2", "--format", "concise")
    assert "DOC105" in cfglint(*check).stdout
    project(run_DOT_sh="accelerate launch --config_file acc.yaml --num_processes 8 train.py\n")
    assert "DOC105" not in cfglint(*check).stdout
