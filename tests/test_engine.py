"""Recognition, name resolution, verdicts and findings, on small rule sets."""

from __future__ import annotations

import re

import pytest

from cfglint.api import check_text, fix_text
from cfglint.document.reading import Library, read_text
from cfglint.engine.run import Run
from cfglint.errors import RulesError, UsageError
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load
from cfglint.lang.values import Interval, needs_of
from cfglint.record import fields

RULES = """
fact t.share: fraction "a share"
fact t.size: memory "a size"
fact t.engine: one of left, right "which"
fact t.level: count 0 .. "a level"
let t.left = t.size * (1 - t.share)
let t.level = 7
framework alpha {
  dialect omegaconf
  detect has($.alpha)
  version v1.0 when has($.alpha.old)
  t.share <- $.alpha.left_share when t.engine == left default 0.3
  t.share <- $.alpha.right_share when t.engine == right default 0.6
  t.size <- $.alpha.size default 10 null -> 5
  t.engine <- $.alpha.engine
}
framework beta {
  detect has($.beta)
  detect has($.beta.more)
}
rule PRF901 left-over error for alpha { t.left >= 8 GiB
  say "left {t.left} of {t.size}" }
rule PRF902 new-only error for alpha > v1.0 { t.level < 7 }
rule PRF903 each error for beta { all x in $.beta.items: x.n > 0
  say "n is {x.n}" }
"""


@pytest.fixture(scope="module")
def pack():
    return load({"t.rules": RULES})


def _values(pack, text: str):
    run = Run(pack)
    return run.judged(run.subjects(read_text(text, "c.yaml"), judge_broken=True)[0])[0].values


def test_errors_of_a_version_that_nobody_checked_are_warnings() -> None:
    checked = load({"t.rules": RULES.replace("  t.share", "  checked from v2.0\n  t.share", 1)})

    def told(text: str, version: tuple[int, ...] | None) -> dict[str, tuple[str, bool]]:
        run = Run(checked, by_path=lambda _: ("alpha", version))
        found = run.findings(run.judged(run.subjects(read_text(text, "c.yaml"), judge_broken=True)[0]))
        return {f.code: (f.level, "may differ in 1.9" in f.why) for f in (each.finding for each in found)}

    short = "alpha: {engine: left, size: 1}"
    sure = ("error", False)
    assert told(short, None) == told(short, (2, 0)) == {"PRF901": sure, "PRF902": sure}
    assert told(short, (1, 9)) == {"PRF901": ("warning", True), "PRF902": sure}, "PRF902 names versions"


def test_errors_are_warnings_where_a_package_of_its_own_does_not_say_its_version(pack) -> None:
    run = Run(pack, pinned=lambda *_: (None, "alpha/__init__.py:1"))
    found = run.findings(
        run.judged(run.subjects(read_text("alpha: {engine: left, size: 1}", "c.yaml"), judge_broken=True)[0])
    )
    levels = {each.finding.code: each.finding.level for each in found}
    assert levels == {"PRF901": "warning", "PRF902": "info"}, "PRF902 is about versions"
    assert all("of its own, in alpha/__init__.py, which may differ" in each.finding.why for each in found)


def test_recognition_is_by_content_and_the_most_signs_win(pack) -> None:
    def name(text: str) -> str | None:
        return Run(pack).recognise(read_text(text, "c.yaml").documents[0])

    assert name("alpha: {a: 1}") == "alpha"
    assert name("alpha: 1\nbeta: {more: 1}") == "beta"
    assert name("gamma: 1") is None
    assert name("- 1\n- 2") is None
    assert name("") is None


def test_key_then_default_then_null_then_let(pack) -> None:
    gib = 2**30
    assert _values(pack, "alpha: {size: 3}")["t.size"] == 3 * gib
    assert _values(pack, "alpha: {a: 1}")["t.size"] == 10 * gib
    assert _values(pack, "alpha: {size: null}")["t.size"] == 5 * gib
    assert needs_of(_values(pack, "alpha:\n  size: ???")["t.size"]) == {"t.size"}
    assert needs_of(_values(pack, "alpha: {size: big}")["t.size"]) == {"t.size"}
    assert _values(pack, "alpha: {a: 1}")["t.level"] == 7


