"""How a rule comes out on a file: the tree of values, formulas and origins, and what moves the result."""

from __future__ import annotations

import json

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.features.explain.compute import Deriver
from cfglint.features.explain.page import as_json, as_text, fold
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import Pack, _Layer
from cfglint.record import replace
from cfglint.report import Style

RULES = """
fact gpu.vram: memory "of one GPU"
fact t.share: fraction "a share"
fact t.size: memory "a size"
fact t.engine: one of left, right "which"
fact t.level: count 0 .. "a level"
fact t.saving: bool "saves"
fact t.batch: count 1 .. "a batch"
fact t.wait: duration "a wait"
fact t.nope: memory "nobody gives it"
fact t.limit: memory "a limit"
fact t.name: text "a model"
fact kind.width: count 1 .. "of a model"
registry kind from kinds by t.name
let big.there = t.level > 2
let small.size = 1 GiB
let twice(part) = 2 * part
let scaled(part, factor) = if factor > 1 then part * factor else part
let t.base = match t.engine { left: t.size / 2, right: t.size }
let t.acts = if t.saving then scaled(t.base, 2) / 4 else scaled(t.base + small.size, 2)
let t.peak = max(t.acts, twice(t.base), 1)
let t.range = 1..2 GiB
let t.roles = sum r in roles: r.size * t.batch
let t.total = t.peak + t.roles + t.range + (if known(t.nope) then 1 GiB else 0 GiB)
let t.either = if t.nope > 1 then t.base else small.size
let t.saving = false
role small { size: small.size }
role big when big.there { size: twice(small.size) }
role huge when t.level > 100 { size: 9 GiB }
knob t.saving true costs 2 "slow"
knob t.share 0.1 .. 0.9 step 0.1
  down costs 1 per step "x"
  up costs 1 per step "x"
knob t.batch halving to 1 costs 2 "z"
knob t.engine [left, right] costs 1 "e"
framework alpha {
  dialect omegaconf
  detect has($.alpha)
  t.share <- $.alpha.left_share when t.engine == left default 0.3 "args.py:12"
  t.share <- $.alpha.right_share when t.engine == right default 0.6
  t.size <- $.alpha.size default 10 null -> 5
  t.engine <- $.alpha.engine
  t.level <- $.alpha.level
  t.batch <- $.alpha.batch default 4 "args.py:99"
  t.wait <- $.alpha.wait_ms * 1 ms
  t.limit <- $.alpha.limit
  t.name <- $.alpha.name
  let t.own = t.level + 1
}
framework beta {
  detect has($.beta)
}
rule PRF901 total-fits error { t.level >= 1 -> t.total <= t.share * gpu.vram
  say "total {t.total}" }
rule PRF902 ports error { all s in $.alpha.servers: s.port >= 1024 and (any u in s.users: u.id < t.level) }
rule PRF903 limits info { t.total <= t.limit and t.wait < 1 h }
rule PRF904 raw info { $.alpha.level * 2 <= 4 }
rule PRF905 biggest info { t.level < 100 -> (max r in roles: r.size) <= 1.5 GiB }
rule PRF906 either info { t.either <= 3 GiB }
rule PRF907 widths info { kind.width <= 8 }
rule PRF908 old info for beta > v1.0 { t.level < 1 }
rule PRF909 words info { t.level == 3 -> t.engine == right }
rule PRF910 least info { min(t.level, 2, t.batch) >= 2 and not has($.alpha.no) }
rule PRF911 many info { (count s in $.alpha.servers: s.port < 1024) == 0 }
rule PRF912 shadows info { all y in $.alpha.servers: nested(y.port) }
let nested(port) = any y in [1, 2]: y + port > 8081
"""
CONFIG = """\
alpha:
  engine: left
  size: ${sizes.main}
  level: 3
  wait_ms: 5000
  name: pea
  servers:
    - {port: 80, users: [{id: 1}, {id: 7}]}
    - {port: 8080, users: [{id: 9}]}
    - {port: 8081, users: [{id: 2}]}
sizes: {main: 8}
"""
TABLES = {"kinds": {"pea": {"width": 9}}.get}


@pytest.fixture(scope="module")
def pack():
    pack = Pack()
    layer = _Layer(
        "test-explain", None, lambda: {"t.rules": RULES}, {"t.rules": RULES}
    )  # without the shipped rules and their roles
    pack.add(layer.code(), layer.trees)
    return pack


