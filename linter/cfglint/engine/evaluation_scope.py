"""Expressions where parameters, roles and list items are bound: their values, the branches that they take.

A derivation shows a function's body by its parameters' names and computes it by the arguments: what is bound
to a name is put in its place before an expression is evaluated, as the compiler does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from cfglint.engine.describe import Evaluator, Origin, Origins, show_value
from cfglint.lang import tree as t
from cfglint.lang.calls import FUNCTIONS
from cfglint.lang.compile import CompileError
from cfglint.lang.show import path as path_text
from cfglint.lang.show import quote, show
from cfglint.lang.tree import rebuilt, walk
from cfglint.lang.types import ANY, Type
from cfglint.lang.values import Interval, Unknown, needs_of
from cfglint.record import Record, field, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cfglint.facts import Steps, Values

    # where a value comes from, the expression that gives it, and what chose that
    _Given: TypeAlias = tuple["Source", t.Expr | None, tuple[str, ...]]

_PLAIN = (str, int, float, list, type(None))  # what a list shows; of others it says how many
_LONGEST = 60  # characters of a text in a formula
_FAILS = (CompileError, ZeroDivisionError, OverflowError, RecursionError)


class RoleOf(Record):
    """What a quantifier's variable stands for while it runs over roles."""

    name: str


def is_put_in(node: t.Expr) -> bool:
    """Whether an expression is a quantifier, or a call of a function of the rules."""
    return isinstance(node, t.Quantifier) or (isinstance(node, t.Call) and node.function not in FUNCTIONS)


def substitute(node: t.Expr, bound: Mapping[str, t.Expr | RoleOf]) -> t.Expr:
    """Return ``node`` with what is bound in the place of names."""
    if not bound:
        return node

    def change(part: t.Expr) -> t.Expr | None:
        if isinstance(part, t.Name):
            head, _, rest = part.name.partition(".")
            return _field(bound[head], rest) if head in bound else None
        if isinstance(part, t.Quantifier):
            return _inside(part, bound)
        return None

    result: t.Expr = rebuilt(node, change)
    return result


def _field(meant: t.Expr | RoleOf, rest: str) -> t.Expr:
    if isinstance(meant, RoleOf):
        return t.Name(f"{meant.name}.{rest}")
    if not rest:
        return meant
    if isinstance(meant, t.Path):
        return t.Path((*meant.steps, *rest.split(".")))
    return t.Name(f"{show(meant)}.{rest}")


def _inside(node: t.Quantifier, bound: Mapping[str, t.Expr | RoleOf]) -> t.Quantifier:
    """Substitute in a quantifier; its variable gets another name where an argument uses the same."""
    variable, body = node.variable, node.body
    left = {name: meant for name, meant in bound.items() if name != variable}
    used = {n.name.partition(".")[0] for meant in left.values() for n in walk(meant) if isinstance(n, t.Name)}
    if variable in used:
        while variable in used:
            variable += "_"
        body = substitute(body, {node.variable: t.Name(variable)})
    return t.Quantifier(node.kind, variable, substitute(node.source, bound), substitute(body, left))


class Reduced(Record):
    """An expression without the branches that are not taken.

    ``chosen`` says what chose the others, ``conditions`` holds the conditions and subjects that did.
    """

    node: t.Expr
    chosen: tuple[str, ...]
    conditions: tuple[t.Expr, ...]


