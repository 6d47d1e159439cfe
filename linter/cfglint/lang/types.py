"""Types of the rule language, its units, and how numbers are printed.

A dimension is a triple of exponents (memory, time, operations). Inside cfglint a number is always in base
units: bytes, seconds, floating-point operations. Counts (``8192 tokens``) and shares (``30 %``) have none.
"""

from __future__ import annotations

import math
import re

from cfglint.record import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias, TypeGuard

    from cfglint.lang import tree as t
    from cfglint.lang.values import Number

    Dimension: TypeAlias = tuple[int, int, int]

INF = float("inf")

PLAIN = (0, 0, 0)
MEMORY = (1, 0, 0)
DURATION = (0, 1, 0)
COMPUTE = (0, 0, 1)
BANDWIDTH = (1, -1, 0)
COMPUTE_RATE = (0, -1, 1)

NAMES: dict[Dimension, str] = {
    PLAIN: "a plain number",
    MEMORY: "a memory",
    DURATION: "a duration",
    COMPUTE: "an amount of computation",
    BANDWIDTH: "a bandwidth",
    COMPUTE_RATE: "a compute rate",
}

UNITS: dict[str, tuple[float, Dimension]] = {
    "B": (1, MEMORY),
    **{p + "B": (10 ** (3 * i), MEMORY) for i, p in enumerate(("K", "M", "G", "T"), 1)},
    **{p + "iB": (2 ** (10 * i), MEMORY) for i, p in enumerate(("K", "M", "G", "T"), 1)},
    "ms": (0.001, DURATION),
    "s": (1, DURATION),
    "min": (60, DURATION),
    "h": (3600, DURATION),
    "d": (86400, DURATION),
    "%": (0.01, PLAIN),
    **dict.fromkeys(("tokens", "GPUs", "nodes", "steps", "requests", "sequences", "parameters"), (1, PLAIN)),
    "FLOP": (1, COMPUTE),
    "TFLOP": (10**12, COMPUTE),
    "TFLOPS": (10**12, COMPUTE_RATE),
    "GB/s": (10**9, BANDWIDTH),
    "TB/s": (10**12, BANDWIDTH),
}

OWN_UNIT: dict[Dimension, str] = {
    MEMORY: "GiB",
    DURATION: "s",
    COMPUTE: "TFLOP",
    BANDWIDTH: "GB/s",
    COMPUTE_RATE: "TFLOPS",
}


def measured(text: str, dimension: Dimension | None) -> float | None:
    """Return the number of a text like ``44.42 GiB`` in base units, None where it is none."""
    parsed = re.fullmatch(
        r"\s*(-?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z%/]+)\s*", text[:100]
    )
    if parsed is None or parsed[2] not in UNITS or UNITS[parsed[2]][1] != dimension:
        return None
    value = float(parsed[1]) * UNITS[parsed[2]][0]
    return int(value) if value == int(value) and abs(value) < 2**53 else value


def describe(dimension: Dimension) -> str:
    """Return the name of a dimension, such as "a memory"."""
    if dimension in NAMES:
        return NAMES[dimension]
    powers = zip(("memory", "time", "operations"), dimension, strict=True)
    return "a value of dimension " + " ".join(f"{name}^{power}" for name, power in powers if power)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a known number; truths are none, though Python counts with them."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def text_of(value: object) -> str | None:
    """Return a known text; None for anything else."""
    return value if isinstance(value, str) else None


_LARGE = 10  # of a unit of memory
_DIGITS = frozenset("-0123456789.,")  # of a number that is neither infinite nor written with an exponent


def digits(value: float, places: int = 2) -> str:
    """Print a number shortly: whole numbers with thousands separators, others to ``places``, none in vain."""
    if value != value or value in (math.inf, -math.inf):  # noqa: PLR0124
        return {math.inf: "∞", -math.inf: "-∞"}.get(value, "?")
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}" if abs(value) >= 10_000 else str(int(value))
    if abs(value) >= 1e15 or 0 < abs(value) < 10**-places:
        return f"{value:.3g}"
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def _scaled(low: float, high: float, dimension: Dimension, unit: str | None) -> tuple[float, str]:
    reference = max(abs(low) if low not in (math.inf, -math.inf) else 0, abs(high) if high != math.inf else 0)
    if unit is not None:
        return UNITS[unit][0], unit
    if dimension == MEMORY:
        for name in ("GiB", "MiB", "KiB"):
            if reference >= UNITS[name][0] / 10 or reference == 0:
                return UNITS[name][0], name
        return 1, "B"
    if dimension == DURATION:
        return (3600, "h") if reference >= 7200 and reference % 3600 == 0 else (1, "s")
    name = OWN_UNIT.get(dimension, "")
    return (UNITS[name][0] if name else 1), name


