"""Who reads a file of a project: processes that its scripts start, and trainers that its programs make."""

from __future__ import annotations

import os
import re

from cfglint.document.project import GUIDES, commands_in
from cfglint.document.reading import read_text
from cfglint.document.shell.processes import below, whole
from cfglint.document.tree import PROGRAMS, SCRIPTS, Mapping, Scalar, Unresolved, child, target, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.project import Project
    from cfglint.document.tree import Document

_ENGINE = re.compile(r"\bdeepspeed\.initialize\(|\bDeepSpeedStrategy\(")  # its own, and Lightning's
_FRAME = re.compile(r"(?m)^[ \t]*(?:```[^\n]*|~~~[^\n]*|[$>] )")  # of a guide's commands
_COMMENTED = re.compile(r"(?m)^#+[ \t]?")
_MOST = 20  # scripts that name one file
_KIND = ".json"  # of the configs that launchers are given
_MICRO, _STEPS = "per_device_train_batch_size", "gradient_accumulation_steps"
_NAMES = "deepspeed_config_file"  # what names DeepSpeed's file in accelerate's
_COUNTS = ("processes", "visible_gpus")
_STARTING = (*SCRIPTS, *GUIDES, *PROGRAMS, ".yaml", ".yml")  # what may start a command with a file
_UNTOLD: frozenset[str] = frozenset()


def started_with(project: Project, path: str) -> list[int]:
    """Return the numbers of processes of the commands that are given the file at ``path``, as far as known.

    Accelerate's files that name it say a number, too, and so do commands that are given one of those, or
    another config that names it. Of a script that names it in comments alone, the commands count that are
    commented out. Where no command is given it, those count that are given files of its kind in its folder.
    """
    own = os.path.abspath(path).replace(os.sep, "/")
    folder = own.rpartition("/")[0]
    scripts = [(where, text) for where, text in project.programs(path) if where.endswith(SCRIPTS)]
    through = dict(_of_configs(project, path, own))
    found = {number for number in through.values() if number is not None}
    for file in (own, *through):
        named = [(where, text) for where, text in scripts if file.rpartition("/")[2] in text]
        found |= {each for where, text in named[:_MOST] for each in _numbers(where, text, file)}
    if not found:
        near = f"{folder.rpartition('/')[2]}/"
        beside = [(where, text) for where, text in scripts if near in text]
        found = {each for where, text in beside[:_MOST] for each in _numbers(where, text, f"{folder}/")}
    return sorted(found)


def composed_by(project: Project, path: str) -> list[str]:
    """Return the configs of the folder above that take the file at ``path`` as a member of a Hydra group."""
    folder, name = os.path.split(os.path.abspath(path))
    above, group = os.path.split(folder)
    named, member = re.escape(group), re.escape(name.rpartition(".")[0])
    start = rf"(?m)^[ \t]*-[ \t]*(?:override[ \t]+)?/?{named}(?:@[\w.]+)?:[ \t]*"
    taken = re.compile(rf"{start}[\"']?{member}[\"']?[ \t]*(?:#|$)")
    found = project.told(path, (".yaml", ".yml"))
    beside = ((where, text) for where, text in found if os.path.dirname(os.path.abspath(where)) == above)
    return [where for where, text in beside if "defaults:" in text and taken.search(text)]


def trained_with(project: Project, path: str) -> list[int]:
    """Return how many sequences a process takes each step, of Trainers whose arguments name the file.

    Those are of commands and programs that give transformers' arguments the file and a size of their own.
    """
    own = os.path.abspath(path).replace(os.sep, "/")
    base = own.rpartition("/")[2]
    named = [(where, text) for where, text in project.programs(path) if base in text and _MICRO in text]
    found = set()
    for where, text in named[:_MOST]:
        for document in read_text(text, where).documents:
            root = document.root
            file = child(root, "deepspeed") if isinstance(root, Mapping) else None
            sizes = [whole(child(root, name)) for name in (_MICRO, _STEPS)] if file is not None else [None]
            if _is_given(document, own) and sizes[0] is not None:
                told = isinstance(root, Mapping) and _STEPS in root.entries
                found.add(sizes[0] * ((sizes[1] or 0) if told else 1))
    return sorted(found - {0})


def steered_by(project: Project, path: str) -> list[str]:
    """Return the programs of the project that start DeepSpeed's engine with a config as it is.

    None of them fills "auto" in, as Hugging Face's Trainer and accelerate do.
    """
    return [os.path.basename(where) for where, text in project.told(path, PROGRAMS) if _ENGINE.search(text)]


