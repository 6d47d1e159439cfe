"""YAML to nodes: spans, properties, aliases, merges, errors, limits."""

from __future__ import annotations

import glob
import os

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cfglint.budget import BUDGET
from cfglint.document.reading import read_text
from cfglint.document.scalars import PYYAML, resolve
from cfglint.document.tree import Alias, Mapping, Scalar, Sequence, effective, walk
from cfglint.document.yaml import MAX_DEPTH, parse_yaml
from cfglint.text import LineIndex
from tiers import tried

SHARED = os.environ.get("CFGLINT_SHARED")
shared = pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED is unset: no corpus to read")

# Tokens that make YAML, and YAML's traps, more often than random characters do.
SOUP = st.lists(
    st.sampled_from(
        [
            "a",
            "b",
            "key",
            " ",
            "  ",
            "\n",
            "\n  ",
            "\n- ",
            "- ",
            ": ",
            ":",
            "? ",
            ", ",
            "[",
            "]",
            "{",
            "}",
            "&x ",
            "*x",
            "!!str ",
            "! ",
            "'",
            '"',
            "'q'",
            '"d"',
            "|\n  t\n",
            ">-\n  t\n",
            "# c",
            " # c\n",
            "1",
            "0.5",
            "1e-5",
            "~",
            "null",
            "<<: ",
            "---\n",
            "...\n",
            "\r\n",
            "\t",
            "é",
            "😀",
            "\x85",
            "\u2028",
            "${a}",
            "%",
            "@",
        ]
    ),
    max_size=24,
).map("".join)


def root(text):
    """Return the one document's root, which must have no error."""
    (parsed,) = parse_yaml(text)
    assert parsed.error is None, parsed.error
    return parsed.root


def error(text):
    return parse_yaml(text)[-1].error


def at(node, *path):
    for part in path:
        node = node.entries[part].value if isinstance(node, Mapping) else node.items[part]
    return node


def native(node):
    """The tree as plain Python, aliases expanded, for comparison with a loader."""
    if isinstance(node, Alias):
        return native(node.target)
    if isinstance(node, Mapping):
        return {k: native(e.value) for k, e in node.entries.items()}
    if isinstance(node, Sequence):
        return [native(i) for i in node.items]
    return None if node is None else node.text


