"""The examples that rules carry: what each states, and what its rule comes to."""

from __future__ import annotations

from cfglint.document.tree import ABSENT, ALL, Missing
from cfglint.facts import Values
from cfglint.lang import tree as t
from cfglint.lang.compile import Function, Names
from cfglint.lang.runtime import NAMESPACE
from cfglint.lang.values import Open, needs_of
from cfglint.lang.versions import NEWEST
from cfglint.record import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence
    from typing import Any

    from cfglint.facts import Steps
    from cfglint.lang.pack import CompiledRule, Pack
    from cfglint.lang.types import Type

_MOST = 6  # names in a message
_WORDS = {"bad": "bad", "may": "possibly bad (may)", "good": "good", "open": "not decided (open)"}
_RESULTS = {"bad": "is broken", "may": "is possibly broken", "good": "holds", "open": "is not decided"}


class Outcome(Value):
    """What one example came to. ``place`` is ``file:line``.

    ``needs`` are the names that were missing, ``asked`` what decides the rule: facts in it that are derived
    from them, or they themselves.
    """

    code: str
    place: str
    expected: str
    result: str
    needs: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the rule came to what its example states."""
        return self.expected == self.result

    def __str__(self) -> str:
        what = f"this example is {_WORDS[self.expected]}, but the rule {_RESULTS[self.result]}"
        if self.needs:
            what += f" because {_listed(self.needs)} {'is' if len(self.needs) == 1 else 'are'} missing"
            this = "it" if len(self.needs) == 1 else "them"
            what += f"; state {this if self.needs == self.asked else _listed(self.asked)} in the example"
        return f"{self.place}: {self.code}: {what}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST])
    return f"{shown} and {len(names) - _MOST} more" if len(names) > _MOST else shown


def run_examples(pack: Pack, codes: Container[str] | None = None) -> list[Outcome]:
    """Run the examples of a pack's rules, or of rules ``codes``; what is not ``ok`` contradicts its rule."""
    examples = Examples(pack)
    rules = [rule for rule in pack.rules if codes is None or rule.code in codes]
    return [examples.outcome(rule, example, place) for rule in rules for example, place in examples.of(rule)]


class GivenView:
    """A document that holds nothing but the keys of an example."""

    unread = None  # an example is whole
    unsettled = ()  # and no reference in it leads nowhere

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


class Examples:
    """The examples of a pack's rules: what they give, and what they come to."""

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
        needs = needs_of(truth)
        asked = tuple(sorted(self._asked(rule.code, values, needs))) if needs else ()
        return Outcome(rule.code, place, example.kind, result, tuple(sorted(needs)), asked)

    def _asked(self, code: str, values: Values, needs: frozenset[str]) -> Iterator[str]:
        """Yield the facts that a rule asks for and that missing names leave open, and further such names."""
        names = {part.name for part in t.walk(self.symbols.rules[code]) if isinstance(part, t.Name)}
        wanting = {name: needs_of(values[name]) for name in names & self.symbols.types.keys()}
        yield from (name for name, by in wanting.items() if by & needs)
        yield from needs.difference(*wanting.values())


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
