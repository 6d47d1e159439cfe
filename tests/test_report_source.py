"""What is shown of a config: the line, the caret under its value, the window, the changed lines."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from cfglint.findings import Finding, Fix, Place, Report
from cfglint.report import render
from cfglint.report.changes import changes, window
from cfglint.text import Edit, LineIndex, wrap


def report(text, where, fix=None):
    made = Report()
    made.findings = [Finding(where, "CFG009", "wrong", "error", "error", "it is wrong", fix=fix)]
    made.texts = {} if text is None else {where.path: text}
    made.files = 1
    return made


def place(text, value):
    return Place("c.yaml", text.index(value), text.index(value) + len(value))


def body(text, where):
    return render(report(text, where), "text").splitlines()[1:3]


@pytest.mark.parametrize(
    ("text", "value", "rows"),
    [
        ("a:\r\n  b: 8\r\nc: 1\r\n", "8", ["2 |   b: 8", "  |      ^"]),
        ("a: 1\rb: 22\rc: 3", "22", ["2 | b: 22", "  |    ^^"]),
        ("名前: '模型'  # x\n", "'模型'", ["1 | 名前: '模型'  # x", "  |       ^^^^^^"]),
        ("{k:\t[🚀,\t7]}\n", "7", ["1 | {k:    [🚀,    7]}", "  |                ^"]),
        ("\tx:\ty\t\n", "y", ["1 |     x:    y", "  |           ^"]),
        ("a: é\u0301z\n", "z", ["1 | a: é\u0301z", "  |     ^"]),
        ("x: [red]b[/red]\n", "b", ["1 | x: [red]b[/red]", "  |         ^"]),
        ("x: \x1b[31mhot\n", "hot", ["1 | x: \\x1b[31mhot", "  |            ^^^"]),
        ("a:\n  b: |\n    x\n    y\nc: 1\n", "b: |\n    x\n", ["2 |   b: |", "  |   ^^^^"]),
        ("a:\n", "", ["1 | a:", "  | ^"]),
    ],
)
def test_caret_stands_under_the_value(text, value, rows):
    assert body(text, place(text, value)) == rows


def test_empty_value_at_the_end_of_a_line():
    assert body("a:\nb: 1\n", Place("c", 2, 2)) == ["1 | a:", "  |   ^"]
    assert body("a:\nb:", Place("c", 5, 5)) == ["2 | b:", "  |   ^"]
    assert body("a:\n", Place("c", 3, 3)) == ["2 |", "  | ^"]


@pytest.mark.parametrize("text", ["", None])
def test_nothing_to_show(text):
    made = report(text, Place("c.yaml", 0, 0))
    assert render(made, "text") == "c.yaml:1:1: error CFG009 wrong\n  it is wrong\n\n1 error in 1 file\n"
    assert render(made, "concise").startswith("c.yaml:1:1: error CFG009 it is wrong\n")
    assert json.loads(render(made, "json"))["findings"][0]["start"] == {"offset": 0, "line": 1, "column": 1}


def test_long_line_is_cut_around_the_value():
    text = "list: [" + ", ".join(f"item{i}" for i in range(9000)) + "]\n"
    source, caret = body(text, place(text, "item4567"))
    assert len(source) <= 80
    assert source.startswith("1 | …")
    assert source.endswith("…")
    assert source[caret.index("^") : caret.rindex("^") + 1] == "item4567"


@given(
    line=st.text("ab \t中🚀é\u0301\u200d\x1b", max_size=90),
    start=st.integers(0, 90),
    size=st.integers(0, 40),
    room=st.integers(20, 80),
)
def test_window_holds_the_value(line, start, size, room):
    start = min(start, len(line))
    text, at, cells = window(line, start, start + size, room)
    assert cell_len(text) <= room
    assert at <= room
    assert at + cells <= max(room, at)
    assert text.isprintable() or "\u200d" in text


def test_wrap():
    assert wrap("aa bb cc", 7, "  ", "   ") == ["  aa bb", "   cc"]
    assert wrap("a-word-too-long bb", 7, "  ", "   ") == ["  a-word-too-long", "   bb"]
    assert wrap("it takes 36.3 GiB", 15, "", "") == ["it takes", "36.3 GiB"]
    assert wrap("中文中文 中文", 8, "", "", cells=cell_len) == ["中文中文", "中文"]
    assert wrap("", 80, "  ", "") == [""]


def test_changes_of_many_lines():
    text = "".join(f"k{i}: 0\n" for i in range(12))
    edits = tuple(Edit(i, i + 1, "1") for i, char in enumerate(text) if char == "0" and text[i - 1] == " ")[
        :5
    ]
    made = report(text, Place("c", 0, 2), Fix(1, "t", edits, applicability="safe"))
    assert "\n   … 6 more changed lines\n" in render(made, "text")
    assert render(made, "text", verbose=True).count(" + k") == 5


def test_inserted_lines():
    index = LineIndex("a:\n  b: 1\nc: 2\n")
    (change,) = changes(index, [Edit(10, 10, "  d: 3\n")])
    assert (change.old, change.new, change.new_line) == ([], ["  d: 3"], 3)
    (change,) = changes(LineIndex("a: 1"), [Edit(4, 4, "\nb: 2")])
    assert (change.old, change.new, change.new_line) == ([], ["b: 2"], 2)
    (change,) = changes(LineIndex("a: 1\n"), [Edit(5, 5, "b: 2\n")])
    assert (change.old, change.new, change.new_line) == ([], ["b: 2"], 2)
    first, second = changes(index, [Edit(0, 0, "z: 0\n"), Edit(13, 14, "9")])
    assert (first.new_line, second.old_line, second.new_line, second.new) == (1, 3, 4, ["c: 9"])


def test_diff_of_crlf_lines_shows_no_carriage_return():
    text = "a: 1\r\nb: 2\r\n"
    fix = Fix(1, "t", (Edit(3, 4, "3"), Edit(12, 12, "c: 中\r\n")), applicability="safe")
    rows = render(report(text, place(text, "1"), fix), "text").splitlines()
    assert rows[5:8] == ["1 - a: 1", "1 + a: 3", "3 + c: 中"]
