"""What a binding's value tells, for the tables of the frameworks' tests."""

from __future__ import annotations

from cfglint.lang.values import Interval, needs_of, parts


def point(value: object) -> object:
    """Return a known value, a list as a tuple; None for a range and for what rests on missing names."""
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Interval) and not needs_of(value):
        low, high, _ = parts(value)
        return low if low == high else None
    return None
