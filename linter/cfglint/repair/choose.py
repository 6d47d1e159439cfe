"""Bindings that choose, read backwards: which switches make an ``if`` or a ``match`` come to a value.

What a condition compares (a backend, a version) stays as it is; switches alone are turned. What comes out is
only a proposal: the text that has it is read, and where the fact is not worth what was asked, it is none.
"""

from __future__ import annotations

from cfglint.engine.evaluation_scope import substitute
from cfglint.engine.knobs import literal, word_of
from cfglint.lang import tree as t
from cfglint.lang.types import ANY, BOOL, NUMBER, Type, is_number
from cfglint.record import Record, field
from cfglint.repair.invert import Written, spellings, through_product

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cfglint.engine.describe import Evaluator, Origins
    from cfglint.facts import Steps
    from cfglint.repair.consumer import Consumer

_ROUNDING = ("floor", "ceil", "round")
_DEEPEST = 12


class Chooser(Record):
    """Finds what makes a fact of one document worth a value.

    ``consumer`` says what the framework takes.
    """

    origins: Origins
    evaluator: Evaluator
    consumer: Consumer
    _open: list[str] = field(factory=list, init=False)

    def of(self, name: str, value: object, spelling: object = None) -> list[Written] | None:
        """Return what has to be in the file; None where that is not known, or where it is there already."""
        if name in self._open or len(self._open) > _DEEPEST:
            return None
        self._open.append(name)
        try:
            kind = self.origins.symbols.types.get(name) or self.evaluator.type_of(name)
            ways = (self._make(source, value, kind, spelling) for source in self._sources(name))
            return next((way for way in ways if way), None)
        finally:
            self._open.pop()

    def _sources(self, name: str) -> Iterator[t.Expr]:
        """Yield what may give a name its value: the binding in force, those before it, or its let.

        Of keys that are not there, only those count that are said as the command says its own.
        """
        bindings, force = self.origins.bindings.get(name, []), self.origins.of(name).binding
        absent = force is None or not all(map(self._has, t.paths_in(force.source)))
        if force in bindings and not absent:  # one whose key is there goes before those behind it
            bindings = bindings[: bindings.index(force)]
        others = [each for each in bindings if each.when is None or self._worth(each.when) is not False]
        able = [*([] if force is None else [force]), *(each for each in others if each is not force)]
        if absent and able:
            strange = {id(binding): self._strangeness(binding) for binding in able}
            able = [each for each in able if strange[id(each)] == min(strange.values())]
        yield from (each.source for each in able if each is force or self._is_offered(each))
        let = self.origins.own_lets.get(name) or self.origins.symbols.lets.get(name)
        if let is not None and name not in self.origins.bindings and not let.parameters:
            yield let.body

    def _is_offered(self, binding: t.Binding) -> bool:
        paths = t.paths_in(binding.source)
        return all(self._has(path) or self.consumer.offers(path, binding) for path in paths)

    def _strangeness(self, binding: t.Binding) -> int:
        return max((self.consumer.strangeness(path) for path in t.paths_in(binding.source)), default=0)

    def _has(self, path: Steps) -> bool:
        view = self.origins.values.view
        return view is not None and view.has(path) is True

    def _worth(self, node: t.Expr) -> object:
        return self.evaluator(node, self.origins.values)[0]

    def _is(self, node: t.Expr, value: object) -> bool:
        return (self._worth(node) == value) is True

    def _make(  # noqa: PLR0911
        self, node: t.Expr, value: object, kind: Type, spelling: object = None
    ) -> list[Written] | None:
        """Return what makes an expression worth a value: nothing where it is so already."""
        match node:
            case t.Path(steps):
                return self._at(steps, value, kind, spelling)
            case t.Name(name) if not self.evaluator.is_word(node):
                return [] if self._is(node, value) else self.of(name, value, spelling)
            case t.Product(factors) if is_number(value):
                return self._multiplied(factors, value, kind)
            case t.Call(function, arguments):
                return self._called(function, arguments, value, kind)
            case t.Choice():
                return self._matched(node, value, kind)
            case t.If():
                return self._chosen(list(_chain(node)), value, kind)
            case t.Has() | t.Not() | t.Junction() | t.Compare() if isinstance(value, bool):
                return self._turn(node, value)
        return [] if literal(node, kind) == value and word_of(node) is not None else None

    def _multiplied(
        self, factors: tuple[tuple[str, t.Expr], ...], value: float, kind: Type
    ) -> list[Written] | None:
        """Return what makes a product worth a value, by the one key in it, or by what it rounds."""
        (sign, first), *rest = factors
        if isinstance(first, t.Call) and first.function in _ROUNDING and sign == "*":
            scale = self._worth(t.Product((("*", t.Number(1)), *rest)))
            whole = is_number(scale) and scale != 0 and value % scale == 0
            return self._make(first, value / scale, kind) if whole and is_number(scale) else None
        written = through_product(factors, value, kind, self.origins.values)
        return None if written is None else self._at(written.path, written.value, NUMBER, None)

    def _at(self, steps: Steps, value: object, kind: Type, spelling: object) -> list[Written] | None:
        if "*" in steps:
            return None
        view = self.origins.values.view
        old = view.get(steps) if view is not None else None
        words = spellings(value, kind, old, spelling)
        if kind.members and self._is_a_switch(steps):
            words = (word for word in words if isinstance(word, bool))
        return next(([Written(steps, word)] for word in words if self.consumer.takes(steps, word)), None)

    def _is_a_switch(self, steps: Steps) -> bool:
        """Whether the default of a key, or of its other spelling, is true or false: no third word then."""
        return any(
            any(each.source == t.Path(steps) for each in bindings)
            and any(isinstance(each.default, t.Truth) for each in bindings)
            for bindings in self.origins.bindings.values()
        )

    def _called(
        self, function: str, arguments: tuple[t.Expr, ...], value: object, kind: Type
    ) -> list[Written] | None:
        known = self.origins.symbols.functions.get(function)
        if known is not None:
            body = substitute(known.body, dict(zip(known.parameters, arguments, strict=True)))
            return self._make(body, value, kind)
        if function in _ROUNDING and len(arguments) == 1:
            return self._make(arguments[0], value, kind)
        others = [each for each in arguments if not isinstance(each, t.Number)]
        limits = [NUMBER.worth(each) for each in arguments if isinstance(each, t.Number)]
        if function not in ("max", "min") or len(others) != 1 or not is_number(value):
            return None
        within = all(value >= limit if function == "max" else value <= limit for limit in limits)
        return self._make(others[0], value, kind) if within else None

    def _matched(self, node: t.Choice, value: object, kind: Type) -> list[Written] | None:
        subject = node.subject
        for patterns, arm in node.arms:
            if literal(arm, kind) != value or word_of(arm) is None:
                continue
            words = [word_of(pattern) for pattern in patterns]
            for word in words:
                if isinstance(word, str) and " " in word:  # a name of the table's own
                    continue
                way = self._make(subject, word, ANY)
                if way:
                    return way
        if node.other is not None and node.other == subject:  # what no arm names is there as it is
            return self._make(subject, value, kind)
        return self._elsewhere(node, value, kind)

    def _elsewhere(self, node: t.Choice, value: object, kind: Type) -> list[Written] | None:
        """Return what makes the arm that is taken now come to a value; one that is a literal does not."""
        for patterns, arm in node.arms:
            if any(self._is(node.subject, word_of(pattern)) for pattern in patterns):
                return self._make(arm, value, kind) if word_of(arm) is None else None
        return (
            None
            if node.other is None or word_of(node.other) is not None
            else self._make(node.other, value, kind)
        )

    def _chosen(
        self, chain: Sequence[tuple[t.Expr | None, t.Expr]], value: object, kind: Type
    ) -> list[Written] | None:
        """Return what makes the first arm that can be it the one that is taken: the fewest keys."""
        ways = (self._arm(chain, i, value, kind) for i in range(len(chain)))
        return min((way for way in ways if way), key=len, default=None)

    def _arm(
        self, chain: Sequence[tuple[t.Expr | None, t.Expr]], place: int, value: object, kind: Type
    ) -> list[Written] | None:
        keys = self._make(chain[place][1], value, kind)
        if keys is None:
            return None
        for i, (condition, arm) in enumerate(chain):
            if condition is None or (i > place and self._worth(condition) is not True):
                continue
            more = self._turn(condition, i == place)
            if more is None and i <= place:
                return None
            if i <= place or literal(arm, kind) != value:
                keys = keys + (more or [])
        return _together(keys)

    def _turn(self, condition: t.Expr, wanted: bool) -> list[Written] | None:  # noqa: PLR0911
        """Return which switches make a condition true or false."""
        if self._worth(condition) is wanted:
            return []
        match condition:
            case t.Not(operand):
                return self._turn(operand, not wanted)
            case t.Name() | t.Path() if self._is_switch(condition):
                return self._make(condition, wanted, BOOL)
            case t.Has(path) if self.consumer.flags and "*" not in path.steps:
                return self._at(path.steps, wanted, BOOL, None)
            case t.Junction(operator, operands):
                if (operator == "and") is not wanted:  # the first: another would change more than this
                    return self._turn(operands[0], wanted)
                ways = [self._turn(operand, wanted) for operand in operands]
                return None if None in ways else _together([key for way in ways for key in way or ()])
        return None

    def _is_switch(self, node: t.Expr) -> bool:
        kind = self.evaluator.type_of(node.name) if isinstance(node, t.Name) else BOOL
        return kind.kind == "bool"


def _chain(node: t.Expr) -> Iterator[tuple[t.Expr | None, t.Expr]]:
    """Yield the arms of ``if … else if …`` with their conditions; the last has none."""
    while isinstance(node, t.If):
        yield node.condition, node.then
        node = node.other
    yield None, node


def _together(keys: Iterable[Written]) -> list[Written] | None:
    """Return each key once; None where one would have two values."""
    distinct: dict[Steps, Written] = {}
    for key in keys:
        first = distinct.setdefault(key.path, key)
        if first.value != key.value or type(first.value) is not type(key.value):
            return None
    return list(distinct.values())
