"""Runs the examples that rules carry: each states an outcome, and the rule has to come to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cfglint.document.tree import ABSENT, ALL, Missing
from cfglint.facts import NEWEST, Values
from cfglint.lang import tree as t
from cfglint.lang.compile import Function, Names
from cfglint.lang.runtime import NAMESPACE
from cfglint.lang.values import Open, needs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cfglint.facts import Steps
    from cfglint.lang.pack import CompiledRule, Pack
    from cfglint.lang.types import Type

_WORDS = {"bad": "bad", "may": "possibly bad (may)", "good": "good", "open": "not decided (open)"}
_FOUND = {
    "bad": "the rule is broken",
    "may": "the rule is possibly broken",
    "good": "the rule holds",
    "open": "the rule is not decided",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one example came to. ``place`` is ``file:line``; ``needs`` are the names that were missing."""

    code: str
    place: str
    expected: str
    found: str
    needs: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the rule came to what its example states."""
        return self.expected == self.found

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"

    @property
    def message(self) -> str:
        """What was expected, and what came instead."""
        wanting = f" for want of {', '.join(self.needs)}" if self.needs else ""
        return f"{self.code}: this example is {_WORDS[self.expected]}, but {_FOUND[self.found]}{wanting}"


@dataclass(frozen=True, slots=True)
class Lack:
    """What a rule lacks: a part that every shipped rule has, or an example in which it fires."""

    code: str
    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.code} {self.what}"


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
        found: object = self.root
        for i, step in enumerate(path):
            if step is ALL:
                items = list(found.values()) if isinstance(found, dict) else found
                if not isinstance(items, (list, tuple)):
                    return ABSENT
                rest = path[i + 1 :]
                values = [_at(item, rest) for item in items]
                return [value for value in values if value is not ABSENT]
            found = _at(found, (step,))
        return found

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
    def __init__(self, pack: Pack) -> None:
        self.pack = pack
        self.symbols = pack.symbols()
        self.names = Names(self.symbols)
        self.compiled: dict[str, CompiledRule] = {rule.code: rule for rule in pack.rules}

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

    def given(self, example: t.Example) -> tuple[dict[str, object], list[tuple[Steps, object]]]:
        """Return the facts and the keys that an example gives."""
        given: dict[str, object] = {}
        keys: list[tuple[Steps, object]] = []
        for key, node in example.given:
            if isinstance(key, t.Name):
                given[key.name] = self.value(node, self.names.type_of(key.name))
            else:
                keys.append((key.steps, self.value(node, None)))
        return given, keys

    def outcome(self, rule: t.Rule, example: t.Example, place: str) -> Outcome:
        """Run one example."""
        given, keys = self.given(example)
        compiled = self.compiled[rule.code]
        framework, version = _subject(rule, compiled, given)
        values = Values(self.pack, GivenView(keys), framework, version, given)  # type: ignore[arg-type]
        values.update(given)  # also what Values knows by itself: the framework's name, version and dialect
        truth = compiled.test(values)
        found = "bad" if truth is False else "good"
        if isinstance(truth, Open):
            found = "open" if truth.needs else "may"
        return Outcome(rule.code, place, example.kind, found, tuple(sorted(needs_of(truth))))

    def rules(self) -> Iterator[t.Rule]:
        for rule in self.pack.rules:
            yield self.symbols.rules[rule.code]

    def outcomes(self, rule: t.Rule) -> list[Outcome]:
        where = self.symbols.where
        return [self.outcome(rule, e, where[f"example {rule.code} {i}"]) for i, e in enumerate(rule.examples)]


def _subject(
    rule: t.Rule, compiled: CompiledRule, given: dict[str, object]
) -> tuple[str | None, tuple[float, ...] | None]:
    """Return the framework that an example is run under, in a version that the rule speaks of."""
    names = [scope.framework for scope in rule.scope]
    told = given.get("framework.name")
    framework = told if isinstance(told, str) else names[0] if names else None
    version = given.get("framework.version")
    if isinstance(version, tuple):
        return framework, version
    limits: list[tuple[float, ...]] = [NEWEST]
    for scope in rule.scope:
        for _, limit in scope.operators:
            limits += [limit.numbers, (*limit.numbers, 1)]
    limits.append((0,))
    return framework, next((v for v in limits if compiled.covers(framework, v)), NEWEST)


def run_examples(pack: Pack) -> list[Outcome]:
    """Run the examples of every rule of a pack; those that are not ``ok`` contradict their rule."""
    examples = _Examples(pack)
    return [outcome for rule in examples.rules() for outcome in examples.outcomes(rule)]


def given_by(pack: Pack, example: t.Example) -> dict[str, object]:
    """Return the facts that an example gives, in base units."""
    return _Examples(pack).given(example)[0]


def lacking(pack: Pack) -> list[Lack]:
    """Return what rules lack: a reason, a source, a bad and a good example, an example in which they fire.

    Rules that are one bare line are somebody's own, and lack nothing.
    """
    examples = _Examples(pack)
    found = []
    for rule in examples.rules():
        if rule.name == "rule-of-yours":
            continue
        place = examples.symbols.where[f"rule {rule.code}"]
        kinds = {example.kind for example in rule.examples}
        parts = {"why": rule.why, "see": rule.see, "bad": "bad" in kinds, "good": "good" in kinds}
        missing = [part for part, there in parts.items() if not there]
        if missing:
            found.append(Lack(rule.code, place, f"has no {', no '.join(missing)}"))
        if not any(outcome.found in ("bad", "may") for outcome in examples.outcomes(rule)):
            found.append(Lack(rule.code, place, "never fires in its own examples"))
    return found
