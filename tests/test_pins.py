"""Versions of frameworks that files beside a config pin, and what does not count as a pin."""

import json
from pathlib import Path

import pytest

from cfglint.cli import main
from cfglint.command.pins import of_image, of_installs, of_package, pinned
from cfglint.lang.versions import spelled

CONFIG = "model_name_or_path: Qwen/Qwen2.5-0.5B\ndataset_name: a/b\noutput_dir: x-sft\n"
LOCK = '[[package]]\nname = "trl"\nversion = "{}"\nsource = {{ registry = "https://pypi.org/simple" }}\n'

PARTS = '# Copyright\n\nMAJOR = 0\nMINOR = {}\nPATCH = 0\nPRE_RELEASE = "{}"\n\nVERSION = (MAJOR, MINOR)\n'


def of(files, framework="trl"):
    found = pinned(list(files), framework, files.get)
    return None if found is None else (spelled(found[0]), *found[1:])


@pytest.mark.parametrize(
    ("name", "text", "version", "line"),
    [
        ("requirements.txt", "torch\ntrl==0.15.2\n", "0.15.2", 2),
        ("requirements.txt", 'TRL[vllm] == 0.15.2 ; python_version > "3.9"  # why\n', "0.15.2", 1),
        ("requirements-dev.txt", "trl==0.20.0\n", "0.20", 1),
        ("requirements.txt", "trl==0.20.0; sys_platform == 'linux'\n", "0.20", 1),
        (
            "requirements.txt",
            "trl==0.9.6; sys_platform == 'darwin'\ntrl==0.20.0; platform_system != 'Windows'\n",
            "0.20",
            2,
        ),
        ("requirements.txt", "trl>=0.9,<=0.15.2\n", "0.15.2", 1),
        ("requirements.txt", "torch\ntrl<0.16\n", "0.16.dev", 2),
        ("requirements.txt", "trl[vllm]~=0.15.1\n", "0.16.dev", 1),
        ("pyproject.toml", 'dependencies = ["trl >= 0.9, < 0.16"]\n', "0.16.dev", 1),
        ("uv.lock", "version = 1\n\n" + LOCK.format("0.19.1"), "0.19.1", 5),
        ("poetry.lock", LOCK.format("1.0.0rc1"), "1", 3),
        ("pyproject.toml", '[project]\nname = "x"\ndependencies = [\n  "trl==0.9.6",\n]\n', "0.9.6", 4),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntrl = "==0.9.6"\n', "0.9.6", 2),
        (
            "pyproject.toml",
            '[project]\nversion = "0.21.0"\nname = "trl"\n[tool.x]\nversion = "9.9"\n',
            "0.21",
            2,
        ),
        ("environment.yml", "dependencies:\n  - python=3.10\n  - trl=0.12.1\n", "0.12.1", 3),
        ("environment.yaml", "dependencies:\n  - pip:\n    - trl==0.12.1\n", "0.12.1", 3),
        ("train_env.yml", "dependencies:\n  - pip:\n    - trl==0.12.1\n", "0.12.1", 3),
        ("Dockerfile", "FROM x\nRUN pip install -U torch trl==0.16.0 && rm x\n", "0.16", 2),
        ("train.dockerfile", "FROM registry.local:5000/hf/trl:0.16.1-cuda\n", "0.16.1", 1),
        ("Dockerfile", "RUN git clone -b v0.16.1 https://github.com/huggingface/trl.git\n", "0.16.1", 1),
        ("README.md", "# Set-up\n\n    pip install torch trl==0.16.0\n", "0.16", 3),
        ("readme_en.md", "`pip install git+https://github.com/huggingface/trl@v0.16.0`\n", "0.16", 1),
        ("README.md", "# Ours\n\nThis version requires **`trl==0.16.0`**.\n", "0.16", 3),
        ("README.md", "git clone https://x.y/hf/trl.git\ncd trl\ngit checkout v0.16.1\n", "0.16.1", 3),
    ],
)
def test_one_version_is_a_pin(name, text, version, line):
    assert of({name: text}) == (version, name, line)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "trl>=0.15.2\ntrl-tools==1.0\nmy_trl==3.0\n"),
        (
            "pyproject.toml",
            'dependencies = [\n  "trl",\n]\n[project.optional-dependencies]\nnpu = ["trl==0.9.6"]\n',
        ),
        ("requirements.txt", "trl==0.15.*\n"),
        (
            "pyproject.toml",
            '[project]\nname = "x"\ndependencies = [\n  "trl==0.9.6; platform_system == \'Darwin\'",\n]\n',
        ),
        ("requirements.txt", "# trl==0.15.2\n"),
        ("requirements.txt", "trl==0.15.2\ntrl==0.16.0 ; python_version < '3.11'\n"),
        ("uv.lock", LOCK.format("0.15.2") + LOCK.format("0.16.0")),
        ("pyproject.toml", '[project]\nname = "trl-extras"\nversion = "3.0"\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntrl = "^0.9.6"\n'),
        ("Dockerfile", "FROM vllm/vllm-openai:v0.8.4\n# RUN pip install trl==0.15.2\n"),
        ("Dockerfile", "FROM hf/trl:latest\n"),
        ("README.md", "trl==0.16.0 was tried, too\n"),
        ("README.md", "pip install trl==0.16.0\n\nor\n\npip install trl==0.17.0\n"),
        ("README.md", "git clone https://x.y/hf/trl-tools.git\ngit checkout v0.16.1\n"),
        ("README.md", "git clone https://x.y/hf/trl\ngit clone https://x.y/other\ngit checkout v0.16.1\n"),
        ("notes.txt", "trl==0.15.2\n"),
    ],
)
def test_what_leaves_a_choice_is_none(name, text):
    assert of({name: text}) is None


