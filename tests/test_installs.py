"""Which packages a notebook installs in their newest version, and what follows for TRL's defaults."""

from __future__ import annotations

import json

import pytest

from cfglint.document.python.installs import newest
from golden import terminal  # noqa: F401 (a fixture)

CELL = """\
from trl import SFTConfig, SFTTrainer
args = SFTConfig(output_dir="out", per_device_train_batch_size=2, max_length=1024)
SFTTrainer(model="Qwen/Qwen2.5-0.5B", args=args, train_dataset=rows).train()
"""


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("!pip install -U trl", ["trl"]),
        ('!pip install -Uq \\"trl[peft]\\" rich', ["trl", "rich"]),
        ("%pip install --upgrade trl", ["trl"]),
        ("!uv pip install -qU trl", ["trl"]),
        ("!pip install git+https://github.com/huggingface/trl.git", ["trl"]),
        ("!pip install trl", []),
        ("!pip install -U trl==0.15.2", []),
        ("!pip install git+https://github.com/huggingface/trl@v0.20.0", []),
        ("!pip install -U 'trl>=0.12'", []),
        ("pip install -U trl", []),
    ],
)
def test_what_is_upgraded_without_a_version_is_the_newest(line, names):
    assert newest(json.dumps({"source": [line.replace('\\"', '"')]})) == names


def test_one_call_with_a_version_is_enough():
    assert newest('"!pip install -U trl", "!pip install trl==0.15"') == []


@pytest.mark.parametrize("install", ["!pip install -U trl", "!pip install trl"])
def test_a_notebook_that_upgrades_trl_has_its_defaults_of_today(terminal, tmp_path, install):  # noqa: F811
    cells = [
        {"cell_type": "code", "source": [text], "metadata": {}, "outputs": []} for text in (install, CELL)
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}), encoding="utf-8")
    _, page = terminal.run("facts", tmp_path, ["a.ipynb", "--no-detect", "--format", "json"])
    assert ("nothing says which TRL a program runs with" not in page) == ("-U" in install)
