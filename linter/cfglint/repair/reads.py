"""Whether a fact reads the same in an edited text: then it is the same, whatever it is."""

from __future__ import annotations

from cfglint.document.items import EVERY
from cfglint.lang import tree as t
from cfglint.lang.types import is_number
from cfglint.lang.values import Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cfglint.document.view import View
    from cfglint.engine.describe import Origins
    from cfglint.facts import Steps


# What a command starts on all machines, of which nobody may know how many there are, goes with each one's.
_OF_ALL = (("launch", "processes"), ("launch", "together"))
_EACH = ("launch", "processes_per_node")


def reads_the_same(
    name: str, origins: Origins, before: View, after: View, stays: Callable[[str], bool]
) -> bool:
    """Whether all that a fact may be read from says the same in two texts, or comes to what ``stays``."""
    return all(_is_same(path, before, after) for path in _paths(name, origins, stays))


def _paths(name: str, origins: Origins, stays: Callable[[str], bool]) -> Iterator[Steps]:
    """Yield each path that may have a say in a fact, through lets and all bindings; of lists the whole."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current in seen or (current != name and stays(current)):
            continue
        seen.add(current)
        for node in _sources(current, origins):
            for part in t.walk(node):
                if isinstance(part, t.Path):
                    steps = part.steps
                    yield steps[: steps.index(EVERY)] if EVERY in steps else steps
            waiting += origins.names_in(node)


def _sources(name: str, origins: Origins) -> Iterator[t.Expr]:
    for binding in origins.bindings.get(name, ()):
        yield from filter(None, (binding.source, binding.when, binding.default, binding.null))
    let = origins.own_lets.get(name) or origins.symbols.lets.get(name)
    if let is not None:
        yield let.body


def _is_same(path: Steps, before: View, after: View) -> bool:
    if before.has(path) != after.has(path):
        return False
    old, new = before.get(path), after.get(path)
    if path[:2] in _OF_ALL and not is_number(old) and not _is_same(_EACH, before, after):
        return False
    if isinstance(old, Unknown) or isinstance(new, Unknown) or type(old) is not type(new):
        return repr(old) == repr(new)
    return (old == new) is True or old is new
