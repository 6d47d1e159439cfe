"""Decides a comparison from its rearranged form: left minus right as a polynomial, compared with zero.

Numbers are exact here: a float is a whole number over a power of two, and so are sums and products of them.
What is known is put in first, then the estimates that are derived from others are replaced by their
derivations, and the bounds of what remains are found by factoring and by monotonicity. Imported only where
a plain comparison came out open.
"""

from __future__ import annotations

import math

from cfglint.lang.values import INF, NOTHING, Interval, Open, divide, needs_of, parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, TypeAlias

    from cfglint.lang.values import Truth

    Exact: TypeAlias = tuple[int, int]  # (n, e) is n / 2**e
    Bound: TypeAlias = Exact | float  # a float is infinite
    Monomial: TypeAlias = tuple[str, ...]
    Polynomial: TypeAlias = dict[Monomial, Exact]
    Box: TypeAlias = dict[str, tuple[Bound, Bound]]
    Terms: TypeAlias = Iterable[tuple[int, Monomial]]

MAX_TERMS = 64
_ZERO = (0, 0)


def _exact(value: float) -> Bound:
    if value in (INF, -INF):
        return value
    top, bottom = value.as_integer_ratio()
    return top, bottom.bit_length() - 1


def _add(a: Bound, b: Bound) -> Bound:
    if isinstance(a, float):
        return a
    if isinstance(b, float):
        return b
    if a[1] < b[1]:
        a, b = b, a
    return a[0] + (b[0] << (a[1] - b[1])), a[1]


def _times(a: Bound, b: Bound) -> Bound:
    if isinstance(a, float) or isinstance(b, float):
        sign = _sign(a) * _sign(b)
        return sign * INF if sign else _ZERO
    return a[0] * b[0], a[1] + b[1]


def _sign(a: Bound) -> int:
    top = a if isinstance(a, float) else a[0]
    return (top > 0) - (top < 0)


def _negated(a: Bound) -> Bound:
    return -a if isinstance(a, float) else (-a[0], a[1])


def _less(a: Bound, b: Bound) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        return a != b and (a == -INF or b == INF)
    return _sign(_add(a, _negated(b))) < 0


def _span(bounds: Iterable[Bound]) -> tuple[Bound, Bound]:
    first, *rest = bounds
    low = high = first
    for bound in rest:
        low = bound if _less(bound, low) else low
        high = bound if _less(high, bound) else high
    return low, high


