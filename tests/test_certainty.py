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
