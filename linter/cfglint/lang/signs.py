"""Which keys at the top of a file a condition cannot be true without: recognition asks those first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.lang import tree as t

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEEP = 20  # lets within lets


def signs(condition: t.Expr, lets: Mapping[str, t.Let], depth: int = 0) -> frozenset[str] | None:
    """Return keys of which a file must have one for ``condition`` to be true; None where that is not plain.

    What compares a key that is absent is open, and so not true.
    """
    match condition:
        case t.Has(t.Path(steps)) | t.Like(t.Path(steps)) if steps and isinstance(steps[0], str):
            return frozenset({steps[0]})
        case t.Compare(operands):
            found = [signs(t.Has(each), lets) for each in operands if isinstance(each, t.Path)]
            return found[0] if found else None
        case t.Junction("and", operands):
            each = [s for operand in operands if (s := signs(operand, lets, depth)) is not None]
            return min(each, key=lambda s: (len(s), sorted(s)), default=None)
        case t.Junction("or", operands):
            ways = [signs(operand, lets, depth) for operand in operands]
            return None if None in ways else frozenset[str]().union(*(way or () for way in ways))
        case t.Name(name) if name in lets and depth < _DEEP and not lets[name].parameters:
            return signs(lets[name].body, lets, depth + 1)
    return None
