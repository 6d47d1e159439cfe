"""Goes through the statements of a program as Python would, and runs nothing.

Branches are taken both ways where their condition is not known; what differs afterwards is unknown. The body
of a loop is read once, with what it sets unknown before it. A function is read where it is called, and those
that nothing here calls at the end, with parameters that are not known.
"""

from __future__ import annotations

import ast
import re

from cfglint.budget import spend
from cfglint.document.python.parsers import Parsing
from cfglint.document.python.source import PYTHON, Code
from cfglint.document.python.values import (
    SOMETIMES,
    Class,
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
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    Names: TypeAlias = dict[str, object]

_DEEPEST_CALL = 8  # functions in each other
_DEEPEST_BLOCK = 30  # statements in each other
_MOST_ENTERED = 400  # calls of functions of the program that are followed
_ENDS = ("sys.exit", "exit", "quit", "os._exit")
_LOOP = "a loop of the program sets it"
_SPELLED_OUT = 8  # constants of a loop that is gone through
# What lists the names of all linear layers for LoRA, as QLoRA's program does, and leaves none of a tower out
# (https://github.com/artidoro/qlora/blob/7f4e95a/qlora.py#L221-L234).
_NAMES_LINEAR = re.compile(r"(?i)linear_?(?:names|layers|modules)\Z|all_linears?\Z")
_LINEAR = re.compile(
    r"(?s)\A(?!.*(?:vision|visual|multimodal|keyword|exclude|freeze)).*\.named_modules\(\).*"
    r"\bisinstance\(\w+, .*\.(?:add|append)\(.*\breturn (?:list|sorted)\("
)
# `if sys.argv[1].endswith(".json"): args = parser.parse_json_file(…)`: the same arguments from a file, which
# is laid beneath the command as any config (transformers/hf_argparser.py: parse_json_file).
_FROM_FILE = re.compile(r"\bsys\.argv\[-?1\]\.endswith\(")
_FIELDS = {
    *("dataclasses.field", "field", "pydantic.Field", "Field", "draccus.field"),
    "transformers.hf_argparser.HfArg",
}


def _spelled_out(node: ast.For | ast.AsyncFor | ast.While) -> list[ast.expr]:
    """Return what a loop goes over where a few constants are written there, and nothing leaves it early."""
    if not isinstance(node, ast.For) or not isinstance(node.iter, (ast.Tuple, ast.List)):
        return []
    items = node.iter.elts
    plain = 0 < len(items) <= _SPELLED_OUT and all(isinstance(item, ast.Constant) for item in items)
    leaves = (ast.Break, ast.Continue, ast.Return, ast.For, ast.While)
    inner = (each for statement in node.body for each in ast.walk(statement))
    return items if plain and not any(isinstance(each, leaves) for each in inner) else []


class Program(Parsing):
    """A program: `run` goes through it; ``decorators`` are those of its functions that are calls."""

    def __init__(self, code: Code, *, asked: dict[str, object] | None = None) -> None:
        super().__init__(code, asked=asked)
        self.decorators: list[tuple[Object, ast.FunctionDef]] = []
        self.frozen = False
        self.imports: set[str] = set()  # the first parts of the modules' names
        self._module = self.scope
        self._functions: list[Function] = []
        self._entered: set[int] = set()
        self._active: list[int] = []
        self._generators: dict[int, bool] = {}
        self._left = _MOST_ENTERED
        self.branches = 0
        self._nested = 0
        self._returned: list[object] = []

    def texts(self) -> list[str]:
        """Return the texts of the program's files."""
        return [self.code.file]

    def start(self) -> None:
        """Go through the program as far as it runs by itself."""
        for node in self.code.body:
            for inner in ast.walk(node):
                spend(1, PYTHON)
                if isinstance(inner, (ast.Global, ast.Nonlocal)):
                    self.shared.update(inner.names)
                elif isinstance(inner, ast.Attribute) and inner.attr in ("requires_grad", "requires_grad_"):
                    self.frozen = self.frozen or not isinstance(inner.ctx, ast.Load) or inner.attr[-1] == "_"
        self.block(self.code.body)

    def renew(self) -> None:
        """Let as many functions be followed as at the start; what is done from here on may not happen."""
        self._left = _MOST_ENTERED
        self.branches += 1

    def is_inside(self, function: Function) -> bool:
        """Whether a function is being gone through, or too many are."""
        return id(function.node) in self._active or len(self._active) >= _DEEPEST_CALL

    def owns(self, function: Function) -> bool:
        """Whether a function is of this file."""
        scope = function.scope
        while scope.outer is not None:
            scope = scope.outer
        return scope is self._module

    def run(self) -> None:
        """Go through the whole program."""
        self.start()
        self.at_start = frozenset(call.span for call in self.calls.values())
        for function in self._functions:  # grows on the way
            if id(function.node) not in self._entered:
                self.branches += 1
                self.branch = (self.branches,)  # what it changes of the module's may not happen
                self.enter(function, {}, None)

    # ── blocks ─────────────────────────────────────────────────────────────────────────────────────────
    def block(self, body: list[ast.stmt]) -> bool:
        """Go through statements; returns whether they surely leave the block for good."""
        self._nested += 1
        try:
            for node in body:
                spend(5, PYTHON)
                way: Callable[[ast.stmt], bool | None] | None = getattr(
                    self, f"_{type(node).__name__.lower()}", None
                )
                if way is None:
                    continue
                if self._nested > _DEEPEST_BLOCK:
                    self._forget(node, SOMETIMES)
                elif way(node):
                    return True
        finally:
            self._nested -= 1
        return False

    def _branch(self, body: list[ast.stmt], names: Names) -> tuple[bool, Names]:
        """Go through statements that may not happen; returns whether they end, and the names after."""
        outer = self.branch
        self.branches += 1
        self.branch = (*outer, self.branches)
        self.scope.names = dict(names)
        ended = self.block(body)
        self.branch = outer
        return ended, self.scope.names

    def _either(self, ways: Iterable[list[ast.stmt]]) -> bool:
        """Take all of some ways; returns whether each of them ends."""
        before = self.scope.names
        after = [self._branch(body, before) for body in ways]
        going_on = [names for ended, names in after if not ended]
        self.scope.names = _merged(going_on) if going_on else before
        return not going_on

    def _forget(self, node: ast.stmt, why: str) -> None:
        """Leave all that a statement sets unknown."""
        for inner in ast.walk(node):
            spend(1, PYTHON)
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, (ast.Store, ast.Del)):
                self.scope.names[inner.id] = self.unknown(why, inner)

    def _if(self, node: ast.If) -> bool:
        from_file = bool(node.orelse) and _FROM_FILE.search(ast.unparse(node.test)) is not None
        truth = False if from_file else self.truth(node.test)
        if truth is not None:
            return self.block(node.body if truth else node.orelse)
        return self._either([node.body, node.orelse])

    def _match(self, node: ast.Match) -> bool:
        self.value(node.subject)
        return self._either([[], *(case.body for case in node.cases)])

    def _for(self, node: ast.For | ast.AsyncFor | ast.While) -> bool:
        items = _spelled_out(node)
        if items:
            assert isinstance(node, ast.For)
            for item in items:
                self._store(node.target, self.value(item))
                self.block(node.body)
            return self.block(node.orelse)
        self.value(node.test if isinstance(node, ast.While) else node.iter)
        self._forget(node, _LOOP)
        return self._either([[], node.body]) or self.block(node.orelse)

    _while = _asyncfor = _for

    def _with(self, node: ast.With | ast.AsyncWith) -> bool:
        for item in node.items:
            value = self.value(item.context_expr)
            if item.optional_vars is not None:
                self._store(item.optional_vars, value)
        return self.block(node.body)

    _asyncwith = _with

    def _try(self, node: ast.Try) -> bool:
        before = dict(self.scope.names)
        ended = self.block([*node.body, *node.orelse])
        after = self.scope.names
        ways = [] if ended else [after]
        for handler in node.handlers:
            stopped, names = self._branch(handler.body, _merged([before, after]))
            ways += [] if stopped else [names]
        self.scope.names = _merged(ways) if ways else after
        return self.block(node.finalbody) or not ways

    _trystar = _try

    # ── statements ─────────────────────────────────────────────────────────────────────────────────────
    def _expr(self, node: ast.Expr) -> bool:
        value = self.value(node.value)
        return isinstance(value, Object) and value.kind in _ENDS

    def _return(self, node: ast.Return) -> bool:
        self._returned.append(Literal(None, (0, 0)) if node.value is None else self.value(node.value))
        return True

    def _raise(self, _: ast.Raise) -> bool:
        return True

    _break = _continue = _raise

    def _assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self._store(target, value)

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._store(node.target, self.value(node.value))

    def _augassign(self, node: ast.AugAssign) -> None:
        load: ast.expr = node.target
        if isinstance(node.target, ast.Name):
            load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
            self._store(
                node.target, self._binop(ast.copy_location(ast.BinOp(load, node.op, node.value), node))
            )
        else:
            self._store(node.target, self.unknown("it is changed in place", node))

    def _delete(self, node: ast.Delete) -> None:
        self._forget(node, "it is deleted")
        for target in node.targets:
            if isinstance(target, (ast.Subscript, ast.Attribute)):
                self._store(target, self.unknown("it is deleted", target))

    def _store(self, target: ast.expr, value: object) -> None:
        if isinstance(target, ast.Name):
            self.scope.names[target.id] = value
        elif isinstance(target, ast.Starred):
            self._store(target.value, self.unknown("a part of a list", target))
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._assign_parts(target.elts, value)
        elif isinstance(target, ast.Attribute):
            self._set_field(self.value(target.value), target.attr, value, target)
        elif isinstance(target, ast.Subscript):
            key = self.value(target.slice)
            owner = self.value(target.value)
            if isinstance(key, Literal) and isinstance(key.value, str):
                self._set_field(owner, key.value, value, target)
            elif isinstance(owner, Object):
                owner.rest = owner.rest or self._spelled(target)

    def _assign_parts(self, targets: list[ast.expr], value: object) -> None:
        parts: list[object]
        if isinstance(value, Items) and len(value.items) == len(targets):
            parts = value.items
        elif isinstance(value, Object) and value.kind != "dict":
            # `model, tokenizer = load(…)`: what the call gives first stands for it.
            parts = [value, *(self.unknown("a part of what a call gives", t) for t in targets[1:])]
        else:
            parts = [self.unknown("a part of a value that is not known", t) for t in targets]
        for target, part in zip(targets, parts, strict=True):
            self._store(target, part)

    def _set_field(self, owner: object, name: str, value: object, node: ast.AST) -> None:
        """Set a field or an entry; where that may not happen, it is unknown."""
        if isinstance(owner, Object):
            span = self.code.span(node)
            sure = owner.branch == self.branch
            old = owner.get(name)
            merged = value if sure else joined(old, value) if old is not None else Unknown(SOMETIMES, span)
            owner.items[name] = span, merged
        elif isinstance(owner, Class):
            owner.fields[name] = self.code.span(node), self.unknown(f"{owner.name}.{name} is set again", node)

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            self.imports.add(name.partition(".")[0])
            self.scope.names[alias.asname or name] = Symbol(name)

    def _importfrom(self, node: ast.ImportFrom) -> None:
        self.imports.add((node.module or "").partition(".")[0])
        for alias in node.names:
            if alias.name == "*":  # which may set any name again
                for name, value in self.scope.names.items():
                    if isinstance(value, Literal):
                        self.scope.names[name] = self.unknown(f"{node.module} may set {name}", node)
            module = "." * node.level + (node.module or "")
            self.scope.names[alias.asname or alias.name] = Symbol(f"{module}.{alias.name}")

    # ── functions and classes ──────────────────────────────────────────────────────────────────────────
    def _functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        function = Function(node, self.scope)
        self._functions.append(function)
        self.scope.names[node.name] = function
        for decorator in node.decorator_list:
            value = self.value(decorator)
            if isinstance(value, Object) and isinstance(node, ast.FunctionDef):
                self.decorators.append((value, node))

    _asyncfunctiondef = _functiondef

    def _classdef(self, node: ast.ClassDef) -> None:
        bases = [self.value(base) for base in node.bases]
        cls = Class(node.name, bases, {}, [])
        outer = self.scope
        self.scope = Scope({}, outer)
        own: set[str] = set()
        for item in node.body:
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._functions.append(Function(item, self.scope))
                cls.makes_itself = cls.makes_itself or item.name == "__init__"
                own |= _stored_on_self(item)
            elif isinstance(item, (ast.AnnAssign, ast.Assign)):
                self._field(cls, item)
        for name in own & cls.fields.keys():
            span = cls.fields[name][0]
            cls.fields[name] = span, Unknown(f"a method of {node.name} sets it", span)
        self.scope = outer
        self.scope.names[node.name] = cls

    def _field(self, cls: Class, node: ast.AnnAssign | ast.Assign) -> None:
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        if not isinstance(target, ast.Name):
            return
        if isinstance(node, ast.AnnAssign):
            cls.order.append(target.id)
        value = (
            Unknown("it has no default", self.code.span(target))
            if node.value is None
            else self.value(node.value)
        )
        if isinstance(value, Object) and value.kind in _FIELDS:
            first = value.positional[0] if value.positional else None
            default = value.get("default") or (first if value.name == "Field" else None)
            value = default or self._of_factory(value.get("default_factory"), node)
        cls.fields[target.id] = self.code.span(target), value
        self.scope.names[target.id] = value

    def _of_factory(self, factory: object, node: ast.AST) -> object:
        """Return the list that `default_factory=lambda: [...]` makes."""
        if isinstance(factory, Function) and isinstance(factory.node, ast.Lambda):
            body = factory.node.body
            if isinstance(body, (ast.List, ast.Tuple)):
                return self.value(body)
        return self.unknown("a function makes its default", node)

    def entered(self, function: Function, given: Object, node: ast.Call) -> object:
        """Return what a function of the program gives for some arguments."""
        body = function.node
        if isinstance(body, ast.Lambda) or self.is_inside(function):
            return self._computed(node)
        if self._left <= 0 or self._yields(body):
            return self._computed(node)
        if _NAMES_LINEAR.search(body.name) and _LINEAR.search(ast.unparse(body)):
            return Items([Literal("all-linear", self.code.span(node))], self.code.span(node))
        self._left -= 1
        return self.enter(function, self.bound(function, given), node)

    def _yields(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        if id(node) not in self._generators:
            found = [type(inner) for inner in ast.walk(node)]
            spend(len(found), PYTHON)
            self._generators[id(node)] = ast.Yield in found or ast.YieldFrom in found
        return self._generators[id(node)]

    def bound(self, function: Function, given: Object) -> Names:
        """Return the parameters of a function with their arguments."""
        arguments = function.node.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        bound: Names = {}
        if not given.rest:
            outer, self.scope = self.scope, function.scope
            for name, default in zip(reversed(names), reversed(arguments.defaults), strict=False):
                bound[name] = self.value(default)
            for argument, kw_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
                if kw_default is not None:
                    bound[argument.arg] = self.value(kw_default)
            self.scope = outer
        bound |= dict(zip(names, given.positional, strict=False))
        return bound | {name: value for name, (_, value) in given.items.items()}

    def enter(self, function: Function, bound: Names, node: ast.Call | None) -> object:
        """Go through a function; returns what it gives."""
        body = function.node
        assert not isinstance(body, ast.Lambda)
        self._entered.add(id(body))
        self._active.append(id(body))
        arguments = body.args
        names: Names = {
            a.arg: bound.get(a.arg) or self.unknown(f"{a.arg}, a parameter of {body.name}, is not known", a)
            for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        }
        for rest in (arguments.vararg, arguments.kwarg):
            if rest is not None:
                names[rest.arg] = self.unknown(f"the other arguments of {body.name} are not known", rest)
        outer, returned, nested = self.scope, self._returned, self._nested
        self.scope, self._returned, self._nested = Scope(names, function.scope), [], 0
        ended = self.block(body.body)
        values = self._returned if ended else [*self._returned, Literal(None, (0, 0))]
        self.scope, self._returned, self._nested = outer, returned, nested
        self._active.pop()
        if body.decorator_list and node is not None:
            return self._computed(node)
        result = values[0] if values else Unknown(f"{body.name} does not return")
        for value in values[1:]:
            result = joined(result, value)
        return result


def _merged(ways: list[dict[str, object]]) -> dict[str, object]:
    """Return the names after one of some ways."""
    first, *others = ways
    names = dict(first)
    spend(len(first) * len(others) // 20, PYTHON)
    for other in others:
        for name in {**names, **other}:
            one, two = names.get(name), other.get(name)
            if one is not two:
                spend(1, PYTHON)
                known = joined(one, two) if one is not None and two is not None else None
                span = getattr(one or two, "span", (0, 0))
                names[name] = Unknown(SOMETIMES, span) if known is None else known
    return names


def _stored_on_self(node: ast.AST) -> set[str]:
    """Return the attributes that a method sets."""
    return {
        inner.attr
        for inner in ast.walk(node)
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store)
    }
