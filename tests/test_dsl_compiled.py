"""The short ways of compiled rules say what the long ones say."""

from __future__ import annotations

import itertools

import pytest

from cfglint.document.tree import ABSENT
from cfglint.facts import Values
from cfglint.lang.emit import _shortened, compile_pattern, plain_test
from cfglint.lang.pack import load
from cfglint.lang.runtime import match

TEXTS = ["", "a", "ab", "ba", "aba", "abc", "b:a", "{0}", "'", "c" * 9]


@pytest.mark.parametrize(
    "pattern", ["", "*", "ab", "ab*", "*ab", "*b*", "a*a", "?*", "*a*b*", "'*", "*{n:int}*"]
)
def test_a_pattern_tests_as_it_matches(pattern: str) -> None:
    pieces = compile_pattern(pattern)
    test = plain_test(pieces)
    for text in TEXTS:
        if test:
            assert eval(test.format("text")) is (match(pieces, text) is not None)


def test_pieces_match_as_far_left_as_they_can() -> None:
    for text in map("".join, itertools.product("ab1", repeat=5)):
        found = match(compile_pattern("*a{n:int}*b"), text)
        at = next((i for i in range(5) if text[i : i + 2] == "a1"), None)
        assert (found is not None) is (at is not None and text.endswith("b") and at < 3)


def test_a_temporary_that_is_only_handed_on_is_left_out() -> None:
    assert _shortened(["  t1 = f(V)", "  return t1"]) == ["  return f(V)"]
    assert _shortened(["  t1 = f(V)", "  t2 = t1", "  return t2"]) == ["  return f(V)"]
    assert _shortened(["  t1 = f(V)", "  return t12"]) == ["  t1 = f(V)", "  return t12"]
    kept = ["  t1 = f(V)", "  t2 = t1", "  t3 = t1 + t2"]
    assert _shortened(kept) == kept


def test_a_subclass_may_find_names_its_own_way() -> None:
    asked: list[str] = []

    class Recorded(Values):
        def find(self, name: str, spec: object) -> object:
            asked.append(name)
            return 5 if name == "n" else super().find(name, spec)  # type: ignore[arg-type]

    pack = load({"t.rules": 'fact n: count "n"\nfact m: count "m"\nlet twice = 2 * n + m'})
    assert Values(pack, given={"n": 1, "m": 1})["twice"] == 3
    assert Recorded(pack, given={"m": 1})["twice"] == 11
    assert asked == ["twice", "n", "m"]
    assert Values(pack).find("n", pack.facts["n"]) is ABSENT


def test_the_shipped_rules_are_read_once_and_stay_as_they_are() -> None:
    before = load()
    own = load({"own.rules": "fact toy.n: count\nrule USR900 a error { toy.n > 3 }\n"})
    assert "toy.n" in own.symbols().facts
    assert load().symbols() is before.symbols()
    assert "toy.n" not in load().facts
    assert "USR900" not in {rule.code for rule in load().rules}
