"""What an expression of a program is worth, where its source says so; nothing of it is run."""

from __future__ import annotations

import ast
import operator
from itertools import islice

from cfglint.budget import spend
from cfglint.document.python.source import PYTHON, Code
from cfglint.document.python.values import (
    Class,
    Flag,
    Function,
    Items,
    Literal,
    Object,
    Scope,
    Symbol,
    Unknown,
    joined,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_DEEPEST = 60  # expressions in each other
_MOST_DIGITS = 40
_LONGEST = 2_000
_MOST_READS = 8
_ABSENT = object()
_ARITHMETIC: dict[type, Callable[[Any, Any], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_CASTS: dict[str, Callable[[Any], object]] = {"int": int, "float": float, "str": str, "bool": bool}


class Evaluator:
    """Evaluates expressions in ``scope``; `Program` goes through the statements."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.scope = Scope({})
        self.branch: tuple[int, ...] = ()
        self.shared: set[str] = set(code.doubtful)  # names that are set where this does not look
        self._depth = 0

    # ── places ─────────────────────────────────────────────────────────────────────────────────────────
    def unknown(self, why: str, node: ast.AST) -> Unknown:
        """Return an unknown value at a node."""
        return Unknown(why, self.code.span(node))

    def _spelled(self, node: ast.AST) -> str:
        text = " ".join(self.code.written(node).split())
        return text if len(text) <= 40 else text[:39] + "…"

    # ── expressions ────────────────────────────────────────────────────────────────────────────────────
    def value(self, node: ast.expr) -> object:
        """Return what an expression is worth."""
        spend(2, PYTHON)
        way = getattr(self, f"_{type(node).__name__.lower()}", None)
        if way is None or self._depth > _DEEPEST:
            return self.unknown(f"{self._spelled(node)} is not known before the program runs", node)
        self._depth += 1
        try:
            return way(node)
        finally:
            self._depth -= 1

    def truth(self, node: ast.expr) -> bool | None:
        """Return whether a condition holds; None where that is not known."""
        return _truth_of(self.settled(self.value(node)))

    def settled(self, value: object) -> object:
        """Return what a value is worth where a branch depends on it; a program's flags may be told then."""
        return value

    def _constant(self, node: ast.Constant) -> object:
        if isinstance(node.value, (bool, int, float, str, type(None))):
            return Literal(node.value, self.code.span(node), whole=True)
        return self.unknown("it is no number, text or truth", node)

    def _name(self, node: ast.Name) -> object:
        if node.id == "__name__":
            return Literal("__main__", self.code.span(node))
        found = self.scope.find(node.id)
        if node.id in self.shared and not isinstance(found, (Symbol, Function, Class)):
            return self.unknown(f"{node.id} is set in several places", node)
        return Symbol(node.id) if found is None else found

    def _attribute(self, node: ast.Attribute) -> object:
        value = self.value(node.value)
        if isinstance(value, Symbol):
            return Symbol(f"{value.name}.{node.attr}")
        if isinstance(value, Class):
            field = value.all_fields().get(node.attr)
            return (
                field[1] if field is not None else self.unknown(f"{self._spelled(node)} is not known", node)
            )
        if isinstance(value, Object):
            return self.attribute(value, node.attr, node)
        return self.unknown(f"{self._spelled(node)} is not known before the program runs", node)

    def attribute(self, value: Object, name: str, node: ast.AST) -> object:
        """Return a field of an object."""
        found = value.items.get(name)
        if found is not None:
            return found[1]
        if value.cls is not None and not value.rest:
            field = value.cls.all_fields().get(name)
            if field is not None:
                return field[1]
        return self.unknown(f"{self._spelled(node)} is not known before the program runs", node)

    def _unaryop(self, node: ast.UnaryOp) -> object:
        value = self.value(node.operand)
        value = self.settled(value) if isinstance(node.op, ast.Not) else value
        if isinstance(value, Literal):
            if isinstance(node.op, ast.Not):
                return Literal(not value.value, self.code.span(node))
            if isinstance(node.op, ast.USub) and type(value.value) in (int, float):
                whole = isinstance(node.operand, ast.Constant)  # -1 is one number
                return Literal(-value.value, self.code.span(node), whole, () if whole else (value,))  # type: ignore[operator]
        return self._computed(node, value)

    def _binop(self, node: ast.BinOp) -> object:
        return self.combined(self.value(node.left), self.value(node.right), node)

    def combined(self, first: object, second: object, node: ast.BinOp) -> object:
        """Return what an operator makes of two values."""
        if isinstance(first, Object) and isinstance(second, Object) and isinstance(node.op, ast.BitOr):
            return self._union(first, second, node)
        flags = [each for each in (first, second) if isinstance(each, Flag)]
        if flags and isinstance(node.op, ast.Add) and (flags[1:] or _is_number(first) or _is_number(second)):
            # `args.prompt + args.answer`; steps that are a quotient follow other flags, which no fix knows
            first, second = self.settled(first), self.settled(second)
        if not isinstance(first, Literal) or not isinstance(second, Literal):
            return self._computed(node, first, second)
        if isinstance(node.op, ast.Mult) and first.whole and type(second.value) is int and second.value == 1:
            return first  # `accumulation *= parallel_size` where that is 1 leaves what it is
        apply = _ARITHMETIC.get(type(node.op))
        numbers = all(type(each.value) in (int, float) for each in (first, second))
        texts = all(type(each.value) is str for each in (first, second)) and isinstance(node.op, ast.Add)
        power = isinstance(node.op, ast.Pow) and numbers and abs(second.value) <= 64  # type: ignore[arg-type]
        if power and abs(first.value) <= 1024:  # type: ignore[arg-type]
            apply = operator.pow
        if apply is None or not (numbers or texts):
            return self._computed(node)
        try:
            result = apply(first.value, second.value)
        except (ArithmeticError, ValueError):
            return self._computed(node)
        return self._bounded(result, node, (first, second))

    def _bounded(self, result: object, node: ast.AST, reads: tuple[Literal, ...]) -> object:
        """Return a computed value; unknown where it is larger than anybody means."""
        large = isinstance(result, (int, float)) and not abs(result) < 10**_MOST_DIGITS
        if large or isinstance(result, complex) or (isinstance(result, str) and len(result) > _LONGEST):
            return self.unknown("it is too large", node)
        flat = dict.fromkeys(part for read in reads for part in (read.reads or (read,)))
        return Literal(result, self.code.span(node), False, tuple(islice(flat, _MOST_READS)))

    def _computed(self, node: ast.AST, *parts: object) -> Unknown:
        """Return what cannot be computed since a part of it is not known."""
        for part in parts:
            if isinstance(part, Flag):
                return self.unknown(f"the flag --{part.name} sets it", node)
            if isinstance(part, Unknown):
                return self.unknown(part.why, node)
        return self.unknown(f"{self._spelled(node)} is not known before the program runs", node)

    def _boolop(self, node: ast.BoolOp) -> object:
        for part in node.values:
            value = self.value(part)
            truth = _truth_of(self.settled(value))
            if truth is None:
                return self._computed(node, value)
            if truth is isinstance(node.op, ast.Or):
                return value
        return value

    def _compare(self, node: ast.Compare) -> object:
        first, second = (self.settled(self.value(part)) for part in (node.left, node.comparators[0]))
        compare = _COMPARISONS.get(type(node.ops[0]))
        if len(node.ops) == 1 and isinstance(first, Literal) and isinstance(second, Literal) and compare:
            try:
                return Literal(compare(first.value, second.value), self.code.span(node))
            except TypeError:
                pass
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            among = _among(first, second)
            if among is not None:
                return Literal(among is isinstance(node.ops[0], ast.In), self.code.span(node))
        return self._computed(node, first, second)

    def _ifexp(self, node: ast.IfExp) -> object:
        truth = self.truth(node.test)
        if truth is None:
            result = joined(self.value(node.body), self.value(node.orelse))
            return self._computed(node, self.value(node.test)) if isinstance(result, Unknown) else result
        return self.value(node.body if truth else node.orelse)

    def _joinedstr(self, node: ast.JoinedStr) -> object:
        reads: list[Literal] = []
        for part in node.values:
            value = self.value(part.value if isinstance(part, ast.FormattedValue) else part)
            plain = not isinstance(part, ast.FormattedValue) or (
                part.format_spec is None and part.conversion < 0
            )
            if not isinstance(value, Literal) or not plain:
                return self._computed(node, value)
            reads.append(value)
        return self._bounded("".join(str(read.value)[:_LONGEST] for read in reads), node, tuple(reads))

    def _namedexpr(self, node: ast.NamedExpr) -> object:
        value = self.value(node.value)
        self.scope.names[node.target.id] = value
        return value

    def _await(self, node: ast.Await) -> object:
        return self.value(node.value)

    def _lambda(self, node: ast.Lambda) -> object:
        return Function(node, self.scope)

    def _list(self, node: ast.List | ast.Tuple | ast.Set) -> object:
        if any(isinstance(item, ast.Starred) for item in node.elts):
            return self.unknown("a part of the list is put in elsewhere", node)
        return Items([self.value(item) for item in node.elts], self.code.span(node))

    _tuple = _set = _list

    def _dict(self, node: ast.Dict) -> object:
        result = Object("dict", self.code.span(node), branch=self.branch)
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                self._unpack(result, self.value(value), value)
                continue
            name = self.value(key)
            if isinstance(name, Literal) and isinstance(name.value, str):
                result.items[name.value] = name.span, self.value(value)
            else:
                result.rest = result.rest or self._spelled(key)
        return result

    def _unpack(self, target: Object, value: object, node: ast.AST) -> None:
        """Add what ``**`` of a value says; its keys may be any where it is not known."""
        if isinstance(value, Object) and value.kind == "dict":
            target.items |= value.items
            target.rest = target.rest or value.rest
            return
        name = f"**{self._spelled(node)}"
        target.rest = target.rest or name
        for key, (span, _) in target.items.items():  # a later key of a dictionary wins
            if target.kind == "dict":
                target.items[key] = span, Unknown(f"{name} may set it", span)

    def _union(self, first: Object, second: Object, node: ast.AST) -> Object:
        result = Object("dict", self.code.span(node), branch=self.branch)
        self._unpack(result, first, node)
        self._unpack(result, second, node)
        return result

    def _subscript(self, node: ast.Subscript) -> object:
        value, key = self.value(node.value), self.value(node.slice)
        if isinstance(value, Object) and isinstance(key, Literal) and isinstance(key.value, str):
            return self.attribute(value, key.value, node)
        if isinstance(value, Items) and isinstance(key, Literal) and type(key.value) is int:
            size = len(value.items)
            return value.items[key.value] if -size <= key.value < size else self._computed(node)
        return self._computed(node, value)

    # ── calls ──────────────────────────────────────────────────────────────────────────────────────────
    def _call(self, node: ast.Call) -> object:
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value)
            if isinstance(owner, Object):
                return self.method(owner, node.func.attr, node)
            if isinstance(owner, Symbol):
                return self.call(Symbol(f"{owner.name}.{node.func.attr}"), node)
            return self.of_value(owner, self.arguments(Object(node.func.attr, (0, 0)), node), node)
        return self.call(self.value(node.func), node)

    def of_value(self, owner: object, given: Object, node: ast.Call) -> object:
        """Return what a method of a text, a number or a list gives: the parts of a text are known."""
        between = given.positional[0] if len(given.positional) == 1 and not given.items else None
        if given.kind == "split" and isinstance(between, Literal) and isinstance(between.value, str):
            text = self.settled(owner)
            if isinstance(text, Literal) and isinstance(text.value, str) and between.value:
                parts = text.value[:_LONGEST].split(between.value)
                return Items([Literal(part, text.span) for part in parts], self.code.span(node))
        return self._computed(node, owner)

    def arguments(self, made: Object, node: ast.Call) -> Object:
        """Add the arguments of a call to what it makes."""
        parts = [*node.args, *node.keywords]
        if parts:
            made.last = self.code.span(parts[-1])
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                made.rest = made.rest or f"*{self._spelled(argument.value)}"
            else:
                made.positional.append(self.value(argument))
        for keyword in node.keywords:
            if keyword.arg is None:
                self._unpack(made, self.value(keyword.value), keyword.value)
            else:
                start, _ = self.code.span(keyword)
                made.spaced = self.code.written(keyword)[len(keyword.arg) :][:1] == " "
                made.items[keyword.arg] = (start, start + len(keyword.arg)), self.value(keyword.value)
        return made

    def call(self, callee: object, node: ast.Call) -> object:
        """Return what a call makes."""
        kind = callee.name if isinstance(callee, (Symbol, Class)) else ""
        made = self.arguments(Object(kind, self.code.span(node), branch=self.branch), node)
        if isinstance(callee, Function):
            return self.entered(callee, made, node)
        if isinstance(callee, Class):
            return self._instance(callee, made, node)
        if isinstance(callee, Symbol):
            return self.made(made, node)
        return self._computed(node, callee)

    def _instance(self, cls: Class, made: Object, node: ast.Call) -> object:
        base = cls.known_base()
        made.kind, made.cls = base or cls.name, cls
        if cls.makes_itself:
            made.rest = made.rest or cls.name
            made.items = {} if not base else made.items
        elif not base:
            for name, value in zip(cls.order, made.positional, strict=False):
                made.items[name] = self.code.span(node), value
        return self.made(made, node) if base else made

    def made(self, made: Object, node: ast.Call) -> object:
        """Return what a call of something imported makes; dictionaries and casts are known here."""
        first = made.positional[0] if len(made.positional) == 1 and not made.items else None
        if made.kind == "dict" and not made.positional:
            return made
        if made.kind in ("dict", "vars") and isinstance(first, Object):
            return first if made.kind == "vars" else self._union(first, Object("dict", made.span), node)
        if made.kind in _CASTS and isinstance(first, Literal):
            try:
                result = _CASTS[made.kind](first.value)
            except (TypeError, ValueError, OverflowError):
                return self._computed(node)
            return self._bounded(result, node, (first,))
        if made.kind == "len" and isinstance(first, Items):
            return Literal(len(first.items), made.span)
        return made

    def method(self, owner: Object, name: str, node: ast.Call) -> object:
        """Return what a method of an object gives; what it may change of a dictionary is not known after."""
        given = self.arguments(Object(name, self.code.span(node)), node)
        self.called(owner, name)
        if owner.kind == "dict":
            return self._of_dictionary(owner, name, given, node)
        return Object(f"{owner.kind}.{name}", given.span, given.items, [owner, *given.positional], given.rest)

    def called(self, owner: Object, name: str) -> None:
        """Note the call of a method, with a question mark where it may not happen."""
        owner.calls.add(name if owner.branch == self.branch else f"{name}?")

    def _of_dictionary(self, owner: Object, name: str, given: Object, node: ast.Call) -> object:
        key = given.positional[0] if given.positional else None
        if name == "copy":
            return Object("dict", owner.span, dict(owner.items), [], owner.rest, self.branch)
        if name == "get" and isinstance(key, Literal) and isinstance(key.value, str):
            default = given.positional[1] if len(given.positional) > 1 else Literal(None, given.span)
            if key.value in owner.items or owner.rest:
                return self.attribute(owner, key.value, node)
            return default
        if name == "update" and len(given.positional) <= 1 and owner.branch == self.branch:
            for source in (*given.positional, Object("dict", given.span, given.items, [], given.rest)):
                self._unpack(owner, source, node)
        elif name not in ("get", "items", "keys", "values"):
            why = f"{self._spelled(node)} may change it"
            owner.rest = owner.rest or why
            owner.items = {name: (span, Unknown(why, span)) for name, (span, _) in owner.items.items()}
        return self._computed(node)

    def entered(self, function: Function, given: Object, node: ast.Call) -> object:
        """Return what a function of the program gives; `Program` enters it."""
        raise NotImplementedError


def _truth_of(value: object) -> bool | None:
    if isinstance(value, Items):
        return True if value.items else None  # what fills an empty one is not followed
    return bool(value.value) if isinstance(value, Literal) else None


def _is_number(value: object) -> bool:
    return isinstance(value, Literal) and type(value.value) in (int, float)


def _among(value: object, holder: object) -> bool | None:
    """Whether a value is one of some, or a text a part of another; None where that is not known."""
    if not isinstance(value, Literal):
        return None
    if isinstance(holder, Literal) and isinstance(value.value, str) and isinstance(holder.value, str):
        return value.value in holder.value
    items = holder.items if isinstance(holder, Items) else [None]
    known = [item.value for item in items if isinstance(item, Literal)]
    return value.value in known if len(known) == len(items) else None
