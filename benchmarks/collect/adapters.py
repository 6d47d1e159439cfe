"""shared/facts/cases2.yaml: measured peaks of adapters on a T4 (fitcheck-llm) and on two 3090s or 4090s.

The rows are facts files already; here they get the fields of published.yaml. A T4 row has three statistics,
of which allocated is taken from all runs, reserved from every second and the process's from every fourth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from rows import measured, thinned

if TYPE_CHECKING:
    from rows import Checkout, Row

NAME = "shared/facts"
COMMIT = ""
PREFIX = "adapters-"

FAMILIES = {"Qwen2.5": "qwen2"}
FSDP_QLORA = "AnswerDotAI/fsdp_qlora:benchmarks_03_2024.md @e877dda5026d"


def collect(source: Checkout) -> tuple[list[Row], list[Row]]:
    """Return the measured rows; nothing died."""
    rows: list[Row] = []
    runs = 0
    for case in yaml.safe_load((source.git / "cases2.yaml").read_text(encoding="utf-8")):
        family = next(
            (name for part, name in FAMILIES.items() if part in case["facts"]["model_path"]), "llama"
        )
        ident = PREFIX + case["id"]
        if case["id"].startswith("fsdpqlora"):
            rows.append(
                _row(ident, FSDP_QLORA, family, case["peak_gib"], case["statistic"], case, "fsdp_qlora")
            )
            continue
        where = f"PyPI/fitcheck-llm:{case['source'].split()[-1]} @0.3.1"
        rows.append(_row(ident, where, family, case["peak_gib"], "allocated", case, "peft"))
        if runs % 2 == 0:
            rows.append(
                _row(f"{ident}-reserved", where, family, case["reserved_gib"], "reserved", case, "peft")
            )
        if runs % 4 == 0:
            rows.append(
                _row(f"{ident}-process", where, family, case["process_gib"], "nvidia-smi", case, "peft")
            )
        runs += 1
    return thinned(rows), []


def _row(  # noqa: PLR0913 - a row's fields
    ident: str, where: str, family: str, peak: Any, statistic: str, case: Row, framework: str
) -> Row:
    more: Row = {"scope": "process"} if statistic == "nvidia-smi" else {}
    facts = case["facts"]
    if framework == "peft":  # scripts/measure.py:269-271, and what the note says of its logits
        lift = "rest" if facts.get("quantization") else "none"
        facts = facts | {"kbit_lift": lift, "logits.bytes": 16 if facts.get("quantization") else 14}
    return measured(
        ident,
        where,
        family,
        peak,
        statistic,
        case["gpu"],
        facts,
        framework=framework,
        note=case.get("note"),
        **more,
    )
