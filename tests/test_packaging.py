"""What users install: the sdist, the wheel made from it, a fresh environment, and the wheel as a zip."""

import os
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
    run(python, "-m", "pip", "install", "-q", "build", "hatchling")
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
    home = {"CFGLINT_CACHE": str(tmp_path / "cache")}
    shown = run(tool, "check", EXAMPLE, *FLAGS, status=1, cwd=tmp_path, env=home)
    assert "error CLI001" in shown
    assert run(python, "-m", "cfglint", "check", EXAMPLE, *FLAGS, status=1, cwd=tmp_path, env=home) == shown
    assert run(tool, "fix", "--diff", EXAMPLE, *FLAGS, status=1, cwd=tmp_path, env=home).count("\n+") == 2
    assert "CFG001" in run(tool, "rules", cwd=tmp_path, env=home)
    api = "import cfglint; print(cfglint.check_text('a: [', path='x.yaml').findings[0].code)"
    assert run(python, "-c", api, cwd=tmp_path, env=home) == "CFG001\n"


@pytest.mark.long
def test_run_from_the_zipped_wheel(built, tmp_path):
    """The wheel on the path as a zip; its dependencies come from this environment."""
    env = {"PYTHONPATH": str(built[1]), "CFGLINT_CACHE": str(tmp_path / "cache")}
    where = "import cfglint; print(cfglint.__file__)"
    assert ".whl" in run(sys.executable, "-c", where, cwd=tmp_path, env=env)
    for _ in range(2):
        shown = run(
            sys.executable, "-m", "cfglint", "check", EXAMPLE, *FLAGS, status=1, cwd=tmp_path, env=env
        )
        assert "error CLI001" in shown


def test_a_checkout_runs_with_nothing_installed(tmp_path):
    env = {"PYTHONPATH": str(ROOT / "linter"), "CFGLINT_CACHE": str(tmp_path / "cache")}
    shown = run(sys.executable, "-m", "cfglint", "check", EXAMPLE, *FLAGS, status=1, cwd=tmp_path, env=env)
    assert "error CLI001" in shown
