"""freshread.yaml: as handread.yaml, read before anybody had compared a row with its estimate.

A row whose source has the run's launch, config or recipe holds it (``settings`` or ``command``), so that
its framework's block says what that framework itself does; keys that no memory depends on are left out.
Recipes of Megatron-Bridge stand by the names of Megatron's flags. Where a thread quotes a part, the rest is
the framework's default, or the example's that it names, and ``missing`` says so; a framework's or an
engine's version is told, or that of the date. Rows of a run on software older than PyTorch 2.0, by the date
of the source (before 15 March 2023), are ``outside``: its kernels, allocator and trainers were others.
"""

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
