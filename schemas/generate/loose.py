"""Keys that stand in no class: calls of argparse, DeepSpeed's constants, verl's own YAML files."""

from __future__ import annotations

import ast
import posixpath
from typing import TYPE_CHECKING, Any

import yaml
from python import UNKNOWN, Module, Package, base_name
from shapes import Shaper, Style, plain
from unions import Schema, merged, types_of, union

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sources import Tree

TYPES = {"int": "integer", "float": "number", "str": "string"}


# ── argparse ───────────────────────────────────────────────────────────────────────────────────────────────
def flags(package: Package, module: Module) -> Iterator[tuple[list[str], Schema]]:
    """Yield the flags that a module's calls of ``add_argument`` define, each with its spellings."""
    shaper = Shaper(package, Style())
    classes = _kwargs_of(module)
    for node, bound in _calls(package, module, module.tree, {}):
        names = [_spelled(package, module, one, bound) for one in node.args]
        names = [name[2:] for name in names if isinstance(name, str) and name.startswith("--")]
        words = {word.arg: word.value for word in node.keywords if word.arg}
        spread = [word.value for word in node.keywords if word.arg is None]
        if names:
            yield (
                names,
                _flag(shaper, module, words) if not spread else _field(shaper, module, spread[0], classes),
            )


def _calls(
    package: Package, module: Module, node: ast.AST, bound: Mapping[str, Any]
) -> Iterator[tuple[ast.Call, Mapping[str, Any]]]:
    """Yield the calls of ``add_argument`` with the loops' variables that they stand in."""
    if isinstance(node, ast.Call) and base_name(node.func) == "add_argument":
        yield node, bound
    listed = package.value(module, node.iter) if isinstance(node, ast.For) else UNKNOWN
    if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and isinstance(listed, list):
        for one in listed:
            for line in node.body:
                yield from _calls(package, module, line, {**bound, node.target.id: one})
        return
    for inner in ast.iter_child_nodes(node):
        yield from _calls(package, module, inner, bound)


def _spelled(package: Package, module: Module, node: ast.expr, bound: Mapping[str, Any]) -> Any:
    if not isinstance(node, ast.JoinedStr):
        return package.value(module, node)
    parts = []
    for part in node.values:
        inner = part.value if isinstance(part, ast.FormattedValue) else part
        parts.append(
            bound.get(base_name(inner), UNKNOWN) if part is not inner else package.value(module, inner)
        )
    return UNKNOWN if UNKNOWN in parts else "".join(map(str, parts))


def _flag(shaper: Shaper, module: Module, words: Mapping[str, ast.expr]) -> Schema:
    value = shaper.package.value
    action = words.get("action")
    if action is not None:
        said = value(module, action)
        boolean = said in ("store_true", "store_false") or base_name(action) == "BooleanOptionalAction"
        return {"type": "boolean"} if boolean else {}
    default = value(module, words.get("default"))
    choices = value(module, words.get("choices"))
    schema: Schema = {}
    if isinstance(choices, list) and choices and plain(choices):
        schema = {"enum": list(dict.fromkeys(choices))}
    elif "choices" not in words and isinstance(words.get("type"), ast.Name):
        kind = TYPES.get(base_name(words["type"]))
        schema = {"type": kind} if kind else {}
    if "nargs" in words:
        several = value(module, words["nargs"]) in ("+", "*") or isinstance(
            value(module, words["nargs"]), int
        )
        schema = {} if not several or not schema else union([schema, {"type": "array", "items": schema}])
    if default is None and schema:
        schema = union([schema, {"type": "null"}])
    if default is not UNKNOWN and plain(default):
        schema = {**schema, "default": default}
    return schema


def _kwargs_of(module: Module) -> dict[str, str]:
    """Return the classes behind ``x_kwargs = get_kwargs(X)``."""
    found = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            call, target = node.value, node.targets[0]
            if base_name(call.func) == "get_kwargs" and isinstance(target, ast.Name) and call.args:
                found[target.id] = base_name(call.args[0])
    return found


# Numbers that may be written as 8k or auto.
_HUMAN = (
    "max_model_len",
    "max_num_batched_tokens",
    "max_num_scheduled_tokens",
    "kv_cache_memory_bytes",
    "safetensors_prefetch_block_size",
    "max_num_queued_tokens",
)


def _field(shaper: Shaper, module: Module, spread: ast.expr, classes: Mapping[str, str]) -> Schema:
    """Return what ``**x_kwargs["field"]`` takes: what the field of the class says."""
    if not isinstance(spread, ast.Subscript):
        return {}
    name = shaper.package.value(module, spread.slice)
    found = shaper.package.find(module, classes.get(base_name(spread.value), ""))
    if found is None or not isinstance(found[1], ast.ClassDef):
        return {}
    record = shaper.record(found[0], found[1])
    schema = record["properties"].get(name, {})
    if name in _HUMAN:
        schema = {
            **union([{"type": "string"}, schema]),
            **{k: schema[k] for k in ("default",) if k in schema},
        }
    if any("$ref" in node or "object" in node.get("type", ()) for node in schema.get("anyOf", [schema])):
        return {}  # a mapping, or JSON in a text
    return schema


