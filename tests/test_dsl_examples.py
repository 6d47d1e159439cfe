"""Rules carry their own tests; every shipped rule comes to what its examples say."""

from __future__ import annotations

import pytest

from cfglint.features.test.examples import run_examples
from cfglint.lang.pack import load

HEAD = """fact t.n: count 1 ..
fact t.size: memory
fact t.kind: one of left or l, right
framework toy {
  detect has($.toy)
  t.n <- $.toy.n default 4
}
framework other {
  t.n <- $.other.n default 8
}
"""


def outcomes(body: str, head: str = "") -> list[tuple[str, str]]:
    pack = load({"t.rules": f"{HEAD}rule USR900 a error {head} {{\n{body}\n}}\n"})
    return [(o.expected, o.result) for o in run_examples(pack, {"USR900"})]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("t.n > 3\nbad { t.n: 3 }", "bad"),
        ("t.n > 3\nbad { t.n: 4 }", "good"),
        ("t.n > 3\ngood { t.n: 4 }", "good"),
        ("t.n > 9 -> t.n > 3\ngood { t.n: 1 }", "good"),
        ("t.n > 3\nmay { t.n: 3..4 }", "may"),
        ("t.n > 3\nopen { }", "open"),
        ("t.n > 3\nbad { }", "open"),
        ("t.size > 3\nbad { t.size: 2 }", "bad"),
        ("t.size > 3\nmay { t.size: 2..4 }", "may"),
        ("t.kind == left\ngood { t.kind: l }", "good"),
        ("$.a.b == 3\nbad { $.a.b: 4 }", "bad"),
        ("$.a.b == 3\nopen { $.a.c: 4 }", "open"),
        ('$.a == 3\nopen { $.a: "???" }', "open"),
        ("has($.a.b)\ngood { $.a.b: null }", "good"),
        ("(sum p in $.s[*].p: p) == 3\ngood { $.s: [{p: 1}, {p: 2}, {q: 4}] }", "good"),
        ("$.s[1].p == 2\ngood { $.s: [{p: 1}, {p: 2}] }", "good"),
        ("$.s[0].p == 2\ngood { $.s[0].p: 2 }", "good"),
        ('framework.name == "x"\ngood { framework.name: "x" }', "good"),
        ("framework.version < v2\nbad { framework.version: v2.1 }", "bad"),
    ],
)
def test_an_example(body: str, found: str) -> None:
    assert outcomes(body) == [(body.partition("\n")[2].partition(" ")[0], found)]


def test_a_rule_of_a_framework_is_tried_under_it() -> None:
    assert outcomes("t.n == 4\ngood { }\nbad { $.toy.n: 5 }\ngood { $.toy.n: 5, t.n: 4 }", "for toy") == [
        ("good", "good"), ("bad", "bad"), ("good", "good"),
    ]  # fmt: skip
    assert outcomes('t.n == 8\ngood { framework.name: "other" }\nbad { }', "for toy, other") == [
        ("good", "good"), ("bad", "bad"),
    ]  # fmt: skip
    assert outcomes("framework.version < v2\ngood { }", "for toy < v2.0") == [("good", "good")]
    assert outcomes("framework.version >= v2\ngood { }", "for toy > v1.0") == [("good", "good")]


def test_what_a_wrong_example_says() -> None:
    pack = load(
        {"t.rules": f"{HEAD}rule USR900 a error {{\n  t.n > 3\n  bad {{ t.n: 4 }}\n  good {{ }}\n}}\n"}
    )
    wrong = [str(o) for o in run_examples(pack, {"USR900"}) if not o.ok]
    assert wrong == [
        "t.rules:13: USR900: this example is bad, but the rule holds",
        (
            "t.rules:14: USR900: this example is good, but the rule is not decided because t.n is missing; "
            "state it in the example"
        ),
    ]


def test_what_decides_an_example() -> None:
    head = "fact t.a: count\nfact t.b: count\nfact t.sum: count\nlet t.sum = t.a + t.b\nfact t.n: count\n"

    def told(rule: str, given: str) -> str:
        text = f"{head}rule USR900 a error {{\n  {rule}\n  bad {{ {given} }}\n}}\n"
        (wrong,) = [str(o) for o in run_examples(load({"t.rules": text}), {"USR900"})]
        return wrong.partition("because ")[2]

    assert told("t.sum > 3", "t.n: 4") == "t.a, t.b are missing; state t.sum in the example"
    assert told("t.sum > 3", "t.a: 1") == "t.b is missing; state t.sum in the example"
    assert told("t.a > 3 and t.b > 3", "t.a: 4") == "t.b is missing; state it in the example"
    assert told("t.a + $.x > 3", "t.n: 4") == "$.x, t.a are missing; state them in the example"
    assert told("t.sum + $.x > 3", "t.n: 4") == "$.x, t.a, t.b are missing; state $.x, t.sum in the example"


def lacking(pack) -> list[str]:
    """Return what rules lack: a reason, a source, a bad and a good example, an example in which they fire.

    Rules that are one bare line are somebody's own, and lack nothing.
    """
    symbols, lacks = pack.symbols(), []
    firing = {outcome.code for outcome in run_examples(pack) if outcome.result in ("bad", "may")}
    for rule in (symbols.rules[compiled.code] for compiled in pack.rules):
        if rule.name == "rule-of-yours":
            continue
        head = f"{symbols.where[f'rule {rule.code}']}: {rule.code}"
        kinds = {example.kind for example in rule.examples}
        parts = {"why": rule.why, "see": rule.see, "bad": "bad" in kinds, "good": "good" in kinds}
        missing = [part for part, there in parts.items() if not there]
        lacks += [f"{head} has no {', no '.join(missing)}"] if missing else []
        lacks += [] if rule.code in firing else [f"{head} never fires in its own examples"]
    return lacks


def test_the_sources_of_knobs_are_links() -> None:
    knobs = load().symbols().knobs
    sources = {move.see for knob in knobs.values() for move in knob.moves if move.see}
    assert not [see for see in sources if not see.startswith("https://")]


def test_rules_that_lack_something() -> None:
    text = f'{HEAD}t.n > 1\nrule USR900 a error {{\n  t.n > 3\n  good {{ t.n: 4 }}\n  see "x"\n}}\n'
    told = [lack for lack in lacking(load({"t.rules": text})) if " USR" in lack]
    assert told == [
        "t.rules:12: USR900 has no why, no bad",
        "t.rules:12: USR900 never fires in its own examples",
    ]


def test_every_shipped_example_comes_to_what_it_says() -> None:
    found = run_examples(load())
    assert found
    assert not [str(outcome) for outcome in found if not outcome.ok]


def test_every_shipped_rule_has_a_reason_a_source_and_examples_of_both_kinds() -> None:
    assert not lacking(load())
