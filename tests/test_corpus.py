"""Real configs of real projects: nothing crashes, places are right, fixes touch what they say and no more.

The configs are not part of the project; the tests run where CFGLINT_SHARED names the folder that holds them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cfglint.api import check_file
from cfglint.document.reading import read
from cfglint.engine.knobs import move_of
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load
from cfglint.repair.apply import repair
from cfglint.repair.attach import attach
from cfglint.repair.tracks import priced
from cfglint.text import apply_edits
from tiers import LONG, in_turn, sampled

SHARED = os.environ.get("CFGLINT_SHARED")
pytestmark = pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no folder of real configs")
CORPUS = Path(SHARED or ".") / "corpus"
TARGETS = ("a40", "rtx-4090:8", "h100-sxm:8") if LONG else ("a40",)
RULE = "gpu.vram<48 and colocated -> mem_fraction<=0.5"
HISTORY = "areal_nexthybrid/history/173b9816/examples/cloud_gsm8k"


def _configs(*folders: str) -> list[Path]:
    return sorted(
        p for f in folders for p in (CORPUS / f).rglob("*") if p.suffix in (".yaml", ".yml", ".json")
    )


AREAL = _configs("areal", "areal_nexthybrid") if SHARED else []


def _name(path: Path) -> str:
    return str(path.relative_to(CORPUS))


@pytest.fixture(scope="module")
def pack():
    return load(rules=[RULE])


def _checked(pack, path: Path, *targets: str, data: bytes | None = None) -> Run:
    run = Run(pack, [parse_target(t) for t in targets])
    check_file(run, read(path.read_bytes() if data is None else data, path.name), explicit=False)
    return run


@pytest.mark.parametrize("path", sampled(AREAL), ids=_name)
def test_areal_files(pack, path: Path) -> None:
    data = path.read_bytes()
    run = _checked(pack, path, *TARGETS)
    file = read(data, path.name)
    for finding in run.report.findings:
        start, end = finding.place.start, finding.place.end
        assert 0 <= start <= end <= len(file.text)
        line, column = file.lines.position(start)
        assert file.text.split("\n")[line - 1][column - 1 :].startswith(file.text[start:end].split("\n")[0])
        for fact in finding.facts:
            if fact.source.startswith("line ") and " " not in fact.source[5:]:
                assert 1 <= int(fact.source[5:]) <= len(file.lines.starts)
    fixed = repair(run, file, unsafe=True, least="info", notes=False)
    if not fixed.applied:
        assert fixed.text == file.text
        return
    again = repair(run, read(file.encode(fixed.text), path.name), unsafe=True, least="info", notes=False)
    assert again.text == fixed.text
    assert not again.applied
    changed = sum(a != b for a, b in zip(file.text.split("\n"), fixed.text.split("\n"), strict=False))
    assert changed <= sum(len(fix.edits) for _, fix in fixed.applied) or fixed.text.count(
        "\n"
    ) > file.text.count("\n")


@pytest.mark.parametrize("name", ["gsm8k_grpo_3hour.yaml", "gsm8k_grpo_1hour.yaml"])
def test_the_config_that_died_on_an_a40(pack, name: str) -> None:
    path = CORPUS / HISTORY / name
    run = Run(pack, [parse_target("a40")], selected=lambda code: code.startswith("CLI"))
    file = read(path.read_bytes(), path.name)
    assert check_file(run, file)
    (finding,) = run.report.findings
    line, column = file.lines.position(finding.place.start)
    assert file.lines.line(line)[: column - 1] == "  mem_fraction_static: "
    fixed = repair(run, file, unsafe=False, least="warning", notes=False).text
    assert fixed == file.text.replace("mem_fraction_static: 0.8", "mem_fraction_static: 0.5")
    after = _checked(pack, path, "a40", data=file.encode(fixed))
    assert not [f for f in after.report.findings if f.code == "CLI001"]


@pytest.mark.parametrize("path", [p for p in AREAL if p.stem.endswith("_a40")], ids=_name)
def test_the_hand_made_a40_copies_pass(pack, path: Path) -> None:
    assert not [f for f in _checked(pack, path, "a40").report.findings if f.code == "CLI001"]


def test_no_error_on_a_maintained_example(pack) -> None:
    """Without a target, an upstream example gives no error but what a table says why it is right."""
    told = (Path(__file__).parent / "corpus" / "errors.md").read_text(encoding="utf-8")
    errors = []
    for path in AREAL:
        if path.is_relative_to(CORPUS / "areal"):
            errors += [
                (path.name, f.code) for f in _checked(pack, path).report.findings if f.level == "error"
            ]
    assert [(name, code) for name, code in errors if f"/{name} | {code} |" not in told] == []


def test_only_areal_files_are_taken_for_areal(pack) -> None:
    run = Run(pack)
    taken = []
    for path in _configs(
        "accelerate", "axolotl", "deepspeed", "llamafactory", "sb3_zoo", "torchtune", "trl", "verl"
    ):
        if path.stat().st_size < 2**20:
            file = read(path.read_bytes(), path.name)
            taken += [_name(path) for s in run.subjects(file, judge_broken=False) if s.framework == "areal"]
    assert taken == []


@pytest.mark.parametrize("path", AREAL, ids=_name)
def test_repairs_of_errors(pack, path: Path) -> None:
    """A sure repair leaves none of its errors, brings none, and names every knob that it moves."""
    file = read(path.read_bytes(), path.name)
    for target in in_turn(("a40", "rtx-4090", "h100-sxm:8"), AREAL.index(path), 3):
        run = Run(pack, [parse_target(target)], selected=lambda code: not code.startswith("CLI"))
        for subject in run.subjects(file, judge_broken=False):
            judgements = run.judged(subject)
            found = list(run.findings(judgements))
            errors = [each.finding for each in found if each.finding.level == "error"]
            if not errors:
                continue
            attach(run, judgements, found)
            for finding in errors:
                fix = finding.fix
                if fix is None or not fix.edits or fix.certainty != "sure":
                    continue
                text = apply_edits(file.text, fix.edits)
                after = _errors(run, read(file.encode(text), path.name))
                assert finding.code not in after
                assert after <= {other.code for other in errors}


def _errors(run: Run, file) -> set[str]:
    found = set()
    for subject in run.subjects(file, judge_broken=False):
        errors = (each.finding for each in run.findings(run.judged(subject)))
        found |= {finding.code for finding in errors if finding.level == "error"}
    return found


def test_the_a40_repair_costs_less_than_the_hand_made_copy(pack) -> None:
    """The user changed eight values and added three, two of which change results; two keys are enough."""
    before = CORPUS / HISTORY / "gsm8k_grpo_3hour.yaml"
    by_hand = CORPUS / HISTORY / "gsm8k_grpo_3hour_a40.yaml"
    run = Run(pack, [parse_target("a40")], selected=lambda code: not code.startswith("CLI"))
    judged = {}
    for path in (before, by_hand):
        (subject,) = run.subjects(read(path.read_bytes(), path.name), judge_broken=False)
        judged[path] = run.judged(subject)
    found = [each for each in run.findings(judged[before]) if each.finding.level == "error"]
    attach(run, judged[before], found)
    (only,) = found
    finding = only.finding
    assert finding.code == "MEM101"
    assert finding.fix is not None
    assert finding.fix.applicability == "safe"
    assert {change.part: change.after_gib[0] > 0 for change in finding.fix.memory}["headroom"]
    values, theirs = judged[before][0].values, judged[by_hand][0].values
    cost, unsafe = 0.0, False
    for name, knob in run.finder.symbols.knobs.items():
        old, new = values[name], theirs[name]
        if (
            isinstance(old, (bool, int, float, str))
            and isinstance(new, (bool, int, float, str))
            and old != new
        ):
            kind = run.finder.symbols.types[name]
            move = move_of(knob, old, new, kind)
            if move is not None:
                cost += priced(knob, move, kind, old, new)
                unsafe = unsafe or move.unsafe
    assert unsafe
    assert finding.fix.cost < cost / 3
