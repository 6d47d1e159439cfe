"""What OmegaConf's ``${…}`` stand for, and the resolvers that frameworks register with it.

Their arithmetic is done by a total evaluator of ours. ``${eval:'…'}`` is Python's `eval` in torchtune; of
that, numbers, brackets and ``+ - * / // % **`` are read, and anything else is unknown.
"""

from __future__ import annotations

from itertools import accumulate
from operator import add, floordiv, mod, mul, sub, truediv

from cfglint.document.interpolation import MalformedError, Reference, parse
from cfglint.document.scalars import typed
from cfglint.document.tree import Computed, Mapping, Missing, Scalar, Sequence, dotted, number_of, split_key
from cfglint.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import collections.abc
    from collections.abc import Callable
    from typing import Any

    from cfglint.document.interpolation import Argument, Call, Parts
    from cfglint.document.layers import Layers
    from cfglint.document.scalars import Dialect
    from cfglint.document.tree import Document, Node, Path, Place

DEEPEST_PATH = 200
_LONGEST_TEXT = 1_000_000
_PLAIN = (str, int, float, type(None))  # what can stand inside a text


def missing(why: str, kind: str) -> Computed:
    """Return a place whose value cannot be known."""
    return Computed(Missing((), why, kind))


def mandatory(at: Path) -> Missing:
    """Return what ``???`` is."""
    return Missing((dotted(at),), f"{dotted(at)} is '???': to be set by the user", "missing")


def over_budget() -> Missing:
    """Return what is left where a document stands for too many values."""
    return Missing((), "the file's aliases and references stand for more values than are followed", "budget")