def both_spellings(found: Iterator[tuple[list[str], Schema]], *, negated: bool = False) -> Schema:
    """Return an object of flags, spelled with dashes and with underscores."""
    properties: dict[str, list[Schema]] = {}
    for names, declared in found:
        schema = declared
        if "enum" in str(schema):  # versions differ, and plugins add their own
            parts = [
                {**p, "x-cfglint": {"values": "named"}} if "enum" in p else p
                for p in schema.get("anyOf", [schema])
            ]
            schema = {**schema, "anyOf": parts} if "anyOf" in schema else parts[0]
        switch = negated and "boolean" in types_of(schema)
        for name in names:
            spellings = [name, name.replace("-", "_"), *([f"no-{name}"] if switch else [])]
            for one in dict.fromkeys(spellings):
                properties.setdefault(one, []).append(schema)
    return {"type": "object", "properties": {key: merged(s) for key, s in properties.items()}}


def flat(found: Iterator[tuple[list[str], Schema]]) -> Schema:
    """Return an object of flags as a program's arguments are called; it takes any other."""
    properties: dict[str, list[Schema]] = {}
    for names, schema in found:
        for name in names:
            properties.setdefault(name.replace("-", "_"), []).append(schema)
    return {"type": "object", "properties": {key: merged(parts) for key, parts in properties.items()}}


def nested(found: Iterator[tuple[list[str], Schema]]) -> Schema:
    """Return the object that flags with dots spell: ``--a.b-c`` is the key ``b_c`` of ``a``."""
    root: Schema = {"type": "object", "properties": {}, "additionalProperties": False}
    for names, schema in found:
        for name in names:
            at = root
            *sections, last = name.replace("-", "_").split(".")
            for section in sections:
                empty = {"type": "object", "properties": {}, "additionalProperties": False}
                at = at["properties"].setdefault(section, empty)
                if "properties" not in at:
                    break
            else:
                known = at["properties"].get(last)
                at["properties"][last] = schema if known is None else merged([known, schema])
    return root


# ── SGLang's fields with their flags ───────────────────────────────────────────────────────────────────────
def annotated_flags(shaper: Shaper, module: Module) -> Iterator[tuple[list[str], Schema]]:
    """Yield the flags of ``field: A[T, Arg(…)]``."""
    for node in module.classes.values():
        for line in node.body:
            if not (isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)):
                continue
            note = line.annotation
            if not (isinstance(note, ast.Subscript) and base_name(note) in ("A", "Annotated")):
                continue
            inner = note.slice.elts if isinstance(note.slice, ast.Tuple) else [note.slice]
            call = next((one for one in inner[1:] if isinstance(one, ast.Call)), None)
            words = {word.arg: word.value for word in call.keywords if word.arg} if call is not None else {}
            value = shaper.package.value
            if value(module, words.get("no_cli")) is True:
                continue
            cli = value(module, words.get("cli_name"))
            names = [cli[2:] if isinstance(cli, str) else line.target.id.replace("_", "-"), line.target.id]
            aliases = value(module, words.get("aliases"))
            names += [one[2:] for one in aliases if one.startswith("--")] if isinstance(aliases, list) else []
            choices = value(module, words.get("choices"))
            schema = shaper.annotation(module, inner[0])
            if (
                "type_parser" in words
                or "action" in words
                or ("choices" in words and not isinstance(choices, list))
            ):
                schema = {}
            elif isinstance(choices, list) and plain(choices) and "array" not in str(schema):
                schema = (
                    union([{"enum": choices}, {"type": "null"}])
                    if "null" in str(schema)
                    else {"enum": choices}
                )
            default = value(module, line.value)
            if default is not UNKNOWN and plain(default):
                schema = {**schema, "default": default}
            yield names, schema


# ── DeepSpeed ──────────────────────────────────────────────────────────────────────────────────────────────
_PARAMETERS = ("param_dict", "_param_dict", "ds_config", "pd")


