"""What becomes of a document's rules with other values in some facts' places; each trial is computed once.

One evaluation notes what every fact and every rule rests on (engine/watch.py). A trial takes over what does
not rest on the facts that move and computes the rest, and only the rules that rest on them are judged again.
All findings of a document share the trials.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from cfglint.engine.dependencies import settled, watched
from cfglint.engine.judge import judge, values_for
from cfglint.lang.values import Interval, Open, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cfglint.engine.run import Run
    from cfglint.engine.subject import Judged, Subject, Verdict
    from cfglint.facts import Values
    from cfglint.lang.pack import CompiledRule
    from cfglint.text import Edit

Facts: TypeAlias = "Mapping[str, object]"
_Key: TypeAlias = tuple[tuple[str, type, object], ...]


def key_of(facts: Facts) -> _Key:
    """Return what tells facts apart; 1, 1.0 and true are three, and a missing one is known by its text."""
    return tuple(
        (name, type(value), repr(value) if isinstance(value, (Interval, Open, Unknown)) else value)
        for name, value in sorted(facts.items())
    )


def is_hint(rule: CompiledRule) -> bool:
    """Whether a rule only tells of hardware that could do more; what fits is not made larger for that."""
    return rule.level == "info" and rule.code.startswith("PRF")


class _Moved:
    """What some facts move on one target: the rules among that, and the facts that stay."""

    __slots__ = ("kept", "rules")

    def __init__(self, base: _Base, names: Iterable[str]) -> None:
        moved = base.watched.resting_on(names)
        self.kept = base.watched.without(moved)
        self.rules = [rule for rule in base.rules if rule.code in moved]


class _Base:
    """One target's facts as they stand, with what rests on what."""

    __slots__ = ("before", "given", "moved", "rules", "subject", "trials", "watched")

    def __init__(self, run: Run, one: Judged) -> None:
        self.watched = watched(one.subject, one.values.given)
        self.given = one.values.given
        aside = run.aside(one.subject, self.watched)
        self.rules = [*run.rules(one.subject, self.watched), *aside]
        for rule in self.rules:
            self.watched.noting(rule.code, rule.test)
        self.subject = settled(one.subject, self.watched)
        verdicts = [*one.verdicts, *judge(aside, self.watched)]
        self.before: dict[str, Verdict] = {verdict.rule.code: verdict for verdict in verdicts}
        self.moved: dict[frozenset[str], _Moved] = {}
        self.trials: dict[_Key, Values] = {}


class Trials:
    """The trials of one document, on all targets that it was judged on. ``count`` is how many there were.

    ``edited`` keeps what became of edited texts, so that the same edits are judged once (prove.py).
    """

    def __init__(self, run: Run, judgements: Sequence[Judged]) -> None:
        self.run = run
        self.judgements = tuple(judgements)
        self.count = 0
        self.edited: dict[tuple[Edit, ...], Sequence[Judged] | None] = {}
        self._bases: dict[int, _Base] = {}

    @property
    def subject(self) -> Subject:
        """The document as its framework sees it."""
        return self.judgements[0].subject

    def _base(self, one: Judged) -> _Base:
        base = self._bases.get(id(one))
        if base is None:
            base = self._bases[id(one)] = _Base(self.run, one)
        return base

    def _moved(self, base: _Base, names: Iterable[str]) -> _Moved:
        key = frozenset(names)
        moved = base.moved.get(key)
        if moved is None:
            moved = base.moved[key] = _Moved(base, key)
        return moved

    def before(self, one: Judged) -> Mapping[str, Verdict]:
        """Return what does not simply hold on a target now, by code."""
        return self._base(one).before

    def rules(self, one: Judged) -> list[CompiledRule]:
        """Return the rules that no repair may break."""
        return self._base(one).rules

    def touches(self, one: Judged, rule: CompiledRule, names: Iterable[str]) -> bool:
        """Whether a rule rests on some facts, as things stand."""
        return rule in self._moved(self._base(one), names).rules

    def values(self, one: Judged, facts: Facts) -> Values:
        """Return the facts on a target with some of them replaced."""
        base = self._base(one)
        key = key_of(facts)
        values = base.trials.get(key)
        if values is None:
            self.count += 1
            values = values_for(base.subject, {**base.given, **facts})
            values.update(self._moved(base, facts).kept)
            base.trials[key] = values
        return values

    def harmed(self, one: Judged, facts: Facts) -> list[CompiledRule]:
        """Return the rules that held on a target and are broken or open there with these facts."""
        base, values = self._base(one), self.values(one, facts)
        harmed = []
        for rule in self._moved(base, facts).rules:
            truth = rule.test(values)
            if truth is True or truth is None or is_hint(rule):
                continue
            was = base.before.get(rule.code)
            if was is None or (truth is False and was.truth is not False):
                harmed.append(rule)
        return harmed
