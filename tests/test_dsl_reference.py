# ruff: noqa: E501
"""Compiled code against a naive evaluator, and intervals against the points inside them."""

from __future__ import annotations

import math
import operator
from fractions import Fraction

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cfglint.lang import tree as t
from cfglint.lang.compile import Function, Names
from cfglint.lang.parse import parse
from cfglint.lang.rearrange import decide
from cfglint.lang.runtime import NAMESPACE
from cfglint.lang.symbols import Source, Symbols
from cfglint.lang.values import (  # fmt: skip
    INF,
    Interval,
    Open,
    absolute,
    and_,
    binary_logarithm,
    ceiling,
    divide,
    divisors,
    floor,
    hull,
    if_,
    implies,
    interval,
    maximum,
    minimum,
    modulo,
    nearest_whole,
    needs_of,
    not_,
    or_,
    parts,
    square_root,
)
from tiers import tried

COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
NUMBERS = ("a", "b", "c")
TRUTHS = ("p", "q")
SYMBOLS = Symbols()
TEXT = "".join(f"fact {n}: number\n" for n in NUMBERS) + "".join(f"fact {n}: bool\n" for n in TRUTHS)
assert not list(SYMBOLS.add(Source("t", TEXT, parse(TEXT, "t"))))

small = st.integers(-6, 6) | st.sampled_from([0.5, -0.25, 1.5, 3.75])
points = st.fixed_dictionaries({**dict.fromkeys(NUMBERS, small), **dict.fromkeys(TRUTHS, st.booleans())})


# ── random expressions, and what they mean ──────────────────────────────────────────────────────────────────
def numeric(inner: st.SearchStrategy[t.Expr]) -> st.SearchStrategy[t.Expr]:
    pair = st.tuples(inner, inner)
    return st.one_of(
        st.builds(lambda p, s: t.Sum((("+", p[0]), (s, p[1]))), pair, st.sampled_from("+-")),
        st.builds(
            lambda p, o: t.Product((("*", p[0]), (o, p[1]))), pair, st.sampled_from(["*", "*", "/", "mod"])
        ),
        st.builds(t.Negative, inner),
        st.builds(t.Call, st.sampled_from(["min", "max"]), st.tuples(inner, inner)),
        st.builds(t.Call, st.sampled_from(["ceil", "floor", "round", "abs"]), st.tuples(inner)),
        st.builds(t.If, truths, inner, inner),
    )


