"""What is known of a program's values where only what surely runs is gone through (see stops.py)."""

from __future__ import annotations

import ast
import re

from cfglint.record import Record, Value, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cfglint.document.tree import File

UNKNOWN = None
_STORED = re.compile(r"""(?:(?<![\w.])self\.\w+|\.(\w+)|\[["'](\w+)["']\])\s*(?::[^=\n]+)?[-+*/|]?=(?!=)""")
_ADDED = re.compile(r"""(?:setattr|setdefault|\bupdate|\bpop)\([^)\n]*?["']([\w.]+)["']""")
_OVER = re.compile(r"\bOmegaConf\.(?:update|merge|unsafe_merge)\(|\.merge_with\(")
_IMPORTED = re.compile(r"(?m)^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import|import[ \t]+([\w.]+))")
_EXITS = ("exit", "_exit", "quit", "abort")
_cache: dict[int, tuple[str, frozenset[str]]] = {}


class _Mark(Value):
    name: str


SECTION, ABSENT = _Mark("section"), _Mark("absent")
BATCHES = _Mark("batches")  # what a job trains on


class Known(Value):
    """A value that is known: a text, a number, a truth, None, or a tuple of them."""

    value: object


class Part(Value):
    """The config, or a section of it."""

    path: tuple[str, ...]


class Link(Value):
    """A name that is imported from a module."""

    file: File
    module: str
    name: str


class Kind(Record):
    """A class of a file."""

    node: ast.ClassDef
    file: File
    _later: set[str] | None = field(default=None, init=False)

    def sets_later(self, name: str) -> bool:
        """Whether another method than ``__init__`` sets an attribute of that name."""
        if self._later is None:
            self._later = {
                node.attr
                for each in self.node.body
                if not (isinstance(each, ast.FunctionDef) and each.name == "__init__")
                for node in ast.walk(each)
                if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
            }
        return name in self._later

    def constant(self, name: str) -> object:
        """Return a member of an enumeration of texts, which is the text for all comparisons."""
        bases = [each for base in self.node.bases for each in calls(base)]
        if bases not in (["str", "Enum"], ["StrEnum"]):
            return UNKNOWN
        values = (
            each.value.value
            for each in self.node.body
            if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
            if len(each.targets) == 1 and is_named(each.targets[0], name)
        )
        value = next(values, None)
        return Known(value) if isinstance(value, str) else UNKNOWN


class Made(Record):
    """An object of a class, with what its ``__init__`` sets."""

    kind: Kind
    attributes: dict[str, object] = field(factory=dict)


class Task(Record):
    """A function of a file, and the object that it belongs to."""

    node: ast.FunctionDef
    file: File
    owner: Made | None = None


class Traits(Value):
    """What lies in a statement, whatever a config says: what it sets, names it makes, ways to leave."""

    targets: tuple[ast.expr, ...]
    names: tuple[str, ...]
    leaves: bool
    yields: bool


def traits_of(node: ast.AST) -> Traits:
    """Return what lies in a statement or a function."""
    targets, names, may_leave, yields = [], [], False, False
    for each in ast.walk(node):
        if isinstance(each, (ast.Name, ast.Attribute)):
            targets += [each] if not isinstance(each.ctx, ast.Load) else []
        elif isinstance(each, (ast.Import, ast.ImportFrom)):
            names += [alias.asname or alias.name for alias in each.names]
        elif isinstance(each, (ast.FunctionDef, ast.ClassDef)):
            names.append(each.name)
        elif isinstance(each, (ast.Return, ast.Break, ast.Continue, ast.Raise, ast.Call)):
            may_leave = may_leave or _leaves(each, lambda _: None, loop=False) != ""
        elif isinstance(each, (ast.Yield, ast.YieldFrom)):
            yields = True
    return Traits(tuple(targets), tuple(names), may_leave, yields)


