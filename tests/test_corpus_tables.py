"""Over all real configs: what is recognised as what, every error and every unknown key with the reason why.

The tables are committed in tests/corpus. With ``CFGLINT_UPDATE=1``
this test writes them; a reason stays with its file and code, and a person gives a new error its own.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cfglint.cli import main
from cfglint.command.inputs import SUFFIXES
from cfglint.document.reading import read
from cfglint.engine.run import Run
from cfglint.lang.pack import load

SHARED = os.environ.get("CFGLINT_SHARED")
pytestmark = pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no folder of real configs")
CORPUS = Path(SHARED or ".") / "corpus"
TABLES = Path(__file__).parent / "corpus"
UPDATE = "CFGLINT_UPDATE" in os.environ
_LARGEST = 2**20  # bytes; what is larger is data, which a folder walk passes over


def _held_against(name: str, lines: list[str]) -> None:
    path, text = TABLES / name, "\n".join(lines) + "\n"
    if UPDATE:
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def test_what_is_recognised() -> None:
    run = Run(load())
    found: dict[tuple[str, str], Counter[str]] = {}
    for path in sorted(p for p in CORPUS.rglob("*") if p.suffix in SUFFIXES and p.is_file()):
        if path.stat().st_size >= _LARGEST:
            continue
        kind = "script" if path.suffix in (".sh", ".sbatch", ".slurm", ".bash") else "config"
        file = read(path.read_bytes(), path.name)
        names = {subject.framework for subject in run.subjects(file, judge_broken=False)} - {None}
        folder = path.relative_to(CORPUS).parts[0]
        found.setdefault((folder, kind), Counter())[", ".join(sorted(map(str, names))) or "nothing"] += 1
    _held_against(
        "recognition.md",
        [
            "# What each folder of the corpus is recognised as, in files",
            "",
            "| folder | files | recognised as |",
            "|---|---|---|",
            *(
                f"| {folder} | {kind}s | {', '.join(f'{name} {n}' for name, n in sorted(counts.items()))} |"
                for (folder, kind), counts in sorted(found.items())
            ),
        ],
    )


def test_every_error_and_every_unknown_key_has_a_reason(capsys) -> None:
    main(["check", "--no-detect", "--skip-unknown", "--format", "json", str(CORPUS)])
    findings = json.loads(capsys.readouterr().out)["findings"]
    _errors_have_reasons(findings)
    codes = ("CFG012", "CFG014")  # CFG009, CFG011 and CFG013 are errors, and stand in errors.md
    _keys_have_reasons([finding for finding in findings if finding["code"] in codes])


def _errors_have_reasons(findings: list[dict[str, Any]]) -> None:
    table = TABLES / "errors.md"
    before = table.read_text(encoding="utf-8") if table.exists() else ""
    reasons = {
        (m[1], m[2]): m[3]
        for m in re.finditer(r"^\| (\S+) \| (\S+) \| .*? \| (.*) \|$", before, re.MULTILINE)
    }
    errors = sorted(
        {
            (str(Path(f["path"]).relative_to(CORPUS)), f["code"], f["target"] or "")
            for f in findings
            if f["level"] == "error"
        }
    )
    _held_against(
        "errors.md",
        [
            "# Every error over the corpus, judged for what each file itself asks for",
            "",
            "| file | code | target | why it is right |",
            "|---|---|---|---|",
            *(f"| {path} | {code} | {on} | {reasons.get((path, code), '')} |" for path, code, on in errors),
        ],
    )
    assert [error for error in errors if not reasons.get(error[:2])] == []


def _keys_have_reasons(findings: list[dict[str, Any]]) -> None:
    table = TABLES / "keys.md"
    before = table.read_text(encoding="utf-8") if table.exists() else ""
    lines = re.finditer(r"^\| \S+ \| (.*?) \| \d+ \| .*? \| (.*) \|$", before, re.MULTILINE)
    reasons = {line[1]: line[2] for line in lines}
    found: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        said = finding["message"].partition("; did you mean")[0]
        found.setdefault((finding["code"], said), []).append(str(Path(finding["path"]).relative_to(CORPUS)))
    _held_against(
        "keys.md",
        [
            "# Every unknown key and value over the corpus that is no error",
            "",
            "| code | what | files | the first | why it is right |",
            "|---|---|---|---|---|",
            *(
                f"| {code} | {said} | {len(paths)} | {min(paths)} | {reasons.get(said, '')} |"
                for (code, said), paths in sorted(found.items())
            ),
        ],
    )
    assert [said for _, said in found if not reasons.get(said)] == []
