"""The one harness for expected output: a case is files beside each other, and no code.

``<name>.out`` is what must be printed. ``<name>.cmd`` holds the flags of a page; those of a rule's case stand
in its ``.out`` (test_cases.py). ``--width N`` and ``--ascii`` among the flags stand for the terminal.
``CFGLINT_UPDATE=1 pytest …`` writes the ``.out`` files, to be read by a person.
"""

from __future__ import annotations

import os
import shlex
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from cfglint.command import output
from cfglint.report import Style

if TYPE_CHECKING:
    from pathlib import Path

UPDATE = "CFGLINT_UPDATE" in os.environ


def words_of(case: Path) -> list[str]:
    """Return the flags of a case; none where no ``.cmd`` stands beside it."""
    command = case.with_suffix(".cmd")
    return shlex.split(command.read_text(encoding="utf-8")) if command.exists() else []


def expect(case: Path, text: str, usual: str | None = None) -> None:
    """Compare ``text`` with the case's ``.out``, or write it there; without one, with what is ``usual``."""
    out = case.with_suffix(".out")
    if UPDATE:
        out.write_text(text, encoding="utf-8")
        if text == usual:
            out.unlink()
    expected = out.read_text(encoding="utf-8") if out.exists() else usual
    assert expected is not None, "no expectation yet: CFGLINT_UPDATE=1 writes it, then read it"
    assert text == expected


class Terminal:
    """Runs a command in a case's folder, as on a terminal of a width, and checks that its page fits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch = monkeypatch
        self.capsys = capsys

    def run(self, command: str, folder: Path, words: list[str]) -> tuple[int, str]:
        """Return the exit status and what was printed."""
        words = list(words)
        width = 0
        if "--width" in words:
            at = words.index("--width")
            width = int(words[at + 1])
            del words[at : at + 2]
        plain = "--ascii" in words
        words = [word for word in words if word != "--ascii"]
        self.monkeypatch.chdir(folder)
        self.monkeypatch.setattr(output, "terminal", lambda *_, **__: Style(width=width, unicode=not plain))
        status = import_module(f"cfglint.features.{command}").main(words)
        page = self.capsys.readouterr().out
        if width and "json" not in words:
            assert max(map(len, page.splitlines())) <= width
        assert not plain or page.isascii()
        return status, page


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """A terminal, and no GPU of this machine."""
    return Terminal(monkeypatch, capsys)
