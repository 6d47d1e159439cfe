"""``cfglint test``: rules that are at odds with their own examples, or with each other.

Each example that a rule carries states an outcome, and the rule has to come to it. Two rules that cannot hold
together, and fixes that break another rule or go in circles, are found by trying, on every GPU of the
catalogue and on the rules' own examples, before a user's file does.
"""

from __future__ import annotations

import json
from itertools import combinations, islice, product

from cfglint.command import Arguments, free, parse
from cfglint.document.reading import read_text
from cfglint.document.tree import ABSENT, ALL, Missing
from cfglint.engine.memory import given_by
from cfglint.engine.run import Run
from cfglint.errors import CfglintError
from cfglint.facts import NEWEST, Values
from cfglint.hardware.target import all_targets
from cfglint.lang import tree as t
from cfglint.lang.compile import Function, Names
from cfglint.lang.pack import CompiledRule, Pack, load, read_rules
from cfglint.lang.runtime import NAMESPACE
from cfglint.lang.types import Type, is_number
from cfglint.lang.values import INF, Interval, Open, Unknown, needs_of
from cfglint.record import Record, Value
from cfglint.repair.apply import repair
from cfglint.repair.options import combined
from cfglint.repair.solve import ANY, solver_of
from cfglint.repair.tracks import UNSOLVABLE, Broken
from cfglint.report.blocks import few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from cfglint.facts import Steps
    from cfglint.lang.symbols import Symbols

_WORDS = {"bad": "bad", "may": "possibly bad (may)", "good": "good", "open": "not decided (open)"}
_RESULTS = {"bad": "is broken", "may": "is possibly broken", "good": "holds", "open": "is not decided"}
_MOST_VALUES = 400  # of a knob, from each of two requirements
_MOST_CASES = 256  # combinations of what two conditions ask for
_NAMED = 3  # targets that a message names
_OWN = ("gpu.", "document.", "framework.")  # facts that no config states
_BESIDE = (0.5, 1, 2)  # times a number that a rule names


class TestArguments(Arguments):
    """The arguments of ``test``."""

    command = "test"
    about = "Run the examples that rules carry, and look for rules that are at odds with each other."

    rules: list[str] = free("RULES", "rule files or folders (default: the shipped rules)", many=True)


def main(arguments: list[str]) -> int:
    """Run the rules' own examples, and rules against rules; exit 1 if something is wrong."""
    args = parse(TestArguments, arguments)
    pack = load(read_rules(args.rules) if args.rules else None)
    mine = None
    if args.rules:
        own, symbols = {source.path for source in pack.sources()}, pack.symbols()
        mine = {c for c in symbols.rules if symbols.where[f"rule {c}"].rpartition(":")[0] in own}
    outcomes = run_examples(pack, mine)
    wrong = [outcome for outcome in outcomes if not outcome.ok]
    for outcome in wrong:
        print(outcome)
    at_odds = clashes(pack, mine)
    for clash in at_odds:
        print(clash)
    odds = f", {len(at_odds)} clash{'es' * (len(at_odds) != 1)}" if at_odds else ""
    print(f"{len(outcomes)} examples, {len(wrong)} wrong{odds}")
    return int(bool(wrong or at_odds))


class Outcome(Value):
    """What one example came to. ``place`` is ``file:line``; ``needs`` are the names that were missing."""

    code: str
    place: str
    expected: str
    result: str
    needs: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the rule came to what its example states."""
        return self.expected == self.result

    def __str__(self) -> str:
        wanting = f" for want of {', '.join(self.needs)}" if self.needs else ""
        what = f"this example is {_WORDS[self.expected]}, but the rule {_RESULTS[self.result]}{wanting}"
        return f"{self.place}: {self.code}: {what}"


class Clash(Value):
    """Rules that are at odds. ``place`` is that of the first, ``file:line``; ``codes`` are all of them."""

    place: str
    codes: tuple[str, ...]
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


def run_examples(pack: Pack, codes: Container[str] | None = None) -> list[Outcome]:
    """Run the examples of a pack's rules, or of rules ``codes``; what is not ``ok`` contradicts its rule."""
    examples = _Examples(pack)
    rules = [rule for rule in pack.rules if codes is None or rule.code in codes]
    return [examples.outcome(rule, example, place) for rule in rules for example, place in examples.of(rule)]


