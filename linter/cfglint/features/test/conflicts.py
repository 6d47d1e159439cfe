"""Rules that are at odds with each other.

Two rules that cannot hold together, and fixes that break another rule or go in circles, are found by trying,
on every GPU of the catalogue and on the rules' own examples, before a user's file does.
"""

from __future__ import annotations

import json
from itertools import combinations, islice, product

from cfglint.document.reading import read_text
from cfglint.engine.rows import given_by
from cfglint.engine.run import Run
from cfglint.errors import CfglintError
from cfglint.facts import Values
from cfglint.features.test.examples import Examples
from cfglint.hardware.target import all_targets
from cfglint.lang import tree as t
from cfglint.lang.types import Type, is_number
from cfglint.lang.values import INF, Interval, Open, Unknown
from cfglint.record import Record, Value, field
from cfglint.repair.allowed import ANY
from cfglint.repair.apply import repair
from cfglint.repair.solve import solving
from cfglint.repair.together import combined
from cfglint.repair.tracks import UNSOLVABLE, Broken
from cfglint.repair.trials import is_hint
from cfglint.report.blocks import few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from cfglint.lang.pack import CompiledRule, Pack
    from cfglint.lang.symbols import Symbols

_MOST_VALUES = 400  # of a knob, from each of two requirements
_MOST_CASES = 256  # combinations of what two conditions ask for
_NAMED = 3  # targets that a message names
_OWN = ("gpu.", "document.", "framework.")  # facts that no config states
_BESIDE = (0.5, 1, 2)  # times a number that a rule names


class Clash(Value):
    """Rules that are at odds. ``place`` is that of the first, ``file:line``; ``codes`` are all of them."""

    place: str
    codes: tuple[str, ...]
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


def clashes(pack: Pack, codes: Container[str] | None = None) -> list[Clash]:
    """Return what is wrong between the rules of a pack, or between rules ``codes`` and any."""
    every = [*contradictions(pack, codes), *_Fixes(pack).clashes(codes)]
    kept = (clash for clash in every if codes is None or any(code in codes for code in clash.codes))
    return sorted(kept, key=lambda clash: (clash.place, clash.codes))


def contradictions(pack: Pack, codes: Container[str] | None = None) -> Iterator[Clash]:
    """Yield the pairs of rules that cannot hold together, with the targets for which that is so."""
    leaves = Leaves(pack.symbols())
    each = (leaves.single(rule) for rule in pack.rules if not is_hint(rule))  # hints stand in no one's way
    singles = [single for single in each if single is not None]
    if codes is not None:  # only what an own rule may meet
        asked = {single.knob.name for single in singles if single.rule.code in codes}
        singles = [single for single in singles if single.knob.name in asked]
    if len(singles) < 2:
        return
    targets = [(target.name, given_by(target)) for target in all_targets()]
    run = Run(pack)
    for a, b in combinations(singles, 2):
        if a.knob is not b.knob or not _may_meet(a.rule, b.rule):
            continue
        if codes is not None and a.rule.code not in codes and b.rule.code not in codes:
            continue
        clash = _Pair(run, leaves, (a, b)).clash(targets)
        if clash is not None:
            yield clash


