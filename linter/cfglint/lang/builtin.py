"""The functions that every rule may call, with their types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.lang import tree as t
from cfglint.lang.emit import CallError, CompileError, is_number
from cfglint.lang.pattern import compile_pattern
from cfglint.lang.show import quote, show
from cfglint.lang.types import BOOL, COUNT, LIST, NUMBER, TEXT, Type
from cfglint.lang.units import PLAIN
from cfglint.record import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from cfglint.lang.emit import Emitter


def _take(node: t.Call, least: int, most: int | None = None) -> None:
    most = least if most is None else most
    if not least <= len(node.arguments) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise CallError(
            f"{node.function} takes {wanted} argument{'s' * (wanted != '1')}, not {len(node.arguments)}"
        )


def _numbers(function: Emitter, node: t.Call) -> tuple[list[str], Type]:
    parts = [(argument, *function.value(argument)) for argument in node.arguments]
    united = [kind for _, _, kind in parts if kind.kind == "number" and not kind.bare]
    lead = next((kind for kind in united if not kind.written), united[0] if united else NUMBER)
    atoms = [function.fit(argument, atom, kind, lead) for argument, atom, kind in parts]
    whole = all(kind.whole for _, _, kind in parts)
    bare = all(kind.kind == "number" and kind.bare for _, _, kind in parts)
    return atoms, Type("number", lead.dimension, lead.unit, whole=whole, bare=bare, written=lead.written)


def _extreme(runtime: str) -> Callable[[Emitter, t.Call], tuple[str, Type]]:
    def emit(function: Emitter, node: t.Call) -> tuple[str, Type]:
        if len(node.arguments) == 1:
            atom, kind = function.value(node.arguments[0])
            if kind.kind not in ("list", "any"):
                raise CallError(f"{node.function} takes two numbers or more, or one list")
            return function.once(f"{runtime}_of(as_list({atom}))"), NUMBER
        _take(node, 2, 100)
        atoms, kind = _numbers(function, node)
        return function.once(_short(function, runtime, atoms) + f"{runtime}({', '.join(atoms)})"), kind

    return emit


def _short(function: Emitter, runtime: str, atoms: list[str]) -> str:
    """Return how two plain numbers are compared without a call; their names replace ``atoms``."""
    if len(atoms) != 2:
        return ""
    one, other = atoms[:] = [function.held(atom) for atom in atoms]
    plain = [f"type({atom}) is not Interval" for atom in atoms if not is_number(atom)]
    sign = ">" if runtime == "maximum" else "<"
    return f"({other} if {other} {sign} {one} else {one}) if {' and '.join(plain) or True} else "


def _rounded(runtime: str) -> Callable[[Emitter, t.Call], tuple[str, Type]]:
    def emit(function: Emitter, node: t.Call) -> tuple[str, Type]:
        _take(node, 1)
        (atom,), kind = _numbers(function, node)
        return function.once(f"{runtime}({atom})"), replace(kind, whole=kind.dimension == PLAIN)

    return emit


def _absolute(function: Emitter, node: t.Call) -> tuple[str, Type]:
    _take(node, 1)
    (atom,), kind = _numbers(function, node)
    return function.once(f"absolute({atom})"), kind


def _end(runtime: str) -> Callable[[Emitter, t.Call], tuple[str, Type]]:
    def emit(function: Emitter, node: t.Call) -> tuple[str, Type]:
        _take(node, 1)
        (atom,), kind = _numbers(function, node)
        return function.once(f"{runtime}({atom})"), kind

    return emit


def _plain(runtime: str) -> Callable[[Emitter, t.Call], tuple[str, Type]]:
    def emit(function: Emitter, node: t.Call) -> tuple[str, Type]:
        _take(node, 1)
        (atom,), kind = _numbers(function, node)
        if kind.dimension != PLAIN:
            raise CallError(f"{node.function} takes a plain number, and {show(node.arguments[0])} is {kind}")
        return function.once(f"{runtime}({atom})"), NUMBER

    return emit


def _texts(runtime: str) -> Callable[[Emitter, t.Call], tuple[str, Type]]:
    def emit(function: Emitter, node: t.Call) -> tuple[str, Type]:
        _take(node, 2)
        text, _ = function.typed(node.arguments[0], TEXT)
        separator, _ = function.typed(node.arguments[1], TEXT)
        return function.once(f"{runtime}({text}, {separator})"), TEXT

    return emit


def _capture(function: Emitter, node: t.Call) -> tuple[str, Type]:
    """``capture(text, "*t{n:int}*", 1)``: what the pattern's one capture holds, else the default."""
    _take(node, 2, 3)
    text, _ = function.typed(node.arguments[0], TEXT)
    pattern = node.arguments[1]
    if not isinstance(pattern, t.Text):
        raise CallError("the pattern of capture is a text in quotes, so that it can be checked")
    try:
        pieces = compile_pattern(pattern.value)
    except ValueError as error:
        raise CompileError(pattern.span, str(error)) from None
    captures = [kind for piece in pieces for kind, name in piece if name and kind != "="]
    if len(captures) != 1:
        raise CompileError(
            pattern.span, f"capture wants exactly one named capture, this pattern has {len(captures)}"
        )
    kind = COUNT if captures[0] == "int" else TEXT
    default = f"NAMES(({'a text like ' + quote(pattern.value)!r},))"
    if len(node.arguments) == 3:
        default = function.typed(node.arguments[2], kind)[0]
    return function.once(f"capture({text}, {pieces!r}, {default}, {kind.kind!r})"), kind


def _length(function: Emitter, node: t.Call) -> tuple[str, Type]:
    _take(node, 1)
    atom, kind = function.value(node.arguments[0])
    if kind.kind not in ("list", "any"):
        raise CallError(f"length takes a list, and {show(node.arguments[0])} is {kind}")
    return function.once(f"length(as_list({atom}))"), COUNT


def _divisors(function: Emitter, node: t.Call) -> tuple[str, Type]:
    """``divisors(a, b)``: the whole numbers that divide all of its arguments, as a list."""
    _take(node, 1, 10)
    atoms, kind = _numbers(function, node)
    if kind.dimension != PLAIN:
        raise CallError(f"divisors takes plain numbers, and {show(node.arguments[0])} is {kind}")
    return function.once(f"divisors({', '.join(atoms)})"), LIST


def _known(function: Emitter, node: t.Call) -> tuple[str, Type]:
    """``known(x)``: whether there is a value for it at all, however uncertain."""
    _take(node, 1)
    atom = function.held(function.value(node.arguments[0])[0])
    return function.once(f"True if type({atom}) in PLAIN else not needs_of({atom})"), BOOL


FUNCTIONS: dict[str, Callable[[Emitter, t.Call], tuple[str, Type]]] = {
    "min": _extreme("minimum"),
    "max": _extreme("maximum"),
    "ceil": _rounded("ceiling"),
    "floor": _rounded("floor"),
    "round": _rounded("nearest_whole"),
    "abs": _absolute,
    "lowest": _end("lowest"),
    "highest": _end("highest"),
    "sqrt": _plain("square_root"),
    "log2": _plain("binary_logarithm"),
    "before": _texts("before"),
    "after": _texts("after"),
    "capture": _capture,
    "length": _length,
    "divisors": _divisors,
    "known": _known,
}
