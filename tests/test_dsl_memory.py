"""What a memory model asks of the language: arms of memory while the subject is open, and many lets."""

from __future__ import annotations

import pytest

from cfglint.errors import RulesError
from cfglint.facts import Values
from cfglint.lang.pack import load
from cfglint.lang.values import Interval, Open, Unknown

GIB = 2**30
RULES = """
fact t.kind: one of none or false, half, full or true "how much is kept"
fact t.gate: bool "a switch"
fact t.size: memory "a size"
fact t.n: count 1 .. "a number"
let t.bytes = match t.kind { none: 0 B, half: 2 B, else: 4 B }
let t.held = match t.kind { none: t.size, half: t.size / 2, full: 1 }
let t.nested = match t.kind { none: t.held, else: (if t.gate then t.size * 2 else 10 GiB) }
let t.when = if t.gate then t.size else 1 GiB
let t.same = match t.kind { none: 2 GiB, half: 2 GiB, full: 2 GiB }
let t.several = match t.kind { none or half: 1 GiB, full: 3 GiB }
let t.slack(x) = x + min(512 MiB, x * 5 %)
let t.twice(x, y) = t.slack(x) + t.slack(y)
let t.reserved = t.twice(t.size, t.bytes * t.n)
let t.unit = match t.kind { none: fp, else: 3 }
fact fp: count 0 .. "a count"
"""


@pytest.fixture(scope="module")
def pack():
    return load({"t.rules": RULES})


def _of(pack, name: str, **given: object) -> object:
    return Values(pack, given={f"t.{key}": value for key, value in given.items()})[name]


def _range(value: object) -> tuple[float, float, frozenset[str]]:
    assert isinstance(value, Interval)
    return value.lo, value.hi, value.needs


KIND = frozenset({"t.kind"})


def test_arms_of_memory_under_an_unknown_member_give_their_hull(pack) -> None:
    assert _range(_of(pack, "t.bytes")) == (0, 4, KIND)
    assert _range(_of(pack, "t.held", size=4 * GIB)) == (GIB, 4 * GIB, KIND)
    assert _range(_of(pack, "t.several")) == (GIB, 3 * GIB, KIND)
    assert _of(pack, "t.same") == 2 * GIB  # whichever it is
    assert _range(_of(pack, "t.bytes", kind=Unknown(frozenset({"a.config"})))) == (0, 4, {"a.config"})


def test_arms_of_memory_under_an_open_truth_give_their_hull(pack) -> None:
    assert _range(_of(pack, "t.when", size=4 * GIB)) == (GIB, 4 * GIB, {"t.gate"})
    assert _range(_of(pack, "t.when", size=4 * GIB, gate=Open())) == (GIB, 4 * GIB, frozenset())
    low, high, needs = _range(_of(pack, "t.nested", size=4 * GIB))
    assert (low, high, needs) == (GIB, 10 * GIB, {"t.kind", "t.gate"})


@pytest.mark.parametrize(("kind", "held"), [("none", 4 * GIB), ("half", 2 * GIB), ("full", GIB)])
def test_a_known_member_picks_its_arm(pack, kind: str, held: float) -> None:
    assert _of(pack, "t.held", kind=kind, size=4 * GIB) == held


def test_an_estimate_in_an_arm_stays_one(pack) -> None:
    assert _range(_of(pack, "t.held", kind="half", size=Interval(2 * GIB, 4 * GIB))) == (
        GIB,
        2 * GIB,
        frozenset(),
    )


def test_functions_take_what_their_calls_give(pack) -> None:
    assert _of(pack, "t.reserved", kind="full", size=4 * GIB, n=GIB) == 2 * (4 * GIB + 204.8 * 2**20)


def test_a_function_that_fits_no_call_is_told() -> None:
    text = "let slack(x) = x + min(512 MiB, x * 5 %)\nfact n: count\nlet bad = slack(n)\n"
    with pytest.raises(RulesError, match=r"in slack:"):
        load({"t.rules": text})
    with pytest.raises(RulesError, match=r"1:32: x \* 5 % is a plain number|1:24: 512 MiB is a memory"):
        load({"t.rules": text.partition("\n")[0]})


def _chain(length: int) -> str:
    lets = [
        f"let c{i} = if c{i - 1} > 3 GiB then c{i - 1} + 1 GiB else c{i - 1} * 2" for i in range(1, length)
    ]
    return "\n".join(["let c0 = 1 GiB", *lets])


def test_lets_build_on_each_other_up_to_the_limit() -> None:
    assert Values(load({"t.rules": _chain(60)}))["c59"] == (4 + 57) * GIB
    with pytest.raises(RulesError, match="more than 60 names depend on each other"):
        load({"t.rules": _chain(61)})


def test_hundreds_of_lets_compile_and_run() -> None:
    lines = ["fact f: count 1 ..", "let use(x, n) = x / max(1, n) * 2 B", "let c0 = use(f, 3)"]
    for i in range(1, 250):
        below = f"c{i - 1}" if i % 40 else "c0"
        lines.append(f"let c{i} = max({below}, use(f * {i}, {i % 7 + 1})) + {i % 3} * 1 KiB")
    lines.append("let total = (" + " + ".join(f"c{i}" for i in range(250)) + ")")
    pack = load({"t.rules": "\n".join(lines)})
    known = Values(pack, given={"f": 5})["total"]
    assert isinstance(known, (int, float))
    low, high, needs = _range(Values(pack, given={"f": Interval(5, 6)})["total"])
    assert low == pytest.approx(known)
    assert high > low
    assert not needs
