"""Decides a comparison whose sides rest on the same estimates, by bringing everything to one side.

An `Interval` keeps the sum, product or quotient that it came from. So left minus right can be written as a
sum of products of the intervals at its ground: there, what is on both sides cancels out, and what several
products share is factored out. ``mem_fraction * gpu.vram <= gpu.vram`` becomes
``gpu.vram * (mem_fraction - 1) <= 0``, which holds whatever the GPU is. Numbers are exact here. Imported only
where a comparison is open.
"""

from __future__ import annotations

import math
import operator as operators
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

from cfglint.lang.values import Interval, Open, divide, interval, parts

if TYPE_CHECKING:
    from typing import TypeAlias

    from cfglint.lang.values import Made, Number, Truth

    Product: TypeAlias = tuple[int, ...]  # the intervals that are multiplied, by their identity
    Terms: TypeAlias = dict[Product, Fraction]  # how often each product is taken

MAX_TERMS = 64
MAX_DEPTH = 40
COMPARISONS = {
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
    "==": operators.eq,
    "!=": operators.ne,
}


def decide(truth: Open, left: Number, operator: str, right: Number) -> Truth:
    """Return what ``left operator right`` is, or ``truth`` where that stays open; its needs may get fewer."""
    form = _Form()
    difference = _sum(form.terms(left), form.terms(right), -1)
    if difference is None:
        return truth
    result: Truth = COMPARISONS[operator](form.bounds(difference), 0)
    return truth if isinstance(result, Open) and not result.needs < truth.needs else result


class _Form:
    """Numbers as sums of products of the intervals in ``ground``."""

    def __init__(self) -> None:
        self.ground: dict[int, Number] = {}
        self._written: dict[int, Terms] = {}  # by identity: what is used twice is written once

    def terms(self, value: Number, depth: int = 0) -> Terms:
        """Return a number as a sum of products; one that grows too large stands for itself."""
        if type(value) is not Interval and math.isfinite(value):  # type: ignore[arg-type]
            return {(): _exact(value)}  # type: ignore[arg-type, dict-item]
        if id(value) not in self._written:
            made: Made = getattr(value, "made", None)
            terms = self._derived(made, depth + 1) if made is not None and depth < MAX_DEPTH else None
            self._written[id(value)] = self._itself(id(value), value) if terms is None else terms
        return self._written[id(value)]

    def _itself(self, key: int, value: Number) -> Terms:
        low, high, needs = parts(value)
        self.ground[key] = interval(_exact(low), _exact(high), needs)
        return {(key,): Fraction(1)}

    def _derived(self, made: tuple[str, Number, Number], depth: int) -> Terms | None:
        sign, left, right = made
        terms = self.terms(left, depth)
        if sign in "+-":
            return _sum(terms, self.terms(right, depth), 1 if sign == "+" else -1)
        if sign == "*":
            return _product(terms, self.terms(right, depth))
        if type(right) is not Interval:
            return _product(terms, {(): 1 / Fraction(repr(right))})
        # A reciprocal is a factor like any other: it never meets what it is the reciprocal of.
        return _product(terms, self._itself(-id(right), divide(1, right)))

    def bounds(self, terms: Terms) -> Number:
        """Bound a sum of products term by term, and with its most frequent factor taken out; both hold."""
        plain: Number = 0
        for product, times in terms.items():
            plain = plain + self._bounds_of(product, times)
        uses = Counter(key for product in terms for key in set(product))
        factor = max(uses, key=lambda key: uses[key], default=0)
        if uses[factor] < 2:
            return plain
        inner = {_without(product, factor): times for product, times in terms.items() if factor in product}
        rest = {product: times for product, times in terms.items() if factor not in product}
        low, high, needs = parts(self.ground[factor] * self.bounds(inner) + self.bounds(rest))
        return interval(max(low, parts(plain)[0]), min(high, parts(plain)[1]), needs)

    def _bounds_of(self, product: Product, times: Fraction) -> Number:
        result: Number = times  # type: ignore[assignment]
        for key, power in Counter(product).items():
            low, high, needs = parts(self.ground[key])
            ends = (low**power, high**power, *((0,) if low < 0 < high else ()))
            result = result * interval(min(ends), max(ends), needs)
        return result


def _exact(value: float) -> float:
    return Fraction(repr(value)) if math.isfinite(value) else value  # type: ignore[return-value]


def _sum(left: Terms, right: Terms, sign: int) -> Terms | None:
    total = dict(left)
    for product, times in right.items():
        total[product] = total.get(product, Fraction()) + sign * times
    return _kept(total)


def _product(left: Terms, right: Terms) -> Terms | None:
    total: Terms = {}
    for a, times in left.items():
        for b, more in right.items():
            product = tuple(sorted(a + b))
            total[product] = total.get(product, Fraction()) + times * more
    return _kept(total)


def _kept(terms: Terms) -> Terms | None:
    return {p: times for p, times in terms.items() if times} if len(terms) <= MAX_TERMS else None


def _without(product: Product, factor: int) -> Product:
    at = product.index(factor)
    return product[:at] + product[at + 1 :]
