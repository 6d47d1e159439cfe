"""Rules that are at odds with each other are found before a user's file is."""

from __future__ import annotations

import pytest

from cfglint.features.test import conflicts
from cfglint.features.test.conflicts import clashes, contradictions
from cfglint.lang.pack import load


def _told(*rules: str) -> list[str]:
    """Return what is said of rules among themselves, not of what they have against the shipped ones."""
    text = "".join(f"rule MEM9{i:02} rule-{i} error {{ {rule} }}\n" for i, rule in enumerate(rules))
    codes = {f"MEM9{i:02}" for i in range(len(rules))}
    found = contradictions(load({"own.rules": text}), codes)
    return [clash.what for clash in found if codes >= set(clash.codes)]


@pytest.mark.long
def test_the_shipped_rules_are_at_peace() -> None:
    assert clashes(load()) == []


@pytest.mark.parametrize(
    ("one", "other", "where"),
    [
        ("mem_fraction <= 0.4", "mem_fraction >= 0.6", ""),
        ("gpu.vram < 30 -> mem_fraction <= 0.4", "gpu.vram < 12 -> mem_fraction >= 0.6", " on "),
        ("colocated -> mem_fraction <= 0.4", "colocated and generates -> mem_fraction >= 0.6", ""),
        ("dtype == bf16", "dtype in [fp16, fp32]", ""),
        (
            "mem_fraction * gpu.vram <= 8 GiB",
            "gpu.vram > 40 and gpu.vram < 48 -> mem_fraction >= 0.5",
            " on ",
        ),
        ("num_epochs == 3", "num_epochs mod 2 == 0", ""),
        ("gpu.bf16 -> dtype == bf16", "dtype == fp32", " on "),
    ],
)
def test_two_that_cannot_hold_together(one: str, other: str, where: str) -> None:
    told = [what for what in _told(one, other) if "cannot hold together" in what]
    assert len(told) == 1
    assert told[0].startswith("MEM900 and MEM901 (own.rules:2) cannot hold together" + where)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("mem_fraction <= 0.6", "mem_fraction >= 0.4"),
        ("colocated -> mem_fraction <= 0.4", "not colocated -> mem_fraction >= 0.6"),
        ("gpu.vram < 30 -> mem_fraction <= 0.4", "gpu.vram > 30 -> mem_fraction >= 0.6"),
        ("seq_len < 1024 -> mem_fraction <= 0.4", "seq_len >= 1024 -> mem_fraction >= 0.6"),
        ("train_backend == fsdp -> activation_offload", "train_backend == ddp -> not activation_offload"),
        ("mem_fraction > 2", "mem_fraction >= 0.4"),  # nobody can keep the first: no quarrel
    ],
)
def test_what_only_looks_like_it(one: str, other: str) -> None:
    assert not [what for what in _told(one, other) if "cannot hold together" in what]


def _broken_fixes(*rules: str) -> list[str]:
    text = "".join(f"rule MEM9{i:02} rule-{i} error {{ {rule} }}\n" for i, rule in enumerate(rules))
    codes = {f"MEM9{i:02}" for i in range(len(rules))}
    return [clash.what for clash in clashes(load({"own.rules": text}), codes) if codes >= set(clash.codes)]


@pytest.mark.long
def test_a_fix_that_breaks_another_rule() -> None:
    example = "seq_len <= 1024\n bad { seq_len: 2048, num_epochs: 1 }"
    told = _broken_fixes(example, "seq_len <= 1024 -> num_epochs >= 2 and num_epochs <= 1")
    assert told == ["MEM900: every fix of this example breaks another rule; the cheapest breaks MEM901"]
    assert _broken_fixes(example, "seq_len <= 1024 -> num_epochs >= 2") == []


def test_own_rules_are_held_against_what_they_may_meet_alone(monkeypatch) -> None:
    """A fix of a shipped rule's example is looked for where it may move what an own rule rests on."""
    read: list[str] = []
    real = conflicts.read_text
    monkeypatch.setattr(conflicts, "read_text", lambda text, place: read.append(place) or real(text, place))
    rule = "rule MEM900 own error {{ {} }}"
    assert clashes(load({"own.rules": rule.format("$.training.lr <= 1e-3")}), {"MEM900"}) == []
    assert read == []
    clashes(load({"own.rules": rule.format("num_epochs <= 40")}), {"MEM900"})
    assert read == []  # no shipped rule's fix moves it
    assert clashes(load({"own.rules": rule.format("zero_stage <= 3")}), {"MEM900"}) == []
    assert 0 < len(read) < 20  # of 73 examples


@pytest.mark.long
def test_the_command(cfglint, folder) -> None:
    rules = "rule MEM901 low error { seq_len <= 128 }\nrule MEM902 high error { seq_len >= 256 }\n"
    (folder / "own.rules").write_text(rules)
    done = cfglint("test", "own.rules")
    assert done.returncode == 1
    assert "own.rules:1: MEM901 and MEM902 (own.rules:2) cannot hold together" in done.stdout
    assert done.stdout.endswith("0 examples, 0 wrong, 1 clash\n")
