"""``cfglint init``: settings, the pre-commit entry and the CI workflow, for what is found in this project."""

from __future__ import annotations

import os
import re

from cfglint import about, files
from cfglint.api import check_file
from cfglint.boundary import Boundary
from cfglint.command import inputs, options, output, parse, setup, switch, texts
from cfglint.document.reading import Library
from cfglint.engine.run import Run
from cfglint.errors import CfglintError, UsageError
from cfglint.lang.pack import load

_PLAIN = r"[A-Za-z0-9_][\w.-]*"
_SETTINGS = """\
# cfglint settings; command-line flags override them.
{gpu}
# Exit with 1 on a finding of this level or a higher one: error, warning, info, never. By default a job whose
# memory is tight, or not judged, passes: "error,tight" and "error,not-judged" make it fail, too.
fail-on = "error"
# ignore = ["RUN"]  # codes or prefixes; `cfglint rules` lists them
# rules = ["rules"]  # your own rule files, relative to this file
"""
_GPU = "gpu = [{names}]  # the GPUs that the configs will run on; `cfglint gpus` lists the names"
_NO_GPU = (
    '# gpu = ["a40", "rtx-4090:8"]  # the GPUs that the configs will run on; `cfglint gpus` lists the names'
)

_HOOK = """\
  - repo: local
    hooks:
      - id: cfglint-check
        name: cfglint check
        entry: cfglint check --no-detect --skip-unknown
        language: python
        additional_dependencies: ["{install}"]
        files: \\.(ya?ml|json|toml)$
"""
_WORKFLOW = """\
name: cfglint
on: [push, pull_request]

jobs:
  cfglint:
    runs-on: ubuntu-latest
    permissions:
      contents: read
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install "{install}"
      - run: cfglint check {paths} --no-detect --format github
"""
_UNKNOWN = about.source()  # installed from a folder, which CI does not have
_MOST_FOLDERS = 8  # beyond, the workflow names the whole project


class InitOptions(options.Options):
    """The flags of ``init``."""

    command = "init"
    about = "Write settings, the pre-commit entry and the CI workflow into this folder. Overwrites nothing."
    offers = ("gpu", "no_detect")

    gpu: list[str] = texts("a GPU that the configs will run on", "NAME[:N[xNODES]]")
    no_detect: bool = switch("never ask this machine's own GPU")


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit status."""
    args = parse(InitOptions, arguments)
    configs = _configs()
    output.tell(f"{len(configs)} training config{'s' * (len(configs) != 1)} found here")
    _write_settings(args)
    install = _requirement()
    hook = _HOOK.format(install=install)
    missing = f"add this to its repos:\n\n{hook}"
    _write(".pre-commit-config.yaml", f"repos:\n{hook}", "cfglint", missing, "pre-commit install")
    workflow = os.path.join(".github", "workflows", "cfglint.yml")
    _write(workflow, _WORKFLOW.format(install=install, paths=_folders(configs)), "", "not changed")
    if install == _UNKNOWN and not about.HOMEPAGE:
        output.tell("replace OWNER by the owner of the repository that you install cfglint from")
    return 0


def _configs() -> list[str]:
    """Return the paths below this folder that a framework recognises."""
    boundary = Boundary(["."])
    run = Run(load(), library=Library(inputs.second, boundary))
    configs = []
    for path, _ in inputs.find(["."], boundary, lambda _: None):
        try:
            file, _ = inputs.load(path, boundary, named=False)
        except (UsageError, inputs.Skipped):
            continue
        if check_file(run, file, explicit=False):
            configs.append(path)
    return configs


def _folders(configs: list[str]) -> str:
    folders = sorted({path.split(os.sep)[0] for path in configs if os.sep in path})
    plain = all(re.fullmatch(_PLAIN, folder) for folder in folders)  # they come into a command of a shell
    if not (folders and plain) or len(folders) > _MOST_FOLDERS or any(os.sep not in path for path in configs):
        return "."
    return " ".join(folders)


def _write_settings(args: InitOptions) -> None:
    try:
        present = options.find_settings(os.getcwd(), Boundary())
    except CfglintError as error:
        output.tell(f"settings: {error}")
        return
    if present is not None:
        output.tell(f"{os.path.relpath(present[0])}: already has settings; not changed")
        return
    targets, notices = setup.targets(args)
    names = ", ".join(f'"{target.name}"' for target in targets)
    _write(
        "cfglint.toml",
        _SETTINGS.format(gpu=_GPU.format(names=names) if targets else _NO_GPU),
        "",
        "not changed",
    )
    for notice in notices:
        output.tell(f"  {notice}")
    if not targets:
        output.tell("  it names no GPU yet: rules that need one cannot be checked")


def _write(path: str, text: str, mark: str, otherwise: str, then: str = "") -> None:
    """Write a new file and say so; one that is there stays (``mark`` in it says that nothing is missing)."""
    Boundary(["."]).check(path)
    if files.is_taken(path):
        try:
            done = mark in files.read_text(path, errors="replace")
        except OSError:
            done = False
        output.tell(f"{path}: exists, {'not changed' if done else otherwise}")
        return
    if os.path.dirname(path):
        files.make_folder(os.path.dirname(path))
    files.write(path, text.encode(), new=True)
    output.tell(f"{path}: written{f'; enable it with: {then}' if then else ''}")


def _requirement() -> str:
    """Return what pip installs this very cfglint from: the repository it came from, else the release."""
    import json

    try:
        text = files.shipped_from()
    except ModuleNotFoundError:
        return _UNKNOWN
    if text is None:
        return f"{about.DISTRIBUTION}=={about.VERSION}"
    origin = json.loads(text)
    vcs = origin.get("vcs_info")
    return (
        _UNKNOWN if vcs is None else f"{about.DISTRIBUTION} @ {vcs['vcs']}+{origin['url']}@{vcs['commit_id']}"
    )
