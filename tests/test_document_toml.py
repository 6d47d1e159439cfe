"""TOML to the same nodes: tomllib's values, every span its own spelling, edits that change nothing else."""

from __future__ import annotations

import datetime as dt
import math
import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfglint.document.edits import insert_key, replace_value, spell
from cfglint.document.reading import read, read_text
from cfglint.document.scalars import TOML, resolve
from cfglint.document.suppressions import suppressions
from cfglint.document.toml import parse_toml
from cfglint.document.tree import Mapping, Scalar, Sequence, walk
from cfglint.repair.notes import annotate
from cfglint.text import apply_edits
from tiers import tried

if sys.version_info >= (3, 11):
    from tomllib import loads
else:
    from tomli import loads

SHARED = os.environ.get("CFGLINT_SHARED")


def native(node):
    """Return what a tree says, as tomllib would."""
    if isinstance(node, Mapping):
        return {name: native(entry.value) for name, entry in node.entries.items()}
    if isinstance(node, Sequence):
        return [native(item) for item in node.items]
    return resolve(node, TOML)


def plain(value):
    """Return tomllib's value with dates as the texts that they were, as the tree has them."""
    if isinstance(value, dict):
        return {name: plain(held) for name, held in value.items()}
    if isinstance(value, list):
        return [plain(held) for held in value]
    if isinstance(value, (dt.date, dt.time)):
        return ("date", value)
    return value


def same(ours, theirs) -> bool:
    if isinstance(theirs, dict):
        return (
            isinstance(ours, dict)
            and list(ours) == list(theirs)
            and all(same(ours[k], theirs[k]) for k in theirs)
        )
    if isinstance(theirs, list):
        return (
            isinstance(ours, list)
            and len(ours) == len(theirs)
            and all(same(a, b) for a, b in zip(ours, theirs, strict=True))
        )
    if isinstance(theirs, tuple):
        return isinstance(ours, str) and loads(f"a = {ours}")["a"] == theirs[1]
    if isinstance(theirs, float) and math.isnan(theirs):
        return isinstance(ours, float) and math.isnan(ours)
    return type(ours) is type(theirs) and ours == theirs


def tree(text):
    return read_text(text, "c.toml").documents[0]


def at(node, *path):
    for part in path:
        node = node.entries[part].value if isinstance(node, Mapping) else node.items[part]
    return node


def agrees(text):
    document = tree(text)
    assert document.error is None, document.error
    ours = {} if document.root is None else native(document.root)
    assert same(ours, plain(loads(text))), (ours, loads(text))
    return document


# ── random documents ──────────────────────────────────────────────────────────────────────────────────────

BARE = st.sampled_from(["a", "b", "c", "lr", "max-len", "1", "_x", "true", "inf", "0x1"])
KEY = st.one_of(
    BARE,
    st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=4).map(
        lambda t: '"' + t.replace("\\", "\\\\").replace('"', '\\"') + '"'
    ),
    st.sampled_from(["'a.b'", "'#'", '"\\u00e9"', "'='"]),
)
DOTTED = st.tuples(st.lists(KEY, min_size=1, max_size=3), st.sampled_from([".", " . ", ". "])).map(
    lambda pair: pair[1].join(pair[0])
)
TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=8)
BASIC = TEXT.map(lambda t: '"' + t.replace("\\", "\\\\").replace('"', '\\"') + '"')
LONG = st.lists(
    st.sampled_from(
        ["a", '"', '""', "\n", "\\\n   ", "\\\\", "\\t", "# no", "'", "é", "\\U0001F600", " ", "[x]"]
    ),
    max_size=6,
).map("".join)
SCALAR = st.one_of(
    st.booleans().map(lambda b: str(b).lower()),
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.integers(0, 10**9).map(lambda n: f"{n:_}"),
    st.integers(0, 2**32).map(hex),
    st.integers(0, 2**32).map(oct),
    st.integers(0, 2**32).map(bin),
    st.sampled_from(["+1", "-0", "1e5", "1E-5", "6.626e-34", "+1.5", "1_0.0_1e0_1"]),
    st.sampled_from(["inf", "-inf", "+inf", "nan", "-nan"]),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.datetimes().map(lambda d: d.isoformat()),
    st.datetimes(timezones=st.just(dt.timezone.utc)).map(lambda d: d.isoformat(" ")),
    st.dates().map(str),
    st.times().map(str),
    BASIC,
    TEXT.filter(lambda t: "'" not in t).map(lambda t: f"'{t}'"),
    LONG.filter(lambda t: '"""' not in t).map(lambda t: f'"""\n{t}"""'),
    LONG.filter(lambda t: "''" not in t and not t.endswith("'")).map(lambda t: f"'''{t}'''"),
)  # fmt: skip
GAP = st.sampled_from(["", " ", "  "])
WIDE = st.sampled_from(["", " ", "\n  ", " # a, ] } comment\n", "\n\n"])