@pytest.fixture
def derive(pack):
    def of(code, text=CONFIG, gpu="a40", overrides=()):
        run = Run(pack, [parse_target(gpu)] if gpu else [], overrides=overrides, tables=TABLES)
        (subject,) = run.subjects(read_text(text, "a.yaml"), judge_broken=True)
        (one,) = run.judged(subject)
        return Deriver(run, one, code).derivation()

    return of


def page(derivation, depth=20, **how):
    return as_text([derivation], depth, Style(**how))


def every(derivation):
    found, waiting = {}, [n for n in (derivation.condition, derivation.requirement) if n]
    while waiting:
        node = waiting.pop(0)
        found.setdefault(node.name, node)
        waiting += [child.node for child in node.children]
    return found


def marks(node):
    return {child.node.name: child.mark for child in node.children}


# ── values, formulas, origins ──────────────────────────────────────────────────────────────────────────────


def test_the_verdict_and_the_message_come_first(derive):
    found = derive("PRF901")
    assert (found.verdict, found.message) == ("breaks", "total 23–24 GiB")
    assert page(found).startswith("PRF901 total-fits (error): breaks on a40\na.yaml, alpha\n")


def test_a_formula_and_the_numbers_put_in(derive):
    node = every(derive("PRF901"))["t.total"]
    assert node.text == "23–24 GiB"
    assert node.formula == "t.peak + t.roles + t.range + 0 GiB"
    assert node.numbers == "10 GiB + 12 GiB + 1–2 GiB + 0 GiB"
    assert node.origin.source.startswith("t.rules:")


@pytest.mark.parametrize(
    ("name", "kind", "source", "line"),
    [
        ("t.level", "file", "line 4", 4),
        ("t.size", "file", "line 11 through ${sizes.main}", 11),
        ("t.share", "default", "default of alpha (args.py:12)", None),
        ("gpu.vram", "target", "catalogue", None),
        ("t.nope", "missing", "not set", None),
    ],
)
def test_where_a_value_comes_from(derive, name, kind, source, line):
    origin = every(derive("PRF901"))[name].origin
    assert (origin.kind, origin.line) == (kind, line)
    assert origin.source.startswith(source)


def test_an_override_and_a_null_say_so(derive):
    nodes = every(derive("PRF901", overrides=["alpha.level=2", "alpha.size=null"]))
    assert nodes["t.level"].origin.source == "--set alpha.level=2"
    assert nodes["t.size"].text == "5 GiB"
    assert nodes["t.size"].chosen == ("$.alpha.size is null",)


def test_what_is_missing_says_what_would_give_it(derive):
    found = derive("PRF903")
    assert found.verdict == "undecided"
    assert found.because == "t.limit"
    assert every(found)["t.limit"].origin.source == "not in the file: set $.alpha.limit"
    without = derive("PRF901", gpu=None)
    assert without.verdict == "undecided"
    assert every(without)["gpu.vram"].origin.source == "not set: --gpu NAME"


def test_a_figure_of_a_table_names_its_key(derive):
    node = every(derive("PRF907"))["kind.width"]
    assert (node.text, node.origin.kind) == ("9", "registry")
    assert [(c.label, c.node.name, c.node.text) for c in node.children] == [("by", "t.name", '"pea"')]
    other = derive("PRF907", overrides=["alpha.name=bean"])
    assert other.verdict == "undecided"


def test_a_binding_with_a_formula(derive):
    node = every(derive("PRF903"))["t.wait"]
    assert (node.text, node.formula, node.numbers) == ("5 s", "$.alpha.wait_ms * 1 ms", "5000 * 1 ms")
    assert node.origin.line == 5
    assert not node.children


# ── branches, functions, extremes ──────────────────────────────────────────────────────────────────────────


def test_branches_that_are_not_taken_are_left_out(derive):
    nodes = every(derive("PRF901"))
    assert nodes["t.base"].formula == "t.size / 2"
    assert nodes["t.base"].chosen == ("t.engine is left",)
    assert nodes["t.acts"].chosen[0] == "t.saving is false"
    assert "t.saving" in marks(nodes["t.acts"])


