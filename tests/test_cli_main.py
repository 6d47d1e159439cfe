"""The command inside a Python process, with other streams, with limits of Python's own, beside a stranger."""

import contextlib
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cfglint.cli import COMMANDS, main

ROOT = Path(__file__).resolve().parents[1]
LONG = "1" + 5000 * "0"
DEEP = 10_000 * "["


def called(*arguments, stdin=None):
    """Run the command with texts for streams; return its status and what it wrote."""
    out, err = io.StringIO(), io.StringIO()
    before = sys.stdin
    sys.stdin = io.StringIO(stdin) if stdin is not None else before
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main([str(argument) for argument in arguments])
            assert sys.stdout is out
    finally:
        sys.stdin = before
    assert "internal error" not in err.getvalue()
    return status, out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "grpo.yaml", "--no-detect", "--gpu", "a40"],
        ["fix", "grpo.yaml", "--diff", "--no-detect", "--gpu", "a40"],
        ["fit", "grpo.yaml", "--gpu", "a40"],
        ["plan", "grpo.yaml", "--gpu", "a40:2", "--diff"],
        ["explain", "MEM101", "grpo.yaml", "--gpu", "a40"],
        ["frameworks", "grpo.yaml"],
        ["--version"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_text_streams(cfglint, config, arguments):
    status, out, err = called(*arguments)
    done = cfglint(*arguments)
    ascii_only = [line for line in done.stdout.splitlines() if line.isascii()]
    assert status == done.returncode
    assert err == done.stderr
    assert ascii_only
    assert set(ascii_only) & set(out.splitlines())


def test_a_text_is_fixed_from_stdin_to_stdout(cfglint, config, small):
    text = config.read_text()
    done = cfglint("fix", "-", *small, stdin=text.encode())
    status, out, err = called("fix", "-", *small, "--no-detect", stdin=text)
    assert (status, out, err) == (done.returncode, done.stdout, done.stderr)
    assert out != text
    assert called("check", "-", *small, "--no-detect", stdin=text)[0] == 1


@pytest.mark.parametrize("name", ["cfglint.toml", "pyproject.toml"])
@pytest.mark.parametrize(
    ("value", "said"),
    [(LONG, "it has a number with too many digits"), (DEEP, "its lists or tables are nested too deeply")],
    ids=["long", "deep"],
)
def test_settings_beyond_pythons_limits(config, name, value, said):
    head = "[tool.cfglint]\n" if name == "pyproject.toml" else ""
    Path(name).write_text(f"{head}jobs = {value}\n")
    status, out, err = called("check", config, "--no-detect")
    assert (status, out) == (2, "")
    assert err == f"cfglint: error: {Path(name).resolve()}: {said}\n"


def test_settings_with_a_large_number_of_processes(config):
    Path("cfglint.toml").write_text(f"jobs = 0x{'f' * 5000}\n")
    shutil.copy(config, "other.yaml")
    assert called("check", ".", "--no-detect", "--select", "CLI")[0] == 0


@pytest.mark.parametrize("value", [LONG, DEEP], ids=["long", "deep"])
def test_a_sheet_beyond_pythons_limits(config, value):
    Path("sheet.json").write_text(f'{{"devices": {value}')
    status, out, err = called("check", config, "--hardware", "sheet.json")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("cfglint: error: sheet.json:")


def test_the_help_names_every_command():
    page = called("--help")[1]
    for name in COMMANDS:
        assert f"  cfglint {name} " in page
    assert max(map(len, page.splitlines())) <= 110


# ── another package of the same name ───────────────────────────────────────────────────────────────────────
STRANGER = {
    "cfglint/__init__.py": "__version__ = '1.0.0'\n",
    "cfglint/errors.py": "class ConfigError(Exception):\n    pass\n",
    "cfglint/report.py": "def report():\n    pass\n",
}


def installed(folder, *replaced):
    """Lay out what pip leaves where a stranger's package came after ours; some files are the stranger's."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "linter" / "cfglint", folder / "cfglint", ignore=ignored)
    for name in ("rules", "schemas"):
        shutil.copytree(ROOT / name, folder / "cfglint" / name, ignore=ignored)
    for path in replaced:
        (folder / path).write_text(STRANGER[path])
    about = folder / "cfglint-1.0.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: cfglint\nVersion: 1.0.0\n")
    (about / "RECORD").write_text("".join(f"{path},,\n" for path in STRANGER))
    return folder


def run(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "cfglint", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_a_stranger_that_replaced_a_module(tmp_path, config):
    folder = installed(tmp_path / "site", "cfglint/__init__.py", "cfglint/errors.py")
    for arguments in (["check", config], ["--version"]):
        done = run(folder, *arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        said = "cfglint: error: another package named cfglint (1.0.0) has its files among ours in "
        assert done.stderr.startswith(said)
        assert "`pip uninstall cfglint`, then `pip install --force-reinstall cfglint-gpu`" in done.stderr


@pytest.mark.long
def test_a_stranger_beside_ours(tmp_path, config):
    """What it left of ours works; --version tells of it, since its removal takes files of ours."""
    folder = installed(tmp_path / "site", "cfglint/report.py")
    done = run(folder, "check", config, "--no-detect", "--select", "CLI")
    assert (done.returncode, done.stderr) == (0, "")
    done = run(folder, "--version")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "another package named cfglint (1.0.0)" in done.stderr


def test_a_stranger_in_another_folder(tmp_path, config):
    (tmp_path / "other").mkdir()
    about = installed(tmp_path / "site") / "cfglint-1.0.0.dist-info"
    about.rename(tmp_path / "other" / about.name)
    done = run(f"{tmp_path / 'site'}{os.pathsep}{tmp_path / 'other'}", "--version")
    assert (done.returncode, done.stderr) == (0, "")
