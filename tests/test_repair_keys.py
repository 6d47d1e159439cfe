"""Rules that speak of keys get fixes where what they ask for is plain; such fixes are unsafe, and proven."""

from __future__ import annotations

import json

import pytest

_BLOCK = "framework mine {\n  dialect omegaconf\n  detect has($.training)\n}\n"


def _fixed(cfglint, folder, rule: str, text: str, name: str = "c.yaml") -> str:
    """Return what ``fix --unsafe`` makes of a config."""
    (folder / "own.rules").write_text(_BLOCK)
    (folder / name).write_text(text)
    done = cfglint("fix", name, "--rules", "own.rules", "--rule", rule, "--select", "CLI", "--unsafe")
    assert done.returncode in (0, 1), done.stderr
    return (folder / name).read_text()


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        ("$.training.lr <= 1e-3", "lr: 0.5  # high", "lr: 0.001  # high"),
        ("$.training.lr >= 2", "lr: 1", "lr: 2"),
        ("$.training.lr <= 0.5", "lr: 1", "lr: 0.5"),
        ("1 <= $.training.n < 100", "n: 400", "n: 99"),
        ("$.training.n in 8..16", "n: 3", "n: 8"),
        ("$.training.n in [1, 2, 4, 8]", "n: 7", "n: 8"),
        ('$.training.n in ["auto", 2, 4]', "n: 7", "n: 4"),
        ('$.training.b in ["nccl", "gloo"]', "b: mpi", "b: nccl"),
        ('$.training.b == "x"', 'b: "y"', 'b: "x"'),
        ("$.training.on == true", "on: false", "on: true"),
        ("not $.training.on", "on: yes", "on: no"),
        ("$.training.on", "on: false", "on: true"),
        ("not ($.training.n > 4)", "n: 5", "n: 4"),
        ("$.training.wait <= 5 min", "wait: 10", "wait: 5"),
        ("$.training.n >= 4 or $.training.n == 0", "n: 3", "n: 4"),
        ("$.training.n >= 2 and $.training.n in [1, 2, 4]", "n: 0", "n: 2"),
        ("has($.training.n) and $.training.n == 4", "m: 1", "m: 1\n  n: 4"),
        ("num_gpus >= 0 and $.training.n <= 2 * 4", "n: 9", "n: 8"),
        ("$.training.n mod 8 == 0", "n: 12", "n: 16"),
        ("$.training.n * 2 <= 4", "n: 3", "n: 2"),
        ("8 mod $.training.n == 0 and $.training.n >= 3", "n: 3", "n: 4"),
    ],
)
def test_what_is_plain(cfglint, folder, rule: str, before: str, after: str) -> None:
    assert _fixed(cfglint, folder, rule, f"training:\n  {before}\n") == f"training:\n  {after}\n"


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("$.training.n != 3", "n: 3"),
        ("$.training.lr < 0.5", "lr: 0.5"),
        ('$.training.b like "x*"', "b: y"),
        ("has($.training.n)", "m: 3"),
        ("not has($.training.n)", "n: 3"),
    ],
)
def test_what_is_not_plain(cfglint, folder, rule: str, line: str) -> None:
    text = f"training: {line}\n" if line[0] == "{" else f"training:\n  {line}\n"
    assert _fixed(cfglint, folder, rule, text) == text


def test_a_definition_that_other_keys_read(cfglint, folder) -> None:
    text = "training: {lr: &rate 0.5}\nlow: 0.25\nother: *rate\nthird: ${low}\n"
    rule = "$.training.lr <= 0.1 and $.other <= 0.05 and $.third <= 0.2"
    fixed = _fixed(cfglint, folder, rule, text)
    assert fixed == "training: {lr: &rate 0.05}\nlow: 0.2\nother: *rate\nthird: ${low}\n"