def read_keys(package: Package, module: Module) -> dict[str, Schema]:
    """Return the keys that a module's functions take out of the whole config, with their defaults."""
    found: dict[str, Schema] = {}
    for node in ast.walk(module.tree):
        key: ast.expr | None = None
        default: ast.expr | None = None
        if isinstance(node, ast.Call) and base_name(node.func) in (
            "get_scalar_param",
            "get_dict_param",
            "get_list_param",
        ):
            if len(node.args) > 1 and _whole(node.args[0]):
                key, default = node.args[1], node.args[2] if len(node.args) > 2 else None
        elif (
            isinstance(node, ast.Call)
            and base_name(node.func) == "get"
            and isinstance(node.func, ast.Attribute)
        ):
            if _whole(node.func.value) and node.args:
                key = node.args[0]
        elif isinstance(node, ast.Subscript) and _whole(node.value):
            key = node.slice
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In):
            other = node.comparators[0]
            other = (
                other.func.value
                if isinstance(other, ast.Call) and isinstance(other.func, ast.Attribute)
                else other
            )
            if _whole(other):
                key = node.left
        name = package.value(module, key)
        if isinstance(name, str):
            worth = package.value(module, default)
            known = found.get(name, {})
            found[name] = {"default": worth} if worth is not UNKNOWN and plain(worth) else known
    return found


def _whole(node: ast.expr) -> bool:
    return not isinstance(node, ast.Subscript) and base_name(node) in _PARAMETERS


# ── Stable-Baselines3 ──────────────────────────────────────────────────────────────────────────────────────
def arguments(shaper: Shaper, module: Module, name: str) -> Schema:
    """Return what a class is made with: the arguments of its ``__init__``."""
    properties: dict[str, Schema] = {}
    node = module.classes.get(name)
    for line in node.body if node is not None else ():
        if not isinstance(line, ast.FunctionDef) or line.name != "__init__":
            continue
        given = line.args
        defaults = [None] * (len(given.args) - len(given.defaults)) + list(given.defaults)
        for one, default in [
            *zip(given.args, defaults, strict=True),
            *zip(given.kwonlyargs, given.kw_defaults, strict=True),
        ]:
            schema = shaper.annotation(module, one.annotation)
            worth = shaper.package.value(module, default)
            properties[one.arg] = (
                {**schema, "default": worth} if plain(worth) and worth is not UNKNOWN else schema
            )
    return {"type": "object", "properties": properties}


def taken(package: Package, module: Module, mapping: str) -> set[str]:
    """Return the keys that a module's code takes out of the mapping of that name."""
    found = set()
    for node in ast.walk(module.tree):
        key: ast.expr | None = None
        if isinstance(node, ast.Subscript) and base_name(node.value) == mapping:
            key = node.slice
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In):
            other = node.comparators[0]
            called = isinstance(other, ast.Call) and isinstance(other.func, ast.Attribute)
            whole = other.func.value if called else other
            key = node.left if not isinstance(whole, ast.Subscript) and base_name(whole) == mapping else None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            key = node.args[0] if base_name(node.func.value) == mapping and node.args else None
        elif isinstance(node, ast.Call) and len(node.args) > 1 and base_name(node.args[0]) == mapping:
            key = node.args[1]
        name = package.value(module, key)
        found.update([name] if isinstance(name, str) else [])
    return found


# ── verl ───────────────────────────────────────────────────────────────────────────────────────────────────
def of_yaml(tree: Tree, path: str, depth: int = 0) -> Any:
    """Return a Hydra config with the groups of its defaults list put in their places."""
    text = tree.text(path)
    if text is None or depth > 6:
        return {}
    own = yaml.safe_load(text) or {}
    made: Any = {}
    for entry in own.pop("defaults", None) or ():
        if not isinstance(entry, dict):
            if entry != "_self_" and isinstance(entry, str):
                _put(
                    made,
                    [],
                    of_yaml(tree, posixpath.join(posixpath.dirname(path), f"{entry}.yaml"), depth + 1),
                )
            continue
        for key, name in entry.items():
            group, _, at = str(key).split()[-1].partition("@")
            folder = posixpath.normpath(posixpath.join(posixpath.dirname(path), group.lstrip("/")))
            if isinstance(name, str):
                inner = of_yaml(tree, f"{folder}/{name.removesuffix('.yaml')}.yaml", depth + 1)
                place = [] if at == "_here_" else (at or group.replace("/", ".")).split(".")
                _put(made, place, inner)
    _put(made, [], own)
    return made


def _put(into: Any, place: list[str], what: Any) -> None:
    for part in place:
        if not isinstance(into.get(part), dict):
            into[part] = {}
        into = into[part]
    for key, value in what.items() if isinstance(what, dict) else ():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _put(into[key], [], value)
        else:
            into[key] = value


def of_values(value: Any) -> Schema:
    """Return the keys of a mapping and their defaults; an empty one takes any key."""
    if not isinstance(value, dict):
        return {"default": value} if plain(value) and "${" not in str(value) else {}
    if not value:
        return {}
    inner = {str(key): of_values(one) for key, one in value.items()}
    return {"type": ["null", "object"], "properties": inner, "x-cfglint": {"unknown": "own"}}
