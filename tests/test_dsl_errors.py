# ruff: noqa: E501
"""What is wrong in a rule file is told at its line and column, with what was probably meant; nothing crashes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cfglint.errors import RulesError, UsageError
from cfglint.lang.check import Builder
from cfglint.lang.emit import compile_pattern
from cfglint.lang.pack import load, read_rules
from cfglint.lang.parse import read_sources
from cfglint.lang.runtime import match
from cfglint.lang.symbols import Symbols

FACTS = """fact gpu.vram: memory
fact timeout: duration
fact mem_fraction: fraction
fact dtype: one of bf16 or bfloat16, fp16
fact colocated: bool
fact n: count
fact name: text
fact items: list
let twice(a) = 2 * a
"""
LINES = FACTS.count("\n")


def complaints(text: str, *rules: str) -> list[str]:
    symbols = Symbols()
    try:
        Builder(symbols).build(read_sources({"t.rules": FACTS + text}, rules))
    except RulesError as error:
        return [
            f"{c.line - LINES if c.path == 't.rules' else c.path}:{c.column}: {c.message}"
            for c in error.complaints
        ]
    return []


def rule(body: str) -> str:
    return f"rule MEM101 too-much error {{\n  {body}\n}}\n"


CASES = {
    # what it says, and where
    "unknown name": ("gpu.vrm < 48", "1:1: unknown name 'gpu.vrm'; did you mean 'gpu.vram'?"),
    "unknown name behind": ("gpu.vram < gpu.vrom", "1:12: unknown name 'gpu.vrom'; did you mean 'gpu.vram'?"),
    "text without quotes": ("name == sglang", """1:9: unknown name 'sglang'; strings need quotes: "sglang\""""),
    "unknown member": ("dtype == bf61", "1:10: 'bf61' is not one of bf16, fp16; did you mean 'bf16'?"),
    "unknown member in quotes": ('dtype in ["fp61"]', "1:11: 'fp61' is not one of bf16, fp16; did you mean 'fp16'?"),
    "unknown type": ("fact x: memroy", "1:9: unknown type 'memroy'; did you mean 'memory'?"),
    "unknown unit": ("gpu.vram < 48 Gib", "1:15: no unit is named 'Gib'; did you mean 'GiB', 'GB' or 'TiB'?"),
    "unknown unit of a fact": ("fact x: memory in GIB", "1:19: no unit is named 'GIB'; did you mean 'GiB', 'GB' or 'TiB'?"),
    "unit of another type": ("fact x: memory in h", "1:9: h is not a unit of a memory; its units are B, KB, MB, GB, TB, KiB, MiB, GiB, TiB"),
    "limits upside down": ("fact x: count 8 .. 2", "1:9: the lower limit is above the upper one"),
    "limits of a text": ("fact x: text 1 ..", "1:9: a text has no unit and no limits"),
    "spelling twice": ("fact x: one of a, b or A", "1:9: the spelling 'a' appears twice"),
    "unknown function": ("twise(n) > 1", "1:1: unknown function 'twise'; did you mean 'twice'?"),
    "too few arguments": ("twice() > 1", "1:1: twice takes 1 argument, not 0"),
    "too many arguments": ("n > ceil(n, 1)", "1:5: ceil takes 1 argument, not 2"),
    "function without arguments": ("twice > 1", "1:1: twice takes arguments: twice(…)"),
    "fact with arguments": ("n(1) > 1", "1:1: n is not a function; it takes no arguments"),
    "dimension": ("gpu.vram < timeout", "1:1: gpu.vram is a memory and timeout is a duration: they cannot be compared"),
    "dimension of a let": ("let x = gpu.vram * 2\nx < 3 h", "2:1: x is a memory: write 3 GiB"),
    "dimension in a sum": ("gpu.vram + timeout < 3", "1:12: timeout is a duration: it cannot be added to a memory"),
    "dimension in min": ("min(gpu.vram, timeout) < 3", "1:15: timeout is a duration, but a memory is expected here"),
    "order of texts": ('name < "b"', '1:1: name is a text and "b" is a text: only numbers and versions have an order'),
    "truth against a number": ("colocated == 1", "1:1: colocated is a boolean: write true"),
    "number where a truth is wanted": ("n and colocated", "1:1: n is a count, but a boolean is expected here: write n > 0"),
    "truth where a number is wanted": ("colocated + 1 > 2", "1:1: colocated is a boolean, but a plain number is expected here"),
    "requirement that is no truth": ("n + 1", "1:1: n + 1 is a plain number, but a boolean is expected here"),
    "log of a memory": ("log2(gpu.vram) > 3", "1:1: log2 takes a plain number, and gpu.vram is a memory"),
    "list wanted": ("all x in n: x > 1", "1:10: n is a plain number, but a list is expected here"),
    "in a number": ("n in n", "1:6: n is a count, but a list or a range is expected here"),
    "bad pattern": ('name like "a{b:float}"', "1:11: a capture is written {name:int} or {name:word}, not '{b:float}'"),
    "capture twice": ('name like "{b:int}{b:int}"', "1:11: the capture 'b' appears twice in this pattern"),
    "capture without a name": ('capture(name, "*") > 1', "1:15: capture needs exactly one named capture; this pattern has 0"),
    "arms of two types": ("(if colocated then 1 GiB else 1 h) > 3", "1:2: one arm is a memory, the other a duration"),
    "match without arms": ("(match n { }) > 1", "1:2: match needs at least one arm"),
    "circle of lets": ("let a = b\nlet b = c + 1\nlet c = a", "1:1: cyclic definition: a -> b -> c -> a"),
    "let of itself": ("let a = a + 1", "1:1: cyclic definition: a -> a"),
    "function of itself": ("let f(x) = f(x)", "1:1: cyclic definition: f -> f"),
    "role that asks for roles": ("role spare when any r in roles: r.held > 1 GiB { held: 1 GiB }",
                                 "1:1: cyclic definition: roles -> roles"),
    "unknown name in a function": ("let f(x) = x + nosuch", "1:16: unknown name 'nosuch'; a key of the file is written $.nosuch"),
    "parameter twice": ("let f(x, x) = x", "1:1: f has two parameters of the same name"),
    "fact twice": ("fact n: count", "1:1: fact n is defined twice; first at t.rules:6"),
    "fact twice, otherwise": ("fact n: memory", "1:1: fact n is declared twice, with another type at t.rules:6"),
    "let twice": ("let a = 1\nlet a = 2", "2:1: let a is defined twice; first at t.rules:10"),
    "function of the language": ("let ceil(x) = x", "1:1: ceil is a function of the language"),
    "name and function": ("let f = 1\nlet g(x) = x\nlet f(x) = x", "3:1: let f is defined twice; first at t.rules:10"),
    "let against its fact": ("let gpu.vram = 3 h", "1:16: 3 h is a duration, but a memory is expected here: write 3 GiB"),
    "word as a name": ("let max = 1", "1:5: 'max' is a word of the language and no name"),
    "word as a name, lexed as one": ("let in = 1", "1:5: 'in' is a word of the language and no name"),
    "code taken": (rule("n > 1") + rule("n > 2"), "4:1: the code MEM101 is already used at t.rules:10"),
    "knob without a fact": ("knob mem_fractoin 0.1 .. 0.9 step 0.1",
                            "1:1: unknown fact 'mem_fractoin'; did you mean 'mem_fraction'?"),
    "knob of a key, with values": ("knob $.a [1]", "1:1: a key has no type, so its knob takes any value that a rule asks for: write any"),
    "knob downwards": ("knob mem_fraction 0.9 .. 0.1 step 0.1", "1:1: a knob goes from a lower to a higher value in steps above zero"),
    "knob of another type": ("knob mem_fraction [true]", "1:20: true is a boolean, but a fraction is expected here: write a number"),
    "knob keeping nothing": ("knob n halving to 1 keeping batch", "1:1: unknown name 'batch'"),
    "knob in exchange for nothing": ("knob n halving to 1 keeping gpu.vram with m", "1:1: unknown fact 'm'"),
    "knob that loses more than it may": ("knob n any costs 2 time 30 .. 20 %",
                                         "1:20: what is lost is a share, from a lower to a higher one, such as 20 .. 30 %"),
    "knob that loses no share": ("knob n any costs 2 time 2 .. 3 GiB", "1:20: what is lost is a share, from a lower to a higher one, such as 20 .. 30 %"),
    "knob that loses what nobody counts": ("knob n any costs 2 tiem", "1:20: no kind of loss is named 'tiem'; did you mean 'time'?"),
    "knob to a value that it lacks": ("knob dtype [fp16]\n  to bf16 costs 2", "2:6: bf16 is not a value of knob dtype; its values are [fp16]"),
    "knob under no condition": ("knob n halving to 1\n  down when n costs 2", "2:13: n is a count, but a boolean is expected here: write n > 0"),
    "knob under a condition on nothing": ("knob n halving to 1\n  when nn > 1 costs 2", "2:8: unknown name 'nn'; a key of the file is written $.nn"),
    "knob to a value of none": ("knob n halving to 1 to 3 costs 2", "1:24: 3 is not a value of knob n; it lists none"),
    "tie of nothing": ("framework f {\n  tied nn with $.ref.n\n}", "2:3: unknown fact 'nn'; did you mean 'n'?"),
    "write of nothing": (
        "framework f {\n  write nn 1 as $.a: 1\n}",
        "2:3: unknown fact 'nn'; did you mean 'n'?",
    ),
    "write of another type": ('framework f {\n  write n "x" as $.a: 1\n}', '2:11: "x" is a text, but a count is expected here: write a number, without quotes'),
    "write of an unknown name": ("framework f {\n  write n 1 as $.a: full\n}", "2:21: unknown name 'full'; a key of the file is written $.full"),
    "write when nothing": ("framework f {\n  write n 1 as $.a: 1 when n\n}", "2:28: n is a count, but a boolean is expected here: write n > 0"),
    "write of any item": ("framework f {\n  write n 1 as $.a[*].b: 1\n}", "2:16: a key that is written has no [*] but at its end, for one more item"),
    "write without a key": ("framework f {\n  write n 1 as a: 1\n}", "2:16: 'a' is not allowed here; expected 'not' or a key like $.a.b"),
    "tie without a key": ("framework f {\n  tied n with m\n}", "2:15: 'm' is not allowed here; expected a key like $.a.b"),
    "unknown framework": ("rule MEM101 too-much error for arael { n > 1 }\nframework areal {\n}",
                          "1:32: unknown framework 'arael'; did you mean 'areal'?"),
    "unknown dialect": ("framework f {\n  dialect pyaml\n}", "2:3: unknown dialect 'pyaml'; did you mean 'pyyaml'?"),
    "binding of nothing": ("framework f {\n  nn <- $.n\n}", "2:3: unknown name 'nn'; did you mean 'n'?; declare it with fact"),
    "binding of another type": ("framework f {\n  n <- $.a == 2\n}", "2:8: $.a == 2 is a boolean, but a count is expected here"),
    "default of another type": ("framework f {\n  n <- $.a default 3 GiB\n}", "2:20: 3 GiB is a memory, but a count is expected here: write 3, without GiB"),
    "default twice": ("framework f {\n  n <- $.a default 3 default 4\n}", "2:22: default is said twice"),
    "circle in bindings alone": ("fact m: count\nframework f {\n  m <- n\n  n <- m\n}",
                                 "3:3: under f, cyclic definition: m -> n -> m"),
    "circle of bindings": ("let n = m\nfact m: count\nframework f {\n  m <- $.m default n\n}",
                           "4:3: under f, cyclic definition: m -> n -> m"),
    "hole of nothing": (rule('n > 1\n  say "ab {n} {gpu.vrm}"'), "3:16: unknown name 'gpu.vrm'; did you mean 'gpu.vram'?"),
    "hole behind an escape": (rule('n > 1\n  say "\\"ab\\" {gpu.vrm}"'), "3:16: unknown name 'gpu.vrm'; did you mean 'gpu.vram'?"),
    "hole that does not parse": (rule('n > 1\n  say "ab {n +}"'), "3:15: a value is missing after +"),
    "hole without an end": (rule('n > 1\n  say "ab {n"'), "3:11: this { has no partner; a brace itself is written {{"),
    "empty hole": (rule('n > 1\n  say "ab {}"'), "3:12: the text ends too early"),
    "example of nothing": (rule("n > 1\n  bad { nn: 1 }"), "3:9: unknown name 'nn'; did you mean 'n'?"),
    "example of another type": (rule("n > 1\n  bad { n: 1 GiB }"), "3:12: 1 GiB is a memory, but a count is expected here: write 1, without GiB"),
    "example twice": (rule("n > 1\n  bad { n: 1, n: 2 }"), "3:15: this is given twice"),
    "rule without a requirement": ('rule MEM101 too-much error {\n  say "x"\n}',
                                   "1:1: rule MEM101 has no requirement; write CONDITION -> REQUIREMENT"),
    "two requirements": (rule("n > 1\n  n > 2"), "3:3: a rule has one requirement"),
    "at nothing": (rule("n > 1\n  at nn"), "3:6: unknown name 'nn'; did you mean 'n'?"),
    "registry by nothing": ("registry model from models by path", "1:1: unknown name 'path'"),
    "role without a field": ("role a { x: 1 }\nrole b { y: 2 }\nn > (sum r in roles: r.x)", "3:22: role b has no 'x'"),
    "roles as a list": ("n in roles", "1:6: unknown name 'roles'; write roles after `in`: sum r in roles: r.params"),
    "has of many": ("has($.a[*].b)", "1:5: has asks for one key; use any … in … for the items of a list"),
    "equality": ("n = 3", "1:3: write == instead of ="),
    "single quotes": ("name == 'a'", '1:9: write texts in "…"'),
    "open quotes": ('name == "a', "1:9: '\"' is not allowed here; this string has no closing quote on its line"),
    "an if inside": ("n == if colocated then 1 else 2", "1:6: inside an expression, if … needs brackets: (if …)"),
    "early end": ("n > ", "1:4: a value is missing after >"),
    "large number": ("n > 1" + "0" * 50, "1:5: this number is too long"),
    "infinite number": ("n > 1e999", "1:5: this number is too large"),
    "three loops": ("all a in items: (all b in items: (all c in items: true))",
                    "1:35: more than 2 quantifiers inside each other take too long"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.replace(" ", "-"))
