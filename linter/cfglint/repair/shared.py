"""Says what each GPU holds of the longest sequence where fewer share it, and nobody knows the memory."""

from __future__ import annotations

from cfglint.engine.memory import bounds_of
from cfglint.lang.types import is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.facts import Values

_SHARING = ("sp", "cp")


def share_told(before: Values, after: Values) -> str:
    """Return how many tokens of a sequence a GPU holds, in words; nothing where it is as many as before."""
    length, longest = before["seq_len"], after["seq_len"]
    old, new = _ways(before), _ways(after)
    if not is_number(length) or not is_number(longest) or old is None or new is None or new[1] >= old[1]:
        return ""
    told = f"of the longest sequence ({longest:,} tokens) each GPU then holds"
    if new[0] < new[1]:
        return f"{told} at least {longest / new[1]:,.0f}"
    return f"{told} {longest / new[1]:,.0f} instead of {length / old[1]:,.0f}"


def _ways(values: Values) -> tuple[float, float] | None:
    """Return over how few and how many GPUs a sequence is split."""
    least = most = 1.0
    for name in _SHARING:
        known = bounds_of(values[name])
        if known is None:
            return None
        least, most = least * known[0], most * known[1]
    return least, most