def clashes(pack: Pack, codes: Container[str] | None = None) -> list[Clash]:
    """Return what is wrong between the rules of a pack, or between rules ``codes`` and any."""
    every = [*contradictions(pack, codes), *_Examples(pack).clashes(codes)]
    kept = (clash for clash in every if codes is None or any(code in codes for code in clash.codes))
    return sorted(kept, key=lambda clash: (clash.place, clash.codes))


def contradictions(pack: Pack, codes: Container[str] | None = None) -> Iterator[Clash]:
    """Yield the pairs of rules that cannot hold together, with the targets for which that is so."""
    symbols = pack.symbols()
    singles = []
    for compiled in pack.rules:
        rule = symbols.rules[compiled.code]
        leaves = {name for name in _leaves(rule.requirement, symbols) if not name.startswith(_OWN)}
        knob = symbols.knobs.get(next(iter(leaves))) if len(leaves) == 1 else None
        if knob is not None:
            singles.append(_Single(rule, compiled, knob))
    targets = [(target.name, given_by(target)) for target in all_targets()]
    run = Run(pack)
    for a, b in combinations(singles, 2):
        if a.knob is not b.knob or not _may_meet(a.rule, b.rule):
            continue
        if codes is not None and a.rule.code not in codes and b.rule.code not in codes:
            continue
        clash = _Pair(run, symbols, (a, b)).clash(targets)
        if clash is not None:
            yield clash


# ── the rules' own examples ────────────────────────────────────────────────────────────────────────────
class GivenView:
    """A document that holds nothing but the keys of an example."""

    unread = None  # an example is whole

    def __init__(self, given: Iterable[tuple[Steps, object]]) -> None:
        self.root: dict[object, Any] = {}
        for steps, value in given:
            if not steps:
                continue
            at = self.root
            for step in steps[:-1]:
                inner = at.get(step)
                if not isinstance(inner, dict):
                    inner = at[step] = {}
                at = inner
            at[steps[-1]] = (
                Missing(("$." + ".".join(map(str, steps)),), "???", "missing") if value == "???" else value
            )

    def get(self, path: tuple[object, ...]) -> object:
        """Return the value at a path, ABSENT where there is none."""
        value: object = self.root
        for i, step in enumerate(path):
            if step is ALL:
                items = list(value.values()) if isinstance(value, dict) else value
                if not isinstance(items, (list, tuple)):
                    return ABSENT
                rest = [_at(item, path[i + 1 :]) for item in items]
                return [inner for inner in rest if inner is not ABSENT]
            value = _at(value, (step,))
        return value

    def has(self, path: tuple[object, ...]) -> bool:
        """Whether the example gives a key."""
        return self.get(path) is not ABSENT


def _at(value: object, path: tuple[object, ...]) -> object:
    for step in path:
        if isinstance(value, (list, tuple)):
            if not isinstance(step, int) or step >= len(value):
                return ABSENT
            value = value[step]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return ABSENT
    return value


