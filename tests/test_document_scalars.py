"""Scalars mean what the loaders say, and what is written is read back."""

from __future__ import annotations

import datetime as dt
import math
import warnings

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from cfglint.document.edits import spell
from cfglint.document.json import parse_json
from cfglint.document.scalars import (
    JSON,
    OMEGACONF,
    PYYAML,
    is_float_like_string,
    resolve,
    resolve_plain,
)
from cfglint.document.tree import Missing, Scalar
from cfglint.document.yaml import parse_yaml
from tiers import tried
from viewed import same

NUMBERLIKE = st.text(alphabet="0123456789+-._eExXbBoO:aAfFinNyYsTtruU~", min_size=1, max_size=9)
WORDS = st.sampled_from(
    [
        "on",
        "Off",
        "YES",
        "no",
        "True",
        "y",
        "n",
        "NULL",
        "~",
        "null",
        "None",
        ".inf",
        "-.INF",
        ".NaN",
        "1e-5",
        "1e5",
        "1.0e5",
        "1.0e+5",
        "017",
        "08",
        "0o17",
        "0x1F",
        "0b11",
        "12:30:45",
        "1:30.5",
        "1_000",
        "1_0.5",
        ".5",
        "-.5",
        "+.5",
        ".5e3",
        "5.",
        "1.e-3",
        "0_",
        "0b_",
        "0x_",
        "-0",
        "+0",
        "2024-01-01",
        "=",
        "1__0",
        "0.",
        "00",
        "_1",
        "2001-12-14 21:59:43.10 -5",
        "1_0e5",
        "1_e5",
        "190:20:30",
        "0:0",
        "-1:2",
        "1:60",
    ]
)


@settings(deadline=None, max_examples=tried(1500))
@given(NUMBERLIKE | WORDS)
def test_pyyaml_is_pyyaml(text):
    try:
        tree = yaml.compose(text, yaml.CSafeLoader)
        value = yaml.load(text, yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, IndexError):
        assert not isinstance(resolve_plain(text, PYYAML), (int, float))
        return
    if not isinstance(tree, yaml.ScalarNode) or tree.style or tree.value != text:
        return
    if isinstance(value, (dt.date, dt.datetime)):
        value = text
    assert same(resolve_plain(text, PYYAML), value)


@settings(deadline=None, max_examples=tried(800))
@given(NUMBERLIKE | WORDS)
def test_omegaconf_is_omegaconf(text):
    try:
        tree = yaml.compose(text, yaml.CSafeLoader)
        value = OmegaConf.create(f"a: {text}").a
    except Exception:  # noqa: BLE001 (whatever it refuses is no number to us)
        assert not isinstance(resolve_plain(text, OMEGACONF), (int, float))
        return
    if not isinstance(tree, yaml.ScalarNode) or tree.style or tree.value != text:
        return
    assert same(resolve_plain(text, OMEGACONF), value)


@pytest.mark.parametrize(
    ("text", "pyyaml", "omegaconf"),
    [
        ("1e-5", "1e-5", 1e-5),
        ("1.0e-5", 1e-5, 1e-5),
        ("1.0e5", "1.0e5", 1e5),
        ("on", True, True),
        ("NO", False, False),
        ("017", 15, 15),
        ("12:30:45", 45045, 45045),
        ("1_000", 1000, 1000),
        ("2024-01-01", "2024-01-01", "2024-01-01"),
        ("~", None, None),
        ("", None, None),
        (".inf", math.inf, math.inf),
        ("None", "None", "None"),
    ],
)
def test_dialects(text, pyyaml, omegaconf):
    assert same(resolve(Scalar(text, 0, 0), PYYAML), pyyaml)
    assert same(resolve(Scalar(text, 0, 0), OMEGACONF), omegaconf)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("!!str 1", "1"),
        ("!!int '12'", 12),
        ("!!float 1", 1.0),
        ("!!float 1e-5", 1e-5),
        ("!!bool yes", True),
        ("!!null x", None),
        ("! '12'", 12),
        ("!", ""),
        ("'1'", "1"),
        ("|-\n  1", "1"),
    ],
)
def test_tags_and_styles(text, value):
    assert same(resolve(parse_yaml(text)[0].root, PYYAML), value)


@pytest.mark.parametrize(
    "text", ["!!int x", "!!bool maybe", "!!float x", "!custom 1", "!!binary aGk=", "!!int ''"]
)
def test_a_tag_that_cannot_be_honoured_is_missing(text):
    assert isinstance(resolve(parse_yaml(text)[0].root, PYYAML), Missing)


@pytest.mark.parametrize("text", ["1" * 5000, "0x" + "f" * 5000, "1:" * 3000 + "1", "-" + "9" * 4400])
@pytest.mark.parametrize("dialect", [PYYAML, OMEGACONF, JSON])
def test_endless_numbers_do_not_raise(text, dialect):
    value = resolve(Scalar(text, 0, 0), dialect)
    assert isinstance(value, (Missing, str))


