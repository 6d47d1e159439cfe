"""What a comparison is made of: keys as they are spelled, effects of knobs, sections of the vocabulary."""

from types import SimpleNamespace

import pytest

from cfglint.document.reading import read
from cfglint.document.scalars import OMEGACONF, PYYAML
from cfglint.document.view import View
from cfglint.engine.knobs import Between, alters_results, effects
from cfglint.features.compare.compute import sections
from cfglint.features.compare.reading import alike, covered, keys, leaves
from cfglint.lang import tree as t
from cfglint.lang.pack import load, shipped_rules
from cfglint.lang.types import Type
from cfglint.lang.values import Interval, Open, Unknown


def _between(*change) -> Between:
    """Return a way of which nobody knows what its conditions come to."""
    return Between(*change, lambda _: Open(), lambda _: Open())


def view(text, dialect=OMEGACONF):
    return View(read(text.encode(), "c.yaml").documents[0], dialect)


def differing(one, other, told=(), dialect=OMEGACONF):
    return [(k.key, k.a, k.b) for k in keys(view(one, dialect), view(other, dialect), told)]


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("a: 1\n", "a: 1.0\n", [("a", "1", "1")]),
        ("a: 1\nb: {c: x}\n", "b: {c: x}\na: 1\n", []),
        ("a: 1\nb: ${a}\n", "a: 2\nb: ${a}\n", [("a", "1", "2")]),
        ("a: 1\nb: ${a}\n", "a: 1\nb: 1\n", []),
        ("a: 1\nb: ${a}\n", "a: 1\nb: 2\n", [("b", "1", "2")]),
        ("a: ???\n", "a: ???\n", []),
        ("a: ???\n", "a: 3\n", [("a", "???", "3")]),
        ("a: ${oc.env:HOST_NAME_X}\n", "a: ${oc.env:HOST_NAME_X}\n", []),
        ("a: ${oc.env:HOST_NAME_X}\n", "a: here\n", [("a", "${oc.env:HOST_NAME_X}", "here")]),
        ("a: {b: 1, c: 2}\n", "d: 1\n", [("a.b", "1", None), ("a.c", "2", None), ("d", None, "1")]),
        ("a: [1, 2]\n", "a: [1, 3]\n", [("a", "[1, 2]", "[1, 3]")]),
        ("a: [{n: 1}, {n: 2}]\n", "a: [{n: 1}, {n: 3}]\n", [("a[1].n", "2", "3")]),
        ("a: {}\n", "a: {}\n", []),
        (
            "a: {k: 1}\nb: ${a}\n",
            "b: {k: 1}\n",
            [("a.k", "1", None), ("b", "${a}", None), ("b.k", None, "1")],
        ),
        ("a: {k: 1}\nc: {k: 2}\nb: ${a}\n", "a: {k: 1}\nc: {k: 2}\nb: ${c}\n", [("b", "${a}", "${c}")]),
        ("a: {k: 1}\nc: {k: 1}\nb: ${a}\n", "a: {k: 1}\nc: {k: 1}\nb: ${c}\n", []),
        ("a: {}\n", "a: null\n", [("a", "a mapping", "null")]),
        ("a: &x {k: 1}\nb: *x\n", "a: &x {k: 2}\nb: *x\n", [("a.k", "1", "2"), ("b.k", "1", "2")]),
        (
            "hf_token: abc\napi_key: k\n",
            "hf_token: abd\napi_key: k\n",
            [("hf_token", "(hidden)", "(hidden)")],
        ),
    ],
)
def test_keys(one, other, found):
    assert differing(one, other) == found
    assert differing(other, one) == sorted(
        ((key, b, a) for key, a, b in found), key=lambda k: [d[0] for d in differing(other, one)].index(k[0])
    )


def test_references_are_text_where_the_loader_knows_none():
    assert differing("a: ${x}\n", "a: ${y}\n", dialect=PYYAML) == [("a", "${x}", "${y}")]


def test_a_key_that_a_setting_stands_for_is_left_out_with_all_below():
    assert differing("a: {b: 1}\nc: [{d: 1}]\n", "a: {b: 2}\nc: [{d: 2}]\n", [("a",), ("c", "*", "d")]) == []
    assert not covered(("a",), [("a", "b")])