def test_lock_files_go_before_requirements():
    files = {"requirements.txt": "trl==0.15.2\n", "uv.lock": LOCK.format("0.19.1")}
    assert of(files) == ("0.19.1", "uv.lock", 3)
    files["uv.lock"] = LOCK.format("0.19.1").replace("trl", "other")
    assert of(files) == ("0.15.2", "requirements.txt", 1)


def test_a_name_may_be_spelled_as_packages_are():
    assert of({"requirements.txt": "Nemo.RL==0.3.0\n"}, "nemo_rl") == ("0.3", "requirements.txt", 1)


def test_the_image_of_a_manifest():
    text = "spec:\n  containers:\n  - image: docker.io/vllm/vllm-openai:v0.8.4\n"
    assert of_image(text, "vllm") == ((0, 8, 4), 3)
    assert of_image(text, "trl") is None
    assert of_image(text + "  - image: vllm/vllm-openai:v0.9.0\n", "vllm") is None


@pytest.fixture
def facts(tmp_path, monkeypatch, capsys):
    (tmp_path / ".git").mkdir()
    work = tmp_path / "recipes" / "sft"
    work.mkdir(parents=True)
    (work / "c.yaml").write_text(CONFIG, "utf-8")
    monkeypatch.chdir(tmp_path)

    def facts_of(*flags):
        main(["facts", "recipes/sft/c.yaml", "--no-detect", "--format", "json", *flags])
        (job,) = json.loads(capsys.readouterr().out)["jobs"]
        return {name: (fact["value"], fact["source"]) for name, fact in job["facts"].items()}

    return facts_of


def test_the_nearest_pin_decides_defaults(facts):
    """Gradient checkpointing is on by default from TRL 0.22 on (rules/frameworks/trl.rules)."""
    assert "framework.version" not in facts()
    assert facts()["gradient_checkpointing"][0] == "full"
    Path("requirements.txt").write_text("trl==0.15.2\n", "utf-8")
    assert facts()["framework.version"] == ("0.15.2", "requirements.txt:1")
    assert facts()["gradient_checkpointing"][0] == "none"
    Path("recipes/requirements.txt").write_text("trl>=0.9\n", "utf-8")
    assert facts()["framework.version"] == ("0.15.2", "requirements.txt:1"), "a range decides nothing"
    Path("recipes/requirements.txt").write_text("trl==1.0.0\n", "utf-8")
    assert facts()["framework.version"] == ("1", "recipes/requirements.txt:1")
    assert facts("--framework", "trl==0.15.2")["framework.version"] == ("0.15.2", "--framework")


def test_a_folder_of_requirements_counts(facts):
    Path("setup").mkdir()
    Path("setup/requirements.txt").write_text("trl==0.15.2\n", "utf-8")
    assert facts()["framework.version"] == ("0.15.2", "setup/requirements.txt:1")


