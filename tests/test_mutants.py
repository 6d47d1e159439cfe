"""What no other test noticed when benchmarks/mutation.py changed it."""

from math import inf
from types import SimpleNamespace

import pytest

from cfglint.document.edits import insert_key, replace_value, spell
from cfglint.document.reading import read_text
from cfglint.document.scalars import JSON, PYYAML, SHELL
from cfglint.repair import write
from cfglint.text import apply_edits


def _inserted(text, path, name="c.yaml", dialect=PYYAML):
    edit = insert_key(read_text(text, name).documents[0], path, 1, dialect)
    return None if edit is None else apply_edits(text, [edit])


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a: !!null\n", ("a", "b")),  # a tagged value would be lost
        ("a: 1\n", ("b", 0)),  # nothing makes a list
        ("a: [1]\n", ("a", 5, "b")),  # there is no such item
        ("a: [1]\n", ("a", 1, "b")),
    ],
)
def test_a_key_without_a_place(text, path):
    assert _inserted(text, path) is None


@pytest.mark.parametrize("mark", ["\u2028", "\x85"])
def test_a_flag_where_places_are_not_known(mark):
    text = f"num_nodes: 2{mark}run: |{mark}  torchrun t.py --a 8 \\{mark}    --b 9{mark}"
    assert _inserted(text, ("z",), "job.yaml", SHELL) is None


def test_a_value_is_filled_in_beside_a_list():
    text = "m:\n  k:\ns: [1]\n"
    document = read_text(text, "c.yaml").documents[0]
    node = document.root.entries["m"].value.entries["k"].value
    assert apply_edits(text, [replace_value(document, node, 2, PYYAML)]) == "m:\n  k: 2\ns: [1]\n"


def test_spelling():
    assert [spell(value, None, PYYAML) for value in (inf, -inf)] == [".inf", "-.inf"]
    assert [spell(value, None, JSON) for value in (inf, -inf)] == ["Infinity", "-Infinity"]
    assert spell("\x01 é\x7f", None, JSON) == '"\\u0001 é\x7f"'


def test_readers_in_words():
    assert write._reading(("a",)) == "a reads"
    assert write._reading(("a", "b", "c")) == "a, b, c read"
    assert write._reading(("a", "b", "c", "d")) == "a, b, c and others read"


def test_members_as_the_file_spells_them():
    words = [
        ("1", "1"),
        ("2", "2"),
        ("bfloat16", "bf16"),
        ("bf16", "bf16"),
        ("float16", "fp16"),
        ("fp16", "fp16"),
    ]
    kind = SimpleNamespace(spellings=words)
    assert write._like_before("2", kind, 1, None) == 2
    assert write._like_before("2", kind, "1", None) == "2"
    assert write._like_before("fp16", kind, "bfloat16", None) == "float16"
    assert write._like_before("fp16", kind, 1, None) == "float16"
    assert write._like_before("fp16", kind, None, "half") == "half"
