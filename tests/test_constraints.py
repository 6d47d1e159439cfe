"""docs/constraints.md, line by line: each constraint once, with a rule and a pair of cases that show it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from cfglint.lang.pack import load
from golden import cases

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "constraints.md"
# How many each framework has.
COUNTS = {
    "areal": 23, "verl": 28, "trl": 10, "openrlhf": 10, "deepspeed": 14, "accelerate": 9, "llamafactory": 12,
    "axolotl": 18, "torchtune": 11, "torchtitan": 7, "sglang": 8, "vllm": 10, "nemo_rl": 20, "prime_rl": 10,
    "slime": 5, "transformers": 5, "sb3_zoo": 3,
    "megatron": 15, "easyr1": 8, "skyrl": 6, "open_instruct": 3, "roll": 3, "neox": 3, "xtuner": 13,
}  # fmt: skip
# Those that have no rule yet, and may stand without one.
# No config can break these; the note on the page says why.
OUT_OF_REACH = {"areal-13", "areal-18"}


class Row(NamedTuple):
    """One line of the page."""

    id: str
    must: str
    codes: tuple[str, ...]
    bad: str
    ok: str
    note: str


def _rows() -> list[Row]:
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if re.match(r"\| [a-z0-9_]+-[0-9]{2} \|", line):
            id_, must, codes, bad, ok, note = (part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1])
            found.append(Row(id_, must, tuple(filter(None, codes.split(", "))), bad, ok, note))
    return found


ROWS = _rows()
JUDGED = [row for row in ROWS if row.id not in OUT_OF_REACH]


def _reported(case: str) -> set[str]:
    """Return the codes that a case's committed report tells as findings."""
    code, _, name = case.partition("/")
    (report,) = (case.expected for case in cases(code) if case.name == name)
    place = re.escape(name) + r":\d+:\d+: (?:possible )?(?:error|warning|info) ([A-Z]{3}\d{3}) "
    return set(re.findall(place, report))


def test_every_constraint_stands_there_once_and_in_order() -> None:
    expected = [f"{name}-{n:02d}" for name, count in COUNTS.items() for n in range(1, count + 1)]
    assert sum(COUNTS.values()) == 254
    assert sorted(row.id for row in ROWS) == sorted(expected)
    for name in COUNTS:
        own = [row.id for row in ROWS if row.id.rpartition("-")[0] == name]
        assert own == sorted(own)


def test_every_code_is_a_rule() -> None:
    known = {rule.code for rule in load().rules}
    unknown = {(row.id, code) for row in JUDGED for code in row.codes if code not in known}
    assert not unknown


@pytest.mark.parametrize("row", JUDGED, ids=lambda row: row.id)
def test_the_cases_show_it(row: Row) -> None:
    assert row.must
    assert row.codes, "a rule, or a place in OUT_OF_REACH"
    assert "/bad_" in row.bad
    assert "/ok_" in row.ok
    assert _reported(row.bad) & set(row.codes), "the bad case's report tells none of the codes"
    assert not _reported(row.ok) & set(row.codes)


def test_what_has_no_rule_says_why() -> None:
    for row in ROWS:
        if row.id in OUT_OF_REACH:
            assert row.codes == ("none",)
            assert len(row.note) > 40


def test_no_two_constraints_share_a_bad_case() -> None:
    shown = [row.bad for row in JUDGED]
    assert sorted({case for case in shown if shown.count(case) > 1}) == []
