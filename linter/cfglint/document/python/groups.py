"""Which flag of a program says how many of its processes share a model (``initialize_model_parallel``).

Megatron's groups, and those of what came of them (fairscale, gpt-accelera, MiniLLM), are made by a call
with that number, which has to divide all processes. Fairscale's takes all processes where it is larger.
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

_MAKES = "initialize_model_parallel"
_CHARACTERS = 200  # that cost a step
_SHRINKS = re.compile(
    rf"(?s)def {_MAKES}\((?:(?!\ndef ).)*?\bmin\(\s*\w*model_parallel_size\w*,\s*world_size\s*\)"
)
_ARGUMENTS = re.compile(r"(?:\w*_)?args\Z|opt(?:ions)?\Z")
_SIZE = "tensor_model_parallel_size"


class Groups(Value):
    """The ``flag`` that sizes a program's groups; ``switch`` is another without which there are none."""

    flag: str
    switch: str
    shrink: bool  # where there are fewer processes


def groups_of(program: File, project: Modules) -> Groups | None:
    """Return how a program groups its processes; None where it does not, or by what is no flag or several."""
    texts = []
    found = set()
    for file in project.files(program):
        spend(len(file.text) // _CHARACTERS, PYTHON)
        if _MAKES not in file.text:
            continue
        texts.append(file.text)
        code = project.code(file)
        found |= set() if code is None else {each for body in code.body for each in _made(body)}
    shrink = any(_SHRINKS.search(text) for text in texts)
    if len(found) != 1:
        return None
    flag, switch = found.pop()
    return Groups(flag, switch, shrink) if flag else None


def _made(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield the flag and the switch of each call that makes groups; no flag where another size is said."""
    names = _assigned(statement)
    for call, conditions in _calls(statement, ()):
        sizes = [*call.args[:1], *(each.value for each in call.keywords if each.arg == _SIZE)]
        alone = len(sizes) == 1 and len(call.args) + len(call.keywords) == 1
        switches = [each for each in conditions if any(_flag(node, names) for node in _expressions(each))]
        plain = len(switches) < 2 and all(_flag(each, names) for each in switches)
        flag = _flag(sizes[0], names) if alone and plain else ""
        yield flag, _flag(switches[0], names) if flag and switches else ""


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    return (inner for inner in ast.walk(node) if isinstance(inner, ast.expr))


def _calls(
    node: ast.AST, conditions: tuple[ast.expr, ...]
) -> Iterator[tuple[ast.Call, tuple[ast.expr, ...]]]:
    """Yield the calls within a node, with the conditions that they stand under."""
    spend(1, PYTHON)
    if isinstance(node, ast.Call) and _name(node.func) == _MAKES:
        yield node, conditions
    for field, value in ast.iter_fields(node):
        inner = conditions
        if isinstance(node, ast.If) and field in ("body", "orelse"):
            test = node.test if field == "body" else ast.UnaryOp(ast.Not(), node.test)
            inner = (*conditions, test)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield from _calls(each, inner)


def _assigned(statement: ast.stmt) -> dict[str, str]:
    """Return the flags that names stand for: ``size = args.size or get_world_size()``."""
    names: dict[str, str] = {}
    for node in ast.walk(statement):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            flag = _flag(node.value, {})
            name = node.targets[0].id
            names[name] = flag if names.get(name, flag) == flag else ""
    return names


def _flag(node: ast.expr, names: dict[str, str]) -> str:
    """Return the flag that an expression is worth, where it is given."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        node = node.values[0]
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    given = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return node.attr if given and _ARGUMENTS.match(node.value.id) else ""  # type: ignore[attr-defined]


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
