"""Bindings, read backwards: what has to be at a key for an expression to be worth a value."""

from __future__ import annotations

from cfglint.document.tree import dotted
from cfglint.engine.knobs import tidy, word_of
from cfglint.lang import tree as t
from cfglint.lang.types import NUMBER, Type, is_number
from cfglint.record import Record, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cfglint.facts import Steps


class Absent(Value):
    """What is at a key that is not there; the file is to have none."""


ABSENT = Absent()


class Written(Record):
    """``value`` has to be at ``path``; ABSENT: nothing."""

    path: Steps
    value: object

    @property
    def key(self) -> str:
        """The path as one text."""
        return dotted(self.path)


def invert(
    source: t.Expr,
    value: object,
    kind: Type,
    old: object,
    spelling: object = None,
    facts: Mapping[str, object] | None = None,
) -> Written | None:
    """Return what makes ``source`` worth ``value`` (in base units), None where that cannot be determined.

    ``old`` is what the file says now; an enumeration's member is written in the spelling that it uses, or in
    the knob's own ``spelling`` where the file says nothing, or true and false. ``facts`` are what the names
    in a product are worth.
    """
    match source:
        case t.Path(steps) if "*" not in steps:
            return Written(steps, _spelled(value, kind, old, spelling))
        case t.Not(operand) if isinstance(value, bool):
            return invert(operand, not value, kind, old)
        case t.Product(factors) if is_number(value):
            return through_product(factors, value, kind, facts)
        case t.Choice(t.Path(steps), arms, rest):
            for patterns, arm in arms:
                word = word_of(patterns[0])
                if word_of(arm) == value and word is not None:
                    return Written(steps, word)
            if rest == t.Path(steps):  # what no arm names is there as it is
                return Written(steps, _spelled(value, kind, old, spelling))
    return None


def through_product(
    factors: tuple[tuple[str, t.Expr], ...], value: float, kind: Type, facts: Mapping[str, object] | None
) -> Written | None:
    """Return what has to be at the one key of a product, whose other factors are known."""
    path: Steps | None = None
    scale = 1.0
    for operator, factor in factors:
        if isinstance(factor, t.Path) and operator == "*" and path is None:
            path = factor.steps
            continue
        worth: object = None
        if isinstance(factor, t.Number):
            worth = NUMBER.worth(factor)
        elif isinstance(factor, t.Name) and facts is not None:
            worth = facts[factor.name]
        if not worth or not is_number(worth):
            return None
        if operator not in ("*", "/"):
            return None
        scale = scale * worth if operator == "*" else scale / worth
    if path is None:
        return None
    result = tidy(value / scale)
    return Written(path, result) if isinstance(result, int) or not kind.whole else None


def spellings(value: object, kind: Type, old: object, spelling: object) -> Iterator[object]:
    """Yield how a value may be written, the likeliest first: a member also by its other words."""
    yield _spelled(value, kind, old, spelling)
    for word in [word for word, name in kind.spellings if name == value]:
        yield {"true": True, "false": False, "null": None}.get(word, word)


def _spelled(value: object, kind: Type, old: object, spelling: object) -> object:
    if kind.kind == "number" and is_number(value):
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
