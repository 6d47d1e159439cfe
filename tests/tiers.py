"""Two tiers of tests: what every change must pass in minutes, and what is run by hand (``.ci/long``).

``CFGLINT_LONG=1`` gives property tests all their examples; ``-m ''`` also runs what is marked ``long``.
"""

import os
from typing import TypeVar

T = TypeVar("T")
LONG = bool(os.environ.get("CFGLINT_LONG"))


def tried(count: int) -> int:
    """Return how many examples a property test tries: ``count`` in the slow tier, fewer in the fast one."""
    return count if LONG else max(count // 8, 10)


def sampled(files: list[T]) -> list[T]:
    """Return all real files in the slow tier, every fifth in the fast one."""
    return files if LONG else files[::5]
