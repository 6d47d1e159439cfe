"""Every finding that the pages show has its caret below the value that it is about."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

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


def _misses(rest: str, text: str, at: int, carets: str) -> bool:
    """Whether carets are not below the value that a line has from its column on."""
    if not rest.strip() or not text.isascii() or "…" in text:
        return False
    below = rest[: len(carets)].partition("\t")[0][: len(text) - at]
    return not text[at:].rstrip("…").startswith(below) or len(carets) > len(text) - at


def test_the_caret_is_below_the_value():
    found = [(page.stem, *each) for page in PAGES for each in findings(page)]
    assert len(found) > 100
    assert [one for one in found if _misses(*one[1:])] == []


def test_a_computed_number_in_a_text_that_is_evaluated_has_a_place(cfglint, tmp_path):
    """`$((…))` is nowhere in the file as it is read: the finding stands at what is nearest."""
    sizes = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --max-position-embeddings 1024"
    lengths = "--seq-length 1024 --micro-batch-size 8 --global-batch-size 8 --train-iters 100 --fp16"
    script = f'W=$((2*2))\nargs="{sizes} {lengths} --tensor-model-parallel-size $W"\n'
    (tmp_path / "run.sh").write_text(
        script + 'cmd="deepspeed --num_gpus $W pretrain_gpt.py $args"\neval $cmd\n'
    )
    words = ["check", str(tmp_path / "run.sh"), "--gpu", "rtx-4090"]
    places = [each["start"] for each in json.loads(cfglint(*words, "--format", "json").stdout)["findings"]]
    assert places
    assert all(place["offset"] >= 0 and place["line"] > 0 and place["column"] > 0 for place in places)
    assert cfglint(*words).returncode == 1
