"""The overrides of a command that Hydra refuses before a program starts: its config has a key, or has it not.

Told where all files of the config are here. Hydra's own order counts: what an earlier override adds is there.
"""

from __future__ import annotations

import re

from cfglint.document.shell.processes import below
from cfglint.document.tree import Mapping, Scalar, target
from cfglint.errors import nearest
from cfglint.record import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.layers import Layers
    from cfglint.document.tree import Document, Node

_OVERRIDE = re.compile(r"""["']?(\+{0,2})([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)=(.?)""")
_ENDS = re.compile(r"[\\|;&]")
_OPEN = ("", "~", "null", "???")
_MERGED = "[{$"  # what is merged with what is there, or is not known
_OWN, _ALIKE = "hydra", 0.9
_MOST = 2  # keys of the same name that are told
ADDED, ABSENT = "added", "absent"
HAS = "It has "  # in front of the keys of the same name that a config has


class Refused(Value):
    """An override of a key at which Hydra stops, where it stands: ``added`` twice, or set and ``absent``.

    ``told`` names keys of the same name that the config has, or the one that may be meant; ``section`` is the
    one above the key that the config lacks.
    """

    key: str
    kind: str
    start: int
    end: int
    told: str = ""
    section: str = ""


def refused_overrides(document: Document, layers: Layers | None) -> list[Refused]:
    """Return the overrides of a command that its config makes impossible."""
    if layers is None or layers.beneath is None or layers.unread or layers.troubles or document.elsewhere:
        return []
    base = target(layers.beneath)
    if isinstance(base, Mapping) and "defaults" in base.entries:  # a base of the framework's that is not here
        return []
    return list(_refused(document, layers.beneath))


def _refused(document: Document, base: Node) -> Iterator[Refused]:
    new: list[tuple[str, ...]] = []
    known = said(document)
    for word in document.words:
        match = _OVERRIDE.match(word.spelled) if word.start >= 0 else None
        if match is None:
            continue
        signs, key, begins = match.groups()
        path = tuple(key.split("."))
        if path[0] == _OWN:
            continue
        if any(path[: len(each)] == each or each[: len(path)] == path for each in new):
            continue
        place = word.start + match.start(1), word.start + match.end(2)
        if signs == "+" and begins not in _MERGED and _is_given(base, path):
            yield Refused(key, ADDED, *place)
        elif not signs and _is_absent(base, path):
            others = [spelled for spelled in _leaves(base) if spelled.rpartition(".")[2] == path[-1]]
            alike = [each for each in others if each.partition(".")[0] == path[0]] or others
            told = f"{HAS}{' and '.join(alike)}" if 0 < len(alike) <= _MOST else ""
            beside = [each for each in _leaves(base) if each.rpartition(".")[0] == key.rpartition(".")[0]]
            near = nearest(key, [each for each in beside if each not in known], most=1, cutoff=_ALIKE)
            below = any(each.startswith(f"{key.rpartition('.')[0]}.") for each in others)
            told = f"Is {near[0]} meant?" if near and not below else told
            yield Refused(key, ABSENT, *place, told, _lacking(base, path))
        if signs:
            new.append(path)


def said_again(document: Document, key: str) -> str:
    """Return the key of the same name, deeper in the same section, that a command sets to the same value."""
    spelled = said(document)
    section, _, name = key.rpartition(".")
    others = [each for each in spelled if each.startswith(f"{section}.") and each.endswith(f".{name}")]
    same = [each for each in others if each != key and spelled[each] == spelled.get(key)]
    return same[0] if len(same) == 1 else ""


def said(document: Document) -> dict[str, str]:
    """Return the keys that a command sets, each with its value as it is spelled."""
    matches = [(_OVERRIDE.match(word.spelled), word.spelled) for word in document.words]
    return {match[2]: spelled[match.end(2) + 1 :] for match, spelled in matches if match is not None}


def _leaves(node: Node | None, above: str = "") -> Iterator[str]:
    node = target(node)
    for key, entry in node.entries.items() if isinstance(node, Mapping) else ():
        if isinstance(target(entry.value), Mapping):
            yield from _leaves(entry.value, f"{above}{key}.")
        else:
            yield f"{above}{key}"


def _is_given(node: Node | None, path: tuple[str, ...]) -> bool:
    """Whether a config has a plain value at a key, and not null."""
    node = below(node, *path)
    return isinstance(node, Scalar) and node.text not in _OPEN and "${" not in node.text


def _lacking(node: Node | None, path: tuple[str, ...]) -> str:
    """Return the uppermost section above a key that a config does not have; empty where it has them all."""
    for i, step in enumerate(path[:-1]):
        node = target(node)
        if not isinstance(node, Mapping) or step not in node.entries:
            return ".".join(path[: i + 1])
        node = node.entries[step].value
    return ""


def _is_absent(node: Node | None, path: tuple[str, ...]) -> bool:
    """Whether a config has the section of a key, or one above it, but nothing in it that leads to the key."""
    for step in path:
        node = target(node)
        if not isinstance(node, Mapping):
            return False  # a value, or what a reference leads to
        if step not in node.entries:
            return bool(node.entries) and not node.merges
        node = node.entries[step].value
    return False
