# ruff: noqa: E501, ISC004
"""What a rule file says once stands for what it says at length; mistakes in it are told at their place."""

from __future__ import annotations

import pytest

from cfglint import check_text
from cfglint.errors import RulesError
from cfglint.lang import tree as t
from cfglint.lang.pack import load, shipped_rules
from cfglint.lang.parse import parse
from cfglint.report.order import unchecked

SAME = {  # short, and in full
    "names below a prefix": (
        "prefix verl\nfact .micro: count\nlet .twice(n) = 2 * n\n.micro > 1 -> .twice(.micro) < 9",
        "fact verl.micro: count\nlet verl.twice(n) = 2 * n\nverl.micro > 1 -> verl.twice(verl.micro) < 9",
    ),
    "a section": (
        "for verl, trl where trains and not sleeps\n"
        "rule BAT100 a-b error {\n  n > 1 -> x\n}\nrule BAT101 a-b info {\n  x\n}\n"
        "for any framework\nrule BAT102 a-b info {\n  x\n}",
        "rule BAT100 a-b error for verl, trl {\n  trains and not sleeps and n > 1 -> x\n}\n"
        "rule BAT101 a-b info for verl, trl {\n  trains and not sleeps -> x\n}\n"
        "rule BAT102 a-b info {\n  x\n}",
    ),
    "a section's versions": (
        "for verl\nrule BAT100 a-b error >= v0.8 {\n  x\n}\nrule BAT101 a-b error for trl {\n  x\n}",
        "rule BAT100 a-b error for verl >= v0.8 {\n  x\n}\nrule BAT101 a-b error for trl {\n  x\n}",
    ),
    "what is given to all examples": (
        "where trains\ngiven { trains: true }\n"
        "rule BAT100 a-b error {\n  n > 1 -> x\n  given { n: 2 }\n  bad { x: false }\n  good { n: 1, $.a: 3 }\n}",
        "rule BAT100 a-b error {\n  trains and n > 1 -> x\n"
        "  bad { trains: true, n: 2, x: false }\n  good { trains: true, n: 1, $.a: 3 }\n}",
    ),
    "but": (
        "rule BAT100 a-b error {\n  n > 1 -> x\n  bad { n: 2, x: false }\n  good but { x: true }\n  good but { n: 1 }\n}",
        "rule BAT100 a-b error {\n  n > 1 -> x\n"
        "  bad { n: 2, x: false }\n  good { n: 2, x: true }\n  good { n: 1, x: false }\n}",
    ),
    "sources": (
        'source "https://github.com/o/r/blob/1dda039/"\nsource hf "https://github.com/hf/t/blob/v5/src/hf/"\n'
        'rule BAT100 a-b error {\n  x\n  see "utils/config.py:10-12"\n  see "docs/perf.rst @v0.7: use_dynamic_bsz"\n'
        '  see "hf/trainer.py:3"\n  see "o/r#12: why"\n  see "docs.vllm.ai/en/latest/serving"\n  see "o/s a/b.py:7 @v2"\n  see "Su et al. 2021, arXiv 2104.09864"\n  see "https://a.b/c"\n}',
        'rule BAT100 a-b error {\n  x\n  see "https://github.com/o/r/blob/1dda039/utils/config.py#L10-L12"\n'
        '  see "https://github.com/o/r/blob/v0.7/docs/perf.rst (use_dynamic_bsz)"\n'
        '  see "https://github.com/hf/t/blob/v5/src/hf/trainer.py#L3"\n  see "https://github.com/o/r/issues/12 (why)"\n'
        '  see "https://docs.vllm.ai/en/latest/serving"\n  see "https://github.com/o/s/blob/v2/a/b.py#L7"\n'
        '  see "https://arxiv.org/abs/2104.09864 (Su et al. 2021)"\n  see "https://a.b/c"\n}',
    ),
    "a table": (
        "table launch: zero_stage, sharded {\n"
        '  "ddp" or "one": 0, false\n  "zero3": 3, true   # all states\n  "fsdp": _, true\n}\n'
        "x in table launch -> launch.sharded(x)\nx not in table launch",
        'let launch.lists(key) = key in ["ddp", "one", "zero3", "fsdp"]\n'
        'let launch.zero_stage(key) = match key { "ddp" or "one": 0, "zero3": 3 }\n'
        'let launch.sharded(key) = match key { "ddp" or "one": false, "zero3": true, "fsdp": true }\n'
        "launch.lists(x) -> launch.sharded(x)\nnot launch.lists(x)",
    ),
    "a table with a row for the rest": (
        'table bits: of {\n  "fp32": 4\n  else: 2\n}',
        'let bits.lists(key) = key in ["fp32"]\nlet bits.of(key) = match key { "fp32": 4, else: 2 }',
    ),
    "a table that is a list": (
        'table kinds {\n  "a"\n  "b" or "c"\n}',
        'let kinds.lists(key) = key in ["a", "b", "c"]',
    ),
    "repetition": (
        'each ROLE KEY in reference ref, critic critic {\n  fact .ROLE_gpus: count "GPUs of the ROLE"\n'
        "  let .ROLE = has($.KEY.path)\n}",
        'fact .reference_gpus: count "GPUs of the reference"\nlet .reference = has($.ref.path)\n'
        'fact .critic_gpus: count "GPUs of the critic"\nlet .critic = has($.critic.path)',
    ),
    "repetition in a framework": (
        'framework f {\n  each ROLE in ref, critic {\n    .ROLE: text "path of the ROLE" <- $.ROLE.path default ""\n  }\n}',
        'fact .ref: text "path of the ref"\nfact .critic: text "path of the critic"\n'
        'framework f {\n  .ref <- $.ref.path default ""\n  .critic <- $.critic.path default ""\n}',
    ),
    "a rule that is repeated": (
        "each CODE ROLE in BAT100 ref, BAT101 critic {\n  rule CODE ROLE-is-new error {\n    has($.ROLE)\n  }\n}",
        "rule BAT100 ref-is-new error {\n  has($.ref)\n}\nrule BAT101 critic-is-new error {\n  has($.critic)\n}",
    ),
    "a knob that is repeated, over lines": (
        'each X in a, b {\n  knob X true\n    costs 1 "e"\n      "X"\n    see "g"\n  fact p.X: count\n    "X"\n}',
        'knob a true costs 1 "ea" see "g"\nfact p.a: count "a"\nknob b true costs 1 "eb" see "g"\nfact p.b: count "b"',
    ),
    "a fact that is declared where it is bound": (
        'framework f {\n  n: count 1 .. "how many"\n    <- $.n default 4 "args.py:3"\n}',
        'fact n: count 1 .. "how many"\nframework f {\n  n <- $.n default 4 "args.py:3"\n}',
    ),
    "the first of several keys": (
        "framework f {\n  n <- first($.a, $.b) when x null -> 2 default 1\n}\nfirst($.a, $.b, 3) > 1",
        "framework f {\n  n <- $.a when x null -> 2 default 1\n  n <- $.b when x null -> 2\n}\n"
        "(if has($.a) then $.a else (if has($.b) then $.b else 3)) > 1",
    ),
    "one of several keys": ("a and has($.x or $.y.z)", "a and (has($.x) or has($.y.z))"),
    "a key that is there with a value": ("a and (set($.x))", "a and (has($.x) and $.x != null)"),
    "texts over several lines": (
        'rule BAT100 a-b error {\n  x\n  say when n > 1 "one "   # and\n      "two"\n  say "a\\n"\n    "{n} b"\n'
        '  why "c"\n    "d"\n}\nknob x true\n  costs 1 "e"\n  "f"\n  see "g"\nlet y = match n { 1: "a"\n  2: "b" }',
        'rule BAT100 a-b error {\n  x\n  say when n > 1 "one two"\n  say "a\\n{n} b"\n  why "cd"\n}\n'
        'knob x true costs 1 "ef" see "g"\nlet y = match n { 1: "a", 2: "b" }',
    ),
}


