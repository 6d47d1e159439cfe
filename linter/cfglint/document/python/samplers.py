"""Whether a program draws its samples in groups whose size goes with the passes, or with the processes.

Groma's trainer has each group from one data set (FoundationVision/Groma groma/train/groma_trainer.py:67-74),
as large as a process's passes: with fewer processes of more passes, a step has fewer data sets in it. LLaVA's
groups by length are of all processes' passes (haotian-liu/LLaVA llava/train/llava_trainer.py:138-150): they
stay. MobileLLM deals lines to eight processes, whatever their number is (facebookresearch/MobileLLM
pretrain.py:200).
"""

from __future__ import annotations

import ast
import re

from cfglint.budget import spend
from cfglint.document.python.source import PYTHON
from cfglint.record import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.python.modules import Modules
    from cfglint.document.tree import File

PASSES, PROCESSES, FIXED = "passes", "processes", "fixed"
_CHARACTERS = 200  # that cost a step
_SAMPLER = re.compile(r"\w*Sampler\Z")
_SORTS = re.compile(r"(?i)group|length|sort|bucket")
_ASKS = re.compile(r"accum\w*|world_size|num_processes")
_RANK = re.compile(r"\brank\b|get_rank\(")  # of a sampler that gives each process its part
_BATCH = re.compile(r"batch_size")
_DEALT = re.compile(
    r"(?m)^(?![ \t]*(?:#|def )).*\b(?:world_size|num_replicas|num_shards)=(?!1\b)\d+[ \t]*[,)\n]"
)
_PARTS = re.compile(r"batch_size|world_size|num_processes")


class Drawn(Value):
    """What groups go with, and the flag without which there are none; empty for no such flag."""

    with_: str
    switch: str


def draws(program: File, project: Modules) -> tuple[Drawn, ...]:
    """Return how a program, and the modules of its project that it leads to, draw samples in groups."""
    found: dict[Drawn, None] = {}
    files = project.files(program)
    for file in files:
        spend(len(file.text) // _CHARACTERS, PYTHON)
        if _DEALT.search(file.text):
            found[Drawn(FIXED, "")] = None
        if "Sampler(" in file.text and _ASKS.search(file.text) and "train" in file.text:
            code = project.code(file)
            for node in code.body if code is not None else ():
                if not isinstance(node, ast.ClassDef) or _is_made(node.name, files):
                    found |= dict.fromkeys(_drawn(node, ""))
    return tuple(found)


def _is_made(name: str, files: list[File]) -> bool:
    """Whether a program makes a class, or another of it: modules have trainers for other programs, too."""
    used = re.compile(rf"(?<!class )\b{name}\(|class \w+\([^()]*\b{name}\b")
    return any(name in file.text and used.search(file.text) for file in files)


def _drawn(node: ast.AST, switch: str) -> Iterator[Drawn]:
    """Yield what is drawn in groups within a node, under the flag that is asked for last."""
    spend(1, PYTHON)
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if _SAMPLER.match(name) and (size := _goes_with(node, name)):
            yield Drawn(size, switch)
    for field, value in ast.iter_fields(node):
        inner = switch
        if isinstance(node, ast.If) and field == "body":
            inner = _flag(node.test)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield from _drawn(each, inner)


def _flag(test: ast.expr) -> str:
    """Return the one flag that a condition asks for."""
    given = isinstance(test, ast.Attribute) and ast.unparse(test.value).endswith("args")
    return test.attr if given else ""  # type: ignore[attr-defined]


def _goes_with(call: ast.Call, name: str) -> str:
    """Return what the size of a sampler's groups goes with; empty where both together keep it."""
    given = [ast.unparse(each) for each in (*call.args, *(each.value for each in call.keywords))]
    sizes = " ".join(each for each in given if _PARTS.search(each))
    passes = sizes.count("accum")
    processes = sizes.count("world_size") + sizes.count("num_processes")
    if not _BATCH.search(sizes) or passes == processes or any(map(_RANK.search, given)):
        return ""
    if passes > processes:
        return PASSES
    return PROCESSES if _SORTS.search(name) else ""