def _product(a: tuple[Bound, Bound], b: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    return _span(_times(x, y) for x in a for y in b)


def _power(bounds: tuple[Bound, Bound], times: int) -> tuple[Bound, Bound]:
    result = bounds
    for _ in range(times - 1):
        result = _product(result, bounds)
    if times % 2 == 0 and _sign(result[0]) < 0:
        result = _ZERO, result[1]
    return result


def _term(monomial: Monomial, coefficient: Exact, box: Box) -> tuple[Bound, Bound]:
    result: tuple[Bound, Bound] = (coefficient, coefficient)
    for key in dict.fromkeys(monomial):
        result = _product(result, _power(box[key], monomial.count(key)))
    return result


def _sum(bounds: Iterable[tuple[Bound, Bound]]) -> tuple[Bound, Bound]:
    low: Bound = _ZERO
    high: Bound = _ZERO
    for one in bounds:
        low = -INF if -INF in (low, one[0]) else _add(low, one[0])
        high = INF if INF in (high, one[1]) else _add(high, one[1])
    return low, high


def _both(a: tuple[Bound, Bound], b: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    return (b[0] if _less(a[0], b[0]) else a[0]), (b[1] if _less(b[1], a[1]) else a[1])


def _without(monomial: Monomial, key: str) -> Monomial:
    at = monomial.index(key)
    return monomial[:at] + monomial[at + 1 :]


def _bounds(poly: Polynomial, box: Box) -> tuple[Bound, Bound]:
    """Bound a polynomial term by term, and with its most frequent keys factored out; both hold."""
    plain = _sum(_term(m, c, box) for m, c in poly.items())
    counts: dict[str, int] = {}
    for monomial in poly:
        for key in set(monomial):
            counts[key] = counts.get(key, 0) + 1
    key = max(counts, key=lambda k: (counts[k], k), default="")
    if counts.get(key, 0) < 2:
        return plain
    inner = {_without(m, key): c for m, c in poly.items() if key in m}
    rest = {m: c for m, c in poly.items() if key not in m}
    return _both(plain, _sum((_product(box[key], _bounds(inner, box)), _bounds(rest, box))))


def _put_in(poly: Polynomial, key: str, value: Exact) -> Polynomial:
    result: Polynomial = {}
    for monomial, coefficient in poly.items():
        reduced, factor = monomial, coefficient
        while key in reduced:
            reduced = _without(reduced, key)
            factor = _times(factor, value)  # type: ignore[assignment]
        result[reduced] = _add(result.get(reduced, _ZERO), factor)  # type: ignore[assignment]
    return {m: c for m, c in result.items() if c[0]}


def _slope(poly: Polynomial, key: str) -> Polynomial:
    result: Polynomial = {}
    for monomial, coefficient in poly.items():
        if key in monomial:
            reduced = _without(monomial, key)
            factor = (coefficient[0] * monomial.count(key), coefficient[1])
            result[reduced] = _add(result.get(reduced, _ZERO), factor)  # type: ignore[assignment]
    return result


def _low(poly: Polynomial, box: Box) -> Bound:
    """Bound a polynomial from below: where it only rises or falls with a key, one end of the key decides."""
    best = _bounds(poly, box)[0]
    for key in sorted({k for m in poly for k in m}):
        down, up = _bounds(_slope(poly, key), box)
        end = box[key][0] if _sign(down) >= 0 else box[key][1] if _sign(up) <= 0 else INF
        if not isinstance(end, float):
            poly = _put_in(poly, key, end)
    low = _bounds(poly, box)[0]
    return low if _less(best, low) else best


_FAR = 1e30  # stands for infinity where a point is tried
_CLEAR = 1e-9  # of the terms' size; rounding is far below it


def _straddles(poly: Polynomial, box: Box) -> bool:
    """Whether it is found below zero at one point and above it at another; then no bound can decide."""
    try:
        terms = [(n / 2**e, monomial) for monomial, (n, e) in poly.items()]
        ends = {key: tuple(map(_point, box[key])) for monomial in poly for key in monomial}
    except OverflowError:
        return False
    point = {key: low for key, (low, _) in ends.items()}
    for sign in (-1, 1):
        for key, both in ends.items():  # downhill first, then uphill, one key at a time
            values = []
            for end in both:
                point[key] = end
                values.append(sign * _at(terms, point)[0])
            point[key] = both[values[0] < values[1]]
        value, size = _at(terms, point)
        if not sign * value > _CLEAR * size:
            return False
    return True


def _point(bound: Bound) -> float:
    if isinstance(bound, float):
        return math.copysign(_FAR, bound)
    value: float = bound[0] / 2 ** bound[1]
    if abs(value) > _FAR:
        raise OverflowError
    return value


def _at(terms: list[tuple[float, Monomial]], point: Mapping[str, float]) -> tuple[float, float]:
    """Return a polynomial's value at a point, and the size of its terms."""
    total = size = 0.0
    for factor, monomial in terms:
        term = factor
        for key in monomial:
            term *= point[key]
        total += term
        size += abs(term)
    return total, size


def _compared(operator: str, low: Bound, high: Bound) -> bool | None:
    """Return what ``x operator 0`` is for every x between the bounds, None where they differ."""
    below, above = _sign(high) < 0, _sign(low) > 0
    most, least = _sign(high) <= 0, _sign(low) >= 0
    holds, fails = {
        "<": (below, least),
        "<=": (most, above),
        ">": (above, most),
        ">=": (least, below),
        "==": (most and least, below or above),
        "!=": (below or above, most and least),
    }[operator]
    return True if holds else False if fails else None


def _reciprocal(value: object) -> object:
    if type(value) not in (int, float, Interval):
        return value
    low, high, needs = parts(divide(1, value))  # type: ignore[arg-type]
    if low == high and _times(_exact(low), _exact(value)) == (2 ** _exact(low)[1], _exact(low)[1]):  # type: ignore[arg-type, index]
        return low  # a power of two
    return Interval(math.nextafter(low, -INF), math.nextafter(high, INF), needs)


class _Values:
    """The values of the keys of a polynomial, with reciprocals rounded outwards."""

    def __init__(self, V: Any, held: Iterable[tuple[str, object]]) -> None:  # noqa: N803
        self.V = V
        self.known: dict[str, object] = dict(held)

    def __getitem__(self, key: str) -> object:
        if key not in self.known:
            if key.startswith("/"):
                self.known[key] = _reciprocal(self[key[1:]])
            else:
                self.known[key] = self.V[key]
        return self.known[key]


def _reduced(terms: Mapping[Monomial, int], values: _Values) -> tuple[Polynomial, Box, frozenset[str]] | None:
    """Put in what is known; returns the rest, the bounds of its keys and what they need."""
    poly: Polynomial = {m: (c, 0) for m, c in terms.items() if c}
    box: Box = {}
    needs = NOTHING
    for key in sorted({k for m in poly for k in m}):
        value = values[key]
        if type(value) not in (int, float, Interval):
            return None
        low, high, _ = parts(value)  # type: ignore[arg-type]
        if low != low or high != high:  # noqa: PLR0124 (not a number)
            return None
        box[key] = _exact(low), _exact(high)
        if low == high and not isinstance(box[key][0], float):
            poly = _put_in(poly, key, box[key][0])  # type: ignore[arg-type]
    for key in {k for m in poly for k in m}:
        needs |= needs_of(values[key])
    return poly, box, needs


def _derivation(V: Any, name: str) -> Any:  # noqa: N803
    """Return the let that a name's value comes from, None where it was given or bound."""
    if name in V.given:
        return None
    bound = V.bindings.get(name)
    if bound is not None and V.alternatives_in_force(bound):
        return None
    let = V.lets.get(name) or V.pack.lets.get(name)
    return let if hasattr(let, "terms") else None


def _expanded(terms: Mapping[Monomial, int], values: _Values) -> dict[Monomial, int]:
    """Replace estimates by what they are derived from, as far as the polynomial stays small."""
    result = dict(terms)
    kept: set[str] = set()
    while True:
        key = next(_derived(result, values, kept), None)
        if key is None:
            return result
        kept.add(key)
        let = _derivation(values.V, key)
        if let is None:
            continue
        denominator, own = let.terms
        degree = max(m.count(key) for m in result)
        grown: dict[Monomial, int] = {}
        for monomial, coefficient in result.items():
            times = monomial.count(key)
            partial = {tuple(k for k in monomial if k != key): coefficient * denominator ** (degree - times)}
            for _ in range(times):
                spread: dict[Monomial, int] = {}
                for m, c in partial.items():
                    for factor, inner in own:
                        product = tuple(sorted(m + inner))
                        spread[product] = spread.get(product, 0) + c * factor
                partial = spread
            for m, c in partial.items():
                grown[m] = grown.get(m, 0) + c
            if len(grown) > MAX_TERMS:
                break
        if len(grown) <= MAX_TERMS:
            result = {m: c for m, c in grown.items() if c}
            for part, function in let.atoms.items():
                if part not in values.known:
                    values.known[part] = function(values.V)


def _derived(terms: Mapping[Monomial, int], values: _Values, kept: set[str]) -> Iterator[str]:
    for monomial in terms:
        for key in monomial:
            if (
                key not in kept
                and key not in values.known
                and not key.startswith("/")
                and type(values.V[key]) is Interval
            ):
                yield key


def decide(truth: Truth, V: Any, operator: str, terms: Terms, held: Iterable[tuple[str, object]]) -> Truth:  # noqa: N803
    """Return ``truth``, an open comparison, or what the rearranged form makes of it: ``terms operator 0``."""
    values = _Values(V, held)
    given = {monomial: coefficient for coefficient, monomial in terms}
    expanded = _expanded(given, values) if hasattr(V, "given") else given
    narrowed = truth
    for form in (expanded, given) if expanded != given else (given,):
        reduced = _reduced(form, values)
        if reduced is None:
            continue
        poly, box, needs = reduced
        if len(poly) > MAX_TERMS:
            continue
        if not _straddles(poly, box):
            low = _low(poly, box)
            high = _negated(_low({m: (-n, e) for m, (n, e) in poly.items()}, box))
            result = _compared(operator, low, high)
            if result is not None:
                return result
        if needs < needs_of(narrowed):
            narrowed = Open(needs)
    return narrowed
