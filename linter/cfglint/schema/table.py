"""A framework's JSON Schema as a compact table: parsed once, kept by the cache, small enough for a clean run.

A node stands for what one value may be: (kinds, members, limits, keys, others, item, mark).

kinds    bits of the kinds of values that it takes
members  values that it takes besides, or None; a truth is never a number here
limits   (least, greatest, above, below) of its numbers, or None
keys     the number of a node for each key of a mapping, or None where no key is named
others   the node of all other keys; ANY or NONE
item     the node of a list's items, or ANY
mark     what becomes of an unknown key: refused, ignored; or none of the framework's, but perhaps of the
         job's own class (subclass), of its own code (own), of another version (versions); "named" where other
         members may work. A section is refused unless a class of the job's own takes its place (section)
"""

from __future__ import annotations

import os

from cfglint import files
from cfglint.cache import cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    Limits: TypeAlias = tuple[float | None, float | None, float | None, float | None]
    Node: TypeAlias = tuple[
        int, tuple[object, ...] | None, Limits | None, Mapping[str, int] | None, int, int, str
    ]
    # the nodes (the first is the root), the loader, the programs of launch scripts that take these keys, and
    # the keys whose value, like a pattern (unlike, behind a "!"), means that other classes' keys may be there
    Table: TypeAlias = tuple[tuple[Node, ...], str, tuple[str, ...], tuple[tuple[str, str], ...]]

NULL, BOOL, INT, FLOAT, TEXT, LIST, MAP = (1 << i for i in range(7))
NUMBER = INT | FLOAT
EVERYTHING = 127
ANY, NONE = -1, -2

_tables: dict[str, Table | None] = {}


def path_of(name: str) -> str:
    """Return where the schema of a framework would be."""
    return os.path.join(files.shipped_folder("schemas"), "frameworks", f"{name}.schema.json")


def table(name: str) -> Table | None:
    """Return a framework's table; None where no schema is shipped for it."""
    if name not in _tables:
        _tables[name] = _loaded(name)
    return _tables[name]


def typed(found: Table, path: tuple[str | int, ...]) -> bool:
    """Whether a table says of which kind the value of a key is; of an unknown key it says nothing."""
    nodes = found[0]
    node = nodes[0]
    for part in path:
        item = isinstance(part, int) or part == "*"
        number = node[5] if item else (node[3] or {}).get(str(part), node[4])
        if number < 0:
            return False
        node = nodes[number]
    return node[0] != EVERYTHING


def _loaded(name: str) -> Table | None:
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

        from cfglint.schema.compile import compiled

        return compiled(json.loads(files.shipped_text(path)))

    return cached(f"schema-{name}", {path: key}, build)  # type: ignore[return-value]
