"""``fix`` writes in the repository alone, and never over what it has not read."""

import os

import pytest

from cfglint import files
from cfglint.errors import UsageError

AREAL = """\
allocation_mode: sglang.d1p1t1+d1p1t1
cluster: {n_nodes: 1, n_gpus_per_node: 1}
actor: {path: Qwen/Qwen2.5-0.5B-Instruct}
sglang: {mem_fraction_static: 0.8}
"""
FIX = ["--gpu", "a40", "--select", "CLI", "--rule", "gpu.vram<48 -> mem_fraction<=0.5"]


def test_the_config_has_a_fix(strange):
    strange.write({"train.yaml": AREAL})
    strange.run("fix", "train.yaml", *FIX)
    assert "0.5" in (strange.repo / "train.yaml").read_text()


@pytest.mark.parametrize("words", [["."], ["link.yaml"], ["conf/train.yaml"]])
def test_no_link_out_of_the_tree_is_followed(strange, words):
    path = strange.home / "train.yaml"
    path.write_text(AREAL)
    (strange.repo / "link.yaml").symlink_to(path)
    (strange.repo / "conf").symlink_to(strange.home)
    strange.run("fix", *words, *FIX)
    assert path.read_text() == AREAL


@pytest.mark.parametrize("sign", [".git", "pyproject.toml"])
def test_no_link_to_another_repository_is_followed(strange, sign):
    path = strange.home / "other" / "train.yaml"
    (path.parent / sign).mkdir(parents=True)
    path.write_text(AREAL)
    (strange.repo / "conf").symlink_to(path.parent)
    for word in (".", "conf", "conf/train.yaml"):
        strange.run("fix", word, *FIX)
    assert path.read_text() == AREAL
    strange.run("fix", "conf", *FIX, "--allow-outside")
    assert path.read_text() != AREAL


@pytest.mark.parametrize("flag", ["--output", "--output-file"])
def test_an_output_that_is_a_link(strange, flag):
    path = strange.home / "profile"
    path.write_text("mine")
    strange.write({"train.yaml": AREAL})
    (strange.repo / "out").symlink_to(path)
    assert strange.run("fix", "train.yaml", *FIX, flag, "out").returncode == 2
    assert path.read_text() == "mine"


def test_init_follows_no_link(strange):
    (strange.repo / ".github").symlink_to(strange.home)
    (strange.repo / "cfglint.toml").symlink_to(strange.home / "new.toml")
    strange.run("init")
    assert list(strange.home.iterdir()) == []


def test_a_link_in_the_tree_stays_a_link(strange):
    strange.write({"train.yaml": AREAL})
    (strange.repo / "link.yaml").symlink_to("train.yaml")
    strange.run("fix", "link.yaml", *FIX)
    assert (strange.repo / "link.yaml").is_symlink()
    assert "0.5" in (strange.repo / "train.yaml").read_text()


def test_a_change_since_it_was_read_stays(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(b"new")
    with pytest.raises(UsageError, match="changed by somebody else"):
        files.write(str(path), b"fixed", over=b"old")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.yaml"]
    files.write(str(path), b"fixed", over=b"new")
    assert path.read_bytes() == b"fixed"


@pytest.mark.parametrize("jobs", [[], ["--jobs", "2"]])
def test_no_module_of_the_working_folder_is_imported(strange, jobs):
    for name in (
        "yaml",
        "tomllib",
        "lark",
        "rich",
        "tree_sitter",
        "difflib",
        "multiprocessing",
        "concurrent",
    ):
        strange.write({f"{name}.py": "open('ran', 'w').write('x')\nraise SystemExit(9)\n"})
    strange.write({"train.yaml": AREAL, "b.yaml": "a: [", "run.sh": "trl sft --output_dir x\n"})
    strange.apart("check", ".", *FIX, *jobs)
    assert not (strange.repo / "ran").exists()


def test_init_puts_no_name_into_a_command(strange):
    for name in ("a; touch pwned #", "x\n      - run: touch pwned", "$(touch pwned)", "--settings=x"):
        strange.write({f"{name}/train.yaml": AREAL})
    strange.run("init", "--no-detect")
    workflow = (strange.repo / ".github" / "workflows" / "cfglint.yml").read_text()
    assert "pwned" not in workflow
    assert "--settings" not in workflow


def test_init_does_not_look_through_a_link(strange):
    (strange.home / "x.yaml").write_text("cfglint")
    (strange.repo / ".pre-commit-config.yaml").symlink_to(strange.home / "x.yaml")
    done = strange.run("init", "--no-detect")
    assert "exists" not in done.stdout.split("pre-commit")[0]
    assert done.returncode == 2


def test_nothing_is_written_for_git(strange):
    (strange.repo / ".git" / "hooks").mkdir()
    (strange.repo / ".github").symlink_to(".git/hooks")
    strange.run("init", "--no-detect")
    assert list((strange.repo / ".git" / "hooks").iterdir()) == []


def test_a_link_in_a_folder_is_not_fixed_through(strange):
    strange.write({"other/train.yaml": AREAL, "conf/x.txt": ""})
    (strange.repo / "conf" / "train.yaml").symlink_to("../other/train.yaml")
    strange.run("fix", "conf", *FIX)
    assert (strange.repo / "other" / "train.yaml").read_text() == AREAL


def test_a_link_that_is_named_in_an_archive(strange):
    (strange.repo / ".git" / "HEAD").unlink()
    (strange.repo / ".git").rmdir()
    path = strange.home / "train.yaml"
    path.write_text(AREAL)
    (strange.repo / "train.yaml").symlink_to(path)
    for where, name in (
        (strange.home, "../repo/train.yaml"),
        (strange.repo, "train.yaml"),
        ("/", "train.yaml"),
    ):
        done = strange.run("fix", strange.repo / "train.yaml" if where == "/" else name, *FIX, where=where)
        assert done.returncode == 2
    assert path.read_text() == AREAL
