"""The split of the published rows: what formulas may look at (fit), and what is kept to check them.

    python benchmarks/accuracy_split.py [--write]

Rows of one project and one family of models resemble each other, so a group of them is on one side as a
whole. The side is drawn by a checksum of the group's name: nobody chooses it, and a new row of a known group
does not move the others. Groups that formulas were written with are on neither side: they say nothing of how
far a new run is. ``--write`` renews the committed list, ``benchmarks/data/groups.tsv``.
"""

from __future__ import annotations

import sys
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from accuracy_rows import DATA, rows

if TYPE_CHECKING:
    from collections.abc import Mapping

FIT, CHECK, FRESH = "fit", "check", "fresh"
LIST = DATA / "groups.tsv"
WRITTEN = "written"
# Of QLoRA (adapters on a T4; bitsandbytes before 0.43.2), of Megatron's pipelines, context parallelism and
# mixtures, of FSDP, of torchtune's recipes.
WRITTEN_WITH = (
    *("PyPI/fitcheck-llm|llama", "PyPI/fitcheck-llm|qwen2", "Lightning-AI/litgpt|llama"),
    *("MooreThreads/SimuMax|llama", "MooreThreads/SimuMax|deepseek_v2", "MooreThreads/SimuMax|deepseek_v3"),
    *(f"foundation-model-stack/fms-acceleration|{family}" for family in ("llama", "granite", "gpt_bigcode")),
    *("LambdaLabsML/distributed-training-guide|llama", "pytorch/torchtune|llama"),
)
HEAD = "side\tgroup\tpublished\tready\tran out\tfitted\n"


def group_of(row: Mapping[str, Any]) -> str:
    """Return a row's ``project|family``."""
    return str(row["group"])


def side_of(group: str) -> str:
    """Return the side that a group is on."""
    if group in WRITTEN_WITH:
        return WRITTEN
    return CHECK if zlib.crc32(group.encode()) % 2 else FIT


def on(side: str, name: str) -> list[dict[str, Any]]:
    """Return the rows of a kind, published or outcomes, that are on one side."""
    late = [
        row for row in rows(f"fresh_{name}") if side_of(group_of(row)) == (CHECK if side == FRESH else side)
    ]
    if side == FRESH:
        return late
    return [row for row in rows(name) if side_of(group_of(row)) == side] + (late if side == FIT else [])


def listed() -> str:
    """Return the list of groups: the side, and how many rows of each kind there are."""
    counts: dict[str, Counter[str]] = {}
    for row in rows("published"):
        counts.setdefault(group_of(row), Counter()).update(
            {"published": 1, "ready": int(row["estimator_ready"])}
        )
    for row in rows("outcomes"):
        counts.setdefault(group_of(row), Counter())[row["result"]] += 1
    kinds = ("published", "ready", "oom", "fits")
    lines = (
        "\t".join((side, group, *(str(count[kind]) for kind in kinds)))
        for side, group, count in sorted((side_of(group), group, count) for group, count in counts.items())
    )
    return HEAD + "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    text = listed()
    if "--write" in sys.argv[1:]:
        LIST.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
