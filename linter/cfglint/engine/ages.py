"""How old the reader of a document may be, where nobody says which version of its framework that is."""

from __future__ import annotations

from cfglint.engine.judge import values_for
from cfglint.record import Value, replace
from cfglint.schema.dated import told_by_keys
from cfglint.schema.table import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cfglint.document.tree import Path
    from cfglint.engine.subject import Judged, Subject
    from cfglint.lang.pack import CompiledRule

_FILLED = "transformers"


class Came(Value):
    """The release of a package that a key came with; ``surely``: what reads the key is older."""

    release: tuple[float, ...]
    package: str
    surely: bool


def came(subject: Subject, path: Path) -> Came | None:
    """Return what a key came with, where its reader is older or may be.

    None where the reader has it. What a copy of the framework beside the file has, the copy itself tells.
    """
    name, version = subject.framework or "", subject.version
    known = table(name)
    if (
        known is None and subject.is_launch and subject.pack.frameworks[name]["last"]
    ):  # a program of one's own
        name, known = _FILLED, table(_FILLED)
        stated: Any = subject.stated.get(f"{_FILLED}.version", (None, ""))
        version = stated[0]
    release = known.came(path) if known else None
    if release is None or (version is None and subject.version_source):
        return None
    least, most = (version, version) if version is not None else told_by_keys(name, subject.view)
    return Came(release, name, surely=most is not None and most < release) if release > least else None


def older(judged: Judged) -> list[tuple[float, ...]]:
    """Return the releases that may read a document beside the one that was taken, the newest first.

    Nothing where no key that is gone tells that it was written for an older one: people install the newest.
    """
    subject = judged.subject
    known = None if subject.framework is None else table(subject.framework)
    if known is None or not known.since or subject.version is not None or subject.version_source:
        return []  # what reads it is known, or nothing tells how old it may be
    first, last = told_by_keys(subject.framework, subject.view)
    if last is None:
        return []
    least = max(first, subject.pack.frameworks[subject.framework or ""]["checked"])
    between = {release for release in known.since.values() if least <= release < judged.values.version}
    return sorted({least, *between} - {judged.values.version, ()}, reverse=True)


def is_told_older(judged: Judged) -> bool:
    """Whether a document is for an older release, so that the newest that may read it is one of several."""
    known = None if judged.subject.framework is None else table(judged.subject.framework)
    return known is not None and judged.values.version < max(known.since.values(), default=())


def spares(rule: CompiledRule, judged: Judged) -> tuple[float, ...] | None:
    """Return the newest release that may read a document and that a broken rule may hold of."""
    for version in older(judged):
        if not rule.covers(judged.subject.framework, version):
            continue
        subject = replace(judged.subject, version=version)
        if rule.test(values_for(subject, judged.values.given)) is not False:
            return version
    return None
