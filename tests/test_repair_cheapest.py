"""What `fix` writes mends all that can be mended, or is refused; and no repair is cheaper than ours.

Random rule sets over a few knobs with small domains, on random documents. Every combination of values is
tried: that is the whole truth, which the search must reach. It runs once as it is (small problems are
enumerated) and once with the enumeration switched off, so that the search over sets of tracks is held to the
same truth.
"""

from __future__ import annotations

from itertools import product
from math import log2

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from cfglint.document.reading import read_text
from cfglint.engine.judge import judge, values_for
from cfglint.engine.run import Run
from cfglint.lang.pack import load
from cfglint.repair import search
from cfglint.repair.apply import repair
from cfglint.repair.tracks import RISKS, UNSAFE
from cfglint.repair.trials import switches_of
from tiers import LONG

KNOBS = {
    "a": ("knob toy.a 0 .. 6 step 1  down costs {down} per step  up costs {up} per step", range(7)),
    "b": ("knob toy.b 1 .. 5 step 2  down costs {down} per step  up costs {up} per step", range(1, 6, 2)),
    "c": ("knob toy.c halving to 1  costs {down} per step", None),
    "d": ("knob toy.d [3, 0, 8]  costs {down}{unsafe}", (3, 0, 8)),
    "f": ("knob toy.f [true]  costs {up}{unsafe}", (True,)),
}
START = {"a": st.integers(0, 6), "b": st.integers(1, 5), "c": st.integers(1, 16), "d": st.integers(0, 9)}
TERMS = ["toy.a", "toy.b", "toy.c", "toy.d", "2 * toy.a", "toy.a * toy.b", "toy.c + toy.d", "toy.load"]
COSTS = st.integers(1, 6)

FACTS = """
fact toy.a: int "a"
fact toy.b: int "b"
fact toy.c: int "c"
fact toy.d: int "d"
fact toy.f: bool "f"
let toy.load = if toy.f then toy.a + toy.c else toy.a + 2 * toy.c
framework toy {
  detect has($.toy)
  toy.a <- $.toy.a
  toy.b <- $.toy.b
  toy.c <- $.toy.c
  toy.d <- $.toy.d
  toy.f <- $.toy.f default false
}
"""


@st.composite
def requirements(draw):
    left = draw(st.sampled_from(TERMS))
    if draw(st.integers(0, 5)) == 0:
        return f"{left} mod {draw(st.integers(2, 4))} == 0"
    right = draw(st.one_of(st.integers(0, 14).map(str), st.sampled_from(TERMS)))
    text = f"{left} {draw(st.sampled_from(['<=', '>=', '<=', '<', '==']))} {right}"
    if draw(st.integers(0, 4)) == 0:
        text = f"toy.f or {text}"
    return f"toy.a > {draw(st.integers(0, 3))} -> {text}" if draw(st.integers(0, 4)) == 0 else text


@st.composite
def problems(draw):
    lines = [FACTS]
    for knob, _ in KNOBS.values():
        unsafe = draw(st.sampled_from(["", " unsafe"]))
        lines.append(knob.format(down=draw(COSTS), up=draw(COSTS), unsafe=unsafe))
    rules = draw(st.lists(requirements(), min_size=1, max_size=4, unique=True))
    lines += [f"rule PRF{900 + i} r{i}-r error for toy {{ {text} }}" for i, text in enumerate(rules)]
    start = {name: draw(numbers) for name, numbers in START.items()}
    return "\n".join(lines), start