def composed(node):
    if isinstance(node, yaml.MappingNode):
        return {k.value: composed(v) for k, v in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [composed(i) for i in node.value]
    return node.value


class TestSpans:
    """The traps that were measured: a span is exactly the value's own spelling."""

    @pytest.mark.parametrize(
        ("text", "path", "spelling"),
        [
            pytest.param("a: 1", ("a",), "1", id="plain"),
            pytest.param("a: 'x y'  # c\n", ("a",), "'x y'", id="single quotes"),
            pytest.param('a: "x\\n"\n', ("a",), '"x\\n"', id="double quotes"),
            pytest.param("a: &x !!str 1\n", ("a",), "1", id="anchor and tag"),
            pytest.param("a: !!str &x 1\n", ("a",), "1", id="tag and anchor"),
            pytest.param("a: !<tag:x> 1\n", ("a",), "1", id="verbatim tag"),
            pytest.param('a: ! "12"\n', ("a",), '"12"', id="non-specific tag"),
            pytest.param("a: &x\n  # c\n  1\n", ("a",), "1", id="comment between"),
            pytest.param("a: &x\n", ("a",), "", id="anchor alone"),
            pytest.param("a: !!str # c\nb: 1\n", ("a",), "", id="tag alone"),
            pytest.param("a: &x {b: 1}", ("a",), "{b: 1}", id="anchored flow mapping"),
            pytest.param("a: !!seq [1]", ("a",), "[1]", id="tagged flow sequence"),
            pytest.param("[&x a, !!str b]", (0,), "a", id="anchor in flow"),
            pytest.param("[&x a, !!str b]", (1,), "b", id="tag in flow"),
            pytest.param(
                "a: &x\n  b: 1\n  c: 2 # c\n\n# d\ne: 1", ("a",), "b: 1\n  c: 2", id="block mapping"
            ),
            pytest.param("a:\n- 1\n- 2  # c\n\n# d\n", ("a",), "- 1\n- 2", id="indentless sequence"),
            pytest.param("a: |- # n\n  x\n\nb: 1\n", ("a",), "|- # n\n  x\n\n", id="block scalar"),
            pytest.param("a: &x |\n  y\n", ("a",), "|\n  y\n", id="anchored block scalar"),
            pytest.param("a: one\n  two\nb: 1\n", ("a",), "one\n  two", id="multi-line plain"),
            pytest.param("é: 😀\r\nb: ß # c\r\n", ("b",), "ß", id="code points"),
            pytest.param("a:\r\n  b: 1\r\n", ("a", "b"), "1", id="crlf"),
            pytest.param("a: 1\rb: 2\r", ("b",), "2", id="lone cr"),
            pytest.param("a: x\x85b: y\u2028c: z\n", ("c",), "z", id="nel and ls"),
            pytest.param("? key\n: v\n", ("key",), "v", id="explicit key"),
        ],
    )
    def test_value(self, text, path, spelling):
        node = at(root(text), *path)
        assert text[node.start : node.end] == spelling

    @pytest.mark.parametrize(
        ("text", "offset"), [("k:\n", 2), ("k:   # c\n", 2), ("k: !!str\nb: 1", 8), ("{k: }", 4)]
    )
    def test_empty_values_have_no_width(self, text, offset):
        node = at(root(text), "k")
        assert (node.start, node.end, node.text) == (offset, offset, "")

    def test_an_alias_has_its_own_span(self):
        text = "a: &x 1\nb: *x\n"
        node = root(text)
        alias = at(node, "b")
        assert isinstance(alias, Alias)
        assert text[alias.start : alias.end] == "*x"
        assert alias.target is at(node, "a")

    def test_a_missing_final_newline(self):
        text = "a:\n  b: 1"
        node = at(root(text), "a")
        assert text[node.start : node.end] == "b: 1"

    def test_documents_share_out_the_text(self):
        text = "a: 1\n---\nb: 2\n...\n---\n"
        parsed = parse_yaml(text)
        assert [text[p.start : p.end] for p in parsed] == ["a: 1\n", "---\nb: 2\n...\n", "---\n"]
        assert [native(p.root) for p in parsed] == [{"a": "1"}, {"b": "2"}, None]

    @pytest.mark.parametrize("text", ["", "# c\n", "---\n", "\n\n"])
    def test_empty_documents(self, text):
        (parsed,) = parse_yaml(text)
        assert (parsed.root, parsed.error, parsed.start, parsed.end) == (None, None, 0, len(text))


class TestMerges:
    def test_a_list_keeps_its_order(self):
        node = root("x: &x {a: 1}\ny: &y {a: 2}\nz:\n  <<: [*x, *y]\n  b: 1\n")
        merges = at(node, "z").merges
        assert [m.name for m in merges] == ["x", "y"]
        assert list(at(node, "z").entries) == ["b"]

    def test_of_several_the_later_wins(self):
        text = "x: &x {lr: 1}\ny: &y {lr: 2}\nz:\n  <<: *x\n  <<: *y\n"
        assert [m.name for m in at(root(text), "z").merges] == ["y", "x"]
        assert yaml.load(text, yaml.CSafeLoader)["z"] == {"lr": 2}

    @pytest.mark.parametrize("key", ["'<<'", '"<<"', "!!str <<"])
    def test_a_quoted_key_merges_nothing(self, key):
        assert list(at(root(f"x: &x {{a: 1}}\nz:\n  {key}: *x\n"), "z").entries) == ["<<"]

    def test_a_tagged_key_merges(self):
        assert len(at(root("x: &x {a: 1}\nz:\n  !!merge <<: *x\n"), "z").merges) == 1

    @pytest.mark.parametrize("merged", ["*x", "1", "[*x]", "[[*m]]", "&l [*l]", "[*m, *x]"])
    def test_merging_anything_else_is_an_error(self, merged):
        text = f"x: &x 1\nm: &m {{a: 1}}\nz:\n  <<: {merged}\n"
        assert error(text).offset > text.index("<<")
        with pytest.raises(yaml.YAMLError):
            yaml.load(text, yaml.CSafeLoader)

    def test_an_alias_of_a_list_of_mappings_merges_them(self):
        text = "m: &m {a: 1}\nl: &l [*m, {b: 2}]\nz:\n  <<: *l\n"
        assert list(effective(at(root(text), "z"))) == ["a", "b"]
        assert yaml.load(text, yaml.CSafeLoader)["z"] == {"a": 1, "b": 2}


class TestKeys:
    def test_duplicates_name_both_places(self):
        text = "a: 1\nb:\n  c: 1\n  c: 2\na: 3\n"
        (parsed,) = parse_yaml(text)
        assert [(k.text, k.start, f.start) for k, f in parsed.duplicates] == [("c", 17, 10), ("a", 22, 0)]
        assert native(parsed.root) == {"a": "3", "b": {"c": "2"}}

    def test_a_number_and_its_text_are_two_keys(self):
        assert parse_yaml("1: a\n'1': b\n")[0].duplicates == []
        assert len(parse_yaml("a: a\n'a': b\n")[0].duplicates) == 1

    def test_a_template_in_a_keys_place_is_an_error_and_is_kept(self):
        (parsed,) = parse_yaml("a: {{ name }}\nb: 1\n")
        assert parsed.error.offset == 4
        assert native(parsed.root)["b"] == "1"

    def test_an_alias_can_be_a_key(self):
        assert native(root("a: &x k\nb: {*x : 1}\n")) == {"a": "k", "b": {"k": "1"}}


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "offset"),
        [
            ("a: b: c", 4),
            ("é: [1,\n", 3),
            ("a: {b: [1], c: 2\n", 3),
            ("a: *u\n", 3),
            ("a: &x 1\nb: &x 2\n", 11),
            ("a: 'b\n", 6),
            ("a: \t- b", 4),
            ("a: @b", 3),
            ("é: b\x00c", 4),
            ("é: b\x07c", 4),
            ("é: b\ufeffc", 4),
            ("a: 1\n\ud800", 5),
            ("a: !x!y z\n", 3),
            ("a\nb: 1\n", 3),
        ],
    )
    def test_offset(self, text, offset):
        assert error(text).offset == offset

    def test_what_stood_before_is_kept(self):
        (parsed,) = parse_yaml("a:\n  b: 1\n  c: [1, 2\nd: 3\n")
        assert parsed.error is not None
        assert (
            native(parsed.root) == {"a": {"b": "1", "c": ["1", "2"]}} or at(parsed.root, "a", "b").text == "1"
        )

    def test_what_stood_before_a_control_character_is_kept(self):
        (parsed,) = parse_yaml("a: 1\nb: 2\nc: \x00")
        assert native(parsed.root) == {"a": "1", "b": "2", "c": ""}

    def test_messages_are_one_line_that_says_what_to_do(self):
        for text in ("a: b: c", "a: [1", "\ta: 1", "a: 'x", "a: b\n c: d\n", '"\\q"', "a: b\x00"):
            assert "\n" not in str(error(text))
            assert len(str(error(text))) > 20


