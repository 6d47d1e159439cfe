"""From a fact's new value back to what has to stand in the file: bindings, read backwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfglint.lang import tree as t
from cfglint.lang.units import UNITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cfglint.facts import Steps
    from cfglint.lang.types import Type

_EXACT = 10  # decimal digits; a product of a step and a unit is not always a short float


@dataclass(frozen=True, slots=True)
class Written:
    """``value`` has to stand at ``path``."""

    path: Steps
    value: object


def invert(
    source: t.Expr,
    value: object,
    kind: Type,
    old: object,
    spelling: object = None,
    facts: Mapping[str, object] | None = None,
) -> Written | None:
    """Return what makes ``source`` worth ``value`` (in base units), None where that cannot be told.

    ``old`` is what the file says now; an enumeration's member is written in the spelling that it uses, or in
    the knob's own ``spelling`` where the file says nothing, or true and false. ``facts`` are what the names
    in a product are worth.
    """
    match source:
        case t.Path(steps) if "*" not in steps:
            return Written(steps, _spelled(value, kind, old, spelling))
        case t.Not(operand) if isinstance(value, bool):
            return invert(operand, not value, kind, old)
        case t.Product(factors) if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _through_product(factors, value, kind, facts)
        case t.Choice(t.Path(steps), arms, other):
            for patterns, arm in arms:
                result = arm.name if isinstance(arm, t.Name) else getattr(arm, "value", None)
                word = getattr(patterns[0], "value", getattr(patterns[0], "name", None))
                if result == value and word is not None:
                    return Written(steps, word)
            if other == t.Path(steps):  # what no arm names stands there as it is
                return Written(steps, _spelled(value, kind, old, spelling))
    return None


def _through_product(
    factors: tuple[tuple[str, t.Expr], ...], value: float, kind: Type, facts: Mapping[str, object] | None
) -> Written | None:
    path: Steps | None = None
    scale = 1.0
    for operator, factor in factors:
        if isinstance(factor, t.Path) and operator == "*" and path is None:
            path = factor.steps
            continue
        worth: object = None
        if isinstance(factor, t.Number):
            worth = factor.value * (UNITS[factor.unit][0] if factor.unit else 1)
        elif isinstance(factor, t.Name) and facts is not None:
            worth = facts[factor.name]
        if not worth or isinstance(worth, bool) or not isinstance(worth, (int, float)):
            return None
        if operator not in ("*", "/"):
            return None
        scale = scale * worth if operator == "*" else scale / worth
    if path is None:
        return None
    result = tidy(value / scale)
    return Written(path, result) if isinstance(result, int) or not kind.whole else None


def _spelled(value: object, kind: Type, old: object, spelling: object) -> object:
    if kind.kind == "number" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return tidy(value / kind.factor) if kind.factor != 1 else tidy(value)
    if kind.kind == "enum" and isinstance(value, str):
        return _like_before(value, kind, old, spelling)
    return value


def _like_before(member: str, kind: Type, old: object, spelling: object) -> object:
    """Spell a member as the file spells its members: where it says bfloat16, then float16 and not fp16."""
    if spelling is not None and not isinstance(old, (str, int, float)):
        return spelling
    if isinstance(spelling, bool) and isinstance(old, bool):
        return spelling
    groups: dict[str, list[str]] = {}
    for word, name in kind.spellings:
        groups.setdefault(name, []).append(word)
    written = "null" if old is None else str(old).lower()
    for words in groups.values():
        if written in words:
            position = words.index(written)
            member = groups[member][min(position, len(groups[member]) - 1)]
            break
    if isinstance(old, int) and member.isdecimal():
        return int(member)
    return {"true": True, "false": False}.get(member, member)


def tidy(value: float) -> float:
    """Return 0.45 for 0.45000000000000001 and 4 for 4.0."""
    if isinstance(value, int):
        return value
    rounded = round(value, _EXACT)
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 2**53 else rounded
