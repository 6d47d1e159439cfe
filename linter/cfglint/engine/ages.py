"""How old the reader of a document may be, where nobody says which version of its framework that is.

A file's own keys tell that it is no older than the youngest of them.
"""

from __future__ import annotations

import re

from cfglint.document.tree import split_key
from cfglint.engine.judge import values_for
from cfglint.record import Value, replace
from cfglint.schema.table import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cfglint.document.tree import Path
    from cfglint.engine.subject import Judged, Subject
    from cfglint.lang.pack import CompiledRule

_FILLED = "transformers"
_SIGNED = re.compile(r"""["']?\+{1,2}([A-Za-z_][\w.]*)=""")  # an override of what Hydra's config may lack


class Came(Value):
    """The release of a package that a key came with; ``surely``: what reads the key is older."""

    release: tuple[float, ...]
    package: str
    surely: bool


def came(subject: Subject, path: Path) -> Came | None:
    """Return what a key came with, where its reader is older or may be.

    None where the reader has it. What a copy of the framework beside the file has, the copy itself tells.
    """
    known, version = subject.framework and table(subject.framework), subject.version
    name = subject.framework or ""
    if known is None and subject.is_launch:  # a program of one's own that fills transformers' arguments
        name, known = _FILLED, table(_FILLED)
        stated: Any = subject.stated.get(f"{_FILLED}.version", (None, ""))
        version = stated[0]
    release = known.came(path) if known else None
    if release is None or (version is None and subject.version_source):
        return None
    newer = release > (version or told_by_keys(subject, name))
    return Came(release, name, surely=version is not None) if newer else None


def told_by_keys(subject: Subject, name: str) -> tuple[float, ...]:
    """Return the release of a package that a document's youngest key came with; nothing of old keys alone."""
    view, known = subject.view, table(name)
    told: tuple[float, ...] | None = view.memo.get("told by keys")
    if told is None:
        signed = {found[1] for word in view.document.words if (found := _SIGNED.match(word.spelled))}
        releases = {} if known is None else known.since
        there = (each for key, each in releases.items() if key not in signed and view.has((*split_key(key),)))
        told = view.memo["told by keys"] = max(there, default=())
    return told


def older(judged: Judged) -> list[tuple[float, ...]]:
    """Return the releases that may read a document beside the one that was taken, the newest first."""
    subject = judged.subject
    known = None if subject.framework is None else table(subject.framework)
    if known is None or not known.since or subject.version is not None or subject.version_source:
        return []  # what reads it is known, or nothing tells how old it may be
    least = max(
        told_by_keys(subject, subject.framework or ""),
        subject.pack.frameworks[subject.framework or ""]["checked"],
    )
    between = {release for release in known.since.values() if least <= release < judged.values.version}
    return sorted({least, *between} - {judged.values.version, ()}, reverse=True)


def spares(rule: CompiledRule, judged: Judged) -> tuple[float, ...] | None:
    """Return the newest release that may read a document and that a broken rule may hold of."""
    for version in older(judged):
        if not rule.covers(judged.subject.framework, version):
            continue
        subject = replace(judged.subject, version=version)
        if rule.test(values_for(subject, judged.values.given)) is not False:
            return version
    return None
