"""Pages of ``cfglint compare``: two configs, the flags, and the page that they must give.

``tests/compare/<name>.cmd`` holds both paths and the flags, ``<name>.out`` the page. ``--width N`` and
``--ascii`` stand for the terminal. ``CFGLINT_UPDATE=1 pytest tests/test_compare_cases.py`` writes the pages,
then read by a person.
"""

import json
import os
import shlex
from pathlib import Path

import pytest

from cfglint.command import output
from cfglint.features.compare import command as compare
from cfglint.report import Style

CASES = Path(__file__).parent / "compare"
FILES = sorted(CASES.glob("*.cmd"))
UPDATE = "CFGLINT_UPDATE" in os.environ


def words_of(case):
    words = shlex.split(case.read_text())
    width, unicode = 0, True
    if "--width" in words:
        at = words.index("--width")
        width = int(words[at + 1])
        del words[at : at + 2]
    if "--ascii" in words:
        words.remove("--ascii")
        unicode = False
    return words, Style(width=width, unicode=unicode)


@pytest.mark.parametrize("case", FILES, ids=lambda p: p.stem)
def test_page(case, monkeypatch, capsys):
    monkeypatch.chdir(CASES)
    words, style = words_of(case)
    monkeypatch.setattr(output, "terminal", lambda *_, **__: style)
    assert compare.main([*words, "--no-detect"]) == 0
    page = capsys.readouterr().out
    out = case.with_suffix(".out")
    if UPDATE:
        out.write_text(page, encoding="utf-8")
    assert page == out.read_text(encoding="utf-8")
    if style.width:
        assert max(map(len, page.splitlines())) <= style.width
    assert style.unicode or page.isascii()
    assert "not-a-real-key" not in page


def turned(data):
    """What comparing the other way round must say."""
    swap = {"a": "b", "b": "a"}
    for one in (data, *data["settings"], *data["derived"], *data["keys"], *data["targets"]):
        one["a"], one["b"] = one["b"], one["a"]
    for one in (*data["settings"], *data["derived"]):
        for effect in one["effects"]:
            effect["from"], effect["to"] = swap[effect["from"]], swap[effect["to"]]
        one["effects"].sort(key=lambda e: e["to"], reverse=True)
    for one in (*data["settings"], *data["derived"], *data["ratios"]):
        if one["b_by_a"] is not None:
            one["b_by_a"] = float(f"{1 / one['b_by_a']:.4g}")
    data["keys"].sort(key=lambda k: k["key"])
    return data


def rounded(data):
    for one in (*data["settings"], *data["derived"], *data["ratios"]):
        if one["b_by_a"] is not None:
            one["b_by_a"] = float(f"{one['b_by_a']:.4g}")
    for one in (*data["settings"], *data["derived"]):
        one["effects"].sort(key=lambda e: e["to"], reverse=True)
    data["keys"].sort(key=lambda k: k["key"])
    return data


@pytest.mark.parametrize("case", FILES, ids=lambda p: p.stem)
def test_the_other_way_round_is_the_mirror(case, monkeypatch, capsys):
    monkeypatch.chdir(CASES)
    (one, other, *flags), _ = words_of(case)
    flags = [*flags, "--format", "json", "--no-detect", "--quiet"]
    compare.main([one, other, *flags])
    there = json.loads(capsys.readouterr().out)
    compare.main([other, one, *flags])
    back = json.loads(capsys.readouterr().out)
    assert rounded(back) == turned(there)
