"""Reading flags: places, spellings, repetition, and what is said when one is wrong."""

import pytest

from cfglint.command import Arguments, form, free, number, offered, parse, switch, texts
from cfglint.errors import UsageError
from cfglint.features.check import CheckOptions
from cfglint.features.fix import FixOptions
from cfglint.record import fields


class Many(Arguments):
    command = "check"
    about = "Lint."

    paths: list[str] = free("PATH", "files", many=True, default=["."])
    gpu: list[str] = texts("a GPU", "NAME")
    format: str | None = form(("text", "json"))
    jobs: int | None = number("how many", "N")
    quiet: bool = switch("less", short="q")
    verbose: bool = switch("more", short="v")


class One(Arguments):
    command = "explain"
    about = "Tell."

    code: str = free("CODE", "a rule", needed=True)


class Nothing(Arguments):
    command = "gpus"
    about = "List."


def read(*words):
    args = parse(Many, words)
    return {name: getattr(args, name) for name in fields(args)}


def test_nothing_given():
    expected = {"paths": ["."], "gpu": [], "format": None, "jobs": None, "quiet": False, "verbose": False}
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
        (("--gpuu", "a"), "cfglint check has no flag --gpuu; did you mean '--gpu'?"),
        (("--zzz",), "cfglint check has no flag --zzz; see cfglint check --help"),
        (("-x",), "cfglint check has no flag -x"),
        (("-qx",), "cfglint check has no flag -x"),
        (("--gpu",), "--gpu needs NAME; see cfglint check --help"),
        (("--gpu", "--quiet"), "--gpu needs NAME"),
        (("--quiet=1",), "--quiet takes no value"),
        (("--format", "jsn"), "--format takes text, json, not 'jsn'; did you mean 'json'?"),
        (("--jobs", "0"), "--jobs takes a whole number, 1 or more, not '0'"),
        (("--jobs", "-1"), "--jobs takes a whole number, 1 or more, not '-1'"),
        (("--jobs", "९"), "--jobs takes a whole number"),
        (("--gp", "a"), "cfglint check has no flag --gp; did you mean '--gpu'?"),
        (("",), "empty PATH: is a shell variable unset?"),
    ],
)
def test_mistakes(words, said):
    with pytest.raises(UsageError) as error:
        read(*words)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_one_positional():
    assert parse(One, ["X"]).code == "X"
    with pytest.raises(UsageError, match="needs CODE"):
        parse(One, [])
    with pytest.raises(UsageError, match="takes one CODE, and 'Y' is a second one"):
        parse(One, ["X", "Y"])
    with pytest.raises(UsageError, match="takes no 'X'"):
        parse(Nothing, ["X"])


def test_lists_are_not_shared():
    parse(Many, ["--gpu", "x", "."]).paths.append("y")
    assert (read()["gpu"], read()["paths"]) == ([], ["."])


@pytest.mark.parametrize("kind", [CheckOptions, FixOptions], ids=lambda kind: kind.command)
def test_help_names_every_flag(kind, capsys):
    with pytest.raises(SystemExit) as end:
        parse(kind, ["--help"])
    assert end.value.code == 0
    page = capsys.readouterr().out
    for _, name, _ in offered(kind):
        assert f"--{name}" in page
    assert max(map(len, page.splitlines())) <= 110