def test_complaint(case: str) -> None:
    text, expected = CASES[case]
    assert complaints(text)[0] == expected


# Habits of other languages: what is written, at which column, and what is to be written.
HABITS = (
    ("n > 8 && colocated", 7, "and instead of &&"),
    ("n > 8 & colocated", 7, "and instead of &"),
    ("n > 8 AND colocated", 7, "and instead of AND"),
    ("n > 8 || colocated", 7, "or instead of ||"),
    ("n > 8 | colocated", 7, "or instead of |"),
    ("n > 8 Or colocated", 7, "or instead of Or"),
    ("!colocated", 1, "not instead of !"),
    ("!(n > 8)", 1, "not instead of !"),
    ("NOT colocated", 1, "not instead of NOT"),
    ("n > 8 => colocated", 7, "-> instead of =>"),
    ("n > 8 → colocated", 7, "-> instead of →"),
    ("n > 8 implies colocated", 7, "-> instead of implies"),
    ("n > 8 --> colocated", 7, "-> instead of -->"),
    ("let x == 3", 7, "= instead of =="),
    ("let x := 3", 7, "= instead of :="),
    ("let f(a, b) := a", 13, "= instead of :="),
    ("n = 8", 3, "== instead of ="),
    ("n === 8", 3, "== instead of ==="),
    ("$.a is true", 5, "== instead of is"),
    ("$.a is not null", 5, "!= instead of is not"),
    ("dtype is in [bf16]", 7, "in instead of is in"),
    ("n <> 8", 3, "!= instead of <>"),
    ("n !== 8", 3, "!= instead of !=="),
    ("n ≤ 8", 3, "<= instead of ≤"),
    ("n ≥ 8", 3, ">= instead of ≥"),
    ("n ≠ 8", 3, "!= instead of ≠"),
    ("n \u00d7 2 > 8", 3, "* instead of \u00d7"),
    ("n · 2 > 8", 3, "* instead of ·"),
    ("n % 8 == 0", 3, "mod instead of %"),
    ("8 % 3 == 0", 3, "mod instead of %"),
    ("n // 8 == 2", 3, "floor(… / …) instead of //"),
    ("n ** 2 > 8", 3, "x * x instead of **"),
    ("(if colocated then 1 elif n > 1 then 2 else 3) > 1", 22, "else (if … then … else …) instead of elif"),
    ("colocated ? 1 : 2", 11, "if … then … else … instead of ?"),
    ("n between 4 and 8", 3, "in 4 .. 8"),
    ("colocated == True", 14, "true instead of True"),
    ("colocated == FALSE", 14, "false instead of FALSE"),
    ("$.a == None", 8, "null instead of None"),
    ("n > 8;", 6, "a new line instead of ;"),
    ("// a comment", 1, "# instead of //"),
    ("name == 'a'", 9, 'texts in "…"'),
)


