"""The RL Zoo's files for Stable-Baselines3: which are recognised, and each section as a job of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cfglint.api import check_text, fix_text
from cfglint.cli import main
from cfglint.document.reading import read, read_text
from cfglint.engine.run import Run
from cfglint.lang.values import needs_of

if TYPE_CHECKING:
    from cfglint.facts import Values
    from cfglint.findings import Finding
    from cfglint.lang.pack import Pack

SHARED = os.environ.get("CFGLINT_SHARED")
CORPUS = Path(SHARED or ".") / "corpus"
needs_corpus = pytest.mark.skipif(SHARED is None, reason="CFGLINT_SHARED names no folder of real configs")

HEAD = "n_timesteps: !!float 1e6\n  policy: MlpPolicy\n"
PPO = "n_epochs: 10\n"
TWO = f"A-v1: &a\n  {HEAD}  n_envs: 4\n  {PPO}  n_steps: 100\nB-v1:\n  <<: *a\n  n_envs: 16\n"


def _line(text: str, finding: Finding) -> int:
    return text[: finding.place.start].count("\n") + 1


def _values(pack: Pack, text: str, overrides: tuple[str, ...] = ()) -> list[Values]:
    run = Run(pack, framework=None, overrides=overrides)
    subjects = run.subjects(read_text(text, "ppo.yml"), judge_broken=False)
    assert {subject.framework for subject in subjects} == {"sb3"}
    return [run.judged(subject)[0].values for subject in subjects]


# Further keys of a section, the fact, its value; None where nothing tells it.
TOLD = [
    ("", "env_n_envs", 1),
    ("n_envs: 8", "env_n_envs", 8),
    ("", "env_n_steps", None),
    ("n_steps: 32", "env_n_steps", 32),
    ("clip_range: 0.2", "env_n_steps", 2048),
    ("cg_damping: 0.1", "env_n_steps", 2048),
    ("use_rms_prop: true", "env_n_steps", 5),
    ("", "env_minibatch", None),
    ("n_epochs: 4", "env_minibatch", 64),
    ("n_critic_updates: 20", "env_minibatch", 128),
    ("batch_size: 256", "env_minibatch", 256),
    ("batch_size: 256\n  buffer_size: 1000", "env_minibatch", None),
    ("n_epochs: 4", "ppo_epochs", 4),
    ("clip_range: 0.2", "ppo_epochs", 10),
    ("", "ppo_epochs", None),
    ("", "env_total_timesteps", 1e6),
    ("n_epochs: 4", "sb3.normalizes", True),
    ("normalize_advantage: false", "sb3.normalizes", False),
    ("", "dtype", "fp32"),
    ("", "num_gpus", 1),
    ("", "generates", False),
    ("", "env_on_gpu", False),
]


@pytest.mark.parametrize(("keys", "name", "value"), TOLD)
def test_binding(pack: Pack, keys: str, name: str, value: object) -> None:
    (values,) = _values(pack, f"X-v1:\n  {HEAD}  {keys}\n")
    if value is None:
        assert needs_of(values[name])
    else:
        assert values[name] == value


def test_recurrent_ppo_has_defaults_of_its_own(pack: Pack) -> None:
    text = "X-v1:\n  n_timesteps: 100000\n  policy: MlpLstmPolicy\n  n_epochs: 10\n"
    (values,) = _values(pack, text)
    assert (values["env_n_steps"], values["env_minibatch"]) == (128, 128)


def test_a_section_is_a_job(pack: Pack) -> None:
    one, other = _values(pack, TWO)
    assert (one["env_n_envs"], other["env_n_envs"]) == (4, 16)
    assert other["env_n_steps"] == 100  # merged


def test_an_override_holds_in_every_section(pack: Pack) -> None:
    assert [values["env_n_envs"] for values in _values(pack, TWO, ("n_envs=2",))] == [2, 2]


def test_a_definition_that_another_section_reads_is_not_edited() -> None:
    text = TWO.replace("n_steps: 100", "n_steps: 100\n  batch_size: 64")
    fixed, report = fix_text(text, path="ppo.yml", unsafe=True)
    assert fixed == text
    (finding,) = report.findings  # of 400 and 1600 transitions, the 400 are no multiple of 64
    assert finding.code == "BAT243"
    assert finding.fix is None or finding.fix.edits == ()


def test_a_key_is_not_added_where_another_section_merges_it() -> None:
    text = TWO.replace("n_envs: 16", "n_steps: 128")
    fixed, report = fix_text(text, path="ppo.yml", unsafe=True)
    assert fixed == text
    assert [f.code for f in report.findings] == ["BAT243"]


def test_only_the_section_at_fault_is_edited() -> None:
    text = f"A-v1:\n  {HEAD}  {PPO}  n_steps: 100\n  batch_size: 64\nB-v1:\n  {HEAD}  {PPO}  batch_size: 64\n"
    fixed, report = fix_text(text, path="ppo.yml", unsafe=True)
    assert not report.findings
    changed = [
        (a, b) for a, b in zip(text.splitlines(), fixed.splitlines(), strict=False) if a != b and ":" in a
    ]
    assert len(fixed.splitlines()) - len(text.splitlines()) + len(changed) == 1
    assert fixed.partition("B-v1")[2] == text.partition("B-v1")[2]


def test_an_absent_key_is_told_at_its_section() -> None:
    text = f"A-v1:\n  {HEAD}  {PPO}B-v1:\n  {HEAD}  n_steps: 100\n  {PPO}"
    report = check_text(text, path="ppo.yml")
    (finding,) = report.findings
    assert text[finding.place.start : finding.place.end] == "100"


def test_a_key_twice_is_told_once_and_where() -> None:
    text = f"A-v1:\n  {HEAD}B-v1:\n  {HEAD}  n_envs: 1\n  n_envs: 2\nA-v1:\n  {HEAD}"
    report = check_text(text, path="ppo.yml")
    assert sorted((f.code, _line(text, f)) for f in report.findings) == [("CFG003", 8), ("CFG003", 9)]


def test_a_comment_switches_a_file_or_a_line_off() -> None:
    bad = f"A-v1:\n  {HEAD}  {PPO}  n_steps: 100 # note\n"
    assert [f.code for f in check_text(bad, path="p.yml").findings] == ["BAT243"]
    assert not check_text("# cfglint: ignore-file[BAT243]\n" + bad, path="p.yml").findings
    assert not check_text(bad.replace("# note", "# cfglint: ignore[BAT]"), path="p.yml").findings


@pytest.mark.parametrize(
    "text",
    [
        "n_timesteps: 1\npolicy: MlpPolicy\n",
        f"seed: 1\nA-v1:\n  {HEAD}",
        "A:\n  policy: x\nB:\n  n_timesteps: 4\n",
        f"- A-v1:\n    {HEAD.replace('  ', '    ')}",
        "[]\n",
        "",
    ],
)
def test_not_taken(pack: Pack, text: str) -> None:
    subjects = Run(pack).subjects(read_text(text, "c.yaml"), judge_broken=False)
    assert "sb3" not in {subject.framework for subject in subjects}


def test_json_is_taken(pack: Pack) -> None:
    text = '{"A-v1": {"policy": "MlpPolicy", "n_timesteps": 1000, "n_envs": 3}}'
    (subject,) = Run(pack).subjects(read_text(text, "c.json"), judge_broken=False)
    assert subject.framework == "sb3"


@needs_corpus
def test_the_files_of_its_folder_and_no_others(pack: Pack) -> None:
    taken = {}
    for path in sorted(CORPUS.rglob("*")):
        if path.suffix not in (".yaml", ".yml", ".json", ".toml") or path.stat().st_size >= 2**20:
            continue
        subjects = Run(pack).subjects(read(path.read_bytes(), path.name), judge_broken=False)
        if any(subject.framework == "sb3" for subject in subjects):
            taken[path.relative_to(CORPUS)] = len(subjects)
    assert {name.parts[0] for name in taken} == {"sb3_zoo"}
    assert len(taken) == 13
    assert sum(taken.values()) == 283


@needs_corpus
def test_what_the_zoo_says_of_itself(pack: Pack) -> None:
    """No error in files that ran; three environments whose minibatch is larger than their rollout."""
    run = Run(pack)
    for path in sorted((CORPUS / "sb3_zoo").rglob("*.yml")):
        run.add(read(path.read_bytes(), path.name))
    lines = [(f.place.path, _line(run.report.texts[f.place.path], f)) for f in run.report.findings]
    assert {f.code for f in run.report.findings} == {"BAT243"}
    assert lines == [("ppo.yml", 67), ("ppo.yml", 530), ("ppo.yml", 546)]


def test_explain_names_the_section(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ppo.yml"
    path.write_text(f"A-v1:\n  {HEAD}  {PPO}  n_steps: 100\nB-v1:\n  {HEAD}  {PPO}")
    main(["explain", "BAT243", str(path), "--no-detect"])
    told = capsys.readouterr().out.splitlines()
    assert [line.partition(", ")[2] for line in told if line.startswith(str(path))] == [
        "sb3, A-v1",
        "sb3, B-v1",
    ]
    main(["explain", "BAT243", str(path), "--no-detect", "--format", "json"])
    assert '"section": "A-v1"' in capsys.readouterr().out