class Evaluator(Record):
    """Finds what references and resolvers lead to, in the places that a `View` knows."""

    document: Document
    dialect: Dialect
    overrides: collections.abc.Sequence[str] = ()
    environ: collections.abc.Mapping[str, str] | None = None
    layers: Layers | None = None
    beneath: Dialect | None = None
    resolvers: collections.abc.Sequence[str] = ()

    def place(self, path: Path) -> Place:
        """Return the node at ``path`` and its own path."""
        raise NotImplementedError

    def follow(self, node: Node | Computed | None, at: Path) -> Place:
        """Return where a reference leads in the end."""
        raise NotImplementedError

    def value(self, node: Any, at: Path, path: Path, depth: int = 0) -> object:
        """Return the value of a place."""
        raise NotImplementedError

    def evaluate(self, node: Scalar, at: Path) -> Place:
        """Return what a scalar with ``${`` in it stands for."""
        try:
            parts = parse(node.text)
        except MalformedError as error:
            return missing(f"no interpolation: {error}", "malformed"), at
        if len(parts) == 1 and not isinstance(parts[0], str):
            return self._part(parts[0], at)
        return Computed(self._text(parts, at)), at

    def path_of(self, reference: Reference, at: Path) -> Path | Missing:
        """Return the path that a reference written at ``at`` names."""
        keys: list[str] = []
        for key in reference.keys:
            if isinstance(key, str):
                keys.append(key)
                continue
            value = self._native(key, at)
            if isinstance(value, Missing):
                return value
            if not isinstance(value, (str, int)) or isinstance(value, bool):
                return Missing((), "a key of a reference is neither a text nor a number", "malformed")
            keys.extend(split_key(str(value)))
        if reference.up > len(at):
            return Missing((), f"{reference.up} dots lead above the top of the file", "absent")
        if len(keys) > DEEPEST_PATH:
            return over_budget()
        return (*(at[: len(at) - reference.up] if reference.up else ()), *keys)

    def reference_place(self, reference: Reference, at: Path) -> Place:
        """Return the place that a reference leads to, in the end."""
        path = self.path_of(reference, at)
        return (Computed(path), at) if isinstance(path, Missing) else self._lead(path, at)

    def _lead(self, path: Path, at: Path) -> Place:
        node, end = self.place(path)
        if node is None:
            return missing(f"{dotted(path)} is not in the file", "absent"), at
        node, end = self.follow(node, end)
        if isinstance(node, (Mapping, Sequence)) and at[: len(end)] == end:
            return missing(f"{dotted(at)} refers to a parent of its own", "cycle"), at
        return node, end

    def _part(self, part: Reference | Call, at: Path) -> Place:
        return self.reference_place(part, at) if isinstance(part, Reference) else self._call(part, at)

    def _native(self, part: Reference | Call, at: Path) -> object:
        node, end = self._part(part, at)
        return self.value(node, end, end)

    def _text(self, parts: Parts, at: Path) -> object:
        texts: list[str] = []
        length = 0
        for part in parts:
            value = part if isinstance(part, str) else self._native(part, at)
            if isinstance(value, Missing):
                return value
            if not isinstance(value, _PLAIN):
                return Missing((), "a list or mapping inside a text", "malformed")
            texts.append(str(value))
            length += len(texts[-1])
            if length > _LONGEST_TEXT:
                return over_budget()
        text = "".join(texts)
        return mandatory(at) if text == "???" else text

    def _call(self, call: Call, at: Path) -> Place:
        if call.name in ("oc.env", "oc.select") and len(call.arguments) in (1, 2):
            return self._own_resolver(call.name, *call.arguments, at=at)
        if call.name in self.resolvers:
            return Computed(resolved(call.name, [self._argument(each, at) for each in call.arguments])), at
        return missing(f"the resolver {call.name} is the framework's own", "resolver"), at

    def _own_resolver(self, resolver: str, key: Argument, *default: Argument, at: Path) -> Place:
        name = self._argument(key, at)
        if isinstance(name, Missing):
            return Computed(name), at
        if not isinstance(name, str):
            return missing(f"{resolver} wants a text", "malformed"), at
        if default and default[0].kind != "dict":
            # OmegaConf evaluates a default that it does not need, and fails where that fails.
            value = self._argument(default[0], at)
            if isinstance(value, Missing):
                return Computed(value), at
        if resolver == "oc.env":
            return Computed(self._env(name, default, at)), at
        return self._select(name, default, at)

    def _env(self, name: str, default: tuple[Argument, ...], at: Path) -> object:
        if self.environ is not None and name in self.environ:
            return self.environ[name]
        if not default:
            return Missing((f"env.{name}",), f"the environment variable {name} is not set", "env")
        value = self._argument(default[0], at)
        if value is None or isinstance(value, Missing):
            return value
        if not isinstance(value, _PLAIN):
            return Missing((), "a list or mapping as the default of oc.env", "malformed")
        return str(value)

    def _select(self, key: str, default: tuple[Argument, ...], at: Path) -> Place:
        up = len(key) - len(key.lstrip("."))
        path = (*(at[: max(len(at) - up, 0)] if up else ()), *split_key(key[up:]))
        if len(path) <= DEEPEST_PATH and up <= len(at):
            node, _ = self.place(path)
            value = node.value if isinstance(node, Computed) else None
            unset = isinstance(node, Scalar) and node.text == "???"
            if (
                node is not None
                and not unset
                and not (isinstance(value, Missing) and value.kind == "missing")
            ):
                return self._lead(path, at)
            if self._enters_a_list(path):
                return missing(f"{dotted(path)} enters a list by a name", "malformed"), at
        if not default:
            return Computed(None), at
        parts = default[0].parts
        if default[0].kind == "dict" and not default[0].items:
            return Mapping(0, flow=True), at
        if default[0].kind == "plain" and len(parts) == 1 and not isinstance(parts[0], str):
            return self._part(parts[0], at)
        return Computed(self._argument(default[0], at)), at

    def _enters_a_list(self, path: Path) -> bool:
        for depth, part in enumerate(path):
            node, _ = self.follow(*self.place(path[:depth]))
            if isinstance(node, Sequence) and number_of(part) is None:
                return True
        return False

    def _argument(self, argument: Argument, at: Path) -> object:
        parts = argument.parts
        if argument.kind == "list":
            return [self._argument(item, at) for item in argument.items]
        if argument.kind == "dict":
            return Missing((), "a mapping written inside an interpolation", "resolver")
        if argument.kind == "plain" and len(parts) == 1:
            return typed(parts[0]) if isinstance(parts[0], str) else self._native(parts[0], at)
        return self._text(parts, at)