@pytest.mark.parametrize(("text", "column", "instead"), HABITS, ids=[habit[0] for habit in HABITS])
def test_habits_of_other_languages(text: str, column: int, instead: str) -> None:
    assert complaints(f"{text}\n") == [f"1:{column}: write {instead}"]
    head = "rule MEM101 a error {\n  "
    if not text.startswith(("let", "//")):
        assert complaints(f"{head}{text}\n}}\n") == [f"2:{column + 2}: write {instead}"]


def test_a_bare_key_of_a_file() -> None:
    for name in ("learning_rate", "training.lr"):
        told = complaints(f"{name} <= 1e-7")
        assert told == [f"1:1: unknown name '{name}'; a key of the file is written $.{name}"]


def test_a_syntax_error_hides_no_other_mistake() -> None:
    text = "let a = 1 &&\ngpu.vrm < 48\n" + rule("n > 1 and") + "mem_fractoin < 0.5 -> colocated\n"
    assert complaints(text) == [
        "1:11: write and instead of &&",
        "2:1: unknown name 'gpu.vrm'; did you mean 'gpu.vram'?",
        "4:12: a condition is missing after and",
        "6:1: unknown name 'mem_fractoin'; did you mean 'mem_fraction'?",
    ]
    with pytest.raises(RulesError) as error:
        load({"a.rules": "let = 1", "b.rules": "nosuch > 1"}, ["1 <"])
    assert [c.path for c in error.value.complaints] == ["--rule 1", "a.rules", "b.rules"]


