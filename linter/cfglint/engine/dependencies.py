"""Facts that note what each of them rests on, so that a change computes again only what it touches.

What a computation reads decides what it gives: a name whose reads, and theirs in turn, did not change is
worth the same as before, whatever branch it took. So one evaluation tells what may be taken over into another
one that differs in a target's facts (fit.py) or in a knob (repair/).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from cfglint.engine.judge import values_for
from cfglint.facts import Values
from cfglint.record import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cfglint.engine.subject import Subject
    from cfglint.lang.pack import Spec

T = TypeVar("T")


class WatchedValues(Values):
    """Facts that note who read what: ``reads`` by name, or by the label of a whole test."""

    __slots__ = ("_asking", "_row_reads", "reads")

    def __init__(self, *context: object) -> None:
        self.reads: dict[str, dict[str, None]] = {}
        self._asking: list[str] = []
        self._row_reads: dict[str, dict[str, None]] = {}
        super().__init__(*context)  # type: ignore[arg-type]

    def __getitem__(self, name: str) -> object:
        asking = self._asking
        if asking:
            self._noted(asking[-1])[name] = None
        if name in self:
            return dict.__getitem__(self, name)
        asking.append(name)
        try:
            return dict.__getitem__(self, name)
        finally:
            asking.pop()

    def _noted(self, name: str) -> dict[str, None]:
        noted = self.reads.get(name)
        if noted is None:
            noted = self.reads[name] = {}
        return noted

    def looked_up(self, name: str, prefix: str, column: str, spec: Spec) -> object:
        """Note for every column what told the row, though it is found but once."""
        noted = self._noted(name)
        if prefix in self._row_reads:
            noted.update(self._row_reads[prefix])
        value = super().looked_up(name, prefix, column, spec)
        if prefix in self._rows:
            self._row_reads.setdefault(prefix, dict(noted))
        return value

    def noting(self, label: str, ask: Callable[[Values], T]) -> T:
        """Return ``ask`` of these facts; what it reads is noted under ``label``."""
        self._noted(label)
        self._asking.append(label)
        try:
            return ask(self)
        finally:
            self._asking.pop()

    def readers(self) -> dict[str, list[str]]:
        """Return what reads each name, as far as was noted until now."""
        readers: dict[str, list[str]] = {}
        for reader, read in self.reads.items():
            for name in read:
                readers.setdefault(name, []).append(reader)
        return readers

    def resting_on(
        self, names: Iterable[str], readers: Mapping[str, Sequence[str]] | None = None
    ) -> set[str]:
        """Return ``names``, and all names and labels that read one of them, or what reads one.

        ``readers`` are those of before, where nothing was read since.
        """
        readers = self.readers() if readers is None else readers
        resting = set(names)
        waiting = list(resting)
        while waiting:
            for reader in readers.get(waiting.pop(), ()):
                if reader not in resting:
                    resting.add(reader)
                    waiting.append(reader)
        return resting

    def without(self, moved: set[str]) -> dict[str, object]:
        """Return the facts that do not rest on what moved, to be taken over as they are."""
        kept = dict(self)
        for name in moved:
            kept.pop(name, None)
        return kept


def watched(subject: Subject, given: Mapping[str, object]) -> WatchedValues:
    """Return facts that note what they rest on."""
    plain = values_for(subject, given)
    values = WatchedValues(
        subject.pack, subject.view, subject.framework, plain.version, plain.given, subject.tables
    )
    values.document = plain.document
    return values


def settled(subject: Subject, values: Values) -> Subject:
    """Return a subject whose framework's version is told, so that no further facts look for it."""
    return replace(subject, version=values.version)