def decided_by(project: Project, path: str) -> list[str]:
    """Return the keys of accelerate's file at ``path`` that each command of the project with it sets itself.

    A flag goes before the file's key (accelerate/commands/launch.py:1272-1277). Without a command that is
    given the file, or with one that nobody can read, there are none.
    """
    own = os.path.abspath(path).replace(os.sep, "/")
    base = own.rpartition("/")[2]
    named = [(where, text) for where, text in project.told(path, _STARTING) if base in text]
    decided: frozenset[str] | None = None
    for where, text in named if len(named) <= _MOST else ():
        for flags in _flags_beside(where, text, own):
            decided = flags if decided is None else decided & flags
            if not decided:
                return []
    return sorted(decided or ())


def _flags_beside(where: str, text: str, own: str) -> Iterator[frozenset[str]]:
    """Yield the flags of accelerate's commands that are, or may be, given the file ``own``."""
    base = own.rpartition("/")[2]
    said = _FRAME.sub("", commands_in(where, text)) if where.endswith(GUIDES) else text
    if os.path.abspath(where).replace(os.sep, "/") == own or not _is_live(base, said):
        return
    if where.endswith(PROGRAMS):  # what it starts is not followed
        yield _UNTOLD
        return
    of_others = False
    for document in read_text(said, f"{where}.sh" if where.endswith(GUIDES) else where).documents:
        flags = below(document.root, "launch", "flags")
        file = child(flags, "config_file") if isinstance(flags, Mapping) else None
        if not isinstance(flags, Mapping) or not isinstance(file, Scalar) or base not in file.text:
            continue
        of_others = True
        if isinstance(file, Unresolved) or _is_given(document, own):
            yield frozenset(flags.entries) - {"config_file"}
    if not of_others:
        yield _UNTOLD


def _is_live(base: str, text: str) -> bool:
    """Whether a script names a file outside of its comments."""
    return any(base in line and not line.lstrip().startswith("#") for line in text.splitlines())


def _of_configs(project: Project, path: str, own: str) -> Iterator[tuple[str, int | None]]:
    """Yield the configs that name the DeepSpeed file ``own``, with the processes that accelerate's start."""
    naming = [each for each in project.told(path, (".yaml", ".yml")) if own.rpartition("/")[2] in each[1]]
    for where, text in naming[:_MOST]:
        for document in read_text(text, where).documents:
            if isinstance(document.root, Mapping) and _is_given(document, own):
                number = whole(child(document.root, "num_processes")) if _NAMES in text else None
                yield os.path.abspath(where).replace(os.sep, "/"), number


def _numbers(where: str, text: str, own: str) -> Iterator[int]:
    """Yield the numbers of the commands of a script that are given a file; of a folder, one of its files."""
    base = own.rpartition("/")[2]
    for document in read_text(text if _is_live(base, text) else _COMMENTED.sub("", text), where).documents:
        number = next(filter(None, (whole(below(document.root, "launch", name)) for name in _COUNTS)), None)
        if number is not None and (_is_given(document, own) if base else _is_given_one_of(document, own)):
            yield number


def _is_given(document: Document, own: str) -> bool:
    """Whether a command has a file among its flags: by its path's end, seen from wherever it is started.

    Of a path that begins where the project lay on another machine, the folder and the name tell.
    """
    base = own.rpartition("/")[2]
    nodes = [*walk(document.root), target(below(document.root, "launch", "config"))] if document.root else []
    texts = [node.text for node in nodes if isinstance(node, Scalar)]
    paths = (os.path.normpath(text) for text in texts if text.endswith(base))
    ends = ("/".join(path.split("/")[-2:]) if path.startswith("/") else path.lstrip("./") for path in paths)
    return any(own.endswith(f"/{end}") for end in ends)


def _is_given_one_of(document: Document, folder: str) -> bool:
    """Whether a command has a file of a folder, or of one below it, among its flags."""
    texts = [node.text for node in walk(document.root) if isinstance(node, Scalar)] if document.root else []
    paths = [os.path.normpath(text).lstrip("./") for text in texts if text.endswith(_KIND) and "/" in text]
    heads = {"/".join(path.split("/")[:n]) for path in paths for n in range(1, path.count("/") + 1)}
    return any(folder.endswith(f"/{head}/") for head in heads)
