"""The forms for CI systems: each is what its readers take, and says what the report says."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from xml.sax.saxutils import escape

import pytest

from cfglint.findings import Finding, Fix, Place, Related, Report
from cfglint.report import render
from cfglint.text import Edit, apply_edits

GRPO = """\
# AReaL, one GPU
sglang:
  mem_fraction_static: 0.8  # of 44 GiB
  context_length: 32768
actor:
  path: Qwen/Qwen2.5-1.5B-Instruct
  gradient_checkpointing: false
gconfig:
  max_new_tokens: 1024
"""


def place(text, value, path="grpo.yaml"):
    start = text.index(value)
    return Place(path, start, start + len(value))


def replaced(where, new, title=""):
    edits = (Edit(where.start, where.end, new),)
    return Fix(1, title or f"set it to {new}", edits, applicability="safe")


def report(*findings, text=GRPO, path="grpo.yaml", files=1):
    made = Report()
    made.findings, made.texts, made.files = list(findings), {path: text}, files
    return made


def simple(where, message="it is wrong", level="error", **more):
    return Finding(where, "CFG009", "wrong", level, level, message, **more)


def starved(target="a40"):
    where = place(GRPO, "0.8")
    fix = replaced(where, "0.5", "set sglang.mem_fraction_static to 0.5")
    return Finding(
        where, "MEM101", "server-starves-trainer", "error", "error", "36.3 GiB of 44.42 GiB are taken",
        target=target, arithmetic="36.3 GiB + 15 GiB > 44.42 GiB", fix=fix,
        see="a paper; https://docs.sglang.ai/advanced_features/hyperparameter_tuning.html",
    )  # fmt: skip


def full():
    shared = (Related(place(GRPO, "0.8"), "shares the GPU with this"),)
    return report(
        starved("rtx-5090"),
        starved("a40"),
        simple(place(GRPO, "false"), "may be too slow", "warning", related=shared),
        simple(place(GRPO, "32768"), "longer than needed", "info"),
    )


def _sarif(made):
    data = json.loads(render(made, "sarif"))
    assert data["version"] == "2.1.0"
    (run,) = data["runs"]
    return run


def test_sarif_has_each_finding_once_with_its_rule() -> None:
    run = _sarif(full())
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["CFG009", "MEM101"]
    assert rules[1]["helpUri"].startswith("https://docs.sglang.ai/")
    results = run["results"]
    assert [(r["ruleId"], r["level"]) for r in results] == [
        ("MEM101", "error"), ("CFG009", "note"), ("CFG009", "warning"),
    ]  # fmt: skip
    assert all(rules[r["ruleIndex"]]["id"] == r["ruleId"] for r in results)
    assert "[a40, rtx-5090]" in results[0]["message"]["text"]
    region = results[0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 3, "startColumn": 24, "endLine": 3, "endColumn": 27}
    assert results[2]["relatedLocations"][0]["message"]["text"] == "shares the GPU with this"


def test_sarif_fixes_are_the_edits() -> None:
    finding = starved()
    (result,) = _sarif(report(finding))["results"]
    (change,) = result["fixes"][0]["artifactChanges"]
    text = GRPO
    for one in reversed(change["replacements"]):
        region, rows = one["deletedRegion"], text.split("\n")
        assert region["startLine"] == region["endLine"]
        row = rows[region["startLine"] - 1]
        inserted = one["insertedContent"]["text"]
        rows[region["startLine"] - 1] = (
            row[: region["startColumn"] - 1] + inserted + row[region["endColumn"] - 1 :]
        )
        text = "\n".join(rows)
    assert text == apply_edits(GRPO, finding.fix.edits)


def test_sarif_paths_are_uris() -> None:
    where = place(GRPO, "0.8", "my configs/größe 1.yaml")
    (result,) = _sarif(report(simple(where), path=where.path))["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "my%20configs/gr%C3%B6%C3%9Fe%201.yaml"


def test_gitlab() -> None:
    twice = [simple(place(GRPO, "0.8")), simple(place(GRPO, "1024")), starved()]
    data = json.loads(render(report(*twice), "gitlab"))
    assert [(one["check_name"], one["severity"], one["location"]["lines"]["begin"]) for one in data] == [
        ("CFG009", "critical", 3), ("MEM101", "critical", 3), ("CFG009", "critical", 9),
    ]  # fmt: skip
    assert len({one["fingerprint"] for one in data}) == 3
    moved = "# a new line\n" + GRPO
    again = json.loads(render(report(starved(), text=moved), "gitlab"))
    assert again[0]["fingerprint"] == data[1]["fingerprint"]


def test_junit_is_sound_xml() -> None:
    bad = simple(place(GRPO, "0.8"), 'a & b < c \x1b[31m \ufffe "quoted"\nsecond line')
    made = report(bad, starved(), files=2)
    made.texts["clean.yaml"] = "a: 1\n"
    root = ET.fromstring(render(made, "junit"))
    assert (root.get("tests"), root.get("failures")) == ("3", "2")
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == ["clean.yaml", "grpo.yaml"]
    assert [case.find("failure") for case in suites["clean.yaml"]] == [None]
    failure = suites["grpo.yaml"][0].find("failure")
    assert failure is not None
    assert failure.get("type") == "error"
    assert failure.text is not None
    assert "a & b < c \\x1b[31m \\ufffe" in failure.text
    assert escape("a & b") in render(made, "junit")


MARKDOWN = """\
### grpo.yaml

❌ **MEM101** server-starves-trainer, line 3:24, a40  
36.3 GiB of 44.42 GiB are taken
> 36.3 GiB + 15 GiB \\> 44.42 GiB

Fix (safe): set sglang.mem\\_fraction\\_static to 0.5

```diff
-  mem_fraction_static: 0.8  # of 44 GiB
+  mem_fraction_static: 0.5  # of 44 GiB
```

**1 error in 1 file; 1 fixable with cfglint fix**
"""  # noqa: W291 (two blanks break a line in Markdown)


def test_markdown() -> None:
    assert render(report(starved()), "markdown") == MARKDOWN


def test_markdown_keeps_a_files_backticks_inside() -> None:
    text = "a: ```x```\n"
    where = place(text, "```x```", "b.yaml")
    shown = render(report(simple(where, fix=replaced(where, "1")), text=text, path="b.yaml"), "markdown")
    assert "````" in shown
    assert shown.count("diff\n-a: ```x```\n+a: 1\n") == 1


@pytest.mark.parametrize("form", ["sarif", "gitlab", "junit", "markdown"])
def test_nothing_found(form: str) -> None:
    shown = render(report(), form)
    assert shown.endswith("\n")
    if form in ("sarif", "gitlab"):
        json.loads(shown)
    if form == "junit":
        assert ET.fromstring(shown).get("failures") == "0"