def test_an_open_condition_leaves_both_branches(derive):
    node = every(derive("PRF906"))["t.either"]
    assert node.text == "1–4 GiB"
    assert node.chosen == ("t.nope > 1 is undecided",)
    assert {"t.base", "small.size", "t.nope"} <= set(marks(node))


def test_a_call_shows_its_arguments_and_its_body(derive):
    node = every(derive("PRF901"))["t.acts"]
    assert node.formula == ("scaled(t.base + small.size, 2) = scaled(part: 5 GiB, factor: 2) = part * factor")
    assert node.numbers == "5 GiB * 2"
    (argument, *_) = node.children
    assert (argument.label, argument.node.name, argument.node.text) == (
        "part",
        "t.base + small.size",
        "5 GiB",
    )


def test_max_marks_the_largest(derive):
    node = every(derive("PRF901"))["t.peak"]
    assert node.numbers == "max(10 GiB, 8 GiB, 1)"
    assert marks(node) == {"t.acts": "largest", "twice(t.base)": "", "1": ""}


def test_min_marks_the_smallest(derive):
    nodes = every(derive("PRF910"))
    (requirement,) = [n for name, n in nodes.items() if name.startswith("min")]
    assert marks(requirement)["2"] == "smallest"
    assert nodes["has($.alpha.no)"].origin.source == "not in the file"


def test_members_of_an_enumeration_are_no_names(derive):
    found = derive("PRF909")
    assert set(marks(found.requirement)) == {"t.engine"}
    assert found.requirement.numbers == "left == right"


# ── roles and lists ────────────────────────────────────────────────────────────────────────────────────────


def test_roles_are_shown_one_by_one(derive):
    node = every(derive("PRF901"))["t.roles"]
    told = {c.node.name: (c.node.text, c.node.formula, c.node.chosen) for c in node.children}
    assert told == {
        "small": ("4 GiB", "small.size * t.batch", ()),
        "big": ("8 GiB", "big.size * t.batch", ("big.there is true",)),
        "huge": ("not set", "", ("t.level > 100 is false",)),
    }
    assert marks(every(derive("PRF905"))["max r in roles: r.size"])["big"] == "largest"


def test_items_of_a_list_are_shown_one_by_one(derive):
    found = derive("PRF902")
    told = {c.node.name: (c.node.text, c.mark) for c in found.requirement.children}
    assert told == {
        "$.alpha.servers": ("3 items", ""),
        "s = alpha.servers[0]": ("false", "fails"),
        "s = alpha.servers[1]": ("false", "fails"),
        "s = alpha.servers[2]": ("true", ""),
    }
    nodes = every(found)
    assert (nodes["s.port"].text, nodes["s.port"].origin.line) == ("80", 8)
    assert (nodes["u.id"].text, nodes["u.id"].origin.line) == ("9", 9)
    assert marks(every(derive("PRF911"))["count s in $.alpha.servers: s.port < 1024"]) == {
        "$.alpha.servers": "", "s = alpha.servers[0]": "counts", "s = alpha.servers[1]": "",
        "s = alpha.servers[2]": "",
    }  # fmt: skip


def test_a_variable_of_the_caller_is_not_taken_for_the_functions_own(derive):
    found = derive("PRF912")
    told = {c.node.name: c.node.text for c in found.requirement.children if c.node.name.startswith("y =")}
    assert told == {
        "y = alpha.servers[0]": "false", "y = alpha.servers[1]": "true", "y = alpha.servers[2]": "true",
    }  # fmt: skip
    second = every(found)["y = alpha.servers[1]"]
    inner = {c.node.name: (c.node.text, c.node.numbers) for c in second.children if c.mark or c.node.numbers}
    assert inner == {
        "y_ = item 1": ("false", "1 + 8080 > 8081"), "y_ = item 2": ("true", "2 + 8080 > 8081"),
    }  # fmt: skip


def test_a_long_list_is_cut(derive):
    items = "\n".join(f"    - {{port: {i}}}" for i in range(20))
    found = derive("PRF911", f"alpha:\n  servers:\n{items}\n")
    assert "… 12 more" in page(found)


