"""What the derivation of a rule's verdict is made of: a graph of names and expressions, each once."""

from __future__ import annotations

from cfglint.engine.evaluation_scope import HERE
from cfglint.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cfglint.engine.evaluation_scope import Source
    from cfglint.engine.knobs import Move
    from cfglint.lang import tree as t
    from cfglint.lang.types import Type


class Node(Record):
    """A name or an expression with its value; ``numbers`` is ``formula`` with the numbers put in.

    ``chosen`` says what chose the branches that the formula has left.
    """

    name: str
    value: object
    kind: Type
    text: str
    origin: Source = HERE
    formula: str = ""
    numbers: str = ""
    chosen: tuple[str, ...] = ()
    children: tuple[Child, ...] = ()
    moves: tuple[Move, ...] = ()


class Child(Record):
    """A node as its parent uses it: as which parameter or role, as the largest or as what fails."""

    node: Node
    label: str = ""
    mark: str = ""


class Derivation(Record):
    """A rule on one file and target; ``because`` is why it does not speak of the file, or is undecided.

    The requirement has no text where the rule does not speak. ``leaves`` are what moves the ``results``,
    quantities of the requirement, whether the tree shows it or not. ``section`` is where each section of the
    file is a job of its own, ``alike`` are further targets of the same verdict, ``cases`` what was assumed.
    """

    rule: t.Rule
    path: str
    target: str | None
    framework: str | None
    section: str | None
    verdict: str
    because: str
    message: str
    condition: Node | None
    requirement: Node
    leaves: tuple[Node, ...] = ()
    results: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()

    @property
    def roots(self) -> tuple[Node, ...]:
        """The condition, if there is one, and the requirement."""
        return (self.requirement,) if self.condition is None else (self.condition, self.requirement)


def reached(roots: Iterable[Node]) -> list[Node]:
    """Return every node of a graph once, in the order in which a reader meets them."""
    reached: dict[int, Node] = {}
    waiting = list(roots)
    while waiting:
        node = waiting.pop(0)
        if id(node) not in reached:
            reached[id(node)] = node
            waiting[:0] = [child.node for child in node.children]
    return list(reached.values())


def unique(children: Iterable[Child]) -> tuple[Child, ...]:
    """Leave out what stands twice in one expression; the first mention stays."""
    first: dict[int, Child] = {}
    for child in children:
        first.setdefault(id(child.node), child)
    return tuple(first.values())
