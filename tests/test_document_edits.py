"""Edits change what they say and no other byte."""

from __future__ import annotations

import glob
import json
import os

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cfglint.document.edits import insert_key, replace_value
from cfglint.document.reading import read_text
from cfglint.document.scalars import JSON, OMEGACONF, PYYAML, resolve
from cfglint.document.trace import Trace
from cfglint.document.tree import Alias, Mapping, Scalar, Sequence, walk
from cfglint.document.view import View
from cfglint.repair.notes import annotate
from cfglint.text import apply_edits
from tiers import tried

SHARED = os.environ.get("CFGLINT_SHARED")
shared = pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED is unset: no corpus to read")


def first(text, name="c.yaml"):
    return read_text(text, name).documents[0]


def at(node, *path):
    for part in path:
        node = node.entries[part].value if isinstance(node, Mapping) else node.items[part]
    return node


def native(node, dialect=PYYAML):
    if node is None:
        return None
    if isinstance(node, Alias):
        return ("*", node.name)
    if isinstance(node, Mapping):
        return {k: native(e.value, dialect) for k, e in node.entries.items()} | (
            {"<<": [native(m, dialect) for m in node.merges]} if node.merges else {}
        )
    if isinstance(node, Sequence):
        return [native(i, dialect) for i in node.items]
    return (type(resolve(node, dialect)).__name__, str(resolve(node, dialect)))


def replaced(text, path, value, dialect=PYYAML, name="c.yaml"):
    document = first(text, name)
    edit = replace_value(document, at(document.root, *path), value, dialect)
    return None if edit is None else apply_edits(text, [edit])


def inserted(text, path, value, dialect=PYYAML, name="c.yaml"):
    edit = insert_key(first(text, name), path, value, dialect)
    return None if edit is None else apply_edits(text, [edit])


class TestReplace:
    @pytest.mark.parametrize(
        ("text", "value", "expected"),
        [
            ("a: 0.8  # c\n", 0.45, "a: 0.45  # c\n"),
            ("a: 'x'\r\n", "y", "a: 'y'\r\n"),
            ('a: "x"', "y", 'a: "y"'),
            ("a:\n", 1, "a: 1\n"),
            ("a:", 1, "a: 1"),
            ("a:   # c\n", 1, "a: 1   # c\n"),
            ("a: \n", 1, "a: 1 \n"),
            ("{a: }", 1, "{a: 1}"),
            ("{a: , b: 2}", 1, "{a: 1, b: 2}"),
            ("a: !!str\n", "x", "a: !!str x\n"),
            ("a: &x\n", 1, "a: &x 1\n"),
            ("a: &x 1\nb: *x\n", 2, "a: &x 2\nb: *x\n"),
            ("a: !!float 1\n", 0.5, "a: !!float 0.5\n"),
            ("a: one\n  two\nb: 1\n", "x", "a: x\nb: 1\n"),
            ("a: True\n", False, "a: False\n"),
            ("{a: [x, y], b: 1}", "p", None),
            ("a: |\n  x\n", "y", None),
            ("a: !!int 1\n", "x", None),
            ("{a}", 1, None),
            ("? a\n", 1, None),
        ],
    )
    def test_text(self, text, value, expected):
        document = first(text)
        node = at(document.root, "a")
        if not isinstance(node, Scalar):
            node = node.items[0]
            expected = "{a: [p, y], b: 1}"
        edit = replace_value(document, node, value, PYYAML)
        assert (None if edit is None else apply_edits(text, [edit])) == expected

    def test_an_empty_item(self):
        assert replaced("-\n- 1\n", (0,), 2) == "- 2\n- 1\n"

    def test_json(self):
        assert replaced('{"a": 1e-5, "b": "x"}', ("a",), 2e-6, JSON, "c.json") == '{"a": 2e-6, "b": "x"}'
        assert replaced('{"a": 1, "b": "x"}', ("b",), "y\n", JSON, "c.json") == '{"a": 1, "b": "y\\n"}'

    def test_what_an_override_brought_is_not_in_the_file(self):
        document = first("a: 1\n")
        node = Trace(View(document, OMEGACONF, ["a=2"]), ("a",)).node
        assert replace_value(document, node, 3, OMEGACONF) is None

    def test_a_float_stays_a_float(self):
        assert replaced("lr: 1e-6\n", ("lr",), 5e-7, OMEGACONF) == "lr: 5e-7\n"
        assert replaced("lr: 1.0e-6\n", ("lr",), 5e-7) == "lr: 5.0e-7\n"


