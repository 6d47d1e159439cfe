"""Finds, for a broken rule, the cheapest value of one knob that mends it and breaks nothing else.

Several knobs at once is the same search over assignments of more than one name: `Assignment` and everything
behind it already carry any number of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfglint.dsl import tree as t
from cfglint.dsl.build import walk
from cfglint.dsl.values import Interval, Open, Unknown, needs_of, parts
from cfglint.engine.fit import watched
from cfglint.engine.judge import Subject, judge, values_for
from cfglint.engine.origin import Origins
from cfglint.repair.candidates import Broken, Candidate
from cfglint.repair.inverse import Written, invert

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cfglint.engine.judge import Verdict
    from cfglint.engine.run import Judged, Run
    from cfglint.facts import Values

_MOST_JUDGED = 64  # candidates that mend the rule and are then judged by all rules
_BOUNDS = ("<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Assignment:
    """New values for knobs, what stands in the file for them, and what they cost together.

    ``sure`` is false for the value that comes nearest where none mends the rule for certain.
    """

    values: tuple[tuple[str, object], ...]
    written: tuple[Written, ...]
    cost: float
    unsafe: bool
    effect: str
    sure: bool = True


def solve(run: Run, verdict: Verdict, one: Judged, judgements: Sequence[Judged]) -> Iterator[Assignment]:
    """Yield assignments that mend a verdict in the facts, the cheapest and safest first.

    Where the rule is broken on several targets, a value that mends it on all of them comes first.
    """
    search = _Search(run, verdict, one, judgements)
    found = [assignment for knob in search.knobs() for assignment in search.for_knob(knob)]
    yield from sorted(found, key=lambda a: (not a.sure, a.unsafe, a.cost))


class _Search:
    """The search for one verdict on one subject, with every target's judgement at hand."""

    def __init__(self, run: Run, verdict: Verdict, one: Judged, judgements: Sequence[Judged]) -> None:
        self.run = run
        self.verdict = verdict
        self.one = one
        self.judgements = judgements
        self.rule = run.finder.symbols.rules[verdict.rule.code]
        self.origins = Origins(run.finder.symbols, one.values, one.sources, one.subject.framework)
        self._settled: dict[tuple[int, tuple[str, ...]], tuple[Subject, dict[str, object]]] = {}

    def knobs(self) -> list[t.Knob]:
        """Return the knobs that the requirement depends on, through lets and bindings, in its order."""
        named = self.origins.names_in(self.rule.requirement)
        names = [leaf for name in named for leaf in (name, *self.origins.leaves(name))]
        knobs = self.run.finder.symbols.knobs
        return [knobs[name] for name in dict.fromkeys(names) if name in knobs]

    def with_values(self, new: Mapping[str, object], one: Judged | None = None) -> Values:
        """Return the facts of a judged subject with some of them replaced."""
        one = one or self.one
        subject, settled = self._unmoved(one, tuple(sorted(new)))
        values = values_for(self.run.pack, subject, {**one.values.given, **new}, self.run.tables)
        values.update((name, value) for name, value in settled.items() if name not in new)
        return values

    def _unmoved(self, one: Judged, names: tuple[str, ...]) -> tuple[Subject, dict[str, object]]:
        """Return what does not depend on ``names``, whatever rule asks: a trial computes the rest alone."""
        key = (id(one), names)
        if key not in self._settled:
            values = watched(self.run.pack, one.subject, one.values.given, self.run.tables)
            values.moved.update(names)
            judge(self.run.rules(one.subject, values), values)
            subject = Subject(one.subject.document, one.subject.view, one.subject.framework, values.version)
            kept = {name: value for name, value in values.items() if name not in values.moved}
            self._settled[key] = subject, kept
        return self._settled[key]

    def mends(self, new: Mapping[str, object], one: Judged) -> bool:
        return self.settled(self.with_values(new, one)) is True

    def settled(self, values: Values) -> object:
        """Return the truth of the rule; one that is merely switched off counts by its requirement.

        A repair makes the requirement hold. Changing a value so that the condition no longer does (logits
        are no longer half of the need, because something else grew) mends nothing.
        """
        truth = self.verdict.rule.test(values)
        if truth is not None:
            return truth
        return self.run.finder.evaluator(self.rule.requirement, values)[0]

    def harmless(self, new: Mapping[str, object]) -> bool:
        """Whether on no target a rule that held before is broken or open afterwards."""
        return all(self._harmless_on(one, new) for one in self.judgements)

    def _harmless_on(self, one: Judged, new: Mapping[str, object]) -> bool:
        values = self.with_values(new, one)
        before = {v.rule.code: v for v in one.verdicts}
        for verdict in judge(self.run.rules(one.subject, values), values):
            was = before.get(verdict.rule.code)
            if was is None or (verdict.truth is False and was.truth is not False):
                return False
        return True

    def for_knob(self, knob: t.Knob) -> list[Assignment]:
        """Return the cheapest value of a knob that mends the rule: on all targets, else on this one."""
        old = self.one.values[knob.name]
        origin = self.origins.of(knob.name)
        if isinstance(old, (Interval, Open, Unknown)) or origin.binding is None:
            return []
        evaluator = self.run.finder.evaluator
        kind = evaluator.type_of(knob.name)
        spelled = self.one.subject.view.get(origin.paths[0]) if origin.paths else None
        broken = Broken(
            knob, old, kind, self.rule.requirement, evaluator, lambda v: self.with_values({knob.name: v})
        )
        elsewhere = [j for j in self.judgements if j is not self.one and self._broken_on(j)]
        own_only: Assignment | None = None
        possible: list[tuple[float, Candidate]] = []
        judged = 0
        for candidate in broken.candidates():
            new = {knob.name: candidate.value}
            truth = self.settled(broken.with_value(candidate.value))
            if truth is not True:
                if truth is not False and not needs_of(truth):
                    possible.append((self._overshoot(broken.with_value(candidate.value)), candidate))
                continue
            written = invert(origin.binding.source, candidate.value, kind, spelled, candidate.spelling)
            judged += 1
            if written is None or judged > _MOST_JUDGED:
                break
            if not self.harmless(new):
                continue
            assignment = _assignment(knob, candidate, written)
            if all(self.mends(new, j) for j in elsewhere):
                return [assignment]
            own_only = own_only or assignment
        if own_only is not None:
            return [own_only]
        if self.verdict.truth is not False:
            return []  # it is possible as it stands; another "may" is no gain
        for _, candidate in sorted(possible, key=lambda p: p[0])[:_MOST_JUDGED]:
            written = invert(origin.binding.source, candidate.value, kind, spelled, candidate.spelling)
            if written is not None and self.harmless({knob.name: candidate.value}):
                return [_assignment(knob, candidate, written, sure=False)]
        return []

    def _broken_on(self, one: Judged) -> bool:
        return any(v.rule is self.verdict.rule and (v.truth is False or not v.needs) for v in one.verdicts)

    def _overshoot(self, values: Values) -> float:
        """Return by how much a broken bound is missed at worst, in base units; 0 where it is no bound."""
        worst = 0.0
        for node in walk(self.rule.requirement):
            if isinstance(node, t.Compare) and len(node.operands) == 2 and node.operators[0] in _BOUNDS:
                small, large = node.operands if node.operators[0][0] == "<" else reversed(node.operands)
                gap, _ = self.run.finder.evaluator(t.Sum((("+", small), ("-", large))), values)
                if isinstance(gap, (int, float, Interval)):
                    worst = max(worst, parts(gap)[1])
        return worst


def _assignment(knob: t.Knob, candidate: Candidate, written: Written, *, sure: bool = True) -> Assignment:
    return Assignment(
        ((knob.name, candidate.value),), (written,), candidate.cost, candidate.unsafe, candidate.effect, sure
    )
