"""`unified` is judged by git itself: `git apply` on what it wrote must give the new text, byte for byte."""

import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfglint.report.changes import split_lines, unified
from tiers import tried

# Lines from few pieces, so that equal runs, empty lines and all kinds of line ends meet.
PIECES = [
    "a: 1",
    "b: 2",
    "  c: 中文",
    "",
    " ",
    "-- x",
    "++ y",
    "@@",
    "\\ No newline",
    "\t# z ",
    "\x0c",
    "\x85",
    "\u2028",
]
ENDS = ["\n", "\n", "\n", "\r\n", "\r", ""]
TEXTS = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(ENDS)), max_size=30).map(
    lambda rows: "".join(piece + end for piece, end in rows)
)
NAMES = [
    "c.yaml",
    "a b.yaml",
    " lead.yaml",
    "tail ",
    "dir/x y/c.yaml",
    "训练.yaml",
    'q"uote.yaml',
    "back\\slash",
    "tab\tx",
    "new\nline",
]


@pytest.fixture(scope="module")
def repo(tmp_path_factory):
    root = tmp_path_factory.mktemp("repo")
    git(root, "init", "-q")
    return root


def git(root, *args, stdin=None):
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *args], cwd=root, input=stdin, capture_output=True, env=env, check=False)
    assert done.returncode == 0, (done.stderr.decode(), stdin)
    return done.stdout


def applied(root, name, old, new, given=None):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(old.encode())
    patch = unified(given or name, old, new).encode()
    git(root, "apply", "--check", "-", stdin=patch)
    git(root, "apply", "-", stdin=patch)
    return path.read_bytes()


@settings(max_examples=tried(80), deadline=None)
@given(old=TEXTS, new=TEXTS)
def test_git_applies_any_change(repo, old, new):
    if old == new:
        assert unified("c.yaml", old, new) == ""
    else:
        assert applied(repo, "c.yaml", old, new) == new.encode()


@settings(max_examples=tried(40), deadline=None)
@given(text=TEXTS.filter(bool), data=st.data())
def test_git_applies_a_small_edit(repo, text, data):
    at = data.draw(st.integers(0, len(text)))
    new = (
        text[:at]
        + data.draw(st.sampled_from(["0.5", "\n", "x: 1\r\n", "é"]))
        + text[at + data.draw(st.integers(0, 3)) :]
    )
    if text != new:
        assert applied(repo, "c.yaml", text, new) == new.encode()


@pytest.mark.parametrize("name", NAMES)
def test_names_are_quoted_as_git_wants(repo, name):
    assert applied(repo, name, "a: 1\n", "a: 2\n") == b"a: 2\n"


@pytest.mark.parametrize("given", ["/c.yaml", "./c.yaml", ".//./c.yaml", "//c.yaml"])
def test_paths_are_made_relative(repo, given):
    assert applied(repo, "c.yaml", "a: 1\n", "a: 2\n", given) == b"a: 2\n"


def test_bom_stays(repo):
    assert applied(repo, "c.yaml", "\ufeffa: 1\r\n", "\ufeffa: 2\r\n") == b"\xef\xbb\xbfa: 2\r\n"


def test_hunks():
    old = "".join(f"{i}\n" for i in range(1, 21))
    new = old.replace("2\n", "two\n", 1).replace("20\n", "20")
    assert unified("c.yaml", old, new) == (
        "--- a/c.yaml\n+++ b/c.yaml\n"
        "@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n"
        "@@ -17,4 +17,4 @@\n 17\n 18\n 19\n-20\n+20\n\\ No newline at end of file\n"
    )


@pytest.mark.parametrize(
    ("path", "head"),
    [
        ("c.yaml", "--- a/c.yaml\n+++ b/c.yaml\n"),
        ("a b.yaml", "--- a/a b.yaml\t\n+++ b/a b.yaml\t\n"),
        ("é", '--- "a/\\303\\251"\n+++ "b/\\303\\251"\n'),
        ("/work/c.yaml", "--- a/work/c.yaml\n+++ b/work/c.yaml\n"),
    ],
)
def test_head(path, head):
    assert unified(path, "", "x\n") == head + "@@ -0,0 +1 @@\n+x\n"


@given(TEXTS)
def test_split_lines_loses_nothing(text):
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(line.index("\n") == len(line) - 1 for line in lines if "\n" in line)
    assert "" not in lines
