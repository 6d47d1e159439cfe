"""Every console block of the README and of docs/plan.md, run as it stands; … matches any text."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = README + (ROOT / "docs" / "plan.md").read_text("utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```", PAGES, re.DOTALL | re.MULTILINE)
SH = re.findall(r"^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def commands(block):
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


CASES = [case for block in BLOCKS for case in commands(block)]


def output_of(command, folder):
    # The command that an install makes, without installing.
    tool = folder / "cfglint"
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cfglint "$@"\n')
    tool.chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "linter"),
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        ["sh", "-c", command], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def matches(expected, shown):
    pattern = ".*?".join(re.escape(part) for part in expected.split("…"))
    return re.fullmatch(pattern, shown, re.DOTALL) is not None


def test_the_readme_shows_commands():
    assert len(CASES) >= 4
    assert any("check" in command for command, _ in CASES)
    assert any("fix" in command for command, _ in CASES)


@pytest.mark.parametrize(("command", "expected"), CASES, ids=[command[:60] for command, _ in CASES])
def test_console_block(command, expected, tmp_path):
    shown = output_of(command, tmp_path)
    assert matches(expected, shown), shown


def test_an_edited_output_would_fail(tmp_path):
    command, expected = CASES[0]
    assert not matches(expected.replace("0.5", "0.6"), output_of(command, tmp_path))


def test_the_two_commands():
    """One line installs and checks a shipped example; one installs what tests need and runs them."""
    lines = "".join(SH).splitlines()
    checks = [line for line in lines if line.startswith("pip install . && cfglint check ")]
    assert len(checks) == 1
    assert (ROOT / checks[0].split()[6]).is_file()
    assert "pip install -e '.[dev]' && pytest -n auto" in lines


def test_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", README):
        if not link.startswith("http") and not link.endswith(
            "language.md"
        ):  # written by the language's authors
            assert (ROOT / link).exists(), link
