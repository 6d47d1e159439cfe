"""Pages of ``cfglint fit``: a config, the flags, and the page that they must give.

``tests/fit/<name>.yaml`` with ``<name>.cmd`` gives ``<name>.out``. ``--width N`` and ``--ascii`` in the flags
stand for the terminal. ``CFGLINT_UPDATE=1 pytest tests/test_fit_cases.py`` writes the pages, then read by a
person.
"""

import os
import shlex
from pathlib import Path

import pytest

from cfglint.command import output
from cfglint.features.fit import command as fit
from cfglint.report import Style

CASES = Path(__file__).parent / "fit"
FILES = sorted(CASES.glob("*.yaml"))
UPDATE = "CFGLINT_UPDATE" in os.environ


@pytest.mark.parametrize("case", FILES, ids=lambda p: p.stem)
def test_page(case, monkeypatch, capsys):
    monkeypatch.chdir(case.parent)
    flags = shlex.split(case.with_suffix(".cmd").read_text())
    width, unicode = 0, True
    if "--width" in flags:
        at = flags.index("--width")
        width = int(flags[at + 1])
        del flags[at : at + 2]
    if "--ascii" in flags:
        flags.remove("--ascii")
        unicode = False
    monkeypatch.setattr(output, "terminal", lambda *_, **__: Style(width=width, unicode=unicode))
    assert fit.main([case.name, "--no-detect", *flags]) == 0
    page = capsys.readouterr().out
    out = case.with_suffix(".out")
    if UPDATE:
        out.write_text(page, encoding="utf-8")
    assert page == out.read_text(encoding="utf-8")
    if width:
        assert max(map(len, page.splitlines())) <= width
    assert unicode or page.isascii()
