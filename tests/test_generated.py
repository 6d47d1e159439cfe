"""Configs that a program of the project reads by itself, or writes anew: what it does with them decides."""

import pytest

from cfglint.cli import main

ZERO = '{"train_batch_size": 12, "train_micro_batch_size_per_gpu": 6, "gradient_accumulation_steps": 1}\n'
NAMED = 'import json, os\npath = os.path.join(os.getcwd(), "ds.json")\n'
WRITE = "with open(path, mode='w') as writer:\n    json.dump({}, writer)\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    (tmp_path / "conf").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (NAMED + WRITE, False),
        ("import json\nwith open('conf/ds.json', 'w') as writer:\n    json.dump({}, writer)\n", False),
        (NAMED + "with open(path) as reader:\n    json.load(reader)\n", True),
        (NAMED + f"if not os.path.exists(path):\n    {WRITE.replace(chr(10), chr(10) + '    ')}", True),
        (NAMED.replace("os.getcwd()", "args.out") + WRITE, True),  # in a folder of the run's
        (NAMED.replace("ds.json", "other.json") + WRITE, True),
    ],
)
def test_a_file_that_a_program_writes_anew_is_not_edited(project, capsys, program, told):
    (project / "conf" / "ds.json").write_text(ZERO, "utf-8")
    (project / "train.py").write_text(f"import deepspeed\n{program}", "utf-8")
    main(["check", "conf/ds.json", "--no-detect", "--gpu", "a40:8"])
    assert ("BAT162" in capsys.readouterr().out) is told


@pytest.mark.parametrize("asked", ["config['activation_checkpointing']", "config.get('other')"])
def test_a_value_that_the_projects_program_asks_for_is_taken(project, capsys, asked):
    (project / "c.toml").write_text(
        "output_dir = 'x'\ngradient_accumulation_steps = 1\nactivation_checkpointing = 'unsloth'\n", "utf-8"
    )
    (project / "train.py").write_text(f"import transformers\nif {asked} == 'unsloth':\n    pass\n", "utf-8")
    main(["check", "c.toml", "--no-detect"])
    assert ("CFG009" in capsys.readouterr().out) is ("activation" not in asked)