class Bound(Record):
    """The values that expressions are computed on: facts, and what parameters and variables stand for."""

    evaluator: Evaluator
    values: Values
    env: Mapping[str, t.Expr] = field(factory=dict)
    variables: Mapping[str, object] = field(factory=dict)
    items: Mapping[str, tuple[str | int, ...] | None] = field(factory=dict)  # where variables stand

    def closed(self, node: t.Expr) -> t.Expr:
        """Return ``node`` with nothing in it that only this scope knows, but for list items."""
        return substitute(node, self.env)

    def value(self, node: t.Expr) -> tuple[object, Type]:
        """Return a value and its type; Unknown for what cannot be computed by itself."""
        node = self.closed(node)
        if isinstance(node, t.Name) and node.name.partition(".")[0] not in self.variables:
            kind = self.evaluator.names.type_of(node.name)
            if kind is not None:
                return self.values[node.name], kind
        try:
            return self.evaluator(node, self.values, self.variables)
        except _FAILS:
            return Unknown(), ANY

    def truth(self, node: t.Expr) -> object:
        """Return a condition's truth; a value of the file counts as the truth that it spells."""
        return self.value(t.Junction("and", (node,)))[0]

    def is_word(self, node: t.Expr) -> bool:
        """Whether a name is an enumeration's member."""
        return isinstance(node, t.Name) and not self.is_bound(node.name) and self.evaluator.is_word(node)

    def without_words(self, operands: tuple[t.Expr, ...]) -> list[t.Expr]:
        """Leave out the words that an enumeration among the operands resolves."""
        for subject in operands:
            named = isinstance(subject, t.Name) and not self.is_word(subject)
            kind = self.value(subject)[1] if named else ANY
            if kind.kind == "enum":
                words = dict(kind.spellings)
                return [
                    node
                    for node in operands
                    if node is subject or not (isinstance(node, t.Name) and node.name.lower() in words)
                ]
        return list(operands)

    def is_bound(self, name: str) -> bool:
        """Whether a name is a parameter's or a variable's."""
        head = name.partition(".")[0]
        return head in self.env or head in self.variables

    # ── words ──────────────────────────────────────────────────────────────────────────────────────────
    def text(self, node: t.Expr) -> str:
        """Return the value of ``node`` as it is in a formula."""
        if isinstance(node, t.Path) and self.values.has(node.steps) is False and "*" not in node.steps:
            return "absent"
        return formula_text(*self.value(node))

    def numbers(self, node: t.Expr) -> str:
        """Return ``node`` with the numbers put in."""
        return show(node, self._number)

    def _number(self, node: t.Expr) -> str | None:
        if isinstance(node, (t.Name, t.Path, t.Quantifier, t.Choice, t.If)):
            return None if self.is_word(node) else self.text(node)
        if isinstance(node, t.Has):
            return self.text(node)
        if isinstance(node, t.Call):
            if node.function not in FUNCTIONS or node.function == "known":
                return self.text(node)
            if node.function in ("min", "max") and len(node.arguments) > 1:
                return f"{node.function}({', '.join(self.text(a) for a in node.arguments)})"
        return None

    def outcome(self, condition: t.Expr, truth: object) -> str:
        """Return a condition and what it came to."""
        if isinstance(condition, t.Not) and isinstance(truth, bool):
            return self.outcome(condition.operand, not truth)
        if not isinstance(truth, bool):
            return f"{show(condition)} is undecided"
        return f"{show(self.decided(condition, truth))} is {'true' if truth else 'false'}"

    def decided(self, condition: t.Expr, truth: bool) -> t.Expr:
        """Return a condition without what plays no part in its truth: of ``a or b``, the one that is true."""
        if isinstance(condition, t.Not):
            return t.Not(self.decided(condition.operand, not truth))
        if not isinstance(condition, t.Junction):
            return condition
        own = [(operand, self.truth(operand)) for operand in condition.operands]
        if truth is (condition.operator == "or"):
            operand = next((each for each, known in own if known is truth), condition)
            return operand if operand is condition else self.decided(operand, truth)
        parts = tuple(self.decided(each, known) if isinstance(known, bool) else each for each, known in own)
        return t.Junction(condition.operator, parts)

    # ── branches ───────────────────────────────────────────────────────────────────────────────────────
    def reduced(self, node: t.Expr) -> Reduced:
        """Return ``node`` without the branches of ``if`` and ``match`` that are not taken."""
        chosen: list[str] = []
        conditions: list[t.Expr] = []

        def change(part: t.Expr) -> t.Expr | None:
            if isinstance(part, t.If):
                truth = self.truth(part.condition)
                conditions.append(part.condition)
                chosen.append(self.outcome(part.condition, truth))
                if isinstance(truth, bool):
                    return go(part.then if truth else part.other)
                return t.If(part.condition, go(part.then), go(part.other))
            if isinstance(part, t.Choice):
                word = self.text(part.subject)
                conditions.append(part.subject)
                chosen.append(f"{show(part.subject)} is {'not set' if word == '?' else word}")
                return self._arms(part, go)
            return part if is_put_in(part) else None

        def go(part: t.Expr) -> t.Expr:
            result: t.Expr = rebuilt(part, change)
            return result

        return Reduced(go(node), tuple(dict.fromkeys(chosen)), tuple(dict.fromkeys(conditions)))

    def _arms(self, node: t.Choice, go: Callable[[t.Expr], t.Expr]) -> t.Expr:
        """Return a choice without the arms that are not meant, or the one arm that is."""
        left = [i for i in range(len(node.arms) + 1) if self._meant(node, i)]
        if len(left) == 1:
            arm = node.arms[left[0]][1] if left[0] < len(node.arms) else node.other
            if arm is not None:
                return go(arm)
        arms = tuple((patterns, go(arm)) for i, (patterns, arm) in enumerate(node.arms) if i in left)
        otherwise = go(node.other) if node.other is not None and len(node.arms) in left else None
        return t.Choice(node.subject, arms, otherwise) if arms else node

    def _meant(self, node: t.Choice, place: int) -> bool:
        """Whether the arm at ``place`` (the last: ``else``) may be the one that is meant."""
        arms = tuple((patterns, t.Truth(i == place)) for i, (patterns, _) in enumerate(node.arms))
        if place == len(node.arms) and node.other is None:
            return False
        probe = t.Choice(node.subject, arms, t.Truth(place == len(node.arms)))
        return self.value(probe)[0] is not False

    def deciding(self, node: t.Junction) -> tuple[t.Expr, ...]:
        """Return the operands that matter: the first that settles it, else all."""
        settles = node.operator == "or"
        settling = ((operand,) for operand in node.operands if self.truth(operand) is settles)
        return next(settling, node.operands)