@pytest.mark.parametrize(
    "text",
    [
        "let a = 1 &&\na > 2\nlet b = a + 1\nb > 2 -> colocated",
        "let a(x) = x &&\na(2) > 2",
        "fact a: one off x, y\na == x -> colocated",
        "fact a: one off x, y\nlet b = if colocated then a else x\nb == y -> colocated",
        "role critic { size: 1 && }\ncritic.size > 2",
        "registry model from models byy n\nn > 1",
        "framework f {\n  a: count <- $.a &&\n}\na > 2\n" + "rule MEM101 x error for f { n > 1 }",
        "framework f {\n  n <- $.a &&\n}\nfor f\nrule MEM101 x error { n > 1 }\nrule MEM102 y error { n > 2 }",
        "let a = 1 &&\nwhere a > 1\nrule MEM101 x error { n > 1 }\nrule MEM102 y error { n > 2 }",
        "table sizes: bytes {\n  a &&: 1\n}\nsizes.bytes(name) > 2",
        "prefix run &&\nfact .a: count\n.a > 2\nrun.a > 3\nother.a > 3",
        "for f &&\nrule MEM101 x error >= v1.0 { n > 1 }",
        "each a in x, y &&  {\n  fact {a}.b: count\n}\nx.b > 1",
    ],
)
def test_a_broken_statement_has_no_follow_ups(text: str) -> None:
    (only,) = complaints(text)
    assert "unknown" not in only