class TestInsert:
    @pytest.mark.parametrize(
        ("text", "path", "expected"),
        [
            pytest.param("a: 1\n", "b", "a: 1\nb: 7\n", id="at the top"),
            pytest.param("a: 1", "b", "a: 1\nb: 7", id="no final newline"),
            pytest.param("a: 1\r\nc: 2\r\n", "b", "a: 1\r\nc: 2\r\nb: 7\r\n", id="crlf"),
            pytest.param("a:\n  x: 1\nc: 2\n", "a.b", "a:\n  x: 1\n  b: 7\nc: 2\n", id="nested"),
            pytest.param("a:\n    x: 1\n", "a.b", "a:\n    x: 1\n    b: 7\n", id="the siblings' indentation"),
            pytest.param("a:\n    x: 1\n", "b.c", "a:\n    x: 1\nb:\n    c: 7\n", id="the file's step"),
            pytest.param(
                "a:\n  x: 1  # one\n  # inner\n\n# outer\nc: 2\n",
                "a.b",
                "a:\n  x: 1  # one\n  b: 7\n  # inner\n\n# outer\nc: 2\n",
                id="comments stay",
            ),
            pytest.param(
                "a:\n  x:\n    y: 1\nc: 2\n", "a.b", "a:\n  x:\n    y: 1\n  b: 7\nc: 2\n", id="last leaf"
            ),
            pytest.param(
                "a:\n  x: |\n    t\n\nc: 2\n", "a.b", "a:\n  x: |\n    t\n\n  b: 7\nc: 2\n", id="block scalar"
            ),
            pytest.param("a:\n  x: |\n    t", "a.b", None, id="block scalar at the end, clipped"),
            pytest.param(
                "a:\n  x: |-\n    t", "a.b", "a:\n  x: |-\n    t\n  b: 7", id="block scalar, stripped"
            ),
            pytest.param(
                "a:\n- x: 1\n  y: 2\n- z: 3\n",
                "a.0.b",
                "a:\n- x: 1\n  y: 2\n  b: 7\n- z: 3\n",
                id="in a list",
            ),
            pytest.param("a:\n  -   x: 1\n", "a.0.b", "a:\n  -   x: 1\n      b: 7\n", id="in a wide list"),
            pytest.param("a:\nc: 1\n", "a.b", "a:\n  b: 7\nc: 1\n", id="under an empty value"),
            pytest.param("a:  # c\n", "a.b", "a:  # c\n  b: 7\n", id="under an empty value with a comment"),
            pytest.param("a: null\n", "a.b", None, id="under null"),
            pytest.param("a: 1\n", "a.b", None, id="under a scalar"),
            pytest.param("a: 1\n", "a", None, id="there already"),
            pytest.param("a: &x {y: 1}\nc: *x\n", "c.b", None, id="through an alias"),
            pytest.param("a: {y: 1}\nc: ${a}\n", "c.b", None, id="through a reference"),
            pytest.param("a: &x {y: {z: 1}}\nc:\n  <<: *x\n", "c.y.b", None, id="through a merge"),
            pytest.param(
                "a: &x {y: 1}\nc:\n  <<: *x\n",
                "c.y",
                "a: &x {y: 1}\nc:\n  <<: *x\n  y: 7\n",
                id="over a merge",
            ),
            pytest.param("a: &x\n  y: 1\nc: 1\n", "a.b", "a: &x\n  y: 1\n  b: 7\nc: 1\n", id="anchored"),
            pytest.param("a: {x: 1}\n", "a.b", "a: {x: 1, b: 7}\n", id="flow"),
            pytest.param("a: {}\n", "a.b", "a: {b: 7}\n", id="empty flow"),
            pytest.param("a: {}\n", "a.b.c", "a: {b: {c: 7}}\n", id="empty flow, nested"),
            pytest.param("a: {x: 1,}\n", "a.b", "a: {x: 1, b: 7,}\n", id="trailing comma"),
            pytest.param("a: {x}\n", "a.b", "a: {x, b: 7}\n", id="key without value"),
            pytest.param("a: {x: }\n", "a.b", "a: {x: , b: 7}\n", id="empty value in flow"),
            pytest.param("a: [x: 1]\n", "a.0.b", None, id="a pair without braces"),
            pytest.param(
                "a: {\n  x: 1 # c\n}\n", "a.b", "a: {\n  x: 1, # c\n  b: 7\n}\n", id="flow over lines"
            ),
            pytest.param(
                "a: {\n  x: 1, # c\n}\n", "a.b", "a: {\n  x: 1, # c\n  b: 7,\n}\n", id="flow, comma there"
            ),
            pytest.param("", "a.b", "a:\n  b: 7\n", id="empty file"),
            pytest.param("# c", "a", "# c\na: 7\n", id="comments only"),
            pytest.param("---\n", "a", "---\na: 7\n", id="empty document"),
            pytest.param("- 1\n", "a", None, id="a list at the top"),
            pytest.param("a: 1\n...\n", "b", "a: 1\nb: 7\n...\n", id="document end"),
            pytest.param("a: 1\na: 2\nc: 3\n", "b", "a: 1\na: 2\nc: 3\nb: 7\n", id="duplicate keys"),
            pytest.param(
                "a:\n  x: 'p\n    q'\n", "a.b", "a:\n  x: 'p\n    q'\n  b: 7\n", id="multi-line value"
            ),
            pytest.param("a:\n  x: *y\n", "a.b", None, id="a broken file"),
            pytest.param("a:\n  - 1\n", "c", "a:\n  - 1\nc: 7\n", id="behind a list"),
            pytest.param("? a\n: x: 1\n", "b", "? a\n: x: 1\nb: 7\n", id="explicit keys"),
        ],
    )
    def test_text(self, text, path, expected):
        where = tuple(int(p) if p.isdigit() else p for p in path.split("."))
        assert inserted(text, where, 7) == expected

    @pytest.mark.parametrize(
        ("text", "path", "expected"),
        [
            ('{"a": 1}', "b", '{"a": 1, "b": 7}'),
            ('{"a":1}', "b", '{"a":1,"b":7}'),
            ("{}", "b", '{"b": 7}'),
            ("", "b", '{"b": 7}\n'),
            ('{\n  "a": 1\n}\n', "b", '{\n  "a": 1,\n  "b": 7\n}\n'),
            ('{\n\t"a": {"x": 1}\n}\n', "b.c", '{\n\t"a": {"x": 1},\n\t"b": {"c": 7}\n}\n'),
            (
                '{\n    "a": {\n        "x": 1\n    }\n}\n',
                "a.b",
                '{\n    "a": {\n        "x": 1,\n        "b": 7\n    }\n}\n',
            ),
            ('{"a": [{"x": 1}]}', "a.0.b", '{"a": [{"x": 1, "b": 7}]}'),
            ('{"a": null}', "a.b", None),
        ],
    )
    def test_json(self, text, path, expected):
        where = tuple(int(p) if p.isdigit() else p for p in path.split("."))
        got = inserted(text, where, 7, JSON, "c.json")
        assert got == expected
        if got is not None:
            json.loads(got)

    def test_a_later_document(self):
        text = "a: 1\n---\nb: 1\n---\nc: 1\n"
        edit = insert_key(read_text(text, "c.yaml").documents[1], ("x",), "on", PYYAML)
        assert apply_edits(text, [edit]) == "a: 1\n---\nb: 1\nx: 'on'\n---\nc: 1\n"


