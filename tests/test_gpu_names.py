"""A text that a rule compares with a GPU's name, and that no GPU has, is told with what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from cfglint.features.test.gpus import misnamed
from cfglint.hardware.catalogue import gpus
from cfglint.lang.pack import load, read_rules

_LIKE = 'but there is "NVIDIA H100 80GB HBM3": write gpu.name like "*H100*"'
_WRONG = (
    ('gpu.name == "H100"', f'no GPU has gpu.name "H100", {_LIKE}'),
    ('gpu.name != "H100"', f'no GPU has gpu.name "H100", {_LIKE}'),
    ('"H100" == gpu.name', f'no GPU has gpu.name "H100", {_LIKE}'),
    ('gpu.name in ["NVIDIA A40", "H100"]', f'no GPU has gpu.name "H100", {_LIKE}'),
    ('gpu.name == "*H100*"', f'no GPU has gpu.name "*H100*", {_LIKE}'),
    ('gpu.name like "H100"', f'no GPU has gpu.name "H100", {_LIKE}'),
    ('gpu.name like "*h100*"', f'no GPU has gpu.name "*h100*", {_LIKE}'),
    ('(match gpu.name { "H100": true, else: false })', f'no GPU has gpu.name "H100", {_LIKE}'),
    ('gpu.arch == "hopper"', 'no GPU has gpu.arch "hopper": write "Hopper"'),
    ('gpu.name == "a100-80gb"', 'no GPU has gpu.name "a100-80gb": write "NVIDIA A100-SXM4-80GB"'),
    (
        'gpu.model == "H100"',
        'no GPU has gpu.model "H100", but there is "h100-sxm": write gpu.model like "*h100*"',
    ),
)
_RIGHT = (
    'gpu.name like "*H100*"',
    'gpu.name like "NVIDIA *"',
    'gpu.name like "*MIG*"',
    'gpu.name like "*H100*" or gpu.name like "*h100*"',
    'gpu.name == "NVIDIA GeForce RTX 9090"',
    'gpu.name == ""',
    'model_path == "H100"',
    '$.gpu == "H100"',
)


def _told(*rules: str) -> list[str]:
    text = "\n".join(f"{rule} -> num_gpus > 1" for rule in rules)
    return [complaint.message for complaint in misnamed(load({"own.rules": text}))]


@pytest.mark.parametrize(("rule", "told"), _WRONG, ids=[rule for rule, _ in _WRONG])
def test_a_name_that_no_gpu_has(rule: str, told: str) -> None:
    assert _told(rule) == [told]


@pytest.mark.parametrize("rule", _RIGHT)
def test_what_some_gpu_may_have(rule: str) -> None:
    assert _told(rule) == []


def test_no_name_of_the_catalogue_is_told() -> None:
    names = [name for gpu in gpus() for name in gpu.products]
    assert _told(*(f'gpu.name == "{name}" and gpu.name like "{name}"' for name in names)) == []
    assert _told(*(f'gpu.model == "{gpu.name}" and gpu.arch == "{gpu.arch}"' for gpu in gpus())) == []


def test_the_shipped_rules_name_gpus_that_there_are() -> None:
    assert misnamed(load(None)) == []
    examples = Path(__file__).parent.parent / "examples"
    assert misnamed(load(read_rules([str(examples)]))) == []
