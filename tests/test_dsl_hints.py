# ruff: noqa: E501
"""A rule file that does not load says what to write instead: frequent mistakes and their neighbours."""

from __future__ import annotations

import random
import re
import string

import pytest

from cfglint.errors import RulesError
from cfglint.lang import habits
from cfglint.lang.check import Builder
from cfglint.lang.pack import shipped_rules
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
fact framework.version: version
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
    ("knob n halving to 1 cost 3", "1:21: write costs instead of cost"),
    ("knob rate 0 to 1 step 0.1", "1:13: write 0 .. 1"),
    ("knob rate 0 .. 1", "1:17: the step is missing: write it after the range, such as step 1"),
    ("each ROLE NUM in actor 7 {\n  fact ROLE.x: count\n}", '1:24: write "7" in quotes: words of each are names or texts'),
    ("each ROLE in [a, b] {\n  fact ROLE.x: count\n}", "1:14: write the words without brackets: in a, b"),
    # frameworks
    ("framework f {\n  task = dpo\n}", "2:8: write task <- $.key to read a key, or let task = dpo to fix it"),
    ("framework f {\n  n = $.x\n}", "2:5: write n <- $.x to read a key"),
    ("framework f {\n  n: $.x\n}", "2:4: write n <- $.x to read a key"),
    ("framework f {\n  n <= $.x\n}", "2:5: write n <- $.x to read a key"),
    ("framework f {\n  $.x -> n\n}", "2:3: write n <- $.x to read a key"),
    ("framework f {\n  n: 8\n}", "2:6: a type stands after the colon: write let n = 8 to fix it"),
    # heads, clauses and examples
    ("rule MEM101 a-b error\n{\n  n > 1\n}\n", "1:22: the clauses of a rule stand in braces: write { here, at the end of the line"),
    ("rule MEM101 a-b error:\n  n > 1\n", "1:22: the clauses of a rule stand in braces: write { here, at the end of the line"),
    ("rule MEM101 a-b Error { n > 1 }", "1:17: the level is error, warning or info: write error"),
    ("rule MEM101 a-b warn { n > 1 }", "1:17: the level is error, warning or info: write warning"),
    ("rule MEM101 a_b error { n > 1 }", "1:13: a rule's name is words joined by hyphens: write a-b"),
    (rule('n > 1\n  message "few"'), '3:3: no clause is named message: write say "…"'),
    (rule("n > 1\n  goood { n: 1 }"), "3:3: no clause is named goood: write good {…}"),
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
    ("n in 8 to 16", "1:8: write 8 .. 16"),
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
    # units and types
    ("share <= 30 GiB", "1:1: share is a fraction: write 0.3 or 30 %, without GiB"),
    ("share <= 0.5 s", "1:1: share is a fraction: write 0.5 or 50 %, without s"),
    ("share <= 300 MiB", "1:1: share is a fraction: write a number from 0 to 1, without MiB"),
    ("gpu.vram <= 40 s", "1:1: gpu.vram is a memory: write 40 GiB"),
    ("timeout >= 5 GiB", "1:1: timeout is a duration: write 5 s"),
    ("n <= 9 GiB", "1:1: n is a count: write 9, without GiB"),
    ("rate <= 7 B", "1:1: rate is a plain number: write 7e9 for billions, or 7 without a unit"),
    ("gpu.vram <= 30 %", "1:1: gpu.vram is a memory: write 30 % of another memory as 30 % * gpu.vram"),
    ("n in 1 GiB .. 4 GiB", "1:1: n is a count: write 1, without GiB"),
    ("n in [1 s, 2]", "1:1: n is a count: write 1, without s"),
    ("max(n, 3 GiB) > 2", "1:8: 3 GiB is a memory, but a count is expected here: write 3, without GiB"),
    ("n mod 2 GiB == 0", "1:7: 2 GiB is a memory, but a plain number is expected here: write 2, without GiB"),
    ("gpu.vram + 3 s > 4", "1:12: 3 s is a duration: it cannot be added to a memory: write 3 GiB"),
    ("n <= gpu.vram", "1:1: n is a count and gpu.vram is a memory: they cannot be compared; n * 1 GiB is a memory"),
    ("gpu.vram + timeout / 2 > 3", "1:12: timeout / 2 is a duration: it cannot be added to a memory"),
    ("gpu.vram > n + gpu.vram", "1:16: gpu.vram is a memory: it cannot be added to a count; gpu.vram / 1 GiB is a plain number"),
    (rule("n > 1\n  bad { n: 9 GiB }"), "3:12: 9 GiB is a memory, but a count is expected here: write 9, without GiB"),
    (rule("n > 1\n  bad { gpu.vram: 24 s }"), "3:19: 24 s is a duration, but a memory is expected here: write 24 GiB"),
    (rule('n > 1\n  bad { n: "8" }'), '3:12: "8" is a text, but a count is expected here: write 8 without quotes'),
    (rule('n > 1\n  bad { items: "q" }'), '3:16: "q" is a text, but a list is expected here: write ["q"]'),
    (rule("n > 1\n  bad { colocated: 1 }"), "3:20: 1 is a plain number, but a boolean is expected here: write true"),
    ('n == "3"', "1:1: n is a count: write 3 without quotes"),
    ('"3" == n', "1:1: n is a count: write 3 without quotes"),
    ('n in ["2", "3"]', "1:1: n is a count: write 2 without quotes"),
    ('gpu.vram >= "24 GiB"', "1:1: gpu.vram is a memory: write 24 GiB without quotes"),
    ('n == "many"', "1:1: n is a count: write a number, without quotes"),
    ('colocated == "yes"', "1:1: colocated is a boolean: write true without quotes"),
    ("colocated == 0", "1:1: colocated is a boolean: write false"),
    ("gpu.name == 5", '1:1: gpu.name is a text: write "5"'),
    ("n == true", "1:1: n is a count: write a number"),
    ("not n", "1:5: n is a count, but a boolean is expected here: write n > 0"),
    ("items and colocated", "1:1: items is a list, but a boolean is expected here: write length(items) > 0"),
    ("gpu.name and colocated", "1:1: gpu.name is a text, but a boolean is expected here: write known(gpu.name)"),
    ("task == [sft, dpo]", "1:1: task is one of sft, dpo, grpo: write task in [sft, dpo]"),
    ("task != [sft, dpo]", "1:1: task is one of sft, dpo, grpo: write task not in [sft, dpo]"),
    ('items == "q"', '1:1: items is a list: write "q" in items'),
    ("items > 4", "1:1: items is a list: write length(items) > 4, or all x in items: x > …"),
    ("framework.version >= 1.0", "1:1: framework.version is a version: write a version, such as v0.8"),
    ('framework.version >= "v1.0"', "1:1: framework.version is a version: write v1.0 without quotes"),
    ("$.servers[*].port > 5", "1:1: $.servers[*].port is a list: write all s in $.servers: s.port > 5"),
    ("5 < $.servers[*].port", "1:1: $.servers[*].port is a list: write all s in $.servers: s.port > 5"),
    ("$.ports[*] in 1 .. 9", "1:1: $.ports[*] is a list: write all p in $.ports: p in 1 .. 9"),
    ("$.a.servers[*].x.y == 3", "1:1: $.a.servers[*].x.y is a list: write all s in $.a.servers: s.x.y == 3"),
    ('"H100" in gpu.name', '1:11: gpu.name is a text, but a list or a range is expected here: write gpu.name like "*H100*"'),
    ("task in dpo", "1:9: unknown name 'dpo'; dpo is a value of task: write task == dpo"),
    ("n in 8", "1:6: 8 is a plain number, but a list or a range is expected here: write n == 8"),
    # numbers
    ("n <= 4k", "1:7: write 4096 or 4000"),
    ("n <= 1.5M", "1:9: write 1.5e6, or 1.5 MiB for a memory"),
    ("gpu.vram >= 24G", "1:15: write 24 GiB or 24 GB"),
    ("n >= 7b", "1:7: write 7e9"),
    ("timeout <= 30 seconds", "1:15: write 30 s"),
    ("timeout <= 5m", "1:13: write 5 min, or 5e6 for millions"),
    ("share <= 80 percent", "1:13: write 80 %"),
    ("n == 8 gpus", "1:8: write 8 GPUs"),
    ("gpu.vram < 24Gi", "1:14: write 24 GiB"),
    # functions
    ("sum(items) > 3", "1:1: write (sum x in items: x)"),
    ("any($.flags)", "1:1: write (any x in $.flags: x)"),
    ("len(items) > 2", "1:1: write length(items)"),
    ("avg($.x) > 1", "1:1: write (sum x in $.x: x) / length($.x)"),
    ('contains(gpu.name, "H100")', '1:1: write gpu.name like "*H100*", or "H100" in gpu.name for a list'),
    ('gpu.name.startsWith("NV")', '1:1: write gpu.name like "NV*"'),
    ('matches(gpu.name, "^H.*$")', '1:1: write gpu.name like "*H*"'),
    ("exists($.a)", "1:1: write has($.a)"),
    ("exists(n)", "1:1: write known(n)"),
    ("pow(n, 2) > 4", "1:1: write n * n for a square"),
    ("between(n, 1, 2)", "1:1: write n in 1 .. 2"),
    ("implies(colocated, n > 1)", "1:1: write colocated -> n > 1"),
    ("coalesce($.a, 3) > 1", "1:1: write first($.a, 3)"),
    ('$.a.contains("x")', '1:5: write $.a like "*x*"'),
    ("$.a.size() > 2", "1:5: write length($.a)"),
    # names
    ("all s in $.servers: sport > 5", "1:21: unknown name 'sport'; a field of s is written s.port, and a key of the file is written $.sport"),
    ("all s in $.servers: port > 5", "1:21: unknown name 'port'; a field of s is written s.port, and a key of the file is written $.port"),
    (rule('all d in $.data: d.weight > 0\n  say "{weight}"'), "3:9: unknown name 'weight'; a field of d is written d.weight, and a key of the file is written $.weight"),
    ("let f(x) = x + weigth", "1:16: unknown name 'weigth'; a key of the file is written $.weigth"),
    ("task == sft or dpo", "1:16: unknown name 'dpo'; dpo is a value of task: write task == dpo"),
    ("n in sizes", "1:6: sizes is a table: write in table sizes or sizes.small(word) or sizes.large(word)"),
    ("sizes > 1", "1:1: sizes is a table: write in table sizes or sizes.small(word) or sizes.large(word)"),
    (rule('n > 1\n  say "{n:.2e}"'), "3:10: no format after ':': cfglint rounds numbers itself; write {n}"),
    (rule('n > 1\n  say "{n:,}"'), "3:10: no format after ':': cfglint rounds numbers itself; write {n}"),
    (rule('n > 1\n  say "{n!r}"'), "3:10: no format after '!': cfglint rounds numbers itself; write {n}"),
    # heads
    ("rule MEM101 Warn error { n > 1 }", "1:13: a rule's name is in lower case: write warn, not Warn"),
    ("rule MEM101 tooHigh error { n > 1 }", "1:13: a rule's name is in lower case: write too-high, not tooHigh"),
    ("rule mem101 x-y error { n > 1 }", "1:6: a code is three capitals and three digits, such as ABC101, not mem101"),
    ("rule x-y error { n > 1 }", "1:6: a rule begins with a code, a name and a level: rule ABC101 rate-too-high error {"),
    ("rule MEM101 error { n > 1 }", "1:13: the name is missing: write it before error, such as rate-too-high"),
    ('rule MEM101 "too high" error { n > 1 }', "1:13: a rule's name is words joined by hyphens: write too-high"),
    ("rule MEM101 too high error { n > 1 }", "1:13: a rule's name is words joined by hyphens: write too-high"),
    ("rule MEM101: x-y error { n > 1 }", "1:12: write MEM101 without :"),
    ("rule MEM101 x-y CRITICAL { n > 1 }", "1:17: the level is error, warning or info: write error"),
    ("rule MEM101 x-y hint { n > 1 }", "1:17: the level is error, warning or info: write info"),
    ('rule MEM101 x-y error\n  n > 1\n  say "x"', "1:22: the clauses of a rule stand in braces: write { here, at the end of the line"),
    ("framework f\n  n <- $.x", "1:12: the lines of a framework stand in braces: write { here, at the end of the line"),
    ('table t: a\n  "k": 1', "1:11: the lines of a table stand in braces: write { here, at the end of the line"),
    (rule('n > 1\n  sya "few"'), '3:3: no clause is named sya: write say "…"'),
    (rule("n > 1\n  example { n: 1 }"), "3:3: no clause is named example; clauses are say, why, see, next, at, bad, may, good, open and given"),
    (rule("if colocated\n    then n > 1"), "3:5: write CONDITION -> REQUIREMENT, without if and then; if … then … also needs else"),
    ("if (colocated) { n > 1 }", "1:1: write (colocated) -> n > 1; if … then … also needs else"),
    # the same, in other words
    ("all(d in $.l, d.x > 1)", "1:1: write (all d in $.l: d.x > 1), without brackets after all"),
    ("all d in $.l where d.on: d.x > 1", "1:14: write the condition behind the colon: all d in $.l: not (d.on) or (d.x > 1)"),
    ("any d in $.l if d.on: d.x > 1", "1:14: write the condition behind the colon: any d in $.l: d.on and d.x > 1"),
    ("all d of $.l: d.x > 1", "1:7: write all d in"),
    ("all $.l.x > 5", "1:1: write all x in $.l: x.x > 5"),
    ("all s in $.l: s[port] > 5", "1:16: write s.port"),
    ("$.l.*.x > 5", "1:4: write $.l[*] for every item"),
    ("$.l[].x > 5", "1:4: write $.l[*] for every item"),
    ("$.l[0:2].x > 5", "1:4: write $.l[*] for every item"),
    ("gpu.name =~ /H100/", '1:10: write gpu.name like "*H100*"'),
    ('"H100" like gpu.name', '1:8: write gpu.name like "*H100*"'),
    ("task == dpo, grpo", "1:12: write task in [dpo, grpo]"),
    ("task == dpo | grpo", "1:13: write task in [dpo, grpo]"),
    ("n not in 8", "1:10: 8 is a plain number, but a list or a range is expected here: write n != 8"),
    ("n in 8-16", "1:6: 8 - 16 is a plain number, but a list or a range is expected here: write in 8 .. 16"),
    ("n in [8; 16]", "1:6: write in [8, 16]"),
    ("n in range(8, 16)", "1:6: write 8 .. 16"),
    ("8 <= n and <= 16", "1:12: write what is compared: and NAME <= 16"),
    ("n between 4 and 8", "1:3: write in 4 .. 8"),
    ("n <= 4 096", "1:8: write 4_096"),
    ("0.9gpu.vram > 3", "1:4: write 0.9 * gpu.vram"),
    ("2 gpu.vram > 3", "1:3: write 2 * gpu.vram"),
    ("n >= 2 only if task == sft", "1:8: write the condition first: task == sft -> n >= 2"),
    ("n >= 2 while colocated", "1:8: write the condition first: colocated -> n >= 2"),
    ("task == sft: n >= 2", "1:12: write task == sft -> n >= 2"),
    ("unless colocated then n > 1", "1:1: write not (colocated) -> n > 1"),
    # statements that begin in another way
    ("fact acme.x: enum a, b", "1:14: write one of a, b"),
    ("knob n 1..8", "1:12: the step is missing: write it after the range, such as step 1"),
    ("let f(x) -> x", "1:10: write let f(x) = x"),
    ("let f = x => x", "1:9: write let f(x) = x"),
    ('rule "too high": n < 1', "1:6: a rule begins with a code, a name and a level: rule ABC101 rate-too-high error {"),
    ("MEM101: n > 1", "1:1: write rule ABC101 rate-too-high error { n > 1 }"),
    ("error: n > 1", "1:1: write rule ABC101 rate-too-high error { n > 1 }"),
    ("import acme", "1:1: no file names another: --rules loads several, and pack NAME v1.0 names those of a folder"),
    ("rule MEM101 a-b error in trl { n > 1 }", "1:23: write for trl"),
    ("rule MEM101 a-b error if colocated { n > 1 }", "1:23: write the condition in the braces: colocated -> REQUIREMENT"),
    (rule("n > 1\n  bad { n: >8 }"), "3:12: an example gives a value or a range, such as n: 8"),
    (rule("n > 1\n  bad { lr: 8 }"), "3:9: unknown name 'lr'; a key of the file is written $.lr"),
    ("$.list contains 3", "1:8: write 3 in $.list"),
    ("$.lr between 1e-5 and 1e-3", "1:6: write in 1e-5 .. 1e-3"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "told"), CASES, ids=[text.replace("\n", " ") for text, _ in CASES])
def test_what_to_write(text: str, told: str) -> None:
    assert complaints(text) == [told]


def test_every_message_has_its_words() -> None:
    for _, *patterns, instead in habits._ROWS:
        names = {name for _, name, _, _ in string.Formatter().parse(instead) if name}
        for pattern in patterns:
            assert names <= {*re.compile(pattern).groupindex, *habits._words({"at": "k"})}, instead


def test_no_mistake_is_too_much() -> None:
    """Whatever stands at a mistake, something or nothing is told, at a place in the text."""
    rng = random.Random(13)
    lines = [line for text in shipped_rules().values() for line in text.splitlines() if line.strip()]
    for _ in range(2000):
        line = rng.choice(lines)
        at = rng.randrange(len(line) + 1)
        odd = rng.choice((*"{}[]()=<>!,:;%'|", " if ", " unless ", " all ", " of ", " 4k ", "1.2.3m", ""))
        text = f"rule MEM101 a-b error {{\n{line[:at]}{odd}{line[at + rng.randrange(2) :]}"
        place = 24 + rng.randrange(len(text) - 23)
        told = habits.habit(text, place, ends=rng.random() < 0.3, hole=rng.random() < 0.2)
        assert told is None or (0 <= told[0] <= len(text) and told[1])
