"""Who starts a config that no script names: those that are given others of its folder."""

from __future__ import annotations

from cfglint.document.launched import started_with


class _Project:
    def __init__(self, *scripts: tuple[str, str]) -> None:
        self._scripts = scripts

    def programs(self, _path: str) -> tuple[tuple[str, str], ...]:
        """Return the scripts of the project."""
        return self._scripts


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