# ── fixes that break another rule ──────────────────────────────────────────────────────────────────────
class _Fixes(Examples):
    """What comes of fixing the examples of a pack's rules."""

    def clashes(self, codes: Container[str] | None) -> Iterator[Clash]:
        """Yield what is wrong with the fixes of bad examples: of rules ``codes``, or that may break one.

        A fix of another rule's example may break one of them where it moves a knob that this one rests on.
        """
        leaves = Leaves(self.symbols)
        rested: set[str] = set()
        for rule in self.symbols.rules.values():
            if codes is not None and rule.code in codes and not rule.scope:
                rested |= leaves.of_rule(rule)
        for compiled in self.pack.rules:
            rule = self.symbols.rules[compiled.code]
            if rule.scope:
                continue  # its facts are keys of a framework's own
            own = codes is None or rule.code in codes
            if not own and (is_hint(compiled) or rested.isdisjoint(leaves.moved_by_fixes(rule))):
                continue
            for example, place in self.of(compiled):
                if example.kind == "bad":
                    yield from self._clash(rule.code, example, place, codes, own=own)

    def _clash(
        self, code: str, example: t.Example, place: str, codes: Container[str] | None, *, own: bool
    ) -> Iterator[Clash]:
        """Yield what is wrong with fixes of an example; of one not ``own``, that they break ``codes``."""
        stated, given = self._split(self.facts(example))
        if not any(name in self.symbols.knobs for name in stated):
            return
        text = "cfglint: facts\n" + "".join(f"{name}: {value}\n" for name, value in stated.items())
        file = read_text(text, place)
        run = Run(self.pack, framework="facts", given={name: (v, "example") for name, v in given.items()})
        if own:
            mended = run if codes is None else run.but(selected=lambda c: c in codes, guarded=lambda _: True)
            try:
                repair(mended, file, unsafe=True, least="info", notes=False)
            except CfglintError:
                yield Clash(place, (code,), f"{code}: the fixes of this example undo each other")
                return
        (subject,) = run.subjects(file, judge_broken=True)
        with solving(run, run.judged(subject)) as solver:
            trials = solver.trials
            goals = solver.goals(code)
            alone = solver.watching().best(goals, ANY) if goals else None
            if alone is None:
                return
            facts = combined(alone.options) or {}
            harmed = dict.fromkeys(
                rule.code
                for judged in trials.judgements
                for rule in trials.harmed(judged, facts)
                if rule.test(trials.values(judged, facts)) is False  # undecided is no harm
            )
            if not harmed or not (own or any(c in (codes or ()) for c in harmed)):
                return  # the cheapest fix of all does: the search for one that breaks nothing is long
            if solver.best(goals, ANY) is None and code not in solver.exhausted:
                what = (
                    f"every fix of this example breaks another rule; the cheapest breaks {', '.join(harmed)}"
                )
                yield Clash(place, (code, *harmed), f"{code}: {what}")

    def _split(self, given: Mapping[str, object]) -> tuple[dict[str, str], dict[str, object]]:
        """Return what a config would state, spelled in YAML, and the rest."""
        stated: dict[str, str] = {}
        rest: dict[str, object] = {}
        for name, value in given.items():
            own = name not in self.symbols.facts or name.startswith(_OWN)
            if own or isinstance(value, (Interval, Open, Unknown, tuple)):
                rest[name] = value
            elif is_number(value):
                stated[name] = repr(value / self.symbols.types[name].factor if value % 1 else value)
            else:
                stated[name] = json.dumps(value)
        return stated, rest


# ── two rules that cannot hold together ────────────────────────────────────────────────────────────────
class _Single(Record):
    """A rule whose requirement depends on one knob, and on nothing else but the target."""

    rule: t.Rule
    compiled: CompiledRule
    knob: t.Knob

    @property
    def parts(self) -> tuple[t.Expr, ...]:
        """The requirement, and the condition if there is one."""
        condition = self.rule.condition
        return (self.rule.requirement,) if condition is None else (self.rule.requirement, condition)


class _Pair(Record):
    run: Run
    leaves: Leaves
    pair: tuple[_Single, _Single]

    def clash(self, targets: Sequence[tuple[str, Mapping[str, object]]]) -> Clash | None:
        """Return what is wrong between the two, with the targets for which that is so."""
        leaves = (self.leaves.of(part) for single in self.pair for part in single.parts)
        asks_target = any(name.startswith("gpu.") for names in leaves for name in names)
        values = self._values()
        tried = targets if asks_target else [("", {})]
        where = [name for name, facts in tried if self._at_odds(values, facts)]
        if not where:
            return None
        on = f" on {few(where, _NAMED)}" if where[0] else ""
        codes = tuple(single.rule.code for single in self.pair)
        place, second = (self.leaves.symbols.where[f"rule {code}"] for code in codes)
        what = (
            f"{codes[0]} and {codes[1]} ({second}) cannot hold together{on}: "
            f"no value that {self.pair[0].knob.name} may take satisfies both"
        )
        return Clash(place, codes, what)

    def facts(self, *given: Mapping[str, object]) -> Values:
        facts = {name: value for part in given for name, value in part.items()}
        return Values(self.run.pack, None, None, None, facts)

    def _values(self) -> list[object]:
        """Return values of the knob, on both sides of what the requirements ask for."""
        knob, evaluator = self.pair[0].knob, self.run.finder.evaluator
        kind = evaluator.type_of(knob.name)
        starts: list[object] = [True, False] if kind.kind == "bool" else list(kind.members)
        if kind.kind == "number":
            asked = _near([n for single in self.pair for n in _numbers(single.rule.requirement)], kind)
            near = [value for value in (kind.low, kind.high, 1, *asked) if abs(value) < INF]
            starts = [int(value) if kind.whole else value for value in near]
        values: dict[tuple[type, object], object] = {}
        for single, start in product(self.pair, starts):
            broken = Broken(
                knob, start, kind, single.rule.requirement, evaluator, lambda v: self.facts({knob.name: v})
            )
            for track in broken.tracks():
                for value in islice(track.values, _MOST_VALUES):
                    values[type(value), value] = value
        return list(values.values())

    def _at_odds(self, values: Sequence[object], facts: Mapping[str, object]) -> bool:
        """Whether each value breaks one of two rules, though some value suits each of them."""
        compiled = self.run.finder.evaluator.compiled
        name = self.pair[0].knob.name

        def breaks(requirement: Callable[..., object], value: object) -> bool:
            try:
                return requirement(self.facts(facts, {name: value})) is False
            except UNSOLVABLE:
                return False

        required = [compiled(single.rule.requirement)[0] for single in self.pair]
        broken: list[tuple[bool, ...]] = []
        for value in values:
            broken.append(tuple(breaks(requirement, value) for requirement in required))
            if not any(broken[-1]):
                return False
        if not broken or any(all(column) for column in zip(*broken, strict=True)):
            return False  # nothing to try, or a rule that nothing keeps: no conflict between the two
        conditions = [_Condition(self, single) for single in self.pair]
        return any(
            all(
                any(
                    fails and condition.holds(facts, case, value)
                    for fails, condition in zip(each, conditions, strict=True)
                )
                for value, each in zip(values, broken, strict=True)
            )
            for case in self._cases()
        )

    def _cases(self) -> Iterator[dict[str, object]]:
        """Yield what the conditions may meet: truths, members, numbers beside those that they name."""
        wanted: dict[str, list[object]] = {}
        for single in self.pair:
            for condition in single.parts[1:]:
                for name in self.leaves.of(condition):
                    if name.startswith(_OWN) or name == single.knob.name:
                        continue
                    kind = self.run.finder.evaluator.type_of(name)
                    if kind.kind == "bool":
                        wanted[name] = [True, False]
                    elif kind.kind == "enum":
                        wanted[name] = list(kind.members)
                    elif kind.kind == "number":
                        near = _near([1, *_numbers(condition)], kind)
                        fitting = dict.fromkeys(value for value in near if kind.low <= value <= kind.high)
                        wanted[name] = [*wanted.get(name, []), *fitting]
        for values in islice(product(*wanted.values()), _MOST_CASES):
            yield dict(zip(wanted, values, strict=True))


