"""Every rule's cases: a config, the flags, and the expected report and diff. No code per rule.

``tests/cases/<CODE>/bad_*.yaml`` (or ``.json``, ``.toml``, ``.sh``) must give a finding of that code,
``ok_*.yaml`` none. ``<name>.out`` is what two commands print: the report and the diff (golden.py); the first
command has the case's flags. A good case without flags that finds nothing at all needs none. On every case
the harness also checks what must hold of any fix: of this rule's, and in the slow tier of all.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cfglint.api import check_file
from cfglint.command import parse, setup
from cfglint.document.reading import read
from cfglint.features.fix import FixOptions
from cfglint.repair.apply import repair
from cfglint.report import render
from cfglint.report.changes import unified
from golden import expect

if TYPE_CHECKING:
    from cfglint.engine.run import Run

CASES = Path(__file__).parent / "cases"
NOTHING = "no findings in 1 file\n", ""  # a report and a diff
SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".sh", ".sbatch")
FILES = sorted(p for p in CASES.glob("*/*") if p.suffix in SUFFIXES)

on_every_case = pytest.mark.parametrize("case", FILES, ids=lambda p: f"{p.parent.name}/{p.name}")


def _run(flags: tuple[str, ...], select: str | None) -> Run:
    arguments = [*flags, "--no-detect", *(["--select", select] if select else [])]
    return setup.run(parse(FixOptions, ["x.yaml", *arguments]))


@cache
def _shared_run(flags: tuple[str, ...], folder: Path | None) -> Run:
    """Return a run of all rules; ``folder`` is where relative flags hold."""
    del folder
    return _run(flags, None)


def _command(case: Path) -> str:
    """Return the start of a case's first command, before its flags."""
    return f"$ cfglint check {case.name} --select {case.parent.name} "


def _flags(case: Path) -> tuple[str, ...]:
    out = case.with_suffix(".out")
    if not out.exists():
        return ()
    first = out.read_text(encoding="utf-8").partition("\n")[0]
    assert first.startswith(_command(case)), f"{out} begins with the command: {_command(case)}"
    return tuple(shlex.split(first.removeprefix(_command(case))))


def _all_rules(case: Path) -> Run:
    flags = _flags(case)
    return _shared_run(flags, case.parent if "--rules" in flags else None)


def _findings(run: Run, data: bytes, name: str):
    run.report.findings, run.report.undecided = [], []
    run.report.files = 0
    assert check_file(run, read(data, name)), "no framework recognises this case"
    return list(run.report.findings)


def _judged(run: Run, data: bytes, name: str):
    """Return the findings without looking for their fixes."""
    run.report.findings, run.report.undecided = [], []
    assert run.add(read(data, name))
    return list(run.report.findings)


def _mended(run: Run, data: bytes, name: str):
    return repair(run, read(data, name), unsafe=True, least="info", notes=False)


@pytest.fixture(autouse=True)
def _beside_the_case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case's flags may name files that lie beside it, such as ``--rules toy.rules``."""
    if "case" in request.fixturenames:
        monkeypatch.chdir(request.getfixturevalue("case").parent)


def _transcript(case: Path, flags: tuple[str, ...], report: str, diff: str) -> str:
    return f"{_command(case)}{shlex.join(flags)}\n{report}\n$ cfglint fix --diff --unsafe\n{diff}"


@on_every_case
def test_case(case: Path) -> None:
    code, flags, ok = case.parent.name, _flags(case), case.name.startswith("ok")
    run = _run(flags, code)
    data = case.read_bytes()
    findings = _findings(run, data, case.name)
    report = render(run.report, "text", color=False, width=100, verbose=True)
    result = _mended(run, data, case.name)
    diff = unified(case.name, read(data, case.name).text, result.text)
    expect(case, _transcript(case, flags, report, diff), _transcript(case, (), *NOTHING) if ok else None)
    if ok:
        assert not findings
    else:
        assert findings, "a bad case must be found"
    _holds_of_any_fix(run, case, result)


@pytest.mark.long
@on_every_case
def test_all_rules_at_once(case: Path) -> None:
    run = _all_rules(case)
    _holds_of_any_fix(run, case, _mended(run, case.read_bytes(), case.name))


def _holds_of_any_fix(run: Run, case: Path, result) -> None:
    """Fixes converge, are idempotent, leave other bytes alone and make nothing worse."""
    data = case.read_bytes()
    file = read(data, case.name)
    if not result.applied:
        assert result.text == file.text
        return
    fixed = file.encode(result.text)
    assert _mended(run, fixed, case.name).text == result.text, "fixing twice is fixing once"
    before = _judged(_all_rules(case), data, case.name)
    after = _judged(_all_rules(case), fixed, case.name)
    broken = {(f.code, f.target) for f in before}
    # That hardware could do more now is worth a hint, and no reason to leave something broken.
    after = [
        f
        for f in after
        if (f.code, f.target) in broken or not (f.code.startswith("PRF") and f.level == "info")
    ]
    assert {(f.code, f.target) for f in after} <= broken, "a fix brought a new finding"
    assert len(after) <= len(before)
    changed = set(_changed_lines(file.text, result.text))
    most = 3 if "\\\n" in file.text else 2  # a command that goes on changes its last line, too
    assert len(changed) <= most * sum(len(fix.edits) for _, fix in result.applied)


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