def _listed(inner):
    item = st.tuples(WIDE, inner, WIDE).map("".join)
    return st.tuples(st.lists(item, max_size=3).map(",".join), WIDE).map(lambda t: f"[{t[0]}{t[1]}]")


def _inline(inner):
    pair = st.tuples(GAP, DOTTED, GAP, st.just("="), GAP, inner, GAP).map("".join)
    return st.lists(pair, max_size=3).map(lambda pairs: "{" + ",".join(pairs) + "}")


VALUE = st.recursive(SCALAR, lambda inner: _listed(inner) | _inline(inner), max_leaves=5)
COMMENT = st.sampled_from(["", " # note", "\t# [x] = 1", "  "])
LINE = st.one_of(
    st.tuples(GAP, DOTTED, GAP, st.just("="), GAP, VALUE, COMMENT).map("".join),
    st.tuples(GAP, st.just("["), GAP, DOTTED, GAP, st.just("]"), COMMENT).map("".join),
    st.tuples(st.just("[["), DOTTED, st.just("]]"), COMMENT).map("".join),
    st.sampled_from(["", "# a comment", "   # [t]"]),
)


@st.composite
def documents(draw):
    """Draw lines, and keep those with which tomllib still takes the whole."""
    text = ""
    newline = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    for line in draw(st.lists(LINE, max_size=8)):
        longer = text + line.replace("\n", newline) + newline
        try:
            loads(longer)
        except ValueError:
            continue
        text = longer
    return text if draw(st.booleans()) else text.rstrip("\r\n")


@settings(max_examples=tried(400), deadline=None)
@given(documents())
def test_random_documents_agree_with_tomllib(text) -> None:
    agrees(text)


@settings(max_examples=tried(150), deadline=None)
@given(documents())
def test_every_span_is_its_own_spelling(text) -> None:
    document = tree(text)
    for node in walk(document.root) if document.root is not None else ():
        spelled = text[node.start : node.end]
        if isinstance(node, Scalar):
            assert same(resolve(node, TOML), plain(loads(f"a = {spelled}"))["a"])
        elif (
            node.flow
            and spelled[:1] in ("[", "{")
            and spelled[:1] == ("[" if isinstance(node, Sequence) else "{")
        ):
            assert same(native(node), plain(loads(f"a = {spelled}"))["a"])


NEW = st.one_of(
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(),
    st.text(st.characters(blacklist_categories=["Cs"]), max_size=12),
    st.lists(st.integers(0, 9) | st.booleans(), max_size=3),
)


def _scalars(value, path=()):
    if isinstance(value, dict):
        return [found for name, held in value.items() for found in _scalars(held, (*path, name))]
    if isinstance(value, list):
        return [found for i, held in enumerate(value) for found in _scalars(held, (*path, i))]
    return [path]


def _tables(value, path=()):
    found = []
    if isinstance(value, dict):
        found.append(path)
        for name, held in value.items():
            found += _tables(held, (*path, name))
    elif isinstance(value, list):
        for i, held in enumerate(value):
            found += _tables(held, (*path, i))
    return found


def _put(value, path, new) -> None:
    for part in path[:-1]:
        value = value.setdefault(part, {}) if isinstance(value, dict) else value[part]
    value[path[-1]] = new


def _unordered(value):
    return (
        {k: _unordered(value[k]) for k in sorted(value)}
        if isinstance(value, dict)
        else ([_unordered(item) for item in value] if isinstance(value, list) else value)
    )


@settings(max_examples=tried(300), deadline=None)
@given(documents(), NEW, st.data())
def test_an_edit_changes_its_value_alone(text, new, data) -> None:
    before = loads(text)
    paths = _scalars(before)
    if not paths:
        return
    path = data.draw(st.sampled_from(paths))
    document = tree(text)
    edit = replace_value(document, at(document.root, *path), new, TOML)
    assert edit is not None
    after = apply_edits(text, [edit])
    _put(before, path, new)
    assert same(native(agrees(after).root), plain(before))


@settings(max_examples=tried(400), deadline=None)
@given(documents(), NEW, st.data())
def test_an_insertion_adds_its_key_alone(text, new, data) -> None:
    before = loads(text)
    path = (
        *data.draw(st.sampled_from(_tables(before))),
        *data.draw(st.sampled_from([["new"], ["new", "k"], ["n w", "x"]])),
    )
    document = tree(text)
    edit = insert_key(document, path, new, TOML)
    assert edit is not None
    assert edit.start == edit.end or text[edit.start : edit.end].strip("{ \t}") == ""
    after = apply_edits(text, [edit])
    _put(before, path, new)
    assert same(_unordered(native(tree(after).root)), _unordered(plain(before))), after
    assert tree(after).error is None


