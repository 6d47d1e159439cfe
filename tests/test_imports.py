"""A clean run stays light, and one module opens files. (``lint-imports`` checks which way imports run.)"""

import ast
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

# What touches the disk: functions of `os` and `os.path`, and modules that open files by themselves.
DISK = {
    *("open", "fdopen", "stat", "lstat", "fstat", "access", "walk", "scandir", "listdir", "exists"),
    *("lexists", "isfile", "isdir", "islink", "ismount", "getsize", "getmtime", "samefile", "realpath"),
    *("readlink", "replace", "rename", "unlink", "remove", "rmdir", "mkdir", "makedirs", "link", "symlink"),
}
OPENERS = {"pathlib", "shutil", "tempfile", "glob", "fileinput", "linecache", "mmap", "importlib.resources"}
SYSTEM = {"os", "os.path", "io"}
PATH_METHODS = {"read_text", "read_bytes", "write_text", "write_bytes"}


def disk_uses(path):
    """Yield the lines of a module that open, list, ask of or write a file by themselves."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name("open")):
                yield node.lineno
            case ast.Attribute(value=owner, attr=name):
                of = ast.unparse(owner)
                if (name in DISK and of in SYSTEM) or (name in PATH_METHODS and of != "files"):
                    yield node.lineno
            case ast.ImportFrom(module=module, names=names):
                if module in OPENERS or (module in SYSTEM and {n.name for n in names} & DISK):
                    yield node.lineno
            case ast.Import(names=names) if {n.name for n in names} & OPENERS:
                yield node.lineno


def test_one_module_opens_files():
    package = ROOT / "linter" / "cfglint"
    uses = {path.relative_to(package).as_posix(): list(disk_uses(path)) for path in package.rglob("*.py")}
    assert len(uses.pop("files.py")) > 20  # the test sees what it looks for
    assert len(uses.pop("replacing.py")) > 10  # which only files.py imports
    assert {path: lines for path, lines in uses.items() if lines} == {}


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
        ["--gpu", "a40:2", "--gpu", "l40s:8", "--set", "seed=2"],
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
        "cfglint.document.json",
        "cfglint.document.toml",
    )
    assert not {name for name in loaded if name.startswith(others)}


def test_importing_cfglint_is_nearly_free():
    code = "import sys; before = set(sys.modules); import cfglint; print(sorted(set(sys.modules) - before))"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "linter")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    added = set(json.loads(done.stdout.replace("'", '"')))
    own = {"cfglint", "cfglint.about", "cfglint.cache", "cfglint.errors", "cfglint.files"}
    assert added <= {"__future__", "marshal", "zlib", *own}


def test_one_version():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    about = "linter/cfglint/about.py"
    assert f'[tool.hatch.version]\npath = "{about}"\n' in project
    assert f'\nVERSION = "{cfglint.__version__}"\n' in (ROOT / about).read_text(encoding="utf-8")
