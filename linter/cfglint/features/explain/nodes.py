"""What a derivation is made of: nodes that stand for names and expressions, and the tree that is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cfglint.engine.sensitivity import Move
    from cfglint.features.explain.provenance import Source
    from cfglint.lang import tree as t
    from cfglint.lang.types import Type

_ASIDE = 2  # levels that what chose a branch gets less than the branch


@dataclass(frozen=True, slots=True)
class Node:
    """A name or an expression with its value; ``numbers`` is ``formula`` with the numbers put in.

    ``chosen`` says what chose the branches that the formula has left.
    """

    name: str
    value: object
    kind: Type
    text: str
    origin: Source
    formula: str = ""
    numbers: str = ""
    chosen: tuple[str, ...] = ()
    children: tuple[Child, ...] = ()
    moves: tuple[Move, ...] = ()


@dataclass(frozen=True, slots=True)
class Child:
    """A node as its parent uses it: as which parameter or role, as the largest or as what fails."""

    node: Node
    label: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Derivation:
    """A rule on one file and target. ``applies`` is why it does not speak of the file, if it does not."""

    rule: t.Rule
    path: str
    target: str | None
    framework: str | None
    verdict: str
    because: str
    said: str
    condition: Node | None
    requirement: Node
    leaves: tuple[Node, ...]  # what moves the result, whether the tree shows it or not
    results: tuple[str, ...]  # the quantities that they move
    section: str | None = None  # where each section of the file is a job of its own


@dataclass(frozen=True, slots=True)
class Shown:
    """A node of the tree; ``state`` is full, above (told before) or folded (deeper than asked for)."""

    node: Node
    label: str
    mark: str
    state: str
    children: tuple[Shown, ...]


def fold(roots: tuple[Node, ...], depth: int) -> tuple[Shown, ...]:
    """Return the trees of ``roots``, each node in full where it first stands, down to ``depth`` levels."""
    told: set[int] = set()

    def shown(child: Child, left: int) -> Shown:
        node = child.node
        # What chose a branch matters less than what is in it.
        left = max(left - _ASIDE, 0) if child.label == "chooses" else left
        if not node.children:
            return Shown(node, child.label, child.mark, "full", ())
        if id(node) in told:
            return Shown(node, child.label, child.mark, "above", ())
        if left == 0:
            return Shown(node, child.label, child.mark, "folded", ())
        told.add(id(node))
        below = tuple(shown(c, left - 1) for c in node.children)
        return Shown(node, child.label, child.mark, "full", below)

    return tuple(shown(Child(root), depth) for root in roots)


def reached(*roots: Node) -> list[Node]:
    """Return every node of a graph once, in the order in which a reader meets them."""
    found: dict[int, Node] = {}
    waiting = list(roots)
    while waiting:
        node = waiting.pop(0)
        if id(node) not in found:
            found[id(node)] = node
            waiting[:0] = [child.node for child in node.children]
    return list(found.values())


def unique(children: Iterable[Child]) -> tuple[Child, ...]:
    """Leave out what stands twice in one expression; the first mention stays."""
    found: dict[int, Child] = {}
    for child in children:
        found.setdefault(id(child.node), child)
    return tuple(found.values())
