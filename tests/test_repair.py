"""Fixes are derived, proven, minimal, idempotent, and leave every other byte alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.lang.pack import load
from cfglint.repair.apply import repair
from cfglint.repair.attach import attach
from tiers import tried

TOY = """
fact toy.rate: fraction "a share"
fact toy.workers: count 0 .. "processes"
fact toy.batch: count 1 .. "sequences"
fact toy.groups: count 1 .. "groups"
fact toy.mode: one of fast or quick or rapid, safe or careful "a mode"
fact toy.flag: bool "a switch"
fact toy.quiet: bool "the opposite of verbose"
fact toy.limit: duration in h "a limit"
fact toy.host: memory "host memory"
fact toy.length: count 1 .. "tokens"
fact toy.fine: count 1 .. "a fine domain"
knob toy.rate 0.1 .. 0.9 step 0.1 costs 1 per step "less of it"
knob toy.workers any costs 1 "more processes"
knob toy.batch any costs 3 unsafe "another batch"
knob toy.mode [safe, fast] costs 1 "another mode"
knob toy.flag any costs 1 "switched"
knob toy.quiet any costs 1 "switched"
knob toy.limit any costs 1 "longer"
knob toy.host any costs 1 "more"
knob toy.fine 1 .. 10000000 step 1 costs 0.001 per step "less"
knob toy.length halving to 16 costs 2 "shorter"
let toy.used = toy.rate * 40 GiB + toy.length * 1 MiB
framework toy {
  dialect omegaconf
  detect has($.toy)
  toy.rate <- $.toy.rate default 0.8
  toy.workers <- $.toy.workers default 1
  toy.batch <- $.toy.batch
  toy.groups <- $.toy.groups
  toy.mode <- $.toy.mode
  toy.flag <- $.toy.flag default false
  toy.quiet <- not $.toy.verbose
  toy.limit <- $.toy.limit
  toy.host <- $.toy.host_gb * 1 GB
  toy.length <- $.toy.length
  toy.fine <- $.toy.fine
}
rule PRF901 bound error for toy { toy.rate <= 0.5 }
rule PRF902 equality error for toy { toy.workers == 4 }
rule PRF903 divides error for toy { toy.batch mod toy.groups == 0 }
rule PRF904 membership error for toy { toy.mode in [safe] }
rule PRF905 switch error for toy { toy.flag }
rule PRF906 opposite error for toy { toy.quiet }
rule PRF907 longer error for toy { toy.limit >= 2 h }
rule PRF908 roomy error for toy { toy.host >= 10 GB }
rule PRF909 sum error for toy { toy.used <= 21 GiB }
rule PRF911 far error for toy { toy.fine * 2 <= 2469 }
rule PRF910 alike error for toy { toy.batch == toy.groups * 2 }
"""


@pytest.fixture(scope="module")
def pack():
    return load({"toy.rules": TOY})


def _run(pack, *codes: str) -> Run:
    return Run(pack, selected=lambda code: code in codes)


def _fixed(pack, text: str, *codes: str, unsafe: bool = True, notes: bool = False) -> str:
    return repair(
        _run(pack, *codes), read_text(text, "c.yaml"), unsafe=unsafe, least="info", notes=notes
    ).text


KINDS = [
    ("PRF901", "toy:\n  rate: 0.75  # high\n", "toy:\n  rate: 0.5  # high\n"),
    ("PRF901", "toy: {rate: 0.8, x: 1}\n", "toy: {rate: 0.5, x: 1}\n"),
    ("PRF901", "toy:\n  rate: '0.8'\n", "toy:\n  rate: '0.5'\n"),
    ("PRF901", "toy:\n  other: 1  # keep\n# end\n", "toy:\n  other: 1  # keep\n  rate: 0.5\n# end\n"),
    ("PRF901", "r: &r 0.8\ntoy:\n  rate: *r\n", "r: &r 0.5\ntoy:\n  rate: *r\n"),
    ("PRF901", "r: 0.8\ntoy:\n  rate: ${r}\n", "r: 0.5\ntoy:\n  rate: ${r}\n"),
    ("PRF901", "base: &b {rate: 0.8}\ntoy:\n  <<: *b\n", "base: &b {rate: 0.5}\ntoy:\n  <<: *b\n"),
    ("PRF902", "toy:\r\n  workers: 9\r\n", "toy:\r\n  workers: 4\r\n"),
    ("PRF903", "toy: {batch: 8, groups: 3}\n", "toy: {batch: 9, groups: 3}\n"),
    ("PRF903", "toy: {batch: 10, groups: 4}\n", "toy: {batch: 8, groups: 4}\n"),
    ("PRF904", "toy: {mode: quick}\n", "toy: {mode: careful}\n"),
    ("PRF904", "toy: {mode: rapid}\n", "toy: {mode: careful}\n"),
    ("PRF904", "toy: {mode: fast}\n", "toy: {mode: safe}\n"),
    ("PRF905", "toy:\n  flag: False\n", "toy:\n  flag: True\n"),
    ("PRF906", "toy:\n  verbose: yes\n", "toy:\n  verbose: no\n"),
    ("PRF907", "toy:\n  limit: 0.5  # h\n", "toy:\n  limit: 2  # h\n"),
    ("PRF908", "toy:\n  host_gb: 4\n", "toy:\n  host_gb: 10\n"),
    ("PRF909", "toy:\n  rate: 0.5\n  length: 4096\n", "toy:\n  rate: 0.4\n  length: 4096\n"),
    ("PRF911", "toy: {fine: 9000000}\n", "toy: {fine: 1234}\n"),
    ("PRF910", "toy:\n  batch: 7\n  groups: 3\n", "toy:\n  batch: 6\n  groups: 3\n"),
]


@pytest.mark.parametrize(("code", "before", "after"), KINDS)
def test_one_knob(pack, code: str, before: str, after: str) -> None:
    assert _fixed(pack, before, code) == after
    assert _fixed(pack, after, code) == after
    assert _fixed(pack, before.replace("\n", "\r\n"), code) == after.replace("\n", "\r\n")


def test_a_value_that_others_read_is_named(pack) -> None:
    text = "r: 0.8\ntoy:\n  rate: ${r}\nelse:\n  rate: ${r}\n"
    run = _run(pack, "PRF901")
    file = read_text(text, "c.yaml")
    judgements = run.judged(run.subjects(file, judge_broken=True)[0])
    found = list(run.findings(judgements))
    attach(run, judgements, found)
    fix = found[0].finding.fix
    assert fix is not None
    assert "else.rate" in fix.title


def test_unsafe_only_when_allowed(pack) -> None:
    text = "toy: {batch: 8, groups: 3}\n"
    assert _fixed(pack, text, "PRF903", unsafe=False) == text


def test_notes_say_what_was(pack) -> None:
    text = "toy:\n  rate: 0.8  # mine\n"
    assert (
        _fixed(pack, text, "PRF901", notes=True) == "toy:\n  rate: 0.5  # mine  # cfglint: was 0.8 (PRF901)\n"
    )


def test_a_fix_never_breaks_another_rule(pack) -> None:
    # With PRF909 asking for less and PRF902 untouched, both hold afterwards; nothing else moved.
    text = "toy:\n  rate: 0.9\n  length: 512\n  workers: 4\n"
    assert _fixed(pack, text, "PRF901", "PRF909", "PRF902") == text.replace("0.9", "0.5")


def test_many_documents_are_all_fixed(pack) -> None:
    text = "---\ntoy:\n  rate: 0.8\n" * 40
    assert _fixed(pack, text, "PRF901") == text.replace("0.8", "0.5")


def test_rules_that_pull_apart_are_left_alone(pack) -> None:
    # PRF902 wants 4 workers, PRF912 five: whatever mends one breaks the other, and neither is a fix.
    rules = TOY + "rule PRF912 five error for toy { toy.workers == 5 }\n"
    text = "toy: {workers: 4}\n"
    assert _fixed(load({"toy.rules": rules}), text, "PRF902", "PRF912") == text


def test_suppressed_findings_are_not_fixed(pack) -> None:
    text = "toy:\n  rate: 0.8  # cfglint: ignore[PRF901]\n"
    assert _fixed(pack, text, "PRF901") == text


@pytest.mark.parametrize("text", ["toy:\n  rate: |\n    0.8\n", "toy:\n  rate: ${oc.env:RATE,0.8}\n"])
def test_what_cannot_be_edited_is_only_shown(pack, text: str) -> None:
    assert _fixed(pack, text, "PRF901") == text


NEIGHBOURS = [
    "  # a comment",
    "",
    "  name: 火 # 🔥",
    "  list: [1, 2,  3]",
    '  text: "rate: 0.8"',
    "  z:   {a: 1}   # x",
]
SPELLINGS = ["0.8", "0.51", "9e-1", "'0.7'", '"0.95"', "0.6   # why"]


@given(
    st.permutations(NEIGHBOURS),
    st.integers(0, len(NEIGHBOURS)),
    st.sampled_from(SPELLINGS),
    st.sampled_from(["\n", "\r\n"]),
)
@settings(deadline=None, max_examples=tried(60))
def test_every_other_byte_stays(lines: list[str], at: int, spelled: str, newline: str) -> None:
    text = newline.join(["toy:", *lines[:at], f"  rate: {spelled}", *lines[at:], ""])
    fixed = _fixed(load({"toy.rules": TOY}), text, "PRF901")
    number = spelled.split("#", maxsplit=1)[0].strip()
    quote = number[0] if number[0] in "'\"" else ""
    start = text.index(f"  rate: {spelled}") + len("  rate: ")
    assert fixed == text[:start] + f"{quote}0.5{quote}" + text[start + len(number) :]
