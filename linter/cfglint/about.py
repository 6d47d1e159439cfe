"""What this distribution is called, which version it is, and where its project lives."""

from __future__ import annotations

VERSION = "0.1.0"
# The index has a stranger's package of the name ``cfglint``: the command and the import name alone are ours.
DISTRIBUTION = "cfglint-gpu"
# The project's address, such as "https://github.com/OWNER/cfglint". While it is empty, links are left out.
HOMEPAGE = ""


def source(revision: str = "") -> str:
    """Return what pip installs from the repository; ``OWNER`` is in it while there is no address."""
    address = HOMEPAGE or "https://github.com/OWNER/cfglint"
    return f"{DISTRIBUTION} @ git+{address}{revision and '@'}{revision}"
