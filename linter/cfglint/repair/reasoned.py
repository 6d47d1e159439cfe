"""Moves that are shown, and not done: nobody should make them unseen.

Such are values that a file has a reason for, where a comment beside the key cites the issue behind it, and
fewer GPUs for a server of a model that nobody knows: each would hold more of its weights.
"""

from __future__ import annotations

import re

from cfglint.document.trace import Trace
from cfglint.lang.types import is_number
from cfglint.repair.stale import comments_beside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.view import View
    from cfglint.engine.subject import Judged
    from cfglint.facts import Steps
    from cfglint.repair.tracks import Option

_ISSUE = re.compile(r"/(?:issues|pull)/\d+")
# What only tells where an option comes from, or what is still to come, is no reason for its value.
_NO_REASON = re.compile(r"\b(?:todo|reference|added|introduced|exp|support(?:ed)? by)\b", re.IGNORECASE)
_SPREAD = ("rollout_tp", "rollout_pp")


def for_people(judged: Judged, option: Option) -> bool:
    """Whether a move is for people to make, who know the reason of a value, or which model is served."""
    view = judged.subject.view
    return _crowds(judged, option) or any(has_reason(view, written.path) for written in option.written)


def _crowds(judged: Judged, option: Option) -> bool:
    """Whether fewer GPUs hold a model than its server has, and nobody knows the model."""
    if judged.values["rollout.blind"] is not True:
        return False
    moved = ((judged.values[name], option.facts[name]) for name in _SPREAD if name in option.facts)
    return any(is_number(old) and is_number(new) and new < old for old, new in moved)


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
