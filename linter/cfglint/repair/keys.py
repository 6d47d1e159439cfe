"""What a rule asks of keys of the file, where that is plain: a bound, a member, a value, a truth.

`$.training.lr <= 1e-3` speaks of a key that no knob knows. What it is to be worth can be read off all the
same; what it does cannot, so such a move is never safe. Of whole numbers in a computation, those around them
are tried. A key that must not be there is taken away. Anything else (an order without a next value, what a
value must not be, a key that must be there) gives nothing.
"""

from __future__ import annotations

import math
from itertools import islice, pairwise

from cfglint.engine.evaluation_scope import substitute
from cfglint.engine.knobs import tidy
from cfglint.lang import tree as t
from cfglint.lang.types import is_number
from cfglint.record import Record
from cfglint.repair.invert import ABSENT
from cfglint.repair.tracks import UNSOLVABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from cfglint.engine.describe import Evaluator
    from cfglint.facts import Steps, Values

    Way: TypeAlias = dict[Steps, object]  # what has to be at some keys

_MOST_WAYS = 32  # of mending one requirement
_MOST_ITEMS = 64  # of a list, that are fixed at once
_REACH = 128  # whole numbers on either side that are tried for a key
_POWERS, _FAR = 31, 4  # powers of two, so many times larger or smaller
_MOST_TRIED = 4  # values of a key that hold
_OPPOSITE = {"<=": ">", "<": ">=", ">=": "<", ">": "<=", "==": "!=", "!=": "=="}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LEFT: list[Way] = [{}]  # to the knobs, or as it is


