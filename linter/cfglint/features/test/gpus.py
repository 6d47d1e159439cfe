"""Texts that rules compare with a GPU's names, and that no GPU has: ``gpu.name == "H100"``.

Only a text that is a part of a name, or another spelling of one, is reported: a sheet (``--hardware``) or a
driver may know GPUs that the catalogue does not.
"""

from __future__ import annotations

import re

from cfglint.errors import HardwareError
from cfglint.hardware.catalogue import gpus
from cfglint.hardware.names import find
from cfglint.lang import runtime
from cfglint.lang import tree as t
from cfglint.lang.emit import compile_pattern
from cfglint.lang.show import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.errors import Complaint
    from cfglint.lang.pack import Pack

_PLAIN = re.compile(r"[^*?{}]*")
_SHORTEST = 2  # characters of what may be a part of a name


def misnamed(pack: Pack) -> list[Complaint]:
    """Return complaints about texts in a pack's own files that are no GPU's name, model or architecture."""
    known = gpus()
    names = {
        "gpu.name": [product for each in known for product in each.products],
        "gpu.model": [each.name for each in known],
        "gpu.arch": list(dict.fromkeys(each.arch for each in known)),
    }
    found = []
    for source in pack.sources():
        for statement in source.statements:
            asked = [each for node in t.walk(statement) for each in _asked(node) if each[0] in names]
            right = {_core(text) for fact, text, sign in asked if _is_one(text.value, sign, names[fact])}
            for fact, text, _ in asked:
                message = _complaint(fact, text.value, names[fact])
                if message and _core(text) not in right:  # else another spelling is asked for on purpose
                    found.append(source.complain(text.span, message))
    return found


def _asked(node: t.Node) -> Iterator[tuple[str, t.Text, str]]:
    """Yield the facts that a part of a rule compares with a text, the text, and how."""
    match node:
        case t.Compare(operands, operators):
            for left, operator, right in zip(operands, operators, operands[1:], strict=False):
                for one, other in ((left, right), (right, left)):
                    if isinstance(one, t.Name) and isinstance(other, t.Text):
                        yield one.name, other, operator
        case t.Member(t.Name(name), t.ListOf(items)):
            yield from ((name, item, "in") for item in items if isinstance(item, t.Text))
        case t.Like(t.Name(name), pattern):
            yield name, pattern, "like"
        case t.Choice(t.Name(name), arms):
            yield from ((name, word, "in") for words, _ in arms for word in words if isinstance(word, t.Text))


def _core(node: t.Text) -> str:
    """Return what a text or pattern asks for, in small letters without the stars at its ends."""
    return node.value.strip("*").lower()


def _complaint(fact: str, text: str, names: list[str]) -> str:
    """Return what to write for a text that no GPU has; nothing where it resembles none that one has."""
    asked = text.strip("*")
    if len(asked) < _SHORTEST or not _PLAIN.fullmatch(asked):
        return ""
    for name in names:
        at = name.lower().find(asked.lower())
        if at >= 0:
            part = name[at : at + len(asked)]
            instead = quote(name) if part == name else f"{fact} like {quote(f'*{part}*')}"
            such = "" if part == name else f", but there is {quote(name)}"
            return f"no GPU has {fact} {quote(text)}{such}: write {instead}"
    return _of_another(fact, asked)


def _is_one(text: str, sign: str, names: list[str]) -> bool:
    """Whether a GPU's name is a text, or is like it."""
    if sign != "like":
        return text in names
    pieces = compile_pattern(text)
    return any(runtime.match(pieces, name) is not None for name in names)


def _of_another(fact: str, text: str) -> str:
    """Return the complaint about a text that is what another fact, or ``--gpu``, calls a GPU."""
    try:
        meant = find(text).gpu
    except HardwareError:
        return ""
    name = {"gpu.name": meant.product, "gpu.model": meant.name, "gpu.arch": meant.arch}[fact]
    return f"no GPU has {fact} {quote(text)}: write {quote(name)}"
