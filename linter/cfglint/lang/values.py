"""What an expression can be worth while not everything is known: intervals, open truths, unknowns.

A known value is a plain Python value and costs nothing extra. An `Interval` is a number known only within
bounds, an `Open` a truth that is neither true nor false yet, an `Unknown` any other value that nobody gave.
Each carries ``needs``, the names of the facts that would settle it; an interval from an estimate has none.

Laws that the tests check: an interval result contains the result for every point of its operands (inclusion),
and a truth that is open becomes true or false, never the other way round, as more is known (Kleene).
"""

from __future__ import annotations

import math

from cfglint.budget import spend
from cfglint.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeAlias

INF = math.inf
UNRULED = "a model of "  # what is missing where no arm of a `match` is for a value
ODD = "a value of the right type"  # what is missing where a value is of another one
NOTHING: frozenset[str] = frozenset()


class Open(Record):
    """A truth that is not decided; without ``needs`` it hangs on an interval, and is then "possible"."""

    needs: frozenset[str]

    # Here and below written by hand: any run makes many, and record.py would write the same when it starts.
    def __init__(self, needs: frozenset[str] = NOTHING) -> None:
        self.needs = needs

    def __repr__(self) -> str:
        return f"Open({sorted(self.needs)})"

    def __bool__(self) -> bool:
        raise TypeError("an open truth is neither true nor false")


class Unknown(Record):
    """A text, a list or a record that is not known; ``tail`` is what a path surely ends with."""

    needs: frozenset[str]
    tail: str

    def __init__(self, needs: frozenset[str] = NOTHING, tail: str = "") -> None:
        self.needs = needs
        self.tail = tail

    def __repr__(self) -> str:
        return f"Unknown({sorted(self.needs)})"


class Interval(Record):
    """A number between ``lo`` and ``hi``, both included, with ``lo < hi``.

    ``made`` is the operation that it came from, with its two numbers: ``("+", a, b)`` (rearrange.py).
    """

    lo: float
    hi: float
    needs: frozenset[str]
    made: Made

    def __init__(self, lo: float, hi: float, needs: frozenset[str] = NOTHING, made: Made = None) -> None:
        self.lo = lo
        self.hi = hi
        self.needs = needs
        self.made = made

    def __repr__(self) -> str:
        return f"Interval({self.lo}, {self.hi}, {sorted(self.needs)})"

    def __add__(self, other: Number) -> Number:
        made = ("+", self, other)
        if type(other) is Interval:
            return interval(self.lo + other.lo, self.hi + other.hi, self.needs | other.needs, made)
        return interval(self.lo + other, self.hi + other, self.needs, made)  # type: ignore[arg-type]

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        lo, hi, needs = parts(other)
        return interval(self.lo - hi, self.hi - lo, self.needs | needs, ("-", self, other))

    def __rsub__(self, other: Number) -> Number:
        lo, hi, needs = parts(other)
        return interval(lo - self.hi, hi - self.lo, self.needs | needs, ("-", other, self))

    def __neg__(self) -> Number:
        return interval(-self.hi, -self.lo, self.needs, ("-", 0, self))

    def __mul__(self, other: Number) -> Number:
        made = ("*", self, other)
        if type(other) is not Interval and 0 < other < INF:  # most factors: the bounds keep their order
            lo, hi = self.lo, self.hi
            return interval(lo * other if lo else 0, hi * other if hi else 0, self.needs, made)  # type: ignore[arg-type]
        lo, hi, needs = parts(other)
        corners = (_times(self.lo, lo), _times(self.lo, hi), _times(self.hi, lo), _times(self.hi, hi))
        return interval(min(corners), max(corners), self.needs | needs, made)

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Number:
        return divide(self, other)

    def __rtruediv__(self, other: Number) -> Number:
        return divide(other, self)

    def __lt__(self, other: Number) -> Truth:
        lo, hi, needs = parts(other)
        if self.hi < lo:
            return True
        return False if self.lo >= hi else Open(self.needs | needs)

    def __le__(self, other: Number) -> Truth:
        lo, hi, needs = parts(other)
        if self.hi <= lo:
            return True
        return False if self.lo > hi else Open(self.needs | needs)

    def __gt__(self, other: Number) -> Truth:
        return not_(self <= other)

    def __ge__(self, other: Number) -> Truth:
        return not_(self < other)

    def __eq__(self, other: object) -> Truth:  # type: ignore[override]
        if not isinstance(other, (int, float, Interval)):
            return False
        lo, hi, needs = parts(other)
        return False if self.hi < lo or self.lo > hi else Open(self.needs | needs)

    def __ne__(self, other: object) -> Truth:  # type: ignore[override]
        return not_(self == other)

    __hash__ = None  # type: ignore[assignment]


if TYPE_CHECKING:
    Number: TypeAlias = int | float | Interval
    Made: TypeAlias = tuple[str, Number, Number] | None
    Truth: TypeAlias = bool | Open


def parts(value: Number) -> tuple[float, float, frozenset[str]]:
    """Return the bounds of a number and the names that it rests on."""
    if type(value) is Interval:
        return value.lo, value.hi, value.needs
    return value, value, NOTHING  # type: ignore[return-value]