def full(text: str) -> str:
    return text if text.startswith("prefix") else "prefix p\n" + text


@pytest.mark.parametrize("name", SAME)
def test_short_and_long_are_the_same(name: str) -> None:
    short, long = SAME[name]
    assert parse(full(short), "t") == parse(full(long), "t")


def test_a_sections_condition_is_one_part_of_the_rules() -> None:
    (rule,) = parse("where a or b\nc or d -> e", "t")
    (either,) = parse("a or b", "t")
    assert isinstance(rule, t.Rule)
    assert isinstance(either, t.Rule)
    assert isinstance(rule.condition, t.Junction)
    assert rule.condition.operator == "and"
    assert rule.condition.operands[0] == either.requirement


WRONG = {
    "a dot without a prefix": (".a > 1", "1:1: '.a' needs a line `prefix NAME` above: it stands for NAME.a"),
    "versions without a framework": (
        "rule BAT100 a-b error >= v1 {\n  x\n}",
        "1:1: BAT100 names versions; write `for FRAMEWORK` before them",
    ),
    "but in the first example": (
        "rule BAT100 a-b error {\n  x\n  bad but { x: false }\n}",
        "3:3: but … takes over from the first example of a rule, and this is it",
    ),
    "a say after the last": (
        'rule BAT100 a-b error {\n  x\n  say "a"\n  say when x "b"\n}',
        "4:3: a rule has one say without when, and it stands last",
    ),
    "a row that is too short": (
        'table a: b, c {\n  "x": 1\n}',
        "2:3: this row has 1 of 2 cells, one for each column",
    ),
    "a variable in small letters": (
        "each role in a, b {\n  let role.x = 1\n}",
        "1:6: role is replaced wherever it stands: write it in capitals",
    ),
    "a row with too many words": (
        "each ROLE in a b {\n  let ROLE.x = 1\n}",
        "1:14: 2 words stand here for 1 names",
    ),
    "set of no key": ("set(n)", "1:1: set(…) takes one key: set($.a.b)"),
    "first of no keys": (
        "first(n, 2) > 1",
        "1:1: first(…) takes keys, and at the end what holds where none is there",
    ),
    "given twice": ("rule BAT100 a-b error {\n  x\n  bad { x: 1, x: 2 }\n}", "3:15: this is given twice"),
    "a mistake in the second line of a message": (
        'rule BAT100 a-b error {\n  x\n  say "a {x}"\n    "b {y +}"\n}',
        "4:12: a value is missing after +",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_told_at_their_place(name: str) -> None:
    text, complaint = WRONG[name]
    with pytest.raises(RulesError) as error:
        parse(text, "t")
    (only,) = error.value.complaints
    assert f"{only.line}:{only.column}: {only.message}" == complaint


def test_a_missing_fact_is_asked_for() -> None:
    report = check_text(
        "a: 1",
        path="x.yaml",
        framework="acme",
        rules={
            "acme.rules": """
framework acme {
  dialect pyyaml
  acme.launch: text "how it starts" asks
    "how is it launched? add --set launch=zero3"
    <- $.launch
}
rule ABC001 x error for acme { acme.launch == "ddp" }
"""
        },
    )
    assert report.keys["acme.launch"] == "how is it launched? add --set launch=zero3"
    assert "; how is it launched? add --set launch=zero3; " in unchecked(report, verbose=False)[0]


def test_lines_of_the_shipped_rules_fit_a_screen() -> None:
    long = {
        f"{name}:{number}": len(line)
        for name, text in shipped_rules().items()
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > 120
    }
    assert long == {}


def test_no_shipped_file_replaces_a_definition_of_another() -> None:
    """A user's file may, on purpose; among the shipped ones, the later would win and nobody would see it."""
    seen: dict[str, str] = {}
    again = []
    for source in load().sources():
        for node in source.statements:
            if not isinstance(node, (t.Knob, t.Let)):
                continue
            key = f"{type(node).__name__} {node.name}"
            if key in seen:
                again.append(f"{key}: {seen[key]}, {source.path}")
            seen[key] = source.path
    assert again == []
