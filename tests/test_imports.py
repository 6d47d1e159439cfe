"""A clean run stays light. (That imports run one way is checked by ``lint-imports``, in CI.)"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cfglint

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {
    "argparse", "dataclasses", "difflib", "hashlib", "importlib.metadata", "importlib.resources", "json",
    "jsonschema", "lark", "multiprocessing", "pathlib", "pickle", "pynvml", "rich", "subprocess", "tempfile",
    "tomli", "tomllib", "typing", "unicodedata",
}  # fmt: skip

# Without site, whose .pth files import what they like; the parent's own paths stand in for it.
RUN = """
import sys
sys.path[:] = {path!r}
from cfglint.cli import main
status = main({arguments!r})
sys.stdout.flush()
print("\\n" + repr(sorted(sys.modules)), file=sys.stderr)
sys.exit(status)
"""


def modules_of(arguments, folder):
    code = RUN.format(path=[str(ROOT / "linter"), *sys.path], arguments=arguments)
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(eval(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    "flags",
    [
        ["--gpu", "a40:2"],
        ["--gpu", "a40:2", "--gpu", "rtx_4090:8", "--set", "seed=2"],
        ["--gpu", "a40:2", "--rule", "mem_fraction <= 0.9"],
        ["--gpu", "a40:2", "--format", "concise", "--verbose"],
        ["--gpu", "a40:2", "--format", "github"],
    ],
)
def test_a_clean_run_is_light(tmp_path, flags):
    config = str(ROOT / "examples" / "grpo_clean.yaml")
    arguments = ["check", config, "--no-detect", "--select", "CLI,CFG,MEM", *flags]
    if "--set" not in flags:
        arguments.remove("CLI,CFG,MEM")
        arguments.remove("--select")
    modules_of(arguments, tmp_path)  # the first one fills the cache
    loaded = modules_of(arguments, tmp_path)
    assert not HEAVY & loaded
    others = (
        "cfglint.repair",
        "cfglint.lang.parse",
        "cfglint.document.json_tree",
        "cfglint.document.toml_tree",
    )
    assert not {name for name in loaded if name.startswith(others)}


def test_importing_cfglint_is_nearly_free():
    code = "import sys; before = set(sys.modules); import cfglint; print(sorted(set(sys.modules) - before))"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "linter")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    added = set(json.loads(done.stdout.replace("'", '"')))
    assert added <= {"__future__", "cfglint", "cfglint.cache", "marshal", "zlib"}


def test_one_version():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{cfglint.__version__}"\n' in text
