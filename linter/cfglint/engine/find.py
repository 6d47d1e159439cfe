"""Turns a broken rule into a finding: where it stands, what it says, which numbers it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfglint.document.tree import Mapping, Sequence, dotted
from cfglint.engine.describe import Evaluator, arithmetic, message, show_value
from cfglint.engine.origin import Origins
from cfglint.findings import LEVELS, Finding, Place, Related, UsedFact
from cfglint.lang import tree as t
from cfglint.lang.build import paths_in
from cfglint.lang.show import show
from cfglint.lang.types import ANY
from cfglint.lang.values import needs_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Mapping as Lookup

    from cfglint.document.trace import Trace
    from cfglint.engine.subject import Judged, Subject, Verdict
    from cfglint.facts import Steps
    from cfglint.lang.pack import Pack

    Found = tuple[Judged, Verdict, Finding]

_GIVEN = ("file", "target", "registry")
_MOST_ITEMS = 200  # findings of one rule in one file; a file with more has one cause


@dataclass(frozen=True, slots=True)
class _Broken:
    """A broken rule on one subject and target, with the way to every number's origin."""

    rule: t.Rule
    verdict: Verdict
    subject: Subject
    origins: Origins
    target: str | None


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a finding stands, the span that belongs to it, and the item of a list that it speaks of."""

    start: int
    end: int
    related: tuple[int, int] | None = None
    bound: Lookup[str, object] | None = None


class Finder:
    """Makes findings of one run; the trees are loaded once."""

    def __init__(self, pack: Pack) -> None:
        self.symbols = pack.symbols()
        self.evaluator = Evaluator(self.symbols)

    def origins(self, one: Judged) -> Origins:
        """Return the origins of a judged subject's facts, found out once."""
        if one.origins is None:
            one.origins = Origins(self.symbols, one.values, one.sources, one.subject.framework)
        return one.origins

    def findings(self, verdict: Verdict, one: Judged, target: str | None) -> Iterator[Finding]:
        """Yield what a verdict comes to: one finding, or one for each item of the list it is about."""
        rule = self.symbols.rules[verdict.rule.code]
        values, origins = one.values, self.origins(one)
        broken = _Broken(rule, verdict, one.subject, origins, target)
        needed = rule.requirement
        if isinstance(needed, t.Quantifier) and needed.kind == "all":
            items, _ = self.evaluator(needed.source, values)
            if isinstance(items, list):
                yield from self._per_item(broken, needed, items)
                return
        yield self._finding(broken, _Spot(*self._place(rule, origins)))

    def _per_item(self, broken: _Broken, needed: t.Quantifier, items: list[object]) -> Iterator[Finding]:
        shown = 0
        for item in items:
            bound = {needed.variable: _Fields(item)}
            if self.evaluator(needed.body, broken.origins.values, bound)[0] is True:
                continue
            shown += 1
            if shown > _MOST_ITEMS:
                return
            start, end, related = self._item_place(item, needed.source, broken.origins)
            yield self._finding(broken, _Spot(start, end, related, bound))

    def _item_place(
        self, item: object, source: t.Expr, origins: Origins
    ) -> tuple[int, int, tuple[int, int] | None]:
        start = getattr(item, "start", None)
        if isinstance(start, int):
            return start, item.end, item.related  # type: ignore[attr-defined]
        path = getattr(item, "path", None)
        trace = origins.trace(path) if isinstance(path, tuple) else None
        if trace is None:
            paths = paths_in(source)
            listed = (
                paths[0][: paths[0].index("*")] if paths and "*" in paths[0] else paths[0] if paths else None
            )
            trace = origins.trace(listed) if listed is not None else None
        return (*trace.own_span, None) if trace is not None else (0, 0, None)

    def _finding(self, broken: _Broken, spot: _Spot) -> Finding:
        rule, origins = broken.rule, broken.origins
        possible = broken.verdict.truth is not False
        level = LEVELS[max(0, LEVELS.index(rule.level) - possible)]
        sums: list[str] = []
        if spot.bound is None:
            sums = arithmetic(
                rule.requirement,
                self.evaluator,
                origins.values,
                lambda name: origins.of(name).kind == "default",
            )
        if rule.say:
            said = message(rule.say, self.evaluator, origins.values, spot.bound)
        else:
            because = f" (since {show(rule.condition)})" if rule.condition is not None else ""
            said = (sums[0] if sums else f"{show(rule.requirement)} does not hold") + because
            sums = sums[1:]
        path = broken.subject.document.file.path
        related = [] if spot.related is None else [Related(Place(path, *spot.related), "first here")]
        related += self._elsewhere(rule, origins)
        if rule.code.startswith("DOC"):  # two numbers that disagree: the other one
            related += self._beside(rule, origins, spot)
        return Finding(
            Place(path, spot.start, spot.end),
            rule.code,
            rule.name,
            level,
            rule.level,
            said,
            possible=possible,
            target=broken.target,
            arithmetic="\n".join(sums),
            why=rule.why,
            see="; ".join(rule.see),
            facts=tuple(self._facts(rule, origins)),
            related=tuple(related),
        )

    def _facts(self, rule: t.Rule, origins: Origins) -> Iterator[UsedFact]:
        """Yield what the rule names, then the values of file and target that those were computed from."""
        named = dict.fromkeys((*origins.names_in(rule.requirement), *origins.names_in(rule.condition)))
        wanted = dict(named)
        again = origins.values.again()
        for name in named:
            again[name]  # a value that the computation passed by did not move it, and is not listed
            leaves = (leaf for leaf in origins.leaves(name) if leaf in again)
            wanted |= dict.fromkeys(leaf for leaf in leaves if origins.of(leaf).kind in _GIVEN)
        for name in wanted:
            value = origins.values[name]
            if self.evaluator.type_of(name).kind == "list" or (name not in named and needs_of(value)):
                continue
            if value == "":  # a key that the file does not have, where that says something
                continue
            yield UsedFact(name, show_value(value, self.evaluator.type_of(name)), origins.of(name).source)

    def _beside(self, rule: t.Rule, origins: Origins, spot: _Spot) -> Iterator[Related]:
        """Yield where the file has the other keys of a requirement."""
        for path in paths_in(rule.requirement):
            trace = origins.trace(path)
            if trace is None or not trace.present or trace.source is not None or trace.span[1] < 0:
                continue
            if trace.span != (spot.start, spot.end):
                said = show_value(trace.view.get(path), ANY)
                told = dotted(path).removeprefix("launch.")
                yield Related(Place(trace.file.path, *trace.span), f"{told} is {said} here")

    def _elsewhere(self, rule: t.Rule, origins: Origins) -> Iterator[Related]:
        """Yield the places in other files that the rule's numbers come from."""
        view = origins.values.view
        if view is None or view.sources is None:
            return
        told: set[tuple[str, int]] = set()
        named = (*origins.names_in(rule.requirement), *origins.names_in(rule.condition))
        for name in dict.fromkeys(leaf for one in named for leaf in (one, *origins.leaves(one))):
            for path in origins.of(name).paths:
                trace = origins.trace(path)
                if trace is None or not trace.present or trace.source is None:
                    continue
                place = trace.file.path, trace.span[0]
                if place not in told:
                    told.add(place)
                    yield Related(Place(trace.file.path, *trace.span), f"{_key(trace)} is set here")

    def _place(self, rule: t.Rule, origins: Origins) -> tuple[int, int]:
        """Return the span that a finding stands on: the value that is most likely to be changed.

        Where the requirement's keys are all absent, that is the nearest parent of the first of them.
        """
        view = origins.values.view
        absent: tuple[int, int] | None = None
        for paths in self._candidates(rule, origins):
            for path in paths:
                trace = origins.trace(path)
                if trace is None:
                    continue
                if trace.source is not None:
                    absent = absent or trace.own_span
                    continue
                if trace.present and not any(step.kind == "override" for step in trace.steps):
                    # A block of lines is named by its key.
                    block = isinstance(trace.node, (Mapping, Sequence)) and not trace.node.flow
                    return trace.key_span if block else trace.span
                absent = absent or trace.span
            if absent is not None:
                break
        if view is None:
            return (0, 0)
        start = view.document.start
        if absent is not None and absent != (start, start):
            return absent
        if view.document.key is not None:
            return (view.document.key.start, view.document.key.end)
        root = view.document.root  # not the comment above it
        return (start, start) if root is None else (root.start, root.start)

    def _candidates(self, rule: t.Rule, origins: Origins) -> Iterator[list[Steps]]:
        """Yield groups of paths, those that say most about the rule first."""
        if isinstance(rule.at, t.Path):
            yield [rule.at.steps]
        elif rule.at is not None:
            yield list(self._paths(rule.at.name, origins))
        for node in (rule.requirement, rule.condition):
            names = origins.names_in(node)
            leaves = [leaf for name in names for leaf in origins.leaves(name)]
            knobs = [name for name in names if name in self.symbols.knobs]
            direct = [name for name in names if origins.of(name).kind == "file"]
            yield [path for name in knobs for path in self._paths(name, origins)]
            deep = [leaf for leaf in leaves if leaf in self.symbols.knobs]
            yield [path for name in (*direct, *deep, *leaves) for path in self._paths(name, origins)]
            if node is not None:
                yield list(paths_in(node))

    def _paths(self, name: str, origins: Origins) -> Iterator[Steps]:
        for leaf in (name, *origins.leaves(name)):
            yield from origins.of(leaf).paths


def _key(trace: Trace) -> str:
    """Return the key of a value in the file that it stands in."""
    hangs = trace.view.hangs(trace.at)
    return dotted(trace.at if hangs is None else hangs[1])


class _Fields:
    """An item of a list as the expressions of a message see it: its slots are its fields."""

    def __init__(self, item: object) -> None:
        self.item = item

    def get(self, name: str) -> object:
        if hasattr(self.item, "get"):
            return self.item.get(name)
        return getattr(self.item, name, None)

    def keys(self) -> list[str]:
        if hasattr(self.item, "keys"):
            return list(self.item.keys())
        return list(getattr(type(self.item), "__slots__", ()))
