"""Reading flags: places, spellings, repetition, and what is said when one is wrong."""

import pytest

from cfglint.command.flags import LIST, NUMBER, SWITCH, TEXT, Flag, Parser
from cfglint.errors import UsageError
from cfglint.features.check import command as check
from cfglint.features.fix import command as fix

FLAGS = (
    Flag("gpu", "a GPU", kind=LIST, metavar="NAME"),
    Flag("format", "the form", kind=TEXT, metavar="FORM", choices=("text", "json")),
    Flag("jobs", "how many", kind=NUMBER, metavar="N"),
    Flag("quiet", "less", kind=SWITCH, short="q"),
    Flag("verbose", "more", kind=SWITCH, short="v"),
)
MANY = Parser("check", "Lint.", FLAGS, positional=("paths", "PATH", "files"), many=True, default=["."])
ONE = Parser("explain", "Tell.", (), positional=("code", "CODE", "a rule"), needed=True)


def read(*words):
    return vars(MANY.parse_args(words))


def test_nothing_given():
    expected = {"paths": ["."], "gpu": None, "format": None, "jobs": None, "quiet": False, "verbose": False}
    assert read() == expected


@pytest.mark.parametrize(
    "words",
    [
        ("a", "b", "--gpu", "x", "--gpu", "y", "-q"),
        ("--gpu=x", "a", "-q", "--gpu=y", "b"),
        ("-q", "--gpu", "x", "--gpu=y", "--", "a", "b"),
    ],
)
def test_places_and_spellings(words):
    args = read(*words)
    assert (args["paths"], args["gpu"], args["quiet"]) == (["a", "b"], ["x", "y"], True)


def test_short_flags_together():
    assert read("-qv")["quiet"]
    assert read("-vq")["verbose"]


def test_stdin_and_odd_values():
    assert read("-")["paths"] == ["-"]
    assert read("--", "--gpu")["paths"] == ["--gpu"]
    assert read("--gpu", "-1 < x")["gpu"] == ["-1 < x"]
    assert read("--gpu==a")["gpu"] == ["=a"]
    assert read("--jobs", "4")["jobs"] == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--gpuu", "a"), "cfglint check knows no flag --gpuu; did you mean '--gpu'?"),
        (("--zzz",), "cfglint check knows no flag --zzz; see cfglint check --help"),
        (("-x",), "cfglint check knows no flag -x"),
        (("-qx",), "cfglint check knows no flag -x"),
        (("--gpu",), "--gpu wants NAME; see cfglint check --help"),
        (("--gpu", "--quiet"), "--gpu wants NAME"),
        (("--quiet=1",), "--quiet takes no value"),
        (("--format", "jsn"), "--format takes text, json, not 'jsn'; did you mean 'json'?"),
        (("--jobs", "0"), "--jobs takes a number from 1 on, not '0'"),
        (("--jobs", "-1"), "--jobs takes a number from 1 on, not '-1'"),
        (("--jobs", "९"), "--jobs takes a number"),
        (("--gp", "a"), "cfglint check knows no flag --gp; did you mean '--gpu'?"),
        (("",), "an empty PATH; is a variable of the shell not set?"),
    ],
)
def test_mistakes(words, said):
    with pytest.raises(UsageError) as error:
        read(*words)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_one_positional():
    assert ONE.parse_args(["X"]).code == "X"
    with pytest.raises(UsageError, match="wants CODE"):
        ONE.parse_args([])
    with pytest.raises(UsageError, match="takes one CODE, and 'Y' is a second one"):
        ONE.parse_args(["X", "Y"])
    with pytest.raises(UsageError, match="takes no 'X'"):
        Parser("gpus", "List.", ()).parse_args(["X"])


@pytest.mark.parametrize("parser", [check.parser(), fix.parser()], ids=lambda p: p.command)
def test_help_names_every_flag(parser, capsys):
    with pytest.raises(SystemExit) as end:
        parser.parse_args(["--help"])
    assert end.value.code == 0
    page = capsys.readouterr().out
    for flag in parser.flags:
        assert f"--{flag.name}" in page
    assert max(map(len, page.splitlines())) <= 110
