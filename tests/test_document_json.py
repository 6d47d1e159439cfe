"""JSON to the same nodes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfglint.document.json import parse_json
from cfglint.document.scalars import JSON, resolve
from cfglint.document.tree import Mapping, Scalar, Sequence, walk
from tiers import tried
from viewed import same

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
SOUP = st.lists(
    st.sampled_from(
        [
            '"a"',
            '"b": ',
            '"',
            "\\",
            "\\u00e9",
            "\\ud83d\\ude00",
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            " ",
            "\n",
            "1",
            "-",
            "0",
            "01",
            "1.5",
            "1e5",
            ".",
            "true",
            "null",
            "NaN",
            "-Infinity",
            "x",
            "\t",
            "😀",
            "\x00",
            "//",
            "'",
        ]
    ),
    max_size=14,
).map("".join)


def native(node):
    if isinstance(node, Mapping):
        return {k: native(e.value) for k, e in node.entries.items()}
    if isinstance(node, Sequence):
        return [native(i) for i in node.items]
    return resolve(node, JSON)


@settings(deadline=None, max_examples=tried(300))
@given(VALUES, st.booleans(), st.sampled_from([None, 2, "\t"]))
def test_what_json_writes_is_read(value, ascii_only, indent):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    (parsed,) = parse_json(text)
    assert parsed.error is None
    assert same(native(parsed.root), json.loads(text))


@settings(deadline=None, max_examples=tried(1500))
@given(SOUP)
def test_it_takes_what_json_takes(text):
    (parsed,) = parse_json(text)
    if not text.strip(" \t\n\r"):
        assert (parsed.root, parsed.error) == (None, None)
        return
    try:
        expected = json.loads(text)
    except ValueError:
        assert parsed.error is not None
        assert 0 <= parsed.error.offset <= len(text)
    else:
        assert parsed.error is None
        assert same(native(parsed.root), expected)


@settings(deadline=None, max_examples=tried(300))
@given(VALUES)
def test_each_span_is_a_value_of_its_own(value):
    text = json.dumps(value, indent=1)
    (parsed,) = parse_json(text)
    for node in walk(parsed.root):
        assert same(native(node), json.loads(text[node.start : node.end]))
        if isinstance(node, Mapping):
            for name, entry in node.entries.items():
                assert json.loads(text[entry.key.start : entry.key.end]) == name


@pytest.mark.parametrize(
    ("text", "offset", "words"),
    [
        ('{"a": 1,}', 7, "comma"),
        ("[1, 2", 5, "ends"),
        ('{"a": 1 // c\n}', 8, "comments"),
        ("{'a': 1}", 1, "double quotes"),
        ('{"a": True}', 6, "True"),
        ('{"a": "b\n"}', 8, "line break"),
        ('{"a": "\\x"}', 7, "escape"),
        ('{"a": "b', 6, "unclosed"),
        ("{} x", 3, "end of the file"),
        ('{"a" 1}', 5, "':'"),
        ("[1 2]", 3, "','"),
        ('{"é": \x00}', 6, "NUL"),
        ("[" * 300, 200, "levels deep"),
    ],
)
def test_errors(text, offset, words):
    (parsed,) = parse_json(text)
    assert parsed.error.offset == offset
    assert words in str(parsed.error)


def test_duplicates_and_what_stood_before_an_error():
    (parsed,) = parse_json('{"a": 1, "a": 2, "b": [1, x]}')
    assert [(k.start, f.start) for k, f in parsed.duplicates] == [(9, 1)]
    assert native(parsed.root) == {"a": 2, "b": [1]}


@pytest.mark.parametrize(
    "text", ["[" * 10_000, '{"a":' * 10_000, '"' + "x" * 1_000_000 + '"', "[" + "1" * 1_000_000]
)
def test_hostile(text):
    (parsed,) = parse_json(text)
    for node in walk(parsed.root) if parsed.root is not None else ():
        if isinstance(node, Scalar):
            resolve(node, JSON)


@settings(deadline=None, max_examples=tried(300))
@given(VALUES, st.sampled_from(["// c\n", "# c\n", "/* c\n * / */", " "]))
def test_comments_are_passed_over(value, comment):
    """What hjson takes is noted, and the values are there all the same."""
    text = json.dumps(value, indent=1).replace("\n", f" {comment}\n")
    commented = "\n" in json.dumps(value, indent=1) and comment != " "
    (parsed,) = parse_json(text)
    assert (parsed.error is not None) == (parsed.lax is not None) == commented
    assert same(native(parsed.root), value) or value != value


def test_a_comma_too_many_is_passed_over():
    (parsed,) = parse_json('{"a": [1, 2,], "b": 3,}')
    assert parsed.error is parsed.lax
    assert native(parsed.root) == {"a": [1, 2], "b": 3}
