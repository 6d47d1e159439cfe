"""How many ranks saved a DeepSpeed checkpoint, by the names of its files, inside of the repository."""

import pytest

from cfglint.boundary import Boundary
from cfglint.models.registry import Checkpoints


def save(folder, ranks, tag="global_step7", prefix="bf16_"):
    step = folder / tag
    step.mkdir(parents=True)
    (folder / "latest").write_text(f"{tag}\n")
    (step / "mp_rank_00_model_states.pt").write_bytes(b"")
    for rank in ranks:
        (step / f"{prefix}zero_pp_rank_{rank}_mp_rank_00_optim_states.pt").write_bytes(b"")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    return root


def ranks(path, base, **how):
    row = Checkpoints(Boundary(**how), (str(base),))(path)
    return None if row is None else row["ranks"]


def test_each_rank_has_a_file(repository):
    save(repository / "out" / "checkpoint-7", range(12))
    save(repository / "old", range(2), prefix="")
    assert ranks("out/checkpoint-7", repository) == 12
    assert ranks("old", repository) == 2
    near = Checkpoints(Boundary(), (str(repository),)).near(str(repository / "out"), str(repository))
    assert near("checkpoint-7") == near("out/checkpoint-7") == {"ranks": 12}


def test_a_part_of_one_tells_nothing(repository):
    save(repository / "torn", (0, 2))
    save(repository / "plain", ())
    assert [ranks(name, repository) for name in ("torn", "plain", "nowhere")] == [None, None, None]
    assert Checkpoints(Boundary(), (str(repository),))(7) is None


def test_what_is_outside_is_not_looked_at(repository, tmp_path):
    save(tmp_path / "theirs", range(4))
    (repository / "link").symlink_to(tmp_path / "theirs")
    (repository / "own").mkdir()
    (repository / "own" / "latest").write_text("../../theirs/global_step7")
    for name in ("../theirs", str(tmp_path / "theirs"), "link", "own"):
        assert ranks(name, repository) is None
    assert ranks("../theirs", repository, everywhere=True) == 4
