"""One target's facts as they stand: what rests on what, and so what stays where some of them move."""

from __future__ import annotations

from operator import itemgetter

from cfglint.engine.dependencies import WatchedValues, settled, watched
from cfglint.engine.judge import judge
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    from cfglint.engine.run import Run
    from cfglint.engine.subject import Judged, Subject, Verdict
    from cfglint.facts import Values
    from cfglint.lang.pack import CompiledRule

    Facts: TypeAlias = Mapping[str, object]
    Key: TypeAlias = tuple[tuple[str, type, object], ...]

_RESULTS = "results."
GPUS = frozenset(("gpu.count", "gpus_per_node", "num_nodes"))  # missing where a target names no number
SOME_GPUS = tuple({"gpu.count": n, "gpus_per_node": n, "num_nodes": 1} for n in (1, 8))


class Stand(Record):
    """Facts as they stand, with what rests on what, as far as was asked."""

    watched: WatchedValues
    _readers: dict[str, list[str]] = field(factory=dict, init=False)
    _resting: dict[str, set[str]] = field(factory=dict, init=False)
    _kept: dict[frozenset[str], dict[str, object]] = field(factory=dict, init=False)

    def note(self, label: str, ask: Callable[[Values], object]) -> None:
        """Note what a test rests on, under its label."""
        if label not in self.watched.reads:
            self.watched.noting(label, ask)
            self._readers, self._resting, self._kept = {}, {}, {}

    def resting_on(self, names: Iterable[str]) -> set[str]:
        """Return what rests on some facts, and these."""
        self._readers = self._readers or self.watched.readers()
        for name in names:
            if name not in self._resting:
                self._resting[name] = self.watched.resting_on((name,), self._readers)
        return set[str]().union(*(self._resting[name] for name in names))

    def kept(self, names: Iterable[str]) -> dict[str, object]:
        """Return the facts that stay where some move."""
        key = frozenset(names)
        if key not in self._kept:
            keys = any(name.startswith("$") for name in key)  # what reads them is not noted
            self._kept[key] = {} if keys else self.watched.without(self.resting_on(key))
        return self._kept[key]


class _Moved(Record):
    """What some facts move on one target: the rules among that, and the facts that stay."""

    kept: dict[str, object]
    rules: list[CompiledRule]


class Base(Record):
    """One target's facts as they stand, with what rests on what.

    ``rules`` are those that no repair may break, ``before`` what does not simply hold now, by code,
    ``results`` the names of what a run learns from.
    """

    judged: Judged
    given: Facts
    rules: list[CompiledRule]
    results: tuple[str, ...]
    subject: Subject
    before: dict[str, Verdict]
    trials: dict[Key, Values]
    _here: Stand
    _elsewhere: list[Stand]
    _moved: dict[frozenset[str], _Moved]

    def __init__(self, run: Run, judged: Judged) -> None:
        self.judged = judged
        self.given = judged.values.given
        values = watched(judged.subject, self.given)
        self._here, self._elsewhere = Stand(values), []
        aside = run.aside(judged.subject, values)
        self.rules = [*run.rules(judged.subject, values), *aside]
        for rule in self.rules:
            self._here.note(rule.code, rule.test)
        self.results = values.pack.lets_from(_RESULTS)
        for name in self.results:
            values.noting(name, itemgetter(name))
        self.subject = settled(judged.subject, values)
        self.before = {verdict.rule.code: verdict for verdict in (*judged.verdicts, *judge(aside, values))}
        self.trials = {}
        self._moved = {}

    def moved(self, names: Iterable[str]) -> _Moved:
        """Return what moves with some facts."""
        key = frozenset(names)
        if key not in self._moved:
            keys = any(name.startswith("$") for name in key)
            moved = set() if keys else self._here.resting_on(key)
            rules = [rule for rule in self.rules if keys or rule.code in moved]
            self._moved[key] = _Moved(self._here.kept(key), rules)
        return self._moved[key]

    def on_some_numbers(self) -> list[Stand]:
        """Return the facts on one and on eight GPUs."""
        if not self._elsewhere:
            each = (self.judged.values.but(number).again(WatchedValues) for number in SOME_GPUS)
            self._elsewhere = [Stand(values) for values in each if isinstance(values, WatchedValues)]
        return self._elsewhere
