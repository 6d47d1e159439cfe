"""Values that a file has a reason for: a comment beside the key cites the issue behind it.

Nobody should move such a value without having read that: it is shown, and not done.
"""

from __future__ import annotations

import re

from cfglint.document.trace import Trace
from cfglint.repair.stale import comments_beside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.view import View
    from cfglint.facts import Steps

_ISSUE = re.compile(r"/(?:issues|pull)/\d+")
# What only tells where an option comes from, or what is still to come, is no reason for its value.
_NO_REASON = re.compile(r"\b(?:todo|reference|added|introduced|exp|support(?:ed)? by)\b", re.IGNORECASE)


def has_reason(view: View, path: Steps) -> bool:
    """Whether a comment behind a key's value, or right above the key, cites an issue as the reason for it."""
    text = view.document.file.text
    if "/issues/" not in text and "/pull/" not in text:
        return False
    trace = Trace(view, path)
    if not trace.present or trace.key_source is not None:
        return False
    return any(
        _ISSUE.search(text, start, end) and not _NO_REASON.search(text, start, end)
        for start, end, _ in comments_beside(view.document, trace.key_span[1])
    )