class _Condition:
    """The condition of one of two rules; one that does not ask for the knob is found out once for a case."""

    def __init__(self, pair: _Pair, single: _Single) -> None:
        self.pair, self.name = pair, single.knob.name
        condition = single.rule.condition
        self.asks = condition is not None and self.name in pair.leaves.of(condition)
        self.test = None if condition is None else pair.run.finder.evaluator.compiled(condition)[0]
        self.case: Mapping[str, object] = {}
        self.held: bool | None = None

    def holds(self, facts: Mapping[str, object], case: Mapping[str, object], value: object) -> bool:
        """Whether the condition is true for a value of the knob."""
        if self.test is None:
            return True
        if self.held is None or self.asks or self.case is not case:
            self.case = case
            self.held = self.test(self.pair.facts(facts, case, {self.name: value})) is True
        return self.held


def _numbers(node: t.Expr) -> list[float]:
    return [part.value for part in t.walk(node) if isinstance(part, t.Number)]


def _near(numbers: Iterable[float], kind: Type) -> list[float]:
    return [number * kind.factor * by for number in numbers for by in _BESIDE]


def _may_meet(a: t.Rule, b: t.Rule) -> bool:
    """Whether two rules may speak of the same file."""
    mine, theirs = ({scope.framework for scope in rule.scope} for rule in (a, b))
    return not mine or not theirs or bool(mine & theirs)


class Leaves(Record):
    """The facts that expressions depend on, through lets and functions."""

    symbols: Symbols
    _known: dict[str, frozenset[str]] = field(factory=dict)

    def of(self, node: t.Expr) -> frozenset[str]:
        """Return the facts that an expression depends on."""
        leaves: frozenset[str] = frozenset()
        for part in t.walk(node):
            if isinstance(part, (t.Name, t.Call)):
                leaves |= self._of_name(part.name if isinstance(part, t.Name) else part.function)
        return leaves

    def _of_name(self, name: str) -> frozenset[str]:
        if name not in self._known:
            symbols = self.symbols
            let = symbols.functions.get(name) or (None if name in symbols.facts else symbols.lets.get(name))
            self._known[name] = frozenset()  # also what a function's parameter of this name adds
            if let is not None:
                self._known[name] = self.of(let.body)
            elif name in symbols.types:
                self._known[name] = frozenset((name,))
        return self._known[name]

    def of_rule(self, rule: t.Rule) -> frozenset[str]:
        """Return the facts that a rule depends on."""
        leaves = self.of(rule.requirement)
        return leaves if rule.condition is None else leaves | self.of(rule.condition)

    def moved_by_fixes(self, rule: t.Rule) -> set[str]:
        """Return what a fix of a rule may move: the knobs that it depends on, with their partners."""
        knobs = [knob for name in self.of_rule(rule) if (knob := self.symbols.knobs.get(name)) is not None]
        return {name for knob in knobs for name in (knob.name, *knob.partners)}

    def single(self, compiled: CompiledRule) -> _Single | None:
        """Return a rule whose requirement depends on one knob and on nothing else but the target."""
        rule = self.symbols.rules[compiled.code]
        names = [name for name in self.of(rule.requirement) if not name.startswith(_OWN)]
        knob = self.symbols.knobs.get(names[0]) if len(names) == 1 else None
        return None if knob is None else _Single(rule, compiled, knob)