def formula_text(value: object, kind: Type) -> str:
    """Return a value as it is in a formula: a text in quotes, a long one cut."""
    if isinstance(value, str) and kind.kind in ("text", "any") and value:
        value = value if len(value) <= _LONGEST else value[: _LONGEST - 1] + "…"
        return quote(value)
    if isinstance(value, list) and not all(isinstance(item, _PLAIN) for item in value):
        return f"{len(value)} item{'s' * (len(value) != 1)}"
    text = show_value(value, kind)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def extremes(values: list[object], *, largest: bool) -> list[bool | None]:
    """Say of each number whether it is the largest (smallest): True, False, or None where it may be."""
    spans = [
        (v.lo, v.hi) if isinstance(v, Interval) else (v, v)
        for v in values
        if isinstance(v, (int, float, Interval))
    ]
    if len(spans) < len(values) or not spans:
        return [None] * len(values)
    if not largest:
        spans = [(-hi, -lo) for lo, hi in spans]
    best = max(lo for lo, _ in spans)
    able: list[bool | None] = [hi >= best for _, hi in spans]
    if sum(map(bool, able)) == 1 or all(lo == hi for lo, hi in spans):
        return able
    return [None if may else False for may in able]


# ── what gives a name its value ────────────────────────────────────────────────────────────────────────────
class Source(Record):
    """Where a value comes from; line and column count from 1, and are None where it is not in the file.

    ``kind`` is file, default, target, registry, derived, item, missing or expression.
    """

    kind: str
    source: str = ""
    line: int | None = None
    column: int | None = None


HERE = Source("expression")


class Provenance(Record):
    """Tells of each name what gives its value, in words and as a place of the file."""

    origins: Origins
    scope: Bound
    on_target: bool

    def at(self, steps: Steps) -> Source:
        """Return where a key of the file is written."""
        view = self.origins.values.view
        if view is None or ("*" not in steps and not view.has(steps)):
            return Source("missing", "not in the file")
        trace = self.origins.trace(steps)
        if trace is None or not trace.present:
            return Source("file", "this file")
        if any(step.kind == "override" for step in trace.steps):
            return Source("file", trace.where)
        return Source("file", trace.where, *view.document.file.lines.position(trace.own_span[0]))

    def of(self, name: str, value: object) -> _Given:
        """Return a name's origin, the expression that gives its value (None: a leaf), and what chose it."""
        origin = self.origins.of(name)
        binding = origin.binding
        chosen: tuple[str, ...] = ()
        if binding is not None and binding.when is not None:
            chosen = (self.scope.outcome(binding.when, self.scope.truth(binding.when)),)
        let = self.origins.own_lets.get(name) or self.origins.symbols.lets.get(name)
        body = None if let is None else let.body
        if origin.kind == "file" and origin.paths:
            return self._by_file(origin, value, chosen)
        if origin.kind == "default":
            default = binding.default if binding is not None else None
            return Source("default", origin.source), default or body, chosen
        if origin.kind == "derived":
            if binding is not None and name in self.origins.values.bindings:
                return Source("derived", f"framework {self.origins.framework}"), binding.source, chosen
            own = name in self.origins.own_lets
            return (
                Source("derived", "" if own else self.origins.symbols.where.get(f"let {name}", "")),
                body,
                chosen,
            )
        words = self._wanted(name, value) if origin.kind == "missing" else origin.source
        return Source(origin.kind, words), None, chosen

    def _by_file(self, origin: Origin, value: object, chosen: tuple[str, ...]) -> _Given:
        view, binding = self.origins.values.view, origin.binding
        present = next((p for p in origin.paths if view is not None and view.has(p)), origin.paths[0])
        source = replace(self.at(present), kind="file", source=origin.source)
        if binding is None:
            return source, None, chosen
        if view is not None and len(origin.paths) == 1 and view.get(present) is None:
            if binding.null is None and needs_of(value):
                return replace(source, kind="missing", source=f"null at {origin.source}"), None, chosen
            return source, binding.null, (*chosen, f"{path_text(present)} is null")
        return source, None if isinstance(binding.source, t.Path) else binding.source, chosen

    def _wanted(self, name: str, value: object) -> str:
        """Say what would give a missing name its value."""
        if name.startswith("gpu."):
            return "not in the GPU's data: --hardware FILE" if self.on_target else "not set: --gpu NAME"
        bindings = self.origins.bindings.get(name, ())
        keys = [path_text(steps) for binding in bindings for steps in t.paths_in(binding.source)]
        if keys:
            return f"not in the file: set {' or '.join(dict.fromkeys(keys))}"
        wanted = sorted(needs_of(value) - {name})
        registry = self.origins.symbols.registries.get(name.partition(".")[0])
        if registry is not None and name not in registry.keys:
            settling = " or ".join(wanted or registry.keys)
            return f"the table {registry.table} has no such figure: set {settling}"
        return f"needs {', '.join(wanted)}" if wanted else "not set"
