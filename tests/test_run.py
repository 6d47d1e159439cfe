"""``cfglint run -- COMMAND`` on a machine that ``fake_nvml/nvml.c`` plays: an A40 with 43.44 GiB free."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
SFT = "-m trl.scripts.sft --dataset_name a/b --per_device_train_batch_size 1 --max_length 512 --output_dir x"
SMALL = f"{SFT} --model_name_or_path Qwen/Qwen2.5-0.5B"
LARGE = f"{SFT} --model_name_or_path Qwen/Qwen2.5-7B"
FACTORY = """
model_name_or_path: Qwen/Qwen2.5-0.5B
stage: sft
do_train: true
finetuning_type: full
cutoff_len: 512
per_device_train_batch_size: 1
"""
GIVEN = ("FAKE_NVML", "FAKE_NVML_GPUS", "CUDA_VISIBLE_DEVICES", "NPROC_PER_NODE", "NNODES", "LD_PRELOAD")

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or COMPILER is None, reason="the stand-in is a Linux library"
)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nvml")
    source = HERE / "fake_nvml" / "nvml.c"
    target = folder / "libnvidia-ml.so.1"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-Wall", "-Werror", "-o", target, source], check=True)
    return folder


@pytest.fixture
def run(library, tmp_path):
    """Run the command in a folder with stand-ins for the launchers, which print how they were started."""
    for name in ("python", "torchrun", "llamafactory-cli"):
        tool = tmp_path / "bin" / name
        tool.parent.mkdir(exist_ok=True)
        tool.write_text('#!/bin/sh\necho "started $(basename "$0") $*"\nexit 7\n')
        tool.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()

    def run_it(command, *flags, **environment):
        clean = {key: value for key, value in os.environ.items() if key not in GIVEN}
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        clean.update(
            environment, PATH=path, PYTHONPATH=os.pathsep.join(sys.path), LD_LIBRARY_PATH=str(library)
        )
        words = ["--", *command.split()] if command else []
        return subprocess.run(
            [sys.executable, "-P", "-m", "cfglint", "run", *flags, *words],
            env=clean, cwd=work, capture_output=True, text=True, check=False,
        )  # fmt: skip

    run_it.folder = work
    return run_it


def test_what_fits_becomes_the_command(run):
    done = run(f"python {SMALL}")
    assert (done.returncode, done.stdout) == (7, f"started python {SMALL}\n"), done.stderr
    assert "checking for this machine's NVIDIA A40" in done.stderr
    assert "trl on a40:1: fits, needs " in done.stderr
    assert "GiB of 44.42, and 43.44 are free now" in done.stderr


def test_what_does_not_fit_is_not_started(run):
    done = run(f"python {LARGE}")
    assert (done.returncode, done.stdout) == (1, "")
    assert "<command>:1:" in done.stderr
    assert "error MEM" in done.stderr
    assert "trl on a40:1: out of memory, needs " in done.stderr
    assert "not started: " in done.stderr
    assert "--force starts it all the same" in done.stderr


def test_force_starts_it_and_says_what_was_found(run):
    done = run(f"python {LARGE}", "--force")
    assert (done.returncode, done.stdout) == (7, f"started python {LARGE}\n")
    assert "found, and ignored by --force: " in done.stderr


def test_a_dry_run_starts_nothing(run):
    assert run(f"python {SMALL}", "--dry-run").returncode == 0
    assert run(f"python {SMALL}", "-n").stdout == ""
    assert run(f"python {LARGE}", "-n").returncode == 1


def test_more_processes_than_this_machine_has_gpus(run):
    done = run(f"torchrun --nproc_per_node 4 {SMALL}", FAKE_NVML_GPUS="2")
    assert (done.returncode, done.stdout) == (1, "")
    assert "DOC104" in done.stderr
    assert "on 4 GPUs of a machine, but there are 2" in done.stderr
    assert run(f"torchrun --nproc_per_node 4 {SMALL}", FAKE_NVML_GPUS="4").returncode == 7


def test_the_environment_counts(run):
    """The launcher reads NPROC_PER_NODE, and CUDA_VISIBLE_DEVICES leaves two of eight GPUs."""
    (run.folder / "c.yaml").write_text(FACTORY)
    command = "llamafactory-cli train c.yaml"
    done = run(command, FAKE_NVML_GPUS="8", NPROC_PER_NODE="4", CUDA_VISIBLE_DEVICES="0,1")
    assert done.returncode == 1
    assert "DOC104" in done.stderr
    done = run(command, FAKE_NVML_GPUS="8", NPROC_PER_NODE="4")
    assert (done.returncode, done.stdout) == (7, f"started {command}\n"), done.stderr


def test_a_config_of_the_command_is_read_where_it_lies(run, tmp_path):
    """Who starts a command lets it read what it likes, so the verdict may rest on files anywhere."""
    (tmp_path / "c.yaml").write_text(FACTORY.replace("0.5B", "7B"))
    done = run(f"llamafactory-cli train {tmp_path / 'c.yaml'}")
    assert done.returncode == 1
    assert "CFG022" not in done.stderr


def test_memory_that_others_hold_counts(run, tmp_path):
    """It fits on the GPU, and not beside what is there now; a sheet cannot say that, and NVML does."""
    done = run(f"python {SMALL}", FAKE_NVML="full")
    assert done.returncode == 1, done.stderr
    assert "out of memory, needs " in done.stderr
    assert "are free now" in done.stderr


def test_what_nobody_recognises_is_started_and_said(run):
    done = run("torchrun --nproc_per_node 1 own.py")
    assert done.returncode == 7
    assert "not judged: no framework recognises own.py" in done.stderr
    assert run("python --version").returncode == 7


def test_verbose_tells_what_was_read(run):
    done = run(f"python {SMALL}", "--verbose", "--dry-run")
    assert "micro_batch_size" in done.stderr
    assert "line 1" in done.stderr


@pytest.mark.parametrize(
    ("command", "flags", "said"),
    [
        ("", [], "cfglint run needs a command"),
        ("", ["torchrun", "x.py"], "put -- before the command: cfglint run -- torchrun x.py"),
        ("nosuch x", [], "nosuch: cannot be started: no such file"),
        ("python x.py", ["--forse"], "has no flag --forse; did you mean '--force'"),
    ],
)
def test_mistakes_are_of_usage(run, command, flags, said):
    done = run(command, *flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