SOUP = [
    "a", "b", ".", "=", " = ", "1", '"', '"""', "'", "'''", "[", "]", "[[", "]]", "{", "}", ",", "\n", "\r",
    "\r\n", " ", "#", "\\", "\\u12", "\t", "\x00", "1979-05-27", "True", "null", "é", "0x", "-", "😀",
]  # fmt: skip


@settings(max_examples=tried(300), deadline=None)
@given(st.lists(st.sampled_from(SOUP), max_size=14).map("".join))
def test_soup_is_taken_where_tomllib_takes_it(text) -> None:
    document = tree(text)
    try:
        loads(text)
    except ValueError:
        assert document.error is not None
        assert document.error.offset is None or 0 <= document.error.offset <= len(text)
    else:
        agrees(text)


# ── what a person would look at ───────────────────────────────────────────────────────────────────────────

TITAN = """\
# a comment
title = "x"  # of the file

[training]
local_batch_size = 8   # sequences
steps = 10_000
# lr = 1

[parallelism]  # sizes
tensor_parallel_degree=8

[quantize.linear.float8]
filter_fqns = ["output"]

[[orchestrator.env]]
id = "gsm8k"

[[orchestrator.env]]
id = "math"
args = { seed = 1 }
"""

INSERTED = [
    (("training", "seq_len"), 2048, "steps = 10_000\nseq_len = 2048\n# lr = 1"),
    (("parallelism", "cp"), 2, "tensor_parallel_degree=8\ncp=2\n\n[quantize"),
    (("compile", "enable"), True, "args = { seed = 1 }\n\n[compile]\nenable = true\n"),
    (
        ("training", "dataloader", "workers"),
        2,
        "# lr = 1\n\n[training.dataloader]\nworkers = 2\n\n[parallelism]",
    ),
    (("quantize", "x"), "a b", 'filter_fqns = ["output"]\n\n[quantize]\nx = "a b"\n\n[[orch'),
    (("seed",), 1, 'title = "x"  # of the file\nseed = 1\n'),
    (("orchestrator", "env", 0, "name"), "g", 'id = "gsm8k"\nname = "g"\n\n[[orch'),
    (("orchestrator", "env", 0, "t", "u"), 1, 'id = "gsm8k"\n\n[orchestrator.env.t]\nu = 1\n\n[[orch'),
    (("orchestrator", "env", 1, "args", "n"), 1.5, "args = { seed = 1, n = 1.5 }"),
    (("odd key", "x"), False, '[["odd key"]'.replace("[[", "[") + "\nx = false\n"),
]


@pytest.mark.parametrize(("path", "value", "expected"), INSERTED, ids=lambda v: str(v)[:40])
def test_insertion(path, value, expected) -> None:
    edit = insert_key(tree(TITAN), path, value, TOML)
    after = apply_edits(TITAN, [edit])
    assert expected in after
    assert same(
        at(tree(after).root, *path[:-1]).entries[path[-1]].value and native(at(tree(after).root, *path)),
        value,
    )


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("", ("a",), "a = 1\n"),
        ("", ("a", "b"), "[a]\nb = 1\n"),
        ("# about\n\n[t]\nx = 1\n", ("a",), "# about\n\na = 1\n\n[t]\nx = 1\n"),
        ("[t]\nx = 1\n", ("a",), "a = 1\n\n[t]\nx = 1\n"),
        ("[t]", ("t", "a"), "[t]\na = 1"),
        ("[t]\r\nx = 1\r\n", ("t", "a"), "[t]\r\nx = 1\r\na = 1\r\n"),
        ("y = 1\r\n[t]\nx = 1\n", ("t", "a"), "y = 1\r\n[t]\nx = 1\na = 1\n"),
        ("y = 1\n[t]\nx = 1\r\n", ("t", "a"), "y = 1\n[t]\nx = 1\r\na = 1\r\n"),
        ("y = 1\n[t]\r\nx = 1", ("t", "a"), "y = 1\n[t]\r\nx = 1\r\na = 1"),
        ("[t]\r\nx = 1\r\n", ("u", "a"), "[t]\r\nx = 1\r\n\r\n[u]\r\na = 1\r\n"),
        ("t.x = 1\n[u]\n", ("t", "a"), "t.x = 1\nt.a = 1\n[u]\n"),
        ("[t]\n  x = 1\n", ("t", "a"), "[t]\n  x = 1\n  a = 1\n"),
        ("t = {}\n", ("t", "a", "b"), "t = {a.b = 1}\n"),
        ("t = {x.y = 2}\n", ("t", "x", "a"), "t = {x.y = 2, x.a = 1}\n"),
        ("t = 1\n", ("t", "a"), None),
        ("t = [1]\n", ("t", "a"), None),
        ("t = 1\n", ("t",), None),
    ],
)
def test_small_insertions(text, path, expected) -> None:
    edit = insert_key(tree(text), path, 1, TOML)
    assert (None if edit is None else apply_edits(text, [edit])) == expected


