"""A stop of a program at its config, and the keys that it misses, with what the configs beside it have."""

from __future__ import annotations

from cfglint.document.python.later import Later
from cfglint.document.python.stops import Stops
from cfglint.document.python.surely import ABSENT as NOWHERE
from cfglint.document.python.surely import SECTION, UNKNOWN, Known
from cfglint.document.scalars import HYDRA, resolve
from cfglint.document.siblings import said
from cfglint.document.tree import ABSENT, Mapping, Scalar
from cfglint.document.tree import Missing as Blank
from cfglint.document.view import MappingView
from cfglint.record import Record, Value, field, replace
from cfglint.schema.table import Mistake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.document.python.stops import Stop
    from cfglint.document.tree import File
    from cfglint.document.view import View
    from cfglint.engine.subject import Subject
    from cfglint.facts import Steps

_MOST = 20  # keys that a program misses
_ANY = "{…}"  # of a section
_PLAIN = (str, bool, int, float)


class Missing(Value):
    """A key that a program reads and nobody sets, and the value that files beside its config have, if any.

    Of a stop by what the config says, a key with another value, and where the program stops with that.
    """

    key: str
    value: object = None
    file: str = ""
    later: bool = False  # where it is not known that the program comes


def stop_of(subject: Subject) -> Iterator[Mistake]:
    """Yield the place where a program stops: ``key`` is not there, or ``kind`` says what it raises.

    All that is missing is told with it: a program that has one key stops at the next.
    """
    document, view = subject.document, subject.view
    assert document.program is not None
    stops, answers = document.program.program.once(Stops), _Answers(view)
    stop = stops.find(answers.of)
    if stop is None:
        return
    node = document.program.node
    told = " and ".join(f"{key} {answers.shown(key)}" for key in stop.causes)
    missing: list[Missing] = []
    further: Stop | None = stop
    while further is not None and further.key and len(answers.lent) < _MOST:
        files = document.siblings(further.place) if document.siblings is not None else []
        one = answers.lend(further.key, files)
        missing += [one] if one is not None else []
        further = stops.find(answers.of)
    missing += [Missing(key, value, answers.then(stops, key, value)) for key, value in stop.wanted]
    also, raised = ", ".join(each.key for each in missing[1:]), stop.raised
    if stop.key and further is None:
        later = _later(subject, stops, answers)
        missing += later
        raised = f", nor what may be read later: {', '.join(each.key for each in later)}" if later else ""
    missing += [each for each in answers.sections if not _has_below(missing, each.key)]
    if stop.key and further is not None and further.raised:  # what the other files say leads there
        causes = set(further.causes)
        able = {key: value for key, value in further.wanted if not answers.then(stops, key, value)}
        missing = [Missing(each.key, able.get(each.key)) if each.key in causes else each for each in missing]
        led = " and ".join(f"{key} {answers.shown(key)}" for key in further.causes)
        raised = f". With {led} it stops at {further.place}: {further.raised}"
    note, place = told or also, (node.start, node.end)
    yield Mistake(note, *place, key=stop.key, text=stop.place, kind=raised, missing=tuple(missing))


def halted_by(subject: Subject, view: View, told: dict[Steps, object]) -> bool:
    """Whether a program stops by what some keys say, and by nothing else; without any, whether it stops."""
    assert subject.document.program is not None
    given = told.items()
    lent: dict[Steps, object] = {path: Known(value) for path, value in given if isinstance(value, _PLAIN)}
    stop = subject.document.program.program.once(Stops).find(_Answers(view, lent).of)
    return stop is not None and (not told or {tuple(key.split(".")) for key in stop.causes} <= lent.keys())


def _later(subject: Subject, stops: Stops, answers: _Answers) -> list[Missing]:
    """Return what may be read later and is not there either."""
    siblings, found = subject.document.siblings, []
    while len(answers.lent) < _MOST:
        places = Later(stops.program, stops.modules, answers.of).keys()
        new = {key: place for key, place in places.items() if tuple(key.split(".")) not in answers.lent}
        for key, place in new.items():
            one = answers.lend(key, siblings(place) if siblings is not None else [])
            found += [replace(one, later=True)] if one is not None else []
        if not new:
            break
    return found


class _Answers(Record):
    """What the config of a launch answers to a program, with what is ``lent`` where it has nothing."""

    view: View
    lent: dict[Steps, object] = field(factory=dict)
    sections: list[Missing] = field(factory=list)

    def of(self, path: tuple[str, ...]) -> object:
        """Return what is at a key, in the words of the walk."""
        if path in self.lent:
            return self.lent[path]
        view, above = self.view, path[:-1]
        value = view.get(path)
        if value is ABSENT:
            there = not above or isinstance(view.get(above), MappingView) or self.lent.get(above) is SECTION
            return NOWHERE if there and not view.has(path) else UNKNOWN
        if isinstance(value, MappingView):
            return SECTION
        if isinstance(value, Blank) or not (value is None or isinstance(value, _PLAIN)):
            return UNKNOWN
        return Known(value)

    def shown(self, key: str) -> str:
        """Return a value as a command says it."""
        path = tuple(key.split("."))
        lent = self.lent.get(path)
        value = lent.value if isinstance(lent, Known) else self.view.get(path)
        return str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)

    def then(self, stops: Stops, key: str, value: object) -> str:
        """Return where a program stops with another value of a key; empty where it goes on."""
        own, path = self.lent, tuple(key.split("."))
        try:
            self.lent = {**own, path: Known(value)}
            stop = stops.find(self.of)
        finally:
            self.lent = own
        return "" if stop is None else f"{stop.place}: {stop.raised or f'{stop.key} is not there'}"

    def lend(self, key: str, files: Sequence[File]) -> Missing | None:
        """Answer as other files do, or that nobody knows; None of a section, whose keys are asked next."""
        path = tuple(key.split("."))
        found = said(files, path)
        if found is None:
            self.lent[path] = UNKNOWN
            return Missing(key)
        node, file = found
        if isinstance(node, Mapping):
            self.lent[path] = SECTION
            self.sections.append(Missing(key, _ANY, file))
            return None
        assert isinstance(node, Scalar)
        value = resolve(node, HYDRA)
        self.lent[path] = Known(value)
        return Missing(key, value, file)


def _has_below(missing: Sequence[Missing], key: str) -> bool:
    return any(each.key.startswith(f"{key}.") for each in missing)