class Asked(Record):
    """What keys a requirement asks other values of, as the file stands.

    ``home`` gives the key at which a value is written, one for all keys that read it. ``tries`` says that
    whole numbers in a computation may be tried, ``removes`` that keys may be taken away.
    """

    evaluator: Evaluator
    values: Values
    home: Callable[[Steps], Steps]
    tries: bool = False
    removes: bool = False

    def groups(self, requirement: t.Expr) -> list[list[Way]]:
        """Return what may be at the keys of a requirement for it to hold; the first comes first.

        Keys that one part of it names together are one group.
        """
        groups: list[tuple[set[Steps], list[t.Expr]]] = []
        for node in t.conjuncts(requirement):
            if isinstance(node, t.Has):
                paths = {self.home(node.path.steps)}
            else:
                paths = {path for way in self._ways(node) for path in way}
            touched = [group for group in groups if group[0] & paths]
            if paths:
                nodes = [each for group in touched for each in group[1]]
                groups = [group for group in groups if group not in touched]
                groups.append((paths.union(*(group[0] for group in touched)), [*nodes, node]))
        found = ([way for way in self._all(nodes) if way] for _, nodes in groups)
        return [ways for ways in found if ways]

    def _ways(self, node: t.Expr) -> list[Way]:
        """Return the ways in which an expression may come to hold; one without keys is left to the knobs."""
        if self._holds(node):
            return _LEFT
        ways: list[Way] = []
        match node:
            case t.Junction("and", operands):
                ways = self._all(operands)
            case t.Junction("or", operands):
                ways = [way for operand in operands for way in self._ways(operand) if way][:_MOST_WAYS]
            case t.If(condition, then, other) if self._holds(condition) or self._holds(t.Not(condition)):
                ways = self._ways(then if self._holds(condition) else other)
            case t.Not(t.Has(t.Path(steps))):
                ways = [{self.home(steps): ABSENT}] if self.removes and "*" not in steps else []
            case t.Not(t.Name()):
                ways = self._taken_away(self._derived(node.operand)) if self.removes else []
            case t.Not(operand):
                opposite = _opposite(operand)
                ways = [] if opposite is None else self._ways(opposite)
                if any(isinstance(part, (t.Has, t.Name)) for part in t.walk(operand)):
                    ways = [way for way in ways if all(value is ABSENT for value in way.values())]
            case t.Quantifier("all", variable, t.Path(steps), body):
                items = [substitute(body, {variable: t.Path(path)}) for path in self._items(steps)]
                ways = self._all(items) if len(items) <= _MOST_ITEMS else []
            case t.Name(name) if name not in self.evaluator.symbols.types:
                body = self._derived(node)
                ways = _LEFT if body is node else self._ways(body)
            case _ if any(isinstance(self._key(part), t.Path) for part in t.walk(node)):
                ways = [{path: value} for path, value in self._one(node) or self._tried(node)]
            case _:
                ways = _LEFT
        return ways

    def _taken_away(self, node: t.Expr) -> list[Way]:
        """Return what to take away for a name's definition not to hold: keys of which it asks no value.

        Where a value is wrong, the key may be right: `no` for "no" is not mended by the default.
        """
        if self._holds(t.Not(node)):
            return _LEFT
        match node:
            case t.Has(t.Path(steps)) if "*" not in steps:
                return [{self.home(steps): ABSENT}]
            case t.Name() if (body := self._derived(node)) is not node:
                return self._taken_away(body)
            case t.Junction("and", (t.Has(path) as there, t.Compare((value, t.Null()), ("!=",)))):
                return self._taken_away(there) if path == value else []
            case t.Junction("or", operands):
                together: list[Way] = [{}]
                for operand in operands:
                    each = self._taken_away(operand)
                    together = [{**way, **more} for way in together for more in each][:_MOST_WAYS]
                return together
        return []

    def _derived(self, node: t.Expr) -> t.Expr:
        """Return what a name is derived from; a fact, and all else, is itself."""
        symbols = self.evaluator.symbols
        if not isinstance(node, t.Name) or node.name in symbols.types:
            return node
        let = symbols.lets.get(node.name)
        return node if let is None else let.body

    def _holds(self, node: t.Expr) -> bool:
        try:
            return self.evaluator(t.Junction("and", (node,)), self.values)[0] is True
        except UNSOLVABLE:
            return False

    def _all(self, nodes: Iterable[t.Expr]) -> list[Way]:
        """Return the ways in which several expressions may come to hold together."""
        together: list[Way] = [{}]
        wanted = []
        for node in nodes:
            if isinstance(node, t.Has):  # held by a value that another one asks for
                wanted.append(node.path.steps)
                continue
            ways = self._ways(node)
            merged = (both for way in together for more in ways for both in _merged(way, more))
            together = list(islice(merged, _MOST_WAYS))
        there = [path for path in wanted if self.values.has(path) is True]
        return [way for way in together if all(self.home(path) in way or path in there for path in wanted)]

    def _items(self, steps: Steps) -> Iterator[Steps]:
        """Yield the keys of a list's items; `$.servers[*].port` has one for each server."""
        at = steps.index("*") if "*" in steps else len(steps)
        head, tail = steps[:at], steps[at + 1 :]
        view = self.values.view
        value = view.get(head) if view is not None and "*" not in tail else None
        names: Sequence[str | int] = ()
        if isinstance(value, list):
            names = range(len(value))
        elif view is not None and hasattr(value, "keys"):
            names = list(view.keys(head))
        yield from ((*head, name, *tail) for name in names if self.values.has((*head, name, *tail)) is True)

    # ── one key ────────────────────────────────────────────────────────────────────────────────────────
    def _one(self, node: t.Expr) -> list[tuple[Steps, object]]:
        """Return the values that make one comparison hold, each with its key."""
        return list(self._plainly(node))

    def _plainly(self, node: t.Expr) -> Iterator[tuple[Steps, object]]:
        match node:
            case t.Path(steps) if "*" not in steps:
                yield self.home(steps), True
            case t.Compare(operands, operators):
                for (left, right), operator in zip(pairwise(operands), operators, strict=True):
                    if not self._holds(t.Compare((left, right), (operator,))):
                        yield from self._compared(left, operator, right)
            case t.Member(item, t.Range(low, high), False):
                if isinstance(low, t.Number) and isinstance(high, t.Number) and low.unit is None:
                    low = t.Number(low.value, high.unit)
                ends = [("<=", high), (">=", low)]
                for operator, end in ends:
                    if not self._holds(t.Compare((item, end), (operator,))):
                        yield from self._compared(item, operator, end)
            case t.Member(item, t.ListOf(items), False):
                values = [pair for each in items for pair in self._compared(item, "==", each)]
                yield from sorted(values, key=self._distance)

    def _tried(self, node: t.Expr) -> list[tuple[Steps, object]]:
        """Return whole numbers for single keys after which an expression holds, the nearest first."""
        if not self.tries or (isinstance(node, t.Compare) and "!=" in node.operators):
            return []
        found: list[tuple[float, Steps, object]] = []
        for path in dict.fromkeys(t.paths_in(node)):
            old = self._old(path)
            if "*" in path or type(old) is not int or old < 0:
                continue
            powers = (2**i for i in range(_POWERS))
            near = {*range(max(old - _REACH, 0), old + _REACH + 1), *powers} - {old}
            tried = sorted(
                (abs(n - old) / max(old, 1), -n) for n in near if max(n, old) <= _FAR * min(n, old)
            )
            holding = ((far, -n) for far, n in tried if self._holds(_with(node, path, -n)))
            found += [(far, self.home(path), n) for far, n in islice(holding, _MOST_TRIED)]
        return [(path, value) for _, path, value in sorted(found, key=lambda each: each[0])]

    def _distance(self, pair: tuple[Steps, object]) -> float:
        """Return how far a number is from what the file says; others stay in the rule's own order."""
        value, old = pair[1], self._old(pair[0])
        if not is_number(old):
            return 0
        return abs(value - old) if is_number(value) else math.inf

    def _key(self, node: t.Expr) -> t.Expr:
        """Return the key that a name is derived from, if it is that and nothing else."""
        symbols = self.evaluator.symbols
        if not isinstance(node, t.Name) or node.name in symbols.types or node.name not in symbols.lets:
            return node
        body = symbols.lets[node.name].body
        return body if isinstance(body, t.Path) else node

    def _old(self, steps: Steps) -> object:
        return None if self.values.view is None else self.values.view.get(steps)

    def _compared(self, left: t.Expr, operator: str, right: t.Expr) -> Iterator[tuple[Steps, object]]:
        """Yield the value of a key that makes its comparison with something known just hold."""
        left, right = self._key(left), self._key(right)
        if not isinstance(left, t.Path):
            left, operator, right = right, _FLIPPED.get(operator, operator), left
        if not isinstance(left, t.Path) or any(isinstance(part, t.Path) for part in t.walk(right)):
            return
        if "*" in left.steps or operator == "!=":
            return
        try:
            value, kind = self.evaluator(right, self.values)
        except UNSOLVABLE:
            return
        if is_number(value) and kind.kind == "number":
            value = tidy(value if kind.bare else value / kind.factor)
            beside = {"<": -1, ">": 1}.get(operator)
            if beside is not None and not (type(self._old(left.steps)) is int and value == int(value)):
                return  # there is no next number
            value += beside or 0
        elif operator != "==":
            return
        if value is None and not isinstance(right, t.Null):
            return
        if isinstance(value, (str, int, float, type(None))):
            yield self.home(left.steps), value


