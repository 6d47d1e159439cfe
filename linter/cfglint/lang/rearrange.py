"""Comparisons with everything on one side, so that an estimate used twice does not widen by being used twice.

``mem_fraction * gpu.vram + overhead <= gpu.vram`` over intervals compares two sides that move together as if
they did not. Beside every sum and product the compiler keeps its `Form`, the same number as a polynomial; a
comparison in which something occurs twice also carries the terms of left minus right. They are looked at only
where the plain comparison comes out open (polynomial.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, TypeAlias

from cfglint.lang import tree as t
from cfglint.lang.show import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cfglint.lang.types import Type

Monomial: TypeAlias = tuple[str, ...]  # the keys of its factors, sorted; "/x" is one divided by x
Terms: TypeAlias = dict[Monomial, Fraction]

MAX_TERMS = 64


@dataclass(slots=True)
class Form:
    """A number as a sum of products of keys: names, and parts that are no arithmetic, held in temporaries.

    ``uses`` counts the keys as often as the text has them, before anything cancels out.
    """

    terms: Terms
    uses: int = 0
    held: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Label:
    """What an atom of the generated source stands for."""

    node: t.Expr
    scope: str
    wanted: Type | None = None

    @property
    def key(self) -> str:
        factor = "" if self.wanted is None else f" x{self.wanted.factor}"
        return f"{self.scope}({show(self.node)}){factor}"


class Forms:
    """The forms of one function's atoms; ``scope`` tells apart what reads alike but holds local values."""

    def __init__(self) -> None:
        self.known: dict[str, Form] = {}
        self.labels: dict[str, Label] = {}
        self.scope = ""
        self._scopes = 0

    def enter(self) -> str:
        """Start a new scope and return the one around it."""
        outer = self.scope
        self._scopes += 1
        self.scope = f"{self._scopes}"
        return outer

    def label(self, atom: str, node: t.Expr, wanted: Type | None = None, source: str = "") -> None:
        """Note what an atom stands for, so that it is known again; ``source`` was converted to it."""
        origin = self.labels.get(source)
        if origin is not None:
            self.labels.setdefault(atom, Label(origin.node, origin.scope, wanted))
        else:
            self.labels.setdefault(atom, Label(node, self.scope, wanted))

    def name(self, atom: str, name: str) -> None:
        """Note that an atom is the value of a name."""
        self.known[atom] = Form({(name,): Fraction(1)}, 1)

    def scale(self, result: str, atom: str, factor: float) -> None:
        """Note that ``result`` is ``atom`` times ``factor``."""
        form = self.of(atom)
        exact = Fraction(repr(factor))
        self.known[result] = Form({m: c * exact for m, c in form.terms.items()}, form.uses, form.held)

    def sum(self, result: str, parts: Iterable[tuple[str, str]]) -> None:
        """Note that ``result`` is a sum of signed atoms."""
        total = Form({})
        for sign, atom in parts:
            form = self.of(atom)
            for monomial, coefficient in form.terms.items():
                total.terms[monomial] = total.terms.get(monomial, Fraction()) + (
                    coefficient if sign == "+" else -coefficient
                )
            total.uses += form.uses
            total.held |= form.held
            if len(total.terms) > MAX_TERMS:
                return
        total.terms = {m: c for m, c in total.terms.items() if c}
        self.known[result] = total

    def product(self, result: str, left: str, right: str) -> None:
        """Note that ``result`` is ``left`` times ``right``."""
        a, b = self.of(left), self.of(right)
        if len(a.terms) * len(b.terms) > MAX_TERMS:
            return
        terms: Terms = {}
        for one, c in a.terms.items():
            for other, d in b.terms.items():
                monomial = tuple(sorted(one + other))
                terms[monomial] = terms.get(monomial, Fraction()) + c * d
        self.known[result] = Form({m: c for m, c in terms.items() if c}, a.uses + b.uses, a.held | b.held)

    def quotient(self, result: str, top: str, bottom: str) -> None:
        """Note that ``result`` is ``top`` divided by ``bottom``."""
        a, b = self.of(top), self.of(bottom)
        if set(b.terms) == {()}:
            self.known[result] = Form({m: c / b.terms[()] for m, c in a.terms.items()}, a.uses, a.held)
            return
        if len(b.terms) == 1:
            ((monomial, coefficient),) = b.terms.items()
            if len(monomial) == 1 and not monomial[0].startswith("/"):
                terms = {tuple(sorted((*m, "/" + monomial[0]))): c / coefficient for m, c in a.terms.items()}
                self.known[result] = Form(terms, a.uses + b.uses, a.held | b.held)
                return
        whole = self._opaque(bottom)
        (key,) = whole.held
        terms = {tuple(sorted((*m, "/" + key))): c for m, c in a.terms.items()}
        self.known[result] = Form(terms, a.uses + 1, a.held | whole.held)

    def of(self, atom: str) -> Form:
        """Return the form of an atom; one that is no arithmetic is a key of its own."""
        if atom in self.known:
            return self.known[atom]
        if atom.lstrip("-")[:1].isdigit():
            value = Fraction(atom)
            return Form({(): value} if value else {})
        return self._opaque(atom)

    def _opaque(self, atom: str) -> Form:
        label = self.labels.get(atom)
        key = label.key if label is not None else f"%{atom}"
        return Form({(key,): Fraction(1)}, 1, {key: atom})

    def comparison(self, left: str, right: str, leaves: Callable[[str], Mapping[str, int]]) -> Form | None:
        """Return left minus right, None where nothing in it occurs twice.

        ``leaves`` tells how often a key's own derivation uses each name.
        """
        result = "difference"
        self.known.pop(result, None)
        self.sum(result, (("+", left), ("-", right)))
        form = self.known.get(result)
        if form is None:
            return None
        keys = {key.removeprefix("/") for monomial in form.terms for key in monomial}
        if form.uses > len(keys):
            return form
        seen: dict[str, int] = {}
        for key in keys:
            for leaf, times in leaves(key).items():
                seen[leaf] = seen.get(leaf, 0) + times
        return form if any(times > 1 for times in seen.values()) else None