class TestAnnotate:
    def annotated(self, text, path, value, *, new=False):
        document = first(text)
        make = insert_key if new else lambda d, p, v, x: replace_value(d, at(d.root, *p), v, x)
        edit = make(document, path, value, PYYAML)
        note = annotate(document, edit, "was 1\nline")
        return None if note is None else apply_edits(text, [edit, note])

    @pytest.mark.parametrize(
        ("text", "path", "expected"),
        [
            ("a: 1\nb: 2\n", ("a",), "a: 7  # was 1 line\nb: 2\n"),
            ("a: 1  # c\r\nb: 2\r\n", ("a",), "a: 7  # c  # was 1 line\r\nb: 2\r\n"),
            ("a: 1", ("a",), "a: 7  # was 1 line"),
            ("a: {b: 1, c: 2}\n", ("a", "b"), "a: {b: 7, c: 2}  # was 1 line\n"),
            ("a: {b: 1, c: 'x\n  y'}\n", ("a", "b"), None),
            ("a: [1, x\n  y]\n", ("a", 0), None),
            ("a: [1,\n  2]\n", ("a", 0), "a: [7,  # was 1 line\n  2]\n"),
            ("a: x\n  y\nb: 1\n", ("a",), "a: 7  # was 1 line\nb: 1\n"),
            ("a:\n", ("a",), "a: 7  # was 1 line\n"),
        ],
    )
    def test_replaced(self, text, path, expected):
        assert self.annotated(text, path, 7) == expected

    @pytest.mark.parametrize(
        ("text", "path", "expected"),
        [
            ("a: 1  # c\n", ("b",), "a: 1  # c\nb: 7  # was 1 line\n"),
            ("a: {b: 1}\n", ("a", "c"), "a: {b: 1, c: 7}  # was 1 line\n"),
            ("a: {\n  b: 1\n}\n", ("a", "c"), "a: {\n  b: 1,\n  c: 7  # was 1 line\n}\n"),
            ("a: |\n  x\n", ("b",), None),
        ],
    )
    def test_inserted(self, text, path, expected):
        assert self.annotated(text, path, 7, new=True) == expected

    def test_json_has_no_comments(self):
        document = first('{"a": 1}', "c.json")
        assert annotate(document, replace_value(document, at(document.root, "a"), 2, JSON), "n") is None


