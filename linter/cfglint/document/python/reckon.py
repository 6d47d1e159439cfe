"""What the expressions of a program are worth where only what surely runs is gone through (see stops.py)."""

from __future__ import annotations

import ast

from cfglint.document.python.surely import (
    ABSENT,
    BATCHES,
    SECTION,
    UNKNOWN,
    Kind,
    Known,
    Link,
    Made,
    Part,
    Task,
    is_named,
    stored,
)
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from cfglint.document.python.modules import Modules
    from cfglint.document.tree import File

    Keys: TypeAlias = tuple[str, ...]
    Ask: TypeAlias = Callable[[Keys], object]  # a Known, SECTION, ABSENT or UNKNOWN
    Names: TypeAlias = dict[str, object]

DEEPEST = 8  # calls in each other
_BATCHES = "train_dataloader"
# What a DictConfig has whatever its keys are.
_METHODS = {"copy", "get", "items", "keys", "pop", "setdefault", "update", "values", "merge_with", "clear"}


class OverError(Exception):
    """Nobody knows whether the program goes on."""


class Frame(Record):
    """A call that is gone through: the names of its function, in a file."""

    file: File
    names: Names
    owner: Made | None = None
    result: object = field(default=UNKNOWN)


class Reckoner:
    """What names and expressions are worth, with the answers of a config."""

    def __init__(self, program: File, modules: Modules, ask: Ask) -> None:
        self.program, self.modules, self._ask = program, modules, ask
        self.asked: dict[Keys, object] = {}
        self.files: dict[str, tuple[File, Names]] = {}
        self.causes: list[list[str]] = []
        self.read: list[str] = []
        self.wanted: dict[str, list[object]] = {}  # what keys are compared with
        self.guessing = 0
        self.active: list[ast.AST] = []

    def follow(self, task: Task, given: Sequence[object], named: dict[str, object] | None) -> object:
        """Go through a function with its arguments; returns what it gives."""
        raise NotImplementedError

    def halt(self, node: ast.AST, frame: Frame, *, key: str = "", raised: str = "") -> None:
        """Note that the program stops here, where that is sure."""
        raise NotImplementedError

    # ── names ──────────────────────────────────────────────────────────────────────────────────────────
    def names(self, file: File) -> Names:
        """Return what the names of a module stand for, as far as each is set once."""
        if file.path not in self.files:
            self.files[file.path] = file, self.modules.names(file)
        return self.files[file.path][1]

    def resolved(self, value: object) -> object:
        """Return what an imported name stands for."""
        for _ in range(DEEPEST):
            if not isinstance(value, Link):
                return value
            file = self.modules.imported(value.file, value.module)
            value = UNKNOWN if file is None else self.names(file).get(value.name, UNKNOWN)
        return UNKNOWN

    def method(self, kind: Kind, name: str, depth: int = 0) -> Task | None:
        """Return a method of a class, or of the bases that are here; None where nobody knows."""
        for each in kind.node.body:
            if isinstance(each, ast.FunctionDef) and each.name == name:
                return Task(each, kind.file)
        for base in kind.node.bases if depth < DEEPEST else ():
            above = self.resolved(self.names(kind.file).get(base.id)) if isinstance(base, ast.Name) else None
            if not isinstance(above, Kind):
                return None
            found = self.method(above, name, depth + 1)
            if found is not None:
                return found
        return None

    # ── values ─────────────────────────────────────────────────────────────────────────────────────────
    def assign(self, target: ast.expr, value: object, frame: Frame) -> None:
        """Note what a name or an attribute of the function's own object is worth."""
        if isinstance(target, ast.Name):
            frame.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                self.assign(each, UNKNOWN, frame)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            owner = frame.names.get(target.value.id)
            if isinstance(owner, Made):
                owner.attributes[target.attr] = UNKNOWN if owner.kind.sets_later(target.attr) else value

    def truth(self, node: ast.expr, frame: Frame) -> bool | None:
        """Whether a condition holds; None where nobody knows. A part that is not known may not decide it."""
        if isinstance(node, ast.BoolOp):
            return self._joined(node, frame)[0]
        value = self.value(node, frame)
        return bool(value.value) if isinstance(value, Known) else None

    def value(self, node: ast.expr, frame: Frame) -> object:
        """Return what an expression is worth, all of which is read for that."""
        return getattr(self, f"_v_{node.__class__.__name__.lower()}", self._v_parts)(node, frame)

    def _v_parts(self, node: ast.expr, frame: Frame) -> object:
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            self.value(node.generators[0].iter, frame)
        elif not isinstance(node, ast.Lambda):
            for each in ast.iter_child_nodes(node):
                if isinstance(each, ast.expr):
                    self.value(each, frame)
        return UNKNOWN

    def _v_constant(self, node: ast.Constant, _: Frame) -> object:
        return Known(node.value)

    def _v_name(self, node: ast.Name, frame: Frame) -> object:
        found = frame.names.get(node.id, UNKNOWN)
        return self.resolved(found if node.id in frame.names else self.names(frame.file).get(node.id))

    def _v_attribute(self, node: ast.Attribute, frame: Frame) -> object:
        owner = self.value(node.value, frame)
        if isinstance(owner, Part):
            return UNKNOWN if node.attr in _METHODS else self.key((*owner.path, node.attr), node, frame)
        if isinstance(owner, Made):
            return owner.attributes.get(node.attr) or (BATCHES if node.attr == _BATCHES else UNKNOWN)
        return owner.constant(node.attr) if isinstance(owner, Kind) else UNKNOWN

    def _v_subscript(self, node: ast.Subscript, frame: Frame) -> object:
        owner, index = self.value(node.value, frame), self.value(node.slice, frame)
        if isinstance(owner, Part) and isinstance(index, Known) and isinstance(index.value, str):
            return self.key((*owner.path, index.value), node, frame)
        return UNKNOWN

    def key(self, path: Keys, node: ast.AST, frame: Frame) -> object:
        """Return the value of a key, which has to be there."""
        found = self.asks(path)
        if found is ABSENT:
            self.halt(node, frame, key=".".join(path))
            return UNKNOWN
        return found

    def asks(self, path: Keys) -> object:
        """Return what the config answers."""
        if path not in self.asked:
            self.asked[path] = UNKNOWN if is_private(path) else self._ask(path)
        found = self.asked[path]
        if isinstance(found, Known):
            self.read.append(".".join(path))
        if found is not SECTION and any(path[-1] in stored(file.text) for file, _ in self.files.values()):
            return UNKNOWN
        return Part(path) if found is SECTION else found

    def _v_boolop(self, node: ast.BoolOp, frame: Frame) -> object:
        return self._joined(node, frame)[1]

    def _joined(self, node: ast.BoolOp, frame: Frame) -> tuple[bool | None, object]:
        """Return whether ``and`` or ``or`` holds, and its value: that of the operand which decides."""
        wants, sure, value = isinstance(node.op, ast.And), True, UNKNOWN
        guessing = self.guessing
        try:
            for each in node.values:
                if isinstance(each, ast.BoolOp):
                    truth, value = self._joined(each, frame)
                else:
                    value = self.value(each, frame)
                    truth = bool(value.value) if isinstance(value, Known) else None
                if truth is (not wants):
                    return not wants, value if sure else UNKNOWN
                if truth is None:
                    sure, self.guessing = False, self.guessing + 1
            return (wants, value) if sure else (None, UNKNOWN)
        finally:
            self.guessing = guessing

    def _v_unaryop(self, node: ast.UnaryOp, frame: Frame) -> object:
        truth = self.truth(node.operand, frame)
        return Known(not truth) if isinstance(node.op, ast.Not) and truth is not None else UNKNOWN

    def _v_ifexp(self, node: ast.IfExp, frame: Frame) -> object:
        truth = self.truth(node.test, frame)
        return UNKNOWN if truth is None else self.value(node.body if truth else node.orelse, frame)

    def _v_list(self, node: ast.List, frame: Frame) -> object:
        values = [self.value(each, frame) for each in node.elts]
        known = [each.value for each in values if isinstance(each, Known)]
        return Known(tuple(known)) if len(known) == len(values) else UNKNOWN

    _v_tuple = _v_set = _v_list

    def _v_joinedstr(self, node: ast.JoinedStr, frame: Frame) -> object:
        values = [self.value(each, frame) for each in node.values]
        known = [str(each.value) for each in values if isinstance(each, Known)]
        return Known("".join(known)) if len(known) == len(values) else UNKNOWN

    def _v_formattedvalue(self, node: ast.FormattedValue, frame: Frame) -> object:
        return self.value(node.value, frame)

    def _v_compare(self, node: ast.Compare, frame: Frame) -> object:
        before = len(self.read)
        left, read = self.value(node.left, frame), self.read[before:]
        right = self.value(node.comparators[0], frame)
        if len(node.ops) > 1:
            return UNKNOWN
        operator = node.ops[0]
        if len(read) == 1 and isinstance(left, Known) and isinstance(right, Known):
            values = right.value if isinstance(right.value, tuple) else (right.value,)
            self.wanted.setdefault(read[0], []).extend(values)
        if isinstance(operator, (ast.In, ast.NotIn)) and isinstance(right, Part) and isinstance(left, Known):
            found = self.asks((*right.path, str(left.value)))
            held = UNKNOWN if found is UNKNOWN else found is not ABSENT
            return UNKNOWN if held is UNKNOWN else Known(held is isinstance(operator, ast.In))
        if isinstance(left, Known) and isinstance(right, Known):
            return compared(operator, left.value, right.value)
        if isinstance(right, Known) and right.value is None and isinstance(left, (Part, Made, Kind, Task)):
            return Known(isinstance(operator, (ast.IsNot, ast.NotEq)))
        return UNKNOWN

    # ── calls ──────────────────────────────────────────────────────────────────────────────────────────
    def _v_call(self, node: ast.Call, frame: Frame) -> object:
        func = node.func
        if is_named(func, "ray.get") and len(node.args) == 1 and isinstance(node.args[0], ast.Call):
            inner = node.args[0]
            if isinstance(inner.func, ast.Attribute) and inner.func.attr == "remote":
                return self._enter(self._task(inner.func.value, frame), inner, frame)
        if is_named(func, "ray.remote") or (isinstance(func, ast.Call) and is_named(func.func, "ray.remote")):
            return self.value(node.args[0], frame) if node.args else UNKNOWN
        if any(is_named(func, each) for each in ("exit", "quit", "sys.exit", "os._exit")):
            raise OverError
        if is_named(func, "hasattr") or is_named(func, "getattr") or is_named(func, "OmegaConf.select"):
            return self._looked_up(node, frame)
        if isinstance(func, ast.Attribute) and func.attr in ("options", "remote"):
            owner = self.value(func.value, frame)
            if isinstance(owner, Kind):
                return owner if func.attr == "options" else self._enter(owner, node, frame)
        if isinstance(func, ast.Attribute) and func.attr == "get":
            owner = self.value(func.value, frame)
            if isinstance(owner, Part):
                return self._gets(owner, node.args, node, frame)
        return self._enter(self._task(func, frame), node, frame)

    def _task(self, func: ast.expr, frame: Frame) -> object:
        """Return the function, bound or not, or the class that is called."""
        if isinstance(func, ast.Attribute):
            owner = self.value(func.value, frame)
            if isinstance(owner, Made) and (task := self.method(owner.kind, func.attr)) is not None:
                return Task(task.node, task.file, owner)
            return UNKNOWN
        return self.value(func, frame)

    def _enter(self, called: object, node: ast.Call, frame: Frame) -> object:
        given = [self.value(each, frame) for each in node.args]
        named = {each.arg or "": self.value(each.value, frame) for each in node.keywords}
        spread = "" in named or any(isinstance(each, ast.Starred) for each in node.args)
        if isinstance(called, Kind):
            made = Made(called)
            start = self.method(called, "__init__")
            if start is not None:
                self.follow(
                    Task(start.node, start.file, made), [] if spread else given, None if spread else named
                )
            return made
        if isinstance(called, Task):
            return self.follow(called, [] if spread else given, None if spread else named)
        return UNKNOWN

    def _looked_up(self, node: ast.Call, frame: Frame) -> object:
        owner = self.value(node.args[0], frame) if node.args else UNKNOWN
        if not isinstance(owner, Part):
            return self._enter(UNKNOWN, node, frame)
        found = self._gets(owner, node.args[1:], node, frame)
        if not is_named(node.func, "hasattr"):
            return found
        path = self._path(owner, node.args[1:], frame)
        held = UNKNOWN if path is None else self.asks(path)
        return UNKNOWN if held is UNKNOWN else Known(held is not ABSENT)

    def _path(self, owner: Part, args: Sequence[ast.expr], frame: Frame) -> Keys | None:
        name = self.value(args[0], frame) if args else UNKNOWN
        known = isinstance(name, Known) and isinstance(name.value, str)
        return (*owner.path, *name.value.split(".")) if known else None  # type: ignore[attr-defined]

    def _gets(self, owner: Part, args: Sequence[ast.expr], node: ast.Call, frame: Frame) -> object:
        """Return what a key is worth that may be absent."""
        path = self._path(owner, args, frame)
        given = [*args[1:], *(each.value for each in node.keywords)]
        default = self.value(given[0], frame) if given else Known(None)
        found = UNKNOWN if path is None else self.asks(path)
        return default if found is ABSENT else found


def is_private(path: Keys) -> bool:
    """Whether a key is a name that starts with ``_``, of which no config has anything to say."""
    return path[-1].startswith("_")


def compared(operator: ast.cmpop, left: object, right: object) -> object:
    """Return what a comparison of texts, truths and None gives, and of numbers of the same kind."""
    if isinstance(operator, (ast.In, ast.NotIn)):
        if not isinstance(right, tuple) or not all(type(each) is type(left) for each in right):
            return UNKNOWN
        return Known((left in right) is isinstance(operator, ast.In))
    if left is None or right is None:
        same = left is right
    elif type(left) is type(right):
        same = left == right
    else:
        return UNKNOWN
    if isinstance(operator, (ast.Eq, ast.Is)):
        return Known(same)
    return Known(not same) if isinstance(operator, (ast.NotEq, ast.IsNot)) else UNKNOWN
