"""Every knob of every framework, in every form and state: the edit is taken by what parses it, and read back.

What cannot be written is counted in ``matrix/counts.md``, so that a knob that is lost is noticed;
``CFGLINT_UPDATE=1 pytest -m '' -n 1 tests/test_repair_matrix.py`` writes it.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from golden import UPDATE
from matrix_cells import FOLDER, Cell, Matrix, forms, run
from tiers import mostly_long

COUNTS = FOLDER / "counts.md"
JOBS = {name: (form, text) for name, form, text in forms()}
_HEAD = """# What the matrix of repairs comes to

| job | framework | form | written | no way | not read back | knobs that are never written |
|---|---|---|---|---|---|---|
"""
_OUTCOMES = ("written", "no way", "not read back")


@cache
def cells(name: str) -> list[Cell]:
    form, text = JOBS[name]
    return list(Matrix(name, form, text).cells())


def test_every_framework_has_a_job() -> None:
    told = {Matrix(name, form, text).framework for name, (form, text) in JOBS.items()}
    assert told == run().finder.symbols.frameworks.keys()


@pytest.mark.parametrize("name", mostly_long([*JOBS], 4))
def test_what_is_written_is_taken_and_read_back(name: str) -> None:
    own = cells(name)
    assert [(c.knob, c.state, c.value, c.outcome) for c in own if c.outcome not in _OUTCOMES] == []
    counts = Counter(cell.outcome for cell in own)
    never = sorted({cell.knob for cell in own} - {cell.knob for cell in own if cell.outcome == "written"})
    numbers = " | ".join(str(counts[outcome]) for outcome in _OUTCOMES)
    form = JOBS[name][0]
    line = f"| {name} | {Matrix(name, *JOBS[name]).framework} | {form} | {numbers} | {', '.join(never)} |"
    before = COUNTS.read_text() if COUNTS.exists() else _HEAD
    lines = {row.split(" ")[1]: row for row in before.removeprefix(_HEAD).splitlines()}
    if UPDATE:
        lines[name] = line
        COUNTS.write_text(_HEAD + "".join(f"{lines[job]}\n" for job in JOBS if job in lines))
    assert lines.get(name) == line


def _of_hydra() -> list[str]:
    jobs = ((name, Matrix(name, *JOBS[name])) for name in JOBS if name.endswith(".sh"))
    return [name for name, job in jobs if job.subject.document.loader == "omegaconf"]


@pytest.mark.parametrize("name", _of_hydra())
def test_overrides_are_of_hydras_grammar(name: str) -> None:
    """Each word that a fix adds to a program of Hydra is an override, and none is a flag."""
    before = set(_words(JOBS[name][1]))
    for cell in cells(name):
        added = [word for word in _words(cell.text) if word not in before]
        assert not any(word.startswith("-") for word in added), added
        OverridesParser.create().parse_overrides(added)


def _words(text: str) -> list[str]:
    """Return the words after the program: those before it are its launcher's."""
    return text.replace("\\\n", " ").partition(".py")[2].split()
