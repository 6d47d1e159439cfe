"""Compiles a framework's JSON Schema into its table (see table.py); only where the cache has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.schema.table import ANY, BOOL, EVERYTHING, INT, LIST, MAP, NONE, NULL, NUMBER, TEXT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cfglint.schema.table import Limits, Node, Table

KINDS = {
    "null": NULL,
    "boolean": BOOL,
    "integer": INT,
    "number": NUMBER,
    "string": TEXT,
    "array": LIST,
    "object": MAP,
}
_LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_READ = {
    "type",
    "enum",
    "properties",
    "additionalProperties",
    "items",
    "anyOf",
    "$ref",
    "x-cfglint",
    *_LIMITS,
}
_NOTES = {"$schema", "$comment", "$defs", "title", "default", "deprecated"}


def compiled(schema: Mapping[str, Any]) -> Table:
    """Return the table of a schema; ValueError where it says what the table has no place for."""
    marks = schema.get("x-cfglint", {})
    compiler = _Compiler(schema.get("$defs", {}))
    compiler.nodes.append(_EVERY)  # the root's place
    compiler.nodes[0] = compiler.nodes[compiler.node(schema)]
    unless = tuple((key, pattern) for key, pattern in marks.get("unless", ()))
    return tuple(compiler.nodes), marks.get("loader", ""), tuple(marks.get("programs", ())), unless


_EVERY: Node = (EVERYTHING, None, None, None, ANY, ANY, "")


class _Compiler:
    """Nodes that say the same are one; a definition that holds itself is a number before it is a node."""

    def __init__(self, defs: Mapping[str, Any]) -> None:
        self.defs = defs
        self.nodes: list[Node] = []
        self._numbers: dict[str, int] = {}
        self._named: dict[str, int] = {}

    def node(self, schema: Mapping[str, Any]) -> int:
        """Return the number of the node for a schema."""
        reference = schema.get("$ref")
        if reference is not None:
            return self._referred(reference)
        made = self._made(schema)
        key = repr(made)
        if key not in self._numbers:
            self._numbers[key] = len(self.nodes)
            self.nodes.append(made)
        return self._numbers[key]

    def _referred(self, reference: str) -> int:
        name = reference.removeprefix("#/$defs/")
        if name not in self._named:
            number = self._named[name] = len(self.nodes)
            self.nodes.append(_EVERY)
            self.nodes[number] = self._made(self.defs[name])
        return self._named[name]

    def _made(self, schema: Mapping[str, Any]) -> Node:
        strange = set(schema) - _READ - _NOTES
        if strange:
            raise ValueError(f"a framework's schema does not say {', '.join(sorted(strange))}")
        parts = [self._whole(part) for part in schema.get("anyOf", [schema])]
        if len(parts) == 1:
            return parts[0]
        kinds, limits = 0, None
        members: list[object] = []
        keys, others, item, mark = None, ANY, ANY, ""
        for part in parts:
            if (kinds & part[0] & (NUMBER | LIST | MAP)) or not (part[0] or part[1]):
                raise ValueError("alternatives of one schema have no kind in common")
            kinds |= part[0]
            members += part[1] or ()
            limits = part[2] or limits
            if part[0] & MAP:
                keys, others = part[3], part[4]
            if part[0] & LIST:
                item = part[5]
            mark = part[6] or mark
        if limits is not None and any(type(member) in (int, float) for member in members):
            raise ValueError("numbers are listed or have limits")
        return kinds, tuple(members) or None, limits, keys, others, item, mark

    def _whole(self, schema: Mapping[str, Any]) -> Node:
        """Return one alternative."""
        if "$ref" in schema:
            return self._made(self.defs[schema["$ref"].removeprefix("#/$defs/")])
        marks = schema.get("x-cfglint", {})
        if "enum" in schema:
            return 0, tuple(schema["enum"]), None, None, ANY, ANY, marks.get("values", "")
        types = schema.get("type", list(KINDS))
        kinds = 0
        for kind in [types] if isinstance(types, str) else types:
            kinds |= KINDS[kind]
        limits = tuple(schema.get(key) for key in _LIMITS)
        found: Limits | None = limits if any(limit is not None for limit in limits) else None  # type: ignore[assignment]
        keys, others, item, mark = None, ANY, ANY, ""
        if kinds & MAP:
            if "properties" in schema:
                keys = {name: self.node(inner) for name, inner in schema["properties"].items()}
            extra = schema.get("additionalProperties", True)
            if isinstance(extra, dict):
                others = self.node(extra) if extra else ANY
            elif not extra:
                others = NONE
            mark = marks.get("unknown", "refused" if others == NONE else "")
        if kinds & LIST and schema.get("items"):
            item = self.node(schema["items"])
        return kinds, None, found, keys, others, item, mark