# --- properties -------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "c", "key", "'q r'"])
SCALARS = st.sampled_from(
    [
        "1",
        "0.5",
        "text",
        "'q'",
        '"d"',
        "'it''s'",
        "",
        "~",
        "on",
        "1e-5",
        "${a.b}",
        "two words",
        "&x 1",
        "!!str 2",
        "é😀",
    ]
)
FLOWS = st.recursive(
    st.sampled_from(["1", "'q'", '"d"', "x y", "on"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3).map(
            lambda d: "{" + ", ".join(f"{k}: {v}" for k, v in d.items()) + "}"
        )
    ),
    max_leaves=4,
)
COMMENTS = st.sampled_from(["", "", "  # c", "   "])
GAPS = st.sampled_from(["", "", "# outer\n", "\n", "   # deep\n\n"])


@st.composite
def blocks(draw, indent=0, depth=0):
    """A block mapping as people write it, with comments, gaps and nested things."""
    step = draw(st.sampled_from([2, 2, 4]))
    lines = []
    for key in draw(st.lists(KEYS, min_size=1, max_size=3, unique=True)):
        lines.append(draw(GAPS))
        head = " " * indent + key + ":"
        kind = draw(st.integers(0, 5 if depth < 3 else 2))
        if kind <= 1:
            value = draw(SCALARS)
            lines.append(f"{head} {value}".rstrip() + draw(COMMENTS) + "\n")
        elif kind == 2:
            lines.append(f"{head} {draw(FLOWS)}{draw(COMMENTS)}\n")
        elif kind == 3:
            style = draw(st.sampled_from(["|", ">", "|-", ">+", "| # c"]))
            lines.append(
                f"{head} {style}\n{' ' * (indent + step)}text\n{draw(st.sampled_from(['', chr(10)]))}"
            )
        elif kind == 4:
            lines.append(f"{head}{draw(COMMENTS)}\n" + draw(blocks(indent + step, depth + 1)))
        else:
            lines.append(f"{head}\n")
            for _ in range(draw(st.integers(1, 2))):
                body = draw(blocks(indent + 4, depth + 1)).split("\n")
                keep = [line for line in body if line.strip() and not line.strip().startswith("#")]
                lines.append(" " * (indent + 2) + "- " + "\n".join(keep)[indent + 4 :] + "\n")
    return "".join(lines)


@st.composite
def files(draw):
    text = draw(blocks())
    # An anchor may stand once in a file.
    head, mark, tail = text.partition("&x ")
    text = head + mark + tail.replace("&x ", "")
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    if draw(st.booleans()):
        text = text.rstrip("\r\n")
    document = first(text)
    assume(document.error is None)
    return document


VALUES = st.sampled_from([7, 0.25, 1e-6, True, None, "text", "no", "a: b", "x,y", "", "{b}", "#", "1e-5"])


@settings(deadline=None, max_examples=tried(300))
@given(files(), st.data(), VALUES, st.sampled_from([PYYAML, OMEGACONF]))
def test_replacing_changes_one_value_and_no_other_byte(document, data, value, dialect):
    text = document.file.text
    scalars = [n for n in walk(document.root) if isinstance(n, Scalar)]
    assume(scalars)
    index = data.draw(st.integers(0, len(scalars) - 1))
    node = scalars[index]
    edit = replace_value(document, node, value, dialect)
    if edit is None:
        assert node.style in ("|", ">") or node.tag is not None
        return
    assert (edit.start, edit.end) == (node.start, node.end)
    edited = apply_edits(text, [edit])
    assert edited == text[: node.start] + edit.new + text[node.end :]
    after = first(edited)
    assert after.error is None
    fresh = [n for n in walk(after.root) if isinstance(n, Scalar)]
    assert len(fresh) == len(scalars)
    for i, (old, new) in enumerate(zip(scalars, fresh, strict=True)):
        if i == index:
            assert (type(resolve(new, dialect)), resolve(new, dialect)) == (type(value), value)
        else:
            assert (new.text, new.style, new.tag) == (old.text, old.style, old.tag)