def literal(terms: Terms) -> tuple[int, tuple[tuple[int, Monomial], ...]]:
    """Return a common denominator and the terms over it, as generated source holds them."""
    denominator = lcm(*(c.denominator for c in terms.values())) if terms else 1
    return denominator, tuple((int(c * denominator), m) for m, c in terms.items())


class Leaves:
    """How often the derivation of a name uses each of the names below it, through sums and products only."""

    def __init__(self, bodies: Mapping[str, list[t.Expr]]) -> None:
        self.bodies = bodies  # by name: the let, and what frameworks put in its place
        self._known: dict[str, Mapping[str, int]] = {}

    def __call__(self, key: str) -> Mapping[str, int]:
        if key not in self._known:
            self._known[key] = {key: 1}  # also what a circle sees of itself
            bodies = self.bodies.get(key, ())
            if bodies:
                counts: dict[str, int] = {key: 1}
                for body in bodies:
                    self._add(body, counts)
                self._known[key] = counts
        return self._known[key]

    def _add(self, node: t.Expr, counts: dict[str, int]) -> None:
        match node:
            case t.Name(name):
                for leaf, times in self(name).items():
                    counts[leaf] = min(2, counts.get(leaf, 0) + times)
            case t.Sum(parts) | t.Product(parts):
                for _, part in parts:
                    self._add(part, counts)
            case t.Negative(operand):
                self._add(operand, counts)
            case t.Call(_, arguments):
                for argument in arguments:
                    self._add(argument, counts)
            case t.Number():
                pass
            case _:
                key = f"({show(node)})"
                counts[key] = min(2, counts.get(key, 0) + 1)