def test_a_binding_that_may_hold_is_a_range_with_what_holds_without_it() -> None:
    bound = RULES.replace("  t.size <-", "  t.level <- 2 when t.engine == left\n  t.size <-", 1)
    level = _values(load({"t.rules": bound}), "alpha: {a: 1}")["t.level"]
    assert type(level) is Interval
    assert (level.lo, level.hi, level.needs) == (2, 7, {"t.engine"})


def test_a_default_holds_once_its_condition_is_known(pack) -> None:
    assert _values(pack, "alpha: {engine: right}")["t.share"] == 0.6
    either = _values(pack, "alpha: {a: 1}")["t.share"]
    assert type(either) is Interval
    assert (either.lo, either.hi, either.needs) == (0, 1, {"t.engine", "t.share"})
    # Whatever the share is: 5 GiB x 0 and 5 GiB x 1 are both too little.
    report = check_text("alpha: {size: 5}", path="c.yaml", rules={"t.rules": RULES})
    assert [f.code for f in report.findings if f.code == "PRF901"] == ["PRF901"]


def test_versions_scope_rules(pack) -> None:
    def codes(text: str) -> set[str]:
        return {f.code for f in check_text(text, path="c.yaml", rules={"t.rules": RULES}).findings}

    assert "PRF902" in codes("alpha: {engine: left}")
    assert "PRF902" not in codes("alpha: {engine: left, old: 1}")


def test_one_finding_for_each_item_at_its_place() -> None:
    text = "beta:\n  items:\n    - n: 1\n    - n: 0\n    - {n: -2}\n"
    found = check_text(text, path="c.yaml", rules={"t.rules": RULES}).findings
    assert [f.message for f in found] == ["n is 0", "n is -2"]
    assert [text.count("\n", 0, f.place.start) + 1 for f in found] == [4, 5]


WIDE = """
fact t.size: memory "a size"
fact t.held: memory "what is held"
fact t.rest: memory "the rest"
let t.held = 1 .. 4 GiB
let t.rest = 1 .. 1.2 GiB
framework gamma { detect has($.gamma)
  t.size <- $.gamma.size
  t.rest <- $.gamma.rest
}
rule MEM901 too-large error for gamma { t.size + t.held + t.rest <= 3 GiB
  say "it is {t.size + t.held}" }
"""


def test_a_wide_memory_says_what_widens_it() -> None:
    def reason(text: str) -> str:
        (found,) = check_text(text, path="c.yaml", rules={"t.rules": WIDE}).findings
        return found.range_reason

    estimate = "cfglint can only estimate what is held (1–4 GiB)"
    assert reason("gamma: {size: 0, rest: 1.5}") == f"the range is wide because {estimate}"
    assert reason("gamma: {size: 2, rest: 1}") == ""  # at most twice the lower bound
    assert reason("gamma: {size: 9, rest: 0}") == ""


def test_a_wide_memory_says_what_is_not_known() -> None:
    text = (
        "model_name_or_path: acme/Thing-30B-A3B\nstage: sft\nfinetuning_type: full\ndataset: d\n"
        "do_train: true\ntemplate: qwen\ncutoff_len: 4096\nbf16: true\nper_device_train_batch_size: 1\n"
        "deepspeed: examples/deepspeed/ds_z3_config.json\n"
    )
    found = check_text(text, path="sft.yaml", hardware="rtx-4090:24").findings
    (states,) = [each.range_reason for each in found if each.code == "MEM104"]
    assert re.match(
        r"the range is wide because parameters, .*\(25.5–34.5 billion\) and width of one expert .* are "
        "not known: add --model-config PATH",
        states,
    )


