"""A number that a script multiplies out of others, as WORLD_SIZE=$((TP*PP*DP)): the factor that may vary.

Where other factors are written along, that one takes what is left of the new number. What a loop, an
argument of the script or one of its branches says is multiplied where it is used: ``$((ACC * 2))``.
"""

from __future__ import annotations

import re
from math import prod

from cfglint.document.edits import replace_value
from cfglint.document.spoken import spoken
from cfglint.document.trace import references
from cfglint.document.tree import Composite, Scalar, Unresolved, target, walk
from cfglint.record import Value
from cfglint.repair.patch import Change
from cfglint.text import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cfglint.document.trace import Trace
    from cfglint.document.tree import Document
    from cfglint.repair.invert import Written

_NAME = re.compile(r"(\w+)=[\"']?(?:\$\{\w+:?[-=])?\Z")  # before its value
_FARTHEST = 80
_VARIABLE = re.compile(r"(?:--[\w-]+=)?(\"?\$(?:(\w+)|\{(\w+)\})\"?)")
_PLAIN = r"""["']?(?:\d+|\$\{?\d+(?::-\d+)?\}?)["']?[ \t]*(?:[;&|#\n)]|\Z)"""  # numbers and arguments
_READS = re.compile(r"(?m)(?:^|[;&|])[ \t]*(?:source|\.)[ \t]")


class Times(Value):
    """So many times what is there."""

    by: int


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


def change_of_a_variable(trace: Trace, written: Written) -> Change | None:
    """Return the change of a word that is one variable to so many times that; None for any other.

    A variable that is computed may count GPUs by itself, and so may one that another script sets.
    """
    node, document = trace.node, trace.view.document
    if not isinstance(written.value, Times) or not isinstance(node, Unresolved) or trace.source is not None:
        return None
    found = _VARIABLE.fullmatch(document.file.text, node.start, node.end)
    if found is None or document.listed or not document.owns(node.start, node.end):
        return None
    name = found[2] or found[3]
    if not name.isdecimal() and not _is_plain(document, name):
        return None
    new = f"$(({'$' if name.isdecimal() else ''}{name} * {written.value.by}))"
    return Change(
        Edit(found.start(1), node.end, new), f"{spoken(written.path)} to {new}", written.key, found[1]
    )


def _is_plain(document: Document, name: str) -> bool:
    """Whether a script gives a variable numbers as they are, or an argument, wherever it does."""
    text, before = document.file.text, r"(?m)(?:^|[;&|({ \t])"
    if re.search(rf"{before}{name}=(?!{_PLAIN})", text):
        return False
    named = rf"{before}(?:{name}=|for[ \t]+{name}[ \t]+in\b|read\b[^\n;|&]*\b{name}\b)"
    return re.search(named, text) is not None or _READS.search(text) is None
