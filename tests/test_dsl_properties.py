# ruff: noqa: E501
"""Laws of the language over random trees: it reads back what it prints, and compiles whatever is well formed."""

from __future__ import annotations

import contextlib
import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cfglint.errors import RulesError
from cfglint.lang import tree as t
from cfglint.lang.check import Builder
from cfglint.lang.compile import CompileError, Function, Names, packed
from cfglint.lang.parse import parse, parse_rule
from cfglint.lang.runtime import NAMESPACE
from cfglint.lang.show import show
from cfglint.lang.symbols import Source, Symbols
from cfglint.lang.types import UNITS
from cfglint.lang.values import Interval, Open, Unknown
from cfglint.record import replace
from cfglint.text import line_starts
from rule_text import show_file
from tiers import tried

WORDS = frozenset(
    {
        "all",
        "and",
        "any",
        "at",
        "bad",
        "by",
        "costs",
        "count",
        "default",
        "detect",
        "dialect",
        "about",
        "doubling",
        "down",
    }
    | {
        "else",
        "error",
        "fact",
        "framework",
        "for",
        "from",
        "good",
        "halving",
        "has",
        "if",
        "in",
        "info",
        "keeping",
        "knob",
    }
    | {
        "let",
        "like",
        "match",
        "max",
        "may",
        "min",
        "mod",
        "not",
        "null",
        "of",
        "one",
        "open",
        "or",
        "per",
        "registry",
    }
    | {
        "role",
        "rule",
        "say",
        "see",
        "step",
        "sum",
        "then",
        "to",
        "true",
        "false",
        "unsafe",
        "up",
        "version",
        "warning",
    }
    | {"when", "why"}
)

words = st.sampled_from(
    ["x", "n", "vram", "colocated", "dtype", "bf16", "_a", "B", "h", "s", "nothing", "order", "V", "v"]
)
words |= st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
words = words.filter(lambda w: w not in WORDS and not re.fullmatch(r"v[0-9]+|[A-Z]{3}[0-9]{3}", w))
names = words | st.builds("{}.{}".format, words, words) | st.just("gpu.vram")
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.builds(
    t.Number,
    st.integers(0, 10**15) | st.floats(0, 1e200, allow_nan=False),
    st.none() | st.sampled_from(sorted(UNITS)),
)
versions = (
    st.lists(st.integers(0, 99), max_size=4).map(tuple).filter(lambda v: not v or v[-1] != 0).map(t.Version)
)
keys = words | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters='"\n'), min_size=1, max_size=5
)
steps = st.lists(keys.filter(lambda k: k != "*") | st.integers(0, 99) | st.just("*"), max_size=4).map(tuple)
paths = st.builds(t.Path, steps)
name_nodes = st.builds(t.Name, names)
leaves = st.one_of(
    numbers, numbers, name_nodes, name_nodes, st.builds(t.Text, texts), st.builds(t.Truth, st.booleans()),
    st.builds(t.Null), versions, paths, st.builds(t.Has, paths),
)  # fmt: skip
patterns = (
    name_nodes | numbers | st.builds(t.Text, texts) | st.builds(t.Truth, st.booleans()) | st.builds(t.Null)
)
kinds = st.sampled_from(["all", "any", "sum", "count", "min", "max"])


def some(
    inner: st.SearchStrategy[t.Expr], least: int, most: int = 3
) -> st.SearchStrategy[tuple[t.Expr, ...]]:
    return st.lists(inner, min_size=least, max_size=most).map(tuple)


def operated(
    inner: st.SearchStrategy[t.Expr], operators: str
) -> st.SearchStrategy[tuple[tuple[str, t.Expr], ...]]:
    first, *_ = operators.split()
    rest = st.lists(st.tuples(st.sampled_from(operators.split()), inner), min_size=1, max_size=3)
    return st.builds(lambda one, more: ((first, one), *more), inner, rest)


def compared(operands: tuple[t.Expr, ...], operators: list[str]) -> t.Compare:
    return t.Compare(operands, tuple(operators[: len(operands) - 1]))


def fields(inner: st.SearchStrategy[t.Expr]) -> st.SearchStrategy[tuple[tuple[str, t.Expr], ...]]:
    return st.lists(st.tuples(names, inner), max_size=3).map(tuple)


