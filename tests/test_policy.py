"""The example of a team's policy: 25 rules with examples and pages, and docs/policy.md beside them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from golden import Page

ROOT = Path(__file__).parents[1]
POLICY = ROOT / "examples" / "policy"
TEXTS = {path.name: path.read_text("utf-8") for path in sorted(POLICY.glob("*.rules"))}
RULES = {
    code: name
    for text in TEXTS.values()
    for code, name in re.findall(r"^rule (\S+) (\S+)", text, re.MULTILINE)
}
DOC = (ROOT / "docs" / "policy.md").read_text("utf-8")


def test_each_rule_has_a_page_with_both_kinds_of_cases() -> None:
    pages = {path.stem: Page(path) for path in (POLICY / "tests").glob("*.md")}
    assert len(RULES) == 25
    assert {code: page.title for code, page in pages.items()} == {
        c: f"{c} {name}" for c, name in RULES.items()
    }
    for page in pages.values():
        kinds = {name.partition("_")[0] for name in page.files}
        assert kinds == {"bad", "ok"}
        # What is printed of a bad case is in the page, so that a change of it is seen.
        assert all(
            page.shown[words].partition("\n")[2] for words in page.shown if words[1].startswith("bad_")
        )
        assert {words[1] for words in page.shown} >= {name for name in page.files if name.startswith("bad_")}


def test_it_holds(cfglint, folder: Path) -> None:
    shutil.copytree(POLICY, folder / "policy")
    done = cfglint("test", "policy")
    assert (done.returncode, done.stdout) == (0, re.findall(r"^[0-9]+ examples .*\n", DOC, re.MULTILINE)[0])
    checked = cfglint("check", "policy/job.yaml", "--gpu", "h100-sxm", "--rules", "policy")
    head, verdict, *rest = checked.stdout.splitlines()
    assert (checked.returncode, rest) == (0, ["no findings in 1 file", "1 job: 1 fits"])
    assert head == "policy/job.yaml · acme · Qwen/Qwen2.5-7B-Instruct · h100-sxm"
    assert verdict.startswith("  fits: ")


@pytest.mark.parametrize("code", re.findall(r"^### (ACM\d+)", DOC, re.MULTILINE))
def test_the_page_shows_the_rules_as_they_are(code: str) -> None:
    section = DOC.partition(f"### {code}")[2].partition("\n### ")[0]
    (shown,) = re.findall(r"```rules\n(.*?)```", section, re.DOTALL)
    assert shown.startswith(f"rule {code} {RULES[code]} ")
    assert any(shown in text for text in TEXTS.values())
    assert section.count("```rego\n") == section.count("```cel\n") == 1
