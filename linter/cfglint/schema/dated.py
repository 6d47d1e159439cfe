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
    from cfglint.schema.table import Table

    Release: TypeAlias = tuple[float, ...]

# Overrides of what Hydra's config may lack. With one sign it stops at a key that is there
# (hydra/_internal/config_loader_impl.py of 1.3: "Could not append to config").
_SIGNED = re.compile(r"""["']?(\+{1,2})([A-Za-z_][\w.]*)=""")
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
        signed = (_SIGNED.match(word.spelled) for word in view.document.words)
        signs = {each[2]: each[1] for each in signed if each is not None}
        own = [key for key in _keys(view.root, "", 0) if key not in signs]
        least = max((known.since[key] for key in own if key in known.since), default=())
        gone = [known.until[key] for key in own if key in known.until]
        gone += [_before(key, known) for key, sign in signs.items() if sign == "+" and _stays(key, known)]
        alone = view.document.format == "shell" and view.layers is None
        if known.nodes[0][6] == "own" and (view.document.vendored or not alone):
            gone = []  # a file may add to a base, and one of the project's own has what it has
        told = view.memo[name] = least, min(gone) if gone and least <= min(gone) else None
    return told


def last_told(framework: str | None, view: View) -> Release | None:
    """Return the last release that has all keys of a file; None where none is gone."""
    known = None if framework is None else table(framework)
    return told_by_keys(framework, view)[1] if known is not None and known.until else None


def _stays(key: str, known: Table) -> bool:
    """Whether all releases have a key, from the one on that it came with."""
    return key not in known.until and (key in known.since or known.at(tuple(key.split("."))) is not None)


def _before(key: str, known: Table) -> Release:
    """Return a release that lacks a key, such as v0.2 where v0.3 brought it, and v0.4 where v0.4.1 did."""
    release = known.since.get(key) or min(known.since.values())
    return (*release[:-1], release[-1] - 1) if release[-1] > 0 else release[:-1]


def _keys(mapping: Mapping, above: str, depth: int) -> Iterator[str]:
    for name, entry in mapping.entries.items():
        key = f"{above}{name}"
        yield key
        if entry.value.__class__ is Mapping and depth < _DEEPEST:
            yield from _keys(entry.value, f"{key}.", depth + 1)
