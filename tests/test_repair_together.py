"""Repairs of several rules, over several knobs, for several targets; what moves along, and its cost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import load
from cfglint.lang.values import Interval
from cfglint.record import replace
from cfglint.repair import search
from cfglint.repair.apply import repair
from cfglint.repair.attach import attach
from cfglint.repair.options import Options
from cfglint.repair.together import distinct
from cfglint.repair.tracks import OF_ITSELF, Option

TOY = """
fact toy.rate: fraction "a share"
fact toy.micro: count 1 .. "sequences of a micro-batch"
fact toy.steps: count 1 .. "accumulation steps"
fact toy.length: count 1 .. "tokens"
fact toy.other_length: count 1 .. "tokens of another model"
fact toy.offload: bool "states wait on the host"
fact toy.host: memory "host memory"
fact toy.kernel: one of none, plain or simple, fused, other "a kernel"
let toy.effective = toy.micro * toy.steps
let toy.used = toy.rate * 40 GiB + toy.micro * 1 GiB + (if toy.offload then 0 GiB else 8 GiB)
let toy.host_used = if toy.offload then 8 GiB else 0 GiB
knob toy.rate 0.1 .. 0.9 step 0.1  costs 1 per step throughput "less of it"
knob toy.micro halving to 1 keeping toy.effective with toy.steps  costs 2 per step time 5 .. 10 % "more steps"
knob toy.length halving to 16  costs 3 quality unsafe "shorter"
knob toy.other_length halving to 16  costs 4 quality unsafe "shorter there"
knob toy.offload [true]  costs 1 time "slower"
knob toy.kernel [plain, fused, other]
  to plain or other costs 3 time "slower"
  to fused costs 2 "another one"
