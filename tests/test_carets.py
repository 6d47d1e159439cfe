"""Every finding that the pages show has its caret below the value that it is about."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from golden import CASES, FENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGES = sorted(CASES.glob("*.md"))
SHOWN = re.compile(
    r"(?m)^(?P<path>[^\s:]+):(?P<line>\d+):(?P<column>\d+): (?:error|warning|info) .*\n"
    r"(?:^ *\d+ \| (?P<text>.*)\n^ +\| (?P<caret> *)(?P<carets>\^+)$)?"
)


def findings(page: Path) -> Iterator[tuple[str, str, int, str]]:
    """Yield of each finding its line from its column on, the line that is shown, and the carets."""
    fences = list(FENCE.finditer(page.read_text(encoding="utf-8")))
    files = {fence["name"]: fence["text"] for fence in fences if fence["name"]}
    for fence in fences:
        if fence["language"] != "console":
            continue
        for found in SHOWN.finditer(fence["text"]):
            if found["text"] is not None and found["path"] in files:
                line = files[found["path"]].split("\n")[int(found["line"]) - 1]
                yield line[int(found["column"]) - 1 :], found["text"], len(found["caret"]), found["carets"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_caret_is_below_the_value(page):
    for rest, text, at, carets in findings(page):
        if not rest.strip() or not text.isascii() or "…" in text:
            continue
        assert text[at:].rstrip("…").startswith(rest[: len(carets)].split("\t")[0][: len(text) - at])
        assert len(carets) <= len(text) - at
