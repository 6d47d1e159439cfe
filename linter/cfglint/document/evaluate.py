"""What OmegaConf's ``${…}`` stand for in a view."""

from __future__ import annotations

from cfglint.document.interpolation import MalformedError, Reference, parse, split_key, typed
from cfglint.document.places import DEEPEST_PATH, Record, Value, dotted, index_of, mandatory, over_budget
from cfglint.document.scalars import Missing
from cfglint.document.tree import Mapping, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.interpolation import Argument, Call
    from cfglint.document.places import Path, Place
    from cfglint.document.view import View

_LONGEST_TEXT = 1_000_000


def evaluate(view: View, node: Scalar, at: Path) -> Place:
    """Return what a scalar with ``${`` in it stands for."""
    try:
        parts = parse(node.text)
    except MalformedError as error:
        return Value(Missing((), f"no interpolation: {error}", "malformed")), at
    if len(parts) == 1 and not isinstance(parts[0], str):
        return _part(view, parts[0], at)
    return Value(_text(view, parts, at)), at


def _text(view: View, parts: tuple[str | Reference | Call, ...], at: Path) -> object:
    held: list[str] = []
    length = 0
    for part in parts:
        if isinstance(part, str):
            held.append(part)
        else:
            value = _native(view, _part(view, part, at))
            if isinstance(value, Missing):
                return value
            if isinstance(value, (list, Record)):
                return Missing((), "a list or mapping inside a text", "malformed")
            held.append(str(value))
        length += len(held[-1])
        if length > _LONGEST_TEXT:
            return over_budget()
    text = "".join(held)
    return mandatory(at) if text == "???" else text


def _native(view: View, place: Place) -> object:
    node, at = place
    return view.value(node, at, at, 0)


def _part(view: View, part: Reference | Call, at: Path) -> Place:
    if isinstance(part, Reference):
        return reference_place(view, part, at)
    return _call(view, part, at)


def path_of(view: View, reference: Reference, at: Path) -> Path | Missing:
    """Return the path that a reference written at ``at`` names."""
    keys: list[str] = []
    for key in reference.keys:
        if isinstance(key, str):
            keys.append(key)
            continue
        value = _native(view, _part(view, key, at))
        if isinstance(value, Missing):
            return value
        if not isinstance(value, (str, int)) or isinstance(value, bool):
            return Missing((), "a key of a reference is neither a text nor a number", "malformed")
        keys.extend(split_key(str(value)))
    if reference.up > len(at):
        return Missing((), f"{reference.up} dots lead above the top of the file", "absent")
    if len(keys) > DEEPEST_PATH:
        return over_budget()
    base = at[: len(at) - reference.up] if reference.up else ()
    return (*base, *keys)


def reference_place(view: View, reference: Reference, at: Path) -> Place:
    """Return the place that a reference leads to, in the end."""
    path = path_of(view, reference, at)
    if isinstance(path, Missing):
        return Value(path), at
    return _lead(view, path, at)


def _lead(view: View, path: Path, at: Path) -> Place:
    node, target = view.place(path)
    if node is None:
        return Value(Missing((), f"{dotted(path)} is not in the file", "absent")), at
    node, target = view.follow(node, target)
    if isinstance(node, (Mapping, Sequence)) and at[: len(target)] == target:
        return Value(Missing((), f"{dotted(at)} refers to a parent of its own", "cycle")), at
    return node, target


def _call(view: View, call: Call, at: Path) -> Place:
    if call.name in ("oc.env", "oc.select") and len(call.arguments) in (1, 2):
        key = _argument(view, call.arguments[0], at)
        if not isinstance(key, str):
            known = isinstance(key, Missing)
            return Value(key if known else Missing((), f"{call.name} wants a text", "malformed")), at
        if len(call.arguments) == 2 and call.arguments[1].kind != "dict":
            # OmegaConf evaluates a default that it does not need, and fails where that fails.
            default = _argument(view, call.arguments[1], at)
            if isinstance(default, Missing):
                return Value(default), at
        if call.name == "oc.env":
            return Value(_env(view, key, call.arguments[1:], at)), at
        return _select(view, key, call.arguments[1:], at)
    if call.name in view.resolvers:
        from cfglint.document.resolvers import resolved

        return Value(resolved(call.name, [_argument(view, argument, at) for argument in call.arguments])), at
    return Value(Missing((), f"the resolver {call.name} is the framework's own", "resolver")), at


def _env(view: View, name: str, default: tuple[Argument, ...], at: Path) -> object:
    if view.environ is not None and name in view.environ:
        return view.environ[name]
    if not default:
        return Missing((f"env.{name}",), f"the environment variable {name} is not set", "env")
    value = _argument(view, default[0], at)
    if isinstance(value, (Record, list)):
        return Missing((), "a list or mapping as the default of oc.env", "malformed")
    return value if value is None or isinstance(value, Missing) else str(value)


def _select(view: View, key: str, default: tuple[Argument, ...], at: Path) -> Place:
    up = len(key) - len(key.lstrip("."))
    base = at[: max(len(at) - up, 0)] if up else ()
    path = (*base, *split_key(key[up:]))
    if len(path) <= DEEPEST_PATH and up <= len(at):
        node, _ = view.place(path)
        if isinstance(node, Scalar) and node.text == "???":
            node = None
        if isinstance(node, Value) and isinstance(node.value, Missing) and node.value.kind == "missing":
            node = None
        if node is not None:
            return _lead(view, path, at)
        if _misses_a_list(view, path):
            return Value(Missing((), f"{dotted(path)} enters a list by a name", "malformed")), at
    if not default:
        return Value(None), at
    parts = default[0].parts
    if default[0].kind == "dict" and not default[0].items:
        return Mapping(0, flow=True), at
    if default[0].kind == "plain" and len(parts) == 1 and not isinstance(parts[0], str):
        return _part(view, parts[0], at)
    return Value(_argument(view, default[0], at)), at


def _misses_a_list(view: View, path: Path) -> bool:
    for depth, part in enumerate(path):
        node, _ = view.follow(*view.place(path[:depth]))
        if isinstance(node, Sequence) and index_of(part) is None:
            return True
    return False


def _argument(view: View, argument: Argument, at: Path) -> object:
    parts = argument.parts
    if argument.kind == "list":
        return [_argument(view, item, at) for item in argument.items]
    if argument.kind == "dict":
        return Missing((), "a mapping written inside an interpolation", "resolver")
    if argument.kind == "plain" and len(parts) == 1:
        only = parts[0]
        if isinstance(only, str):
            return typed(only)
        return _native(view, _part(view, only, at))
    return _text(view, parts, at)
