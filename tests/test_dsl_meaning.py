# ruff: noqa: E501
"""What expressions mean: one table row per construct of the language (DESIGN §2)."""

from __future__ import annotations

import datetime as dt
import math

import pytest

from cfglint.document.reading import read, read_text
from cfglint.document.scalars import OMEGACONF
from cfglint.document.view import View
from cfglint.engine.run import Run
from cfglint.errors import RulesError
from cfglint.facts import Values
from cfglint.lang.check import Builder
from cfglint.lang.compile import packed
from cfglint.lang.pack import Pack
from cfglint.lang.pack import load as load_pack
from cfglint.lang.parse import read_sources
from cfglint.lang.symbols import Symbols
from cfglint.lang.values import INF, Interval, Open, Unknown, needs_of

GIB = 2**30

VOCABULARY = """
fact gpu.vram: memory
fact sold: memory in GB
fact mem_fraction: fraction
fact overhead: memory
fact colocated: bool
fact other: bool
fact n: count 1 ..
fact m: count 0 ..
fact k: int
fact x: number
fact y: number
fact share: number in %
fact timeout: duration
fact pause: duration in min
fact dtype: one of bf16 or bfloat16, fp16 or float16, auto or null, 4
fact target_dtype: one of bf16 or bfloat16, fp16 or float16, fp32
fact name: text
fact items: list
fact release: version
fact raw: any
let doubled = 2 * x
let twice(a) = a + a
let limit = if colocated then 0.5 else 0.9
let actor.size = 7 GiB
role actor { size: actor.size, layers: n }
role critic when colocated { size: 3 GiB, layers: 2 }
"""


def load(text: str) -> Pack:
    symbols = Symbols()
    sources = read_sources({"t.rules": VOCABULARY + text}, [])
    pack = Pack()
    pack.add(packed(*Builder(symbols).build(sources)), lambda: (symbols, sources))
    return pack


def value(text: str, given: dict[str, object] | None = None, document: str | None = None) -> object:
    """The value of an expression, over given facts and a document."""
    pack = load(f"let result = {text}\n")
    view = View(read(document.encode(), "t.yaml").documents[0], OMEGACONF) if document is not None else None
    return Values(pack, view, given=given)["result"]


def shape(found: object) -> object:
    """An outcome in a form that compares: intervals and open truths with what they need."""
    if isinstance(found, Interval):
        return ("interval", found.lo, found.hi, tuple(sorted(found.needs)))
    if isinstance(found, (Open, Unknown)):
        return (type(found).__name__.lower(), *sorted(found.needs))
    return found


def between(low: float, high: float, *needs: str) -> tuple[object, ...]:
    return ("interval", low, high, needs)