class _Examples:
    """The examples of a pack's rules: what they come to, and what comes of fixing them."""

    def __init__(self, pack: Pack) -> None:
        self.pack = pack
        self.symbols = pack.symbols()
        self.names = Names(self.symbols)

    def of(self, rule: CompiledRule) -> Iterator[tuple[t.Example, str]]:
        """Yield a rule's examples with their places."""
        for i, example in enumerate(self.symbols.rules[rule.code].examples):
            yield example, self.symbols.where[f"example {rule.code} {i}"]

    def value(self, node: t.Expr, wanted: Type | None) -> object:
        """Return what an example gives, as a value of the fact's type."""
        emitter = Function(self.names)
        atom, kind = emitter.value(node, wanted)
        if wanted is not None:
            atom = emitter.fit(node, atom, kind, wanted)
        emitter.line(f"return {atom}")
        namespace: dict[str, Any] = dict(NAMESPACE)
        exec(emitter.finish("F", kind=kind.kind), namespace)  # noqa: S102 (checked when the rules were loaded)
        return namespace["F"](Values(self.pack))

    def facts(self, example: t.Example) -> dict[str, object]:
        """Return the facts that an example gives, in base units."""
        return {
            key.name: self.value(node, self.names.type_of(key.name))
            for key, node in example.given
            if isinstance(key, t.Name)
        }

    def outcome(self, rule: CompiledRule, example: t.Example, place: str) -> Outcome:
        """Run one example."""
        given = self.facts(example)
        keys = [(key.steps, self.value(node, None)) for key, node in example.given if isinstance(key, t.Path)]
        framework, version = _subject(self.symbols.rules[rule.code], rule, given)
        values = Values(self.pack, GivenView(keys), framework, version, given)  # type: ignore[arg-type]
        values.update(given)  # also what Values knows by itself: the framework's name, version and dialect
        truth = rule.test(values)
        result = "bad" if truth is False else "good"
        if isinstance(truth, Open):
            result = "open" if truth.needs else "may"
        return Outcome(rule.code, place, example.kind, result, tuple(sorted(needs_of(truth))))

    def clashes(self, codes: Container[str] | None) -> Iterator[Clash]:
        """Yield what is wrong with the fixes of bad examples: of rules ``codes``, or that may break one."""
        rules = [rule for rule in self.symbols.rules.values() if codes is None or rule.code in codes]
        some_may_break = any(self._moved(rule) for rule in rules)
        for rule in self.pack.rules:
            if self.symbols.rules[rule.code].scope:
                continue  # its facts are keys of a framework's own
            if codes is not None and rule.code not in codes and not some_may_break:
                continue
            for example, place in self.of(rule):
                clash = self._clash(rule.code, example, place) if example.kind == "bad" else None
                if clash is not None:
                    yield clash

    def _moved(self, rule: t.Rule) -> bool:
        """Whether a fix of an example may break a rule: one of all frameworks, and about a knob."""
        parts = (rule.requirement, rule.condition) if rule.condition is not None else (rule.requirement,)
        leaves = {name for part in parts for name in _leaves(part, self.symbols)}
        return not rule.scope and not leaves.isdisjoint(self.symbols.knobs)

    def _clash(self, code: str, example: t.Example, place: str) -> Clash | None:
        stated, given = self._split(self.facts(example))
        if not any(name in self.symbols.knobs for name in stated):
            return None
        text = "cfglint: facts\n" + "".join(f"{name}: {value}\n" for name, value in stated.items())
        file = read_text(text, place)
        run = Run(self.pack, framework="facts", given={name: (v, "example") for name, v in given.items()})
        try:
            repair(run, file, unsafe=True, least="info", notes=False)
        except CfglintError:
            return Clash(place, (code,), f"{code}: fixes of this example go in a circle")
        (subject,) = run.subjects(file, judge_broken=True)
        solver = solver_of(run, run.judged(subject))
        trials = solver.trials
        goals = solver.goals(code)
        if not goals or solver.best(goals, ANY) is not None:
            return None
        alone = solver.watching().best(goals, ANY)
        if alone is None:
            return None
        facts = combined(alone.options) or {}
        harmed = (
            rule.code
            for judged in trials.judgements
            for rule in trials.harmed(judged, facts)
            if rule.test(trials.values(judged, facts)) is False  # undecided is no harm
        )
        codes = tuple(dict.fromkeys(harmed))
        if not codes:
            return None
        what = f"every fix of this example breaks another rule; the cheapest breaks {', '.join(codes)}"
        return Clash(place, (code, *codes), f"{code}: {what}")

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


