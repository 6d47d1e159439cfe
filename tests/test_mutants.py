"""What no other test noticed when benchmarks/mutation.py changed it."""

from math import inf
from types import SimpleNamespace

import pytest

from cfglint.document.edits import insert_key, replace_value, spell
from cfglint.document.reading import read_text
from cfglint.document.scalars import JSON, PYYAML, SHELL
from cfglint.lang import values
from cfglint.repair import invert, patch
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
    assert patch._reading(("a",)) == "a reads"
    assert patch._reading(("a", "b", "c")) == "a, b, c read"
    assert patch._reading(("a", "b", "c", "d")) == "a, b, c and others read"


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
    assert invert._like_before("2", kind, 1, None) == 2
    assert invert._like_before("2", kind, "1", None) == "2"
    assert invert._like_before("fp16", kind, "bfloat16", None) == "float16"
    assert invert._like_before("fp16", kind, 1, None) == "float16"
    assert invert._like_before("fp16", kind, None, "half") == "half"


def test_bounds_of_products_and_quotients():
    assert [values._times(a, b) for a, b in ((-1, 5), (0, inf), (inf, 0), (2, 3))] == [-5, 0, 0, 6]
    assert [values._over(a, b) for a, b in ((1, 4), (0, 4), (3, inf), (inf, inf))] == [0.25, 0, 0, 0]


def test_an_interval_equals_what_is_in_it_perhaps():
    interval = values.Interval(1, 2)
    assert [interval == number for number in (0, 3)] == [False, False]
    assert isinstance(interval == 1.5, values.Open)
