"""From the schemas of a framework's versions to one: a key of any version is known, and says of which."""

from __future__ import annotations

from typing import Any

from unions import Schema, merged

Defs = dict[str, Schema]


def one_of(versions: list[tuple[str, Defs]], root: str) -> tuple[Schema, Defs]:
    """Return the root object and the definitions over all versions, the oldest first."""
    made: Defs = {}
    for name in dict.fromkeys(name for _, defs in versions for name in defs):
        made[name] = _over_versions([(version, defs[name]) for version, defs in versions if name in defs])
    _join_references(made)
    kept: Defs = {}
    _reach(made, made[root], kept)
    return made[root], {name: kept[name] for name in sorted(kept) if name != root}


def _over_versions(found: list[tuple[str, Schema]]) -> Schema:
    newest = found[-1][1]
    made = {k: v for k, v in newest.items() if k != "properties"}
    if any("additionalProperties" not in schema for _, schema in found):
        made.pop("additionalProperties", None)
    names = dict.fromkeys(name for _, schema in reversed(found) for name in schema.get("properties", {}))
    properties: dict[str, Schema] = {}
    for name in names:
        where = [(version, s["properties"][name]) for version, s in found if name in s.get("properties", {})]
        schema = merged([schema for _, schema in where])
        note = _note([version for version, _ in found], [version for version, _ in where])
        properties[name] = {**schema, "$comment": note} if note else schema
    if properties:
        made["properties"] = properties
    return made


def _note(all_of_them: list[str], where: list[str]) -> str:
    if len(where) == len(all_of_them):
        return ""
    notes = []
    if where[0] != all_of_them[0]:
        notes.append(f"since {where[0]}")
    if where[-1] != all_of_them[-1]:
        notes.append(f"until {where[-1]}")
    return ", ".join(notes)


def _join_references(made: Defs) -> None:
    """Replace a choice between several classes by one that has the keys of all."""
    waiting: list[Any] = list(made.values())
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            refs = node.get("$ref")
            if isinstance(refs, list):
                names = [ref.rpartition("/")[2] for ref in refs]
                name = "_or_".join(names)
                if name not in made:
                    parts = [made[n] for n in names]
                    properties: dict[str, list[Schema]] = {}
                    for part in parts:
                        for key, schema in part.get("properties", {}).items():
                            properties.setdefault(key, []).append(schema)
                    joined: Schema = {"type": "object"}
                    joined["properties"] = {key: _kept(found) for key, found in properties.items()}
                    if all("additionalProperties" in part for part in parts):
                        joined["additionalProperties"] = False
                    marks = [part["x-cfglint"] for part in parts if "x-cfglint" in part]
                    if marks:
                        joined["x-cfglint"] = marks[0]
                    made[name] = joined
                    waiting.append(joined)
                node["$ref"] = f"#/$defs/{name}"
            waiting += list(node.values())


def _kept(found: list[Schema]) -> Schema:
    schema = merged(found)
    notes = {one.get("$comment", "") for one in found}
    return {**schema, "$comment": notes.pop()} if len(notes) == 1 and notes != {""} else schema


def _reach(made: Defs, node: Any, kept: Defs) -> None:
    if isinstance(node, list):
        for item in node:
            _reach(made, item, kept)
    elif isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str):
            name = reference.rpartition("/")[2]
            if name not in kept:
                kept[name] = made[name]
                _reach(made, made[name], kept)
        for item in node.values():
            _reach(made, item, kept)