def needs_of(value: object) -> frozenset[str]:
    """Return the names that would settle ``value``: one of the three above, or a missing value of a file."""
    needs = getattr(value, "needs", NOTHING)
    return needs if type(needs) is frozenset else frozenset(needs)


def interval(lo: float, hi: float, needs: frozenset[str] = NOTHING, made: Made = None) -> Number:
    """Return the number between ``lo`` and ``hi``: a point once both agree, whatever it rested on."""
    if lo < hi:
        return Interval(lo, hi, needs, made)
    if lo == hi and lo - lo == 0:
        return lo
    if lo != lo or hi != hi:  # noqa: PLR0124 (not a number: inf - inf says nothing)
        return Interval(-INF, INF, needs, made)
    return Interval(lo, hi, needs, made)


def _times(a: float, b: float) -> float:
    return 0 if a == 0 or b == 0 else a * b  # 0 x inf is 0 here: a bound of "nothing of it"


def _over(top: float, bottom: float) -> float:
    if top == 0 or bottom in (INF, -INF):
        return 0  # also for inf / inf: quotients of large numbers come as near to zero as one likes
    return top / bottom


def divide(top: Number, bottom: Number) -> Number:
    """Return ``top / bottom``; division by zero is unknown, and its needs say so."""
    if type(top) is not Interval and type(bottom) is not Interval:
        return top / bottom if bottom != 0 else _undefined(NOTHING)
    low, high, needs = parts(bottom)
    lo, hi, more = parts(top)
    needs |= more
    if low == high == 0:
        return _undefined(needs)
    if low < 0 < high:
        return Interval(-INF, INF, needs)
    if low == 0 or high == 0:  # towards zero from one side: the quotient grows without bound
        far, sign = (high, 1) if low == 0 else (low, -1)
        up = INF if (hi if sign > 0 else -lo) > 0 else max(_over(lo, far), _over(hi, far))
        down = -INF if (lo if sign > 0 else -hi) < 0 else min(_over(lo, far), _over(hi, far))
        return interval(down, up, needs)
    corners = (_over(lo, low), _over(lo, high), _over(hi, low), _over(hi, high))
    return interval(min(corners), max(corners), needs, ("/", top, bottom))


def _undefined(needs: frozenset[str]) -> Number:
    return Interval(-INF, INF, needs or _NO_DIVISOR)


_NO_DIVISOR = frozenset({"a divisor that is not zero"})
_OUTSIDE = frozenset({"a number that its function is defined for"})


def not_(a: Truth) -> Truth:
    """Kleene's not."""
    return a if isinstance(a, Open) else not a


def and_(a: Truth, b: Truth) -> Truth:
    """Kleene's and: false with anything is false."""
    if a is False or b is False:
        return False
    if a is True:
        return b
    return a if b is True else Open(needs_of(a) | needs_of(b))


def or_(a: Truth, b: Truth) -> Truth:
    """Kleene's or: true with anything is true."""
    if a is True or b is True:
        return True
    if a is False:
        return b
    return a if b is False else Open(needs_of(a) | needs_of(b))


def implies(a: Truth, b: Truth) -> Truth:
    """Kleene's ``a -> b``."""
    return or_(not_(a), b)


def hull(values: Iterable[object], needs: frozenset[str] = NOTHING) -> object:
    """Return what holds of a value that is one of ``values``, where only ``needs`` would say which."""
    first: object = None
    lo, hi = INF, -INF
    numbers = truths = True
    differ = started = False
    for value in values:
        needs |= needs_of(value)
        if type(value) is Interval or (type(value) in (int, float)):
            low, high, _ = parts(value)  # type: ignore[arg-type]
            lo, hi = min(lo, low), max(hi, high)
            truths = False
        else:
            numbers = False
            truths = truths and (isinstance(value, (bool, Open)))
        if not started:
            first, started = value, True
        elif differ or equal(value, first) is not True or type(value) is not type(first):
            differ = True
    if not differ and not hasattr(first, "needs"):
        return first
    if numbers:
        return interval(lo, hi, needs)
    return Open(needs) if truths else Unknown(needs)


def if_(condition: Truth, then: object, other: object) -> object:
    """Return one arm, or the hull of both while the condition is open."""
    if condition is True:
        return then
    return other if condition is False else hull((then, other), needs_of(condition))


def equal(a: object, b: object) -> Truth:
    """Return ``a == b`` for any two values; an unknown value leaves it open."""
    unknown = hasattr(a, "needs"), hasattr(b, "needs")
    if type(a) is Interval or type(b) is Interval:
        if type(a) in _NUMBERS and type(b) in _NUMBERS:
            return a == b
        return Open(needs_of(a) | needs_of(b)) if all(unknown) else False
    if any(unknown):
        return False if _ends_otherwise(a, b) else Open(needs_of(a) | needs_of(b))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if not (isinstance(a, (list, tuple)) and isinstance(b, (list, tuple))):
        return a == b
    result: Truth = len(a) == len(b)
    spend(len(a), "items that rules compare")
    for left, right in zip(a, b):  # noqa: B905 (the lengths agree, or it is decided)
        if result is False:
            break
        result = and_(result, equal(left, right))
    return result


