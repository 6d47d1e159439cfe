"""Which program of a project has a Hydra config for its defaults, to be overridden where it is launched."""

from __future__ import annotations

import os
import re

from cfglint.document.tree import SCRIPTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.project import Project

_GUIDES = (".md", ".rst")
_MAIN = re.compile(r"(?m)^@hydra\.main\(([^)]{0,300})\)")
_NAMED = r"""\bconfig_{}[ ]*=[ ]*["']([^"'\n]*)["']"""
_OVERRIDE = re.compile(r"(?<![\w./-])[+~]{0,2}[a-z]\w*(?:\.\w+)+=")
_CHOSEN = re.compile(r"""--config-name[= ]["']?([\w./-]+)""")
_PLACEHOLDER = re.compile(r"""(?m)^(?!#).*\b(?:\w+_)?(?:path|pretrain):[ ]*["']?~/""")
_LONGEST = 10_000  # characters of a command
_FEWEST = 3  # overrides that make a job of a program's defaults


def base_of(project: Project, path: str) -> str:
    """Return the module that has the file at ``path`` for its defaults; empty where none has.

    It is part of a package that lies around the file, and ``@hydra.main`` names the file, or a command does;
    and a script or a guide of the project starts it with overrides. So is another file beside its config
    that no command names, where a home folder stands for the model. A script of one's own with its config
    is a job, unless its model is such a placeholder.
    """
    if path not in project.based:
        project.based[path] = _base_of(project, os.path.abspath(path))
    return project.based[path]


def _base_of(project: Project, own: str) -> str:
    stem = os.path.splitext(os.path.basename(own))[0]
    programs = sorted(_programs(project, os.path.dirname(own)), key=lambda found: found[1] != stem)
    spare = _PLACEHOLDER.search(project.text(own)) is not None
    most, module = 0, ""
    for program, named in programs:
        inside = project.has(os.path.join(os.path.dirname(program), "__init__.py"))
        started = _started(project, program, named) if inside or spare else {}
        if started.get(stem, 0) > most:
            most, module = started[stem], _module(project, program)
        elif not module and inside and spare and stem not in started and any(started.values()):
            module = _module(project, program).rpartition(".")[0]
    return module


def _programs(project: Project, folder: str) -> Iterator[tuple[str, str]]:
    """Yield the programs above a folder that have their config in it, and the name of that."""
    for program, text in project.above(folder):
        for found in _MAIN.finditer(text) if "@hydra.main" in text else ():
            at, name = (re.search(_NAMED.format(word), found[1]) for word in ("path", "name"))
            if at and name and os.path.normpath(os.path.join(os.path.dirname(program), at[1])) == folder:
                yield program, os.path.splitext(name[1])[0]


def _started(project: Project, program: str, named: str) -> dict[str, int]:
    """Return how often scripts and guides of a project start a program with a config and overrides of it."""
    folder, base = os.path.split(os.path.splitext(program)[0])
    parent, name = re.escape(os.path.basename(folder)), re.escape(base)
    start = re.compile(rf"\b{parent}[./]{name}\b|(?<![\w/.-]){name}\.py\b")
    configs: dict[str, int] = {}
    for _, text in project.told(program, (*SCRIPTS, *_GUIDES)):
        for found in start.finditer(text) if base in text else ():
            command = re.split(r"(?<!\\)\n", text[found.end() : found.end() + _LONGEST], maxsplit=1)[0]
            chosen = _CHOSEN.search(command)
            config = named if chosen is None else os.path.splitext(os.path.basename(chosen[1]))[0]
            many = len(_OVERRIDE.findall(command)) >= _FEWEST
            configs[config] = configs.get(config, 0) + many
    return configs


def _module(project: Project, program: str) -> str:
    """Return what ``python -m`` calls a program, seen from above the package that it is in."""
    folder, base = os.path.split(os.path.splitext(program)[0])
    parts = [base]
    while project.has(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    return ".".join(parts)
