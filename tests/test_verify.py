"""``cfglint verify`` on a machine that ``fake_nvml/nvml.c`` plays."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

HERE = Path(__file__).parent
CONFIG = HERE.parent / "examples" / "grpo_one_gpu.yaml"
SCHEMA = json.loads((HERE.parent / "schemas" / "verified.schema.json").read_text(encoding="utf-8"))
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
NOBODY = 4_194_301  # above what Linux numbers processes with, unless it was told to

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or COMPILER is None, reason="the stand-in is a Linux library"
)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nvml")
    target = folder / "libnvidia-ml.so.1"
    source = HERE / "fake_nvml" / "nvml.c"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-Wall", "-Werror", "-o", target, source], check=True)
    return folder


def verify(folder, *arguments, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("FAKE_NVML") and k != "LD_PRELOAD"}
    clean.update(environment, PYTHONPATH=os.pathsep.join(sys.path), LD_LIBRARY_PATH=str(folder))
    return subprocess.run(
        [sys.executable, "-m", "cfglint", "verify", *map(str, arguments)],
        env=clean, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def told(folder, *arguments, **environment):
    done = verify(folder, *arguments, "--json", **environment)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    return found


def test_both_processes_beside_what_was_predicted(library):
    found = told(library, CONFIG, FAKE_NVML_PROCESSES=f"{NOBODY}:37212,{NOBODY + 1}:16384")
    engine, trainer = found["gpus"][0]["processes"]
    assert (engine["role"], engine["held_gib"], engine["verdict"]) == ("engine", 36.3398, "inside")
    assert (trainer["role"], trainer["held_gib"], trainer["verdict"]) == ("trainer", 16.0, "inside")
    assert engine["predicted_gib"] == found["predicted_gib"]["engine"]


@pytest.mark.parametrize(("mib", "verdict"), [(2048, "below"), (16384, "inside"), (40000, "above")])
def test_inside_or_outside(library, mib, verdict):
    found = told(library, CONFIG, FAKE_NVML_PROCESSES=f"{NOBODY}:37212,{NOBODY + 1}:{mib}")
    by_role = {p["role"]: p["verdict"] for p in found["gpus"][0]["processes"]}
    assert by_role == {"engine": "inside", "trainer": verdict}


def test_a_process_is_named_by_its_command_line(library):
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)", "sglang::scheduler"]
    with subprocess.Popen(sleeper) as engine:
        try:
            found = told(library, CONFIG, FAKE_NVML_PROCESSES=f"{NOBODY}:16384,{engine.pid}:37212")
        finally:
            engine.kill()
    processes = {p["pid"]: p for p in found["gpus"][0]["processes"]}
    assert processes[engine.pid]["role"] == "engine"
    assert processes[engine.pid]["name"].endswith("sglang::scheduler")
    assert processes[NOBODY]["role"] == "trainer"
    assert processes[NOBODY]["name"] is None


def test_memory_that_the_driver_does_not_tell(library):
    processes = f"{NOBODY}:-,{NOBODY + 1}:100"
    found = told(library, FAKE_NVML_PROCESSES=processes)
    assert [p["held_gib"] for p in found["gpus"][0]["processes"]] == [0.0977, None]
    page = verify(library, FAKE_NVML_PROCESSES=processes).stdout
    assert "the driver does not report" in page


def test_pages(library):
    page = verify(library, CONFIG, FAKE_NVML_PROCESSES=f"{NOBODY}:37212,{NOBODY + 1}:40000").stdout
    first, head, *rows = page.splitlines()
    assert first == "GPU 0: NVIDIA A40, 44.42 GiB usable, 0.98 in use"
    assert head.split() == ["pid", "held", "predicted"]
    assert [row.split()[0] for row in rows] == [str(NOBODY + 1), str(NOBODY), "total"]
    assert rows[0].split()[-2:] == ["above", "trainer"]
    assert rows[2].split()[1] == "75.40"
    assert "no process" in verify(library, FAKE_NVML="noprocesses").stdout
    assert "MIG is on" in verify(library, FAKE_NVML="mig").stdout


@pytest.mark.parametrize("role", ["notloaded", "nopermission", "mismatch", "lost", "none"])
def test_without_a_gpu(library, role):
    done = verify(library, FAKE_NVML=role)
    assert (done.returncode, done.stdout) == (2, "")
    assert "run cfglint verify on the machine where the job runs" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("role", "said"),
    [("crash", "the NVIDIA library crashed (signal 11)"), ("garbage", None), ("lies", None)],
)
def test_a_driver_that_misbehaves(library, role, said):
    done = verify(library, CONFIG, FAKE_NVML=role)
    assert (done.returncode, bool(done.stdout)) == ((2, False) if said else (0, True))
    assert done.stderr.count("\n") == bool(said)
    assert (said or "") in done.stderr
    assert "\033" not in done.stdout + done.stderr


def test_a_config_that_is_not_there(library):
    done = verify(library, "nothing.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no such file" in done.stderr
