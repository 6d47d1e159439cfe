"""Whether a file that a command names, or its program, is surely not there when the command runs.

That is so where the command's program is in the repository, the file is nowhere that the program could be
started from, and nothing in the repository may put it there. A program is missed only where others lie.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase

from cfglint.document.shell.processes import below, text_at
from cfglint.document.tree import Scalar, Unresolved, target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.reading import Library
    from cfglint.document.tree import Document

_PLAIN = re.compile(r"(?:\.?[\w-][\w.+-]*/|\./|\.\./)*[\w-][\w.+-]*\Z")  # a path without anything to put in
_BLANK = re.compile(r"(?i)(?:^|[/_-])(?:path|your|my|xxx+|example|foo)(?:[/_-]|$)|^x+\.|path[/_]to")
_BRINGS = (
    r"tee|cp|mv|ln|wget|curl|rsync|scp|install|unzip|tar|git[ ]clone|envsubst|sed|hf|huggingface-cli"
    r"|gsutil|aws"
)
_PUTS = rf"(?:>|\b(?:{_BRINGS}|jq|yq|python3?)\b)"
_PUTS_PROGRAM = rf"(?:>|\b(?:{_BRINGS})\b)"
# What may run a command in another checkout, or bring one.
_AWAY = re.compile(
    r"\b(?:docker|podman|enroot|apptainer|singularity|container\w*|pushd|kubectl|ray job|ssh|pdsh|mpirun)\b"
    r"|\bgit (?:clone|submodule|checkout|apply)\b|\bpatch\b"
)
# A redirection to a config, or to a variable that is called after one.
_WRITES = re.compile(
    r"(?i)(?:>|\btee\b)[ \t]*[\"']?(?:[^\s\"'|;&>]*\.(?:json|ya?ml)\b|\$\{?\w*(?:conf|json|yaml|ds_))"
)
_LINES = re.compile(r"\\\r?\n")


def is_absent(document: Document, library: Library, name: str) -> bool:
    """Whether a file that a command names, and that was not found, is not where the command runs."""
    script = document.file
    if document.program is None or document.elsewhere or script.format != "shell" or document.listed:
        return False
    if not _PLAIN.match(name) or _BLANK.search(name) or not _is_here(document.folder, script.path, library):
        return False
    top = library.root(os.path.dirname(script.path))
    base = os.path.basename(name)
    if top is None or base not in script.text or _puts(script.text, base) or _WRITES.search(script.text):
        return False  # a name that a script puts together is often that of a file that it writes
    return not (_is_kept_out(name, top, library) or _is_put(name, script.path, library))


def lost_program(document: Document, library: Library) -> Scalar | None:
    """Return the name of a command's program that is not in its folder of the repository, where others are.

    A copy of the configs alone has no programs at all.
    """
    script, node = document.file, target(below(document.root, "launch", "program"))
    if document.program is not None or document.elsewhere or document.listed or script.format != "shell":
        return None
    if not isinstance(node, Scalar) or isinstance(node, Unresolved) or _AWAY.search(script.text):
        return None
    folder, base = os.path.split(node.text)
    plain = base.endswith(".py") and _PLAIN.match(node.text) and not _BLANK.search(node.text)
    if (
        not (plain and folder)
        or base not in script.text
        or text_at(document.root, "launch", "module") == "true"
    ):
        return None
    top, project = library.root(os.path.dirname(script.path)), library.project
    there = _is_here(os.path.join(document.folder, folder), script.path, library)
    if not there or top is None or project is None or _is_kept_out(node.text, top, library):
        return None
    end, others = os.sep + os.path.normpath(node.text), False
    for path, text in project.programs(script.path):
        others = others or (path.endswith(".py") and os.path.dirname(path).endswith(os.path.dirname(end)))
        if path.endswith(end) or (not path.endswith(".py") and _puts(text, base, _PUTS_PROGRAM)):
            return None
    return node if others and not _puts(script.text, base, _PUTS_PROGRAM) else None


def _is_here(folder: str, path: str, library: Library) -> bool:
    """Whether the folder that a script goes to is in the repository."""
    if folder in ("", "."):
        return True
    around = (os.path.normpath(each) for each in library.around(path, folder))
    return any(os.path.basename(each) in library.folders(os.path.dirname(each) or ".") for each in around)


def _puts(text: str, name: str, by: str = _PUTS) -> bool:
    """Whether a script may write a file: a line that could, names it or a variable that does."""
    text = _LINES.sub(" ", text)
    held = re.findall(rf"(?m)^\s*(?:export\s+|local\s+)?(\w+)=[^\n]*{re.escape(name)}", text)
    spelled = "|".join([re.escape(name), *(rf"\$\{{?{variable}\b" for variable in held)])
    return any(
        re.search(rf"{by}[^\n]*?(?:{spelled})", part) and not re.search(r"--\w+[= ]\S*$", part)
        for line in text.split("\n")
        for part in re.findall(rf"^.*?(?:{spelled})", line)
    )


def _is_put(name: str, path: str, library: Library) -> bool:
    """Whether another program or script of the repository may write a file: it names it."""
    project, base = library.project, os.path.basename(name)
    return project is None or any(
        base in text and (each.endswith(".py") or _puts(text, base)) for each, text in project.programs(path)
    )


def _is_kept_out(name: str, top: str, library: Library) -> bool:
    """Whether a file is not kept in the repository, or may be in a submodule."""
    base = os.path.basename(name)
    for line in _lines(top, ".gitignore", library):
        pattern = line.strip("/")
        if pattern and (fnmatchcase(base, pattern) or f"/{pattern}/" in f"/{name}/"):
            return True
    modules = (line.partition("=") for line in _lines(top, ".gitmodules", library))
    parts = os.path.normpath(name).split(os.sep)
    return any(key.strip() == "path" and where.strip().split("/")[-1] in parts for key, _, where in modules)


def _lines(top: str, name: str, library: Library) -> list[str]:
    data = library.read(os.path.join(top, name))
    return [] if data is None else [line.strip() for line in data.decode("utf-8", "replace").split("\n")]