def test_the_twin_of_a_rule_is_kept(cfglint, folder) -> None:
    """Six shards would do for the one rule, and not for the other, which is broken as well."""
    (folder / "own.rules").write_text(_BLOCK)
    (folder / "c.yaml").write_text("training:\n  shards: 3\n")
    rules = ("--rule", "8 mod $.training.shards == 0", "--rule", "$.training.shards * 2 >= 8")
    cfglint("fix", "c.yaml", "--rules", "own.rules", *rules, "--select", "CLI", "--unsafe")
    assert (folder / "c.yaml").read_text() == "training:\n  shards: 4\n"


def test_items_of_a_list(cfglint, folder) -> None:
    text = "training: {}\nservers:\n  - {port: 80}\n  - name: x\n    port: 443\n  - port: 8080\n"
    fixed = _fixed(cfglint, folder, "all s in $.servers: s.port >= 1024", text)
    assert fixed == text.replace("80}", "1024}").replace("443", "1024")
    fixed = _fixed(cfglint, folder, "all p in $.servers[*].port: p >= 1024", text)
    assert fixed == text.replace("80}", "1024}").replace("443", "1024")


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("c.json", '{"training": {"n": 9, "b": "y"}}\n', '{"training": {"n": 4, "b": "x"}}\n'),
        (
            "c.toml",
            'b = 1\n[training]\nn = 9 # nine\nb = "y"\n',
            'b = 1\n[training]\nn = 4 # nine\nb = "x"\n',
        ),
    ],
)
def test_other_languages(cfglint, folder, name: str, before: str, after: str) -> None:
    rule = '$.training.n <= 4 and $.training.b == "x"'
    assert _fixed(cfglint, folder, rule, before, name) == after


def test_nobody_knows_what_the_key_means(cfglint, folder) -> None:
    (folder / "own.rules").write_text(_BLOCK)
    (folder / "c.yaml").write_text("training:\n  lr: 1.0\n")
    arguments = ("c.yaml", "--rules", "own.rules", "--rule", "$.training.lr <= 0.5", "--select", "CLI")
    (finding,) = json.loads(cfglint("check", *arguments, "--format", "json").stdout)["findings"]
    fix = finding["fix"]
    assert (fix["title"], fix["applicability"]) == ("set training.lr to 0.5", "unsafe")
    assert fix["effect"] == "the value that the rule requires; other effects of the key are not modelled"
    cfglint("fix", *arguments)
    assert (folder / "c.yaml").read_text() == "training:\n  lr: 1.0\n"


def test_a_fix_that_would_break_another_rule_is_none(cfglint, folder) -> None:
    (folder / "own.rules").write_text(_BLOCK + "rule ABC101 many error { $.training.n >= 8 }\n")
    (folder / "c.yaml").write_text("training:\n  n: 8\n")
    done = cfglint(
        "check", "c.yaml", "--rules", "own.rules", "--rule", "$.training.n <= 4", "--select", "CLI,ABC"
    )
    assert "no fix: with training.n 4 this rule holds, but ABC101" in done.stdout
    # Two rules over one key are mended together.
    (folder / "c.yaml").write_text("training:\n  n: 99\n")
    rules = ("--rule", "$.training.n <= 16", "--rule", "$.training.n in [4, 8, 32]")
    cfglint("fix", "c.yaml", "--rules", "own.rules", *rules, "--select", "CLI,ABC", "--unsafe")
    assert (folder / "c.yaml").read_text() == "training:\n  n: 8\n"


def test_one_place_is_not_written_twice(cfglint, folder) -> None:
    """A knob would write 1, and the rule about its key true: that is not the same."""
    (folder / "own.rules").write_text(_BLOCK.replace("}", "  num_epochs <- $.training.e\n}"))
    (folder / "c.yaml").write_text('training:\n  e: "7"\n')
    rules = ("--rule", "$.training.e", "--rule", "num_epochs <= 3")
    done = cfglint("fix", "c.yaml", "--rules", "own.rules", *rules, "--select", "CLI", "--unsafe")
    assert "internal error" not in done.stderr
    assert (folder / "c.yaml").read_text() in (
        "training:\n  e: 3\n",
        'training:\n  e: "3"\n',
        'training:\n  e: "true"\n',
    )
