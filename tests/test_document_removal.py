"""A removal takes a key away and no other byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfglint.document.reading import read_text
from cfglint.document.removal import remove_keys
from cfglint.document.scalars import PYYAML
from cfglint.document.view import View
from cfglint.text import apply_edits
from tiers import tried


def removed(text, *paths, name="c.yaml"):
    wanted = [tuple(int(part) if part.isdigit() else part for part in path.split(".")) for path in paths]
    edits = remove_keys(read_text(text, name).documents[0], wanted)
    return None if edits is None else apply_edits(text, edits)


@pytest.mark.parametrize(
    ("text", "paths", "expected"),
    [
        pytest.param("a: 1\nb: 2  # c\nc: 3\n", "b", "a: 1\nc: 3\n", id="a line with its comment"),
        pytest.param("# of b\nb: 2\na: 1\n", "b", "# of b\na: 1\n", id="a comment above stays"),
        pytest.param("a: 1\nb: 2", "b", "a: 1", id="no final newline"),
        pytest.param("a: 1\r\nb: 2\r\n", "a", "b: 2\r\n", id="crlf"),
        pytest.param("a: 1\r\nb: 2\r\nc: 3", "b c", "a: 1\r\n", id="the last two"),
        pytest.param("a:\nb: 1\n", "a", "b: 1\n", id="an empty value"),
        pytest.param("a: 'x\n  y'\nb: 1\n", "a", "b: 1\n", id="a value of two lines"),
        pytest.param("a:\n- 1\n- 2\nb: 1\n", "a", "b: 1\n", id="a list"),
        pytest.param("a: 1\nd:\n  x: 1\nc: 3\n", "d.x", "a: 1\nc: 3\n", id="the last key of a mapping"),
        pytest.param("a: 1\nd:\n  x: 1\n  y: 2\n", "d.x d.y", "a: 1\n", id="all keys of a mapping"),
        pytest.param("d:\n  x: 1\n", "d.x", None, id="the only key of the file"),
        pytest.param("a: 1\n", "a", None, id="the last key of the file"),
        pytest.param("a: 1\nd:\n  e:\n    x: 1\n", "d.e.x", None, id="two mappings would go"),
        pytest.param("l:\n- a: 1\n  b: 2\n", "l.0.a", "l:\n- b: 2\n", id="first in an item"),
        pytest.param("l:\n- a: 1\n  # c\n  b: 2\n", "l.0.a", None, id="first in an item, a comment below"),
        pytest.param("l:\n- a: 1\n  b: 2\n", "l.0.b", "l:\n- a: 1\n", id="last in an item"),
        pytest.param("l:\n- a: 1\n", "l.0.a", None, id="alone in an item"),
        pytest.param("{a: 1, b: 2, c: 3}", "a c", "{b: 2}", id="flow"),
        pytest.param("d: {a: 1, b: 2,}\n", "d.b", "d: {a: 1,}\n", id="trailing comma"),
        pytest.param("d: {\n  a: 1, # c\n  b: 2}\n", "d.b", None, id="a comment between"),
        pytest.param("d: {a: 1}\ne: 1\n", "d.a", "e: 1\n", id="the last between braces"),
        pytest.param("a: &x 1\nb: *x\n", "a", None, id="what an alias reads"),
        pytest.param("a: &x 1\nb: *x\n", "b", "a: &x 1\n", id="an alias"),
        pytest.param("a: &x {y: 1}\nb: *x\n", "b.y", None, id="through an alias"),
        pytest.param("a: &x {y: 1}\nb:\n  <<: *x\n  z: 1\n", "b.y", None, id="through a merge"),
        pytest.param("a: |\n  t\nb: 1\n", "a", None, id="a literal"),
        pytest.param("? a\n: 1\nb: 2\n", "a", None, id="an explicit key"),
        pytest.param("a: 1\n", "b", None, id="not there"),
    ],
)
def test_yaml(text, paths, expected):
    assert removed(text, *paths.split()) == expected


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ('{\n  "a": 1,\n  "b": {"x": 2}\n}\n', "b.x", '{\n  "a": 1\n}\n'),
        ('{\n  "a": 1,\n  "b": 2\n}\n', "a", '{\n  "b": 2\n}\n'),
        ('{"a":1,"b":[1,{"c":2,"d":3}]}', "b.1.c", '{"a":1,"b":[1,{"d":3}]}'),
        ('{"a": 1}', "a", None),
    ],
)
def test_json(text, path, expected):
    assert removed(text, path, name="c.json") == expected


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("a = 1\n[t]\nx = 1 # c\ny = 2\n", "t.x", "a = 1\n[t]\ny = 2\n"),
        ("[t]\nx = [\n 1,\n 2]\ny = 1", "t.x", "[t]\ny = 1"),
        ("t = {x = 1, y = 2}\n", "t.y", "t = {x = 1}\n"),
        ("[t]\nx = 1\n", "t.x", None),
        ("a.b = 1\na.c = 2\n", "a.b", None),
    ],
)
def test_toml(text, path, expected):
    assert removed(text, path, name="c.toml") == expected


_SCRIPT = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py \\\n    --bf16 \\\n    --fp16 \\\n"
    "    --num-layers 4 --hidden-size 64 \\\n    --seq-length 128 --lr='1e-4'\n"
)


@pytest.mark.parametrize(
    ("flag", "old", "new"),
    [
        ("bf16", "    --bf16 \\\n", ""),
        ("num_layers", "--num-layers 4 ", ""),
        ("hidden_size", " --hidden-size 64", ""),
        ("seq_length", "--seq-length 128 ", ""),
        ("lr", " --lr='1e-4'", ""),
    ],
)
def test_a_flag(flag, old, new):
    assert removed(_SCRIPT, flag, name="r.sh") == _SCRIPT.replace(old, new)


def test_the_last_line_of_a_command():
    text = "torchrun pretrain_gpt.py \\\n    --bf16 \\\n    --num-layers 4\necho done\n"
    assert removed(text, "num_layers", name="r.sh") == "torchrun pretrain_gpt.py \\\n    --bf16\necho done\n"


@pytest.mark.parametrize(
    "text",
    [
        "N=4\ntorchrun pretrain_gpt.py --bf16 --num-layers $N\n",
        "A='--num-layers 4'\ntorchrun pretrain_gpt.py --bf16 \"$A\"\n",
        'torchrun pretrain_gpt.py --bf16 --num-layers "4"x\n',
    ],
)
def test_a_flag_that_is_put_together_is_not_cut_in_two(text):
    got = removed(text, "num_layers", name="r.sh")
    assert got is None or ("--num-layers" not in got and '"x' not in got and "=''" not in got)


# ── whatever is in the file ────────────────────────────────────────────────────────────────────────────────
_NAMES = st.sampled_from(("a", "b", "c", "lr", "zero_stage"))
_LEAVES = st.one_of(st.integers(0, 99), st.booleans(), st.sampled_from(("x", "fp16")))
_TREES = st.recursive(
    st.dictionaries(_NAMES, _LEAVES, min_size=1, max_size=4),
    lambda inner: st.dictionaries(_NAMES, st.one_of(_LEAVES, inner), min_size=1, max_size=4),
    max_leaves=8,
)


def leaves(tree, above=()):
    for key, value in tree.items():
        yield from leaves(value, (*above, key)) if isinstance(value, dict) else [(*above, key)]


def without(tree, gone, above=()):
    """Return a tree without some leaves, and without what has none left."""
    kept = {}
    for key, value in tree.items():
        path = (*above, key)
        new = without(value, gone, path) if isinstance(value, dict) else value
        if path not in gone and new != {}:
            kept[key] = new
    return kept


def block(tree, draw, depth=0):
    lines = []
    for key, value in tree.items():
        lead = "  " * depth + f"{key}:"
        if not isinstance(value, dict):
            lines.append(f"{lead} {json.dumps(value)}{draw(st.sampled_from(('', '  # why')))}")
        elif draw(st.booleans()):
            lines.append(f"{lead} {json.dumps(value)}")
        else:
            lines += [lead, *block(value, draw, depth + 1)]
    return lines


def read(text, name, paths):
    document = read_text(text, name).documents[0]
    assert document.error is None
    view = View(document, PYYAML)
    return {path: view.get(path) if view.has(path) else "absent" for path in paths}


@settings(max_examples=tried(300), deadline=None)
@given(st.data())
def test_the_rest_says_what_it_said(data):
    tree = data.draw(_TREES)
    name = data.draw(st.sampled_from(("c.yaml", "c.json")))
    indent = data.draw(st.sampled_from((None, 2)))
    text = (
        json.dumps(tree, indent=indent)
        if name == "c.json"
        else "\n".join(block(tree, data.draw)) + data.draw(st.sampled_from(("", "\n")))
    )
    paths = list(leaves(tree))
    gone = data.draw(st.lists(st.sampled_from(paths), min_size=1, max_size=3, unique=True))
    edits = remove_keys(read_text(text, name).documents[0], gone)
    if edits is None:
        rest = without(tree, gone)
        assert not rest or any(len(path) > 1 for path in gone)  # what would take a mapping along
        return
    assert all(not edit.new for edit in edits)
    again = apply_edits(text, edits)
    before, after = read(text, name, paths), read(again, name, paths)
    assert after == {path: "absent" if path in gone else before[path] for path in paths}
    if name == "c.json":
        assert json.loads(again) == without(tree, gone)
