"""docs/adding-a-framework.md: its files are written to a folder and every command is run there.

``CFGLINT_UPDATE=1`` writes what the commands print into the page.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cfglint.api import check_file
from cfglint.document.document import read
from cfglint.engine.run import Run
from cfglint.lang.pack import load
from cfglint.repair.apply import repair

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "adding-a-framework.md"
TEXT = PAGE.read_text("utf-8")
FILES = {m[1]: m[2] for m in re.finditer(r"^```\w+ (\S+)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)}
CONSOLE = re.compile(r"(?<=^```console\n)(.*?)(?=^```)", re.MULTILINE | re.DOTALL)


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """The page's files in a folder of their own, and the command that an install makes."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    for name, arguments in (("cfglint", "-m cfglint"), ("python", "")):
        tool = tmp_path / "bin" / name
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        tool.chmod(0o755)
    return tmp_path


def _printed(command: str, folder: Path) -> str:
    env = {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "linter"),
        "PYTHONIOENCODING": "utf-8",
    }
    run = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    return run.stdout


def test_the_commands(toy: Path) -> None:
    def shown(block: re.Match[str]) -> str:
        commands = re.findall(r"^\$ (.*)$", block[0], re.MULTILINE)
        return "".join(f"$ {command}\n{_printed(command, toy)}" for command in commands)

    page = CONSOLE.sub(shown, TEXT)
    if "CFGLINT_UPDATE" in os.environ:
        PAGE.write_text(page, "utf-8")
    assert page == PAGE.read_text("utf-8")


def test_the_block_and_two_cases_are_all(toy: Path) -> None:
    """Beside the shipped rules the block is recognised and its cases hold."""
    pack = load({"minitrain.rules": FILES["minitrain.rules"]})
    run = Run(pack, selected=lambda code: code == "BAT901")
    found = {}
    for case in sorted((toy / "tests/cases/BAT901").iterdir()):
        file = read(case.read_bytes(), case.name)
        assert check_file(run, file)
        found[case.stem] = [finding.code for finding in run.report.findings]
        run.report.findings = []
        fixed = repair(run, file, unsafe=True, least="info", notes=False)
        assert bool(fixed.applied) == bool(found[case.stem])
    assert found == {"bad_minitrain": ["BAT901"], "ok_minitrain": []}
