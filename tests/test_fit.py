"""What ``cfglint fit`` computes: verdicts, what targets share, estimates, variations, remedies."""

import json
import math
from pathlib import Path

import pytest

from cfglint.command import parse
from cfglint.document.reading import read_text
from cfglint.engine.judge import values_for
from cfglint.engine.memory import span_of, verdict_of
from cfglint.engine.rows import PARTS, Fit, FitRow, fit_rows, given_by
from cfglint.engine.run import Run
from cfglint.errors import UsageError
from cfglint.features import fit as command
from cfglint.features.fit.compute import read_axis, remedy, variants, widened
from cfglint.findings import Span
from cfglint.hardware.target import all_targets, parse_target
from cfglint.lang.pack import load, read_rules
from cfglint.lang.values import Interval

GIB = 2**30
HERE = Path(__file__).parent
CONFIG = HERE / "fit" / "one_gpu.yaml"
RULES = str(HERE / "fit" / "need.rules")


@pytest.fixture(scope="module")
def pack():
    return load(read_rules([RULES]))


def subject(pack, text=None, overrides=()):
    run = Run(pack, overrides=overrides)
    (found,) = run.subjects(read_text(text or CONFIG.read_text(), "c.yaml"), judge_broken=False)
    return found


def rows(pack, *names, **more):
    targets = [parse_target(name) for name in names]
    return list(fit_rows(Run(pack, targets), subject(pack, **more)))


@pytest.mark.parametrize(
    ("low", "high", "capacity", "verdict"),
    [
        (1, 2, 2, "fits"),
        (1, 2, 1.5, "tight"),
        (1, 2, 1, "tight"),
        (1, 2, 0.9, "oom"),
        (2, 2, 2, "fits"),
        (0, math.inf, 80, "tight"),
        (100, math.inf, 80, "oom"),
    ],
)
def test_verdict(low, high, capacity, verdict):
    assert verdict_of(Span(low, high), Span(capacity, capacity)) == verdict


def test_spans():
    assert span_of(GIB * 3) == Span(3, 3)
    assert span_of(Interval(-GIB, 2 * GIB)) == Span(0, 2)
    assert span_of(None) == Span(0, math.inf)


def test_the_numbers(pack):
    (row,) = rows(pack, "a40")
    params, tokens = 494032768, 4096
    parts = row.parts
    assert row.target == "a40"
    assert row.capacity_gib == pytest.approx(44.42, abs=0.01)
    assert parts["engine"].low == parts["engine"].high == pytest.approx(0.8 * row.capacity_gib)
    assert parts["optimizer"].low * GIB == params * 8
    assert parts["logits"] == Span(tokens / 4 * 151936 * 4 / GIB, tokens * 151936 * 4 / GIB)
    assert row.need_gib.low == pytest.approx(sum(parts[p].low for p in PARTS))
    assert row.verdict == "tight"
    assert row.headroom.low == row.capacity_gib - row.need_gib.high
    assert row.trainer.moment == "loss"
    assert row.trainer.allocated_gib.high < row.trainer.reserved_gib.high
    assert row.needs == ()


def test_a_target_with_a_number_of_gpus(pack):
    two, one = rows(pack, "a40:2", "a40:1", text=(HERE / "fit" / "two_gpus.yaml").read_text())
    assert (two.target, one.target) == ("a40:2", "a40:1")
    assert two.parts["engine"].high == 0  # each has a GPU of its own
    assert one.parts["engine"].high > 0


def test_what_targets_share_changes_nothing(pack):
    """All at once, in either order, gives what each gives alone: also where one knows less than another."""
    targets = all_targets()
    one = subject(pack)
    together = list(fit_rows(Run(pack, targets), one))
    backwards = list(fit_rows(Run(pack, targets[::-1]), one))[::-1]
    alone = [row for target in targets for row in fit_rows(Run(pack, [target]), one)]
    assert together == alone == backwards
    assert len({row.need_gib for row in together}) > 30  # the engine's share differs


def test_the_shipped_model_shares_alike():
    pack = load()
    one, targets = subject(pack), all_targets()[::9]
    together = list(fit_rows(Run(pack, targets), one))
    assert together == [row for target in targets for row in fit_rows(Run(pack, [target]), one)]


def test_nothing_trains(pack):
    (variant,) = variants(pack, subject(pack), [read_axis("trains=false")])
    (row,) = fit_rows(Run(pack, [variant.target(parse_target("a40"))]), subject(pack))
    assert row.trainer is None


def test_estimates_are_told_by_what_they_are_worth(pack):
    one = subject(pack)
    values = values_for(one, given_by(parse_target("a40")))
    found = widened(one, values, brief=False)
    assert [one.name for one in found] == ["toy.held", "toy.slack", "toy.context"]
    assert found[0].value == "1024–4096"
    assert "a quarter of the cap" in found[0].about
    assert found[0].width > found[1].width > found[2].width == pytest.approx(0.5)
    brief = widened(one, values, brief=True)
    assert [(one.name, one.width) for one in brief] == [(one.name, one.width) for one in found]