@pytest.mark.parametrize(
    ("old", "new", "written"),
    [
        ("1", True, "true"),
        ('"full"', "none", '"none"'),
        ("'full'", "none", "'none'"),
        ("'full'", "it's", '"it\'s"'),
        ("8e-5", 1e-6, "1e-6"),
        ("0x10", 32, "32"),
        ("1", float("inf"), "inf"),
        ("[1]", ["a", 2], None),
        ('"""x\ny"""', "a\nb", '"a\\nb"'),
    ],
)
def test_spelling(old, new, written) -> None:
    document = tree(f"a = {old} # note\nb = 1\n")
    node = at(document.root, "a")
    if not isinstance(node, Scalar):
        return
    after = apply_edits(document.file.text, [replace_value(document, node, new, TOML)])
    assert after == f"a = {written} # note\nb = 1\n"


def test_null_has_no_spelling() -> None:
    document = tree("a = 1\n")
    assert replace_value(document, at(document.root, "a"), None, TOML) is None
    assert insert_key(document, ("b",), None, TOML) is None


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("a = 1\nb: 2\n", 2, 2, "KEY = VALUE"),
        ("a = True\n", 1, 5, "TOML writes true"),
        ("a = None\n", 1, 5, "TOML has no null"),
        ("a = bf16\n", 1, 5, "strings need quotes"),
        ("a = .5\n", 1, 5, "both sides"),
        ('a = "x\nb = 1\n', 1, 7, "add the closing quote"),
        ("[t]\na = 1\nb = 2\na = 3\n", 4, 1, "first on line 2"),
        ("[t]\na = 1\n[t]\nb = 2\n", 3, 3, "[t] is not allowed here"),
        ("a = 1\n[a]\n", 2, 3, "already defined"),
        ("t = {a = 1}\n[t.b]\nx = 1\n", 2, 5, "[t.b] is not allowed here"),
        ("a = [1, 2\nb = 3\n", 2, 1, "not closed"),
        ("a = 1 b = 2\n", 1, 7, "unexpected text after"),
        ("a = 2026-02-30\n", 1, 5, "not a valid date"),
    ],
)
def test_errors_name_place_and_cure(text, line, column, words) -> None:
    document = tree(text)
    assert words in str(document.error)
    assert document.file.lines.position(document.error.offset) == (line, column), str(document.error)


def test_what_stands_before_an_error_is_kept() -> None:
    document = tree("[job]\ndump = 'x'\n[training]\nsteps = 1\nlr = \n")
    assert native(document.root) == {"job": {"dump": "x"}, "training": {"steps": 1}}


def test_depth_and_digits_are_limited() -> None:
    for text in (
        "a = " + "[" * 300 + "]" * 300,
        "a = " + "[" * 9000 + "]" * 9000,
        ".".join("a" * 300) + " = 1",
    ):
        assert "levels deep" in str(parse_toml(text)[0].error)
    assert parse_toml("a = " + "9" * 5000)[0].error is not None


def test_comments_suppress() -> None:
    text = 'a = "# cfglint: ignore[MEM101]"\nb = 1 # cfglint: ignore[MEM102]\n'
    text += 'c = """\n# cfglint: ignore[MEM103]\n"""\n'
    assert suppressions(tree(text)) == [(2, ("MEM102",))]


def test_notes_stand_behind_the_line() -> None:
    document = tree("a = 1\nb = 2 # x\n")
    edit = replace_value(document, at(document.root, "a"), 3, TOML)
    note = annotate(document, edit, "was 1")
    assert apply_edits(document.file.text, [edit, note]) == "a = 3  # was 1\nb = 2 # x\n"


@pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no folder of real configs")
def test_real_files_agree() -> None:
    found = sorted((Path(SHARED or ".") / "corpus").rglob("*.toml"))
    assert len(found) > 20
    for path in found:
        data = path.read_bytes()
        document = agrees(data.decode())
        assert read(data, "x.toml").documents[0].root is not None
        for node in walk(document.root):
            if isinstance(node, Scalar):
                assert re.match(r"\S", document.file.text[node.start : node.end])


def test_an_item_of_a_list_is_no_key():
    assert insert_key(tree("a = [1]\n"), ("a", 0), 1, TOML) is None


@pytest.mark.parametrize(
    ("value", "spelled"), [("a\x85b", '"a\\u0085b"'), ("\U000e0041", '"\\U000e0041"'), ("ä", '"ä"')]
)
def test_what_cannot_be_seen_is_escaped(value, spelled):
    assert spell(value, None, TOML) == spelled