def test_a_file_that_does_not_parse_is_a_finding_at_its_line() -> None:
    report = check_text("alpha:\n  a: 1\n b: : 2\n", path="c.yaml", rules={"t.rules": RULES})
    assert [f.code for f in report.findings] == ["CFG001"]
    assert report.findings[0].place.start >= 8


def test_overrides_count_and_are_not_edited(pack) -> None:
    run = Run(pack, overrides=["alpha.size=100"])
    run.add(read_text("alpha: {engine: left, size: 1}", "c.yaml"))
    assert not [f for f in run.report.findings if f.code == "PRF901"]


def test_unknown_names_are_told() -> None:
    with pytest.raises(UsageError, match="unknown framework 'alfa'"):
        check_text("a: 1", path="c.yaml", framework="alfa")
    with pytest.raises(
        RulesError, match=r"t\.rules:1:1: unknown name 'mem_fracton'; did you mean 'mem_fraction'"
    ):
        check_text("a: 1", path="c.yaml", rules={"t.rules": "mem_fracton < 1"})


def test_fix_text_is_pure_and_proven() -> None:
    rules = {"t.rules": RULES + "\nknob t.share 0.1 .. 0.9 step 0.1 costs 1 per step\n"}
    text = "alpha: {engine: left, left_share: 0.5}\n"
    fixed, report = fix_text(text, path="c.yaml", rules=rules)
    assert fixed == "alpha: {engine: left, left_share: 0.2}\n"
    assert not [f for f in report.findings if f.code == "PRF901"]


ESTIMATE = """
fact e.need: memory "an estimate"
fact e.cap: memory "a limit"
let e.need = 10..20 GiB
framework eps {
  detect has($.eps)
  e.cap <- $.eps.cap
}
rule MEM901 does-not-fit error for eps { e.need <= e.cap }
rule MEM902 thumb info for eps { e.need <= e.cap }
"""


@pytest.mark.parametrize(
    ("cap", "levels"),
    [
        ("25", []),
        ("11", ["warning", "info"]),
        ("15", ["info"]),
        ("5", ["error", "info"]),
        ("???", []),
    ],
)
def test_an_estimate_that_may_break_a_rule_is_one_level_lower(cap: str, levels: list[str]) -> None:
    report = check_text(f"eps:\n  cap: {cap}\n", path="c.yaml", rules={"e.rules": ESTIMATE})
    assert [f.level for f in report.findings] == levels
    assert all(f.possible == (cap in ("11", "15")) for f in report.findings)
    open_ones = {u.code for u in report.undecided} & {"MEM901", "MEM902"}
    assert open_ones == ({"MEM901", "MEM902"} if cap == "???" else set())


def test_targets_share_a_finding_that_none_of_them_plays_a_part_in(pack) -> None:
    rules = {"t.rules": RULES + "\nrule PRF904 small error for beta { gpu.vram >= 30 GiB }\n"}
    found = check_text(
        "beta:\n  items: [{n: 0}]\n", path="c.yaml", hardware=["a10", "a40"], rules=rules
    ).findings
    assert [(f.code, f.target) for f in found] == [("PRF903", None), ("PRF904", "a10")]


def test_a_run_that_differs_in_something_keeps_the_rest():
    run = Run(
        load(),
        [parse_target("a40")],
        framework="areal",
        version=(1, 0),
        by_path=lambda _: None,
        overrides=["a=1"],
        selected=lambda code: code != "MEM101",
        guarded=lambda _: True,
        environ={"HOME": "/"},
        tables={},
        given={"model_config": ("m", "--model-config")},
        named=False,
        library=Library(lambda _: None),
    )
    again = run.but(targets=[parse_target("h200")])
    settings = set(fields(Run)) - {"targets", "report"}
    assert {name: getattr(again, name) for name in settings} == {n: getattr(run, n) for n in settings}
    assert [target.name for target in again.targets] == ["h200"]
    assert [info.name for info in again.report.targets] == ["h200"]
