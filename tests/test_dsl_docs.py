"""Every rule of the language's page loads, and its examples come to what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cfglint.features.test.examples import run_examples
from cfglint.lang.pack import load
from cfglint.lang.parse import parse
from cfglint.lang.tree import Rule
from cfglint.lang.types import NAMED, UNITS
from rule_text import show_file

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "language.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```rules\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: b.split("\n", 1)[0][:30])
def test_block(block: str) -> None:
    own = {s.code for s in parse(block, "docs/language.md") if isinstance(s, Rule)}
    outcomes = run_examples(load({"docs/language.md": block}), own - {""})
    assert not [str(o) for o in outcomes if not o.ok]
    assert bool(outcomes) == bool(own - {""})


def test_blocks_print_and_read_back() -> None:
    for block in BLOCKS:
        nodes = parse(block, "docs/language.md")
        assert parse(show_file(nodes), "docs/language.md") == nodes


def test_the_page_names_every_type_unit_and_function() -> None:
    from cfglint.lang.calls import FUNCTIONS

    for word in (*NAMED, *UNITS, *FUNCTIONS):
        assert re.search(rf"`[^`\n]*{re.escape(word)}[^`\n]*`", PAGE), word
