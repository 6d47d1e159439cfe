"""How many processes share a model under ColossalAI's hybrid plugin, where a flag's word makes it.

``elif args.plugin == "3d": plugin = HybridParallelPlugin(tp_size=args.tp, pp_size=2)``: their product has to
divide all processes (hpcaitech/ColossalAI colossalai/booster/plugin/hybrid_parallel_plugin.py:1052-1054
@4f9953be).
"""

from __future__ import annotations

import ast
from math import prod

from cfglint.budget import spend
from cfglint.document.python.source import PYTHON
from cfglint.record import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from cfglint.document.python.modules import Modules
    from cfglint.document.tree import File

_MAKES = "HybridParallelPlugin"
_SIZES = ("tp_size", "pp_size")


class Hybrid(Value):
    """The word of ``--plugin`` that makes it, and its ``sizes``: numbers, or flags that say them."""

    word: str
    sizes: tuple[int | str, ...]

    def shared(self, said: Mapping[str, object]) -> int | None:
        """Return how many processes share a model, by what is said of flags; None for another plugin."""
        sizes = [said.get(each) if isinstance(each, str) else each for each in self.sizes]
        known = [each for each in sizes if isinstance(each, int)]
        return prod(known) if said.get("plugin") == self.word and len(known) == len(sizes) else None


def hybrid_of(program: File, project: Modules) -> Hybrid | None:
    """Return how a program makes the plugin; None where it does not, or in several ways."""
    if f"{_MAKES}(" not in program.text:
        return None
    code = project.code(program)
    nodes = code.nodes() if code is not None else []
    spend(len(nodes), PYTHON)
    found = {(word, sizes) for node in nodes if isinstance(node, ast.If) for word, sizes in _made(node)}
    if len(found) != 1:
        return None
    word, sizes = found.pop()
    return Hybrid(word, sizes) if len(sizes) == len(_SIZES) else None


def _made(branch: ast.If) -> list[tuple[str, tuple[int | str, ...]]]:
    """Return the sizes of the plugins that a branch on ``args.plugin`` makes."""
    test = branch.test
    if not isinstance(test, ast.Compare) or ast.unparse(test.left) != "args.plugin":
        return []
    word = test.comparators[0]
    if not isinstance(test.ops[0], ast.Eq) or not isinstance(word, ast.Constant):
        return []
    inner = (node for body in branch.body for node in ast.walk(body))
    calls = (node for node in inner if isinstance(node, ast.Call) and ast.unparse(node.func) == _MAKES)
    return [(str(word.value), _sizes(call)) for call in calls]


def _sizes(call: ast.Call) -> tuple[int | str, ...]:
    """Return both sizes; fewer where one is neither a number nor a flag."""
    sizes: list[int | str] = []
    for each in call.keywords:
        if each.arg in _SIZES and isinstance(each.value, ast.Constant) and type(each.value.value) is int:
            sizes.append(each.value.value)
        elif each.arg in _SIZES and ast.unparse(each.value).startswith("args."):
            sizes.append(ast.unparse(each.value).removeprefix("args."))
    return tuple(sizes)
