"""docs/architecture.md and docs/internals.md name files that are there, and fit two screens."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = {name: (ROOT / "docs" / name).read_text("utf-8") for name in ("architecture.md", "internals.md")}
NAMED = sorted(
    {
        (page, name)
        for page, text in PAGES.items()
        for name in re.findall(r"`([\w./<>-]*[\w>]\.(?:py|yaml|rules|toml|jsonl))`", text)
    }
)
BASES = ("", "linter/cfglint", "linter/cfglint/document", "linter/cfglint/engine", "linter/cfglint/repair")


@pytest.mark.parametrize(("page", "name"), NAMED)
def test_what_is_named_is_there(page, name):
    if "<" in name:  # a recipe's own
        assert (ROOT / name.partition("<")[0]).is_dir() or (
            ROOT / "linter/cfglint" / name.partition("<")[0]
        ).is_dir()
    elif name in ("__init__.py", "compute.py", "page.py"):  # of every feature
        assert list((ROOT / "linter/cfglint/features").glob(f"*/{name}"))
    else:
        assert any((ROOT / base / name).is_file() for base in BASES), f"{page} names {name}"


def test_two_screens():
    assert PAGES["architecture.md"].count("\n") <= 100
    assert len(NAMED) > 30
