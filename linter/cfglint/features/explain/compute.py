"""Derives a rule's verdict on one file and target: every name with its value, its formula and its origin.

What is built is a graph, each name once; `fold` (nodes.py) makes the tree of it that is shown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cfglint.document.tree import dotted
from cfglint.engine.describe import Evaluator, Origins, message
from cfglint.engine.evaluation_scope import Bound, RoleOf, extremes, formula_text, substitute
from cfglint.engine.judge import values_for
from cfglint.engine.sensitivity import Meter, verdict_of
from cfglint.features.explain.nodes import Child, Derivation, Node, reached, unique
from cfglint.features.explain.provenance import Source, Whence
from cfglint.lang import tree as t
from cfglint.lang.builtin import FUNCTIONS
from cfglint.lang.show import path as path_text
from cfglint.lang.show import show
from cfglint.lang.tree import parts, walk
from cfglint.lang.types import ANY, BOOL, Type
from cfglint.lang.values import needs_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cfglint.engine.run import Run
    from cfglint.engine.sensitivity import Move
    from cfglint.engine.subject import Judged
    from cfglint.facts import Steps, Values

_MOST_ITEMS = 8  # items of a list that are shown
_FREE = t.Name | t.Path | t.Has | t.Call | t.Quantifier


class Deriver:
    """Builds the graph for one rule, which must exist, on one document and target."""

    def __init__(self, run: Run, one: Judged, code: str) -> None:
        self.run = run
        self.one = one
        self.symbols = run.finder.symbols
        self.rule = self.symbols.rules[code]
        self.compiled = next(rule for rule in run.pack.rules if rule.code == code)
        self.values = one.values.again()
        self.origins = Origins(self.symbols, self.values, one.sources, one.subject.framework)
        evaluator = Evaluator(self.symbols, self.origins.own_lets)
        self.top = Bound(evaluator, self.values)
        self.whence = Whence(self.origins, self.top, one.name)
        self.meter = Meter(self.rule, self.compiled, self.top)
        self.outside = self._outside()
        self.verdict = "does not apply" if self.outside else self.meter.verdict
        self.known: dict[object, Node] = {}

    # ── the whole ──────────────────────────────────────────────────────────────────────────────────────
    def derivation(self) -> Derivation:
        rule, subject = self.rule, self.one.subject
        path, key = subject.document.file.path, subject.document.key
        section = key.text if key is not None else None
        if self.outside:
            nothing = Node(show(rule.requirement), None, BOOL, "", Source("expression"))
            return Derivation(
                rule,
                path,
                self.one.name,
                subject.framework,
                self.verdict,
                self.outside,
                "",
                None,
                nothing,
                (),
                (),
                section,
            )
        truth = self.compiled.test(self.values)
        condition = None if rule.condition is None else self._root(rule.condition)
        requirement = self._root(rule.requirement)
        leaves = sorted(
            (
                node
                for node in reached(requirement if condition is None else condition, requirement)
                if node.moves
            ),
            key=lambda node: (not any(m.turns for m in node.moves), node.name not in self.symbols.knobs),
        )
        return Derivation(
            rule, path, self.one.name, subject.framework, self.verdict, self._because(truth),
            self._said(truth), condition, requirement, tuple(leaves),
            tuple(show(node) for node in self.meter.results), section,
        )  # fmt: skip

    def _outside(self) -> str:
        """Return why the rule does not speak of this file at all, or nothing."""
        subject = self.one.subject
        if subject.document.error is not None and self.rule.code != "CFG001":
            return "the file does not parse: cfglint check says where"
        if self.compiled.covers(subject.framework, self.values.version):
            return ""
        scopes = " or ".join(_scope(scope) for scope in self.rule.scope)
        version = (
            "" if float("inf") in self.values.version else " v" + ".".join(map(str, self.values.version))
        )
        return f"it speaks of {scopes}, and this file is for {subject.framework}{version}"

    def _because(self, truth: object) -> str:
        if truth is None and self.rule.condition is not None:
            return self._failing(self.rule.condition)
        return ", ".join(sorted(needs_of(truth)))

    def _failing(self, condition: t.Expr) -> str:
        """Say which part of a condition is false."""
        if isinstance(condition, t.Junction) and condition.operator == "and":
            (first, *_) = self.top.deciding(condition)
            return self._failing(first) if first is not condition else ""
        told = self.top.said(condition, False)
        numbers = self.top.numbers(condition)
        return f"{told} ({numbers})" if isinstance(condition, t.Compare | t.Member) else told

    def _said(self, truth: object) -> str:
        """Return the rule's own message where it is broken, or may be."""
        items = isinstance(self.rule.requirement, t.Quantifier) and self.rule.requirement.kind == "all"
        if not self.rule.say or items or verdict_of(truth) not in ("breaks", "may break"):
            return ""
        return message(self.rule.say, self.top.evaluator, self.values)

    def _root(self, node: t.Expr) -> Node:
        """Return the condition or the requirement, with every name that stands in it."""
        value, truth = self.top.truth(node), BOOL
        reduced = self.top.reduced(node)
        children = self._children(reduced.node, self.top, whole=True)
        for condition in reduced.conditions:
            children += self._children(condition, self.top, label="chooses")
        if len(children) == 1 and children[0].node.name == show(node):
            children = list(children[0].node.children)
        numbers = self.top.numbers(reduced.node)
        text = formula_text(value, truth)
        return Node(
            show(node), value, truth, text, Source("expression"), show(reduced.node),
            "" if numbers == text else numbers, reduced.chosen, unique(children),
        )  # fmt: skip

    # ── what an expression rests on ────────────────────────────────────────────────────────────────────
    def _children(
        self, node: t.Expr, scope: Bound, *, whole: bool = False, label: str = "", mark: str = ""
    ) -> list[Child]:
        """Return the nodes of what stands in an expression; ``whole`` shows what a truth does not hang on."""
        found: list[Child] = []

        def add(part: t.Expr) -> None:
            found.extend(self._children(part, scope, whole=whole, label=label))

        match node:
            case t.Name(name):
                child = self._named(name, scope, label)
                if child is not None:
                    found.append(Child(child.node, child.label, mark))
            case t.Path() | t.Has():
                found.append(Child(self._key(node, scope), label, mark))
            case t.Junction():
                for operand in node.operands if whole else scope.deciding(node):
                    add(operand)
            case t.Call(function, arguments) if function not in FUNCTIONS:
                found.append(Child(self._call(node, scope), label, mark))
            case t.Call("min" | "max", arguments) if len(arguments) > 1:
                found += self._candidates(node, scope)
            case t.Quantifier():
                found.append(Child(self._over(node, scope), label, mark))
            case t.Choice(subject, arms, other):
                add(subject)
                for _, arm in arms:
                    add(arm)
                if other is not None:
                    add(other)
            case t.Compare(operands, _):
                for operand in self._meant(operands, scope):
                    add(operand)
            case t.Member(item, container):
                add(item)
                inner = container.items if isinstance(container, t.ListOf) else (container,)
                for operand in self._meant((item, *inner), scope):
                    if operand is not item:
                        add(operand)
            case _:
                for part in parts(node):
                    add(part)
        return found

    def _meant(self, operands: tuple[t.Expr, ...], scope: Bound) -> list[t.Expr]:
        """Leave out the words that an enumeration among the operands resolves."""
        kinds = [scope.value(o)[1] for o in operands if isinstance(o, t.Name) and not scope.is_word(o)]
        first = next((kind for kind in kinds if kind.kind == "enum"), None)
        if first is None:
            return list(operands)
        words = dict(first.spellings)
        subject = next(o for o in operands if isinstance(o, t.Name) and scope.value(o)[1] == first)
        return [
            o for o in operands if o is subject or not (isinstance(o, t.Name) and o.name.lower() in words)
        ]

    def _named(self, name: str, scope: Bound, label: str) -> Child | None:
        head, _, rest = name.partition(".")
        if head in scope.env:
            meant = scope.env[head]
            outer = replace(scope, env={})
            if isinstance(meant, t.Name) and not rest:
                inner = self._named(meant.name, outer, head)
                return None if inner is None else Child(inner.node, head)
            free = any(isinstance(n, _FREE) for n in walk(meant))
            return Child(self._expression(meant, outer), name) if free else None
        if head in scope.variables:
            return Child(self._item(name, scope), label)
        if scope.is_word(t.Name(name)):
            return None
        return Child(self._name(name), label)

    def _expression(self, node: t.Expr, scope: Bound, name: str = "", chosen: tuple[str, ...] = ()) -> Node:
        """Return the node of an expression, under the name that it has where it stands."""
        value, kind = scope.value(node)
        reduced = scope.reduced(node)
        deciding = [c for node in reduced.conditions for c in self._children(node, scope, label="chooses")]
        chosen = (*chosen, *reduced.chosen)
        if isinstance(reduced.node, t.Quantifier) or self._is_put_in(reduced.node):
            return self._standing_for(reduced.node, scope, name, chosen, deciding)
        children = [*self._children(reduced.node, scope), *deciding]
        formula, numbers = show(reduced.node), scope.numbers(reduced.node)
        text = formula_text(value, kind)
        own = name or show(node)
        return Node(
            own, value, kind, text, Source("expression"), "" if formula == own else formula,
            "" if numbers in (formula, text) else numbers, chosen, unique(children),
        )  # fmt: skip

    @staticmethod
    def _is_put_in(node: t.Expr) -> bool:
        """Whether an expression is a call of a function of the rules."""
        return isinstance(node, t.Call) and node.function not in FUNCTIONS

    def _standing_for(
        self, node: t.Expr, scope: Bound, name: str, chosen: tuple[str, ...], deciding: list[Child]
    ) -> Node:
        """Return the node of a call or a quantifier that is all that a name stands for."""
        inner = self._call(node, scope) if isinstance(node, t.Call) else self._over(node, scope)
        if not name and not deciding:
            return inner
        formula = f"{inner.name} = {inner.formula}" if inner.formula else inner.name
        return replace(
            inner,
            name=name or inner.name,
            formula=formula,
            chosen=(*chosen, *inner.chosen),
            children=unique([*inner.children, *deciding]),
        )

    def _candidates(self, node: t.Call, scope: Bound) -> list[Child]:
        """Return the arguments of ``max`` or ``min``, the one that counts marked."""
        word = "largest" if node.function == "max" else "smallest"
        worth = [scope.value(argument) for argument in node.arguments]
        lead = next((kind for _, kind in worth if kind.kind == "number" and not kind.bare), ANY)
        # A bare number takes the unit of the others.
        values = [v * lead.factor if kind.bare and isinstance(v, (int, float)) else v for v, kind in worth]
        found = []
        for argument, best in zip(node.arguments, extremes(values, largest=word == "largest"), strict=True):
            mark = word if best else f"may be {word}" if best is None else ""
            below = (
                self._children(argument, scope, mark=mark) if isinstance(argument, t.Name | t.Path) else []
            )
            found += below or [Child(self._expression(argument, scope), "", mark)]
        return found

    def _call(self, node: t.Call, scope: Bound) -> Node:
        """Return a call of a function of the rules, its body with the parameters bound."""
        closed = scope.closed(node)
        key = (closed, tuple(scope.variables.items())) if not scope.variables else None
        if key is not None and key in self.known:
            return self.known[key]
        function = self.symbols.functions[node.function]
        assert isinstance(closed, t.Call)
        env = dict(zip(function.parameters, closed.arguments, strict=True))
        inside = replace(scope, env=env)
        bound = zip(function.parameters, node.arguments, strict=True)
        given = f"{function.name}({', '.join(f'{p}: {scope.text(a)}' for p, a in bound)})"
        made = self._expression(function.body, inside, show(node))
        origin = Source("derived", self.symbols.where.get(f"let {function.name}", ""))
        formula = f"{given} = {made.formula}" if made.formula else given
        result = replace(made, origin=origin, formula=formula)
        if key is not None:
            self.known[key] = result
        return result

    # ── quantifiers ────────────────────────────────────────────────────────────────────────────────────
    def _over(self, node: t.Expr, scope: Bound) -> Node:
        assert isinstance(node, t.Quantifier)
        value, kind = scope.value(node)
        # Arguments are put in first: a variable of theirs may have the name of the quantifier's own.
        closed, outer = scope.closed(node), replace(scope, env={})
        assert isinstance(closed, t.Quantifier)
        over_roles = node.source == t.Name("roles")
        children = self._roles(closed, outer) if over_roles else self._items(closed, outer)
        return Node(
            show(node), value, kind, formula_text(value, kind), Source("expression"), children=tuple(children)
        )

    def _roles(self, node: t.Quantifier, scope: Bound) -> list[Child]:
        made: list[Node] = []
        for role in self.symbols.roles.values():
            truth = True if role.when is None else scope.truth(role.when)
            chosen = () if role.when is None else (scope.said(role.when, truth),)
            when = [] if role.when is None else self._children(role.when, scope, label="chooses")
            if truth is False:
                gone = Node(
                    role.name,
                    None,
                    ANY,
                    "not there",
                    Source("expression"),
                    chosen=chosen,
                    children=unique(when),
                )
                made.append(gone)
                continue
            body = substitute(node.body, {node.variable: RoleOf(role.name)})
            one = self._expression(body, scope, role.name, chosen)
            made.append(replace(one, children=unique((*one.children, *when))))
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
            stands = self._stands(item, where, i)
            made.append(self._expression(node.body, inside, f"{node.variable} = {stands}"))
        found = _marked(node, made)
        if len(source) > _MOST_ITEMS:
            rest = f"… {len(source) - _MOST_ITEMS} more"
            found.append(Child(Node(rest, None, ANY, "", Source("expression"))))
        return [*self._children(node.source, scope), *found]

    def _stands(self, item: object, where: Steps | None, place: int) -> str:
        """Return where an item of a list stands: its key, its line, else its number."""
        if where is not None:
            return dotted(where)
        start = getattr(item, "start", None)
        if not isinstance(start, int):
            return f"item {place + 1}"
        return f"line {self.one.subject.document.file.lines.position(start)[0]}"

    def _item(self, name: str, scope: Bound) -> Node:
        value, kind = scope.value(t.Name(name))
        head, _, rest = name.partition(".")
        where = scope.items.get(head)
        steps = None if where is None else (*where, *(rest.split(".") if rest else ()))
        origin = Source("item", "an item of the list") if steps is None else self.whence.at(steps)
        return Node(name, value, kind, formula_text(value, kind), origin)

    # ── keys and names ─────────────────────────────────────────────────────────────────────────────────
    def _key(self, node: t.Path | t.Has, scope: Bound) -> Node:
        if node in self.known:
            return self.known[node]
        steps = node.path.steps if isinstance(node, t.Has) else node.steps
        value, kind = scope.value(node)
        origin = self.whence.at(steps)
        text = formula_text(value, kind)
        if isinstance(node, t.Path) and origin.kind == "missing":
            text = "absent"
        moves: tuple[Move, ...] = ()
        if isinstance(node, t.Path) and type(value) in (int, float) and "*" not in steps:
            moves = self.meter.moves(show(node), value, kind, None, lambda v: self._with_key(steps, v))
        result = self.known[node] = Node(show(node), value, kind, text, origin, moves=moves)
        return result

    def _with_key(self, steps: Steps, value: object) -> Values:
        run, subject = self.run, self.one.subject
        override = f"{dotted(steps)}={str(value).lower() if isinstance(value, bool) else value}"
        other = run.subject_of(subject.document, subject.framework, subject.version, [override])
        return values_for(other, self.values.given)

    def _name(self, name: str) -> Node:
        if name in self.known:
            return self.known[name]
        value = self.values[name]
        kind = self.top.evaluator.type_of(name)
        self.known[name] = Node(
            name, value, kind, formula_text(value, kind), Source("derived")
        )  # for circles
        node = self._derived(name, value, kind)
        self.known[name] = node
        return node

    def _derived(self, name: str, value: object, kind: Type) -> Node:
        origin = self.origins.of(name)
        source, body, chosen = self.whence.of(name, value)
        moves = self._moves(name, value, kind, body)
        text = formula_text(value, kind)
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
        known = [key for key in registry.keys if not needs_of(self.values[key])]
        return tuple(Child(self._name(key), "by") for key in known[:1])

    # ── what moves it ──────────────────────────────────────────────────────────────────────────────────
    def _moves(self, name: str, value: object, kind: Type, body: t.Expr | None) -> tuple[Move, ...]:
        knob = self.symbols.knobs.get(name)
        origin = self.origins.of(name)
        if needs_of(value) or origin.kind in ("target", "missing", "registry"):
            return ()
        fixed = body is None or not any(isinstance(n, _FREE) and not self.top.is_word(n) for n in walk(body))
        number = type(value) in (int, float) and origin.kind == "file" and not origin.uses
        if not (number or (knob is not None and (origin.binding is not None or fixed))):
            return ()

        def put(other: object) -> Values:
            given: Mapping[str, object] = {**self.values.given, name: other}
            return values_for(self.one.subject, given)

        return self.meter.moves(name, value, kind, knob, put)


def _marked(node: t.Quantifier, made: list[Node]) -> list[Child]:
    """Mark what makes a quantifier's value: the items that fail or count, the largest, the smallest."""
    there = [one for one in made if one.text != "not there"]
    best: dict[int, bool | None] = {}
    if node.kind in ("min", "max"):
        able = extremes([one.value for one in there], largest=node.kind == "max")
        best = {id(one): state for one, state in zip(there, able, strict=True)}
    word = "largest" if node.kind == "max" else "smallest"
    found = []
    for one in made:
        mark = ""
        if node.kind == "all" and one in there and one.value is not True:
            mark = "fails" if one.value is False else "may fail"
        elif node.kind in ("any", "count") and one.value is True:
            mark = "counts"
        elif id(one) in best:
            state = best[id(one)]
            mark = word if state else f"may be {word}" if state is None else ""
        found.append(Child(one, "", mark))
    return found


def _scope(scope: t.Scope) -> str:
    limits = "".join(f" {operator} v{'.'.join(map(str, v.numbers))}" for operator, v in scope.operators)
    return scope.framework + limits
