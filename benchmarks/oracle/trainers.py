"""Measure the losses of the trainers that are installed: bytes per logit at each moment, as JSON lines."""

from __future__ import annotations

import importlib.metadata
import json
import os
import warnings
from typing import TYPE_CHECKING, Any

from oracle.heads import HEADS, SHAPES, measure_head, version_of
from oracle.hf_steps import STEPS, measure_step

if TYPE_CHECKING:
    from collections.abc import Iterator


def _heads() -> Iterator[dict[str, Any]]:
    for head in HEADS:
        for shape, (tokens, vocab) in SHAPES.items():
            place = {"set": shape, "tokens": tokens, "vocab": vocab}
            yield {
                "trainer": head.trainer,
                "loss": head.name,
                "of": version_of(head),
                **place,
                **measure_head(head, shape),
            }


def _steps() -> Iterator[dict[str, Any]]:
    for step in STEPS:
        yield {"trainer": step.trainer, "loss": step.name, "set": "fit", **measure_step(step)}


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in ("trainer", "loss", "of", "set"))


def fill(path: str) -> int:
    """Measure what is installed, and keep the file's rows of other versions."""
    warnings.simplefilter("ignore")
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as stream:
            rows = {_key(row): row for row in map(json.loads, stream)}
    failed = 0
    for measured in (_heads(), _steps()):
        try:
            for row in measured:
                rows[_key(row)] = row
        except (ImportError, importlib.metadata.PackageNotFoundError) as error:
            print(f"not measured: {error}")
            failed = 1
    with open(path, "w", encoding="utf-8") as stream:
        stream.writelines(f"{json.dumps(rows[key])}\n" for key in sorted(rows))
    return failed
