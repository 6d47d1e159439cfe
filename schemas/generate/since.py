"""Which keys came after the first of a framework's versions, and with which one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from unions import Schema

_RELEASE = re.compile(r"v?(\d+(?:\.\d+)+)")


def since(versions: Sequence[tuple[str, Collection[str]]]) -> dict[str, list[str]]:
    """Return the keys by the release that each came with, but for those that came with what holds them.

    What came after a release is said as "1.0.4+". Nothing where no version is a release.
    """
    found: dict[str, str] = {}
    release = first = ""
    for name, keys in versions:
        number = _RELEASE.match(name)
        if number is None and not release:
            return {}
        release = number[1] if number is not None else f"{release.rstrip('+')}+"
        first = first or release
        for key in keys:
            found.setdefault(key, release)
    made: dict[str, list[str]] = {}
    for key, came in sorted(found.items()):
        holder = key.rpartition(".")[0]
        if came not in (first, found.get(holder)):
            made.setdefault(came, []).append(key)
    return {came: made[came] for came in dict.fromkeys(found.values()) if came in made}


def keys_of(schema: Schema, defs: Mapping[str, Schema], above: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the keys that a schema names, with those of the sections that hold them."""
    name = schema.get("$ref", "")
    if name in above:
        return
    above = (*above, name) if name else above
    for part in schema.get("anyOf", [defs[name.rpartition("/")[2]] if name else schema]):
        if part is not schema:
            yield from keys_of(part, defs, above)
            continue
        for key, inner in part.get("properties", {}).items():
            yield key
            yield from (f"{key}.{below}" for below in keys_of(inner, defs, above))
