"""Every rule's cases: a config, the flags, and the expected report and diff. No code per rule.

``tests/cases/<CODE>/bad_*.yaml`` (or ``.json``, ``.toml``, ``.sh``) must give a finding of that code,
``ok_*.yaml`` none; ``<name>.cmd`` holds the flags, ``<name>.out`` the report and the diff
(``CFGLINT_UPDATE=1 pytest tests/test_cases.py`` writes, then read by a person). On every case the harness
also checks what must hold of any fix.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cfglint.api import check_file
from cfglint.command import setup
from cfglint.command.flags import parse
from cfglint.document.reading import read
from cfglint.features.fix.command import FixOptions
from cfglint.repair.apply import repair
from cfglint.report import render
from cfglint.report.diff import unified

if TYPE_CHECKING:
    from cfglint.engine.run import Run

CASES = Path(__file__).parent / "cases"
SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".sh", ".sbatch")
FILES = sorted(p for p in CASES.glob("*/*") if p.suffix in SUFFIXES)
UPDATE = "CFGLINT_UPDATE" in os.environ


def _flags(case: Path) -> list[str]:
    command = case.with_suffix(".cmd")
    return shlex.split(command.read_text()) if command.exists() else []


def _run(flags: tuple[str, ...], select: str | None) -> Run:
    arguments = [*flags, "--no-detect", *(["--select", select] if select else [])]
    return setup.run(parse(FixOptions, ["x.yaml", *arguments]))


@cache
def _shared_run(flags: tuple[str, ...], folder: Path | None) -> Run:
    """Return a run of all rules; ``folder`` is where relative flags hold."""
    del folder
    return _run(flags, None)


def _findings(run: Run, data: bytes, name: str):
    run.report.findings, run.report.undecided = [], []
    run.report.files = 0
    assert check_file(run, read(data, name)), "no framework recognises this case"
    return list(run.report.findings)


@pytest.fixture(autouse=True)
def _beside_the_case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case's flags may name files that lie beside it, such as ``--rules toy.rules``."""
    if "case" in request.fixturenames:
        monkeypatch.chdir(request.getfixturevalue("case").parent)


@pytest.mark.parametrize("case", FILES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_case(case: Path) -> None:
    code, flags = case.parent.name, tuple(_flags(case))
    run = _run(flags, code)
    file = read(case.read_bytes(), case.name)
    found = _findings(run, case.read_bytes(), case.name)
    report = render(run.report, "text", color=False, width=100, verbose=True)
    fixed = repair(run, file, unsafe=True, least="info", notes=False).text
    diff = unified(case.name, file.text, fixed)
    checked = f"$ cfglint check {case.name} --select {code} {' '.join(flags)}\n{report}"
    out = f"{checked}\n$ cfglint fix --diff --unsafe\n{diff}"
    if UPDATE:
        case.with_suffix(".out").write_text(out)
    assert case.with_suffix(".out").exists(), "no expectation yet: CFGLINT_UPDATE=1 writes it, then read it"
    assert out == case.with_suffix(".out").read_text()
    if case.name.startswith("ok"):
        assert not found
    else:
        assert found, "a bad case must be found"


@pytest.mark.parametrize("case", FILES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_invariants_of_fixing(case: Path) -> None:
    """Fixes converge, are idempotent, leave other bytes alone and make nothing worse."""
    flags = tuple(_flags(case))
    run = _shared_run(flags, case.parent if "--rules" in flags else None)
    data = case.read_bytes()
    file = read(data, case.name)
    before = _findings(run, data, case.name)
    result = repair(run, file, unsafe=True, least="info", notes=False)
    again = repair(run, read(file.encode(result.text), case.name), unsafe=True, least="info", notes=False)
    assert again.text == result.text, "fixing twice is fixing once"
    after = _findings(run, file.encode(result.text), case.name)
    known = {(f.code, f.target) for f in before}
    # That hardware could do more now is worth a hint, and no reason to leave something broken.
    after = [
        f
        for f in after
        if (f.code, f.target) in known or not (f.code.startswith("PRF") and f.level == "info")
    ]
    assert {(f.code, f.target) for f in after} <= known, "a fix brought a new finding"
    assert len(after) <= len(before)
    changed = set(_changed_lines(file.text, result.text))
    most = 3 if "\\\n" in file.text else 2  # a command that goes on changes its last line, too
    assert len(changed) <= most * sum(len(fix.edits) for _, fix in result.applied) or not result.applied
    if not result.applied:
        assert result.text == file.text


def _changed_lines(old: str, new: str) -> set[str]:
    import difflib

    lines = difflib.ndiff(old.split("\n"), new.split("\n"))
    return {line for line in lines if line.startswith(("+ ", "- "))}


def test_every_shipped_rule_has_cases() -> None:
    run = _shared_run((), None)
    codes = {rule.code for rule in run.pack.rules}
    have = {(p.parent.name, p.name.split("_")[0]) for p in FILES}
    missing = sorted(f"{code}/{kind}" for code in codes for kind in ("bad", "ok") if (code, kind) not in have)
    assert not missing
    assert {p.parent.name for p in FILES} <= codes


def test_git_takes_every_diff(tmp_path: Path) -> None:
    diffs = []
    for case in FILES:
        text = case.with_suffix(".out").read_text() if case.with_suffix(".out").exists() else ""
        diff = text.partition("$ cfglint fix --diff --unsafe\n")[2]
        if diff:
            name = f"{case.parent.name}_{case.name}"
            (tmp_path / name).write_bytes(case.read_bytes())
            diffs.append(diff.replace(f"a/{case.name}", f"a/{name}").replace(f"b/{case.name}", f"b/{name}"))
    patch = tmp_path / "all.patch"
    patch.write_text("".join(diffs))
    done = subprocess.run(
        ["git", "apply", "--check", patch.name], check=False, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