CASES = {
    "units": ("gpu.vram == 1 GiB", {"gpu.vram": GIB}, True),
    "bare number in the fact's unit": ("gpu.vram < 48", {"gpu.vram": 44 * GIB}, True),
    "bare number on the left": ("48 > gpu.vram", {"gpu.vram": 44 * GIB}, True),
    "bare number beside a fact in GB": ("sold == 48", {"sold": 48e9}, True),
    "bare number beside a duration": ("timeout >= 300", {"timeout": 299}, False),
    "bare number in minutes": ("pause == 2", {"pause": 120}, True),
    "bare number in a sum": ("gpu.vram + 1 <= 3", {"gpu.vram": 2 * GIB}, True),
    "a fact's unit goes before a written one": ("sold - 500 MB <= 47.5", {"sold": 48e9}, True),
    "bare number in min": ("min(gpu.vram, 4)", {"gpu.vram": 8 * GIB}, 4 * GIB),
    "bare numbers in a range": ("gpu.vram in 40..48", {"gpu.vram": 44 * GIB}, True),
    "unit of a range's end": ("timeout in 1..2 h", {"timeout": 5400}, True),
    "bare numbers in a list": ("gpu.vram in [24, 48]", {"gpu.vram": 48 * GIB}, True),
    "bare arm of if": ("(if colocated then 2 else gpu.vram)", {"colocated": True}, 2 * GIB),
    "bare arm of match": ("match dtype { bf16: 2 GiB, else: 4 } == 4 GiB", {"dtype": "fp16"}, True),
    "percent": ("mem_fraction <= 80 %", {"mem_fraction": 0.8}, True),
    "percent beside a number": ("1 - 30 %", {}, 0.7),
    "percent beside a plain number": ("0.3 == 30 %", {}, True),
    "percent range": ("mem_fraction in 20..30 %", {"mem_fraction": 0.25}, True),
    "fact in percent": ("share <= 30", {"share": 0.3}, True),
    "tokens have no dimension": ("n * 2 == 8192 tokens", {"n": 4096}, True),
    "underscores and exponents": ("1_000 == 1e3", {}, True),
    "modulo": ("n mod 4 == 1", {"n": 9}, True),
    "modulo of a memory": ("gpu.vram mod 2 == 1 GiB", {"gpu.vram": 5 * GIB}, True),
    "unary minus": ("-x + 3", {"x": 5}, -2),
    "minus binds tighter than times": ("-2 * 3", {}, -6),
    "not binds looser than a comparison": ("not x == 3", {"x": 3}, False),
    "division": ("x / 4", {"x": 1}, 0.25),
    "division by zero": ("x / m", {"x": 1, "m": 0}, between(-INF, INF, "a divisor that is not zero")),
    "false and a division by zero": ("x / m > 1 and colocated", {"x": 1, "m": 0, "colocated": False}, False),
    "modulo by zero": ("n mod m == 0", {"n": 1, "m": 0}, ("open", "a divisor that is not zero")),
    "ends of a missing number": ("lowest(n) == highest(n)", {}, ("open", "n")),
    "ends of an estimate": ("lowest(x) == highest(x)", {"x": Interval(4, 6)}, False),
    "root of a negative number": ("sqrt(x) > 1", {"x": -1}, ("open", "a number that its function is defined for")),
    "logarithm of zero": ("log2(x)", {"x": 0}, between(-INF, INF, "a number that its function is defined for")),
    "chained comparison": ("1 <= n < 8", {"n": 7}, True),
    "chained comparison fails": ("1 <= n < 8", {"n": 8}, False),
    "chain of equals": ("n == k == 3", {"n": 3, "k": 3}, True),
    "in a list": ("n in [1, 2, 4]", {"n": 4}, True),
    "not in a list": ("n not in [1, 2, 4]", {"n": 3}, True),
    "empty list": ("n in []", {"n": 3}, False),
    "in a list of the file": ("n in $.sizes", {"n": 4}, True),
    "enumeration": ("dtype == bf16", {"dtype": "bf16"}, True),
    "enumeration on the right": ("bf16 == dtype", {"dtype": "bf16"}, True),
    "enumeration by another spelling": ("dtype == bfloat16", {"dtype": "bf16"}, True),
    "enumeration by a text": ('dtype != "BFLOAT16"', {"dtype": "bf16"}, False),
    "enumeration by null": ("dtype == null", {"dtype": "auto"}, True),
    "enumeration by a number": ("dtype == 4", {"dtype": "4"}, True),
    "enumeration in a list": ("dtype in [bf16, float16]", {"dtype": "fp16"}, True),
    "enumeration against a text fact": ("dtype == name", {"dtype": "bf16", "name": "BFloat16"}, True),
    "text fact against an enumeration": ("name == dtype", {"dtype": "bf16", "name": "fp16"}, False),
    "two enumerations": ("target_dtype == dtype", {"dtype": "bf16", "target_dtype": "bf16"}, True),
    "enumeration fact against a key": ("dtype == $.precision", {"dtype": "bf16"}, True),
    "arms of an enumeration": ("dtype == (if colocated then bf16 else fp16)", {"dtype": "fp16", "colocated": False}, True),
    "text": ('name == "sglang"', {"name": "sglang"}, True),
    "text in a list": ('name in ["sglang", "vllm"]', {"name": "vllm"}, True),
    "like": ('name like "*Qwen*-?B"', {"name": "Qwen/Qwen2.5-7B"}, True),
    "not like": ('name not like "*Llama*"', {"name": "Qwen"}, True),
    "like of nothing": ('name like "*"', {}, ("open", "name")),
    "capture": ('capture(name, "*d{n:int}*", 1)', {"name": "sglang.d4p1t2+d12"}, 4),
    "capture's default": ('capture(name, "*x{n:int}*", 7)', {"name": "sglang"}, 7),
    "capture without a default": ('capture(name, "x{n:int}")', {"name": "y"}, between(-INF, INF, 'a string like "x{n:int}"')),
    "capture of nothing": ('capture(name, "x{n:int}", 1)', {}, between(-INF, INF, "name")),
    "before and after": ('before(name, "+") == "a" and after(name, "+") == "b"', {"name": "a+b"}, True),
    "all": ("all s in $.servers: s.port > 0", {}, True),
    "any": ("any s in $.servers: s.port == 81", {}, True),
    "count": ("count s in $.servers: s.port > 80", {}, 1),
    "sum": ("sum s in $.servers: s.port", {}, 161),
    "min": ("min s in $.servers: s.port", {}, 80),
    "max": ("max s in $.servers: s.port", {}, 81),
    "over items": ("sum p in $.servers[*].port: p", {}, 161),
    "max of a list": ("max($.sizes)", {}, 4),
    "length": ("length($.servers)", {}, 2),
    "length of a fact": ("length(items)", {"items": [1, 2, 3]}, 3),
    "adapters by name": ('adapted(items, ["mlp"], ["up"], 4)', {"items": ["up"]}, 4),
    "by name and parent": ('adapted(items, ["mlp"], ["up"], 4)', {"items": ["attn.up"]}, 0),
    "by names in one text": ('adapted(items, ["mlp"], ["up"], 4)', {"items": ["q, up"]}, 4),
    "by a layer's number": ('adapted(items, ["mlp"], ["up"], 4)', {"items": ["layers.3.mlp.up"]}, 1),
    "by a number beyond": ('adapted(items, ["mlp"], ["up"], 4)', {"items": ["layers.4.mlp.up"]}, 0),
    "by a pattern": ('adapted(items, ["mlp"], ["up"], 4)', {"items": [r".*layers\.[01]\.mlp\.(up|down)"]}, 2),
    "a pattern is of the whole path": ('adapted(items, ["mlp"], ["up"], 4)', {"items": ["mlp\\.up"]}, 0),
    "a pattern that would take too long": (
        'adapted(items, ["mlp"], ["up"], 4)', {"items": ["(.*)*up"]}, ("interval", 0, 4, ("a model of the pattern (.*)*up",))
    ),
    "adapters by nothing": ('adapted(items, ["mlp"], ["up"], 4)', {"items": []}, 0),
    "divisors": ("divisors(28)", {}, [1, 2, 4, 7, 14, 28]),
    "divisors of a square": ("divisors(16) == [1, 2, 4, 8, 16]", {}, True),
    "divisors of several": ("divisors(40, 8)", {}, [1, 2, 4, 8]),
    "divisors of a fact": ("n in divisors(28)", {"n": 7}, True),
    "a number among divisors": ("5 in divisors(28)", {}, False),
    "divisors of nothing": ("n in divisors(n)", {}, ("open", "n")),
    "divisors of zero": ("1 in divisors(0)", {}, ("open", "a number that its function is defined for")),
    "divisors of a fraction": ("length(divisors(1.5)) >= 0", {}, True),
    "all over a missing list": ("all s in $.nowhere: s > 1", {}, ("open", "$.nowhere")),
    "a field that an item lacks": ("all s in $.servers: s.tls", {}, ("open", "tls")),
    "a field of an item that is null": ("any s in $.servers: s.host == null", {}, True),
    "sum over roles": ("sum r in roles: r.size", {"colocated": True}, 10 * GIB),
    "sum over roles, one absent": ("sum r in roles: r.size", {"colocated": False}, 7 * GIB),
    "sum over roles, one perhaps": ("sum r in roles: r.size", {}, between(7 * GIB, 10 * GIB, "colocated")),
    "max over roles": ("max r in roles: r.size", {}, 7 * GIB),
    "min over roles": ("min r in roles: r.size", {}, between(3 * GIB, 7 * GIB, "colocated")),
    "count roles": ("count r in roles: r.layers > 1", {"n": 3, "colocated": True}, 2),
    "all roles": ("all r in roles: r.size < 8", {}, True),
    "any role": ("any r in roles: r.size > 8", {}, False),
    "let": ("doubled + 1", {"x": 4}, 9),
    "function": ("twice(3 GiB)", {}, 6 * GIB),
    "function of a bare number": ("gpu.vram + twice(1) == 3", {"gpu.vram": GIB}, True),
    "if": ("limit", {"colocated": True}, 0.5),
    "if with an unknown condition": ("limit", {}, between(0.5, 0.9, "colocated")),
    "if with two texts": ('if colocated then "a" else "b"', {}, ("unknown", "colocated")),
    "if with equal arms": ("if colocated then 3 else 3", {}, 3),
    "match": ("match dtype { bf16 or fp16: 2, auto: 3, else: 4 }", {"dtype": "fp16"}, 2),
    "match of nothing": ("match dtype { bf16 or fp16: 2, auto: 3, else: 4 }", {}, between(2, 4, "dtype")),
    "match that covers all": ("match target_dtype { bf16 or fp16: 2, fp32: 4 }", {}, between(2, 4, "target_dtype")),
    "match without the case": ("match target_dtype { bf16: 2 }", {"target_dtype": "fp32"}, between(-INF, INF, "a model of the target dtype fp32")),
    "match of a key": ("match $.precision { bfloat16: 1, else: 2 }", {}, 1),
    "match of a number": ("match n { 1: 10, 2: 20, else: 0 }", {"n": 2}, 20),
    "match of a truth": ("match colocated { true: 1, false: 2 }", {}, between(1, 2, "colocated")),
    "match of a text": ('match name { "a" or b: 1, else: 2 }', {"name": "b"}, 1),
    "min of intervals": ("min(x, 5)", {"x": Interval(3, 9)}, between(3, 5)),
    "max collapses to a point": ("max(x, 9)", {"x": Interval(3, 9, frozenset({"x"}))}, 9),
    "ceil floor round abs": ("ceil(x) + floor(x) + round(x) + abs(-x)", {"x": 2.25}, 9.25),
    "sqrt log2": ("sqrt(16) + log2(8)", {}, 7),
    "missing": ("n + 1", {}, between(2, INF, "n")),
    "missing fraction": ("1 - mem_fraction", {}, between(0, 1, "mem_fraction")),
    "missing times zero is a point": ("0 * n", {}, 0),
    "decided though missing": ("n >= 1", {}, True),
    "and": ("colocated and other", {"other": False}, False),
    "and, open": ("colocated and other", {"other": True}, ("open", "colocated")),
    "or": ("colocated or other", {"other": True}, True),
    "both open": ("colocated or other", {}, ("open", "colocated", "other")),
    "possible": ("x <= 5", {"x": Interval(4, 6)}, ("open",)),
    "has": ("has($.precision) and not has($.nowhere)", {}, True),
    "a bare path never tests presence": ("$.nowhere == 3", {}, ("open", "$.nowhere")),
    "key that is null": ("$.empty == null", {}, True),
    "null is no text": ('$.empty == "bf16"', {}, False),
    "null is another than each text": ('$.empty != "bf16"', {}, True),
    "null is in no list of texts": ('$.empty in ["bf16", "fp16"]', {}, False),
    "null is like no text": ('$.empty like "*"', {}, False),
    "null is no member": ("$.empty == target_dtype", {"target_dtype": "fp32"}, False),
    "a member that null names": ("$.empty == dtype", {"dtype": "auto"}, True),
    "key as a number": ("$.port + 1", {}, 81),
    "key in quotes as a number": ("$.quoted + 1", {}, 9),
    "key in the other's unit": ("$.port <= gpu.vram", {"gpu.vram": 81 * GIB}, True),
    "keys against each other": ("$.port < $.quoted", {}, False),
    "key as a truth": ("$.on and colocated", {"colocated": True}, True),
    "key as a version": ("$.version >= v0.4.1", {}, True),
    "version": ("release < v1.2", {"release": (1, 1, 9)}, True),
    "versions without zeros at the end": ("release == v1.2.0", {"release": (1, 2)}, True),
    "version of nothing": ("release < v1", {}, ("open", "release")),
    "missing inside a list": ("any p in $.holes: p == 5", {}, ("open", "holes[1]")),
    "list against a list": ("$.sizes == [1, 2, 4]", {}, True),
    "known": ("known(n)", {}, False),
}  # fmt: skip