class TestHostile:
    @pytest.mark.parametrize("text", ["[" * 10_000, "{a: " * 10_000, "- " * 10_000, "? " * 10_000])
    def test_deep_nesting(self, text):
        assert error(text) is not None

    def test_the_depth_limit_is_exact(self):
        assert error("[" * MAX_DEPTH + "]" * MAX_DEPTH) is None
        assert "levels deep" in str(error("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)))

    def test_a_billion_laughs_costs_nothing(self):
        lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
        assert len(walk(root("\n".join(lines)))) < 150

    def test_an_anchor_inside_itself(self):
        node = root("&a [*a, 1]")
        assert node.items[0].target is node

    def test_a_long_scalar(self):
        text = "a: " + "x" * 1_000_000
        assert len(at(root(text), "a").text) == 1_000_000

    def test_too_many_nodes(self):
        assert "nodes" in str(error("[" + "a," * 1_000_001 + "]"))


@settings(deadline=None, max_examples=tried(1500))
@given(SOUP)
def test_any_text_gives_a_tree_or_an_error(text):
    for parsed in parse_yaml(text):
        assert 0 <= parsed.start <= parsed.end <= len(text)
        if parsed.error is not None:
            assert 0 <= parsed.error.offset <= len(text)
        for node in walk(parsed.root) if parsed.root is not None else ():
            assert parsed.start <= node.start <= node.end <= parsed.end


@settings(deadline=None, max_examples=tried(1500))
@given(SOUP)
def test_the_tree_is_the_loaders(text):
    parsed = parse_yaml(text)
    ours = [p for p in parsed if p.error is None]
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.CSafeLoader))
    except yaml.YAMLError:
        assert len(ours) < len(parsed)
        return
    except RecursionError:
        return
    if len(ours) < len(parsed) or "<<" in text or "&" in text:
        return
    nodes = [n for n in nodes if n is not None]
    composed_values = [composed(n) for n in nodes]
    assert [native(p.root) or "" for p in parsed if p.root is not None or nodes] == [
        v or "" for v in composed_values
    ]


