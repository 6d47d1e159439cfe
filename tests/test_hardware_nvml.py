"""NVML, played by a library of our own (``fake_nvml/nvml.c``), and what a machine without it says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from cfglint.hardware import nvml
from cfglint.hardware.host import load_sheet

HERE = os.path.dirname(os.path.abspath(__file__))
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
GIVEN = (
    "FAKE_NVML",
    "FAKE_NVML_GPUS",
    "FAKE_NVML_LOG",
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
)
ASK = """
import json
from cfglint.hardware.nvml import detect
from cfglint.hardware.host import to_sheet
found = detect()
devices = [] if found.host is None else [
    {name: getattr(device, name) for name in type(device).__slots__ if name != "instances"}
    | {"instances": [i.name for i in device.instances]} for device in found.host.devices]
print(json.dumps({
    "problem": found.problem,
    "targets": [{"name": t.name, "gpu": t.gpu, "count": t.count, "facts": t.facts, "notices": t.notices}
                for t in found.targets],
    "host": found.host and {"driver": found.host.driver, "cuda": found.host.cuda, "devices": devices},
    "sheet": found.host and found.host.units() and to_sheet(found.host),
}))
"""

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the stand-in is a Linux library"
)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("no C compiler to build the stand-in for NVML")
    folder = tmp_path_factory.mktemp("nvml")
    source = os.path.join(HERE, "fake_nvml", "nvml.c")
    target = folder / "libnvidia-ml.so.1"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-Wall", "-Werror", "-o", target, source], check=True)
    return folder


def ask(folder, code=ASK, warnings="error", **environment):
    clean = {key: value for key, value in os.environ.items() if key not in GIVEN}
    clean.update(environment, PYTHONPATH=os.pathsep.join(sys.path), LD_LIBRARY_PATH=str(folder))
    done = subprocess.run(
        [sys.executable, "-W", warnings, "-c", code], env=clean, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_one_a40(library, tmp_path):
    log = tmp_path / "log"
    said = ask(library, FAKE_NVML="ok", FAKE_NVML_LOG=str(log))
    assert said["problem"] is None
    (target,) = said["targets"]
    assert (target["name"], target["gpu"], target["count"], target["notices"]) == (
        "a40:1",
        "NVIDIA A40",
        1,
        [],
    )
    facts = target["facts"]
    assert facts["gpu.vram"] == [45486 << 20, "NVML: 46068 MiB less 582 MiB that the driver keeps"]
    assert facts["gpu.vram_nvml"] == [46068 << 20, "NVML"]
    assert facts["gpu.free"] == [(46068 - 582 - 1000) << 20, "NVML"]
    assert facts["gpu.capability"] == [8.6, "NVML"]
    assert facts["gpu.bf16"] == [True, "catalogue"]
    assert facts["gpu.count"] == [1, "NVML"]
    (device,) = said["host"]["devices"]
    assert device == {
        "index": 0, "name": "NVIDIA A40", "total_mib": 46068, "free_mib": 44486, "reserved_mib": 582,
        "usable_mib": 45486, "capability": 8.6, "mig": None, "mig_mode": None, "utilisation": 37,
        "computes": False, "instances": [],
    }  # fmt: skip
    assert (said["host"]["driver"], said["host"]["cuda"]) == ("550.54.15", "12.4")
    assert log.read_text() == "init\nshutdown\n"


def test_eight_alike(library):
    said = ask(library, FAKE_NVML_GPUS="8")
    assert [(t["name"], t["count"]) for t in said["targets"]] == [("a40:8", 8)]
    assert said["sheet"]["devices"] == [
        {"name": "NVIDIA A40", "count": 8, "total_mib": 46068, "usable_mib": 45486, "capability": "8.6"}
    ]


def test_a_driver_without_version_2_of_the_memory_call(library):
    facts = ask(library, FAKE_NVML="nov2")["targets"][0]["facts"]
    assert facts["gpu.vram"][0] == 45486 << 20
    assert facts["gpu.vram"][1].startswith("catalogue: torch total_memory 45486 MiB")


def test_memory_that_is_not_told(library):
    facts = ask(library, FAKE_NVML="nomemory")["targets"][0]["facts"]
    assert facts["gpu.vram"][0] == 45486 << 20
    assert "gpu.free" not in facts


def test_mig_instances_are_devices_of_their_own(library):
    said = ask(library, FAKE_NVML="mig")
    (target,) = said["targets"]
    small = "a100-40gb-sxm-mig-1g.5gb"
    assert target["name"] == f"a100-40gb-sxm-mig-3g.20gb:1+{small}:2"
    assert target["count"] == 3
    assert target["facts"]["gpu.vram"][0] == 4864 << 20
    assert target["facts"]["gpu.mig"][0] is True
    assert target["notices"] == ["NVML: the GPUs differ; the weakest counts"]
    assert said["host"]["devices"][0]["mig_mode"] is True
    assert len(said["host"]["devices"][0]["instances"]) == 3
    assert [(d["mig"], d["count"]) for d in said["sheet"]["devices"]] == [("3g.20gb", 1), ("1g.5gb", 2)]


def test_different_gpus_make_one_target_of_the_weakest_figures(library):
    (target,) = ask(library, FAKE_NVML="mixed")["targets"]
    assert target["name"] == "rtx-3090:1+rtx-4090:1"
    assert target["gpu"] == "NVIDIA GeForce RTX 3090 + NVIDIA GeForce RTX 4090"
    assert target["count"] == 2
    facts = {name: fact[0] for name, fact in target["facts"].items()}
    assert facts["gpu.vram"] == (24564 - 483) << 20
    assert facts["gpu.capability"] == 8.6
    assert facts["gpu.bandwidth"] == 936e9
    assert (facts["gpu.bf16"], facts["gpu.fp8"]) == (True, False)
    assert "gpu.arch" not in facts


def test_a_gpu_that_the_catalogue_lacks(library):
    (target,) = ask(library, FAKE_NVML="unknown")["targets"]
    assert target["name"] == "nvidia-wonder-9000:1"
    facts = target["facts"]
    assert facts["gpu.fp4"] == [True, "derived from compute capability 12.0"]
    assert facts["gpu.arch"][0] == "Blackwell"
    assert facts["gpu.vram"][0] == 45486 << 20
    assert "gpu.bandwidth" not in facts


@pytest.mark.parametrize(
    ("role", "problem", "calls"),
    [
        ("none", "the NVIDIA driver finds no GPU on this machine", ["init", "shutdown"]),
        ("notloaded", "the NVIDIA driver is installed but not loaded", []),
        ("nopermission", "NVML is not accessible: no permission for the GPU devices", []),
        ("mismatch", "different versions; reboot to fix it", []),
        ("lost", "a GPU was lost", ["init", "shutdown"]),
        ("migempty", "MIG is on, but no MIG instance exists", ["init", "shutdown"]),
    ],
)
def test_problems(library, tmp_path, role, problem, calls):
    log = tmp_path / "log"
    said = ask(library, FAKE_NVML=role, FAKE_NVML_LOG=str(log))
    assert problem in said["problem"]
    assert "\n" not in said["problem"]
    assert said["targets"] == []
    assert (log.read_text().split() if log.exists() else []) == calls


def test_no_library(tmp_path):
    code = (
        "import ctypes, json\nfrom cfglint.hardware import probe\n"
        # A machine with a driver would find the real one.
        "ctypes.CDLL.__init__ = lambda *a, **k: (_ for _ in ()).throw(\n"
        "    OSError('cannot open shared object file: No such file or directory'))\n"
        "print(json.dumps(probe._said(processes=False)))"
    )
    said = ask(tmp_path, code)
    assert said == {"problem": "no NVIDIA driver on this machine (libnvidia-ml.so.1 not found)"}


# ── a driver that hangs, crashes or lies ───────────────────────────────────────────────────────────────────
SOON = "import cfglint.hardware.nvml\ncfglint.hardware.nvml.LIMIT = 1.5\n" + ASK


@pytest.mark.parametrize(
    ("role", "problem"),
    [
        ("hang", "the NVIDIA driver did not answer within 1.5 s"),
        ("hanglate", "the NVIDIA driver did not answer within 1.5 s"),
        ("crash", "the NVIDIA library crashed (signal 11)"),
        ("crashlate", "the NVIDIA library crashed (signal 6)"),
        ("exit", "the process that asks NVML ended without an answer (status 3)"),
        ("many", "the answer of the NVIDIA library makes no sense: 4000000000 GPUs"),
    ],
)
def test_what_a_driver_does_is_one_line(library, role, problem):
    said = ask(library, SOON, FAKE_NVML=role)
    assert (said["problem"], said["targets"], said["host"]) == (problem, [], None)


def test_a_process_that_cannot_be_killed_is_left_behind(library):
    """As one that waits inside of the kernel: nothing waits for it."""
    code = (
        "import subprocess, atexit\nreal = subprocess.Popen.kill\n"
        "subprocess.Popen.kill = lambda self: atexit.register(real, self)\n" + SOON
    )
    before = time.monotonic()
    assert "did not answer" in ask(library, code, "ignore", FAKE_NVML="hang")["problem"]
    assert time.monotonic() - before < 15


def test_what_the_library_prints_goes_nowhere(library):
    assert ask(library, FAKE_NVML="garbage") == ask(library)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"devices": [{}]}', "{" * 5000, "x" * 2**21, "\xff"])
def test_an_answer_that_makes_no_sense(text, monkeypatch, tmp_path):
    monkeypatch.setattr(
        nvml, "_START", f"import sys; sys.stdout.write(open({str(tmp_path / 'said')!r}).read())"
    )
    (tmp_path / "said").write_text(text)
    problem = nvml.detect().problem
    assert problem == nvml.holdings().problem
    assert problem == (
        "the answer of the NVIDIA library makes no sense"
        if text
        else "the process that asks NVML ended without an answer (status 0)"
    )


def test_figures_that_cannot_be_are_not_believed(library):
    said = ask(library, FAKE_NVML="lies")
    (device,) = said["host"]["devices"]
    assert device["name"] == "NVIDIA?[31m A40?::error::?"
    assert said["host"]["driver"] == "550?]0;title?"
    assert said["host"]["cuda"] is None
    for figure in ("total_mib", "free_mib", "reserved_mib", "capability", "utilisation"):
        assert device[figure] is None
    assert said["problem"] is None


def test_no_interpreter_to_start(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert nvml.detect().problem == "NVML cannot be asked: No such file or directory"


def test_no_thread_to_start(monkeypatch):
    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", start)
    assert nvml.detect().problem == "NVML cannot be asked: can't start new thread"


def test_modules_of_the_working_folder_are_not_run(library, tmp_path):
    (tmp_path / "pynvml.py").write_text("import os; os.mkdir('ran')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "LD_LIBRARY_PATH": str(library)}
    done = subprocess.run(
        [sys.executable, "-m", "cfglint", "hardware"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "NVIDIA A40" in done.stdout
    assert not (tmp_path / "ran").exists()


def test_nvml_is_asked_elsewhere(library):
    code = "import json, sys\nfrom cfglint.hardware.nvml import detect\nassert detect().targets\n"
    assert not {"pynvml", "ctypes"} & set(ask(library, code + "print(json.dumps(sorted(sys.modules)))"))


@pytest.mark.parametrize("zipped", [False, True])
def test_the_process_finds_its_modules(library, tmp_path, zipped):
    """cfglint and pynvml in a folder or in a zip, which only this process's path names."""
    package, place = os.path.dirname(nvml.__file__), tmp_path / "modules"
    shutil.copytree(os.path.dirname(package), place / "cfglint", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(pytest.importorskip("pynvml").__file__, place)
    if zipped:
        place = shutil.make_archive(str(place), "zip", place)
    code = (
        f"import sys\nsys.path[:0] = [{str(place)!r}]\n"
        + ASK
        + f"assert {str(place)!r} in sys.modules['cfglint'].__file__"
    )
    assert ask(library, code)["targets"]


@pytest.mark.parametrize("content", [b"", b"no library at all\n", b"\x7fELF" + bytes(200)])
def test_a_file_that_is_no_library(tmp_path, content):
    (tmp_path / "libnvidia-ml.so.1").write_bytes(content)
    assert "is broken" in ask(tmp_path)["problem"]


@pytest.mark.skipif(COMPILER is None, reason="no C compiler to build the stand-in for NVML")
@pytest.mark.parametrize(
    "code",
    [
        "int nothing(void) { return 0; }",
        "int nvmlInitWithFlags(unsigned f) { return f; } int nvmlInit_v2(void) { return 0; }",
    ],
)
def test_a_library_without_the_calls(tmp_path, code):
    (tmp_path / "bare.c").write_text(code)
    built = [COMPILER, "-shared", "-fPIC", "-o", tmp_path / "libnvidia-ml.so.1", tmp_path / "bare.c"]
    subprocess.run(built, check=True)
    assert "is broken" in ask(tmp_path)["problem"]


@pytest.mark.parametrize("module", ["raise ImportError('no')", "raise RuntimeError('odd')"])
def test_without_pynvml(tmp_path, module):
    (tmp_path / "pynvml.py").write_text(module)
    said = ask(tmp_path, f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + ASK)
    assert said["problem"] == "NVML is not available: the Python package nvidia-ml-py is missing or broken"


@pytest.mark.parametrize(
    ("chosen", "count"), [("0,1", 2), ("3", 1), ("0,9,1", 1), ("1,-1,2", 1), ("0, 1 ,2", 3), ("0,0", 1)]
)
def test_cuda_visible_devices(library, chosen, count):
    (target,) = ask(library, FAKE_NVML_GPUS="4", CUDA_VISIBLE_DEVICES=chosen)["targets"]
    assert target["name"] == f"a40:{count}"
    assert target["notices"] == [f"CUDA_VISIBLE_DEVICES={chosen} leaves {count} of this machine's 4 GPUs"]


def test_cuda_visible_devices_that_hide_all_or_are_no_numbers(library):
    for chosen in ("", "-1", "9", "9" * 5000):
        said = ask(library, CUDA_VISIBLE_DEVICES=chosen)
        assert said["problem"] == "CUDA_VISIBLE_DEVICES hides every GPU of this machine"
    said = ask(library, CUDA_VISIBLE_DEVICES="GPU-8932f937")
    assert said["targets"][0]["notices"] == [
        "CUDA_VISIBLE_DEVICES=GPU-8932f937 is not a list of numbers and was not applied"
    ]


@pytest.mark.parametrize("role", ["ok", "nov2", "mig", "mixed", "unknown"])
def test_the_sheet_of_a_machine_makes_the_same_target(library, role):
    said = ask(library, FAKE_NVML=role, FAKE_NVML_GPUS="2")
    (target,) = load_sheet(json.dumps(said["sheet"]), "hw.json")
    (measured,) = said["targets"]
    assert (target.name, target.gpu, target.count) == (measured["name"], measured["gpu"], measured["count"])
    values = {name: fact[0] for name, fact in measured["facts"].items() if name != "gpu.free"}
    assert {name: fact[0] for name, fact in target.facts.items()} == values
    assert "UUID" not in json.dumps(said["sheet"]).upper()


def test_importing_hardware_does_not_touch_nvml(library, tmp_path):
    log = tmp_path / "log"
    code = (
        "import cfglint.hardware, cfglint.hardware.nvml, cfglint.hardware.host, sys, json\n"
        "print(json.dumps(sorted({'pynvml', 'ctypes'} & set(sys.modules))))"
    )
    assert ask(library, code, FAKE_NVML_LOG=str(log)) == []
    assert not log.exists()


def test_utilisation_is_an_observation_while_a_process_computes(library):
    idle, busy = ask(library), ask(library, FAKE_NVML_PROCESSES="4711:8000")
    assert "observed.gpu_util" not in idle["targets"][0]["facts"]
    value, source = busy["targets"][0]["facts"]["observed.gpu_util"]
    assert value == 0.37
    assert source.startswith("NVML")
    assert "utilisation" not in json.dumps(busy["sheet"])
