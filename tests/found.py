"""What is found in a text on a target, with the fixes: a finding for each rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load
from cfglint.repair.attach import attach

if TYPE_CHECKING:
    from cfglint.findings import Finding


def found_in(
    text: str, gpu: str, name: str = "run.sh", others: dict[str, str] | None = None
) -> dict[str, Finding]:
    """Return the first finding of each rule in the first job of a file, with other files beside it."""
    run = Run(load(), targets=(parse_target(gpu),))
    judgements = run.judged(
        next(iter(run.subjects(read_text(text, name, scripts=(others or {}).get), judge_broken=True)))
    )
    found = list(run.findings(judgements))
    attach(run, judgements, found)
    return {each.finding.code: each.finding for each in reversed(found)}