def _subject(
    rule: t.Rule, compiled: CompiledRule, given: dict[str, object]
) -> tuple[str | None, tuple[float, ...] | None]:
    """Return the framework that an example is run under, in a version that the rule speaks of."""
    framework = given.get("framework.name")
    if not isinstance(framework, str):
        framework = rule.scope[0].framework if rule.scope else None
    version = given.get("framework.version")
    if isinstance(version, tuple):
        return framework, version
    limits: list[tuple[float, ...]] = [NEWEST]
    for scope in rule.scope:
        for _, limit in scope.operators:
            limits += [limit.numbers, (*limit.numbers, 1)]
    limits.append((0,))
    return framework, next((v for v in limits if compiled.covers(framework, v)), NEWEST)


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
    symbols: Symbols
    pair: tuple[_Single, _Single]

    def clash(self, targets: Sequence[tuple[str, Mapping[str, object]]]) -> Clash | None:
        """Return what is wrong between the two, with the targets for which that is so."""
        leaves = {
            name for single in self.pair for part in single.parts for name in _leaves(part, self.symbols)
        }
        asks_target = any(name.startswith("gpu.") for name in leaves)
        values = self._values()
        tried = targets if asks_target else [("", {})]
        where = [name for name, facts in tried if self._at_odds(values, facts)]
        if not where:
            return None
        on = f" on {few(where, _NAMED)}" if where[0] else ""
        codes = tuple(single.rule.code for single in self.pair)
        place, second = (self.symbols.where[f"rule {code}"] for code in codes)
        what = (
            f"{codes[0]} and {codes[1]} ({second}) cannot hold together{on}: "
            f"no value that {self.pair[0].knob.name} may take satisfies both"
        )
        return Clash(place, codes, what)

    def _facts(self, *given: Mapping[str, object]) -> Values:
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
                knob, start, kind, single.rule.requirement, evaluator, lambda v: self._facts({knob.name: v})
            )
            for track in broken.tracks():
                for value in islice(track.values, _MOST_VALUES):
                    values[type(value), value] = value
        return list(values.values())

    def _at_odds(self, values: Sequence[object], facts: Mapping[str, object]) -> bool:
        """Whether each value breaks one of two rules, though some value suits each of them."""
        name = self.pair[0].knob.name
        compiled = self.run.finder.evaluator.compiled
        required, other = (compiled(single.rule.requirement)[0] for single in self.pair)

        def holds(requirement: Callable[..., object], value: object) -> bool:
            try:
                return requirement(self._facts(facts, {name: value})) is not False
            except UNSOLVABLE:
                return True

        first, second = ([value for value in values if holds(test, value)] for test in (required, other))
        if not first or not second or any(holds(other, value) for value in first):
            return False
        return any(
            all(
                any(single.compiled.test(given) is False for single in self.pair)
                for given in (self._facts(facts, case, {name: value}) for value in values)
            )
            for case in self._cases()
        )

    def _cases(self) -> Iterator[dict[str, object]]:
        """Yield what the conditions may meet: truths, members, numbers beside those that they name."""
        wanted: dict[str, list[object]] = {}
        for single in self.pair:
            for condition in single.parts[1:]:
                for name in _leaves(condition, self.symbols):
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


def _numbers(node: t.Expr) -> list[float]:
    return [part.value for part in t.walk(node) if isinstance(part, t.Number)]


def _near(numbers: Iterable[float], kind: Type) -> list[float]:
    return [number * kind.factor * by for number in numbers for by in _BESIDE]


def _may_meet(a: t.Rule, b: t.Rule) -> bool:
    """Whether two rules may speak of the same file."""
    mine, theirs = ({scope.framework for scope in rule.scope} for rule in (a, b))
    return not mine or not theirs or bool(mine & theirs)


def _leaves(node: t.Expr, symbols: Symbols, within: frozenset[str] = frozenset()) -> set[str]:
    """Return the facts that an expression depends on, through lets and functions."""
    leaves: set[str] = set()
    for part in t.walk(node):
        name = part.name if isinstance(part, t.Name) else part.function if isinstance(part, t.Call) else None
        if name is None or name in within:
            continue
        let = symbols.functions.get(name) or (None if name in symbols.facts else symbols.lets.get(name))
        if let is not None:
            leaves |= _leaves(let.body, symbols, within | {name})
        elif name in symbols.types:
            leaves.add(name)
    return leaves