@pytest.mark.parametrize(
    ("text", "pyyaml", "omegaconf"),
    [
        ("1e-5", True, False),
        ("1.0e5", True, False),
        ("-.5", True, True),
        ("1.0", False, False),
        ("1", False, False),
        ("e5", False, False),
        (".", False, False),
        ("1e", False, False),
        ("v1.5", False, False),
        ("", False, False),
        ("08", False, False),
        ("-5", False, False),
    ],
)
def test_float_like_strings(text, pyyaml, omegaconf):
    assert is_float_like_string(Scalar(text, 0, 0), PYYAML) is pyyaml
    assert is_float_like_string(Scalar(text, 0, 0), OMEGACONF) is omegaconf
    assert not is_float_like_string(Scalar(text, 0, 0, "'"), PYYAML)


VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | NUMBERLIKE
    | WORDS
    | st.text()
    | st.text(alphabet=" :#-?,[]{}&*!|>'\"%@`\n\t\\aé\u2028\x85\ufeff😀\x07=<~", max_size=8)
)
LIKES = st.sampled_from([None, *"'\"|>", "True", "no", "ON", "1e-6", "~", "", "x"]).map(
    lambda s: (
        None if s is None else Scalar("old", 0, 3, s) if s in ("'", '"', "|", ">") else Scalar(s, 0, len(s))
    )
)


@settings(deadline=None, max_examples=tried(1000))
@given(VALUES, LIKES, st.sampled_from([PYYAML, OMEGACONF]))
def test_what_is_spelled_is_read_back(value, like, dialect):
    if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
        return
    spelled = spell(value, like, dialect)
    for template in ("a: {}", "a: {}  # c\n", "a: [{}, 1]", "a: {{b: {}}}", "- {}\n", "a: {{b: {}, c: 1}}"):
        (parsed,) = parse_yaml(template.format(spelled))
        assert parsed.error is None, (spelled, template)
        node = parsed.root
        while not isinstance(node, Scalar):
            node = next(iter(node.entries.values())).value if hasattr(node, "entries") else node.items[0]
        assert same(resolve(node, dialect), value), (spelled, template)


@settings(deadline=None, max_examples=tried(300))
@given(VALUES)
def test_json_spelling(value):
    if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
        return
    assert same(resolve(parse_json(spell(value, None, JSON))[0].root, JSON), value)


@settings(deadline=None, max_examples=tried(200))
@given(st.text(max_size=6) | WORDS)
def test_a_spelled_text_is_a_text_to_the_real_loaders(value):
    if any("\ud800" <= c <= "\udfff" for c in value):
        return
    for dialect in (PYYAML, OMEGACONF):
        text = f"a: {spell(value, None, dialect)}"
        assert yaml.load(text, yaml.CSafeLoader) == {"a": value}
        if "$" not in value and "???" not in value:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert OmegaConf.create(text).a == value


@pytest.mark.parametrize(
    ("value", "like", "dialect", "spelled"),
    [
        (1e-5, None, PYYAML, "1.0e-5"),
        (1e-5, Scalar("1e-6", 0, 4), PYYAML, "1.0e-5"),
        (1e-5, Scalar("1e-6", 0, 4), OMEGACONF, "1e-5"),
        (1.7e-5, Scalar("1e-6", 0, 4), OMEGACONF, "1.7e-5"),
        (1e22, None, PYYAML, "1.0e+22"),
        (0.45, None, PYYAML, "0.45"),
        (2.0, None, PYYAML, "2.0"),
        (False, Scalar("True", 0, 4), PYYAML, "False"),
        (True, Scalar("off", 0, 3), PYYAML, "on"),
        (False, Scalar("YES", 0, 3), PYYAML, "NO"),
        (True, None, PYYAML, "true"),
        (None, Scalar("~", 0, 1), PYYAML, "~"),
        (None, None, PYYAML, "null"),
        ("bf16", Scalar("fp16", 0, 4, "'"), PYYAML, "'bf16'"),
        ("bf16", Scalar("fp16", 0, 4, '"'), PYYAML, '"bf16"'),
        ("Qwen/Qwen2.5-1.5B", None, PYYAML, "Qwen/Qwen2.5-1.5B"),
        ("sglang:d4p1t1", None, PYYAML, "sglang:d4p1t1"),
        ("no", None, PYYAML, "'no'"),
        ("1e-5", None, PYYAML, "'1e-5'"),
        ("a: b", None, PYYAML, "'a: b'"),
        ("", None, PYYAML, "''"),
        ("a\nb", None, PYYAML, '"a\\nb"'),
        (1e-5, None, JSON, "1e-5"),
        ("a", None, JSON, '"a"'),
        (16, Scalar("8", 0, 1), PYYAML, "16"),
    ],
)
def test_spelling(value, like, dialect, spelled):
    assert spell(value, like, dialect) == spelled