def extend(inner: st.SearchStrategy[t.Expr]) -> st.SearchStrategy[t.Expr]:
    comparisons = st.lists(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), min_size=2, max_size=2)
    return st.one_of(
        st.builds(t.Not, inner),
        st.builds(t.Negative, inner),
        st.builds(t.Junction, st.sampled_from(["and", "or"]), some(inner, 2)),
        st.builds(t.Sum, operated(inner, "+ -")),
        st.builds(t.Product, operated(inner, "* / mod")),
        st.builds(compared, some(inner, 2, 3), comparisons),
        st.builds(t.Range, inner, inner),
        st.builds(t.ListOf, some(inner, 0)),
        st.builds(t.RecordOf, fields(inner)),
        st.builds(
            t.Member,
            inner,
            inner | st.builds(t.Range, inner, inner) | st.builds(t.ListOf, some(inner, 0)),
            st.booleans(),
        ),
        st.builds(t.Like, inner, st.builds(t.Text, texts), st.booleans()),
        st.builds(t.If, inner, inner, inner),
        st.builds(
            t.Choice,
            inner,
            st.lists(st.tuples(some(patterns, 1, 2), inner), max_size=2).map(tuple),
            st.none() | inner,
        ),
        st.builds(
            t.Call,
            words | st.sampled_from(["max", "min", "ceil", "sqrt", "capture", "length", "divisors"]),
            some(inner, 0),
        ),
        st.builds(t.Quantifier, kinds, words, inner | st.just(t.Name("roles")), inner),
    )


expressions = st.recursive(leaves, extend, max_leaves=10)
maybe = st.none() | expressions

spellings = st.lists(
    words | texts | st.sampled_from(["4", "null", "true", "or"]), min_size=1, max_size=3
).map(tuple)
types = st.builds(
    t.TypeOf, st.just("one"), st.lists(spellings, min_size=1, max_size=3).map(tuple)
) | st.builds(
    lambda name, unit, limits: t.TypeOf(name, (), unit, *limits),
    names,
    st.none() | st.sampled_from(sorted(UNITS)),
    st.just((None, None)) | st.tuples(numbers, st.none() | numbers),
)
moves = st.builds(
    t.Move,
    st.sampled_from(["any", "up", "down"]),
    st.integers(0, 9) | st.floats(0, 9),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["numerics", "optimization", "data"]),
    texts,
    st.sampled_from(["time", "throughput", "quality", "memory", "host"]),
    *([st.floats(0, 0.5)] * 2),
    texts,
    st.booleans(),
    st.just(()) | st.lists(patterns, min_size=1, max_size=3).map(tuple),
    maybe,
    maybe,
).map(
    lambda move: replace(
        move,
        direction="any" if move.to else move.direction,
        high=move.low + move.high,
        per_halving=move.per_halving and not move.per_step,
        risk=move.risk if move.unsafe else "optimization",
    )
) | st.builds(t.Move, st.just("any"), st.integers(0, 9))


@st.composite
def knobs(draw: st.DrawFn) -> t.Knob:
    domain = draw(st.sampled_from(["step", "halving", "doubling", "values", "any"]))
    low = draw(numbers) if domain in ("step", "halving", "doubling") else None
    high, step = (draw(numbers), draw(numbers)) if domain == "step" else (None, None)
    values = draw(some(expressions, 0)) if domain == "values" else ()
    keeping = draw(st.none() | names)
    moved = draw(st.lists(moves, max_size=2).map(tuple))
    partners = draw(st.lists(names, max_size=2).map(tuple)) if keeping is not None else ()
    return t.Knob(draw(names), domain, low, high, step, values, keeping, moved, partners)


lets = st.builds(t.Let, names, st.lists(words, max_size=2).map(tuple), expressions)


@st.composite
def bindings(draw: st.DrawFn) -> t.Binding:
    default = draw(maybe)
    citation = draw(texts) if default is not None else ""
    return t.Binding(draw(names), draw(expressions), draw(maybe), default, citation, draw(maybe))


entries = st.one_of(
    bindings(),
    lets,
    st.builds(t.Setting, st.sampled_from(["dialect", "about", "see"]), texts),
    st.builds(t.Detect, expressions),
    st.builds(t.Since, versions, maybe),
    st.builds(t.Checked, versions),
    st.builds(t.Tie, names, paths, texts),
    st.builds(
        t.Write,
        names,
        st.none() | patterns,
        st.lists(st.tuples(paths, expressions), min_size=1, max_size=3).map(tuple),
        maybe,
        texts,
    ),
    st.builds(t.NamesAreKeys),
)
scopes = st.builds(
    t.Scope, words, st.lists(st.tuples(st.sampled_from(["<", ">=", "=="]), versions), max_size=2).map(tuple)
)
examples = st.builds(
    t.Example,
    st.sampled_from(["bad", "may", "good", "open"]),
    st.lists(st.tuples(name_nodes | paths, expressions), max_size=3, unique_by=lambda pair: pair[0]).map(
        tuple
    ),
)


def joined(parts: list[str | t.Expr]) -> tuple[str | t.Expr, ...]:
    """Return a message's parts as they are read: no empty text, and no two beside each other."""
    out: list[str | t.Expr] = []
    for part in parts:
        if isinstance(part, str) and out and isinstance(out[-1], str):
            out[-1] += part
        elif part != "":
            out.append(part)
    return tuple(out)


holes = expressions.filter(lambda node: not set("{}") & set(show(node)))
messages = st.lists(texts | holes, max_size=4).map(joined)


@st.composite
def says(draw: st.DrawFn) -> tuple[t.Say, ...]:
    whens = draw(st.lists(expressions, max_size=2))
    ends = [None] if draw(st.booleans()) else []
    return tuple(t.Say(when, draw(messages)) for when in [*whens, *ends])


