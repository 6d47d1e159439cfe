"""Two tiers of tests: what every change must pass in minutes, and what is run by hand (``.ci/long``).

``CFGLINT_LONG=1`` gives property tests all their examples; ``-m ''`` also runs what is marked ``long``.
"""

import os

LONG = bool(os.environ.get("CFGLINT_LONG"))


def tried(count: int) -> int:
    """Return how many examples a property test tries: ``count`` in the slow tier, a fifth in the fast one."""
    return count if LONG else max(count // 5, 10)