DOCUMENT = """
precision: bfloat16
servers:
  - {port: 80, host: null}
  - {port: 81, host: a}
sizes: [1, 2, 4]
empty: null
port: 80
quoted: "8"
on: true
version: "0.4.2"
dtype: [1]
holes: [1, "???"]
"""


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.replace(" ", "-"))
def test_expression(case: str) -> None:
    text, given, expected = CASES[case]
    found = shape(value(text, given, DOCUMENT))
    if isinstance(expected, float):
        assert found == pytest.approx(expected)
    elif case == "missing inside a list":
        assert isinstance(found, tuple)
        assert found[0] == "open"
    else:
        assert found == expected
        assert type(found) is type(expected) or isinstance(expected, (int, float))


CORRELATED = {
    "x - x <= 0": True,
    "x + n <= n + x": True,
    "n <= n": True,
    "2 * n >= n": True,
    "n * mem_fraction <= n": True,
    "gpu.vram * mem_fraction <= gpu.vram": True,
    "gpu.vram * mem_fraction + overhead <= gpu.vram + overhead": True,
    "n * n >= n": True,
    "x * x >= 0": True,
    "n / n >= 0": True,
    "n + n + n == 3 * n": True,
    "(n + x) * 2 - 2 * x >= 2": True,
    "n - 1 < n": True,
    "n > n + 1": False,
    "n != n": False,
    "doubled == x + x": True,
    "twice(n) == 2 * n": True,
    "twice(max(n, 3)) == 2 * max(n, 3)": True,
    "max(x, 3) - max(x, 3) == 0": True,
    "max(x, 3) - max(x, 4) == 0": ("open", "x"),
    "n * 0.1 + n * 0.2 == n * 0.3": True,
    "x / 3 - x / 3 <= 0": True,
    "all s in $.servers: s.weight + n <= n + s.weight": True,
    "all s in $.servers: twice(s.weight) == 2 * s.weight": True,
    "x + 1 <= y": ("open", "x", "y"),
    "n + x <= n + y": ("open", "x", "y"),
}


