"""Two tiers of tests: what every change must pass in minutes, and what is run by hand (``.ci/long``).

``CFGLINT_LONG=1`` gives property tests all their examples; ``-m ''`` also runs what is marked ``long``.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
LONG = bool(os.environ.get("CFGLINT_LONG"))


def long_tests() -> dict[str, str]:
    """Return the tests that take long; those whose first case is tried at every change with a ``+``."""
    lines = Path(__file__).with_name("long.txt").read_text(encoding="utf-8").splitlines()
    words = (line.split() for line in lines if not line.startswith("#"))
    return {name: "".join(more) for name, *more in words}


def tried(count: int, least: int = 10) -> int:
    """Return how many examples a property test tries: ``count`` in the slow tier, fewer in the fast one."""
    return count if LONG else max(count // 8, least)


def sampled(files: list[T]) -> list[T]:
    """Return all real files in the slow tier, every fifth in the fast one."""
    return files if LONG else files[::5]


def in_turn(values: Sequence[T], number: int, every: int) -> Sequence[T]:
    """Return all values in the slow tier; in the fast one each ``every``-th, others for the next ``number``.

    Over the numbers of a parametrized test, every value has its turn.
    """
    return values if LONG else values[number % every :: every]


def mostly_long(values: Sequence[Any], every: int) -> list[Any]:
    """Return values to test with, of which the fast tier takes one in ``every``, and the slow tier all."""
    return [
        pytest.param(value, marks=() if number % every == 0 else pytest.mark.long)
        for number, value in enumerate(values)
    ]
