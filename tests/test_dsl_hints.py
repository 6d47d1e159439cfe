# ruff: noqa: E501
"""A rule file that does not load says what to write instead: frequent mistakes and their neighbours."""

from __future__ import annotations

import pytest

from cfglint.errors import RulesError
from cfglint.lang.check import Builder
from cfglint.lang.parse import read_sources
from cfglint.lang.symbols import Symbols

FACTS = """fact gpu.vram: memory
fact gpu.name: text
fact timeout: duration
fact share: fraction
fact task: one of sft, dpo, grpo
fact colocated: bool
fact n: count
fact rate: number
fact items: list
table sizes: small, large {
  "k": 1, 2
}
"""
LINES = FACTS.count("\n")


def complaints(text: str) -> list[str]:
    try:
        Builder(Symbols()).build(read_sources({"t.rules": FACTS + text}, ()))
    except RulesError as error:
        return [f"{c.line - LINES}:{c.column}: {c.message}" for c in error.complaints]
    return []


def rule(body: str) -> str:
    return f"rule MEM101 too-much error {{\n  {body}\n}}\n"


CASES = (
    # what a line ends with
    ("n <= 8 ->", "1:10: the requirement is missing after ->"),
    ("n <= 8 ->  # later", "1:10: the requirement is missing after ->"),
    (rule("n <= 8 ->"), "2:12: the requirement is missing after ->"),
    ("n <= 8 and", "1:11: a condition is missing after and"),
    ("n in", "1:5: a value is missing after in"),
    ("let x =", "1:8: a value is missing after ="),
    ("(n + ) > 2", "1:5: a value is missing after +"),
    ("where\n" + rule("n > 1"), "1:6: the condition is missing after where (it must be on this line or on an indented one)"),
    # quantifiers
    ("all s in $.servers, s.port > 5", "1:19: write : after the list: all s in $.servers: s.port > 5"),
    ("any s in $.servers { s.port > 5 }", "1:20: write : after the list: any s in $.servers: s.port > 5"),
    ("all s in $.servers -> s.port > 5", "1:20: write : after the list: all s in $.servers: s.port > 5"),
    ("all(s in $.servers: s.port > 5)", "1:1: write (all s in $.servers: s.port > 5), without brackets after all"),
    ("n > (sum(s in items: abs(s)))", "1:6: write (sum s in items: abs(s)), without brackets after sum"),
    ("any(s.port > 5 for s in $.servers)", "1:1: write (any s in $.servers: s.port > 5), without brackets after any"),
    ("for s in $.servers: s.port > 5", "1:1: write all s in $.servers: s.port > 5 (for is for frameworks)"),
    ("forall s in $.servers: s.port > 5", "1:1: write all s in $.servers: s.port > 5 (for is for frameworks)"),
    ("exists s in $.servers: s.port > 5", "1:1: write any s in $.servers: s.port > 5"),
    # statements
    ("def f(x) = x", "1:1: write let f(x) = x"),
    ("const x = 5", "1:1: write let x = 5"),
    ("let x: 5", "1:6: write let x = 5"),
    ("let f x = 2 * x", "1:7: write let f(x) = 2 * x"),
    ("fact x = count", "1:8: write fact x: count"),
    ("fact x count", "1:8: write fact x: count"),
    ("fact x: enum a, b", "1:9: write one of a, b"),
    ("fact x: enum(a, b)", "1:9: write one of a, b"),
    ("fact x: [a, b]", "1:9: write one of a, b"),
    ("fact x: a | b", "1:11: write one of a, b"),
    ("fact x: a, b", "1:10: write one of a, b"),
    ("fact x: one of [a, b]", "1:9: write one of a, b"),
    ("knob $.lr 0..1", '1:6: a knob is a fact: declare fact acme.name: number "…", bind it to $.lr, then write knob acme.name …'),
    ("knob n halving to 1 cost 3", "1:21: write costs instead of cost"),
    ("knob rate 0 to 1 step 0.1", "1:13: write 0 .. 1"),
    ("knob rate 0 .. 1", "1:17: the step is missing: write step 0.1 after the range"),
    ("each ROLE NUM in actor 7 {\n  fact ROLE.x: count\n}", '1:24: write "7" in quotes: words of each are names or texts'),
    ("each ROLE in [a, b] {\n  fact ROLE.x: count\n}", "1:14: write the words without brackets: in a, b"),
    # frameworks
    ("framework f {\n  task = dpo\n}", "2:8: write task <- $.key to read a key, or let task = dpo to fix it"),
    ("framework f {\n  n = $.x\n}", "2:5: write n <- $.x to read a key"),
    ("framework f {\n  n: $.x\n}", "2:4: write n <- $.x to read a key"),
    ("framework f {\n  n <= $.x\n}", "2:5: write n <- $.x to read a key"),
    ("framework f {\n  $.x -> n\n}", "2:3: write n <- $.x"),
    ("framework f {\n  n: 8\n}", "2:6: a type stands after the colon: write let n = 8 to fix it"),
    # heads, clauses and examples
    ("rule MEM101 a-b error\n{\n  n > 1\n}\n", "1:22: the clauses stand in braces: write { here, at the end of the line"),
    ("rule MEM101 a-b error:\n  n > 1\n", "1:22: the clauses stand in braces: write { here, at the end of the line"),
    ("rule MEM101 a-b Error { n > 1 }", "1:17: the level is error, warning or info: write error"),
    ("rule MEM101 a-b warn { n > 1 }", "1:17: the level is error, warning or info: write warning"),
    ("rule MEM101 a_b error { n > 1 }", "1:13: a rule's name is words joined by hyphens: write - instead of _ in a_b"),
    (rule('n > 1\n  message "few"'), '3:3: no clause is named message: write say "…"'),
    (rule("n > 1\n  goood { n: 1 }"), "3:3: no clause is named goood; clauses are say, why, see, next, at, bad, may, good, open and given"),
    (rule("n > 1\n  bad: { n: 1 }"), "3:6: write bad {…}, without :"),
    (rule('n > 1\n  say: "few"'), '3:6: write say "…", without :'),
    (rule("n > 1\n  say too few"), '3:7: write texts in quotes: say "too few"'),
    (rule("n > 1\n  see https://acme.org/a"), '3:7: write texts in quotes: see "https://acme.org/a"'),
    (rule("n > 1\n  bad { $.lr = 1 }"), "3:14: write $.lr: 1 in an example"),
    (rule("n > 1\n  bad { n == 1 }"), "3:11: write n: 1 in an example"),
    (rule("n > 1\n  bad { n 1 }"), "3:11: write n: 1 in an example"),
    (rule('n > 1\n  bad { "n": 1 }'), "3:9: write n without quotes, or $.n for a key"),
    (rule("n > 1\n  bad n: 1"), "3:7: write bad { n: 1 }"),
    (rule("n > 1\n  bad { n: 1; rate: 2 }"), "3:13: write , between what an example gives"),
    # conditions
    ("n >= 2 when task == sft", "1:8: write the condition first: task == sft -> n >= 2"),
    ("n >= 2 if task == sft", "1:8: write the condition first: task == sft -> n >= 2"),
    ("n >= 2 unless task == sft", "1:8: write the condition first: not (task == sft) -> n >= 2"),
    (rule("n >= 2 when task == sft"), "2:10: write the condition first: task == sft -> n >= 2"),
    ("if colocated then share <= 0.5", "1:1: write colocated -> share <= 0.5; if … then … also needs else"),
    ("if colocated: share <= 0.5", "1:1: write colocated -> share <= 0.5; if … then … also needs else"),
    ("when colocated -> share <= 0.5", "1:1: write colocated -> share <= 0.5; if … then … also needs else"),
    ("colocated then share <= 0.5", "1:11: write colocated -> share <= 0.5"),
    (rule("require n > 1"), "2:3: write the requirement alone: n > 1"),
    ("$.lr exists", "1:6: write has($.lr)"),
    ("$.lr is missing", "1:6: write not has($.lr)"),
    # texts, lists, numbers
    ('gpu.name ~ "H100"', '1:10: write gpu.name like "*H100*"'),
    ('gpu.name contains "H100"', '1:10: write gpu.name like "*H100*"'),
    ('gpu.name startswith "H"', '1:10: write gpu.name like "H*"'),
    ("gpu.name like H100", '1:15: write gpu.name like "H100"'),
    ("task in dpo, grpo", "1:12: write in [dpo, grpo]"),
    ("n in (8, 16)", "1:6: write in [8, 16]"),
    ("n in {8, 16}", "1:6: write in [8, 16]"),
    ("n in [8 16]", "1:9: write a comma between items"),
    ("n in 8 to 16", "1:8: write in 8 .. 16"),
    ("gpu.vram <= 0.9 gpu.vram", "1:17: write 0.9 * gpu.vram"),
    ("gpu.vram <= 90 % of gpu.vram", "1:18: write 90 % * gpu.vram"),
    ("n <= 4,096", "1:7: write 4_096"),
    ("rate <= .5", "1:9: write 0.5"),
    ("n in [1 .. 5]", "1:6: write in 1 .. 5: in brackets it is a list with one range"),
    ("n not in [1..5]", "1:10: write in 1 .. 5: in brackets it is a list with one range"),
    ("fact x: string", "1:9: unknown type 'string'; did you mean 'text'?"),
    ("fact x: float", "1:9: unknown type 'float'; did you mean 'number'?"),
    ("rule MEM101 a-b error for acmetrainer { n > 1 }",
     "1:27: unknown framework 'acmetrainer'; define it with framework acmetrainer { … }, or see cfglint frameworks"),
    # keys and columns
    ('sizes.small["k"] > 1', '1:12: a column is a function: write sizes.small("k")'),
    ('$["a b"] > 1', '1:2: write $."a b"'),
    ('$.a["b"] > 1', '1:4: write $.a."b"'),
    ("$a.b > 1", "1:1: write $.a.b"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "told"), CASES, ids=[text.replace("\n", " ") for text, _ in CASES])
def test_what_to_write(text: str, told: str) -> None:
    assert complaints(text) == [told]
