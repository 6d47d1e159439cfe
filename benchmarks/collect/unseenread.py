"""unseenread.yaml: as freshread.yaml, kept apart from the work on the model: a check that nobody tuned on.

Its rows were read without an estimate, a rule or a constant at hand. Megatron's golden values are what the
last rank writes, the last stage of a pipeline; where a thread or file tells all ranks, the fullest is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import handread

if TYPE_CHECKING:
    from rows import Row

PREFIX = "unseen-"
SOURCES = Path(__file__).with_name("unseenread.yaml")


def collect_from(folder: Path) -> tuple[list[Row], list[Row]]:
    """Return the measured rows and the outcomes of all sources, checked against ``folder``'s repositories."""
    return handread.collect_from(folder, SOURCES, PREFIX)
