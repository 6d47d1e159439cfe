"""Whether bash refuses a script: what it says itself, on scripts of every kind."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfglint.document.shell.balance import is_refused, refused_from

FINE = [
    "echo it\\'s\n",
    "# it's a comment\ntrain --lr 1 # don't\n",
    "echo \"it's $(date +'%s') ${x:-its}\"\n",
    "cat <<EOF\nit's \"here ( fi\nEOF\n",
    "cat <<-'A_B'\n\tit's\n\tA_B\necho\n",
    'x=$((1 << n)); y="$((1 << 30))"\n',
    'cat <<< "$x"\n',
    "echo $'it\\'s' ${#x} $# `echo \"a\"`\n",
    "local -a x=(\n  a 'b c'\n)\n",
    'rest="${stat##*) }"\n',
    "function f {\n  exec 2>&2\n}\ng() { echo done fi; }\n",
    "case $x in\n  a|b) echo a ;;\n  (c) if true; then echo; fi ;&\n  *) ;;\nesac\n",
    "for i in 1 2; do while read -r x; do echo $x; done; done < file\n",
    "for ((i = 0; i < 2; i++)); do [[ $a == b && ( $c ) ]] || { echo; }; done\n",
    "if ! a; then b; elif c; then d; else e; fi | tee x &\n",
    "echo {a,b} a}b }\n",
]
REFUSED = [
    "echo it's\n",
    'echo "${x:-it\'s}"\n',
    'train "\n',
    "x=\"$(echo 'a')\n",
    "echo $'a\\'\n",
    "# no\npython \"a.py --lr '1'\n",
    "train\n)\n",
    "if [ x\n",
    "case x in\n",
    "for i in 1; do echo; fi\n",
    "f() {\necho\n",
    "echo\n}\n",
]


@pytest.mark.parametrize("text", FINE)
def test_what_bash_takes(text):
    assert not is_refused(text)


@pytest.mark.parametrize("text", REFUSED)
def test_what_bash_refuses(text):
    assert is_refused(text)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize("text", [*FINE, *REFUSED])
def test_as_bash_has_it(text):
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == is_refused(text), done.stderr


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("a\nb 4'\n", 5),
        ('a\nb "c $(d\n', 4),
        ("a\nif b; then\nc\n", 2),
        ("a\n(b; c) )\n", 9),
        ("a\nb '4'\n", None),
    ],
)
def test_what_comes_before_is_run(text, start):
    assert refused_from(text) == start


@given(st.text(alphabet="a \"'\\`$(){}#<;\n", max_size=60))
def test_any_text_is_gone_through(text):
    assert is_refused(text) in (True, False)
