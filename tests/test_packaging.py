"""What users install: the sdist, the wheel made from it, a fresh environment, and the wheel as a zip."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "grpo_one_gpu.yaml"
FLAGS = [
    "--gpu",
    "a40",
    "--no-detect",
    "--select",
    "CLI",
    "--rule",
    "gpu.vram<48 and colocated -> mem_fraction<=0.5",
]
ENV = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "CFGLINT_CACHE")}

pytestmark = pytest.mark.slow


def run(*command, status=0, cwd=None, env=()):
    done = subprocess.run(
        command, cwd=cwd, env={**ENV, **dict(env)}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def venv(folder):
    run(sys.executable, "-m", "venv", str(folder))
    return folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist, and the wheel made from the sdist."""
    folder = tmp_path_factory.mktemp("built")
    python = venv(folder / "build")
    run(python, "-m", "pip", "install", "-q", "build", "hatchling", "lark", "pyyaml")
    run(python, "-m", "build", "-q", "--no-isolation", "--outdir", folder / "dist", ROOT)
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "dist").glob("*.whl")
    return sdist, wheel


@pytest.mark.long
def test_the_sdist_has_what_the_wheel_is_made_of(built):
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in (
        "rules/vocabulary.rules",
        "schemas/report.schema.json",
        "tests/conftest.py",
        "LICENSE",
        "README.md",
    ):
        assert needed in names
    assert not [name for name in names if "__pycache__" in name]


@pytest.mark.long
def test_the_wheel_has_the_data(built):
    with zipfile.ZipFile(built[1]) as archive:
        names = set(archive.namelist())
    for path in [*ROOT.glob("rules/**/*.rules"), *ROOT.glob("schemas/*.json")]:
        assert f"cfglint/{path.relative_to(ROOT).as_posix()}" in names
    for needed in ("cfglint/py.typed", "cfglint/lang/grammar.lark", "cfglint/hardware/catalogue.yaml"):
        assert needed in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"cfglint", "cfglint_gpu"}


@pytest.mark.long  # pre-commit installs it as well (test_precommit.py)
def test_installed_from_the_wheel(built, tmp_path):
    python = venv(tmp_path / "venv")
    run(python, "-m", "pip", "install", "-q", built[1])
    tool = python.parent / "cfglint"
    cwd = tmp_path / "here"
    cwd.mkdir()
    home = {"CFGLINT_CACHE": str(tmp_path / "cache")}
    shown = run(tool, "check", EXAMPLE, *FLAGS, status=1, cwd=cwd, env=home)
    assert "error CLI001" in shown
    assert run(python, "-m", "cfglint", "check", EXAMPLE, *FLAGS, status=1, cwd=cwd, env=home) == shown
    assert run(tool, "fix", "--diff", EXAMPLE, *FLAGS, status=1, cwd=cwd, env=home).count("\n+") == 2
    assert "CFG001" in run(tool, "rules", cwd=cwd, env=home)
    api = "import cfglint; print(cfglint.check_text('a: [', path='x.yaml').findings[0].code)"
    assert run(python, "-c", api, cwd=cwd, env=home) == "CFG001\n"


@pytest.mark.long
def test_run_from_the_zipped_wheel(built, tmp_path):
    """The wheel on the path as a zip; its dependencies come from this environment."""
    env = {"PYTHONPATH": str(built[1]), "CFGLINT_CACHE": str(tmp_path / "cache")}
    where = "import cfglint; print(cfglint.__file__)"
    assert ".whl" in run(sys.executable, "-c", where, cwd=tmp_path, env=env)
    for _ in range(2):
        shown = run(sys.executable, "-m", "cfglint", "check", EXAMPLE, *FLAGS, status=1, env=env)
        assert "error CLI001" in shown


# Where a run without a cache gets its rules from: the modules that parse rules, where it needs them.
LOOK = """
import sys
from cfglint.cli import main
main(sys.argv[1:])
print(sorted({"lark", "cfglint.lang.check", "cfglint.lang.parse"} & set(sys.modules)))
"""


def parsers(python, *arguments, path=None, folder, cache=""):
    """Return which modules that parse rules a run loads."""
    env = {"CFGLINT_CACHE": str(cache), **({"PYTHONPATH": str(path)} if path else {})}
    return run(python, "-c", LOOK, *arguments, "--no-detect", cwd=folder, env=env).splitlines()[-1]


CLEAN = ["check", str(ROOT / "examples" / "grpo_clean.yaml"), "--gpu", "a40:2"]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """What a wheel installs, put together quickly; its dependencies come from this environment."""
    folder = tmp_path_factory.mktemp("unpacked")
    package = folder / "cfglint"
    shutil.copytree(ROOT / "linter" / "cfglint", package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("rules", "schemas"):
        shutil.copytree(ROOT / name, package / name)
    (package / "compiled").mkdir()
    env = {"PYTHONPATH": str(ROOT / "linter"), "CFGLINT_CACHE": ""}
    run(sys.executable, ROOT / "build_compiled.py", package / "compiled", env=env)
    return folder


_MORE = (pytest.param(kept, marks=pytest.mark.long) for kept in ("/proc/nowhere", "cache"))


@pytest.mark.parametrize("kept", ["", *_MORE])
def test_a_first_run_parses_no_rules(unpacked, tmp_path, kept):
    (tmp_path / "here").mkdir()
    cache = tmp_path / "cache" if kept == "cache" else kept
    for flags in (CLEAN, ["check", str(EXAMPLE), "--gpu", "a40"]):  # the second has findings: trees are read
        for _ in range(3 if kept == "cache" else 1):
            loaded = parsers(sys.executable, *flags, path=unpacked, folder=tmp_path / "here", cache=cache)
            assert "lark" not in loaded
    assert len(list((tmp_path / "cache" / "private").glob("rules-c*"))) == (kept == "cache")


@pytest.mark.long
def test_what_was_compiled_from_other_rules_is_not_used(unpacked, tmp_path):
    wheel = tmp_path / "wheel"
    shutil.copytree(unpacked, wheel)
    assert parsers(sys.executable, *CLEAN, path=wheel, folder=tmp_path) == "[]"
    edited = wheel / "cfglint" / "rules" / "run.rules"
    edited.write_text(edited.read_text("utf-8") + "# edited\n", "utf-8")
    assert "lark" in parsers(sys.executable, *CLEAN, path=wheel, folder=tmp_path)


@pytest.mark.long
def test_the_wheel_brings_compiled_rules(built, unpacked):
    made = {path.name for path in (unpacked / "cfglint" / "compiled").iterdir()}
    with zipfile.ZipFile(built[1]) as archive:
        folder = "cfglint/compiled/"
        brought = {
            i.filename.removeprefix(folder): i.file_size for i in archive.infolist() if folder in i.filename
        }
    assert brought.keys() == made == {"rules.bin", "trees.bin", "grammar.bin"}
    assert min(brought.values()) > 100_000


@pytest.mark.long
def test_a_checkout_runs_with_nothing_installed(tmp_path):
    env = {"PYTHONPATH": str(ROOT / "linter"), "CFGLINT_CACHE": str(tmp_path / "cache")}
    shown = run(sys.executable, "-m", "cfglint", "check", EXAMPLE, *FLAGS, status=1, cwd=tmp_path, env=env)
    assert "error CLI001" in shown
