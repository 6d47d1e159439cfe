"""``cfglint init``: what it writes is valid, it says so, and it never writes over anything."""

import shutil
from pathlib import Path

import pytest
import yaml

from cfglint.boundary import Boundary
from cfglint.command import options
from cfglint.features import init

ROOT = Path(__file__).resolve().parents[1]


def tree(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_fresh_project(cfglint, folder):
    (folder / "configs").mkdir()
    shutil.copy(ROOT / "examples" / "grpo_clean.yaml", folder / "configs")
    done = cfglint("init", "--gpu", "a40:2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1 training config found here\n")
    for name in ("cfglint.toml", ".pre-commit-config.yaml", ".github/workflows/cfglint.yml"):
        assert f"{name}: written" in done.stdout
    assert options.settings_of(str(folder), Boundary()) == {"gpu": ["a40:2"], "fail-on": "error"}
    (hook,) = yaml.safe_load((folder / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert hook["entry"] == "cfglint check --no-detect --skip-unknown"
    workflow = yaml.safe_load((folder / ".github/workflows/cfglint.yml").read_text())
    assert (
        workflow["jobs"]["cfglint"]["steps"][-1]["run"] == "cfglint check configs --no-detect --format github"
    )
    assert cfglint("check", "configs", "--select", "CFG").returncode == 0, "the settings are read"

    before = tree(folder)
    done = cfglint("init", "--gpu", "h100-sxm")
    assert done.returncode == 0
    assert "written" not in done.stdout
    assert done.stdout.count("not changed") == 3
    assert tree(folder) == before


def test_what_is_there_stays(cfglint, folder):
    (folder / ".pre-commit-config.yaml").write_text("repos: []\n")
    (folder / "pyproject.toml").write_text("[tool.cfglint]\nfail-on = 'info'\n")
    done = cfglint("init")
    assert done.returncode == 0
    assert "pyproject.toml: already has settings; not changed" in done.stdout
    assert ".pre-commit-config.yaml: exists, add this to its repos:" in done.stdout
    assert "- id: cfglint-check" in done.stdout
    assert (folder / ".pre-commit-config.yaml").read_text() == "repos: []\n"
    assert not (folder / "cfglint.toml").exists()


def test_no_gpu_is_named(cfglint, folder):
    done = cfglint("init")
    assert "it names no GPU yet" in done.stdout
    assert options.settings_of(str(folder), Boundary()) == {"fail-on": "error"}


@pytest.mark.parametrize(
    ("origin", "install"),
    [
        (None, "cfglint-gpu==0.1.0"),
        ('{"url": "file:///x", "dir_info": {}}', "cfglint-gpu @ git+https://github.com/OWNER/cfglint"),
        (
            '{"url": "https://git.example/c", "vcs_info": {"vcs": "git", "commit_id": "abc"}}',
            "cfglint-gpu @ git+https://git.example/c@abc",
        ),
    ],
)
def test_where_it_is_installed_from(monkeypatch, origin, install):
    from importlib import metadata

    class Installed:
        def read_text(self, name):
            assert name == "direct_url.json"
            return origin

    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())
    assert init._requirement() == install
