"""A number that a script multiplies out of others, as WORLD_SIZE=$((TP*PP*DP)): the factor that may vary.

Where other factors are written along, that one takes what is left of the new number.
"""

from __future__ import annotations

import re
from math import prod

from cfglint.document.edits import replace_value
from cfglint.document.trace import references
from cfglint.document.tree import Composite, Scalar, target, walk
from cfglint.repair.patch import Change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cfglint.document.trace import Trace
    from cfglint.repair.invert import Written

_NAME = re.compile(r"(\w+)=[\"']?(?:\$\{\w+:?[-=])?\Z")  # before its value
_FARTHEST = 80


def factors_of(trace: Trace) -> tuple[Scalar, ...]:
    """Return the definitions that a value is the product of; nothing where it is none."""
    node = trace.node
    return node.reads if isinstance(node, Composite) and node.product else ()


def readers_of(trace: Trace) -> Iterator[str]:
    """Yield the keys that read all factors of a product: what is made of it moves with it."""
    found = [references(trace.view, factor) for factor in factors_of(trace)]
    yield from (key for key in (found[0] if found else ()) if all(key in each for each in found))


def change_of_a_factor(trace: Trace, written: Written, new: Mapping[object, object]) -> Change | None:
    """Return the change of the factor that makes a product another number, where just one may vary.

    ``new`` are the values of definitions that are written along, by their identity. It is no factor that
    has a meaning of its own to the program; None where not just one is left, or no whole number is.
    """
    factors, number, document = factors_of(trace), written.value, trace.view.document
    own = {id(scalar): scalar for scalar in factors}
    if type(number) is not int or len(own) < len(factors) or document.root is None:
        return None
    meant = {id(target(each)) for each in walk(document.root)}
    free = [scalar for at, scalar in own.items() if at not in meant]
    free = [scalar for scalar in free if scalar.text != "1"] or free
    if len(free) != 1:
        return None
    others = [new.get(at, scalar.text) for at, scalar in own.items() if scalar is not free[0]]
    rest = prod(int(str(each)) for each in others if str(each).isdecimal())
    name = _NAME.search(document.file.text, max(0, free[0].start - _FARTHEST), free[0].start)
    if name is None or rest < 1 or number % rest:
        return None
    factor, value = free[0], number // rest
    edit = replace_value(document, factor, value, trace.view.dialect)
    title = f"{name[1]} to {value}" if str(value) != factor.text else ""
    return None if edit is None else Change(edit, title, written.key, factor.text)
