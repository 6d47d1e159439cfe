"""One target's facts as they stand: what rests on what, and so what stays where some of them move."""

from __future__ import annotations

from operator import itemgetter

from cfglint.engine.dependencies import WatchedValues, settled, watched
from cfglint.engine.judge import judge
from cfglint.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from cfglint.engine.run import Run
    from cfglint.engine.subject import Judged, Subject, Verdict
    from cfglint.facts import Values
    from cfglint.lang.pack import CompiledRule

    Facts: TypeAlias = Mapping[str, object]
    Key: TypeAlias = tuple[tuple[str, type, object], ...]

_RESULTS = "results."


class _Moved(Record):
    """What some facts move on one target: the rules among that, and the facts that stay."""

    kept: dict[str, object]
    rules: list[CompiledRule]


class Base(Record):
    """One target's facts as they stand, with what rests on what.

    ``rules`` are those that no repair may break, ``before`` what does not simply hold now, by code,
    ``results`` the names of what a run learns from.
    """

    given: Facts
    watched: WatchedValues
    rules: list[CompiledRule]
    results: tuple[str, ...]
    subject: Subject
    before: dict[str, Verdict]
    trials: dict[Key, Values]
    _readers: dict[str, list[str]]
    _resting: dict[str, set[str]]
    _moved: dict[frozenset[str], _Moved]

    def __init__(self, run: Run, judged: Judged) -> None:
        self.given = judged.values.given
        self.watched = watched(judged.subject, self.given)
        aside = run.aside(judged.subject, self.watched)
        self.rules = [*run.rules(judged.subject, self.watched), *aside]
        for rule in self.rules:
            self.watched.noting(rule.code, rule.test)
        self.results = tuple(name for name in self.watched.pack.lets if name.startswith(_RESULTS))
        for name in self.results:
            self.watched.noting(name, itemgetter(name))
        self.subject = settled(judged.subject, self.watched)
        self.before = {
            verdict.rule.code: verdict for verdict in (*judged.verdicts, *judge(aside, self.watched))
        }
        self.trials = {}
        self._readers = self.watched.readers()
        self._resting = {}
        self._moved = {}

    def moved(self, names: Iterable[str]) -> _Moved:
        """Return what moves with some facts."""
        key = frozenset(names)
        if any(name.startswith("$") for name in key):  # keys: what reads them is not noted
            return _Moved({}, self.rules)
        if key not in self._moved:
            moved = set[str]().union(*map(self._resting_on, key))
            rules = [rule for rule in self.rules if rule.code in moved]
            self._moved[key] = _Moved(self.watched.without(moved), rules)
        return self._moved[key]

    def _resting_on(self, name: str) -> set[str]:
        """Return what rests on a fact."""
        if name not in self._resting:
            self._resting[name] = self.watched.resting_on((name,), self._readers)
        return self._resting[name]
