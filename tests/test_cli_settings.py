"""Settings: where they are found, that flags win, what is refused; the schema says what the code does."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from cfglint.boundary import Boundary
from cfglint.command import TABLE, offered, options, parse, setup
from cfglint.command.globs import Glob
from cfglint.errors import UsageError
from cfglint.features.fix import FixOptions

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = json.loads((ROOT / "schemas" / "settings.schema.json").read_text("utf-8"))

GOOD = {
    "gpu": [["a40", "h100-sxm:8"], "a40", []],
    "hardware": ["sheet.json"],
    "detect": [True, False],
    "framework": ["areal"],
    "frameworks": [{}, {"configs/*.yaml": "areal", "old/**": "trl==0.20"}],
    "model-config": ["ckpt/config.json"],
    "prices": ["prices.yaml"],
    "lengths": ["lengths.yaml"],
    "online": [True],
    "set": [["a.b=1"], "a=2"],
    "rules": ["mine.rules", ["rules"]],
    "rule": ["mem_fraction<=0.5"],
    "select": [["CFG"], "CFG"],
    "ignore": [["CFG"]],
    "skip-unknown": [True],
    "format": ["text", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown"],
    "fail-on": ["error", "warning", "info", "never", "error,tight", "never,tight,not-judged"],
    "fix-level": ["error", "warning", "info"],
    "annotate": [False],
    "jobs": [1, 16],
}
BAD = [1, 1.5, True, "", "nothing", [1], [["a"]], {"a": 1}, 0, -1]


def written(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {written(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)


def accepted(folder, key, value):
    (folder / "cfglint.toml").write_text(f"{key} = {written(value)}\n")
    try:
        options.settings_of(str(folder), Boundary())
    except UsageError as error:
        assert "\n" not in str(error), error  # noqa: PT017 (most values are accepted and raise nothing)
        return False
    return True


def test_the_schema_names_what_the_code_knows():
    assert set(SCHEMA["properties"]) == set(options.SETTINGS) == set(GOOD)
    names = {name for _, name, _ in offered(FixOptions)} | {"detect"}
    assert {key for key, (_, flag) in options.SETTINGS.items() if flag.kind != TABLE} <= names
    choices_of = {key: flag.choices for key, (_, flag) in options.SETTINGS.items() if flag.choices}
    assert set(choices_of) == {"format", "fail-on", "fix-level"}
    assert set(re.findall("[a-z-]+", SCHEMA["properties"]["fail-on"]["pattern"])) == set(
        choices_of.pop("fail-on")
    )
    for key, choices in choices_of.items():
        assert set(SCHEMA["properties"][key]["enum"]) == set(choices)


@pytest.mark.parametrize("key", [*GOOD, "gpus"])
def test_schema_and_code_agree(tmp_path, key):
    validator = Draft202012Validator(SCHEMA)
    for value in [*GOOD.get(key, []), *BAD]:
        assert accepted(tmp_path, key, value) == validator.is_valid({key: value}), (key, value)


def test_the_nearest_settings_hold(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert options.settings_of(str(inner), Boundary()) == {}
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.cfglint]\ngpu = "a40"\n')
    assert options.settings_of(str(inner), Boundary()) == {"gpu": ["a40"]}
    (tmp_path / "a" / "pyproject.toml").write_text('[project]\nname = "cfglint-user"\n[tool.ruff]\n')
    # A pyproject.toml without our table is passed by.
    assert options.settings_of(str(inner), Boundary()) == {"gpu": ["a40"]}
    (tmp_path / "a" / "cfglint.toml").write_text('gpu = ["h100-sxm"]\n')
    assert options.settings_of(str(inner), Boundary()) == {"gpu": ["h100-sxm"]}
    (inner / "pyproject.toml").write_text("[tool]\ncfglint = {jobs = 2}\n")
    assert options.settings_of(str(inner), Boundary()) == {"jobs": 2}


def test_paths_are_relative_to_the_file(tmp_path, monkeypatch):
    inner = tmp_path / "a"
    inner.mkdir()
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(inner)
    absolute = str(tmp_path / "x.rules")
    (tmp_path / "cfglint.toml").write_text(f'rules = ["mine", "{absolute}"]\nhardware = "hw/sheet.json"\n')
    found = options.settings_of(str(inner), Boundary())
    assert found == {"rules": ["../mine", absolute], "hardware": "../hw/sheet.json"}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("cfglint.toml", "gpus = 1", "unknown setting 'gpus'; did you mean 'gpu'?"),
        ("cfglint.toml", "gpu = [", "cfglint.toml: "),
        ("cfglint.toml", b"\xff\xfe", "not UTF-8 text, which TOML has to be"),
        ("pyproject.toml", "[tool]\ncfglint = 3", "tool.cfglint must be a table"),
        (
            "cfglint.toml",
            'format = "jsn"',
            "format must be one of text, concise, json, sarif, github, gitlab, junit, markdown, not 'jsn'",
        ),
    ],
)
def test_what_is_refused(tmp_path, name, text, said):
    (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(UsageError) as error:
        options.settings_of(str(tmp_path), Boundary())
    assert str(error.value).startswith(str(tmp_path / name))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def merged(folder, monkeypatch, text, *words):
    monkeypatch.chdir(folder)
    (folder / "cfglint.toml").write_text(text)
    return options.merged(parse(FixOptions, words))


def test_flags_win(tmp_path, monkeypatch):
    text = 'gpu = "a40"\nhardware = "s.json"\nfail-on = "info"\nselect = "CFG"\ndetect = false\njobs = 3\n'
    args = merged(tmp_path, monkeypatch, text)
    assert (args.gpu, args.hardware, args.fail_on, args.no_detect, args.jobs) == (
        ["a40"], "s.json", "info", True, 3,
    )  # fmt: skip
    args = merged(tmp_path, monkeypatch, text, "--gpu", "h100-sxm", "--fail-on", "never", "--jobs", "1")
    assert (args.gpu, args.hardware, args.fail_on, args.jobs) == (["h100-sxm"], None, "never", 1)
    args = merged(tmp_path, monkeypatch, text, "--hardware", "t.json")
    assert (args.gpu, args.hardware) == ([], "t.json")


def test_through_the_command(cfglint, config, small):
    (config.parent / "cfglint.toml").write_text('gpu = "a40"\nrules = "mine.rules"\nselect = ["USR"]\n')
    (config.parent / "mine.rules").write_text(
        'rule USR001 too-much error {\n  colocated -> mem_fraction <= 0.5\n  say "too much"\n}\n'
    )
    below = config.parent / "sub"
    below.mkdir()
    done = cfglint("check", config, "--format", "concise")
    assert done.returncode == 1, done.stderr
    assert "error USR001 too much" in done.stdout
    (config.parent / "cfglint.toml").write_text('gpuu = "a40"\n')
    done = cfglint("check", config)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "cfglint.toml: unknown setting 'gpuu'; did you mean 'gpu'?" in done.stderr


GLOBS = [
    ("*.yaml", "a.yaml", True),
    ("*.yaml", "a/a.yaml", False),
    ("**/*.yaml", "a.yaml", True),
    ("**/*.yaml", "a/b/c.yaml", True),
    ("a/**", "a/b/c.yaml", True),
    ("a/**", "ab/c.yaml", False),
    ("a/**/c.yaml", "a/c.yaml", True),
    ("a/**/c.yaml", "a/b/b/c.yaml", True),
    ("a/**/c.yaml", "a/bc.yaml", False),
    ("a?c.yaml", "abc.yaml", True),
    ("a?c.yaml", "a/c.yaml", False),
    ("a[b-d].yaml", "ac.yaml", True),
    ("a[!b-d].yaml", "ac.yaml", False),
    ("a[!b].yaml", "a/.yaml", False),
    ("a[.yaml", "a[.yaml", True),
    ("a+(b).yaml", "a+(b).yaml", True),
    ("a.yaml", "abyaml", False),
]


@pytest.mark.parametrize(("glob", "path", "fits"), GLOBS)
def test_globs(glob, path, fits):
    assert Glob(glob).matches(path) == fits


@pytest.mark.parametrize("bad", ["[z-a]", "[]", "[!]", "[a-]", "[", "[[]", "[^a]", "[]-a]"])
def test_any_glob_can_be_asked(bad):
    assert not Glob(bad).matches("some/path.yaml")


def as_regex(glob):
    """Say what a glob of these letters means in another language."""
    out, start = "", True
    for part in re.findall(r"\*\*/|\*\*|.", glob):
        if part == "**/" and start:
            out += "(?:.*/)?"
        else:
            parts = re.findall(r"\*\*|.", part)
            out += "".join({"*": "[^/]*", "?": "[^/]", "**": ".*"}.get(p, re.escape(p)) for p in parts)
        start = part.endswith("/")
    return out


@given(st.text("ab/*?", max_size=8), st.text("ab/", max_size=8))
def test_globs_mean_what_the_regular_expression_means(glob, path):
    assert Glob(glob).matches(path) == (re.fullmatch(as_regex(glob), path) is not None)


def test_frameworks_by_path(tmp_path, monkeypatch):
    inner = tmp_path / "configs"
    (inner / "old").mkdir(parents=True)
    monkeypatch.chdir(inner)
    table = (
        'frameworks = { "configs/**" = "trl==0.20", "./configs/old/*.yaml" = "areal" }\nframework = "verl"\n'
    )
    (tmp_path / "cfglint.toml").write_text(table)
    run = setup.run(options.merged(parse(FixOptions, ["--no-detect"])))
    assert run.named_for("a.yaml") == ("trl", (0, 20))
    assert run.named_for("old/a.yaml") == ("areal", None), "the last one wins"
    assert run.named_for(str(inner / "old" / "a.yaml")) == ("areal", None)
    assert run.named_for("../a.yaml") == ("verl", None), "the others are what the settings say of all"
    assert run.named_for("<stdin>") == ("verl", None)
    words = ["--no-detect", "--framework", "axolotl"]
    run = setup.run(options.merged(parse(FixOptions, words)))
    assert run.named_for("old/a.yaml") == ("axolotl", None), "the flag goes before both"


def test_frameworks_by_path_through_the_command(cfglint, folder):
    (folder / "old").mkdir()
    text = "zero_optimization: {stage: 7}\n"
    for name in ("a.yaml", "old/a.yaml"):
        (folder / name).write_text(text)
    (folder / "cfglint.toml").write_text('[frameworks]\n"old/*" = "axolotl"\n')
    done = cfglint("check", ".", "--format", "concise", "--jobs", "2")
    assert "\na.yaml:1:" in f"\n{done.stdout}", done.stdout
    assert "zero_optimization.stage" not in "".join(
        line for line in done.stdout.splitlines() if line.startswith("old/")
    )
    for named, said in (
        ("axolotle", "cfglint.toml: frameworks: unknown framework 'axolotle'; did you mean 'axolotl'?"),
        ("axolotl==new", "cfglint.toml: frameworks: 'new' is not a version; write axolotl==1.0.4"),
    ):
        (folder / "cfglint.toml").write_text(f'[frameworks]\n"old/*" = "{named}"\n')
        done = cfglint("check", ".")
        assert done.returncode == 2
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
