"""Which keys of its config a program of Hydra's sets itself: what a file says of them does not count."""

from __future__ import annotations

import ast

from cfglint.document.python.surely import is_named
from cfglint.document.tree import Entry, Mapping, Scalar, Unresolved, child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.python.modules import Modules
    from cfglint.document.python.values import Span
    from cfglint.document.tree import File


def stored_keys(program: File, project: Modules) -> dict[str, Span]:
    """Return the keys that functions of a ``@hydra.main`` program set on their config, and where.

    A function's config is the parameter of that name, as Hydra's main has it, or main's own.
    """
    code = project.code(program) if "hydra.main" in program.text else None
    found: dict[str, Span] = {}
    if code is None:
        return found
    for function in code.nodes():
        if not isinstance(function, ast.FunctionDef):
            continue
        names = {each.arg for each in function.args.args} & {"config", "cfg"}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Constant):
                keys = {_key(each, names): each for each in node.targets}
                found |= {key: code.span(each) for key, each in keys.items() if key}
    return found


def unsettled(keys: dict[str, Span], program: File) -> Mapping:
    """Return a tree of keys that a program sets to values that nobody knows."""
    base = Mapping(0, flow=True)
    for key, span in keys.items():
        *sections, last = key.split(".")
        holder = base
        for section in sections:
            below = child(holder, section)
            if not isinstance(below, Mapping):
                below = Mapping(span[0], flow=True)
                holder.entries[section] = Entry(Scalar(section, *span, '"'), below)
            holder = below
        why = f"the program sets {key} itself, in {program.path}"
        holder.entries[last] = Entry(Scalar(last, *span, '"'), Unresolved(key, *span, why=why))
    return base


def _key(node: ast.expr, names: set[str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed(parts)) if any(is_named(node, name) for name in names) else ""