# ── resolvers ──────────────────────────────────────────────────────────────────────────────────────────────
RESOLVERS = ("add", "sub", "mul", "div", "max", "eval")
_LONGEST = 500
_DEEPEST = 30
_LARGEST = 2**63


def resolved(name: str, arguments: collections.abc.Sequence[object]) -> object:
    """Return what a resolver of `RESOLVERS` makes of its arguments; Missing where it fails or is unknown."""
    for argument in arguments:
        if isinstance(argument, Missing):
            return argument
    if name == "eval":
        return _eval(*arguments) if len(arguments) == 1 else _fails(name, "wants one argument")
    if len(arguments) != 2:
        return _fails(name, f"wants two arguments, and has {len(arguments)}")
    return _apply(name, *arguments)


def _fails(name: str, why: str) -> Missing:
    return Missing((), f"${{{name}:…}} {why}", "malformed")


def _power(left: float, right: float) -> object:
    if abs(right) > 64 or abs(left) > _LARGEST:
        return Missing((), "a power too large to work out", "budget")
    return left**right


_OPERATIONS: dict[str, Callable[[Any, Any], object]] = {
    "add": add, "sub": sub, "mul": mul, "div": truediv, "max": max, "//": floordiv, "%": mod, "**": _power,
}  # fmt: skip


def _apply(name: str, left: object, right: object) -> object:
    for side in (left, right):
        if isinstance(side, Missing):
            return side
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        return _fails(name, "wants numbers")
    try:
        value = _OPERATIONS[name](left, right)
    except (ZeroDivisionError, OverflowError) as error:
        return _fails(name, f"fails: {error}")
    if isinstance(value, (float, Missing)):
        return value
    if not isinstance(value, int):  # a root of a negative number
        return _fails(name, "is no real number")
    return value if abs(value) < _LARGEST else Missing((), "a huge number", "budget")


def _eval(text: object) -> object:
    """Do Python's arithmetic on literal numbers."""
    if isinstance(text, (int, float)):
        return _fails("eval", "wants a text")  # as Python's does
    if not isinstance(text, str) or len(text) > _LONGEST:
        return Missing((), "${eval:…} of more than arithmetic", "resolver")
    import ast

    try:
        return _sum(ast.parse(_numbers_only(text.strip()), mode="eval").body, 0)
    except (SyntaxError, ValueError, MemoryError):
        return Missing((), f"${{eval:…}} of more than arithmetic: {text}", "resolver")


def _numbers_only(text: str) -> str:
    nested = max(accumulate((char == "(") - (char == ")") for char in text), default=0)
    if nested > _DEEPEST or not set("0123456789.eE+-*/%() \t").issuperset(text):
        raise SyntaxError
    return text


def _sum(node: Any, depth: int) -> object:
    """Work out what Python parsed; raises SyntaxError where it is more than a sum of numbers."""
    kind = node.__class__.__name__
    name = _OPERATORS.get(getattr(node, "op", None).__class__.__name__, "")
    if depth <= _DEEPEST:
        if kind == "Constant" and node.value.__class__ in (int, float):
            return node.value
        if kind == "UnaryOp" and name in ("+", "-"):
            return _apply("mul", -1 if name == "-" else 1, _sum(node.operand, depth + 1))
        if kind == "BinOp" and name:
            return _apply(name, _sum(node.left, depth), _sum(node.right, depth + (name == "**")))
    raise SyntaxError


_OPERATORS = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div", "FloorDiv": "//", "Mod": "%", "Pow": "**",
    "UAdd": "+", "USub": "-",
}  # fmt: skip