@pytest.mark.parametrize("text", CORRELATED)
def test_what_is_used_twice_does_not_widen(text: str) -> None:
    assert shape(value(text, {}, DOCUMENT)) == CORRELATED[text]


def test_an_estimate_used_twice_decides_the_card_rule() -> None:
    text = "mem_fraction * gpu.vram + overhead <= gpu.vram"
    vram = Interval(44 * GIB, 48 * GIB)
    assert value(text, {"gpu.vram": vram, "mem_fraction": 0.9, "overhead": 4 * GIB}) is True
    assert value(text, {"gpu.vram": vram, "mem_fraction": 0.9, "overhead": 5 * GIB}) is False
    assert shape(value(text, {"gpu.vram": vram, "mem_fraction": 0.9, "overhead": 4.6 * GIB})) == ("open",)


def test_needs_that_cancel_out_are_not_named() -> None:
    assert shape(value("x + n <= y + n", {"x": Interval(0, 2), "y": 1})) == ("open",)


BOUND = """
fact part: number
fact whole: number
let part = 2 * x
let whole = part + y
framework f {
  detect has($.f)
  part <- $.part
}
rule MEM900 sums error { whole - y == 2 * x }
rule MEM901 parts error { part <= 10 }
"""


def test_a_let_is_looked_into_only_where_its_value_is_derived() -> None:
    pack = load(BOUND)
    (sums, _) = pack.rules

    def verdict(document: str, **given: object) -> object:
        view = View(read(document.encode(), "t.yaml").documents[0], OMEGACONF)
        return shape(sums.test(Values(pack, view, "f", given=given)))

    assert verdict("f: 1\n") is True  # nothing is known, and yet it holds
    assert verdict("f: 1\npart: 3\n") == ("open", "x")  # the key replaces the derivation
    assert verdict("f: 1\npart: 3\n", x=1) is False
    assert verdict("f: 1\n", part=Interval(0, 1)) == ("open", "x")
    assert verdict("f: 1\n", whole=Interval(0, 1), y=0) == ("open", "x")


