"""The gate of the memory estimates (benchmarks/accuracy.py), and the errors that they rest on."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import accuracy
import accuracy_split
import calibrate
from accuracy_judge import Run, peaks, runs
from accuracy_left_out import values_left_out
from accuracy_rivals import NAMES, rivals
from accuracy_rows import estimate, rows, values_of
from calibrate_terms import BOUND, LIKELY, Limit, Residual, by_class, of_class, spreads, under, weights_of
from cfglint.lang.values import Interval, needs_of

FULL = ("native", "dense", "full", "whole")
LORA = ("native", "dense", "LoRA", "whole")


def errors(path, groups, size, offset=0.0):
    """Errors of some groups of a class, evenly spread around an offset."""
    return [
        Residual(error, error, f"{path[2]}{group}", path)
        for group in range(groups)
        for error in [offset + size * (group - (groups - 1) / 2)]
    ]


# ── the gate ──
@pytest.mark.parametrize("side", [pytest.param("fit", marks=pytest.mark.long), "check"])
def test_no_target_is_missed_and_no_more_verdicts_are_wrong(side):
    floor = yaml.safe_load(accuracy.BASELINE.read_text(encoding="utf-8"))[side]
    results = accuracy.judge_peaks(peaks(side), floor) + accuracy.judge_runs(runs(side), floor["wrong"])
    assert not [text for text, met in results if not met]


def test_steps_that_pytorch_accounts_for_are_near(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["accuracy.py", "--oracle", "--check"])
    assert accuracy.main() == 0


def test_one_more_wrong_verdict_misses_the_target():
    def run(name, ended, verdict):
        return Run({"id": name}, ("all",), ended, verdict)

    some = [
        run("a", "oom", "fits"),
        run("b", "fits", "oom"),
        run("c", "fits", "tight"),
        run("d", "oom", "oom"),
    ]
    assert [met for _, met in accuracy.judge_runs(some, ["a", "b"])] == [True]
    ((text, met),) = accuracy.judge_runs(some, ["a"])
    assert not met
    assert text.endswith("new: b")


# ── the split ──
def test_the_list_of_groups_is_up_to_date():
    assert accuracy_split.LIST.read_text(encoding="utf-8") == accuracy_split.listed(), (
        "run benchmarks/accuracy_split.py --write"
    )


def test_no_group_is_on_two_sides():
    sides = [
        {row["group"] for name in ("published", "outcomes") for row in accuracy_split.on(side, name)}
        for side in ("fit", "check")
    ]
    assert len(set().union(*sides)) == sum(map(len, sides))
    assert all(len(groups) > 20 for groups in sides)


# ── the errors ──
def test_the_rules_have_the_errors_that_were_measured():
    assert calibrate.OUTPUT.read_text(encoding="utf-8") == calibrate.text_of(calibrate.errors_measured()), (
        "run benchmarks/calibrate.py"
    )


def test_no_row_is_judged_with_errors_that_its_own_group_measured():
    row, _ = calibrate.errors_measured()["need"][0]
    told, left_out = values_of(row), values_left_out(row)
    assert estimate(told, "trainer.estimate") == estimate(left_out, "trainer.estimate")
    assert told["error.likely"].hi != left_out["error.likely"].hi


def test_no_error_comes_from_a_group_that_formulas_were_written_with():
    used = {row["group"] for some in calibrate.errors_measured().values() for row, _ in some}
    assert used.isdisjoint(accuracy_split.WRITTEN_WITH)


def test_a_class_that_nobody_measured_gets_an_interval_and_the_widest_where_nothing_is_like_it(pack):
    def error(**facts):
        values = calibrate.facts_of({"model_path": "meta-llama/Llama-3.1-8B", "seq_len": 1024, **facts})
        return values["error.bound"]

    every = [error(), error(**{"trainer.code": "rl"}), error(lora_rank=8), error(lora_rank=8, quantization=4)]
    strange = error(**{"model.family": "rwkv"})
    assert all(isinstance(one, Interval) and not needs_of(one) for one in (*every, strange))
    assert strange.lo <= min(one.lo for one in every)
    assert strange.hi >= max(one.hi for one in every)


def test_a_sweep_of_one_setup_counts_as_little_more_than_a_row():
    some = [Residual(0.0, 0.0, "sweep", FULL)] * 100 + [Residual(1.0, 1.0, f"g{n}", FULL) for n in range(12)]
    assert sum(weights_of(some)[:100]) == pytest.approx(10)
    assert spreads(some)[FULL].location > 0.5


def test_a_range_that_the_estimate_meets_says_nothing_against_it():
    some = errors(FULL, 20, 0.02)
    wide = [Residual(0.4, -0.4, f"wide{n}", FULL) for n in range(40)]
    alone, beside = (spreads(rows)[FULL].scale for rows in (some, [*some, *wide]))
    assert beside == pytest.approx(alone, rel=0.35)
    off = [Residual(0.9, 0.5, f"off{n}", FULL) for n in range(10)]
    assert spreads([*some, *off])[FULL].scale > 1.5 * alone


def test_quantiles_are_those_of_student_s_t():
    assert under(0) == 0.5
    assert under(LIKELY) == pytest.approx(0.95, abs=1e-4)
    assert under(-BOUND) == pytest.approx(0.01, abs=1e-4)


def test_few_groups_are_drawn_to_the_class_above_and_many_are_not():
    many = [*errors(FULL, 40, 0.01), *errors(LORA, 40, 0.01, offset=0.4)]
    few = [*errors(FULL, 40, 0.01), *errors(LORA, 1, 0.01, offset=0.4)]
    assert spreads(many)[LORA].location == pytest.approx(0.4, abs=0.06)
    assert 0 < spreads(few)[LORA].location < 0.2


def test_ends_hold_what_they_promise_of_groups_that_were_left_out():
    some = errors(FULL, 41, 0.01)
    term = by_class(some)[FULL]
    inside = [one for one in some if math.log(term.likely[0]) <= one.below <= math.log(term.likely[1])]
    assert len(inside) / len(some) >= 0.85
    assert term.bound[0] < term.likely[0] < term.likely[1] < term.bound[1]


def test_a_bound_is_never_inside_what_was_seen():
    some = [*errors(FULL, 30, 0.005), Residual(0.9, 0.9, "odd", FULL)]
    term = by_class(some, [Limit(FULL, least=-1.2)])[FULL]
    assert term.bound[1] >= math.exp(0.9)
    assert term.bound[0] <= math.exp(-1.2)


def test_without_rows_a_class_has_the_terms_of_the_one_above_it_or_the_widest_alike():
    own = by_class([*errors(FULL, 8, 0.01), *errors(LORA, 8, 0.05)])
    assert of_class(("native", "dense", "QLoRA", "whole"), own) == own["native", "dense"]
    strange = of_class(("megatron", "MoE", "full", "whole"), own)
    assert strange.rows == 0
    assert strange.bound[0] <= own[FULL].bound[0]
    assert strange.bound[1] >= own[FULL].bound[1]


# ── the others ──
def test_seven_public_estimators_answer_for_a_plain_run():
    row = next(row for row in rows("published") if row["id"] == "fmsaccel-a100_80gb-10")
    told = rivals(row)
    assert set(told) == set(NAMES)
    assert all(one is not None and 5 < one.middle < 500 for one in told.values())
    assert told["16 B/param"].middle == pytest.approx(16 * 7241732096 / 2**30, rel=1e-3)
