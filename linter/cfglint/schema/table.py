"""A framework's JSON Schema as a compact table, and what does not fit it; small for a clean run.

The table is compiled once, then from the cache.

A node stands for what one value may be: (kinds, members, limits, keys, others, item, mark).

kinds    bits of the kinds of values that it takes
members  values that it takes besides, or None; a truth is never a number here
limits   (least, greatest, above, below) of its numbers, or None
keys     the number of a node for each key of a mapping, or None where no key is named
others   the node of all other keys; ANY or NONE
item     the node of a list's items, or ANY
mark     what becomes of an unknown key: refused, ignored; or none of the framework's, but perhaps of the
         job's own class (subclass; newer, where older versions ignore it), of its own code (own), of another
         version (versions); "named" where other members may work. A section is refused unless a class of
         the job's own takes its place (section)
"""

from __future__ import annotations

import os
from functools import cache

from cfglint import files
from cfglint.cache import cached
from cfglint.record import Record, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    from cfglint.document.tree import Path

    Limits: TypeAlias = tuple[float | None, float | None, float | None, float | None]
    Node: TypeAlias = tuple[
        int, tuple[object, ...] | None, Limits | None, Mapping[str, int] | None, int, int, str
    ]

NULL, BOOL, INT, FLOAT, TEXT, LIST, MAP = (1 << i for i in range(7))
NUMBER = INT | FLOAT
EVERYTHING = 127
ANY, NONE = -1, -2

_KINDS = {
    "null": NULL, "boolean": BOOL, "integer": INT, "number": NUMBER, "string": TEXT, "array": LIST,
    "object": MAP,
}  # fmt: skip
KIND = {bool: BOOL, int: INT, float: FLOAT, str: TEXT, type(None): NULL}  # of a plain value
_LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_READ = {"type", "enum", "properties", "additionalProperties", "items", "anyOf", "$ref", "x-cfglint"}
_NOTES = {"$schema", "$comment", "$defs", "title", "default", "deprecated", "x-since", "x-until"}
_EVERY: Node = (EVERYTHING, None, None, None, ANY, ANY, "")


class Table(Value):
    """The nodes of a schema, the first of which is the root, and how its framework reads values.

    ``programs`` are those of launch scripts that take these keys. ``unless`` are keys whose value, like a
    pattern (unlike, after a "!"), means that other classes' keys may be there. People change the code of
    what is ``forked`` for their projects, so an unknown key may be theirs; a library's keys are fixed.
    ``since`` has the releases that keys came with, by the dotted key; what lies below one came with it, or
    later, as it says itself, and what is not there came with the first version that the schema was read from.
    ``until`` has the last releases of keys that are gone.
    """

    nodes: tuple[Node, ...]
    loader: str
    programs: tuple[str, ...]
    unless: tuple[tuple[str, str], ...]
    forked: bool
    since: Mapping[str, tuple[float, ...]]
    until: Mapping[str, tuple[float, ...]]

    def came(self, path: Path) -> tuple[float, ...] | None:
        """Return the release that a key came with; None of the oldest keys, and of those that are unknown."""
        names = (".".join(map(str, path[:i])) for i in range(len(path), 0, -1))
        return next((self.since[name] for name in names if name in self.since), None)

    def at(self, path: Path) -> Node | None:
        """Return what the value of a key may be; None where the schema does not know the key."""
        node = self.nodes[0]
        for part in path:
            key = isinstance(part, str) and part != "*"
            number = (node[3] or {}).get(part, node[4]) if key else node[5]  # type: ignore[arg-type]
            if number < 0:
                return None
            node = self.nodes[number]
        return node


class Problem(Record):
    """What is wrong at ``path``: an unknown ``key``, an unfit ``kind``, or a ``value`` that cannot be."""

    what: str
    path: Path
    node: Node
    value: object = None


class Mistake(Record):
    """A mistake in the file, in the shape of the document's own defects."""

    note: str
    start: int
    end: int
    key: str = ""
    text: str = ""
    kind: str = ""
    problem: Problem | None = None  # what the judge found
    related: None = None
    missing: tuple[Any, ...] = ()  # keys that a program reads and nobody sets (engine/halt.py)


def path_of(name: str) -> str:
    """Return where the schema of a framework would be."""
    return os.path.join(files.shipped_folder("schemas"), "frameworks", f"{name}.schema.json")


@cache
def table(name: str) -> Table | None:
    """Return a framework's table; None where no schema is shipped for it."""
    path = path_of(name)
    try:
        key = files.stamp(path)
    except (OSError, ValueError):
        try:
            key = files.shipped_text(path)  # inside a zip
        except (OSError, ValueError):
            return None

    def build() -> object:
        import json

        table = compiled(json.loads(files.shipped_text(path)))
        return (
            table.nodes, table.loader, table.programs, table.unless, table.forked, table.since, table.until,
        )  # fmt: skip

    return Table(*cached(f"schema-{name}", {path: key}, build))  # type: ignore[misc]


def typed(framework: str, path: tuple[str | int, ...]) -> bool:
    """Whether a framework's schema says of which kind a key's value is; of an unknown key it says nothing."""
    node = None if (schema := table(framework)) is None else schema.at(path)
    return node is not None and node[0] != EVERYTHING


# ── compiling, where the cache has no table ────────────────────────────────────────────────────────────────
def compiled(schema: Mapping[str, Any]) -> Table:
    """Return the table of a schema; ValueError where it says what the table has no place for."""
    marks = schema.get("x-cfglint", {})
    compiler = _Compiler(schema.get("$defs", {}))
    compiler.nodes.append(_EVERY)  # the root's place
    compiler.nodes[0] = compiler.nodes[compiler.node(schema)]
    unless = tuple((key, pattern) for key, pattern in marks.get("unless", ()))
    programs, forked = tuple(marks.get("programs", ())), marks.get("forked", False)
    since, until = _releases(schema, "x-since"), _releases(schema, "x-until")
    return Table(tuple(compiler.nodes), marks.get("loader", ""), programs, unless, forked, since, until)


def _releases(schema: Mapping[str, Any], mark: str) -> dict[str, tuple[float, ...]]:
    return {key: _release(name) for name, keys in schema.get(mark, {}).items() for key in keys}


def _release(text: str) -> tuple[float, ...]:
    """Return the version "0.4.0" as rules compare it, or what was developed after it: "0.4.0+"."""
    numbers = tuple(int(part) for part in text.removesuffix("+").split("."))
    while numbers and numbers[-1] == 0 and not text.endswith("+"):
        numbers = numbers[:-1]
    return (*numbers, float("inf")) if text.endswith("+") else numbers


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
        strange = set(schema) - _READ - _NOTES - {*_LIMITS}
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
        types = schema.get("type", list(_KINDS))
        kinds = 0
        for kind in [types] if isinstance(types, str) else types:
            kinds |= _KINDS[kind]
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
