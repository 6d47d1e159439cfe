"""Every rule's cases: configs, the flags, and the expected report and diff. No code per rule.

``tests/cases/<CODE>.md`` is a page of files (golden.py). Those named ``bad_*`` must give a finding of that
code, those named ``ok_*`` none; beside them lie ``.rules`` and, in folders, files that they name. Below a
case stands what two commands print: the report, and the diff if there is one. The first command has the
case's flags. A good case prints nothing, and needs no command unless it has flags. On every case the harness
also checks what must hold of any fix: of this rule's, and in the slow tier of all.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from cfglint.api import check_file
from cfglint.command import parse, setup
from cfglint.document.reading import read
from cfglint.engine.judge import decides
from cfglint.features.fix import FixOptions
from cfglint.repair.apply import repair
from cfglint.report import render
from cfglint.report.changes import unified
from golden import Case, all_cases, page_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from cfglint.engine.run import Run

NOTHING = "no findings in 1 file\n"
FIX = "$ cfglint fix --diff --unsafe"


def _named(cases: Iterable[Case]) -> Iterator[Any]:
    """Yield cases as parameters; of each rule, the first bad and the first good one stand for the rest."""
    seen: set[tuple[str, bool]] = set()
    for case in cases:
        marks = [pytest.mark.alike] if (case.code, case.ok) in seen else []
        seen.add((case.code, case.ok))
        yield pytest.param(case, marks=marks, id=f"{case.code}/{case.name}")


on_every_case = pytest.mark.parametrize("case", [*_named(all_cases())])


@cache
def _shared_run(flags: tuple[str, ...], select: str, folder: str) -> Run:
    """Return a run of the rules selected, or of all; ``folder`` is where relative flags hold."""
    del folder
    arguments = [*flags, "--no-detect", *(["--select", select] if select else [])]
    return setup.run(parse(FixOptions, ["x.yaml", *arguments]))


def _own_rule(case: Case) -> Run:
    return _shared_run(case.flags, case.code, case.code).but()  # with a report of its own


def _all_rules(case: Case) -> Run:
    return _shared_run(case.flags, "", case.code if "--rules" in case.flags else "")


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
    return repair(run, read(data, name), unsafe=True, least="info", notes=False, accept_may=True)


@cache
def _folder(code: str, base: Path) -> Path:
    """Return a folder with the files of a rule's page."""
    return page_of(code).write_files(base / "cases" / code)


@pytest.fixture(autouse=True)
def _beside_the_case(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A case and its flags may name files that lie beside it, such as ``--rules toy.rules``."""
    if "case" in request.fixturenames:
        monkeypatch.chdir(_folder(request.getfixturevalue("case").code, tmp_path_factory.getbasetemp()))


@on_every_case
def test_case(case: Case) -> None:
    assert case.name.startswith(("ok_", "bad_"))
    run = _own_rule(case)
    findings = _findings(run, case.data, case.name)
    report = render(run.report, "text", color=False, width=100, verbose=True)
    result = _mended(run, case.data, case.name)
    diff = unified(case.name, read(case.data, case.name).text, result.text)
    may = any(fix.certainty != "sure" for _, fix in result.applied)
    command = f"\n{FIX}{' --accept-may' if may else ''}\n"
    printed = ("" if report == NOTHING else report) + (command + diff if diff else "")
    needed = bool(case.flags) or not case.ok
    assert printed == case.page.expected(case.words, printed, below=case.name, needed=needed)
    if case.ok:
        assert not findings
    else:
        assert findings, "a bad case must be found"
    _holds_of_any_fix(run, case, result)


@pytest.mark.long
@on_every_case
def test_all_rules_at_once(case: Case) -> None:
    run = _all_rules(case)
    _holds_of_any_fix(run, case, _mended(run, case.data, case.name))


def _possible(run: Run, file) -> set[tuple[str, str]]:
    """Return the memory rules that may not hold; where that is not likely, the verdict alone says it."""
    subjects = run.subjects(file, judge_broken=True)
    judgements = [judged for subject in subjects for judged in run.judged(subject)]
    return {(v.rule.code, j.name) for j in judgements for v in j.verdicts if decides(v.rule)}


def _holds_of_any_fix(run: Run, case: Case, result) -> None:
    """Fixes converge, are idempotent, leave other bytes alone and make nothing worse."""
    file = read(case.data, case.name)
    if not result.applied:
        assert result.text == file.text
        return
    fixed = file.encode(result.text)
    assert _mended(run, fixed, case.name).text == result.text, "fixing twice is fixing once"
    before = _judged(_all_rules(case), case.data, case.name)
    after = _judged(_all_rules(case), fixed, case.name)
    broken = {(f.code, f.target) for f in before}
    if not {(f.code, f.target) for f in after} <= broken:
        broken |= _possible(_all_rules(case), file)
    # That hardware could do more now is worth a hint, and no reason to leave something broken.
    after = [
        f
        for f in after
        if (f.code, f.target) in broken or not (f.code.startswith("PRF") and f.level == "info")
    ]
    assert {(f.code, f.target) for f in after} <= broken, "a fix brought a new finding"
    assert len(after) <= len(before)
    changed = set(_changed_lines(file.text, result.text))
    json = case.name.endswith(".json")
    most = 3 if json or "\\\n" in file.text else 2  # what goes on changes its last line, too
    edits = [edit for _, fix in result.applied for edit in fix.edits]
    assert len(changed) <= most * sum(max(1, edit.new.count("\n")) for edit in edits)


def _changed_lines(old: str, new: str) -> set[str]:
    import difflib

    lines = difflib.ndiff(old.split("\n"), new.split("\n"))
    return {line for line in lines if line.startswith(("+ ", "- "))}


def test_every_shipped_rule_has_cases() -> None:
    names = {rule.code: rule.name for rule in _shared_run((), "", "").pack.rules}
    have = {(case.code, case.ok) for case in all_cases()}
    assert have == {(code, ok) for code in names for ok in (True, False)}
    for code, name in names.items():
        assert page_of(code).title == f"{code} {name}"


def test_every_command_is_of_a_case() -> None:
    checked = {(case.code, case.words) for case in all_cases()}
    for code in {case.code for case in all_cases()}:
        assert {(code, words) for words in page_of(code).shown} <= checked


def test_git_takes_every_diff(tmp_path: Path) -> None:
    diffs = []
    for case in all_cases():
        diff = case.expected.partition(FIX)[2]
        if diff:
            name = f"{case.code}_{case.name}"
            (tmp_path / name).write_bytes(case.data)
            diffs.append(diff.replace(f"a/{case.name}", f"a/{name}").replace(f"b/{case.name}", f"b/{name}"))
    patch = tmp_path / "all.patch"
    patch.write_text("".join(diffs))
    done = subprocess.run(
        ["git", "apply", "--check", patch.name], check=False, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