ODD = [10**400, -(10**400), INF, -INF, math.nan, "x" * 100_000, None, dt.date(2026, 1, 1), [1, [2]], {"a": 1}, True, "",
       "nan", "1e999", b"x", (), 2**63, -0.0, 1e308, "9" * 99]  # fmt: skip
EVERYTHING = [
    "raw + 1 <= raw * 2", "raw / raw > 1", "raw mod 3 == 0", "raw == 3", "raw < raw", "raw and colocated", "not raw",
    'raw == "a"', "raw == null", "raw == dtype", "raw == dtype or dtype == raw", 'raw like "*a*"', "any v in raw: v.a == 1",
    "all v in raw: v > 1", "sum v in raw: v.b", "max v in raw: v", "max(raw)", "min(raw, 3)", "length(raw)", "ceil(raw) + sqrt(raw)",
    "log2(raw)", "divisors(raw)", "abs(raw)", "round(raw)", "floor(raw * 1e300 * raw)", 'capture(raw, "*{n:int}*", 1)', 'before(raw, "x")',
    "match raw { a: 1, 2: 3, null: 4, true: 5, else: 6 }", "if raw then 1 else 2", "raw in [1, 2]", "raw in 1..2", "3 in raw",
    "raw in raw", "raw == [1, 2]", "raw == v1.2", "release < raw", "raw <= gpu.vram", "raw + gpu.vram <= 3", "has($.a) == raw",
    "-raw < 3", "raw * raw * raw * raw * raw * raw * raw / raw / raw == 1.5",
]  # fmt: skip


