"""Whose trainer a program makes: TRL's, transformers' own, or none but a loop of its own over one model.

What is asked is the code, and so the answer is one whichever launcher starts the program. Its modules that
are here are gone through as well, those that it imports itself first: `train_mem.py` may only call another's
main. What a module makes of TRL's is open: its flags and defaults are seldom TRL's own.
"""

from __future__ import annotations

import ast
import os
import re

from cfglint.budget import spend
from cfglint.document.python.source import PYTHON
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cfglint.document.python.modules import Modules
    from cfglint.document.python.source import Code
    from cfglint.document.tree import File

OWN = "loop"
SEVERAL = "several"  # or one of a module's
_LIBRARIES = ("transformers", "trl")
# What a program names that holds more than one language model, or compares answers.
_BESIDE = {
    *("ref", "reference", "reward", "rewards", "critic", "advantage", "advantages", "rollout", "rollouts"),
    *("teacher", "student", "chosen", "rejected", "dpo", "ppo", "grpo", "rlhf", "ema", "vae", "unet"),
}
_PLAIN_TRAINERS = {"Trainer", "transformers.Trainer", "Seq2SeqTrainer"}
_CONFIGS = ("GRPOConfig", "DPOConfig", "SFTConfig")
_OTHER_HEADS = {"classification"}
_CAUSAL = re.compile(r"\w*(CausalLM|LMHeadModel|VLForConditionalGeneration)\Z")
_NAMED: dict[type, tuple[str, ...]] = {
    **dict.fromkeys((ast.alias, ast.ClassDef, ast.FunctionDef), ("name",)),
    ast.Name: ("id",),
    ast.Attribute: ("attr",),
}
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_MOST = 12  # files of a program
_MOST_NAMES = 24  # of those whose names are asked for


class Module(Record):
    """What one file says: whose trainers it makes or derives its own from, and what it imports."""

    libraries: set[str] = field(factory=set)
    imports: dict[str, None] = field(factory=dict)  # dotted names, relative ones with their dots
    loops: bool = False
    derived: set[str] = field(factory=set)  # trainers of its own from those of a library
    configs: set[str] = field(factory=set)  # classes of TRL's arguments that it imports


def trains_with(program: File, project: Modules) -> str:
    """Return whose trainer a program makes: ``trl``, ``transformers``, `SEVERAL` or `OWN`; empty for none."""
    loops = deeper = False
    for level in _levels(program, project):
        libraries = {name for _, module in level for name in module.libraries}
        if libraries:
            sure = libraries == {"transformers"} or (libraries == {"trl"} and not deeper)
            return libraries.pop() if sure else SEVERAL
        deeper = True
        loops = loops or any(module.loops for _, module in level)
    return OWN if loops else ""


def config_of(program: File, project: Modules) -> str:
    """Return the class of TRL's arguments that a program and its modules take; empty for several."""
    for level in _levels(program, project):
        configs = {name for _, module in level for name in module.configs}
        if configs:
            return configs.pop() if len(configs) == 1 else ""
    return ""


def trains_plainly(program: File, project: Modules, flags: Iterable[str]) -> bool:
    """Whether a program makes transformers' own trainer or one derived from it, of one causal language model.

    That trainer holds the model that it is given, so the modules behind those that make it are not asked.
    """
    names = set(flags)
    for level in _levels(program, project):
        makers = [code for code, module in level if module.libraries]
        derived = {name for _, module in level for name in module.derived}
        # A trainer of its own may be of one model, too: then nothing beside it names more than one.
        for code in makers if makers and not derived else [code for code, _ in level]:
            names |= _named(code)
        if makers:
            own = any(name.endswith("Trainer") for name in names - _PLAIN_TRAINERS - derived)
            libraries = {name for _, module in level for name in module.libraries}
            return libraries == {"transformers"} and not own and _one_model(names, _BESIDE | _OTHER_HEADS)
    return False


def _levels(program: File, project: Modules) -> Iterator[list[tuple[Code, Module]]]:
    """Yield a program, the modules of its own that it imports, those that they import, and so on."""
    seen, level = {os.path.abspath(program.path)}, [program]
    while level:
        found = [(file, code) for file in level if (code := project.code(file)) is not None]
        modules = [(file, code, _read(code)) for file, code in found]
        yield [(code, module) for _, code, module in modules]
        level = []
        for file, _, module in modules:
            for each in filter(None, (project.imported(file, name) for name in module.imports)):
                if os.path.abspath(each.path) not in seen and len(seen) < _MOST:
                    seen.add(os.path.abspath(each.path))
                    level.append(each)


def trains_one(program: File, project: Modules, flags: Iterable[str], *, plainly: bool = False) -> bool:
    """Whether a program names a causal language model, and nothing that is beside one or compares answers.

    So do its modules. One that makes transformers' own trainer (``plainly``) has but to name no classifier.
    """
    names = set(flags)
    for code in _reached(program, project):
        if code is None:
            return False
        names |= _named(code)
    return _one_model(names, _OTHER_HEADS if plainly else _BESIDE)


def _named(code: Code) -> set[str]:
    """Return what a file names: what it imports, defines and reads."""
    names: set[str] = set()
    for node in code.nodes():
        spend(1, PYTHON)
        names |= {getattr(node, field) for field in _NAMED.get(type(node), ())}
    return names


def _one_model(names: set[str], beside: Iterable[str]) -> bool:
    """Whether names hold a causal language model, and no word of those that tell of more."""
    parts = {part.lower() for name in names for part in _PARTS.findall(name)}
    return any(_CAUSAL.match(name) for name in names) and parts.isdisjoint(beside)


def _reached(program: File, project: Modules) -> list[Code | None]:
    """Return the code of a program and of the modules that it leads to; None for one that is not read."""
    found = {os.path.abspath(program.path): program}
    codes: list[Code | None] = []
    for file in (waiting := [program]):  # grows on the way
        code = project.code(file) if len(codes) < _MOST_NAMES else None
        codes.append(code)
        if code is None:
            break
        module = Module()
        _names(code.nodes(), module)
        for each in filter(None, (project.imported(file, name) for name in module.imports)):
            if os.path.abspath(each.path) not in found:
                found[os.path.abspath(each.path)] = each
                waiting.append(each)
    return codes


def _read(code: Code) -> Module:
    """Return what a file says."""
    nodes = code.nodes()
    spend(len(nodes), PYTHON)
    module = Module()
    names = _names(nodes, module)
    known = (name.split(".") for name in names.values())
    module.configs |= {parts[-1] for parts in known if parts[0] == "trl" and parts[-1].endswith(_CONFIGS)}
    for node in nodes:
        made = [node.func] if isinstance(node, ast.Call) else getattr(node, "bases", ())
        for each in made:
            name = _full_name(each, names)
            if name.partition(".")[0] in _LIBRARIES and name.endswith("Trainer"):
                module.libraries.add(name.partition(".")[0])
                if isinstance(node, ast.ClassDef):
                    module.derived.add(node.name)
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