def _ends_otherwise(a: object, b: object) -> bool:
    """Whether null, or a text, ends otherwise than a path must whose beginning is not known."""
    if a is None or isinstance(a, str):
        a, b = b, a
    if not isinstance(a, Unknown) or a.tail == "":
        return False
    return b is None or (isinstance(b, str) and not b.endswith(a.tail))


_NUMBERS = (int, float, Interval)


def member(item: object, container: object) -> Truth:
    """``item in [..]``."""
    if not isinstance(container, (list, tuple)):
        return Open(needs_of(container))
    result: Truth = False
    spend(len(container), "items that rules compare")
    for candidate in container:
        result = or_(result, equal(item, candidate))
        if result is True:
            return True
    return result


def minimum(*values: Number) -> Number:
    """Return the smallest of numbers or intervals."""
    return _extreme(values, min)


def maximum(*values: Number) -> Number:
    """Return the largest of numbers or intervals."""
    return _extreme(values, max)


def _extreme(values: Sequence[Number], pick: Callable[..., float]) -> Number:
    for value in values:
        if type(value) is Interval:
            break
    else:
        return pick(values)
    lo, hi, needs = parts(values[0])
    for value in values[1:]:
        low, high, names = parts(value)
        lo, hi = pick(lo, low), pick(hi, high)
        needs = needs | names if names else needs
    return interval(lo, hi, needs)


def _monotone(function: Callable[[float], int], value: Number) -> Number:
    lo, hi, needs = parts(value)
    low, high = (end if end in (INF, -INF) else function(end) for end in (lo, hi))
    return interval(low, high, needs)


def ceiling(value: Number) -> Number:
    """Return the smallest whole number that is not below ``value``."""
    return value if type(value) is int else _monotone(math.ceil, value)


def floor(value: Number) -> Number:
    """Return the largest whole number that is not above ``value``."""
    return value if type(value) is int else _monotone(math.floor, value)


def nearest_whole(value: Number) -> Number:
    """Return the nearest whole number; halves go to the even one, as Python's round does."""
    return _monotone(round, value)


def square_root(value: Number) -> Number:
    """Return the square root; that of a negative number is unknown."""
    lo, hi, needs = parts(value)
    if hi < 0:
        return Interval(-INF, INF, needs or _OUTSIDE)
    return interval(math.sqrt(max(lo, 0)), math.sqrt(hi), needs)


def binary_logarithm(value: Number) -> Number:
    """log2; of zero or less nothing is known."""
    lo, hi, needs = parts(value)
    if hi <= 0:
        return Interval(-INF, INF, needs or _OUTSIDE)
    return interval(-INF if lo <= 0 else math.log2(lo), math.log2(hi) if hi != INF else INF, needs)


def absolute(value: Number) -> Number:
    """Return the absolute value."""
    lo, hi, needs = parts(value)
    if lo >= 0 or hi <= 0:
        a, b = abs(lo), abs(hi)
        return interval(min(a, b), max(a, b), needs)
    return interval(0, max(-lo, hi), needs)


def lowest(value: Number) -> Number:
    """Return an estimate's lower end; what rests on missing names stays a range."""
    return _end(value, value.lo) if type(value) is Interval else value


def highest(value: Number) -> Number:
    """Return an estimate's upper end; what rests on missing names stays a range."""
    return _end(value, value.hi) if type(value) is Interval else value


def _end(value: Interval, end: float) -> Number:
    # Not the value itself: its two ends would then be taken for the same number.
    return Interval(value.lo, value.hi, value.needs) if value.needs else end


def modulo(a: Number, b: Number) -> Number:
    """Return the remainder of ``a / b``, with the sign of ``b``."""
    low, high, needs = parts(b)
    a_lo, a_hi, more = parts(a)
    needs |= more
    if low == high == 0:
        return _undefined(needs)
    if low == high and a_lo not in (INF, -INF) and a_hi not in (INF, -INF):
        if a_lo == a_hi:
            return a_lo % low
        if low not in (INF, -INF) and a_lo // low == a_hi // low:  # no multiple of b between the two
            return interval(min(a_lo % low, a_hi % low), max(a_lo % low, a_hi % low), needs)
    if low > 0 and a_lo >= 0 and a_hi < low:
        return interval(a_lo, a_hi, needs)
    return interval(min(low, 0), max(high, 0), needs)


_MOST_DIVIDED = 10**8  # larger numbers are not taken apart: that would cost time, and nobody asks


def divisors(*values: Number) -> list[int] | Unknown:
    """Return the common divisors of ``values`` in ascending order; those of zero are unknown."""
    needs = NOTHING
    common = 0
    for value in values:
        needs |= needs_of(value)
        if isinstance(value, Interval) or not 0 < value <= _MOST_DIVIDED or value != int(value):
            return Unknown(needs or _OUTSIDE)
        common = math.gcd(common, int(value))
    low = [n for n in range(1, math.isqrt(common) + 1) if common % n == 0]
    return low + [common // n for n in reversed(low) if n * n != common]