def test_the_package_of_the_repository_says_its_version(facts):
    Path("requirements.txt").write_text("trl==0.15.2\n", "utf-8")
    Path("trl").mkdir()
    Path("trl/__init__.py").write_text('from x import y\n\n__version__ = "0.19.1"\n', "utf-8")
    assert facts()["framework.version"] == ("0.19.1", "trl/__init__.py:3")
    Path("trl/__init__.py").write_text('__version__ = "0.20.0.dev0"\n', "utf-8")
    assert facts()["framework.version"] == ("0.20.dev", "trl/__init__.py:1")
    assert facts()["gradient_checkpointing"][0] == "none", "on from v0.22 on"
    Path("trl/__init__.py").unlink()
    Path("trl/trl").mkdir()
    Path("trl/trl/__init__.py").write_text('__version__ = "0.18.0"\n', "utf-8")
    assert facts()["framework.version"] == ("0.18", "trl/trl/__init__.py:1"), "a clone beside the recipes"
    parts = 'MAJOR = 0\nMINOR = 16\nPATCH = 1\nPRE_RELEASE = "{}"\n'
    Path("trl/trl/package_info.py").write_text(parts.format(""), "utf-8")
    assert facts()["framework.version"] == ("0.16.1", "trl/trl/package_info.py:1")
    Path("trl/trl/package_info.py").write_text(parts.format("rc0"), "utf-8")
    assert facts()["framework.version"] == ("0.16.1.dev", "trl/trl/package_info.py:1")
    Path("trl/trl/package_info.py").unlink()
    Path("trl/trl/__init__.py").write_text("", "utf-8")
    assert "framework.version" not in facts(), "another one than that of requirements.txt"
    Path("trl/trl/__init__.py").unlink()
    assert "framework.version" in facts()
    Path("trl/trl/utils").mkdir()
    Path("trl/trl/utils/__init__.py").write_text("", "utf-8")
    assert "framework.version" not in facts(), "a package without a file at its top"


