"""The hooks as shipped: the real pre-commit, in a scratch repository, installing from this checkout."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
OWN = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0]["hooks"]
RULE = "gpu.vram<48 and colocated -> mem_fraction<=0.5"
ARGS = ["--gpu", "a40", "--rule", RULE, "--select", "CLI"]
OUTER = ("GIT_", "PRE_COMMIT", "PYTHONPATH")  # what a commit that runs these tests has set
ENV = {
    **{k: v for k, v in os.environ.items() if not k.startswith(OUTER)},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def run(folder, *command, status=0, env=()):
    done = subprocess.run(
        command,
        cwd=folder,
        env={**ENV, **dict(env)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """What a user's pre-commit clones: this checkout as it is now, committed."""
    pytest.importorskip("pre_commit")
    folder = tmp_path_factory.mktemp("source") / "cfglint"
    folder.mkdir()
    for name in (
        "linter",
        "rules",
        "schemas",
        "pyproject.toml",
        "build_compiled.py",
        "README.md",
        "LICENSE",
        ".pre-commit-hooks.yaml",
    ):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    for cache in folder.rglob("__pycache__"):
        shutil.rmtree(cache)
    run(folder, "git", "init", "-q")
    run(folder, "git", "add", "-A")
    run(folder, "git", "commit", "-qm", "all")
    return folder, run(folder, "git", "rev-parse", "HEAD").strip()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """pre-commit's own folder, so that the hooks' environment is built once for this module."""
    return {"PRE_COMMIT_HOME": str(tmp_path_factory.mktemp("pre-commit"))}


def repository(folder, source, hook):
    shutil.copy(ROOT / "examples" / "grpo_one_gpu.yaml", folder / "grpo.yaml")
    (folder / "other.yaml").write_text("services: [a, b]\n")
    (folder / "notes.txt").write_text("mem_fraction_static: 0.8\n")
    entry = {"repo": str(source[0]), "rev": source[1], "hooks": [{"id": hook, "args": ARGS}]}
    (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [entry]}))
    run(folder, "git", "init", "-q")
    run(folder, "git", "add", "-A")


def pre_commit(folder, home, status):
    return run(folder, sys.executable, "-m", "pre_commit", "run", "--all-files", status=status, env=home)


def test_what_is_shipped():
    assert {hook["id"] for hook in HOOKS} == {"cfglint-check", "cfglint-fix"}
    for hook in HOOKS:
        assert {"--no-detect", "--skip-unknown"} <= set(hook["entry"].split())


@pytest.mark.long
def test_check_stops_the_commit(tmp_path, source, home):
    repository(tmp_path, source, "cfglint-check")
    before = (tmp_path / "grpo.yaml").read_bytes()
    shown = pre_commit(tmp_path, home, 1)
    assert "cfglint check" in shown
    assert "Failed" in shown
    assert "grpo.yaml:66:24: error CLI001" in shown
    assert "other.yaml" not in shown, "what no framework recognises is skipped"
    assert (tmp_path / "grpo.yaml").read_bytes() == before
    (tmp_path / "grpo.yaml").write_bytes(before.replace(b"static: 0.8", b"static: 0.5"))
    assert "Passed" in pre_commit(tmp_path, home, 0)


@pytest.mark.long
def test_fix_changes_the_file_and_stops_once(tmp_path, source, home):
    repository(tmp_path, source, "cfglint-fix")
    before = (tmp_path / "grpo.yaml").read_bytes()
    shown = pre_commit(tmp_path, home, 1)
    assert "files were modified by this hook" in shown
    assert (tmp_path / "grpo.yaml").read_bytes() == before.replace(b"static: 0.8", b"static: 0.5")
    assert (tmp_path / "notes.txt").read_text() == "mem_fraction_static: 0.8\n"
    run(tmp_path, "git", "add", "-A")
    assert "Passed" in pre_commit(tmp_path, home, 0)


def test_the_projects_own_hooks_exist():
    own = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    for repo in own["repos"]:
        for hook in repo["hooks"]:
            tool = hook["entry"].replace("env PYTHONPATH=linter ", "").split()[0]
            assert tool in ("ruff", "mypy", "lint-imports", "cfglint")


def test_the_project_checks_its_own_examples(cfglint):
    """The shipped hook's command, on every example that is not there to show a mistake."""
    (hook,) = (hook for hook in OWN if hook["id"] == "cfglint-check")
    (shipped,) = (hook for hook in HOOKS if hook["id"] == "cfglint-check")
    assert hook["entry"].startswith(shipped["entry"])
    names = [str(p.relative_to(ROOT)) for p in sorted((ROOT / "examples").rglob("*")) if p.is_file()]
    judged = [n for n in names if re.search(hook["files"], n) and not re.search(hook["exclude"], n)]
    assert len(judged) >= 5
    done = cfglint(*hook["entry"].split()[1:], *(ROOT / name for name in judged))
    assert done.returncode == 0, done.stdout
