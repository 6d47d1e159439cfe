"""freshread.yaml: as handread.yaml, of sources that nobody has compared with an estimate yet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import handread

if TYPE_CHECKING:
    from rows import Row

PREFIX = "fresh-"
SOURCES = Path(__file__).with_name("freshread.yaml")


def collect_from(folder: Path) -> tuple[list[Row], list[Row]]:
    """Return the measured rows and the outcomes of all sources, checked against ``folder``'s repositories."""
    return handread.collect_from(folder, SOURCES, PREFIX)