def test_what_a_section_says_wrongly_is_told_once() -> None:
    rules = "rule MEM101 x error { n > 1 }\nrule MEM102 y error { n > 2 }"
    (only,) = complaints(f"for nosuch\n{rules}")
    assert only.startswith("1:5: unknown framework 'nosuch'")
    assert len(complaints(f"where nosuch > 1\n{rules}")) == 1


def test_all_mistakes_of_a_file_are_told_in_its_order() -> None:
    told = complaints("let a = = 1\nn > 1\nfact x memory\nframework f {\n  n <-\n}\nn > 2 -> \n")
    assert [line.split(":")[0] for line in told] == ["1", "3", "5", "7"]
    told = complaints("let a = nosuch\nn > timeout\nfact x: nothing\n" + rule("n > 1\n  bad { q: 1 }"))
    assert [line.split(":")[0] for line in told] == ["1", "2", "3", "6"]


def test_all_files_are_told() -> None:
    with pytest.raises(RulesError) as error:
        load({"a.rules": "let = 1", "b.rules": "x = 1"}, ["1 <", "a b"])
    assert [c.path for c in error.value.complaints] == ["--rule 1", "--rule 2", "a.rules", "b.rules"]
    with pytest.raises(RulesError) as error:
        load({"a.rules": "nosuch.a > 1", "b.rules": "nosuch.b > 1"}, ["nosuch.c > 1"])
    assert [c.path for c in error.value.complaints] == ["--rule 1", "a.rules", "b.rules"]


