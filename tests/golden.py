"""The one harness for expected output: Markdown pages of files, and of what commands print about them.

A fence with a language and a name, such as ``yaml bad_plain.yaml``, is a file; the files of a page lie in
one folder. A ``console`` fence is a ``$ cfglint …`` command and what it must print; among its flags
``--width N`` and ``--ascii`` stand for the terminal. ``CFGLINT_UPDATE=1 pytest …`` writes what was printed
into the page, to be read by a person.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from cfglint.command import output
from cfglint.report import Style

UPDATE = "CFGLINT_UPDATE" in os.environ
CASES = Path(__file__).parent / "cases"
FENCE = re.compile(r"(?ms)^(?P<ticks>`{3,})(?P<language>\w+) ?(?P<name>\S*)\n(?P<text>.*?)^(?P=ticks)$\n?")


def _command(console: str) -> tuple[str, ...]:
    """Return the words after ``$ cfglint`` in the first line of a console fence."""
    prompt, tool, *words = shlex.split(console.partition("\n")[0]) or ["", ""]
    assert (prompt, tool) == ("$", "cfglint"), f"no `$ cfglint …` in {console[:80]!r}"
    return tuple(words)


class Page:
    """A Markdown page: ``files`` by their names, and ``shown``, the console fences by their commands."""

    def __init__(self, path: Path) -> None:
        source = path.read_text(encoding="utf-8")
        self.path = path
        self.title = source.partition("\n")[0].removeprefix("# ")
        self.files: dict[str, str] = {}
        self.shown: dict[tuple[str, ...], str] = {}
        for fence in FENCE.finditer(source):
            text = fence["text"]
            console = fence["language"] == "console"
            texts, key = (self.shown, _command(text)) if console else (self.files, fence["name"])
            assert key, f"{path}: a fence without a file name: {text[:80]!r}"
            assert key not in texts, f"{path}: two fences for {key}"
            texts[key] = text
        assert "```" not in FENCE.sub("", source), f"{path}: a fence without a language, or without its end"

    def write_files(self, folder: Path) -> Path:
        """Write the page's files into ``folder``; returns it."""
        for name, text in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(text.encode())
        return folder

    def expected(self, words: tuple[str, ...], printed: str, *, below: str = "", needed: bool = True) -> str:
        """Return what a command must print. An update writes what it ``printed``, below a file's fence.

        A command that prints nothing and is not ``needed`` has no fence.
        """
        if UPDATE:
            text = f"$ cfglint {shlex.join(words)}\n{printed}"
            self._write(words, text if printed or needed else "", below)
            return printed
        assert words in self.shown or not needed, "CFGLINT_UPDATE=1 writes what must be printed; then read it"
        return self.shown.get(words, "").partition("\n")[2]

    def _write(self, words: tuple[str, ...], text: str, below: str) -> None:
        ticks = "`" * max([3, *(len(run) + 1 for run in re.findall(r"(?m)^`{3,}", text))])
        fence = f"\n{ticks}console\n{text}{ticks}\n" if text else ""
        with self.path.open("r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # another process may test another case of the page
            source = file.read()
            start = end = len(source)
            for old in FENCE.finditer(source):
                if old["language"] == "console" and _command(old["text"]) == words:
                    start, end = old.start() - 1, old.end()
                    break
                if old["name"] == below:
                    start = end = old.end()
            file.seek(0)
            file.write(source[:start] + fence + source[end:])
            file.truncate()


@cache
def page_of(code: str) -> Page:
    """Return the page of a rule's cases."""
    return Page(CASES / f"{code}.md")


class Case:
    """A config of a rule's page, its flags, and what must be printed about it."""

    def __init__(self, code: str, name: str) -> None:
        self.page, self.code, self.name = page_of(code), code, name
        self.ok = name.startswith("ok_")
        self.data = self.page.files[name].encode()
        check = ("check", name, "--select", code)
        self.words = next((words for words in self.page.shown if words[:4] == check), check)
        self.flags = self.words[4:]
        self.expected = self.page.shown.get(self.words, "")


def cases(code: str) -> list[Case]:
    """Return the cases of a rule: the files of its page, but for rules and what lies in a folder."""
    names = [name for name in page_of(code).files if "/" not in name and not name.endswith(".rules")]
    return [Case(code, name) for name in names]


def all_cases() -> list[Case]:
    """Return the cases of all rules."""
    return [case for path in sorted(CASES.glob("*.md")) for case in cases(path.stem)]


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
            assert [line for line in page.splitlines() if len(line) > width] == []
        assert not plain or page.isascii()
        return status, page


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """A terminal, and no GPU of this machine."""
    return Terminal(monkeypatch, capsys)
