"""Which names a rule rests on, and where the file has what they are read from."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cfglint.document.trace import Trace
    from cfglint.engine.describe import Origins
    from cfglint.facts import Steps
    from cfglint.lang import tree as t


def names_of(rule: t.Rule, origins: Origins) -> Iterator[str]:
    """Yield the names that a rule rests on, and the leaves of each."""
    named = dict.fromkeys((*origins.names_in(rule.requirement), *origins.names_in(rule.condition)))
    return origins.with_leaves(named)


def paths_of(names: Iterable[str], origins: Origins) -> Iterator[Steps]:
    """Yield the paths that names and their leaves are read from."""
    for leaf in origins.with_leaves(names):
        yield from origins.of(leaf).paths


def traces(paths: Iterable[Steps], origins: Origins) -> Iterator[Trace]:
    """Yield how paths are reached, but for those that no file can have."""
    for path in paths:
        trace = origins.trace(path)
        if trace is not None:
            yield trace
