"""What a program's code spares of a full fine-tune, and behind which of its switches."""

from __future__ import annotations

from typing import Any

import pytest

from cfglint.document.python.source import read_python
from cfglint.document.python.spares import spared, what_is_spared
from cfglint.document.tree import File

HEAD = """
from dataclasses import dataclass, field
@dataclass
class Args:
    still: bool = False
    still_sight: bool = field(default=False)
    whole: bool = True
"""


class _Modules:
    def __init__(self, *texts: str) -> None:
        self._files = [File(f"{number}.py", text, "program") for number, text in enumerate(texts)]

    def files(self, _start: File) -> list[File]:
        """Return the files of the program."""
        return self._files

    def code(self, file: File) -> Any:
        """Return the statements of a file."""
        return read_python(file.text, notebook=False)


def _told(on: str, *texts: str) -> str:
    modules: Any = _Modules(HEAD, *texts)
    return what_is_spared(spared(File("0.py", HEAD, "program"), modules), lambda switch: switch in on.split())


FREEZES = "def stop(model):\n    for p in model.parameters():\n        p.requires_grad = False\n"


@pytest.mark.parametrize(
    ("on", "text", "told"),
    [
        ("", "model.train()\n", "nothing"),
        ("", "model.requires_grad_(False)\n", ""),
        ("", "model.requires_grad_()\nmodel.requires_grad_(True)\n", "nothing"),
        ("", "if args.still: model.requires_grad_(False)\n", "nothing"),
        ("still", "if args.still: model.requires_grad_(False)\n", ""),
        ("", "if args.still and big: model.requires_grad_(False)\n", "nothing"),
        ("", "if args.still or big: model.requires_grad_(False)\n", ""),
        ("", "if args.whole: model.requires_grad_(False)\n", ""),  # on by default
        ("", "if not args.still: model.requires_grad_(False)\n", ""),
        ("", "if args.still:\n    pass\nelse:\n    model.requires_grad_(False)\n", ""),
        ("still_sight", "if args.still_sight: model.vision_tower.requires_grad_(False)\n", "sight"),
        ("still_sight", "if args.still_sight: model.language_model.requires_grad_(False)\n", ""),
        ("", f"{FREEZES}if args.still: stop(model)\n", "nothing"),
        ("", f"{FREEZES}def run(m):\n    stop(m)\nif args.still: run(model)\n", "nothing"),
        ("", f"{FREEZES}if args.still: stop(model)\nstop(model.head)\n", ""),
        ("", f"{FREEZES}model.apply(stop)\n", ""),
        ("", FREEZES, "nothing"),  # nobody calls it
        ("", "class A:\n    def on_start(self): self.m.requires_grad_(False)\n", ""),
        ("", "model = get_peft_model(model, LoraConfig())\n", ""),
        ("", "o = DeepSpeedCPUAdam(p) if args.still else AdamW(p)\n", "nothing"),
    ],
)
def test_what_switches_of_its_own_spare(on: str, text: str, told: str) -> None:
    assert _told(on, text) == told


def test_a_function_of_another_file_is_met_by_its_name() -> None:
    assert _told("", FREEZES, "from stops import stop as halt\nif args.still: halt(model)\n") == ""
    assert _told("", FREEZES, "import stops\nif args.still: stops.stop(model)\n") == "nothing"


def test_many_functions_that_call_each_other_are_followed_in_time():
    calls = "\n".join(
        f"def step{i}(model):\n" + "".join(f"    step{abs(i - k)}(model)\n" for k in (1, 2, 3) for _ in "abc")
        for i in range(1, 60)
    )
    code = f"def step0(model):\n    model.requires_grad_(False)\n{calls}\n"
    assert _told("", f"{code}step59(None)\n") == ""
    assert _told("", f"{code}if args.still: step59(None)\n") == "nothing"
