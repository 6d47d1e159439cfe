"""Who starts a config that no script names: those that are given others of its folder."""

from __future__ import annotations

import pytest

from cfglint.cli import main
from cfglint.document import launched
from cfglint.document.launched import decided_by, started_with, trained_with


class _Project:
    def __init__(self, *scripts: tuple[str, str]) -> None:
        self._scripts = scripts

    def programs(self, _path: str) -> tuple[tuple[str, str], ...]:
        """Return the scripts of the project."""
        return tuple(each for each in self._scripts if not each[0].endswith(".yaml"))

    def told(self, _path: str, endings: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """Return the files of the project that have one of some endings."""
        return tuple(each for each in self._scripts if each[0].endswith(endings))


def test_the_launchers_of_a_folder_count_where_none_names_the_file():
    script = "torchrun --nproc_per_node=1 train.py --deepspeed_config ./config/sub/other.json\n"
    project = _Project(("/job/run.sh", script))
    assert started_with(project, "/job/config/ours.json") == [1]
    assert started_with(project, "/job/elsewhere/ours.json") == []


def test_who_names_the_file_goes_before_the_others_of_its_folder():
    named = "torchrun --nproc_per_node=4 train.py --deepspeed_config config/ours.json\n"
    other = "torchrun --nproc_per_node=1 train.py --deepspeed_config config/other.json\n"
    project = _Project(("/job/run.sh", named), ("/job/other.sh", other))
    assert started_with(project, "/job/config/ours.json") == [4]


def test_accelerates_file_starts_the_one_that_it_names():
    names = "deepspeed_config:\n  deepspeed_config_file: config/ours.json\nnum_processes: 2\n"
    project = _Project(
        ("/job/config/ours.yaml", names), ("/job/config/other.yaml", names.replace("ours", "other"))
    )
    assert started_with(project, "/job/config/ours.json") == [2]
    script = "accelerate launch --num_processes 4 --config_file config/ours.yaml train.py\n"
    project = _Project(("/job/config/ours.yaml", names), ("/job/run.sh", script))
    assert started_with(project, "/job/config/ours.json") == [2, 4]


def test_a_config_that_names_the_file_starts_as_many_as_its_commands():
    names = "training:\n  per_device_train_batch_size: 2\n  deepspeed: config/ours.json\n"
    script = "deepspeed --num_gpus=3 tune.py --config config/sft.yaml\n"
    project = _Project(("/job/config/sft.yaml", names), ("/job/run.sh", script))
    assert started_with(project, "/job/config/ours.json") == [3]
    assert started_with(project, "/job/config/other.json") == []


_ENGINE = "import deepspeed\nengine, *_ = deepspeed.initialize(model=model, config='ours.json')\n"
_TRAINER = "from transformers import Trainer\ntrainer = Trainer(model, args)\n"


@pytest.mark.parametrize(
    ("program", "extra", "told"),
    [
        (_ENGINE, "", "change the sizes here and in what loads the samples (tune.py)"),
        (_ENGINE, '"gradient_clipping": "auto",', "auto"),
        (_TRAINER, "", "auto"),
    ],
)
def test_sizes_of_the_file_alone_are_no_fix(tmp_path, monkeypatch, capsys, program, extra, told):
    (tmp_path / ".git").mkdir()
    (tmp_path / "tune.py").write_text(program)
    (tmp_path / "ours.json").write_text(
        f'{{{extra}"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2,\n'
        '"bf16": {"enabled": true}, "gradient_accumulation_steps": 2}\n'
    )
    monkeypatch.chdir(tmp_path)
    main(["check", "ours.json", "--gpu", "l40s:4", "--no-detect", "--verbose"])
    shown = " ".join(capsys.readouterr().out.split())
    assert told in shown
    assert "fix (safe)" not in shown
    assert ("fix (" in shown) == (told == "auto")


def test_trainers_that_are_given_the_file_tell_what_a_process_takes():
    program = "from transformers import TrainingArguments\nargs = TrainingArguments(\n    output_dir='o',\n"
    sized = f"{program}    deepspeed='conf/ours.json', per_device_train_batch_size=4{{}})\n"
    project = _Project(
        ("/job/one.py", sized.format(", gradient_accumulation_steps=3")),
        ("/job/two.py", sized.format("")),
        ("/job/three.py", sized.format(", gradient_accumulation_steps=steps")),
        ("/job/four.py", sized.format("").replace("ours", "other") + "# not ours.json\n"),
    )
    assert trained_with(project, "/job/conf/ours.json") == [4, 12]


_OURS = "accelerate launch --config_file configs/ours.yaml --num_processes $N train.py\n"
_BARE = _OURS.replace("--num_processes $N ", "")


@pytest.mark.parametrize(
    ("others", "decided"),
    [
        ([], ["num_processes"]),
        ([("/job/two.sh", f"FILE=ours.yaml\n{_OURS.replace('ours.yaml', '$FILE')}")], ["num_processes"]),
        ([("/job/two.sh", f"# {_BARE}")], ["num_processes"]),
        ([("/job/two.sh", _BARE.replace("configs/ours", "other/ours"))], ["num_processes"]),
        ([("/job/README.md", f"With ours.yaml:\n\n```bash\n$ {_OURS}```\n")], ["num_processes"]),
        ([("/job/README.md", f"With ours.yaml:\n\n```bash\n$ {_BARE}```\n")], []),
        ([("/job/two.sh", _BARE)], []),
        ([("/job/two.sh", _BARE.replace("configs", "$FOLDER"))], []),
        ([("/job/two.sh", "bash start.sh configs/ours.yaml\n")], []),
        ([("/job/two.py", "run(['accelerate', 'launch', '--config_file', 'configs/ours.yaml'])\n")], []),
    ],
)
def test_what_each_command_that_is_given_the_file_sets_itself(others, decided):
    project = _Project(("/job/run.sh", _OURS), *others)
    assert decided_by(project, "/job/configs/ours.yaml") == decided


def test_a_file_that_no_command_is_given_decides_by_itself():
    assert decided_by(_Project(("/job/run.sh", "python train.py\n")), "/job/configs/ours.yaml") == []


def test_a_search_for_a_fix_reads_the_commands_of_a_project_once(tmp_path, monkeypatch, capsys):
    (tmp_path / ".git").mkdir()
    (tmp_path / "run.sh").write_text("accelerate launch --config_file ours.yaml train.py\n")
    sizes = "".join(f"  parallelism_config_{each}_size: 2\n" for each in ("dp_shard", "sp"))
    (tmp_path / "ours.yaml").write_text(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nmixed_precision: bf16\n"
        f"num_machines: 1\nnum_processes: 4\ndeepspeed_config:\n  zero_stage: 3\nparallelism_config:\n{sizes}"
    )
    asked = []
    monkeypatch.setattr(launched, "decided_by", lambda project, path: asked.append(path) or [])
    assert main(["check", str(tmp_path / "ours.yaml"), "--gpu", "l40s:2"]) == 1
    assert len(asked) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "set num_processes to 2 and parallelism_config.parallelism_config_dp_shard_size to 1" in told


def test_a_config_that_a_script_names_where_the_project_lay_elsewhere():
    given = "accelerate launch --config_file /home/me/repo/config/ours.yaml --num_processes 4 train.py\n"
    assert decided_by(_Project(("/job/run.sh", given)), "/job/config/ours.yaml") == ["num_processes"]
    other = given.replace("config/ours", "other/ours")
    assert decided_by(_Project(("/job/run.sh", other)), "/job/config/ours.yaml") == []
