"""Where the program of a launch surely stops with the config that Hydra composes for it."""

from __future__ import annotations

from cfglint.document.tree import ABSENT, Mapping, Missing, target
from cfglint.document.view import MappingView
from cfglint.schema.table import Mistake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.view import View
    from cfglint.engine.subject import Subject

_OPEN = ("$", '"$', "'$", "…")  # words that may hold further overrides
STOPS = "document.stops"


def halts(subject: Subject) -> Iterator[Mistake]:
    """Yield the place where a program stops: ``key`` is not there, or ``kind`` says what it raises."""
    document, view = subject.document, subject.view
    if not subject.is_launch or document.program is None or not _is_whole(view):
        return
    from cfglint.document.python.stops import Stops  # few programs are Hydra's
    from cfglint.document.python.surely import ABSENT as NOWHERE
    from cfglint.document.python.surely import SECTION, UNKNOWN, Known

    def answer(path: tuple[str, ...]) -> object:
        value = view.get(path)
        if value is ABSENT:
            above = path[:-1]
            there = not above or isinstance(view.get(above), MappingView)
            return NOWHERE if there and not view.has(path) else UNKNOWN
        if isinstance(value, MappingView):
            return SECTION
        if isinstance(value, Missing) or not (value is None or isinstance(value, (str, bool, int, float))):
            return UNKNOWN
        return Known(value)

    stop = document.program.program.once(Stops).find(answer)
    if stop is not None:
        node = document.program.node
        told = " and ".join(f"{key} {_shown(view, key)}" for key in stop.causes)
        yield Mistake(told, node.start, node.end, key=stop.key, text=stop.place, kind=stop.raised)


def _is_whole(view: View) -> bool:
    """Whether all files of the config that lies beneath a command are here, and all of its overrides."""
    layers = view.layers
    if (
        layers is None
        or layers.beneath is None
        or layers.unread
        or layers.troubles
        or view.document.elsewhere
    ):
        return False
    base = target(layers.beneath)
    if not isinstance(base, Mapping) or "defaults" in base.entries:
        return False
    return not any(word.spelled.startswith(_OPEN) for word in view.document.words)


def _shown(view: View, key: str) -> str:
    value = view.get(tuple(key.split(".")))
    return str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)
