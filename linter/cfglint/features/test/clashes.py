"""Rules against rules: two that cannot hold together, fixes that break another rule or go in circles.

Found by trying, on every GPU of the catalogue and on the rules' own examples, before a user's file does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import TYPE_CHECKING

from cfglint.document.reading import read_text
from cfglint.engine.run import Run
from cfglint.errors import CfglintError
from cfglint.facts import Values
from cfglint.features.test.examples import given_by
from cfglint.hardware.target import all_targets
from cfglint.lang import tree as t
from cfglint.lang.values import INF, Interval, Open, Unknown
from cfglint.repair.apply import repair
from cfglint.repair.options import combined
from cfglint.repair.solve import ANY, solver_of
from cfglint.repair.tracks import UNSOLVABLE, Broken

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from cfglint.lang.pack import CompiledRule, Pack
    from cfglint.lang.symbols import Symbols

_MOST_VALUES = 400  # of a knob, from each of two requirements
_MOST_CASES = 256  # combinations of what two conditions ask for
_NAMED = 3  # targets that a message names
_OWN = ("gpu.", "document.", "framework.")  # facts that no config states


@dataclass(frozen=True, slots=True)
class Clash:
    """Rules that are at odds. ``place`` is that of the first, ``file:line``; ``codes`` are all of them."""

    place: str
    codes: tuple[str, ...]
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


@dataclass(frozen=True, slots=True)
class _Single:
    """A rule whose requirement depends on one knob, and on nothing else but the target."""

    rule: t.Rule
    compiled: CompiledRule
    knob: t.Knob


def clashes(pack: Pack, codes: Container[str] | None = None) -> list[Clash]:
    """Return what is wrong between the rules of a pack, or between rules ``codes`` and any."""
    found = [*contradictions(pack, codes), *_Examples(pack).clashes()]
    kept = (clash for clash in found if codes is None or any(code in codes for code in clash.codes))
    return sorted(kept, key=lambda clash: (clash.place, clash.codes))


def contradictions(pack: Pack, codes: Container[str] | None = None) -> Iterator[Clash]:
    """Yield the pairs of rules that cannot hold together, with the targets for which that is so."""
    return _Pairs(pack).contradictions(codes)


# ── two rules that cannot hold together ─────────────────────────────────────────────────────────────────────
class _Pairs:
    def __init__(self, pack: Pack) -> None:
        self.pack = pack
        self.run = Run(pack)
        self.symbols = pack.symbols()
        self.evaluator = self.run.finder.evaluator
        self.targets = [
            (target.name, {name: fact[0] for name, fact in target.facts.items()}) for target in all_targets()
        ]

    def contradictions(self, codes: Container[str] | None) -> Iterator[Clash]:
        for one, other in combinations(self._singles(), 2):
            if one.knob is not other.knob or not _may_meet(one.rule, other.rule):
                continue
            if codes is not None and one.rule.code not in codes and other.rule.code not in codes:
                continue
            values = self._values(one, other)
            targets = self.targets if self._asks_target(one) or self._asks_target(other) else [("", {})]
            where = [name for name, facts in targets if self._at_odds(one, other, values, facts)]
            if where:
                yield self._told(one, other, where)

    def _told(self, one: _Single, other: _Single, where: Sequence[str]) -> Clash:
        on = ""
        if where[0]:
            more = f" and {len(where) - _NAMED} more" if len(where) > _NAMED else ""
            on = f" on {', '.join(where[:_NAMED])}{more}"
        second = self.symbols.where[f"rule {other.rule.code}"]
        what = (
            f"{one.rule.code} and {other.rule.code} ({second}) cannot hold together{on}: "
            f"no value that {one.knob.name} may take satisfies both"
        )
        place = self.symbols.where[f"rule {one.rule.code}"]
        return Clash(place, (one.rule.code, other.rule.code), what)

    def _singles(self) -> list[_Single]:
        found = []
        for compiled in self.pack.rules:
            rule = self.symbols.rules[compiled.code]
            leaves = {name for name in _leaves(rule.requirement, self.symbols) if not name.startswith(_OWN)}
            knob = self.symbols.knobs.get(next(iter(leaves))) if len(leaves) == 1 else None
            if knob is not None:
                found.append(_Single(rule, compiled, knob))
        return found

    def _asks_target(self, one: _Single) -> bool:
        names = {*_leaves(one.rule.requirement, self.symbols)}
        if one.rule.condition is not None:
            names |= _leaves(one.rule.condition, self.symbols)
        return any(name.startswith("gpu.") for name in names)

    def _facts(self, given: Mapping[str, object]) -> Values:
        return Values(self.pack, None, None, None, given)

    def _values(self, one: _Single, other: _Single) -> list[object]:
        """Return values of the knob, on both sides of what the requirements ask for."""
        name = one.knob.name
        kind = self.evaluator.type_of(name)
        starts: list[object] = [True, False] if kind.kind == "bool" else list(kind.members)
        if kind.kind == "number":
            asked = [
                n.value * kind.factor * by
                for rule in (one.rule, other.rule)
                for n in t.walk(rule.requirement)
                if isinstance(n, t.Number)
                for by in (0.5, 1, 2)
            ]
            near = [v for v in (kind.low, kind.high, 1, *asked) if abs(v) < INF]
            starts = [int(v) if kind.whole else v for v in near]
        found: dict[tuple[type, object], object] = {}
        for rule, start in product((one.rule, other.rule), starts):
            broken = Broken(
                one.knob, start, kind, rule.requirement, self.evaluator, lambda v: self._facts({name: v})
            )
            for track in broken.tracks():
                for value in islice(track.values, _MOST_VALUES):
                    found[type(value), value] = value
        return list(found.values())

    def _at_odds(
        self, one: _Single, other: _Single, values: Sequence[object], facts: Mapping[str, object]
    ) -> bool:
        """Whether each value breaks one of two rules, though some value suits each of them."""
        name = one.knob.name

        def holds(rule: t.Rule, value: object) -> bool:
            try:
                return self.evaluator(rule.requirement, self._facts({**facts, name: value}))[0] is not False
            except UNSOLVABLE:
                return True

        first = [value for value in values if holds(one.rule, value)]
        second = [value for value in values if holds(other.rule, value)]
        if not first or not second or any(holds(other.rule, value) for value in first):
            return False
        return any(
            all(
                one.compiled.test(given) is False or other.compiled.test(given) is False
                for given in (self._facts({**facts, **case, name: value}) for value in values)
            )
            for case in self._cases(one, other)
        )

    def _cases(self, one: _Single, other: _Single) -> Iterator[dict[str, object]]:
        """Yield what the conditions may meet: truths, members, numbers beside those that they name."""
        wanted: dict[str, list[object]] = {}
        for condition in (one.rule.condition, other.rule.condition):
            if condition is None:
                continue
            numbers = [n.value for n in t.walk(condition) if isinstance(n, t.Number)]
            for name in _leaves(condition, self.symbols):
                if name.startswith(_OWN) or name == one.knob.name:
                    continue
                kind = self.evaluator.type_of(name)
                if kind.kind == "bool":
                    wanted[name] = [True, False]
                elif kind.kind == "enum":
                    wanted[name] = list(kind.members)
                elif kind.kind == "number":
                    near = (n * kind.factor * by for n in (1, *numbers) for by in (0.5, 1, 2))
                    fitting = dict.fromkeys(v for v in near if kind.low <= v <= kind.high)
                    wanted[name] = [*wanted.get(name, []), *fitting]
        for values in islice(product(*wanted.values()), _MOST_CASES):
            yield dict(zip(wanted, values, strict=True))


def _may_meet(one: t.Rule, other: t.Rule) -> bool:
    """Whether two rules may speak of the same file."""
    names = ({scope.framework for scope in rule.scope} for rule in (one, other))
    mine, theirs = names
    return not mine or not theirs or bool(mine & theirs)


def _leaves(node: t.Expr, symbols: Symbols, seen: frozenset[str] = frozenset()) -> set[str]:
    """Return the facts that an expression depends on, through lets and functions."""
    found: set[str] = set()
    for part in t.walk(node):
        name = part.name if isinstance(part, t.Name) else part.function if isinstance(part, t.Call) else None
        if name is None or name in seen:
            continue
        let = symbols.functions.get(name) or (None if name in symbols.facts else symbols.lets.get(name))
        if let is not None:
            found |= _leaves(let.body, symbols, seen | {name})
        elif name in symbols.types:
            found.add(name)
    return found


# ── fixes on the rules' own examples ────────────────────────────────────────────────────────────────────────
class _Examples:
    """Each rule's bad examples as facts files, and what comes of fixing them."""

    def __init__(self, pack: Pack) -> None:
        self.pack = pack
        self.symbols = pack.symbols()

    def clashes(self) -> Iterator[Clash]:
        for compiled in self.pack.rules:
            rule = self.symbols.rules[compiled.code]
            if rule.scope:
                continue  # its facts are keys of a framework's own
            for i, example in enumerate(rule.examples):
                if example.kind == "bad":
                    place = self.symbols.where[f"example {rule.code} {i}"]
                    yield from self._of(rule, example, place)

    def _of(self, rule: t.Rule, example: t.Example, place: str) -> Iterator[Clash]:
        stated, given = self._split(given_by(self.pack, example))
        if not any(name in self.symbols.knobs for name in stated):
            return
        text = "cfglint: facts\n" + "".join(f"{name}: {value}\n" for name, value in stated.items())
        file = read_text(text, place)
        run = Run(self.pack, framework="facts", given={name: (v, "example") for name, v in given.items()})
        try:
            repair(run, file, unsafe=True, least="info", notes=False)
        except CfglintError:
            yield Clash(place, (rule.code,), f"{rule.code}: fixes of this example go in a circle")
            return
        (subject,) = run.subjects(file, judge_broken=True)
        solver = solver_of(run, run.judged(subject))
        goals = solver.goals(rule.code)
        if not goals or solver.best(goals, ANY) is not None:
            return
        alone = solver.watching().best(goals, ANY)
        if alone is not None:
            facts = combined(alone.options) or {}
            trials = solver.trials
            harmed = [
                r.code
                for one in trials.judgements
                for r in trials.harmed(one, facts)
                if r.test(trials.values(one, facts)) is False  # not merely undecided: an example tells little
            ]
            if not harmed:
                return
            codes = tuple(dict.fromkeys(harmed))
            what = f"every fix of this example breaks another rule; the cheapest breaks {', '.join(codes)}"
            yield Clash(place, (rule.code, *codes), f"{rule.code}: {what}")

    def _split(self, given: Mapping[str, object]) -> tuple[dict[str, str], dict[str, object]]:
        """Return what a config would state, spelled in YAML, and the rest."""
        stated: dict[str, str] = {}
        rest: dict[str, object] = {}
        for name, value in given.items():
            spelled = None
            if name in self.symbols.facts and not name.startswith(_OWN):
                spelled = self._spelled(name, value)
            if spelled is None:
                rest[name] = value
            else:
                stated[name] = spelled
        return stated, rest

    def _spelled(self, name: str, value: object) -> str | None:
        if isinstance(value, (Interval, Open, Unknown, tuple)):
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return repr(value / self.symbols.types[name].factor) if value % 1 else repr(value)
        return json.dumps(value)