def test_a_framework_may_have_the_version_of_a_package_of_another_name(tmp_path, monkeypatch, capsys):
    """prime-rl's SFT is a framework of its own; its optimizer is offloaded by default from v0.7 on."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    Path("sft.toml").write_text(
        '[model]\nname = "x"\nfsdp_cpu_offload = true\n[data]\ntype = "sft"\nbatch_size = 8\nseq_len = 128\n',
        "utf-8",
    )
    for version, status in (("0.6.0", 0), ("0.7.0", 1)):
        Path("requirements.txt").write_text(f"prime-rl=={version}\n", "utf-8")
        assert main(["check", "sft.toml", "--no-detect"]) == status, capsys.readouterr().out


@pytest.mark.parametrize(
    ("framework", "name", "text", "version"),
    [
        ("torchtitan", "assets/version.txt", "0.1.0\n", (0, 1)),
        ("torchtune", "version.txt", "0.7.0\n", (0, 7)),
        ("trl", "VERSION", "1.9.0\n", (1, 9)),
        ("nemo_rl", "nemo_rl/package_info.py", PARTS.format(4, ""), (0, 4)),
        ("nemo_rl", "nemo_rl/package_info.py", PARTS.format(5, "rc0"), (0, 4, float("inf"))),
        ("nemo_rl", "nemo_rl/package_info.py", "MAJOR = MINOR = 0\n", None),
        ("axolotl", "setup.py", 'setup(\n    name="axolotl",\n    version="0.4.1",\n)\n', (0, 4, 1)),
        ("nemo_rl", "pyproject.toml", '[project]\nname = "nemo-rl"\nversion = "0.3.0"\n', (0, 3)),
        ("axolotl", "setup.py", 'setup(\n    name="my-project",\n    version="0.4.1",\n)\n', None),
    ],
)
def test_a_package_may_say_its_version_in_another_file(framework, name, text, version):
    files = {f"{framework}/__init__.py": "from x import __version__\n", name: text}
    assert of_package(framework, files.get)[0] == version


def test_the_project_of_a_package_in_src_may_say_its_version():
    files = {"src/axolotl/__init__.py": "", "VERSION": "0.18.0\n"}
    assert of_package("axolotl", files.get)[:2] == ((0, 18), "VERSION")
    files = {"axolotl/axolotl/__init__.py": "", "VERSION": "0.18.0\n"}
    assert of_package("axolotl", files.get)[0] is None, "what is beside a clone is another project's"


def test_a_version_of_something_else_is_not_the_frameworks(facts):
    Path("src").mkdir()
    Path("trl").mkdir()
    Path("version.txt").write_text("0.15.2\n", "utf-8")
    Path("trl/version.py").write_text('VERSION = "0.15.2"\n', "utf-8")
    assert "framework.version" not in facts(), "no package is here"


def test_a_pin_outside_of_the_repository_is_not_read(facts, tmp_path, request):
    outside = tmp_path.parent / "requirements.txt"
    request.addfinalizer(outside.unlink)  # it would be a sign of a project to other tests
    outside.write_text("trl==0.15.2\n", "utf-8")
    assert "framework.version" not in facts()
    Path("requirements.txt").symlink_to(outside)
    assert "framework.version" not in facts()


NEOX = (
    "pipe_parallel_size: 1\nmodel_parallel_size: 1\nnum_layers: 4\nhidden_size: 64\nseq_length: 4096\n"
    "max_position_embeddings: 2048\ntrain_iters: 9\ntrain_micro_batch_size_per_gpu: 1\n"
)


def test_a_framework_that_is_cloned_is_there_or_another_reads_the_file(facts, capsys):
    """GPT-NeoX is no package: what a project without its code trains with is a program of its own."""

    def level() -> str:
        main(["check", "recipes/neox.yml", "--no-detect", "--select", "BAT350", "--format", "json"])
        (finding,) = json.loads(capsys.readouterr().out)["findings"]
        return str(finding["level"])

    Path("recipes/neox.yml").write_text(NEOX, "utf-8")
    assert level() == "error", "a folder of configs says nothing"
    Path("tool").mkdir()
    Path("tool/arguments.py").write_text("import torch\n", "utf-8")
    assert level() == "info"
    Path("megatron/neox_arguments").mkdir(parents=True)
    Path("megatron/neox_arguments/arguments.py").write_text("import torch\n", "utf-8")
    assert level() == "error"


def test_pytorch_of_what_a_project_lies_in_is_not_its_own(tmp_path, capsys):
    (tmp_path / ".git").mkdir()
    (tmp_path / "pyproject.toml").write_text('dependencies = ["torch==2.1.2"]\n')
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "config.yaml").write_text(CONFIG)
    check = ["check", str(inner / "config.yaml"), "--gpu", "b200", "--select", "PRC125"]
    assert main(check) == 1
    assert "PyTorch v2.1.2" in capsys.readouterr().out
    (inner / "pyproject.toml").write_text('[project]\nname = "inner"\n')
    assert main(check) == 0


def test_a_notebook_pins_what_it_installs(tmp_path, capsys):
    given = "output_dir='x', per_device_train_batch_size=1, num_generations=2"
    code = f"from trl import GRPOConfig\nargs = GRPOConfig({given})\n"
    for version, codes in (("0.14.0", set()), ("0.19.0", {"BAT130"})):
        cells = [
            {
                "cell_type": "code",
                "metadata": {},
                "outputs": [],
                "source": ["%pip install \\\n", f'  "trl=={version}"\n'],
            },
            {"cell_type": "code", "metadata": {}, "outputs": [], "source": code.splitlines(keepends=True)},
        ]
        path = tmp_path / "run.ipynb"
        path.write_text(
            json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
        )
        main(["check", str(path), "--gpu", "a40", "--select", "BAT130", "--format", "json"])
        found = json.loads(capsys.readouterr().out)["findings"]
        assert {each["code"] for each in found} == codes
    assert of_installs("pip install trl==0.14.0\n# pip install trl==0.9.0\n", "trl") == ((0, 14), 1)
    assert of_installs("pip install trl==0.14.0\npip install trl==0.9.0\n", "trl") is None


@pytest.mark.parametrize(
    ("version", "flags", "applicability"),
    [
        ("4.37.2", "", "unsafe"),
        ("4.46.0", "", "safe"),
        ("4.37.2", "--block_size 512", "safe"),  # full blocks have as many tokens each
    ],
)
def test_an_older_trainer_averages_the_tokens_of_a_micro_batch(
    tmp_path, capsys, version, flags, applicability
):
    (tmp_path / "requirements.txt").write_text(f"transformers=={version}\n")
    given = f"--per_device_train_batch_size 8 --gradient_accumulation_steps 1 --bf16 True {flags}"
    (tmp_path / "run.sh").write_text(f"torchrun --nproc_per_node 2 run_clm.py --output_dir o {given}\n")
    own = ["--rule", "micro_batch_size <= 4", "--select", "CLI", "--format", "json"]
    main(["check", str(tmp_path / "run.sh"), "--gpu", "a40:2", *own])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["fix"]["applicability"] == applicability


def test_a_project_in_a_folder_has_a_pytorch_of_its_own(tmp_path, monkeypatch, capsys):
    (tmp_path / ".git").mkdir()
    (tmp_path / "requirements.txt").write_text("torch==1.13.0\n", "utf-8")
    own = tmp_path / "own" / "scripts"
    own.mkdir(parents=True)
    (own / "run.sh").write_text(
        "torchrun --nproc_per_node 8 train.py --per_device_train_batch_size 1\n", "utf-8"
    )
    monkeypatch.chdir(tmp_path)
    for told in (True, False):
        main(["check", "own/scripts/run.sh", "--no-detect", "--gpu", "h100-sxm:8"])
        assert ("PRC125" in capsys.readouterr().out) is told
        (tmp_path / "own" / "setup.py").write_text("from setuptools import setup\n", "utf-8")
