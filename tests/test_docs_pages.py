"""Pages that add a rule or a framework: their files are written to a folder, every command is run there.

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
from cfglint.document.reading import read
from cfglint.engine.run import Run
from cfglint.features.test.examples import run_examples
from cfglint.lang.pack import load
from cfglint.repair.apply import repair
from golden import FENCE, Page

ROOT = Path(__file__).resolve().parents[1]
# Each page, with its rule file, the rule, and whether the rule's finding has a fix.
PAGES = {
    "docs/adding-a-framework.md": ("minitrain.rules", "BAT901", True),
    "CONTRIBUTING.md": ("beta.rules", "BAT990", True),
}
CONSOLE = re.compile(r"(?<=^```console\n)(.*?)(?=^```)", re.MULTILINE | re.DOTALL)

on_every_page = pytest.mark.parametrize("page", PAGES)


@pytest.fixture
def toy(page: str, tmp_path: Path) -> Path:
    """The page's files in a folder of their own, and the command that an install makes."""
    for fence in FENCE.finditer((ROOT / page).read_text("utf-8")):
        if name := fence["name"]:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(fence["text"], "utf-8")
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


@on_every_page
def test_the_commands(page: str, toy: Path) -> None:
    def shown(block: re.Match[str]) -> str:
        commands = re.findall(r"^\$ (.*)$", block[0], re.MULTILINE)
        return "".join(f"$ {command}\n{_printed(command, toy)}" for command in commands)

    path = ROOT / page
    text = path.read_text("utf-8")
    now = CONSOLE.sub(shown, text)
    if "CFGLINT_UPDATE" in os.environ:
        path.write_text(now, "utf-8")
    assert now == path.read_text("utf-8")


@on_every_page
def test_the_rule_and_two_cases_are_all(page: str, toy: Path) -> None:
    """Beside the shipped rules the examples hold, the bad case is found and the good one is not."""
    name, code, mends = PAGES[page]
    pack = load({name: (toy / name).read_text("utf-8")})
    examples = run_examples(pack, {code})
    assert len(examples) >= 2
    assert all(outcome.ok for outcome in examples), examples
    run = Run(pack, selected=lambda selected: selected == code)
    found = {}
    cases = Page(toy / "tests" / "cases" / f"{code}.md")
    assert f"rule {cases.title} " in (toy / name).read_text("utf-8")
    for case, text in cases.files.items():
        file = read(text.encode(), case)
        assert check_file(run, file)
        found[case] = [finding.code for finding in run.report.findings]
        run.report.findings = []
        fixed = repair(run, file, unsafe=True, least="info", notes=False)
        assert bool(fixed.applied) == (mends and bool(found[case]))
    assert sorted(found.values()) == [[], [code]]
    assert all(case.startswith("bad") == bool(codes) for case, codes in found.items())
