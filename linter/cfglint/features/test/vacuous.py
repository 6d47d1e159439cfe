"""Rules that can never fire, each with a proof.

A rule fires where its condition is true and its requirement false. The values that its facts may have are
split into cells: truths and members one by one, numbers at the constants that they are compared with, and
between these. Where on every cell the condition is false or the requirement true, by the intervals and
Kleene truths of lang/values.py, the rule never fires. What no cell decides is taken to fire, so that nothing
is reported on a guess.

Sums and products that a constant is compared with, and the difference of two things that are compared, are
split like facts; a cell that their own terms cannot reach is left out.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise

from cfglint.engine.describe import Evaluator
from cfglint.engine.evaluation_scope import substitute
from cfglint.lang import tree as t
from cfglint.lang.compile import CompileError
from cfglint.lang.show import show
from cfglint.lang.types import ANY, INF, Type, show_number
from cfglint.lang.values import Interval, Open, Unknown, parts
from cfglint.record import Record, Value, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from cfglint.errors import Complaint
    from cfglint.lang.pack import Pack
    from cfglint.lang.symbols import Source, Symbols

    Lets: TypeAlias = Mapping[str, t.Let]

_MOST_CELLS = 3_000  # combinations of cells that are looked at
_MOST_LETS = 40  # derived names that are taken apart; of further ones, the type is all that is known
_MOST_TOGETHER = 3  # parts of a condition that are named as contradicting each other
_ANOTHER = "\0another text"  # stands for every text that the rule does not name
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_FAILS = (CompileError, ZeroDivisionError, OverflowError, RecursionError, ValueError)


class Vacuous(Value):
    """A rule that can never fire: the complaint says where, what makes it so, and what to do."""

    code: str
    complaint: Complaint

    def __str__(self) -> str:
        return str(self.complaint)


def vacuous(pack: Pack, codes: Collection[str] | None, fires: Collection[str]) -> list[Vacuous]:
    """Return the rules of a pack, or those of ``codes``, that can never fire; ``fires`` are known to."""
    symbols = pack.symbols()
    found = []
    for source in pack.sources():
        for rule in t.walk(source.statements):
            if isinstance(rule, t.Rule) and rule.code not in fires and (codes is None or rule.code in codes):
                complaint = _complaint(rule, source, symbols)
                if complaint is not None:
                    found.append(Vacuous(rule.code, complaint))
    return found


def _complaint(rule: t.Rule, source: Source, symbols: Symbols) -> Complaint | None:
    """Return what makes a rule unable to fire; None where it may."""
    judge = _Judge(symbols, tuple(scope.framework for scope in rule.scope))
    if not judge.never(rule.condition, rule.requirement):
        return None
    node, why = _reason(rule, judge)
    advice = "fix it, or delete the rule"
    if not replace(judge, ranges=False).never(rule.condition, rule.requirement):
        advice = "fix it; if a file may hold another value, add a bad example that has it"
    return source.complain(node.span, f"{rule.code} can never fire: {why}; {advice}")


def _reason(rule: t.Rule, judge: _Judge) -> tuple[t.Expr, str]:
    """Return the part of a rule that makes it unable to fire, and the words for that."""
    no, yes = t.Truth(False), t.Truth(True)
    needed, wanted = t.conjuncts(rule.requirement), t.conjuncts(rule.condition or yes)
    if judge.never(None, rule.requirement):
        limits = judge.limits(None, rule.requirement)
        return needed[0], f"{_quoted(needed)} {'is' if len(needed) == 1 else 'are'} always true{limits}"
    for size in range(1, min(len(wanted), _MOST_TOGETHER) + 1):
        for some in combinations(wanted, size):
            if judge.never(_all(some), no):
                words = "is never true" if size == 1 else "are never true together"
                return some[0], f"{_quoted(some)} {words}{judge.limits(_all(some), no)}"
    if judge.never(rule.condition, no):
        return wanted[0], "its condition is never true"
    some = next(
        some
        for size in range(1, len(wanted) + 1)
        for some in combinations(wanted, size)
        if judge.never(_all(some), rule.requirement)
    )
    follows = f"always follow{'s' * (len(needed) == 1)} from {_quoted(some)}"
    return needed[0], f"{_quoted(needed)} {follows}{judge.limits(_all(some), rule.requirement)}"


def _all(nodes: Sequence[t.Expr]) -> t.Expr:
    return nodes[0] if len(nodes) == 1 else t.Junction("and", tuple(nodes))


def _quoted(nodes: Iterable[t.Expr]) -> str:
    return " and ".join(f"`{show(node)}`" for node in nodes)


# ── the frameworks under which a rule is judged ────────────────────────────────────────────────────────
class _Judge(Record):
    """Proves that rules never fire, under each framework that they may be judged under.

    ``ranges`` says whether facts keep to the ranges that they are declared with.
    """

    symbols: Symbols
    scope: tuple[str, ...]
    ranges: bool = True

    def never(self, condition: t.Expr | None, requirement: t.Expr) -> bool:
        """Whether no values make the condition true and the requirement false."""
        tried: list[Mapping[str, t.Let | None]] = []
        for lets in self._lets():
            if any(all(lets.get(name) is let for name, let in asked.items()) for asked in tried):
                continue  # nothing that the rule rests on is another under this framework
            proof = _Proof(self.symbols, lets, self.ranges)
            try:
                if not proof.never(condition, requirement):
                    return False
            except _FAILS:
                return False
            tried.append(proof.asked)
        return True

    def _lets(self) -> Iterator[Lets]:
        """Yield the lets in force: without a framework, and under each; a fact may be given by any file."""
        own = {name: let for name, let in self.symbols.lets.items() if name not in self.symbols.types}
        if not self.scope:
            yield own
        for name in self.scope or self.symbols.frameworks:
            entries = [e for node in reversed(self.symbols.frameworks.get(name, ())) for e in node.entries]
            lets = own | {e.name: e for e in entries if isinstance(e, t.Let)}
            bound = {e.name for e in entries if isinstance(e, t.Binding)} | self.symbols.types.keys()
            yield {key: let for key, let in lets.items() if key not in bound}

    def limits(self, condition: t.Expr | None, requirement: t.Expr) -> str:
        """Return the ranges that a proof rests on: `` (num_gpus is at least 0)``; nothing if on none."""
        if replace(self, ranges=False).never(condition, requirement):
            return ""
        told = []
        parts = t.walk((condition, requirement))
        for name in dict.fromkeys(part.name for part in parts if isinstance(part, t.Name)):
            kind = self.symbols.types.get(name, ANY)
            if kind.kind == "number" and (kind.whole or kind.low > -INF or kind.high < INF):
                told.append(f"{name} is {_range(kind)}")
        return f" ({', '.join(told)})" if told else ""


def _range(kind: Type) -> str:
    low, high = (show_number(end, kind.dimension, kind.unit) for end in (kind.low, kind.high))
    words = ["a whole number"] if kind.whole else []
    if kind.high < INF:
        words.append(f"at most {high}" if kind.low == -INF else f"{low} to {high}")
    elif kind.low > -INF:
        words.append(f"at least {low}")
    return ", ".join(words)


# ── one proof ──────────────────────────────────────────────────────────────────────────────────────────
class _Leaf(Record):
    """A value that is split into cells.

    ``constants`` are what it is compared with, in base units (of a key: as the file has them).
    """

    name: str
    kind: Type
    constants: dict[tuple[type, object], object] = field(factory=dict)

    def compared(self, value: object) -> None:
        """Take in a constant."""
        self.constants[type(value), value] = value

    @property
    def needs(self) -> frozenset[str]:
        """The name, for values that are not known."""
        return frozenset((self.name,))

    def whole(self) -> object:
        """Return a value that stands for all."""
        if self.kind.kind == "number":
            return Interval(self.kind.low, self.kind.high, self.needs)
        return Open(self.needs) if self.kind.kind == "bool" else Unknown(self.needs)

    def cells(self, *, opaque: bool) -> list[object]:
        """Return values that stand for all together; none where nothing would be gained by splitting.

        ``opaque`` says that more is asked of it than comparisons with constants.
        """
        kind = self.kind.kind
        if kind == "bool":
            return [True, False]
        if kind == "enum":
            return list(self.kind.members)
        if kind == "number":
            return self._numbers() if self.constants else []
        if kind not in ("text", "any") or not self.constants:
            return []
        # A value of a type that no comparison asks for leaves all of them open: what fires then, fires with
        # any other value, too.
        cells = [v for v in self.constants.values() if isinstance(v, (str, bool)) or v is None]
        if any(isinstance(v, bool) for v in cells):
            cells = [True, False, *(v for v in cells if not isinstance(v, bool))]
        numbers = self._numbers() if len(cells) < len(self.constants) else []
        cells += [_ANOTHER] if any(not isinstance(v, bool) for v in cells) else []
        return [*cells, *numbers, *([Unknown(self.needs)] if opaque else [])]

    def _numbers(self) -> list[object]:
        """Return the constants, and what lies between them."""
        low, high, whole = self.kind.low, self.kind.high, self.kind.whole
        numbers = (n for n in self.constants.values() if isinstance(n, (int, float)) and n is not True)
        points = sorted({n for n in numbers if n is not False and low <= n <= high})
        cells: list[object] = [int(n) if n == int(n) else n for n in points if not whole or n == int(n)]
        ends = [(low, True), *((n, False) for n in points), (high, True)]
        for (start, closed), (end, shut) in pairwise(ends):
            first = start if closed else math.floor(start) + 1 if whole else math.nextafter(start, INF)
            last = end if shut else math.ceil(end) - 1 if whole else math.nextafter(end, -INF)
            if first < last:
                cells.append(Interval(first, last, self.needs))
            elif first == last and abs(first) < INF:
                cells.append(first)
        return cells


class _Cells(dict[str, "Any"]):
    """The values of one combination of cells, as compiled expressions ask for them."""

    def __init__(self, proof: _Proof, chosen: Mapping[str, object]) -> None:
        super().__init__(chosen)
        self.proof = proof

    def __missing__(self, name: str) -> object:
        body = self.proof.functions.get(name)
        leaf = self.proof.leaves.get(name)
        value = body(self) if body is not None else leaf.whole() if leaf else Unknown(frozenset((name,)))
        self[name] = value
        return value


class _Proof(Record):
    """A proof for one condition and requirement, under the lets in force.

    ``asked`` are the names looked up among these, ``bodies`` those that were taken apart. ``parts`` are what
    names of our own stand for; of these, ``derived`` are sums and the like. ``opaque`` are names that more is
    asked of than comparisons.
    """

    symbols: Symbols
    lets: Lets
    ranges: bool
    asked: dict[str, t.Let | None] = field(factory=dict)
    leaves: dict[str, _Leaf] = field(factory=dict)
    bodies: dict[str, t.Expr] = field(factory=dict)
    parts: dict[str, t.Let] = field(factory=dict)
    derived: dict[str, t.Expr] = field(factory=dict)
    opaque: set[str] = field(factory=set)
    functions: dict[str, Callable[[Any], Any]] = field(factory=dict)
    evaluator: Evaluator = field(init=False)

    def __post_init__(self) -> None:
        """Make an evaluator that knows the parts' names, too."""
        self.evaluator = Evaluator(self.symbols)
        self.parts |= self.lets
        self.evaluator.names.extra = self.parts

    def never(self, condition: t.Expr | None, requirement: t.Expr) -> bool:
        """Whether no cell makes the condition true and the requirement false. Raises CompileError."""
        tests = [self._truth(t.Truth(True) if condition is None else condition), self._truth(requirement)]
        for name, body in {**self.bodies, **self.derived}.items():
            self.functions[name] = self.evaluator.compiled(body)[0]
        applies, holds = (self.evaluator.compiled(t.Junction("and", (test,)))[0] for test in tests)
        each_leaf = (
            (leaf.name, leaf.cells(opaque=leaf.name in self.opaque)) for leaf in self.leaves.values()
        )
        split = [(name, cells) for name, cells in each_leaf if cells]
        left = _MOST_CELLS

        def settled(depth: int, chosen: dict[str, object]) -> bool:
            nonlocal left
            left -= 1
            values = _Cells(self, chosen)
            if applies(values) is False or holds(values) is True:
                return True
            if depth == len(split) or left < 0:
                return False
            name, cells = split[depth]
            inner = ({**chosen, name: cell} for cell in cells)
            return all(settled(depth + 1, each) for each in inner if self._reached(each))

        return settled(0, {})

    def _reached(self, chosen: Mapping[str, object]) -> bool:
        """Whether what is derived may lie in its cell, going by what it is derived from."""
        for name, cell in chosen.items():
            if name in self.functions and isinstance(cell, (int, float, Interval)):
                value = self.functions[name](_Cells(self, chosen))
                if isinstance(value, Unknown):
                    continue
                (low, high, _), (first, last, _) = parts(value), parts(cell)
                if high < first or low > last:
                    return False
        return True

    # ── a rule, rewritten ──────────────────────────────────────────────────────────────────────────────
    def _rewritten(self, node: Any) -> Any:
        return t.rebuilt(node, self._change)

    def _change(self, node: t.Expr) -> t.Expr | None:
        """Return what stands for a part of a rule; None for one that stays, but for its own parts."""
        result: t.Expr | None = None
        match node:
            case t.Has() | t.Path() | t.Call("known"):
                self.opaque.add(name := self._standing(node))
                result = t.Name(self._leaf(name).name)
            case t.Quantifier():
                result = self._quantified(node)
            case t.Call(function, arguments) if function in self.symbols.functions:
                let = self.symbols.functions[function]
                given = dict(zip(let.parameters, arguments, strict=True))
                result = self._rewritten(substitute(let.body, given))
            case t.Name(name):
                self._take(name)
                self.opaque.add(name)
            case t.If(when, then, other):
                result = t.If(self._truth(when), self._rewritten(then), self._rewritten(other))
            case t.Not() | t.Junction() | t.Compare() | t.Member():
                result = self._logic(node)
        return result

    def _logic(self, node: t.Expr) -> t.Expr | None:
        """Return what stands for a truth that is made of others, or for comparisons."""
        match node:
            case t.Not(operand):
                return t.Not(self._truth(operand))
            case t.Junction(operator, operands):
                return t.Junction(operator, tuple(map(self._truth, operands)))
            case t.Compare(operands, operators):
                pairs = zip(operands, operators, operands[1:], strict=False)
                return t.Junction("and", tuple(self._compared(*pair) for pair in pairs))
            case t.Member(item, t.ListOf(items), negated):
                test = t.Junction("or", tuple(self._compared(item, "==", each) for each in items))
                return t.Not(test) if negated else test
            case t.Member(item, t.Range(low, high), negated):
                if isinstance(low, t.Number) and isinstance(high, t.Number) and low.unit is None:
                    low = t.Number(low.value, high.unit)  # `20..30 GiB`
                test = t.Junction("and", (self._compared(low, "<=", item), self._compared(item, "<=", high)))
                return t.Not(test) if negated else test
        return None

    def _truth(self, node: t.Expr) -> t.Expr:
        """Return a truth, rewritten; a key that is asked for as one is true or false."""
        if isinstance(node, t.Path):
            leaf = self._leaf(self._standing(node))
            leaf.compared(True)
            leaf.compared(False)
            return t.Name(leaf.name)
        result: t.Expr = self._rewritten(node)
        return result

    def _take(self, name: str) -> None:
        """Take in a name: a fact, or what it is derived from. Any other is an enumeration's member."""
        let = self.asked[name] = self.lets.get(name)
        if name in self.bodies or name in self.leaves:
            return
        if let is not None and len(self.bodies) < _MOST_LETS:
            self.bodies[name] = let.body  # so that nothing is taken apart twice
            self.bodies[name] = self._rewritten(let.body)
        elif name in self.symbols.types or name in self.symbols.lets:
            self._leaf(name)

    def _leaf(self, name: str) -> _Leaf:
        if name not in self.leaves:
            kind = self.evaluator.type_of(name)
            declared = name in self.symbols.types
            if kind.kind == "number" and not (self.ranges and declared):
                whole = kind.whole and not declared and self.ranges
                kind = replace(kind, low=-INF, high=INF, whole=whole)
            self.leaves[name] = _Leaf(name, kind)
        return self.leaves[name]

    def _standing(self, node: t.Expr) -> str:
        """Return the name that stands for an expression from now on."""
        name = f"·{show(node)}"
        self.parts.setdefault(name, t.Let(name, (), node))
        return name

    def _type(self, node: t.Expr) -> Type:
        """Return an expression's type; that of a text for a word that only another operand explains."""
        try:
            return self.evaluator.compiled(node)[1]
        except CompileError:
            return Type("word")

    def _quantified(self, node: t.Quantifier) -> t.Expr:
        """Return what stands for a quantifier; one whose body is settled for any item may be settled, too."""
        settles = {"all": (None, node.body, True), "any": (node.body, t.Truth(False), False)}.get(node.kind)
        if settles is not None and node.source != t.Name("roles"):
            condition, requirement, truth = settles
            items = {node.variable: t.Path(("·item",))}
            inner = _Proof(self.symbols, self.lets, self.ranges)
            body = (None if part is None else substitute(part, items) for part in (condition, requirement))
            if inner.never(*body):  # type: ignore[arg-type]
                return t.Truth(truth)
        return t.Name(self._leaf(self._standing(node)).name)

    # ── comparisons ────────────────────────────────────────────────────────────────────────────────────
    def _compared(self, left: t.Expr, operator: str, right: t.Expr) -> t.Expr:
        """Return a comparison, rewritten, and note where what is compared is to be split."""
        if _is_constant(left) and not _is_constant(right):
            left, operator, right = right, _FLIPPED[operator], left
        first, second = self._type(left), self._type(right)
        if _is_constant(right) and not _is_constant(left):
            return self._against(left, first, operator, right)
        numbers = first.kind == second.kind == "number" and not (first.bare or second.bare)
        if not numbers or first.dimension != second.dimension or _is_constant(left):
            return t.Compare((self._rewritten(left), self._rewritten(right)), (operator,))
        if show(right) < show(left):
            left, operator, right = right, _FLIPPED[operator], left
        gap = t.Sum((("+", left), ("-", right)))
        return self._against(gap, first, operator, t.Number(0))

    def _against(self, node: t.Expr, kind: Type, operator: str, constant: t.Expr) -> t.Expr:
        """Return the comparison of an expression with a constant; the expression is split there."""
        if isinstance(node, t.Name):
            self._take(node.name)
        if isinstance(node, t.Name) and kind.kind in ("number", "any", "text"):
            leaf = self._leaf(node.name)
        elif isinstance(node, t.Path):
            leaf = self._leaf(self._standing(node))
        elif not isinstance(node, t.Name) and kind.kind == "number":
            leaf = self._leaf(self._standing(node))
            self.derived[leaf.name] = self._rewritten(node)
        else:  # a truth, an enumeration's member
            return t.Compare((self._rewritten(node), constant), (operator,))
        for value in self._worth(constant, kind):
            leaf.compared(value)
        return t.Compare((t.Name(leaf.name), constant), (operator,))

    def _worth(self, constant: t.Expr, kind: Type) -> Iterator[object]:
        """Yield what a constant is worth beside an expression of a type."""
        if isinstance(constant, (t.Text, t.Truth)):
            yield constant.value
        elif isinstance(constant, t.Null):
            yield None
        else:
            function, own = self.evaluator.compiled(constant)
            value = function(_Cells(self, {}))
            if isinstance(value, (int, float)):
                if kind.kind == "any" and not own.bare:
                    yield value / own.factor
                else:
                    yield value * kind.factor if own.bare and kind.kind == "number" else value


def _is_constant(node: t.Expr) -> bool:
    """Whether an expression names nothing; an enumeration's member is handled where it meets its fact."""
    named = (t.Name, t.Path, t.Has, t.Call, t.Quantifier)
    return not any(isinstance(part, named) for part in t.walk(node))
