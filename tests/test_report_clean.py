"""A run without findings: what it prints and what it does not import; and the dispatch of the forms."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cfglint.errors import UsageError
from cfglint.findings import Report
from cfglint.report import FORMATS, render
from cfglint.report.order import shown

ROOT = Path(__file__).resolve().parent.parent


CLEAN = """
import sys
sys.path.insert(0, {path!r})
from cfglint.findings import Report, Undecided
from cfglint.report import FORMATS, render
made = Report()
made.files, made.skipped = 3, 5
made.undecided = [Undecided("c.yaml", "a40", "MEM101", ("gpu.vram",))]
print(render(made, "text", color=True, verbose=True), end="")
print(render(made, "concise") + render(made, "github"), end="")
heavy = {{"rich", "json", "jsonschema", "dataclasses", "typing", "re", "difflib"}} & set(sys.modules)
print(sorted(heavy))
"""


def test_clean_run_is_light():
    # -S -E: site may import typing for an editable install, which is not our doing.
    code = CLEAN.format(path=str(ROOT / "linter"))
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", code], capture_output=True, text=True, check=True
    )
    summary = "no findings in 3 files (5 skipped)\n"
    line = "not checked: memory; which GPU? add --gpu NAME"
    short = f"{line}; --verbose lists them\n{summary}"
    assert done.stdout == f"{line}\n  c.yaml: MEM101 needs gpu.vram [a40]\n{summary}{short}{short}[]\n"


def test_clean_text():
    made = Report()
    assert render(made, "text") == "no findings in 0 files\n"
    made.files = 1
    assert render(made, "text") == "no findings in 1 file\n"


def test_unknown_form():
    with pytest.raises(UsageError, match=r"no report format 'jsn'; did you mean 'json'\? \(known: text, "):
        render(Report(), "jsn")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a b中🚀", "a b中🚀"),
        ("\x1b\x9b\x7f", "\\x1b\\x9b\\x7f"),
        ("a\tb\nc\r", "a b\\nc\\r"),
        ("\ud800\u2028", "\\ud800\\u2028"),
    ],
)
def test_shown(text, told):
    assert shown(text) == told


def test_examples_in_the_docs():
    page = (ROOT / "docs" / "ci.md").read_text("utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 5
    for block in blocks:
        assert yaml.safe_load(block)
    for command in re.findall(r"cfglint check .+", "".join(blocks)):
        assert "--no-detect" in command
        assert command.split("--format ")[1].split()[0] in FORMATS