def test_vary(pack):
    one = subject(pack)
    axes = [read_axis("mem_fraction=0.4,0.8"), read_axis("actor.mb_spec.max_tokens_per_mb=512, 1024")]
    found = variants(pack, one, axes)
    assert [variant.varied for variant in found] == [
        (("mem_fraction", m), ("actor.mb_spec.max_tokens_per_mb", t))
        for m in ("0.4", "0.8")
        for t in ("512", "1024")
    ]
    assert found[0].facts == (("mem_fraction", 0.4),)
    assert found[0].overrides == ("actor.mb_spec.max_tokens_per_mb=512",)
    assert found[0].target(parse_target("a40")).facts["mem_fraction"] == (0.4, "--vary")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mem_fraction", "write NAME=V1,V2"),
        ("mem_fraction=", "write NAME=V1,V2"),
        ("mem_fraction=0.4,,0.5", "write NAME=V1,V2"),
        ("=4", "write NAME=V1,V2"),
        ("mem_fractoin=0.4", "did you mean 'mem_fraction'"),
        ("actor.mb_spec.max_tokens=4", "did you mean 'actor.mb_spec.max_tokens_per_mb'"),
        ("mem_fraction=much", "mem_fraction takes a number in its range, not 'much'"),
        ("mem_fraction=1.5", "mem_fraction takes a number in its range, not '1.5'"),
        ("rollout_engine=sglagn", "did you mean 'sglang'"),
        ("colocated=perhaps", "colocated takes true or false"),
    ],
)
def test_vary_says_what_is_wrong(pack, text, said):
    with pytest.raises(UsageError, match="--vary") as error:
        variants(pack, subject(pack), [read_axis(text)])
    assert said in str(error.value)


def test_the_same_axis_twice(pack):
    with pytest.raises(UsageError, match="--vary mem_fraction is given twice"):
        variants(pack, subject(pack), [read_axis("mem_fraction=0.4"), read_axis("mem_fraction=0.5")])


def test_a_remedy_is_proven_on_the_verdict(pack):
    target = parse_target("rtx-4090")
    run = Run(pack, [target])
    one = subject(pack)
    (row,) = fit_rows(Run(pack, [target]), one)
    assert row.verdict == "oom"
    found = remedy(run, one, row)
    assert found.fix.edits
    assert found.verdict == "fits"
    assert found.need_gib.high <= row.capacity_gib
    (clean,) = fit_rows(Run(pack, [parse_target("h200")]), one)
    assert remedy(Run(pack, [parse_target("h200")]), one, clean) is None


IDLE = """
rule USR901 idle-keeps-its-batch error {
  known(observed.gpu_util) and observed.gpu_util < 50 % -> mem_fraction >= 0.8
  why "an example"
  see "none"
  bad  { observed.gpu_util: 8 %, mem_fraction: 0.5 }
  good { observed.gpu_util: 8 %, mem_fraction: 0.8 }
}
"""


def test_what_was_observed_counts_for_a_remedy():
    pack = load({**read_rules([RULES]), "idle.rules": IDLE})
    target, key = parse_target("rtx-4090"), "sglang.mem_fraction_static"
    one = subject(pack)
    (row,) = fit_rows(Run(pack, [target]), one)
    (variant,) = variants(pack, one, [])
    for overrides, lowered in ((), True), (["observed.gpu_util=8%"], False):
        base = Run(pack, [target], overrides=overrides)
        found = remedy(variant.run(base), one, row)
        assert (found is not None and key in found.fix.title) is lowered


def test_a_value_that_is_varied_goes_before_what_was_observed(pack):
    (variant,) = variants(pack, subject(pack), [read_axis("observed.gpu_util=80%")])
    base = Run(pack, [parse_target("a40")], overrides=["observed.gpu_util=8%", "observed.fps=4500"])
    run = variant.run(base)
    (one,) = run.judged(subject(pack, overrides=base.overrides))
    assert one.values["observed.gpu_util"] == 0.8
    assert one.values["observed.fps"] == 4500


def test_of_the_catalogue_both_sides_of_the_limit_are_told():
    def row(name, verdict):
        return FitRow(name, 1.0, Span(1, 1), Span(1, 1), verdict, parts={}, trainer=None)

    names = [row("a", "oom"), row("b", "tight"), row("c", "fits"), row("d", "fits"), row("e", "unknown")]
    assert [r.target for r in Fit("c", None, None, tuple(names), every=True).telling] == ["b", "c"]
    assert [r.target for r in Fit("c", None, None, tuple(names[:2]), every=True).telling] == ["b"]
    assert [r.target for r in Fit("c", None, None, tuple(names[2:4]), every=True).telling] == ["c"]
    assert len(Fit("c", None, None, tuple(names)).telling) == 5


def test_the_catalogue_is_sorted_and_whole():
    every, found, _ = command.targets_of(parse(command.FitOptions, ["c.yaml", "--gpu", "all"]))
    sizes = [t.vram_gib or math.inf for t in found]
    assert every
    assert sizes == sorted(sizes)
    assert not any(t.facts["gpu.mig"][0] for t in found)
    _, eight, _ = command.targets_of(parse(command.FitOptions, ["c.yaml", "--gpu", "ALL:8"]))
    assert all(t.count == 8 for t in eight)
    assert len(eight) == len(found)
    _, more, _ = command.targets_of(parse(command.FitOptions, ["c.yaml", "--gpu", "all", "--gpu", "a40:2"]))
    assert {t.name for t in more} == {t.name for t in found} | {"a40:2"}


def test_json_numbers_are_plain(pack):
    from cfglint.features.fit import render_fit
    from cfglint.report import Style

    made = Fit("c.yaml", "areal", None, tuple(rows(pack, "a40")))
    data = json.loads(render_fit(made, "json", "", Style()))
    assert data["rows"][0]["capacity_gib"] == 44.4199