@pytest.mark.parametrize(
    "line",
    ["let a{} = = 1", "gpu.vrm{} < 3", pytest.param("let a{} = gpu.vram + timeout", marks=pytest.mark.long)],
)
def test_a_thousand_mistakes_are_counted_and_the_first_twenty_shown(line: str) -> None:
    with pytest.raises(RulesError) as error:
        load({"t.rules": "\n".join(line.format(i) for i in range(1000))})
    shown = str(error.value).splitlines()
    assert len(error.value.complaints) == 1000
    assert len(shown) == 21
    assert "980 more" in shown[-1]


HOSTILE = {
    "brackets": "x == " + "(" * 10_000 + "1" + ")" * 10_000,
    "not": "not " * 10_000 + "true",
    "minus": "1 == " + "- " * 10_000 + "1",
    "conditions": "if true then 1 else " * 5_000 + "2",
    "lists": "1 in " + "[" * 5_000,
    "newlines": "let a = 1" + "\n" * 300_000 + "  and 2",
    "comments": "#\n" * 200_000 + "nosuch > 1",
    "nothing but bytes": "\x00\x01\x7f" * 100_000,
    "too long": "let a = 1 #" + "x" * 2**20,
    "one line": "true and " * 20_000 + "nosuch",
    "chain of lets": "let a0 = 1\n" + "".join(f"let a{i + 1} = a{i} + 1\n" for i in range(2_000)),
    "doubling functions": "let f0(x) = x + x\n"
    + "".join(f"let f{i + 1}(x) = f{i}(x) + f{i}(x)\n" for i in range(40)),
    "capture of braces": 'true\nrule MEM101 a error { true\n say "' + "{" * 9_999 + '" }',
    "open strings": '"' * 20_001,
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused_in_bounded_time(case: str) -> None:
    with pytest.raises(RulesError) as error:
        load({"t.rules": HOSTILE[case]})
    assert error.value.complaints
    assert all(c.line >= 1 and c.column >= 1 for c in error.value.complaints)


def test_files_that_are_no_rule_files(tmp_path: Path) -> None:
    binary = tmp_path / "a.rules"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="UTF-8"):
        read_rules([str(binary)])
    with pytest.raises(UsageError, match="no such"):
        read_rules([str(tmp_path / "nowhere.rules")])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="has no"):
        read_rules([str(tmp_path / "empty")])
    marked = tmp_path / "b.rules"
    marked.write_bytes(b"\xef\xbb\xbf1 < 2\r\n")
    assert load(read_rules([str(marked)])).rules[-1].code == "USR001"