framework toy {
  dialect omegaconf
  detect has($.toy)
  toy.rate <- $.toy.rate default 0.8
  toy.micro <- $.toy.micro default 1
  toy.steps <- $.toy.steps default 1
  toy.length <- $.toy.length
  toy.other_length <- $.other.length
  toy.offload <- $.toy.offload default false
  toy.host <- $.toy.host_gb * 1 GB
  toy.kernel <- $.toy.kernel
  tied toy.length with $.twin.length "train.py:3: both models see the same sequences"
}
rule PRF901 used error for toy { toy.used <= 30 GiB }
rule PRF902 long error for toy { toy.length <= 128 }
rule PRF903 host error for toy { known(toy.host) -> toy.host_used <= toy.host }
rule PRF904 low warning for toy { toy.rate >= 0.4 }
rule PRF905 small error for toy { gpu.vram < 30 -> toy.rate <= 0.3 }
rule PRF906 large error for toy { gpu.vram >= 30 -> toy.rate >= 0.5 }
rule PRF908 kernel error for toy { toy.kernel != none }
rule PRF909 plain error for toy { toy.kernel in [none, plain, other] }
rule PRF910 many error for toy { toy.micro >= 40 }
rule PRF907 both error for toy { toy.micro + toy.length <= 130 }
"""


@pytest.fixture(scope="module")
def pack():
    return load({"toy.rules": TOY})


def _run(pack, *codes: str, gpus: tuple[str, ...] = ()) -> Run:
    return Run(pack, [parse_target(gpu) for gpu in gpus], selected=lambda code: code in codes)


def _fixed(pack, text: str, *codes: str, unsafe: bool = True, gpus: tuple[str, ...] = ()) -> str:
    run = _run(pack, *codes, gpus=gpus)
    return repair(run, read_text(text, "c.yaml"), unsafe=unsafe, least="warning", notes=False).text


def _findings(pack, text: str, *codes: str, gpus: tuple[str, ...] = ()):
    run = _run(pack, *codes, gpus=gpus)
    judgements = run.judged(run.subjects(read_text(text, "c.yaml"), judge_broken=True)[0])
    found = list(run.findings(judgements))
    attach(run, judgements, found)
    return [each.finding for each in found]


def test_several_knobs_where_one_is_not_enough(pack) -> None:
    text = "toy:\n  rate: 0.9  # high\n  micro: 16\n  steps: 2\n"
    # 60 GiB of 30: 8 go to the host, 8 with the micro-batch, 16 with the rate.
    fixed = _fixed(pack, text, "PRF901", "PRF904")
    assert fixed == "toy:\n  rate: 0.5  # high\n  micro: 8\n  steps: 4\n  offload: true\n"


def test_what_is_kept_is_kept_by_the_partner(pack) -> None:
    text = "toy:\n  rate: 0.1\n  micro: 32\n  steps: 4\n"
    assert _fixed(pack, text, "PRF901") == text.replace("32", "16").replace("steps: 4", "steps: 8")
    absent = "toy:\n  rate: 0.1\n  micro: 32\n"
    assert _fixed(pack, absent, "PRF901") == "toy:\n  rate: 0.1\n  micro: 16\n  steps: 2\n"


def test_a_rule_in_the_way_is_taken_in(pack) -> None:
    # Offloading is cheap, and the host has no room for it.
    text = "toy: {rate: 0.6, micro: 4, host_gb: 64}\n"
    assert "offload: true" in _fixed(pack, text, "PRF901", "PRF903")
    small = "toy: {rate: 0.6, micro: 4, host_gb: 4}\n"
    assert _fixed(pack, small, "PRF901", "PRF903") == small.replace("0.6", "0.4")


def test_tied_keys_move_along(pack) -> None:
    text = "toy:\n  length: 512\ntwin:\n  length: 512  # the same\n"
    assert _fixed(pack, text, "PRF902") == text.replace("512", "128")
    apart = "toy:\n  length: 512\ntwin:\n  length: 64\n"
    assert _fixed(pack, apart, "PRF902") == apart.replace("512", "128")


def test_what_changes_results_is_halved_twice_at_most(pack) -> None:
    text = "toy:\n  length: 1024\n"
    assert _fixed(pack, text, "PRF902") == text
    (found,) = _findings(pack, text, "PRF902")
    assert found.fix is None
    assert not found.alternatives


def test_a_value_has_its_own_price(pack) -> None:
    text = "toy: {kernel: none}\n"
    (free,) = _findings(pack, text, "PRF908")
    assert (free.fix.title, free.fix.cost, free.fix.effect) == ("set toy.kernel to fused", 2, "another one")
    (bound,) = _findings(pack, text, "PRF908", "PRF909")
    assert (bound.fix.title, bound.fix.cost, bound.fix.effect) == ("set toy.kernel to plain", 3, "slower")


AREAL = """
cluster: {n_nodes: 1, n_gpus_per_node: 1}
scheduler: {type: local}
actor: {backend: "BACKEND", path: Qwen/Qwen2.5-0.5B, gradient_checkpointing: false}
critic: {gradient_checkpointing: false}
train_dataset: {path: a, type: sft, batch_size: 8, max_length: 1024}
valid_dataset: {path: a, type: sft, batch_size: 8, max_length: 1024}
"""
SERVING = """
cluster: {n_nodes: 1, n_gpus_per_node: 2}
rollout: {backend: "sglang:d1"}
gconfig: {n_samples: 4, max_new_tokens: 512, max_tokens: 8192}
eval_gconfig: {max_new_tokens: 512, max_tokens: 4096}
actor: {backend: "fsdp:d1", path: Qwen/Qwen2.5-0.5B}
sglang: {context_length: 8192}
train_dataset: {path: a, type: rl, batch_size: 8, max_length: 1024}
"""


@pytest.mark.parametrize(
    ("rule", "text", "old", "new"),
    [
        ("seq_len <= 512", AREAL, "max_length: 1024", "max_length: 512"),
        ("gradient_checkpointing == full", AREAL, "checkpointing: false", "checkpointing: true"),
        ("context_length <= 4096", SERVING, "8192", "4096"),
    ],
)
def test_what_moves_together_in_areal(rule: str, text: str, old: str, new: str) -> None:
    text = text.replace("BACKEND", "fsdp:d1")
    pack = load({"mine.rules": f"rule PRF901 mine error {{ {rule} }}"})
    assert _fixed(pack, text, "PRF901") == text.replace(old, new)


@pytest.mark.parametrize(("backend", "method"), [("fsdp:d1", "full"), ("archon:d1", "selective")])
def test_areals_switch_means_what_its_backend_makes_of_it(backend: str, method: str) -> None:
    pack = load({"mine.rules": "rule PRF901 mine error { gradient_checkpointing != none }"})
    text = AREAL.replace("BACKEND", backend)
    fixed = text.replace("checkpointing: false", "checkpointing: true")
    assert _fixed(pack, text, "PRF901") == fixed
    run = _run(pack, "PRF901")
    (one,) = run.judged(run.subjects(read_text(fixed, "c.yaml"), judge_broken=True)[0])
    assert one.values["gradient_checkpointing"] == method


def test_a_switch_takes_no_third_word() -> None:
    pack = load({"mine.rules": "rule PRF901 mine error { gradient_checkpointing == selective }"})
    text = AREAL.replace("BACKEND", "fsdp:d1")
    assert _fixed(pack, text, "PRF901") == text
    absent = text.replace(", gradient_checkpointing: false}", "}", 1)
    assert _fixed(pack, absent, "PRF901") == absent
    pack = load({"mine.rules": "rule PRF901 mine error { gradient_checkpointing == full }"})
    assert "gradient_checkpointing: true" in _fixed(pack, absent, "PRF901")


def test_readers_of_a_definition_move_and_cost_too(pack) -> None:
    text = "n: &n 512\ntoy:\n  length: *n\nother:\n  length: *n\n"
    (finding,) = _findings(pack, text, "PRF902")
    assert finding.fix is not None
    assert finding.fix.cost == 3 + 4
    assert "other.length" in finding.fix.title
    assert "shorter there" in finding.fix.effect


def test_one_move_for_two_rules_is_one_fix(pack) -> None:
    text = "toy: {length: 256, micro: 2}\n"
    first, second = _findings(pack, text, "PRF902", "PRF907")
    assert first.fix is not None
    assert second.fix is not None
    assert first.fix.number == second.fix.number
    assert [edit.new for edit in first.fix.edits] == ["128"]


def test_rules_without_a_common_knob_have_a_fix_each(pack) -> None:
    text = "toy: {rate: 0.9, length: 512}\n"
    first, second = _findings(pack, text, "PRF901", "PRF902")
    assert first.fix is not None
    assert second.fix is not None
    assert first.fix.number != second.fix.number
    assert (first.fix.applicability, second.fix.applicability) == ("safe", "unsafe")


def test_one_patch_for_all_targets_if_there_is_one(pack) -> None:
    text = "toy: {rate: 0.8}\n"
    assert _fixed(pack, text, "PRF905", gpus=("rtx-4090", "a10g")) == "toy: {rate: 0.3}\n"


def test_else_one_for_each_target_and_none_is_applied(pack) -> None:
    text = "toy: {rate: 0.4}\n"
    codes = ("PRF905", "PRF906")
    found = _findings(pack, text, *codes, gpus=("rtx-4090", "a40"))
    fixes = {finding.target: finding.fix for finding in found}
    assert {target: [edit.new for edit in fix.edits] for target, fix in fixes.items() if fix} == {
        "rtx-4090": ["0.3"],
        "a40": ["0.5"],
    }
    assert all(fix is not None and fix.target == target for target, fix in fixes.items())
    assert _fixed(pack, text, *codes, gpus=("rtx-4090", "a40")) == text
    assert _fixed(pack, text, *codes, gpus=("a40",)) == "toy: {rate: 0.5}\n"


def test_the_work_is_limited_and_that_is_said(pack, monkeypatch) -> None:
    monkeypatch.setattr(search, "LIMIT", 1)
    monkeypatch.setattr(search.Search, "spent", lambda self: setattr(self, "exhausted", True) or True)
    (finding,) = _findings(pack, "toy: {rate: 0.9}\n", "PRF901")
    assert finding.fix is None
    assert "the search ended before it showed" in finding.unfixed


def test_why_there_is_no_fix(pack) -> None:
    # 4 + 63 + 8 GiB: a ninth of the micro-batch would be too few sequences, the host has no room.
    text = "toy: {rate: 0.1, micro: 63, host_gb: 4}\n"
    (finding,) = _findings(pack, text, "PRF901", "PRF903", "PRF910")
    assert finding.fix is None
    assert "toy.micro 9" in finding.unfixed
    assert "PRF910 (many) would break" in finding.unfixed


def test_a_rule_that_is_not_reported_is_not_broken_either(pack) -> None:
    text = "toy: {rate: 0.6, micro: 4, host_gb: 4}\n"
    run = Run(pack, selected=lambda code: code == "PRF901", guarded=lambda code: code == "PRF903")
    fixed = repair(run, read_text(text, "c.yaml"), unsafe=True, least="warning", notes=False).text
    assert "offload" not in fixed  # PRF903: the host has no room
    careless = Run(pack, selected=lambda code: code == "PRF901")
    fixed = repair(careless, read_text(text, "c.yaml"), unsafe=True, least="warning", notes=False).text
    assert "offload: true" in fixed


def test_moves_to_unknown_numbers_are_compared() -> None:
    between = Interval(1, 8)
    option = Option("x", 1, False, {"x": 2, "y": between}, [], 1.0, "none", [])
    assert option.says(option.facts)
    assert not option.says({"x": 2, "y": Interval(1, 8)})  # either may be any of them
    assert not option.says({"x": 3, "y": between})
    assert distinct([option, replace(option, facts={"x": 2, "y": Interval(2, 4)})]) == ()


def test_a_fix_says_what_stops_the_job_all_the_same() -> None:
    lost = "rule PRF921 lost error { gpu.count == 9 }\n"
    rules = lost + "rule PRF922 mended error { gradient_checkpointing == full }"
    text = AREAL.replace("BACKEND", "fsdp:d1")
    found = _findings(load({"mine.rules": rules}), text, "PRF921", "PRF922", gpus=("a40",))
    told = {each.code: each for each in found}
    assert told["PRF921"].fix is None
    assert told["PRF922"].fix.effect.startswith("alone it does not let the job run: PRF921 (lost) has no fix")


def test_what_one_search_worked_out_serves_the_next(monkeypatch) -> None:
    made: Counter[tuple[object, ...]] = Counter()
    read: Counter[tuple[object, ...]] = Counter()
    option, progress = Options._option, search.Search._read

    def counted_option(self, track, i):
        if track.knob.domain in OF_ITSELF:
            made[self.judged, track.knob.name, str(track.values[i])] += 1
        return option(self, track, i)

    def counted_read(self, facts):
        read[self.lenient, tuple(self.goals), str(sorted(facts.items()))] += 1
        return progress(self, facts)

    monkeypatch.setattr(Options, "_option", counted_option)
    monkeypatch.setattr(search.Search, "_read", counted_read)
    run = Run(load({}), [parse_target("a40")])
    path = Path(__file__).parents[1] / "examples" / "grpo_one_gpu.yaml"
    judgements = run.judged(run.subjects(read_text(path.read_text(), path.name), judge_broken=True)[0])
    attach(run, judgements, list(run.findings(judgements)))
    assert sum(made.values()) == len(made) > 1
    assert sum(read.values()) == len(read) > 1
