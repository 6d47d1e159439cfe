"""Derives a rule's verdict on one file and target: every name with its value, its formula and its origin.

What is built is a graph, each name once; `fold` (page.py) makes the tree of it that is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.document.tree import dotted
from cfglint.engine.cases import in_cases
from cfglint.engine.describe import Evaluator, Origins
from cfglint.engine.evaluation_scope import (
    HERE,
    Bound,
    Provenance,
    RoleOf,
    Source,
    extremes,
    formula_text,
    is_put_in,
    substitute,
)  # fmt: skip
from cfglint.engine.judge import values_for
from cfglint.engine.knobs import Meter, Move, verdict_of
from cfglint.engine.memory import case_text
from cfglint.engine.message import message
from cfglint.features.explain.derivation import Child, Derivation, Node, reached, unique
from cfglint.lang import tree as t
from cfglint.lang.show import path as path_text
from cfglint.lang.show import show
from cfglint.lang.tree import walk
from cfglint.lang.types import ANY, BOOL, Type
from cfglint.lang.values import needs_of
from cfglint.lang.versions import spelled
from cfglint.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cfglint.engine.run import Run
    from cfglint.engine.subject import Judged
    from cfglint.facts import Steps, Values

_MOST_ITEMS = 8  # of a list
_FREE = (t.Name, t.Path, t.Has, t.Call, t.Quantifier)


def derivations(run: Run, judgements: Iterable[Judged], code: str) -> list[Derivation]:
    """Return one derivation of a rule, which must exist, for each verdict on each subject."""
    different: dict[tuple[int, str], Derivation] = {}
    compiled = next(rule for rule in run.pack.rules if rule.code == code)
    for judged in (each for base in judgements for each in in_cases(base, compiled)):
        key = id(judged.subject), (deriver := Deriver(run, judged, code)).verdict
        if key not in different:
            different[key] = deriver.derivation()
        elif judged.name == different[key].target:
            different[key].cases += case_text(run.pack, judged.case)
        elif judged.name not in different[key].alike:
            different[key].alike += (judged.name or "",)
    return list(different.values())


class Deriver:
    """Builds the graph for one rule on one document and target."""

    def __init__(self, run: Run, judged: Judged, code: str) -> None:
        self.run = run
        self.judged = judged
        self.symbols = run.finder.symbols
        self.rule = self.symbols.rules[code]
        self.compiled = next(rule for rule in run.pack.rules if rule.code == code)
        self.values = judged.values.but({})
        self.origins = Origins(self.symbols, self.values, judged.sources, judged.subject.framework)
        self.top = Bound(Evaluator(self.symbols, self.origins.own_lets), self.values)
        self.provenance = Provenance(self.origins, self.top, judged.target is not None)
        self.meter = Meter(self.rule, self.compiled, self.top)
        self.outside = self._outside()
        self.verdict = "does not apply" if self.outside else self.meter.verdict
        self.nodes: dict[object, Node] = {}  # by name, key or call: each is in the graph once

    # ── the whole ──────────────────────────────────────────────────────────────────────────────────────
    def derivation(self) -> Derivation:
        """Return the rule's verdict with all that it rests on."""
        subject, rule = self.judged.subject, self.rule
        key = subject.document.key
        result = Derivation(
            rule, subject.document.file.path, self.judged.name, subject.framework,
            None if key is None else key.text, self.verdict, self.outside, "", None,
            Node(show(rule.requirement), None, BOOL, ""),
        )  # fmt: skip
        if self.outside:
            return result
        result.cases = case_text(self.run.pack, self.judged.case)
        truth = self.compiled.test(self.values)
        result.because, result.message = self._because(truth), self._message(truth)
        result.condition = None if rule.condition is None else self._root(rule.condition)
        result.requirement = self._root(rule.requirement)
        result.leaves = tuple(
            sorted(
                (node for node in reached(result.roots) if node.moves),
                key=lambda node: (not any(m.turns for m in node.moves), node.name not in self.symbols.knobs),
            )
        )
        result.results = tuple(show(node) for node in self.meter.results)
        return result

    def _outside(self) -> str:
        """Return why the rule does not speak of this file at all, or nothing."""
        subject, version = self.judged.subject, self.values.version
        if subject.document.error is not None and self.rule.code != "CFG001":
            return "the file does not parse: run cfglint check on it"
        if self.compiled.covers(subject.framework, version):
            return ""
        scopes = " or ".join(_scope(scope) for scope in self.rule.scope)
        return f"it is for {scopes}; this file is for {subject.framework} {spelled(version)}".rstrip()

    def _because(self, truth: object) -> str:
        if truth is None and self.rule.condition is not None:
            return self._failing(self.rule.condition)
        return ", ".join(sorted(needs_of(truth)))

    def _failing(self, condition: t.Expr) -> str:
        """Say which part of a condition is false."""
        if isinstance(condition, t.Junction) and condition.operator == "and":
            (first, *_) = self.top.deciding(condition)
            return self._failing(first) if first is not condition else ""
        outcome = self.top.outcome(condition, False)
        compares = isinstance(condition, (t.Compare, t.Member))
        return f"{outcome} ({self.top.numbers(condition)})" if compares else outcome

    def _message(self, truth: object) -> str:
        """Return the rule's own message where it is broken, or may be."""
        needed = self.rule.requirement
        items = isinstance(needed, t.Quantifier) and needed.kind == "all"
        if items or verdict_of(truth) not in ("breaks", "may break"):
            return ""
        return message(self.rule, self.top.evaluator, self.origins)

    def _root(self, node: t.Expr) -> Node:
        """Return the condition or the requirement, with every name that is in it."""
        value, reduced = self.top.truth(node), self.top.reduced(node)
        children = self._children(reduced.node, self.top, whole=True)
        children += self._choosing(reduced.conditions, self.top)
        if len(children) == 1 and children[0].node.name == show(node):
            children = list(children[0].node.children)
        numbers, text = self.top.numbers(reduced.node), formula_text(value, BOOL)
        return Node(
            show(node), value, BOOL, text, HERE, show(reduced.node),
            "" if numbers == text else numbers, reduced.chosen, unique(children),
        )  # fmt: skip

    # ── what an expression rests on ────────────────────────────────────────────────────────────────────
    def _children(
        self, node: t.Expr, scope: Bound, *, whole: bool = False, label: str = "", mark: str = ""
    ) -> list[Child]:
        """Return the nodes of what is in an expression; ``whole`` shows what a truth does not hang on."""
        child = self._child(node, scope, label)
        if child is not None:
            return [replace(child, mark=mark)]
        if isinstance(node, t.Call) and node.function in ("min", "max") and len(node.arguments) > 1:
            return self._candidates(node, scope)
        return [
            child
            for part in self._parts(node, scope, whole=whole)
            for child in self._children(part, scope, whole=whole, label=label)
        ]

    def _child(self, node: t.Expr, scope: Bound, label: str) -> Child | None:
        """Return the node of what is in the graph by itself: a name, a key, a call, a quantifier."""
        if isinstance(node, t.Name):
            return self._named(node.name, scope, label)
        if isinstance(node, (t.Path, t.Has)):
            return Child(self._key(node, scope), label)
        if is_put_in(node):
            return Child(self._put_in(node, scope), label)
        return None

    def _choosing(self, conditions: Iterable[t.Expr], scope: Bound) -> list[Child]:
        """Return the nodes of what chose the branches of an expression."""
        return [child for node in conditions for child in self._children(node, scope, label="chooses")]

    def _parts(self, node: t.Expr, scope: Bound, *, whole: bool) -> Iterable[t.Expr]:
        """Return the parts of an expression that its value hangs on."""
        if isinstance(node, t.Junction) and not whole:
            return scope.deciding(node)
        if isinstance(node, t.Choice):
            otherwise = () if node.other is None else (node.other,)
            return (node.subject, *(arm for _, arm in node.arms), *otherwise)
        if isinstance(node, t.Compare):
            return scope.without_words(node.operands)
        if isinstance(node, t.Member):
            items = node.container.items if isinstance(node.container, t.ListOf) else (node.container,)
            among = scope.without_words((node.item, *items))
            return (node.item, *(part for part in among if part is not node.item))
        return t.parts(node)

    def _named(self, name: str, scope: Bound, label: str) -> Child | None:
        head, _, rest = name.partition(".")
        if head in scope.env:
            argument, outer = scope.env[head], replace(scope, env={})
            if isinstance(argument, t.Name) and not rest:
                inner = self._named(argument.name, outer, head)
                return None if inner is None else Child(inner.node, head)
            free = any(isinstance(part, _FREE) for part in walk(argument))
            return Child(self._expression(argument, outer), name) if free else None
        if head in scope.variables:
            return Child(self._item(name, scope), label)
        return None if scope.is_word(t.Name(name)) else Child(self._name(name), label)

    def _expression(self, node: t.Expr, scope: Bound, name: str = "", chosen: tuple[str, ...] = ()) -> Node:
        """Return the node of an expression, under the name that it has where it is."""
        reduced = scope.reduced(node)
        deciding = self._choosing(reduced.conditions, scope)
        chosen = (*chosen, *reduced.chosen)
        if is_put_in(reduced.node):  # all that a name stands for
            inner = self._put_in(reduced.node, scope)
            if not name and not deciding:
                return inner
            return replace(
                inner,
                name=name or inner.name,
                formula=f"{inner.name} = {inner.formula}" if inner.formula else inner.name,
                chosen=(*chosen, *inner.chosen),
                children=unique([*inner.children, *deciding]),
            )
        value, kind = scope.value(node)
        children = unique([*self._children(reduced.node, scope), *deciding])
        formula, numbers, text = show(reduced.node), scope.numbers(reduced.node), formula_text(value, kind)
        own = name or show(node)
        return Node(
            own, value, kind, text, HERE, "" if formula == own else formula,
            "" if numbers in (formula, text) else numbers, chosen, children,
        )  # fmt: skip

    def _candidates(self, node: t.Call, scope: Bound) -> list[Child]:
        """Return the arguments of ``max`` or ``min``, the one that counts marked."""
        worth = [scope.value(argument) for argument in node.arguments]
        lead = next((kind for _, kind in worth if kind.kind == "number" and not kind.bare), ANY)
        # A bare number takes the unit of the others.
        values = [v * lead.factor if kind.bare and isinstance(v, (int, float)) else v for v, kind in worth]
        children = []
        for argument, mark in zip(node.arguments, _marks(node.function, values), strict=True):
            plain = isinstance(argument, (t.Name, t.Path))
            below = self._children(argument, scope, mark=mark) if plain else []
            children += below or [Child(self._expression(argument, scope), "", mark)]
        return children

    # ── calls and quantifiers ──────────────────────────────────────────────────────────────────────────
    def _put_in(self, node: t.Expr, scope: Bound) -> Node:
        if isinstance(node, t.Call):
            return self._call(node, scope)
        assert isinstance(node, t.Quantifier)
        value, kind = scope.value(node)
        # Arguments are put in first: a variable of theirs may have the name of the quantifier's own.
        closed, outer = scope.closed(node), replace(scope, env={})
        assert isinstance(closed, t.Quantifier)
        over = self._roles if node.source == t.Name("roles") else self._items
        children = tuple(over(closed, outer))
        return Node(show(node), value, kind, formula_text(value, kind), children=children)

    def _call(self, node: t.Call, scope: Bound) -> Node:
        """Return a call of a function of the rules, its body with the parameters bound."""
        closed = scope.closed(node)
        if not scope.variables and closed in self.nodes:
            return self.nodes[closed]
        function = self.symbols.functions[node.function]
        assert isinstance(closed, t.Call)
        inside = replace(scope, env=dict(zip(function.parameters, closed.arguments, strict=True)))
        arguments = zip(function.parameters, node.arguments, strict=True)
        given = f"{function.name}({', '.join(f'{p}: {scope.text(a)}' for p, a in arguments)})"
        made = self._expression(function.body, inside, show(node))
        result = replace(
            made,
            origin=Source("derived", self.symbols.where.get(f"let {function.name}", "")),
            formula=f"{given} = {made.formula}" if made.formula else given,
        )
        if not scope.variables:
            self.nodes[closed] = result
        return result

    def _roles(self, node: t.Quantifier, scope: Bound) -> list[Child]:
        made: list[Node] = []
        for role in self.symbols.roles.values():
            truth = True if role.when is None else scope.truth(role.when)
            chosen = () if role.when is None else (scope.outcome(role.when, truth),)
            when = [] if role.when is None else self._choosing([role.when], scope)
            if truth is False:
                gone = Node(role.name, None, ANY, "not set", chosen=chosen, children=unique(when))
                made.append(gone)
                continue
            body = substitute(node.body, {node.variable: RoleOf(role.name)})
            present = self._expression(body, scope, role.name, chosen)
            made.append(replace(present, children=unique((*present.children, *when))))
        return _marked(node, made)

    def _items(self, node: t.Quantifier, scope: Bound) -> list[Child]:
        source, _ = scope.value(node.source)
        if not isinstance(source, (list, tuple)):
            return self._children(node.source, scope)
        steps = node.source.steps if isinstance(node.source, t.Path) else None
        made = []
        for i, item in enumerate(source[:_MOST_ITEMS]):
            where = getattr(item, "path", None)
            if not isinstance(where, tuple):
                where = (*steps, i) if steps is not None and "*" not in steps else None
            inside = replace(
                scope,
                variables={**scope.variables, node.variable: item},
                items={**scope.items, node.variable: where},
            )
            name = f"{node.variable} = {self._place_of(item, where, i)}"
            made.append(self._expression(node.body, inside, name))
        children = [*self._children(node.source, scope), *_marked(node, made)]
        if len(source) > _MOST_ITEMS:
            children.append(Child(Node(f"… {len(source) - _MOST_ITEMS} more", None, ANY, "")))
        return children

    def _place_of(self, item: object, where: Steps | None, number: int) -> str:
        """Return where an item of a list stands: its key, its line, else its number."""
        if where is not None:
            return dotted(where)
        start = getattr(item, "start", None)
        if not isinstance(start, int):
            return f"item {number + 1}"
        return f"line {self.judged.subject.document.file.lines.position(start)[0]}"

    def _item(self, name: str, scope: Bound) -> Node:
        value, kind = scope.value(t.Name(name))
        head, _, rest = name.partition(".")
        where = scope.items.get(head)
        steps = None if where is None else (*where, *(rest.split(".") if rest else ()))
        origin = Source("item", "an item of the list") if steps is None else self.provenance.at(steps)
        return Node(name, value, kind, formula_text(value, kind), origin)

    # ── keys and names ─────────────────────────────────────────────────────────────────────────────────
    def _key(self, node: t.Path | t.Has, scope: Bound) -> Node:
        if node in self.nodes:
            return self.nodes[node]
        steps = node.path.steps if isinstance(node, t.Has) else node.steps
        value, kind = scope.value(node)
        origin = self.provenance.at(steps)
        text = formula_text(value, kind)
        moves: tuple[Move, ...] = ()
        if isinstance(node, t.Path):
            text = "absent" if origin.kind == "missing" else text
            if type(value) in (int, float) and "*" not in steps:
                moves = self.meter.moves(show(node), value, kind, None, lambda v: self._with_key(steps, v))
        result = self.nodes[node] = Node(show(node), value, kind, text, origin, moves=moves)
        return result

    def _with_key(self, steps: Steps, value: object) -> Values:
        subject = self.judged.subject
        override = f"{dotted(steps)}={str(value).lower() if isinstance(value, bool) else value}"
        moved = self.run.subject_of(subject.document, subject.framework, subject.version, [override])
        return values_for(moved, self.values.given)

    def _name(self, name: str) -> Node:
        if name not in self.nodes:
            value, kind = self.values[name], self.top.evaluator.type_of(name)
            text = formula_text(value, kind)
            self.nodes[name] = Node(name, value, kind, text, Source("derived"))  # for circles
            self.nodes[name] = self._derived(name, value, kind, text)
        return self.nodes[name]

    def _derived(self, name: str, value: object, kind: Type, text: str) -> Node:
        origin = self.origins.of(name)
        source, body, chosen = self.provenance.of(name, value)
        moves = self._moves(name, value, kind, body)
        if body is None:
            below = self._registry_keys(name) if origin.kind in ("registry", "missing") else ()
            return Node(name, value, kind, text, source, chosen=chosen, children=below, moves=moves)
        made = self._expression(body, self.top, name, chosen)
        formula = made.formula or show(body)
        children = made.children
        if source.kind == "file" and len(origin.paths) == 1:  # its line is told already
            children = tuple(c for c in children if c.node.name != path_text(origin.paths[0]))
        numbers = "" if made.numbers in (formula, text) else made.numbers
        return Node(name, value, kind, text, source, formula, numbers, made.chosen, children, moves)

    def _registry_keys(self, name: str) -> tuple[Child, ...]:
        registry = self.symbols.registries.get(name.partition(".")[0])
        if registry is None or name in registry.keys:
            return ()
        settled = [key for key in registry.keys if not needs_of(self.values[key])]
        return tuple(Child(self._name(key), "by") for key in settled[:1])

    def _moves(self, name: str, value: object, kind: Type, body: t.Expr | None) -> tuple[Move, ...]:
        """Return what a step of a name changes: of a number of the file, and of a knob."""
        knob, origin = self.symbols.knobs.get(name), self.origins.of(name)
        if needs_of(value) or origin.kind in ("target", "missing", "registry"):
            return ()
        fixed = body is None or not any(isinstance(n, _FREE) and not self.top.is_word(n) for n in walk(body))
        number = type(value) in (int, float) and origin.kind == "file" and not origin.uses
        if not (number or (knob is not None and (origin.binding is not None or fixed))):
            return ()
        subject, given = self.judged.subject, self.values.given
        return self.meter.moves(name, value, kind, knob, lambda v: values_for(subject, {**given, name: v}))


