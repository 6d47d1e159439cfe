"""What the matrix of repairs writes is parsed by the frameworks themselves, where they are installed.

``CFGLINT_PARSERS`` is a Python that has them (``pip install torch torchao torchvision transformers trl==1.9.0
accelerate pillow addict``, and with ``--no-deps`` ``axolotl llamafactory torchtune``), ``CFGLINT_VERL`` and
``CFGLINT_TORCHTUNE`` are checkouts; what is not there is skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from matrix_cells import FOLDER, Matrix, forms

_PYTHON = os.environ.get("CFGLINT_PARSERS", sys.executable)
_PARSERS = {
    "accelerate.yaml": "accelerate",
    "axolotl.yaml": "axolotl",
    "llamafactory.yaml": "llamafactory",
    "llamafactory.sh": "llamafactory",
    "torchtune.yaml": "torchtune",
    "transformers.yaml": "transformers",
    "transformers.sh": "transformers",
    "trl_grpo.yaml": "trl_grpo",
    "trl_sft.yaml": "trl_sft",
    "trl.sh": "trl_sft",
    "verl.sh": "verl",
    "verl_config_name.sh": "verl_megatron",
}
_JOBS = {name: (form, text) for name, form, text in forms()}


@pytest.mark.long
@pytest.mark.parametrize("name", _PARSERS)
def test_its_own_project_takes_it(name: str) -> None:
    form, text = _JOBS[name]
    cells = [cell for cell in Matrix(name, form, text).cells() if cell.outcome == "written"]
    texts = [(0, text), *enumerate((cell.text for cell in cells), 1)]
    done = subprocess.run(
        [_PYTHON, str(FOLDER / "parse.py"), _PARSERS[name]],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    if "missing" in told:
        pytest.skip(f"{_PARSERS[name]}'s parser is not here: {told['missing']}")
    assert told["refused"].get("0") is None
    refused = {int(number) - 1: why for number, why in told["refused"].items()}
    wrong = [(cells[i].knob, cells[i].state, cells[i].value, why) for i, why in refused.items()]
    assert wrong == []