def reparsed(spelling, *, flow):
    """What a spelling means on its own, where it stood in a flow collection or not."""
    return at(root(f"[{spelling}]" if flow else f"a: {spelling}"), 0 if flow else "a")


@settings(deadline=None, max_examples=tried(1000))
@given(SOUP)
def test_a_span_means_what_the_node_says(text):
    for parsed in parse_yaml(text):
        if parsed.error is not None or parsed.root is None:
            continue
        for node in walk(parsed.root):
            if not isinstance(node, Scalar) or node.style in ("|", ">"):
                continue
            spelling = text[node.start : node.end]
            if any(c in spelling for c in "\n\r\x85\u2028"):
                continue
            if not spelling:
                assert node.text == ""
            elif node.style:
                assert spelling[0] == spelling[-1] == node.style
                assert reparsed(spelling, flow=False).text == node.text
            else:
                assert spelling == node.text


@shared
def test_every_value_of_the_corpus_can_be_replaced_by_its_span():
    """Each replaced value changes itself alone."""
    paths = sorted(glob.glob(os.path.join(SHARED, "corpus", "areal", "**", "*.yaml"), recursive=True))
    assert paths
    for path in paths:
        with open(path, encoding="utf-8", newline="") as stream:
            text = stream.read()
        before = [n for n in walk(root(text)) if isinstance(n, Scalar)]
        for index in range(0, len(before), 40):
            node = before[index]
            if node.style in ("|", ">") or node.start == node.end:
                continue
            edited = text[: node.start] + "replaced_value" + text[node.end :]
            after = [n for n in walk(root(edited)) if isinstance(n, Scalar)]
            assert len(after) == len(before)
            for i, (old, new) in enumerate(zip(before, after, strict=True)):
                assert new.text == ("replaced_value" if i == index else old.text)


@shared
def test_lines_and_columns_are_libyamls():
    paths = sorted(glob.glob(os.path.join(SHARED, "corpus", "areal", "**", "*.yaml"), recursive=True))
    for path in paths[:10]:
        with open(path, encoding="utf-8", newline="") as stream:
            text = stream.read()
        index = LineIndex(text)
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.ScalarEvent):
                mark = event.start_mark
                assert index.position(mark.index) == (mark.line + 1, mark.column + 1)


def test_values_resolve_as_the_loader_constructs_them():
    text = "a: 1\nb: [on, 1e-5, 0o7, 017, ~, '1']\n"
    node = root(text)
    assert [resolve(i, PYYAML) for i in at(node, "b").items] == yaml.safe_load(text)["b"]


def test_each_file_has_a_budget_of_its_own():
    BUDGET.renew()
    BUDGET.left = 0  # what files before took
    assert read_text("a: [1, 2]", "x.yaml").documents[0].error is None
