"""Types of the rule language: numbers with a dimension, truths, texts, enumerations, lists and records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.lang.units import BANDWIDTH, COMPUTE_RATE, DURATION, MEMORY, OWN_UNIT, PLAIN, UNITS, describe
from cfglint.record import Value, replace

if TYPE_CHECKING:
    from cfglint.lang import tree as t
    from cfglint.lang.units import Dimension

INF = float("inf")


class Type(Value):
    """A type. ``unit`` is what a bare number beside it means; ``bare`` marks a number written without one.

    ``written`` marks a unit that stands beside a number in the text; a fact's own unit goes before it.
    ``spellings`` maps the ways in which configs write an enumeration's members to the members' names.
    """

    kind: str
    dimension: Dimension = PLAIN
    unit: str | None = None
    whole: bool = False
    low: float = -INF
    high: float = INF
    bare: bool = False
    written: bool = False
    members: tuple[str, ...] = ()
    spellings: tuple[tuple[str, str], ...] = ()

    @property
    def factor(self) -> float:
        """Return how many base units a bare number beside this type is worth."""
        unit = self.unit or OWN_UNIT.get(self.dimension)
        if unit is None or (unit == "%" and self.written):  # 1 - 30 % is 0.7
            return 1
        return UNITS[unit][0]

    def __str__(self) -> str:
        if self.kind == "number":
            return describe(self.dimension)
        if self.kind == "enum":
            return "one of " + ", ".join(self.members)
        return {"any": "a value of the file", "bool": "a truth", "null": "null"}.get(
            self.kind, f"a {self.kind}"
        )


BOOL = Type("bool")
TEXT = Type("text")
LIST = Type("list")
RECORD = Type("record")
ANY = Type("any")
NULL = Type("null")
VERSION = Type("version")
NUMBER = Type("number")
COUNT = Type("number", whole=True, low=0)

NAMED: dict[str, Type] = {
    "number": NUMBER,
    "count": COUNT,
    "int": Type("number", whole=True),
    "fraction": Type("number", low=0, high=1),
    "memory": Type("number", MEMORY, "GiB", low=0),
    "duration": Type("number", DURATION, "s", low=0),
    "bandwidth": Type("number", BANDWIDTH, "GB/s", low=0),
    "compute_rate": Type("number", COMPUTE_RATE, "TFLOPS", low=0),
    "bool": BOOL,
    "text": TEXT,
    "list": LIST,
    "version": VERSION,
    "any": ANY,
}


def from_tree(node: t.TypeOf) -> Type:
    """Return the type that a fact declares. Raises KeyError for an unknown name, else ValueError."""
    if node.members:
        spellings = [(word.lower(), names[0]) for names in node.members for word in names]
        twice = next((word for i, (word, _) in enumerate(spellings) if word in dict(spellings[:i])), None)
        if twice is not None:
            raise ValueError(f"the spelling {twice!r} stands twice")
        return Type("enum", members=tuple(m[0] for m in node.members), spellings=tuple(spellings))
    base = NAMED[node.name]
    if base.kind != "number" and (node.unit is not None or node.low is not None):
        raise ValueError(f"{base} has no unit and no limits")
    if node.unit is not None:
        if UNITS[node.unit][1] != base.dimension:
            raise ValueError(f"{node.unit} is no unit of {base}{_units_of(base)}")
        base = replace(base, unit=node.unit)
    if node.low is not None:
        low = _limit(node.low, base)
        high = INF if node.high is None else _limit(node.high, base)
        if low > high:
            raise ValueError("the lower limit is above the upper one")
        base = replace(base, low=low, high=high)
    return base


def _limit(node: t.Number, base: Type) -> float:
    if node.unit is None:
        return node.value * base.factor
    if UNITS[node.unit][1] != base.dimension:
        raise ValueError(f"{node.unit} is no unit of {base}{_units_of(base)}")
    return node.value * UNITS[node.unit][0]


def _units_of(base: Type) -> str:
    units = [name for name, (_, dimension) in UNITS.items() if dimension == base.dimension != PLAIN]
    return f"; its units are {', '.join(units)}" if units else ""
