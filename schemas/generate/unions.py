"""Schemas put together: what takes all that one of several takes.

A schema is kept in a normal form, which `union` makes and cfglint's own judge relies on: one ``type`` list,
one ``enum``, one object, one array and one range at most, the alternatives side by side below ``anyOf``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

Schema = dict[str, Any]
BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
ORDER = ("null", "boolean", "integer", "number", "string", "array", "object")


def types_of(schema: Schema) -> list[str]:
    """Return the types that a schema names."""
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else list(types)


def union(schemas: Iterable[Schema]) -> Schema:
    """Return what takes all that one of ``schemas`` takes, in the normal form; in doubt, more."""
    flat: list[Schema] = []
    for schema in schemas:
        flat += schema.get("anyOf", [schema])
    if any(not schema.keys() - {"$comment", "default"} for schema in flat):
        return {}
    types: list[str] = []
    ranges: list[tuple[list[str], Schema]] = []
    enum: list[Any] = []
    named = False
    refs: list[str] = []
    items: list[Schema] = []
    maps: list[Schema] = []
    for schema in flat:
        own = types_of(schema)
        if "$ref" in schema:
            refs += schema["$ref"] if isinstance(schema["$ref"], list) else [schema["$ref"]]
            continue
        if "enum" in schema:
            enum += [value for value in schema["enum"] if value not in enum]
            named = named or "x-cfglint" in schema
        numbers = [kind for kind in own if kind in ("integer", "number")]
        if numbers:
            ranges.append((numbers, {key: schema[key] for key in BOUNDS if key in schema}))
        if "array" in own:
            items.append(schema.get("items", {}))
        if "object" in own:
            maps.append(
                {k: schema[k] for k in ("properties", "additionalProperties", "x-cfglint") if k in schema}
            )
        types += [kind for kind in own if kind in ("null", "boolean", "string")]
    limits = _looser([limit for _, limit in ranges])
    if ranges:
        types += ["number"] if any("number" in kinds for kinds, _ in ranges) else ["integer"]
    made: Schema = {}
    if items:
        types.append("array")
        if all(items):
            made["items"] = union(items)
    if maps and not refs:
        types.append("object")
        made |= _merged_maps(maps)
    enum = [value for value in enum if not _taken(value, types)]
    types = sorted(dict.fromkeys(types), key=ORDER.index)
    if refs and maps and any(m.get("additionalProperties") is not False for m in maps):
        refs, types = [], sorted({*types, "object"}, key=ORDER.index)
    parts: list[Schema] = []
    if enum and set(types) <= {"null"}:
        enum += [None] * ("null" in types and None not in enum)
        types = []
    if types:
        parts.append({"type": types[0] if len(types) == 1 else types, **made, **limits})
    if enum:
        parts.append({"enum": enum, **({"x-cfglint": {"values": "named"}} if named else {})})
    if refs:
        parts.append({"$ref": refs[0] if len(set(refs)) == 1 else sorted(set(refs))})
    return parts[0] if len(parts) == 1 else {"anyOf": parts}


def _taken(value: Any, types: list[str]) -> bool:
    kind = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}[type(value)]
    return kind in types or (kind == "integer" and "number" in types)


def _looser(limits: list[Schema]) -> Schema:
    """Return the range that holds all the ranges."""
    found: Schema = {}
    for loose, strict, take in (("minimum", "exclusiveMinimum", min), ("maximum", "exclusiveMaximum", max)):
        ends = [(one[key], key) for one in limits for key in (loose, strict) if key in one]
        if limits and len(ends) == len(limits):
            end = take(value for value, _ in ends)
            found[loose if (end, loose) in ends else strict] = end
    return found


def _merged_maps(maps: list[Schema]) -> Schema:
    if len(maps) == 1:
        return maps[0]
    made: Schema = {}
    properties: dict[str, list[Schema]] = {}
    for one in maps:
        for name, schema in one.get("properties", {}).items():
            properties.setdefault(name, []).append(schema)
    if properties:
        made["properties"] = {name: merged(found) for name, found in properties.items()}
    extras = [one.get("additionalProperties", True) for one in maps]
    if all(extra is False for extra in extras):
        made["additionalProperties"] = False
    elif all(isinstance(extra, dict) for extra in extras) and not properties:
        made["additionalProperties"] = union(extras)
    marks = [one["x-cfglint"] for one in maps if "x-cfglint" in one]
    if marks and len(marks) == len(maps):
        made["x-cfglint"] = marks[0]
    return made


def merged(schemas: list[Schema], *, newest: bool = True) -> Schema:
    """Return the union with the last one's default: the ``newest``'s, or the one that all have."""
    made = dict(union({k: v for k, v in s.items() if k not in ("default", "$comment")} for s in schemas))
    one = newest or all(schema.get("default") == schemas[-1].get("default") for schema in schemas)
    if "default" in schemas[-1] and one:
        made["default"] = schemas[-1]["default"]
    if any(schema.get("deprecated") for schema in schemas):
        made["deprecated"] = True
    return made