# ── what is large is compiled to what is long, not to what is deep ──────────────────────────────────────────
LARGE = {
    "right-nested and": "n > 0 and (" * 16 + "n > 1" + ")" * 16,
    "deep brackets": "(" * 50 + "n" + ")" * 50 + " > 1",
    "sum of 1,000 terms": " + ".join(["n"] * 1_000) + " > 1",
    "sum of 1,000 memories": " + ".join(["gpu.vram", "1 GiB"] * 500) + " > 1",
    "and of 1,000 terms": " and ".join(["n > 0"] * 1_000),
    "or of 1,000 terms": " or ".join(["n == 0"] * 1_000),
    "product of 1,000 factors": " * ".join(["n"] * 1_000) + " > 1",
    "list of 1,000 items": "n in [" + ", ".join(map(str, range(1_000))) + "]",
    "chain of 200 comparisons": " < ".join(["n"] * 200),
    "match of 300 arms": "(match n {" + ", ".join(f"{i}: {i}" for i in range(300)) + ", else: 1}) > 0",
    "nested if": "(if n > 1 then 1 else " * 50 + "0" + ")" * 50 + " > 0",
    "nested not": "not " * 50 + "n > 1",
    "nested chains": "(if 1 < " * 20 + "n" + " < 9 then 1 else 2)" * 20 + " == 1",
    "nested ranges": "(if " * 20 + "n" + " in 1 .. 3 then 2 else 4)" * 20 + " == 2",
    "nested match": "(match n { 1: " * 20 + "2" + ", else: 0 })" * 20 + " > 1",
}


@pytest.mark.parametrize("case", LARGE)
def test_large_rules_compile_to_linear_source(case: str) -> None:
    source, *_ = Builder(Symbols()).build(read_sources({"t.rules": FACTS + LARGE[case]}, []))
    compile(source, "<t>", "exec")
    assert len(source) < 150 * len(LARGE[case]) + 5_000


def test_three_hundred_rules_compile() -> None:
    text = "".join(
        f"rule MEM{i:03} rule-{i} error {{\n  colocated and n > {i} -> mem_fraction * gpu.vram + {i} <= gpu.vram\n"
        f'  say "{{gpu.vram}} of {i}"\n  bad {{ n: 9, colocated: true }}\n}}\n'
        for i in range(300)
    )
    source, *_ = Builder(Symbols()).build(read_sources({"t.rules": FACTS + text}, []))
    compile(source, "<t>", "exec")
    assert len(source) < 300 * 1_500


# ── patterns ────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("", "", {}),
        ("*", "", {}),
        ("a*", "abc", {}),
        ("a*c", "abcb", None),
        ("*a*b", "aabb", {}),
        ("?b?", "abc", {}),
        ("??", "a", None),
        ("sglang.d{d:int}p{p:int}t{t:int}", "sglang.d4p1t2", {"d": 4, "p": 1, "t": 2}),
        ("*t{n:int}*", "d4t12+x", {"n": 12}),
        ("*{n:int}", "abc12", {"n": 12}),
        ("*{n:int}b*", "1a22b", {"n": 22}),
        ("{w:word}:*", "sglang:d4", {"w": "sglang"}),
        ("{:word}/{w:word}", "Qwen/Qwen2.5-7B", {"": "Qwen", "w": "Qwen2.5-7B"}),
        ("*{n:int}*", "1" * 30, None),
        ("{n:int}", "٣", None),
    ],
)
def test_pattern(pattern: str, text: str, found: dict[str, object] | None) -> None:
    assert match(compile_pattern(pattern), text) == found


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("*a" * 200 + "b", "a" * 100_000),
        ("*" * 1_000 + "b", "a" * 100_000),
        ("*{:int}x" * 50, "1" * 100_000),
        ("*{n:int}x*", "1" * 100_000),
        ("*{w:word}!*", "a-" * 50_000),
        ("*" + "a" * 500 + "b*", "a" * 100_000),
        ("*?" * 300 + "b", "a" * 100_000),
    ],
)
def test_patterns_take_linear_time(pattern: str, text: str) -> None:
    pieces = compile_pattern(pattern)
    assert match(pieces, text) is None


def test_loading_compiled_rules_imports_no_compiler() -> None:
    load()  # fills the cache
    code = (
        "import sys; from cfglint.lang.pack import load; pack = load(); "
        "print([m for m in sys.modules if m.split('.')[0] in ('lark', 'dataclasses', 'typing', 'fractions', 'pickle', 're')"
        " or (m.startswith('cfglint.lang.') and m.split('.')[-1] not in ('pack', 'runtime', 'values', 'pattern', 'versions'))])"
    )
    path = str(Path(__file__).resolve().parents[1] / "linter")
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", f"import sys; sys.path.insert(0, {path!r}); {code}"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
