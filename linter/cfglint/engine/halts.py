"""Where the program of a launch surely stops with the config that Hydra composes for it."""

from __future__ import annotations

from cfglint.document.tree import Mapping, target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cfglint.document.view import View
    from cfglint.engine.subject import Subject
    from cfglint.facts import Steps
    from cfglint.schema.table import Mistake

_OPEN = ("$", '"$', "'$", "…")  # words that may hold further overrides
STOPS = "document.stops"


def halts(subject: Subject) -> Iterator[Mistake]:
    """Yield the place where the program of a launch stops, where all of its config is here."""
    if subject.is_launch and subject.document.program is not None and _is_whole(subject.view):
        from cfglint.engine.halt import stop_of  # few programs are Hydra's

        yield from stop_of(subject)


def goes_on(subject: Subject) -> bool:
    """Whether the program of a launch is known to go on, where all of its config is here."""
    if not (subject.is_launch and subject.document.program is not None and _is_whole(subject.view)):
        return False
    from cfglint.engine.halt import halted_by

    return not halted_by(subject, subject.view, {})


def halts_by(subject: Subject, told: dict[Steps, object], again: Callable[[], View | None]) -> bool:
    """Whether a program that goes on stops at some keys' other values; with them ``again`` reads the file."""
    from cfglint.engine.halt import halted_by

    if not halted_by(subject, subject.view, told):
        return False
    view = again()  # other keys may read these
    return view is not None and halted_by(subject, view, told)


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
