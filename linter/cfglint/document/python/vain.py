"""Flags that name no data or model for a program although they are called so.

Nothing reads one, or it is where something is saved, or the program stops where it is given beside another
one that has a default: ``if self.dataset_name is not None and self.mixer_list is not None: raise …``.
"""

from __future__ import annotations

import ast
import re

from cfglint.budget import spend
from cfglint.document.python.source import PYTHON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.document.tree import File

_SAVES = re.compile(r"(?i)\b(?:to save|saving|saved? (?:to|in)|write to|written to|to push|upload)\b")
_READ = r"""\.{0}\b|["']{0}["']\s*[\],)]"""
_FACTORIES = ("default_factory", "factory")
_UNSET, _SET = "unset", "set"


def vain_flags(files: Sequence[File], flags: frozenset[str]) -> frozenset[str]:
    """Return those of some flags of a program that say nothing of what it works on."""
    trees = [tree for file in files if (tree := _parsed(file)) is not None]
    whole = "\n".join(file.text for file in files)
    defaults = {name: default for tree in trees for name, default in _defaults(tree)}
    tests = [
        (test, {**defaults, **own})
        for tree in trees
        for test, own in _refusals(tree)
        if _holds(test, {**defaults, **own}) is not True
    ]
    saved = {name for tree in trees for name, told in _helps(tree) if _SAVES.search(told)}
    read = {name for name in flags if re.search(_READ.format(re.escape(name)), whole)}
    return frozenset(
        name
        for name in flags
        if name in saved
        or (read and name not in read)  # a program that hands all of them on reads none by itself
        or any(_holds(test, {**known, name: _SET}) is True for test, known in tests)
    )


def _parsed(file: File) -> ast.Module | None:
    spend(len(file.text) // 100, PYTHON)
    try:
        return ast.parse(file.text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _defaults(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the flags that a file declares, and whether they are set by default."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from _fields(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("add_argument"):
            given = {each.arg: each.value for each in node.keywords}
            stated = _state(given["default"]) if "default" in given else _UNSET
            yield from ((name, stated) for name in _words(node))


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class, and whether they are set by default."""
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id, _state(each.value)


def _words(node: ast.Call) -> Iterator[str]:
    for each in node.args:
        if isinstance(each, ast.Constant) and str(each.value).startswith("--"):
            yield str(each.value).lstrip("-").replace("-", "_")


def _state(node: ast.expr | None) -> str:
    """Return whether a default is a value; empty where that is not known."""
    if isinstance(node, ast.Call):
        given = {each.arg: each.value for each in node.keywords}
        if any(name in given for name in _FACTORIES):
            return _SET
        node = given.get("default")
    if isinstance(node, ast.Constant):
        return _UNSET if node.value is None else _SET
    return _SET if isinstance(node, (ast.List, ast.Dict, ast.Tuple)) else ""


def _helps(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the flags that a file declares with what it says of them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            names, value = [node.target.id], node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("add_argument"):
            names, value = list(_words(node)), node
        else:
            continue
        told = [each.value for each in ast.walk(value) if isinstance(each, ast.Constant)]
        yield from ((name, " ".join(str(each) for each in told)) for name in names)


def _refusals(tree: ast.Module) -> Iterator[tuple[ast.expr, dict[str, str]]]:
    """Yield the conditions under which a file raises, with the defaults of their class."""
    for holder in ast.walk(tree):
        if isinstance(holder, ast.ClassDef):
            own = dict(_fields(holder))
        elif isinstance(holder, ast.Module):
            own = {}
        else:
            continue
        functions = (
            each for each in holder.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
        )
        for node in (each for function in functions for each in function.body):
            if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
                yield node.test, own


def _holds(node: ast.expr, states: dict[str, str]) -> bool | None:
    """Return whether a condition holds by which flags are set; None where that is not known."""
    if isinstance(node, ast.BoolOp):
        ends = isinstance(node.op, ast.Or)
        parts = [_holds(each, states) for each in node.values]
        return ends if ends in parts else None if None in parts else not ends
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _holds(node.operand, states)
        return None if inner is None else not inner
    if not (isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and len(node.ops) == 1):
        return None
    asked, state = node.comparators[0], states.get(node.left.attr, "")
    if not (isinstance(asked, ast.Constant) and asked.value is None) or not state:
        return None
    if isinstance(node.ops[0], ast.Is):
        return state == _UNSET
    return state == _SET if isinstance(node.ops[0], ast.IsNot) else None
