"""Real configs, each compared with the next and with itself; runs where CFGLINT_SHARED names the folder."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from cfglint.command import PAGES
from cfglint.document.reading import read
from cfglint.engine.run import Run
from cfglint.features.compare.compute import compared
from cfglint.features.compare.page import as_data, page
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load
from cfglint.report import Style, written
from tiers import sampled

SHARED = os.environ.get("CFGLINT_SHARED")
pytestmark = pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no folder of real configs")
CORPUS = Path(SHARED or ".") / "corpus"
AREAL = (
    sorted(p for f in ("areal", "areal_nexthybrid") for p in (CORPUS / f).rglob("*.yaml")) if SHARED else []
)
SCHEMA = Draft202012Validator(
    json.loads((Path(__file__).parents[1] / "schemas" / "compare.schema.json").read_text("utf-8"))
)


@pytest.fixture(scope="module")
def known():
    pack = load()
    run = Run(pack)
    files = [read(path.read_bytes(), path.name) for path in AREAL]
    return pack, [
        (file.path, subject) for file in files for subject in run.subjects(file, judge_broken=False)[:1]
    ]


def _compared(pack, a, b):
    targets = [parse_target("a40"), parse_target("rtx-4090:8")]
    return compared(Run(pack, targets), Run(pack, targets), a, b)


def _written(comparison, form):
    def blocks(style):
        return page(comparison, style, verbose=False)

    return written(form, Style(width=80), blocks, lambda: as_data(comparison))


@pytest.mark.long
def test_neighbours(known) -> None:
    pack, subjects = known
    assert len(subjects) > 50
    for (_, a), (_, b) in sampled(list(pairwise(subjects))):
        comparison = _compared(pack, a, b)
        back = _compared(pack, b, a)
        assert {d.name: (d.a, d.b) for d in comparison.settings} == {
            d.name: (d.b, d.a) for d in back.settings
        }
        assert {k.key: (k.a, k.b) for k in comparison.keys} == {k.key: (k.b, k.a) for k in back.keys}
        for form in PAGES:
            text = _written(comparison, form)
            if form == "text":
                assert max(map(len, text.splitlines())) <= 80
            if form == "json":
                SCHEMA.validate(json.loads(text))


def test_with_itself(known) -> None:
    pack, subjects = known
    for _, subject in sampled(subjects):
        comparison = _compared(pack, subject, subject)
        assert comparison.same
        assert comparison.a == comparison.b
        assert not comparison.ratios