rules = st.builds(
    t.Rule,
    st.from_regex(r"[A-Z]{3}[0-9]{3}", fullmatch=True),
    st.from_regex(r"[a-z][a-z0-9]{0,4}(-[a-z0-9]{1,4}){0,2}", fullmatch=True),
    st.sampled_from(["error", "warning", "info"]),
    st.lists(scopes, max_size=2).map(tuple),
    maybe,
    expressions,
    says(),
    texts,
    st.lists(texts, max_size=2).map(tuple),
    st.none() | name_nodes | paths,
    st.lists(examples, max_size=2).map(tuple),
    st.lists(texts, max_size=2).map(tuple),
)
# `null ->` begins what stands for null in a binding, and a rule with that condition says nothing.
given_when = maybe.filter(lambda condition: condition != t.Null())
bare = st.builds(
    lambda condition, needed: t.Rule("", "", "error", (), condition, needed), given_when, expressions
)
statements = st.one_of(
    st.builds(
        t.Pack, st.from_regex(r"[a-z][a-z0-9]{0,4}(-[a-z0-9]{1,4}){0,2}", fullmatch=True), versions, texts
    ),
    st.builds(t.Fact, names, types, texts),
    knobs(),
    lets,
    st.builds(t.Role, words, maybe, fields(expressions)),
    st.builds(t.Registry, words, words, st.lists(names, min_size=1, max_size=3).map(tuple)),
    st.builds(t.Framework, words, st.lists(entries, max_size=4).map(tuple)),
    rules,
    bare,
)


@given(st.lists(statements, max_size=3))
@settings(max_examples=tried(150), deadline=None, suppress_health_check=list(HealthCheck))
def test_a_printed_file_reads_back(nodes: list[t.Statement]) -> None:
    text = show_file(nodes)
    assert parse(text, "t.rules") == tuple(nodes)


@given(expressions)
@settings(max_examples=tried(150), deadline=None, suppress_health_check=list(HealthCheck))
def test_a_printed_expression_reads_back_and_prints_the_same(node: t.Expr) -> None:
    text = show(node)
    again = parse_rule(text, "--rule").requirement
    assert again == node
    assert show(again) == text


SYMBOLS = Symbols()
for _ in SYMBOLS.add(
    Source(
        "t",
        "",
        parse(
            "fact x: number\nfact n: count 1 ..\nfact vram: memory\nfact colocated: bool\nfact s: text\nfact B: any\n"
            "fact dtype: one of bf16, fp16\nfact h: list\nfact gpu.vram: memory in GB\nlet order(a) = a * x\nlet nothing = n / x\n"
            "let r.a = 2\nrole r when colocated { a: 2 }\n",
            "t",
        ),
    )
):
    pass
VALUES = {
    "x": Interval(-2, 3), "n": 4, "vram": Interval(2**30, 2**34, frozenset({"vram"})), "colocated": Open(frozenset({"colocated"})),
    "s": "ab", "B": Unknown(frozenset({"B"})), "dtype": "bf16", "h": [1, "2", None], "gpu.vram": 48e9,
    "nothing": Interval(-9, 9), "r.a": 2,
}  # fmt: skip


class Facts(dict[str, object]):
    """Values of the names above; every key of the file holds a list with a bit of everything."""

    def key(self, steps: tuple[str | int, ...]) -> object:
        return [1, "a", None, {"x": 2}] if len(steps) % 2 else Unknown(frozenset({"$"}))

    def has(self, steps: tuple[str | int, ...]) -> bool:
        return len(steps) % 2 == 1


@given(expressions)
@settings(max_examples=tried(250), deadline=None, suppress_health_check=list(HealthCheck))
def test_a_well_formed_expression_compiles_or_says_why_not_and_runs(node: t.Expr) -> None:
    function = Function(Names(SYMBOLS))
    with contextlib.suppress(CompileError):
        atom, kind = function.value(node)
        function.line(f"return {atom}")
        namespace = dict(NAMESPACE)
        exec(function.finish("F", kind=kind.kind), namespace)
        found = namespace["F"](Facts(VALUES))  # type: ignore[operator]
        if kind.kind == "number":
            assert type(found) in (int, float, Interval)
        elif kind.kind == "bool":
            assert type(found) in (bool, Open)


@given(st.lists(statements, max_size=4))
@settings(max_examples=tried(60), deadline=None, suppress_health_check=list(HealthCheck))
def test_random_files_load_or_are_refused_with_places(nodes: list[t.Statement]) -> None:
    text = show_file(nodes)
    read = parse(text, "t.rules")
    complaints = []
    try:
        packed(*Builder(SYMBOLS.copy()).build([Source("t.rules", text, read)]))
    except RulesError as error:
        complaints = error.complaints
    lines = len(line_starts(text))
    assert all(
        c.path == "t.rules" and 1 <= c.line <= lines and c.column >= 1 and c.message for c in complaints
    )