# ── verdicts ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("code", "overrides", "verdict", "because"),
    [
        ("PRF901", ["alpha.level=0"], "does not apply", "t.level >= 1 is false (0 >= 1)"),
        ("PRF901", ["alpha.left_share=0.9"], "holds", ""),
        ("PRF901", ["alpha.left_share=0.53"], "may break", ""),
        ("PRF908", [], "does not apply", "it is for beta > v1; this file is for alpha"),
    ],
)
def test_verdicts(derive, code, overrides, verdict, because):
    found = derive(code, overrides=overrides)
    assert (found.verdict, found.because) == (verdict, because)
    assert verdict in page(found)


# ── what moves it ──────────────────────────────────────────────────────────────────────────────────────────


def test_moves_are_evaluated(derive):
    words = {node.name: [m.words() for m in node.moves] for node in derive("PRF901").leaves}
    assert words["t.saving"] == ["true: t.total 23–24 GiB -> 21–22 GiB"]
    assert words["t.batch"][0] == "down to 2 lowers t.total by about 6 GiB (23–24 GiB -> 17–18 GiB)"
    assert words["t.share"][1] == "up to 0.4 raises t.share * gpu.vram by 4.44 GiB (13.33 GiB -> 17.77 GiB)"
    assert words["t.size"][0].startswith("down to 4 GiB lowers t.total by about 4 GiB")
    assert words["t.engine"][0].startswith("right: t.total 23–24 GiB -> 31–32 GiB")
    assert "gpu.vram" not in words


def test_a_move_that_turns_the_verdict_comes_first(derive):
    (leaf,) = derive("PRF904").leaves
    assert leaf.moves[0].words().endswith("lowers $.alpha.level * 2 by 2 (6 -> 4), and then the rule holds")
    first = derive("PRF901", overrides=["alpha.left_share=0.5"]).leaves[0]
    assert any(move.turns for move in first.moves)


# ── the page ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_name_is_told_in_full_once(derive):
    text = page(derive("PRF901"))
    assert text.count("= t.size / 2") == 1
    assert "part = t.base  4 GiB  (above)" in text


def test_what_is_deeper_is_folded(derive):
    text = page(derive("PRF901"), depth=2)
    assert "t.peak   10 GiB   …" in text
    assert "t.acts" not in text
    assert "What changes" in text
    assert "t.saving  false" in text  # what moves the result is told however deep it lies
    trees = fold((derive("PRF901").requirement,), 2)
    assert {child.state for child in trees[0].children[0].children} == {"folded", "full"}


def test_a_name_folded_first_is_told_where_there_is_room(derive):
    # t.base is first met deep inside of t.acts, then as an argument of twice.
    found = derive("PRF901")
    trees = fold((found.condition, found.requirement), 5)
    states = []

    def visit(tree):
        if tree.node.name == "t.base":
            states.append(tree.state)
        for child in tree.children:
            visit(child)

    for tree in trees:
        visit(tree)
    assert "full" in states
    assert "folded" not in states[states.index("full") :]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_keep_to_the_width(derive, width):
    text = page(derive("PRF901"), width=width)
    assert max(map(len, text.splitlines())) <= width


def test_without_unicode(derive):
    text = page(derive("PRF901"), depth=1, unicode=False)
    text.encode("ascii")
    assert "|- t.total" in text
    assert "`- gpu.vram" in text


def test_colour_only_where_it_is_asked_for(derive):
    assert "\x1b[" not in page(derive("PRF901"))
    assert "\x1b[" in page(derive("PRF901"), color=True)


def test_json(derive):
    data = json.loads(as_json([replace(derive("PRF901"), alike=("l4",))], 3))
    assert (data["version"], data["code"], data["path"], data["target"]) == (1, "PRF901", "a.yaml", "a40")
    assert (data["verdict"], data["same_on"], data["others"]) == ("breaks", ["l4"], [])
    tree = data["tree"]
    assert tree["value"] is False
    total = tree["children"][1]["children"][0]
    assert (total["name"], total["unit"], total["state"]) == ("t.total", "B", "full")
    assert total["value"] == [23 * 2**30, 24 * 2**30]
    level = tree["children"][0]["children"][0]
    assert level["origin"] == {"kind": "file", "source": "line 4", "line": 4, "column": 10}
    assert level["moves"][0]["words"].startswith("down to 2")
    assert {move["name"] for move in tree["moves"]} >= {"t.saving", "t.batch", "t.level"}