def _marks(kind: str, values: Sequence[object]) -> list[str]:
    """Say which of some values is the largest, or may be (of ``min``, the smallest)."""
    word = "largest" if kind == "max" else "smallest"
    words = {True: word, False: "", None: f"may be {word}"}
    return [words[best] for best in extremes(list(values), largest=kind == "max")]


def _marked(node: t.Quantifier, made: list[Node]) -> list[Child]:
    """Mark what makes a quantifier's value: the items that fail or count, the largest, the smallest."""
    there = [item for item in made if item.text != "not set"]
    marks: dict[int, str] = {}
    if node.kind in ("min", "max"):
        words: Iterable[str] = _marks(node.kind, [item.value for item in there])
        marks = {id(item): word for item, word in zip(there, words, strict=True)}
    elif node.kind == "all":
        failing = [item for item in there if item.value is not True]
        marks = {id(item): "fails" if item.value is False else "may fail" for item in failing}
    elif node.kind in ("any", "count"):
        marks = {id(item): "counts" for item in made if item.value is True}
    return [Child(item, "", marks.get(id(item), "")) for item in made]


def _scope(scope: t.Scope) -> str:
    limits = "".join(f" {operator} v{'.'.join(map(str, v.numbers))}" for operator, v in scope.operators)
    return scope.framework + limits
