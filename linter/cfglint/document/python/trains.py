"""Whose trainer a program makes: TRL's, transformers' own, or none but a loop of its own over one model.

What is asked is the code, and so the answer is one whichever launcher starts the program. Its modules that
are here are gone through as well, those that it imports itself first: `train_mem.py` may only call another's
main. What a module makes of TRL's is open: its flags and defaults are seldom TRL's own.
"""

from __future__ import annotations

import ast
import os
import re
import sys

from cfglint.budget import BUDGET, spend
from cfglint.document.python.source import PYTHON, read_python
from cfglint.errors import OverBudgetError
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeAlias

    from cfglint.document.python.source import Code
    from cfglint.document.tree import File

    Finder: TypeAlias = Callable[[str, str], File | None]  # by who asks, and a path

OWN = "loop"
SEVERAL = "several"  # or one of a module's
_LIBRARIES = ("transformers", "trl")
_ELSEWHERE = sys.stdlib_module_names | {
    *_LIBRARIES,
    "torch",
    "datasets",
    "peft",
    "accelerate",
    "numpy",
    "deepspeed",
}
# What a program names that holds more than one language model, or compares answers.
_BESIDE = {
    *("ref", "reference", "reward", "rewards", "critic", "advantage", "advantages", "rollout", "rollouts"),
    *("teacher", "student", "chosen", "rejected", "dpo", "ppo", "grpo", "rlhf", "ema", "vae", "unet"),
}
_CAUSAL = re.compile(r"\w*(CausalLM|LMHeadModel)\Z")
_NAMED: dict[type, tuple[str, ...]] = {
    **dict.fromkeys((ast.alias, ast.ClassDef, ast.FunctionDef), ("name",)),
    ast.Name: ("id",),
    ast.Attribute: ("attr",),
}
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_MOST = 12  # files of a program
_LARGEST = 2**18  # characters of one
_RESERVE = 4  # of a file's steps, the part that is left for judging it


class Module(Record):
    """What one file says: whose trainers it makes or derives its own from, and what it imports."""

    libraries: set[str] = field(factory=set)
    imports: dict[str, None] = field(factory=dict)  # dotted names, relative ones with their dots
    loops: bool = False


def trains_with(program: File, find: Finder) -> str:
    """Return whose trainer a program makes: ``trl``, ``transformers``, `SEVERAL` or `OWN`; empty for none."""
    seen = {os.path.abspath(program.path)}
    level, loops, deeper = [program], False, False
    while level:
        modules = [(file, module) for file in level if (module := _read(file.text)) is not None]
        libraries = {name for _, module in modules for name in module.libraries}
        if libraries:
            sure = libraries == {"transformers"} or (libraries == {"trl"} and not deeper)
            return libraries.pop() if sure else SEVERAL
        deeper = True
        loops = loops or any(module.loops for _, module in modules)
        level = []
        for file, module in modules:
            for each in _imported(file, module.imports, find):
                if os.path.abspath(each.path) not in seen and len(seen) < _MOST:
                    seen.add(os.path.abspath(each.path))
                    level.append(each)
    return OWN if loops else ""


def trains_one(code: Code, flags: Iterable[str]) -> bool:
    """Whether a program names a causal language model, and nothing that is beside one or compares answers."""
    names = set(flags)
    for statement in code.body:
        for node in ast.walk(statement):
            spend(1, PYTHON)
            names |= {getattr(node, field) for field in _NAMED.get(type(node), ())}
    parts = {part.lower() for name in names for part in _PARTS.findall(name)}
    return any(_CAUSAL.match(name) for name in names) and _BESIDE.isdisjoint(parts)


def _read(text: str) -> Module | None:
    """Return what a file says; None for one that cannot be read, or costs more than it may."""
    if len(text) > _LARGEST or BUDGET.left < BUDGET.most // _RESERVE:
        return None
    try:
        code = read_python(text, notebook=False)
    except OverBudgetError:
        if BUDGET.left < 0:
            raise
        return None
    if code is None:
        return None
    nodes = [inner for node in code.body for inner in ast.walk(node)]
    spend(len(nodes), PYTHON)
    module = Module()
    names = _names(nodes, module)
    for node in nodes:
        made = [node.func] if isinstance(node, ast.Call) else getattr(node, "bases", ())
        for each in made:
            name = _full_name(each, names)
            if name.partition(".")[0] in _LIBRARIES and name.endswith("Trainer"):
                module.libraries.add(name.partition(".")[0])
            module.loops = module.loops or (isinstance(each, ast.Attribute) and each.attr == "backward")
    return module


def _names(nodes: Iterable[ast.AST], module: Module) -> dict[str, str]:
    """Note what a module imports; returns the full names behind those that it has then."""
    names: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                module.imports[alias.name] = None
                first = alias.name.partition(".")[0]
                names[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom):
            holder = "." * node.level + (node.module or "")
            module.imports[holder] = None
            for alias in node.names:
                name = f"{holder}.{alias.name}" if node.module else f"{holder}{alias.name}"
                module.imports[name] = None
                names[alias.asname or alias.name] = name
    return names


def _full_name(node: ast.expr, names: dict[str, str]) -> str:
    """Return the full name of a class, as far as what is imported tells it."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    first = names.get(node.id, "") if isinstance(node, ast.Name) else ""
    return ".".join((first, *reversed(parts))) if first else ""


def _imported(file: File, imports: Iterable[str], find: Finder) -> Iterator[File]:
    """Yield the modules of a file that are here, beside it or where its package is."""
    folder = os.path.dirname(file.path)
    for name in imports:
        bare = name.lstrip(".")
        up = "../" * max(len(name) - len(bare) - 1, 0)
        path = up + bare.replace(".", "/")
        if not bare or bare.partition(".")[0] in _ELSEWHERE:
            continue
        if bare != name:  # a relative import is seen from its own folder, and from nowhere else
            path = os.path.abspath(os.path.join(folder, path))
        for end in (".py", "/__init__.py"):
            found = find(file.path, path + end)
            if found is not None and found.format == "program":
                yield found
                break
