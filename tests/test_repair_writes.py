# ruff: noqa: E501
"""What a framework's block says of how a fact is written: all its keys, with what else they move."""

from __future__ import annotations

import json

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.repair.solve import solving
from golden import page_of

_BLOCK = """
framework mine {
  dialect omegaconf
  detect has($.training)
  names are keys
  extends facts

  seq_len                <- $.training.len
  num_nodes              <- $.training.nodes default 1
  num_epochs             <- $.training.epochs default 1
  gradient_checkpointing <- match $.training.remat.kind { "full": full, "some": selective } default none
  optimizer              <- if $.training.low then adamw_8bit else adamw default adamw
  micro_batch_size       <- $.training.batch default 1
  offload_params         <- $.training.deep.yes_please default false

  write gradient_checkpointing full as
    $.training.remat.kind: "full", $.training.remat.method: "uniform", $.training.remat.every: 2 * num_nodes
  write gradient_checkpointing selective as $.training.remat.kind: "some" when seq_len > 100
  write gradient_checkpointing selective as $.training.remat.kind: "none"
  write optimizer adamw_8bit as
    $.training.low: true, $.training.plugins[*]: "acme.Low", $.training.plugins[*]: "acme.Lower" "train.py:9"
  write num_epochs as $.training.epochs: num_epochs, $.training.steps: 8 * num_epochs,
    $.training.warm: 2 * $.training.warm
  write offload_params true as $.training.deep.yes_please: true, $.training.batch: 4, $.training.deep.kind: null
}
"""
_FULL, _LOW, _EPOCHS, _DEEP = (
    "gradient_checkpointing == full",
    "optimizer == adamw_8bit",
    "num_epochs in [4, 8]",
    "offload_params",
)


def _fixed(cfglint, folder, rules: list[str], text: str, name: str = "c.yaml") -> str:
    """Return what ``fix --unsafe`` makes of a config."""
    (folder / "own.rules").write_text(_BLOCK)
    (folder / name).write_text(text)
    given = [word for rule in rules for word in ("--rule", rule)]
    done = cfglint("fix", name, "--rules", "own.rules", *given, "--select", "CLI", "--unsafe")
    assert done.returncode in (0, 1), done.stderr
    return (folder / name).read_text()


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        (_FULL, "len: 9", "len: 9\n  remat:\n    kind: full\n    method: uniform\n    every: 2"),
        (_FULL, "remat: {}", "remat: {kind: full, method: uniform, every: 2}"),
        (_FULL, "remat: {kind: some, every: 2}", "remat: {kind: full, every: 2, method: uniform}"),
        (_FULL, "remat: {method: block}", "remat: {method: uniform, kind: full, every: 2}"),
        (_FULL, "nodes: 4\n  remat:\n    kind: some", "nodes: 4\n  remat:\n    kind: full\n    method: uniform\n    every: 8"),
        (_LOW, "low: false", "low: true\n  plugins: [acme.Low, acme.Lower]"),
        (_LOW, "plugins: [a]", "plugins: [a, acme.Low, acme.Lower]\n  low: true"),
        (_LOW, "plugins:\n  - a  # 1\n  - acme.Low", "plugins:\n  - a  # 1\n  - acme.Low\n  - acme.Lower\n  low: true"),
        (_EPOCHS, "epochs: 3", "epochs: 4\n  steps: 32"),
        (_EPOCHS, "epochs: 3\n  steps: 32", "epochs: 4\n  steps: 32"),
        (_EPOCHS, "epochs: 3\n  warm: 5", "epochs: 4\n  warm: 10\n  steps: 32"),
        (_DEEP, "batch: 2", "batch: 4\n  deep:\n    yes_please: true\n    kind: null"),
    ],
)  # fmt: skip
def test_all_keys_are_written(cfglint, folder, rule: str, before: str, after: str) -> None:
    assert _fixed(cfglint, folder, [rule], f"training:\n  {before}\n") == f"training:\n  {after}\n"


def test_what_the_keys_say_moves_along(cfglint, folder) -> None:
    """A rule that a second key would break stands in the way of the first."""
    text = "training:\n  batch: 2\n"
    assert _fixed(cfglint, folder, ["offload_params", "micro_batch_size <= 2"], text) == text


def test_a_value_that_is_not_read_back_is_no_fix(cfglint, folder) -> None:
    rule = "gradient_checkpointing == selective"
    assert "kind: some" in _fixed(cfglint, folder, [rule], "training:\n  len: 200\n")
    text = "training:\n  len: 50\n"
    assert _fixed(cfglint, folder, [rule], text) == text


def test_json_and_toml(cfglint, folder) -> None:
    fixed = _fixed(cfglint, folder, [_FULL, _LOW], '{"training": {"len": 9}}', "c.json")
    assert json.loads(fixed)["training"] == {
        "len": 9,
        "remat": {"kind": "full", "method": "uniform", "every": 2},
        "low": True,
        "plugins": ["acme.Low", "acme.Lower"],
    }
    fixed = _fixed(cfglint, folder, [_LOW], '[training]\nplugins = [\n  "a",\n]\n', "c.toml")
    assert fixed == '[training]\nplugins = [\n  "a",\n  "acme.Low",\n  "acme.Lower",\n]\nlow = true\n'


@pytest.mark.parametrize(
    ("page", "name", "key"),
    [
        ("RUN261", "ok_dtensor.yaml", "activation_checkpointing"),
        ("BAT350", "ok_neox.yml", "checkpoint-activations"),
    ],
)
def test_a_switch_takes_no_third_word(pack, page: str, name: str, key: str) -> None:
    run = Run(pack)
    text = page_of(page).files[name]
    assert key in text
    judged = run.judged(run.subjects(read_text(text, name), judge_broken=True)[0])
    with solving(run, judged) as solver:
        writes = solver.writer(judged[0]).writes
    assert writes("gradient_checkpointing", "selective", "selective") is None
    (written,) = writes("gradient_checkpointing", "none", "none").keys
    assert written.path[-1] == key
    assert written.value is False