leaves = st.builds(t.Name, st.sampled_from(NUMBERS)) | st.builds(t.Number, st.integers(0, 4) | st.just(0.5))
truths: st.SearchStrategy[t.Expr] = st.deferred(
    lambda: st.one_of(
        st.builds(t.Name, st.sampled_from(TRUTHS)),
        st.builds(
            lambda x, o, y: t.Compare((x, y), (o,)),
            arithmetic,
            st.sampled_from(sorted(COMPARISONS)),
            arithmetic,
        ),
        st.builds(lambda x, y, z: t.Compare((x, y, z), ("<=", "<")), leaves, leaves, leaves),
        st.builds(lambda x, y, z: t.Member(x, t.Range(y, z)), leaves, leaves, leaves),
        st.builds(
            lambda x, ys, n: t.Member(x, t.ListOf(tuple(ys)), n),
            leaves,
            st.lists(leaves, max_size=3),
            st.booleans(),
        ),
    )
)
arithmetic = st.recursive(leaves, numeric, max_leaves=5)
junctions = st.recursive(
    truths,
    lambda inner: st.one_of(
        st.builds(t.Not, inner), st.builds(t.Junction, st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=4,
)  # fmt: skip


class UndefinedError(Exception):
    """A division by zero."""


def meaning(node: t.Expr, facts: dict[str, object]) -> object:
    """What an expression is worth in exact arithmetic on known values."""
    of = lambda n: meaning(n, facts)  # noqa: E731
    match node:
        case t.Number(value):
            return Fraction(value)
        case t.Name(name):
            value = facts[name]
            return value if isinstance(value, bool) else Fraction(value)
        case t.Sum(terms):
            return sum((of(e) if s == "+" else -of(e)) for s, e in terms)
        case t.Product(factors):
            result = of(factors[0][1])
            for sign, factor in factors[1:]:
                other = of(factor)
                if sign != "*" and other == 0:
                    raise UndefinedError
                result = result * other if sign == "*" else result / other if sign == "/" else result % other
            return result
        case t.Negative(operand):
            return -of(operand)
        case t.Call(function, arguments):
            one = {"ceil": math.ceil, "floor": math.floor, "round": round, "abs": abs}
            values = [of(a) for a in arguments]
            return (
                Fraction(one[function](values[0]))
                if function in one
                else {"min": min, "max": max}[function](values)
            )
        case t.If(condition, then, other):
            return of(then) if of(condition) else of(other)
        case t.Compare(operands, operators):
            values = [of(o) for o in operands]
            return all(COMPARISONS[o](x, y) for o, x, y in zip(operators, values, values[1:], strict=False))
        case t.Member(item, t.Range(low, high)):
            return of(low) <= of(item) <= of(high)
        case t.Member(item, t.ListOf(items), negated):
            return (of(item) in [of(i) for i in items]) != negated
        case t.Not(operand):
            return not of(operand)
        case t.Junction(sign, operands):
            return (all if sign == "and" else any)([of(o) for o in operands])
    raise AssertionError(node)


def compiled(node: t.Expr, facts: dict[str, object]) -> object:
    function = Function(Names(SYMBOLS))
    atom, _ = function.value(node)
    function.line(f"return {atom}")
    namespace = dict(NAMESPACE)
    exec(function.finish("F"), namespace)
    return namespace["F"](facts)  # type: ignore[operator]


def exact(node: t.Expr) -> bool:
    """Whether floats are exact on it: a quotient may be rounded, and then a tie decides otherwise."""
    return not any(
        isinstance(n, t.Product) and any(o in ("/", "mod") for o, _ in n.factors) for n in t.walk(node)
    )


@given(arithmetic | junctions, points)
@settings(max_examples=tried(400), deadline=None, suppress_health_check=list(HealthCheck))
def test_known_values_give_what_the_reference_gives(node: t.Expr, facts: dict[str, object]) -> None:
    try:
        expected = meaning(node, facts)
    except UndefinedError:
        assume(False)
    found = compiled(node, facts)
    if isinstance(expected, bool):
        if exact(node):
            assert found is expected
        else:
            assert found in (True, False)
    else:
        assert type(found) in (int, float)
        assert (
            found == expected
            if exact(node)
            else math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9) or not exact(node)
        )


# ── intervals contain what they stand for, and open truths are never decided the wrong way ─────────────────
@st.composite
def boxes(draw: st.DrawFn) -> tuple[dict[str, object], dict[str, object]]:
    """Facts of which some are known in part only, and fully known facts that they allow."""
    inside = draw(points)
    known: dict[str, object] = {}
    for name, value in inside.items():
        how = draw(st.sampled_from(["known", "estimate", "missing", "below", "above"]))
        if isinstance(value, bool):
            known[name] = value if how in ("known", "estimate") else Open(frozenset({name}))
            continue
        low, high = value - draw(st.integers(0, 3)), value + draw(st.integers(0, 3))
        known[name] = {
            "known": value,
            "estimate": interval(low, high),
            "missing": Interval(-INF, INF, frozenset({name})),
            "below": Interval(-INF, high, frozenset({name})),
            "above": Interval(low, INF, frozenset({name})),
        }[how]
    return known, inside


def allows(found: object, value: object) -> bool:
    """Whether a result known in part may still be ``value``."""
    if isinstance(found, Open):
        return isinstance(value, bool)
    if isinstance(found, Interval):
        slack = 1e-9 * max(1, abs(value))
        return found.lo - slack <= value <= found.hi + slack
    return (
        found is value if isinstance(value, bool) else math.isclose(found, value, rel_tol=1e-9, abs_tol=1e-9)
    )


@given(arithmetic | junctions, boxes())
@settings(max_examples=tried(1000), deadline=None, suppress_health_check=list(HealthCheck))
def test_what_is_known_in_part_allows_every_point_inside(
    node: t.Expr, box: tuple[dict[str, object], dict[str, object]]
) -> None:
    known, inside = box
    try:
        value = meaning(node, inside)
    except UndefinedError:
        assume(False)
    assume(exact(node) or not isinstance(value, bool))
    assert allows(compiled(node, known), value)


@given(arithmetic | junctions, boxes())
@settings(max_examples=tried(300), deadline=None, suppress_health_check=list(HealthCheck))
def test_needs_name_only_what_is_missing(
    node: t.Expr, box: tuple[dict[str, object], dict[str, object]]
) -> None:
    missing = frozenset().union(*(needs_of(v) for v in box[0].values()))
    lacking = {"a divisor that is not zero"}
    assert needs_of(compiled(node, box[0])) <= missing | lacking


ends = st.integers(-8, 8) | st.just(INF) | st.just(-INF) | st.sampled_from([0.5, -0.5, 2.25])


@st.composite
def spans(draw: st.DrawFn) -> tuple[object, float]:
    """A number known within bounds, and one between them."""
    low, high = sorted((draw(ends), draw(ends)))
    if low == high:
        low, high = (low, low) if abs(low) != INF else (0, 0)
        return low, low
    inside = draw(
        st.floats(max(low, -50), min(high, 50), allow_nan=False)
        if max(low, -50) < min(high, 50)
        else st.just(0.0)
    )
    assume(low <= inside <= high)
    return Interval(low, high), inside


BINARY = {
    "+": (lambda a, b: a + b, lambda a, b: a + b), "-": (lambda a, b: a - b, lambda a, b: a - b),
    "*": (lambda a, b: a * b, lambda a, b: a * b), "/": (divide, lambda a, b: a / b), "mod": (modulo, lambda a, b: a % b),
    "min": (minimum, min), "max": (maximum, max), "hull": (lambda a, b: hull((a, b)), lambda a, b: b),
}  # fmt: skip
UNARY = {
    "neg": (lambda a: -a, lambda a: -a), "abs": (absolute, abs), "ceil": (ceiling, math.ceil), "floor": (floor, math.floor),
    "round": (nearest_whole, round), "sqrt": (square_root, math.sqrt), "log2": (binary_logarithm, math.log2),
}  # fmt: skip


@given(st.sampled_from(sorted(BINARY)), spans(), spans())
@settings(max_examples=tried(800), deadline=None, suppress_health_check=list(HealthCheck))
def test_operators_contain_every_point(name: str, a: tuple[object, float], b: tuple[object, float]) -> None:
    over, at = BINARY[name]
    assume(name not in ("/", "mod") or b[1] != 0)
    low, high, _ = parts(over(a[0], b[0]))
    value = at(a[1], b[1])
    assert (
        low <= value <= high
        or math.isclose(value, low, abs_tol=1e-9)
        or math.isclose(value, high, abs_tol=1e-9)
    )


@given(st.sampled_from(sorted(UNARY)), spans())
@settings(max_examples=tried(300), deadline=None, suppress_health_check=list(HealthCheck))
def test_functions_contain_every_point(name: str, a: tuple[object, float]) -> None:
    over, at = UNARY[name]
    assume(name != "sqrt" or a[1] >= 0)
    assume(name != "log2" or a[1] > 0)
    low, high, _ = parts(over(a[0]))
    assert low <= at(a[1]) <= high


@given(spans(), spans(), st.sampled_from(sorted(COMPARISONS)))
@settings(max_examples=tried(400), deadline=None, suppress_health_check=list(HealthCheck))
def test_comparisons_are_decided_only_where_all_points_agree(
    a: tuple[object, float], b: tuple[object, float], sign: str
) -> None:
    found = COMPARISONS[sign](a[0], b[0])
    assert isinstance(found, Open) or found is COMPARISONS[sign](a[1], b[1])


@given(st.lists(st.integers(1, 400) | st.integers(-2, 5).map(float), min_size=1, max_size=4))
def test_divisors_are_those_that_leave_no_rest(values: list[float]) -> None:
    found = divisors(*values)
    if min(values) <= 0:
        assert needs_of(found)  # of zero and less it says nothing
    else:
        assert found == [n for n in range(1, int(min(values)) + 1) if all(v % n == 0 for v in values)]


@given(spans(), st.integers(1, 400))
def test_divisors_wait_for_what_is_not_known(span: tuple[object, float], value: int) -> None:
    found = divisors(value, span[0])
    assert needs_of(span[0]) <= needs_of(found)
    assert isinstance(span[0], (int, float)) or needs_of(found)


monomials = st.lists(st.sampled_from(["a", "b", "/a", "c"]), max_size=3).map(lambda m: tuple(sorted(m)))
polynomials = st.dictionaries(monomials, st.integers(-4, 4).filter(bool), max_size=6)


@given(polynomials, boxes(), st.sampled_from(sorted(COMPARISONS)))
@settings(max_examples=tried(600), deadline=None, suppress_health_check=list(HealthCheck))
def test_rearranged_comparisons_agree_with_every_point(
    terms: dict[tuple[str, ...], int], box: tuple[dict[str, object], dict[str, object]], sign: str
) -> None:
    known, inside = box
    assume(inside["a"] != 0 or not any("/a" in m for m in terms))
    total = Fraction()
    form: object = 0
    for monomial, coefficient in terms.items():
        product = Fraction(coefficient)
        factors: object = coefficient
        for key in monomial:
            name = key.removeprefix("/")
            value = Fraction(inside[name])
            product = product / value if key.startswith("/") else product * value
            factors = divide(factors, known[name]) if key.startswith("/") else factors * known[name]
        total += product
        form = form + factors
    start = Open(frozenset(NUMBERS))
    found = decide(start, form, sign, 0)
    if isinstance(found, Open):
        assert found.needs <= start.needs
    else:
        assert found is COMPARISONS[sign](total, 0)


# ── Kleene ──────────────────────────────────────────────────────────────────────────────────────────────────
some_truths = st.sampled_from([True, False, Open(frozenset("x")), Open(frozenset("y")), Open()])


def ranked(truth: object) -> float:
    return 0.5 if isinstance(truth, Open) else float(truth)


@given(some_truths, some_truths, some_truths)
def test_kleene(a: object, b: object, c: object) -> None:
    assert ranked(and_(a, b)) == min(ranked(a), ranked(b))
    assert ranked(or_(a, b)) == max(ranked(a), ranked(b))
    assert ranked(not_(a)) == 1 - ranked(a)
    assert ranked(implies(a, b)) == max(1 - ranked(a), ranked(b))
    assert ranked(and_(a, or_(b, c))) == ranked(or_(and_(a, b), and_(a, c)))
    for result in (and_(a, b), or_(a, b), implies(a, b)):
        assert needs_of(result) <= needs_of(a) | needs_of(b)
    for refined in (True, False):
        for combine in (and_, or_, implies):
            open_ones = [ranked(combine(a, b)), ranked(combine(refined if isinstance(a, Open) else a, b))]
            assert open_ones[0] in (0.5, open_ones[1])


@given(st.sampled_from([True, False, Open(frozenset("x"))]), spans(), spans())
def test_the_hull_holds_both_arms(
    condition: object, a: tuple[object, float], b: tuple[object, float]
) -> None:
    low, high, _ = parts(if_(condition, a[0], b[0]))
    if condition is not False:
        assert low <= a[1] <= high
    if condition is not True:
        assert low <= b[1] <= high
