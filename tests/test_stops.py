"""A program stops at its config only where that is sure: what may not run, or may be set, is no stop."""

from __future__ import annotations

import textwrap

import pytest

from cfglint.document.python.modules import Modules
from cfglint.document.python.stops import Stop, Stops
from cfglint.document.python.surely import ABSENT, SECTION, Known
from cfglint.document.tree import File

CONFIG = {("a",): SECTION, ("a", "on"): Known(True), ("a", "name"): Known("gae"), ("a", "none"): Known(None)}
HEAD = "import hydra\n\n@hydra.main(config_path='config', config_name='own')\ndef main(config):\n"


def _stop(body: str, before: str = "") -> Stop | None:
    text = before + HEAD + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"
    program = File("main.py", text, "program")
    return Stops(program, Modules(lambda start, name: None)).find(lambda path: CONFIG.get(path, ABSENT))


@pytest.mark.parametrize(
    "body",
    [
        "print(config.a.gone)",
        "print(config['a']['gone'])",
        "if config.a.on:\n    print(config.a.gone)",
        "if config.a.name == 'gae' and config.a.on:\n    print(config.a.gone)",
        "if config.a.none is None:\n    print(config.a.gone)",
        "with open('x') as file:\n    print(config.a.gone)",
        "both = config.a.name or config.a.on\nprint(config.a.gone)",
        "x = config.a.gone if config.a.on else 1",
    ],
)
def test_a_key_that_surely_is_read(body: str) -> None:
    stop = _stop(body)
    assert stop is not None
    assert (stop.key, stop.raised) == ("a.gone", "")


@pytest.mark.parametrize(
    "body",
    [
        "print(config.a.get('gone'), config.get('gone', 1), getattr(config.a, 'gone', 2))",
        "if hasattr(config.a, 'gone'):\n    print(config.a.gone)",
        "if 'gone' in config.a:\n    print(config.a.gone)",
        "if asked():\n    print(config.a.gone)",
        "if not config.a.on:\n    print(config.a.gone)",
        "asked() and config.a.gone",
        "config.a.on or config.a.gone",
        "x = 1 if config.a.on else config.a.gone",
        "try:\n    print(config.a.gone)\nexcept Exception:\n    pass",
        "from contextlib import suppress\nwith suppress(AttributeError):\n    print(config.a.gone)",
        "config.a.gone = 1\nprint(config.a.gone)",
        "setattr(config.a, 'gone', 1)\nprint(config.a.gone)",
        "from omegaconf import OmegaConf\nconfig = OmegaConf.merge(config, more())\nprint(config.a.gone)",
        "config = changed(config)\nprint(config.a.gone)",
        "if asked():\n    return\nprint(config.a.gone)",
        "for each in asked():\n    print(config.a.gone)",
        "while asked():\n    print(config.a.gone)",
        "for i in range(asked()):\n    print(config.a.gone)",
        "import sys\nsys.exit()\nprint(config.a.gone)",
        "use = lambda: config.a.gone",
        "def use():\n    return config.a.gone",
        "x = [config.a.gone for each in asked()]",
        "print(config.a.name.gone)",
    ],
)
def test_what_may_not_be_read_or_may_be_set_is_no_stop(body: str) -> None:
    assert _stop(body) is None


@pytest.mark.parametrize(
    ("body", "stops"),
    [
        ("if config.a.name == 'gae':\n    raise ValueError('no gae')", True),
        ("assert config.a.name != 'gae', 'no gae'", True),
        ("assert config.a.none or config.a.name == 'grpo'", True),
        ("name = config.a.none or None\nif name is not None:\n    raise ValueError('named')", False),
        ("name = config.a.none or 'grpo'\nif name == 'gae':\n    raise ValueError('no gae')", False),
        ("if (config.a.on and config.a.name) == 'gae':\n    raise ValueError('no gae')", True),
        ("if config.a.name == 'grpo':\n    raise ValueError('no grpo')", False),
        ("if config.a.name == 'gae' and asked():\n    raise ValueError('no gae')", False),
        ("raise NotImplementedError", False),
    ],
)
def test_what_a_config_makes_a_program_raise(body: str, stops: bool) -> None:
    assert (_stop(body) is not None) is stops


TRAINER = """
class Trainer:
    def __init__(self, config):
        self.config = config

    def fit(self):
        print(self.config.a.gone)


def own(self):
    pass

"""


@pytest.mark.parametrize(
    ("patch", "stops"),
    [
        ("", True),
        ("Trainer.fit = own", False),
        ("setattr(Trainer, 'fit', own)", False),
        ("x.fat = own", True),
    ],
)
def test_a_function_that_may_be_replaced_is_no_stop(patch: str, stops: bool) -> None:
    assert (_stop(f"{patch}\nTrainer(config).fit()", TRAINER) is not None) is stops
