"""Packs of one team's own experience: they load, keep their examples, and speak where a team has them on."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.features.test import run_examples
from cfglint.hardware.target import parse_target
from cfglint.lang.pack import Pack, load

PACKS = Path(__file__).parents[1] / "examples" / "packs"
CROWDED = """experiment_name: maths
trial_name: first
allocation_mode: sglang.d1p1t1+d1p1t1
cluster: {n_nodes: 1, n_gpus_per_node: 1}
rollout: {max_concurrent_rollouts: 32, request_retries: 3}
gconfig: {n_samples: 4, max_new_tokens: 512}
actor: {path: /ckpt/policy, mb_spec: {max_tokens_per_mb: 5120}}
sglang: {context_length: 2048, mem_fraction_static: 0.6}
train_dataset: {path: openai/gsm8k, type: rl, batch_size: 8}
"""
SLOW = """cfglint: facts
env_n_envs: 512
env_minibatch: 2048
observed: {fps: 4500}
"""
SAID = {
    "small-gpu-notes": (CROWDED, "a40", ["SGN101", "SGN102", "SGN103", "SGN104", "SGN105"]),
    "gpu-tier-notes": (SLOW, "a100-80gb-sxm", ["GTN101", "GTN102", "GTN104"]),
}


def test_each_pack_is_tried_here() -> None:
    assert {path.parent.name for path in PACKS.glob("*-notes/*.rules")} == set(SAID)


@pytest.mark.parametrize("name", SAID)
def test_its_examples_hold_and_its_codes_are_its_own(name: str) -> None:
    path = PACKS / name / f"{name}.rules"
    text = path.read_text()
    codes = set(re.findall(r"^\s*rule (\S+)", text, re.MULTILINE))
    assert codes
    assert f"\npack {name} v" in text
    shipped = {rule.code for rule in load().rules}
    assert not {code[:3] for code in codes} & {code[:3] for code in shipped}
    outcomes = run_examples(load({str(path): text}), codes)
    assert {outcome.code for outcome in outcomes} == codes
    assert [outcome for outcome in outcomes if outcome.expected != outcome.result] == []


@pytest.mark.parametrize("name", SAID)
def test_it_speaks_where_it_is_switched_on(cfglint, folder: Path, name: str) -> None:
    config, gpu, expected = SAID[name]
    (folder / "job.yaml").write_text(config)
    pack = PACKS / name / f"{name}.rules"

    def said(*flags: object) -> list[str]:
        done = cfglint("check", "job.yaml", "--gpu", gpu, "--format", "concise", *flags)
        assert done.stderr == ""
        return sorted(re.findall(r"\b(?:SGN|GTN)\d+", done.stdout))

    assert said() == []
    assert said("--rules", pack) == said("--rules", pack.parent) == expected
    shutil.copy(pack, folder)
    (folder / "cfglint.toml").write_text(f"rules = ['{pack.name}']\n")
    assert said() == expected


@pytest.fixture(scope="module")
def tiers() -> Pack:
    path = PACKS / "gpu-tier-notes" / "gpu-tier-notes.rules"
    return load({str(path): path.read_text()})


# By capability and memory: name, tier.
TIERS = [
    ("h100-sxm", 4), ("h200", 4), ("b200", 4), ("a100-80gb-pcie", 4), ("a100-40gb-sxm", 3), ("rtx-4090", 3),
    ("rtx-5090", 3), ("a40", 3), ("rtx-3090", 2), ("rtx-4080", 1), ("t4", 1), ("v100-32gb", 1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "tier"), TIERS)
def test_tier(tiers: Pack, name: str, tier: int) -> None:
    run = Run(tiers, [parse_target(name)])
    (subject,) = run.subjects(read_text("cfglint: facts\nenv_n_envs: 8\n", "c.yaml"), judge_broken=False)
    assert run.judged(subject)[0].values["notes.tier"] == tier
