"""Which keys came after the first of a framework's versions, or went before the last, and with which one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from unions import Schema

_RELEASE = re.compile(r"v?(\d+(?:\.\d+)+)")


def dates(versions: Sequence[tuple[str, Collection[str]]]) -> dict[str, dict[str, list[str]]]:
    """Return the keys by the release that each came ``since``, and those that are gone by their last.

    What came after a release is said as "1.0.4+". What came or went with what holds it is left out. Nothing
    where no version is a release.
    """
    first, last = {}, {}
    release = ""
    for name, keys in versions:
        number = _RELEASE.match(name)
        if number is None and not release:
            return {}
        release = number[1] if number is not None else f"{release.rstrip('+')}+"
        for key in keys:
            first.setdefault(key, release)
            last[key] = release
    oldest = next(iter(first.values()), "")
    return {"x-since": _by_release(first, oldest), "x-until": _by_release(last, release)}


def _by_release(told: Mapping[str, str], usual: str) -> dict[str, list[str]]:
    """Return the keys by release, but for those of the ``usual`` one, and of that of what holds them."""
    made: dict[str, list[str]] = {}
    for key, release in sorted(told.items()):
        if release not in (usual, told.get(key.rpartition(".")[0])):
            made.setdefault(release, []).append(key)
    return {release: made[release] for release in dict.fromkeys(told.values()) if release in made}


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