@pytest.mark.parametrize("text", EVERYTHING)
def test_odd_values_of_a_file_are_unknown_and_never_an_error(text: str) -> None:
    pack = load(f"let result = {text}\n")
    for odd in ODD:
        for release in (odd, (1, 2)):
            found = Values(pack, given={"raw": odd, "release": release, "gpu.vram": 3.5})["result"]
            assert isinstance(found, (bool, int, float, str, Interval, Open, Unknown)), (text, odd)


def test_numbers_that_grow_too_large_are_unknown() -> None:
    found = value(" * ".join(["n"] * 30) + " / 1.5 + 0.5", {"n": 2**62})
    assert needs_of(found) == {"numbers of a sane size"}


LAYERS = """
framework areal {
  mem_fraction <- $.mine default 0.1
  let gpu.count = 3
}
let num_gpus = 5
"""


def test_a_users_file_goes_before_the_shipped_ones() -> None:
    from cfglint.lang.pack import load as load_pack

    pack = load_pack({"mine.rules": LAYERS})
    view = View(read(b"mine: 0.2\nsglang: {mem_fraction_static: 0.7}\n", "t.yaml").documents[0], OMEGACONF)
    values = Values(pack, view, "areal")
    assert values["mem_fraction"] == 0.2
    assert values["gpu.count"] == 3
    without = View(read(b"a: 1\n", "t.yaml").documents[0], OMEGACONF)
    assert Values(pack, without, None)["num_gpus"] == 5


def test_what_takes_a_lets_place_has_its_type() -> None:
    from cfglint.errors import RulesError
    from cfglint.lang.pack import load as load_pack

    shipped = load_pack().symbols()
    name = next(n for n, k in shipped.let_types.items() if k.kind == "number" and n not in shipped.types)
    with pytest.raises(RulesError, match="wherever it is used"):
        load_pack({"mine.rules": f'let {name} = "text"'})


def test_a_let_of_a_framework_is_its_own() -> None:
    pack = load("framework f {\n  let half = n / 2\n  k <- half default 1\n}\n")
    assert Values(pack, None, "f", given={"n": 8})["k"] == 4
    from cfglint.errors import RulesError

    with pytest.raises(RulesError, match="unknown name 'half'"):
        load("framework f {\n  let half = n / 2\n}\nhalf > 1\n")


def test_a_long_derivation_is_evaluated() -> None:
    chain = "let a0 = n + 1\n" + "".join(
        f"let a{i} = sum v in [1, 2]: a{i - 1} - v + v\n" for i in range(1, 58)
    )
    assert Values(load(chain), given={"n": 1})["a57"] == 2**58
    missing = Values(load(chain))["a57"]
    assert isinstance(missing, Interval)
    assert missing.needs == {"n"}


def test_a_framework_takes_what_the_one_that_it_extends_says():
    block = "framework mine {\n  extends facts\n  detect has($.mine)\n  micro_batch_size <- $.mine.batch\n  let optimizer = sgd\n}\n"
    run = Run(load_pack({"mine.rules": block}))
    (subject,) = run.subjects(read_text("mine: {batch: 4}\nseq_len: 7\n", "x.yaml"), judge_broken=True)
    values = run.judged(subject)[0].values
    assert (values["micro_batch_size"], values["optimizer"]) == (4, "sgd")  # its own
    assert (values["num_gpus"], values["dtype"], values["gradient_checkpointing"]) == (1, "bf16", "none")
    assert values["task"] == "sft"
    assert needs_of(values["seq_len"])  # the names as keys are not taken over
    # What is extended stays as it was.
    (facts,) = run.subjects(read_text("cfglint: facts\nnum_gpus: 2\n", "y.yaml"), judge_broken=True)
    assert run.judged(facts)[0].values["optimizer"] == "adamw"
    with pytest.raises(RulesError, match="unknown framework 'fact'; did you mean 'facts'"):
        load_pack({"x.rules": block.replace("extends facts", "extends fact")})