def is_named(node: ast.AST, name: str) -> bool:
    """Whether an expression is a name, with dots or without."""
    holder, _, last = name.rpartition(".")
    if not holder:
        return isinstance(node, ast.Name) and node.id == last
    return isinstance(node, ast.Attribute) and node.attr == last and is_named(node.value, holder)


def calls(node: ast.AST) -> list[str]:
    """Return the names in an expression, without what stands before their dots."""
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.Name):
        return [node.id]
    return [each for child in ast.iter_child_nodes(node) for each in calls(child)]


def message_of(node: ast.expr | None) -> tuple[str, ast.expr | None]:
    """Return the name of an exception and its message."""
    if isinstance(node, ast.Call):
        return "".join(calls(node.func)[-1:]), node.args[0] if node.args else None
    return ("".join(calls(node)[-1:]), None) if node is not None else ("", None)


def names_of(body: Sequence[ast.stmt], file: File) -> dict[str, object]:
    """Return what statements that all run make of their names; of a name that is set twice, nothing."""
    found: dict[str, object] = {}
    for name, value in _set_by(body, file):
        found[name] = UNKNOWN if name in found else value
    return found


def _set_by(body: Sequence[ast.stmt], file: File) -> Iterator[tuple[str, object]]:
    for node in body:
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((each.asname or each.name, Link(file, module, each.name)) for each in node.names)
        elif isinstance(node, ast.FunctionDef):
            yield node.name, Task(node, file)
        elif isinstance(node, ast.ClassDef):
            yield node.name, Kind(node, file)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            value = Known(node.value.value)
            yield from ((each.id, value) for each in node.targets if isinstance(each, ast.Name))
        else:
            for each in ast.walk(node):
                if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
                    yield each.id, UNKNOWN
                elif isinstance(each, (ast.Import, ast.ImportFrom)):
                    yield from ((alias.asname or alias.name, UNKNOWN) for alias in each.names)
                elif isinstance(each, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
                    yield each.name, UNKNOWN


def leaves(body: Sequence[ast.AST], holds: Callable[[ast.expr], bool | None], *, loop: bool = False) -> str:
    """Return how statements may leave their function or loop, if at all: ``exit`` ends the program."""
    ways = {_leaves(node, holds, loop=loop) for node in body}
    return "exit" if "exit" in ways else "return" if "return" in ways else ""


def _leaves(node: ast.AST, holds: Callable[[ast.expr], bool | None], *, loop: bool) -> str:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return ""
    if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
        return "return" if isinstance(node, ast.Return) or not loop else ""
    if isinstance(node, ast.Raise) and "Exit" in message_of(node.exc)[0]:
        return "exit"
    if isinstance(node, ast.Call) and "".join(calls(node.func)[-1:]) in _EXITS:
        return "exit"
    held = holds(node.test) if isinstance(node, ast.If) else None
    if isinstance(node, ast.If) and held is not None:
        return leaves(node.body if held else node.orelse, holds, loop=loop)
    inside = loop or isinstance(node, (ast.For, ast.While, ast.AsyncFor))
    return leaves(list(ast.iter_child_nodes(node)), holds, loop=inside)


def stored(text: str) -> frozenset[str]:
    """Return the names that a file's statements set below another name."""
    known = _cache.get(id(text))
    if known is None or known[0] is not text:
        names = {name for match in _STORED.finditer(text) for name in match.groups() if name}
        names |= {part for match in _ADDED.finditer(text) for part in match[1].split(".")}
        if len(_cache) > 100:
            _cache.clear()
        known = _cache[id(text)] = text, frozenset(names)
    return known[1]


def written_over(text: str) -> bool:
    """Whether a file lays something over a config as a whole."""
    return _OVER.search(text) is not None


def set_elsewhere(text: str) -> list[str]:
    """Return the modules that a file imports."""
    return list(dict.fromkeys(match[1] or match[2] for match in _IMPORTED.finditer(text)))