def test_ten_lines_that_mean_a_billion_values_are_cut_short():
    lines = ["a0: &a0 {x: 1}"] + [
        f"a{i}: &a{i} {{p: *a{i - 1}, q: *a{i - 1}, r: *a{i - 1}}}" for i in range(1, 14)
    ]
    assert 0 < len(leaves(view("\n".join(lines) + "\n"))) <= 20_000


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        ("a", "b", False),
        (Interval(1, 2), Interval(1, 2), True),
        (Interval(1, 2), 1, False),
        (Interval(0, 2, frozenset({"n"})), Unknown(frozenset({"m"})), True),
        (Unknown(frozenset({"m"})), 1, False),
        (True, False, False),
    ],
)
def test_alike(one, other, same):
    assert alike(one, other) is same
    assert alike(other, one) is same


def move(direction="any", effect="dearer", *, unsafe=False, **more):
    return t.Move(direction, 1, unsafe=unsafe, effect=effect, **more)


def told(knob, one, other, kind=None):
    return [(e.to, e.text) for e in effects(_between(knob, one, other, kind or Type("number")))]


def test_effects_follow_the_knob():
    step = SimpleNamespace(domain="step", values=(), moves=(move("down", "less"), move("up", "more")))
    assert told(step, 2, 1) == [("b", "less"), ("a", "more")]
    assert told(step, 1, 2) == [("b", "more"), ("a", "less")]
    halving = SimpleNamespace(domain="halving", values=(), moves=(move(effect="cut"),))
    assert told(halving, 8, 4) == [("b", "cut")]
    assert told(halving, 4, 8) == [("a", "cut")]
    free = SimpleNamespace(domain="any", values=(), moves=(move(effect="other"),))
    assert told(free, 4, 8) == [("b", "other"), ("a", "other")]


def test_a_knob_that_lists_values_speaks_of_those_alone():
    knobs = load().symbols().knobs
    kind = Type("enum", members=("none", "selective", "full"), spellings=(("true", "full"), ("none", "none")))
    knob = knobs["gradient_checkpointing"]
    assert {to for to, _ in told(knob, "none", "full", kind)} == {"b"}
    assert {to for to, _ in told(knob, "full", "none", kind)} == {"a"}
    assert told(knob, "selective", "full", kind) == []
    assert told(knob, "none", "selective", kind) != told(knob, "none", "full", kind)
    optimizers = Type("enum", members=("adamw", "adamw_8bit", "none"))  # none is one, and no starting point
    assert {to for to, _ in told(knobs["optimizer"], "adamw", "adamw_8bit", optimizers)} == {"b"}


def test_figures_of_a_knob_are_passed_on():
    moves = (move(kind="time", low=0.2, high=0.3, see="https://example.org"),)
    knob = SimpleNamespace(domain="any", values=(), moves=moves)
    (first, _) = effects(_between(knob, 1, 2, Type("number")))
    assert (first.kind, first.low, first.high, first.see) == ("time", 20, 30, "https://example.org")
    assert first.notable
    checkpointing = load().symbols().knobs["gradient_checkpointing"]
    full = next(m for m in checkpointing.moves if m.to == (t.Name("full"),))
    assert full.low is not None
    assert full.see


def test_results_change_only_with_what_is_marked():
    knobs = load().symbols().knobs
    kind = Type("enum", members=("adamw", "adamw_fused", "adamw_8bit"))
    assert alters_results(_between(knobs["optimizer"], "adamw", "adamw_8bit", kind))
    assert alters_results(_between(knobs["optimizer"], "adamw_8bit", "adamw", kind))
    assert not alters_results(_between(knobs["optimizer"], "adamw", "adamw_fused", kind))
    number = Type("number")
    assert alters_results(_between(knobs["max_new_tokens"], 256, 512, number))
    assert not alters_results(_between(knobs["mem_fraction"], 0.5, 0.8, number))


def test_every_fact_of_the_vocabulary_stands_in_a_section():
    symbols = load().symbols()
    found = sections(symbols, shipped_rules())
    shipped = [name for name in symbols.facts if symbols.where[f"fact {name}"].startswith("rules/vocabulary")]
    assert shipped
    assert [name for name in shipped if not found.get(name)] == []
    assert found["mem_fraction"] == "rollout"
    assert found["num_gpus"] == "topology"