def put(tree, path, value):
    """What the tree should be after the insertion."""
    if tree is None:
        tree = {}
    inner = tree
    for part in path[:-1]:
        if isinstance(inner, dict) and (part not in inner or inner[part] == ("NoneType", "None")):
            inner[part] = {}
        inner = inner[part]
    inner[path[-1]] = value
    return tree


@settings(deadline=None, max_examples=tried(500))
@given(files(), st.data(), VALUES, st.sampled_from([PYYAML, OMEGACONF]))
def test_inserting_adds_one_key_and_keeps_every_byte(document, data, value, dialect):
    text = document.file.text
    path = []
    node = document.root
    while isinstance(node, (Mapping, Sequence)) and data.draw(st.booleans()):
        options = list(node.entries) if isinstance(node, Mapping) else range(len(node.items))
        if not options:
            break
        path.append(data.draw(st.sampled_from(list(options))))
        node = at(node, path[-1])
    path += data.draw(st.sampled_from([["new"], ["new", "deep er"], ["on"], ["a"], ["new", "b", "c"]]))
    edit = insert_key(document, tuple(path), value, dialect)
    if edit is None:
        return
    edited = apply_edits(text, [edit])
    assert edit.start == edit.end or text[edit.start : edit.end].strip() in edit.new
    after = first(edited)
    assert after.error is None, edited
    expected = put(native(document.root, dialect), path, (type(value).__name__, str(value)))
    assert native(after.root, dialect) == expected, edited
    for old in walk(document.root):
        # A value is where it was, or moved by what was put in before it.
        if isinstance(old, Scalar) and old.start != old.end:
            moved = len(edit.new) - (edit.end - edit.start) if old.start >= edit.end else 0
            assert edited[old.start + moved : old.end + moved].rstrip() == text[old.start : old.end].rstrip()
    note = annotate(document, edit, "why")
    if note is not None:
        noted = first(apply_edits(text, [edit, note]))
        assert noted.error is None
        assert native(noted.root, dialect) == expected


@settings(deadline=None, max_examples=tried(300))
@given(files(), st.data())
def test_a_note_changes_no_value(document, data):
    scalars = [n for n in walk(document.root) if isinstance(n, Scalar)]
    assume(scalars)
    node = data.draw(st.sampled_from(scalars))
    edit = replace_value(document, node, 7, PYYAML)
    note = None if edit is None else annotate(document, edit, "why")
    if note is None:
        return
    edited = apply_edits(document.file.text, [edit])
    noted = apply_edits(document.file.text, [edit, note])
    assert native(first(noted).root) == native(first(edited).root)
    assert noted.count("# why") == 1


@settings(deadline=None, max_examples=tried(200))
@given(
    st.recursive(
        st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
        max_leaves=6,
    ),
    st.sampled_from([None, 2, "\t"]),
    st.sampled_from([None, (",", ":")]),
    st.data(),
)
def test_inserting_into_json(tree, indent, separators, data):
    assume(isinstance(tree, dict))
    text = json.dumps(tree, indent=indent, separators=separators)
    path = []
    inner = tree
    while isinstance(inner, (dict, list)) and inner and data.draw(st.booleans()):
        part = data.draw(st.sampled_from(list(inner) if isinstance(inner, dict) else list(range(len(inner)))))
        if not isinstance(inner[part], (dict, list)):
            break
        path.append(part)
        inner = inner[part]
    if not isinstance(inner, dict):
        return
    edit = insert_key(first(text, "c.json"), (*path, "new", "er"), 7, JSON)
    inner["new"] = {"er": 7}
    assert json.loads(apply_edits(text, [edit])) == tree


@shared
def test_a_key_can_be_added_to_every_mapping_of_the_corpus():
    paths = sorted(glob.glob(os.path.join(SHARED, "corpus", "areal", "**", "*.yaml"), recursive=True))
    assert paths
    for file in paths:
        with open(file, encoding="utf-8", newline="") as stream:
            text = stream.read()
        document = first(text)
        if document.format == "shell":
            continue  # a manifest's commands: flags are added otherwise
        names = [name for name, entry in document.root.entries.items() if isinstance(entry.value, Mapping)]
        for name in names[::4]:
            edit = insert_key(document, (name, "zz"), 7, OMEGACONF)
            edited = apply_edits(text, [edit])
            expected = put(native(document.root, OMEGACONF), (name, "zz"), ("int", "7"))
            assert native(first(edited).root, OMEGACONF) == expected
            assert len(edited.split("\n")) - len(text.split("\n")) in (0, 1)