def _with(node: t.Expr, path: Steps, value: int) -> t.Expr:
    """Return an expression with a number in the place of a key."""

    def change(part: object) -> t.Expr | None:
        if isinstance(part, t.Has):  # the key stays there
            return part
        return t.Number(value) if part == t.Path(path) else None

    result: t.Expr = t.rebuilt(node, change)
    return result


def _opposite(node: t.Expr) -> t.Expr | None:
    """Return the opposite of an expression, where it is one of those that are plain."""
    match node:
        case t.Not(operand):
            return operand
        case t.Junction(operator, operands):
            each = tuple(map(_opposite, operands))
            other = "or" if operator == "and" else "and"
            return None if None in each else t.Junction(other, each)  # type: ignore[arg-type]
        case t.Compare((_, _), (operator,)):
            return t.Compare(node.operands, (_OPPOSITE[operator],))
        case t.Path():
            return t.Compare((node, t.Truth(False)), ("==",))
        case t.Has() | t.Name():
            return t.Not(node)
    return None


def _merged(way: Way, more: Way) -> Iterator[Way]:
    """Yield what reaches the ends of two ways; where they differ, the values of either may do for both."""
    yield {**way, **more}
    if any(more.get(path, value) != value for path, value in way.items()):
        yield {**more, **way}
