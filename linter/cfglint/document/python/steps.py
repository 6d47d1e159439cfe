"""Whether a program counts each micro-batch as a step, so that accumulation makes its training shorter.

Such a loop adds one to its steps for each batch of the loader, accumulates all the same, and stops at a
number of steps that is worked out from the accumulation: with twice of that, it sees half of the samples.
"""

from __future__ import annotations

import ast
import re

from cfglint.budget import spend
from cfglint.document.python.source import PYTHON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.python.modules import Modules
    from cfglint.document.tree import File

_CHARACTERS = 200  # that cost a step
_STEP = re.compile(r"(?i)\w*step\w*\Z")
_LIMIT = re.compile(r"(?i)(?:max|total|num)\w*steps\Z")
_ACCUMULATES = re.compile(r"(?i)accumul")
_SYNCS = re.compile(r"(?i)accumul|sync|update_every")


def counts_micro(program: File, project: Modules) -> bool:
    """Whether a program's own loop stops after so many micro-batches, and accumulates them."""
    spend(len(program.text) // _CHARACTERS, PYTHON)
    if not _ACCUMULATES.search(program.text) or "+= 1" not in program.text:
        return False
    code = project.code(program)
    loops = code.nodes() if code is not None else []
    return any(_counts(node) for node in loops if isinstance(node, ast.For))


def _counts(loop: ast.For) -> bool:
    """Whether a loop over batches adds one to what it is stopped by, whatever is accumulated."""
    inner = [node for body in loop.body for node in ast.walk(body)]
    spend(len(inner), PYTHON)
    if not any(_ACCUMULATES.search(name) for name in _named(inner)):
        return False
    if any(isinstance(node, ast.For) and _steps(node.body) for node in inner):
        return False  # that one is over the batches
    skips = (node for node in inner if isinstance(node, ast.If) and _skips(node))
    limits = {left for node in inner if isinstance(node, ast.Compare) for left in _limited(node)}
    return not any(True for _ in skips) and not limits.isdisjoint(_steps(loop.body))


def _steps(body: list[ast.stmt]) -> set[str]:
    """Return the counters of steps that statements move on without asking anything."""
    found = set()
    for node in body:
        if isinstance(node, ast.With):
            found |= _steps(node.body)
        one = isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
        if one and isinstance(node.op, ast.Add) and _STEP.match(node.target.id):  # type: ignore[attr-defined]
            found.add(node.target.id)  # type: ignore[attr-defined]
    return found


def _limited(node: ast.Compare) -> Iterator[str]:
    """Yield what a comparison holds against a number of steps at which a training ends."""
    right = node.comparators[0]
    name = right.attr if isinstance(right, ast.Attribute) else getattr(right, "id", "")
    if (
        isinstance(node.left, ast.Name)
        and isinstance(node.ops[0], (ast.GtE, ast.Gt, ast.Eq))
        and _LIMIT.match(name)
    ):
        yield node.left.id


def _skips(node: ast.If) -> bool:
    """Whether the rest of a step is left out until enough is accumulated."""
    asks = any(_SYNCS.search(name) for name in _named(ast.walk(node.test)))
    return asks and any(isinstance(each, ast.Continue) for body in node.body for each in ast.walk(body))


def _named(nodes: Iterator[ast.AST] | list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, (ast.Attribute, ast.Name)):
            yield node.attr if isinstance(node, ast.Attribute) else node.id