def _chain(value: int) -> list[int]:
    parts = {value // i for i in range(2, value + 1) if value % i == 0}
    return sorted(parts | {2**i for i in range(value.bit_length()) if 2**i < value}, reverse=True)


def _price(pack, name: str, old: object, new: object) -> tuple[float, float]:
    """Return what a move costs: what may change results counts first, so it stands first."""
    knob = pack.symbols().knobs[f"toy.{name}"]
    direction = "down" if new < old else "up"
    move = next(m for m in knob.moves if m.direction in (direction, "any"))
    steps = 1.0
    if move.per_step and knob.domain == "step":
        steps = abs(new - old) / knob.step.value
    elif move.per_step:
        steps = log2(old / new)
    cost = move.cost * steps
    return cost * RISKS[move.risk] + UNSAFE if move.unsafe else cost, cost


class _Truth:
    """What becomes of the rules with any values of the knobs, judged anew each time."""

    def __init__(self, run: Run, start: dict[str, object]) -> None:
        self.run = run
        (self.subject,) = run.subjects(read_text(_text(start), "c.yaml"), judge_broken=True)

    def values(self, new: dict[str, object]):
        given = {f"toy.{name}": value for name, value in new.items()}
        return values_for(self.subject, given)

    def broken(self, new: dict[str, object]) -> set[str]:
        values = self.values(new)
        return {v.rule.code for v in judge(self.run.rules(self.subject, values), values)}

    def reached(self, codes: set[str], new: dict[str, object], moved: set[str]) -> bool:
        """Whether the requirements of rules hold, or what moved is what their conditions ask for."""
        values, symbols = self.values(new), self.run.finder.symbols
        tests = {rule.code: rule.test for rule in self.run.rules(self.subject, values)}
        for code in codes:
            rule = symbols.rules[code]
            off = tests[code](values) is None and moved & set(switches_of(rule.condition))
            if not off and self.run.finder.evaluator(rule.requirement, values)[0] is not True:
                return False
        return True


def _text(start: dict[str, object]) -> str:
    return "toy:\n" + "".join(f"  {name}: {str(value).lower()}\n" for name, value in start.items())


def _total(prices: list[tuple[float, float]]) -> tuple[float, float]:
    return round(sum(unsafe for unsafe, _ in prices), 6), round(sum(cost for _, cost in prices), 6)


def _cheapest(pack, run: Run, start: dict[str, object]) -> tuple[float, float] | None:
    """Try everything: the price of the cheapest assignment that mends all broken rules and breaks none."""
    truth = _Truth(run, start)
    here = {"f": False, **start}
    before = truth.broken(here)
    domains = {"c": _chain(start["c"]), **{n: list(values) for n, (_, values) in KNOBS.items() if values}}
    ways = []
    for values in product(*([here[name], *[v for v in domains[name] if v != here[name]]] for name in KNOBS)):
        new = dict(zip(KNOBS, values, strict=True))
        prices = [_price(pack, name, here[name], new[name]) for name in KNOBS if new[name] != here[name]]
        ways.append((*_total(prices), new))
    for unsafe, cost, new in sorted(ways, key=lambda way: way[:2]):
        moved = {f"toy.{name}" for name in KNOBS if new[name] != here[name]}
        if not truth.broken(new) and truth.reached(before, new, moved):
            return unsafe, cost
    return None


def _read(start: dict[str, object], text: str) -> dict[str, object]:
    (document,) = read_text(text, "c.yaml").documents
    entries = document.root.entries["toy"].value.entries
    new = {name: entry.value.text for name, entry in entries.items()}
    return {"f": new.pop("f", "false") == "true", **{name: int(value) for name, value in new.items()}}


def _paid(pack, start: dict[str, object], after: dict[str, object]) -> tuple[float, float]:
    here = {"f": False, **start}
    prices = [_price(pack, name, here[name], after[name]) for name in here if after[name] != here[name]]
    return _total(prices)


def _only(requirement: str, **start: int):
    knobs = [knob.format(down=1, up=1, unsafe="") for knob, _ in KNOBS.values()]
    rule = f"rule PRF900 r0-r error for toy {{ {requirement} }}"
    return "\n".join([FACTS, *knobs, rule]), start


@pytest.mark.parametrize(
    "small", [search.SMALL, pytest.param(0, marks=pytest.mark.long)], ids=["enumerated", "by sets"]
)
@settings(max_examples=60 if LONG else 4, deadline=None, derandomize=not LONG)  # by sets, it may miss one
@example(_only("toy.a < toy.a * toy.b", a=0, b=1, c=1, d=0))  # neither helps without the other
@example(_only("toy.a * toy.b > toy.c + 9", a=0, b=1, c=9, d=0))
@example(
    _only("toy.a > 0 -> toy.c + toy.d <= 0", a=1, b=1, c=1, d=0)
)  # what the condition asks for is enough
@example(_only("toy.a == 1 -> toy.c + toy.d <= 0", a=1, b=1, c=1, d=0))
@given(problems())
def test_nothing_is_cheaper(small: int, problem) -> None:
    rules, start = problem
    pack = load({"toy.rules": rules})
    run = Run(pack, selected=lambda code: code.startswith("PRF9"))
    truth = _Truth(run, start)
    broken = truth.broken({"f": False, **start})
    assume(broken)
    best = _cheapest(pack, run, start)
    before, search.SMALL = search.SMALL, small
    try:
        fixed = repair(run, read_text(_text(start), "c.yaml"), unsafe=True, least="error", notes=False).text
    finally:
        search.SMALL = before
    after = _read(start, fixed)
    left = truth.broken(after)
    assert left <= broken, "a repair may break nothing"
    if best is None:  # no move mends all of them; one that mends some may switch the others off
        return
    assert not left, "what can be mended is mended"
    assert _paid(pack, start, after) <= best
