"""Which releases of a framework may read a file, by the keys that it has."""

from __future__ import annotations

import re

from cfglint.document.tree import Mapping
from cfglint.schema.table import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from cfglint.document.view import View

    Release: TypeAlias = tuple[float, ...]

_SIGNED = re.compile(r"""["']?\+{1,2}([A-Za-z_][\w.]*)=""")  # an override of what Hydra's config may lack
_DEEPEST = 12
_ANY: tuple[Release, Release | None] = (), None


def told_by_keys(framework: str | None, view: View) -> tuple[Release, Release | None]:
    """Return the release that the youngest key came with, and the last one that has all keys.

    Nothing where all keys are as old as the schema, and where none is gone. A fork may have both.
    """
    known = None if framework is None else table(framework)
    if known is None or not known.since or view.root.__class__ is not Mapping:
        return _ANY
    name = f"told by keys of {framework}"
    told: tuple[Release, Release | None] | None = view.memo.get(name)
    if told is None:
        keys = [key for key in _keys(view.root, "", 0) if key in known.since or key in known.until]
        if keys:
            signed = {found[1] for word in view.document.words if (found := _SIGNED.match(word.spelled))}
            keys = [key for key in keys if key not in signed]
        least = max((known.since[key] for key in keys if key in known.since), default=())
        gone = [known.until[key] for key in keys if key in known.until]
        if view.document.format != "shell" and known.nodes[0][6] == "own":  # a file may add to a base
            gone = []
        told = view.memo[name] = least, min(gone) if gone and least <= min(gone) else None
    return told


def _keys(mapping: Mapping, above: str, depth: int) -> Iterator[str]:
    for name, entry in mapping.entries.items():
        key = f"{above}{name}"
        yield key
        if entry.value.__class__ is Mapping and depth < _DEEPEST:
            yield from _keys(entry.value, f"{key}.", depth + 1)