def show_number(value: Number, dimension: Dimension = PLAIN, unit: str | None = None, places: int = 2) -> str:
    """Print a number or an interval with its unit: ``44.42 GiB``, ``15–18 GiB``, ``0.8``.

    ``value`` is in base units (bytes, seconds, operations); a plain number of 1,000 or more is rounded.
    """
    from cfglint.lang.values import parts

    low, high, _ = parts(value)
    factor, name = _scaled(low, high, dimension, unit)
    suffix = f" {name}" if name else ""
    if dimension == MEMORY and low != high and abs(low) >= _LARGE * factor:
        places = min(places, 1)  # an estimate: nobody reads the second decimal
    if dimension == PLAIN:
        places = max(places, 4) if abs(high) < 1000 else 0
    first, last = alike(low / factor, high / factor, places)
    return (first if first == last else f"{first}–{last}") + suffix


def alike(low: float, high: float, places: int = 2) -> tuple[str, str]:
    """Return both ends of a range as texts of one form: ``("20.20", "30.24")``, ``("7,042", "10,562")``."""
    ends = digits(low, places), digits(high, places)
    decimals = max(len(end.partition(".")[2]) for end in ends)
    plain = decimals == 0 and not any("," in end for end in ends)
    if low == high or plain or decimals > places or not all(set(end) <= _DIGITS for end in ends):
        return ends
    return f"{low:,.{decimals}f}", f"{high:,.{decimals}f}"


# ── types ──────────────────────────────────────────────────────────────────────────────────────────────────
class Type(Value):
    """A type. ``unit`` is what a bare number beside it means; ``bare`` marks a number written without one.

    ``written`` marks a unit that stands beside a number in the text; a fact's own unit goes before it.
    ``spellings`` maps the ways in which configs write an enumeration's members to the members' names.
    ``tenths`` is set where a number is printed with one decimal, as a compute capability is: 9.0.
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
    tenths: bool = False

    @property
    def factor(self) -> float:
        """Return how many base units a bare number beside this type is worth."""
        unit = self.unit or OWN_UNIT.get(self.dimension)
        if unit is None or (unit == "%" and self.written):  # 1 - 30 % is 0.7
            return 1
        return UNITS[unit][0]

    def worth(self, node: t.Number) -> float:
        """Return a number of the text in base units; one without a unit has this type's."""
        return node.value * (self.factor if node.unit is None else UNITS[node.unit][0])

    def __str__(self) -> str:
        if self.kind == "number":
            return describe(self.dimension)
        if self.kind == "enum":
            return "one of " + ", ".join(self.members)
        return {"any": "a value of the file", "bool": "a boolean", "null": "null"}.get(
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
    "capability": Type("number", low=1, tenths=True),
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


OTHER_NAMES = {  # of the types, in other languages
    "string": "text", "str": "text", "float": "number", "double": "number", "boolean": "bool",
    "integer": "int", "array": "list", "dict": "any", "object": "any", "percent": "fraction",
    "bytes": "memory", "seconds": "duration", "time": "duration", "enum": "one of",
}  # fmt: skip


def from_tree(node: t.TypeOf) -> Type:
    """Return the type that a fact declares. Raises KeyError for an unknown name, else ValueError."""
    if node.members:
        spellings = [(word.lower(), names[0]) for names in node.members for word in names]
        twice = next((word for i, (word, _) in enumerate(spellings) if word in dict(spellings[:i])), None)
        if twice is not None:
            raise ValueError(f"the spelling {twice!r} appears twice")
        return Type("enum", members=tuple(m[0] for m in node.members), spellings=tuple(spellings))
    base = NAMED[node.name]
    if base.kind != "number" and (node.unit is not None or node.low is not None):
        raise ValueError(f"{base} has no unit and no limits")
    for unit in (node.unit, *(limit.unit for limit in (node.low, node.high) if limit is not None)):
        if unit is not None and UNITS[unit][1] != base.dimension:
            units = [name for name, (_, kind) in UNITS.items() if kind == base.dimension != PLAIN]
            listed = f"; its units are {', '.join(units)}" if units else ""
            raise ValueError(f"{unit} is not a unit of {base}{listed}")
    base = replace(base, unit=node.unit or base.unit)
    if node.low is not None:
        low = base.worth(node.low)
        high = INF if node.high is None else base.worth(node.high)
        if low > high:
            raise ValueError("the lower limit is above the upper one")
        base = replace(base, low=low, high=high)
    return base
