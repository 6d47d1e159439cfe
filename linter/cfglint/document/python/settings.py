"""A config module of mmengine (XTuner's configs): its names are the keys, ``dict(…)`` makes the mappings.

mmengine runs such a module and takes what its names stand for (``Config.fromfile``); here it is read as any
program, and nothing is run. What is imported is a text, the full name: ``xtuner.model.SupervisedFinetune``.
``python.config`` says whose config it is.
"""

from __future__ import annotations

import ast

from cfglint.budget import spend
from cfglint.document.python.documents import Reader, Site
from cfglint.document.python.run import Program
from cfglint.document.python.source import PYTHON, read_python
from cfglint.document.python.values import Flag, Items, Object, Span, Symbol
from cfglint.document.tree import (
    Alias,
    Composite,
    Document,
    Entry,
    Mapping,
    Node,
    Path,
    Scalar,
    Sequence,
    Unresolved,
)
from cfglint.record import field

LIBRARY = "xtuner"
_DEEPEST = 12
_LONGEST = 1_000  # items of a list
# What stands beside the model in a config that trains it, with mmengine's loops or transformers' Trainer.
_BESIDE = ("train_dataloader", "train_cfg", "optim_wrapper", "train_dataset", "training_args")
_BASES = "mmengine.config.read_base"


def parse_settings(text: str) -> list[Document]:
    """Return the document of a config module; none where a program is something else."""
    code = read_python(text, notebook=False)
    program = None if code is None else Program(code)
    if program is None:
        return []
    program.run()
    names = program.scope.names
    model = names.get("model")
    trains = isinstance(model, Object) and model.kind == "dict" and "type" in model.items
    if LIBRARY not in program.imports or not trains or not any(name in names for name in _BESIDE):
        return []
    reader = Settings(program, _no_flag)
    root = reader.module()
    document = Document(0, len(text), root)
    document.unread, document.sites = reader.unread or None, reader.sites
    return [document]


def _no_flag(flag: Flag, span: Span) -> Node:
    return Unresolved(f"--{flag.name}", *span, why="an argument of a program sets it")


class Settings(Reader):
    """Makes the tree of a config module; a mapping that is met again is an alias, as of an anchor in YAML."""

    _mappings: dict[int, Mapping] = field(factory=dict, init=False)

    def module(self) -> Mapping:
        """Return the names of the module as a mapping."""
        code = self.program.code
        root = Mapping(0, flow=True, end=len(code.file))
        names = self.program.scope.names
        for name, span in _assigned(self.program).items():
            value = names.get(name)
            if value is not None:
                root.entries[name] = Entry(_key(name, span), self._node(value, span, (name,)))
        if _has_base(self.program):
            self.unread[()] = "the config that this one is based on"
        span = root.entries["model"].key.start, root.entries["model"].key.end
        python = Mapping(span[0], flow=True, end=span[1])
        python.entries["config"] = Entry(_key("config", span), Composite(LIBRARY, *span, '"'))
        root.entries["python"] = Entry(_key("python", span), python)
        return root

    def _node(self, value: object, span: Span, path: Path) -> Node:
        """Return a value as a node; ``span`` is where it is asked for."""
        spend(2, PYTHON)
        if len(path) > _DEEPEST:
            return self.node(value, span)
        if isinstance(value, Object) and value.kind == "dict":
            return self._mapping(value, path)
        if isinstance(value, Items) and len(value.items) <= _LONGEST:
            items = [
                self._node(item, getattr(item, "span", value.span), (*path, at))
                for at, item in enumerate(value.items)
            ]
            return Sequence(value.span[0], flow=True, end=value.span[1], items=items)
        node = self.node(value, span)
        if isinstance(value, Symbol) and isinstance(node, Unresolved) and "." in value.name:
            return Composite(value.name, *span, '"')
        return node

    def _mapping(self, value: Object, path: Path) -> Node:
        if value.last is not None and not value.rest:
            self.sites[path] = Site(value.last, value.span, value.spaced)
        if id(value) in self._mappings:
            return Alias("", self._mappings[id(value)], *value.span)
        made = self._mappings[id(value)] = Mapping(value.span[0], flow=True, end=value.span[1])
        for name, (span, inner) in value.items.items():
            place = getattr(inner, "span", span)
            made.entries[name] = Entry(_key(name, span), self._node(inner, place, (*path, name)))
        if value.rest:
            self.unread[path] = value.rest
        return made


def _assigned(program: Program) -> dict[str, Span]:
    """Return the names that the module sets, each with the place where it does so last."""
    found: dict[str, Span] = {}
    waiting: list[ast.AST] = [*program.code.body]
    for node in waiting:  # grows on the way
        spend(1, PYTHON)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not node.id.startswith("_"):
            found[node.id] = program.code.span(node)
        elif isinstance(node, (ast.stmt, ast.Tuple, ast.excepthandler)) and not isinstance(
            node, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
        ):
            waiting += ast.iter_child_nodes(node)
    return found


def _has_base(program: Program) -> bool:
    """Whether names of others are taken over: ``_base_``, or ``with read_base(): from .x import *``."""
    names = program.scope.names
    symbol = names.get("read_base")
    return "_base_" in names or (isinstance(symbol, Symbol) and symbol.name == _BASES)


def _key(name: str, span: Span) -> Scalar:
    return Scalar(name, span[0], span[1], '"')
