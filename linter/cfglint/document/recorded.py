"""Whether a file is what a run left behind: settings beside what was measured. It starts nothing."""

from __future__ import annotations

import re

from cfglint.document.tree import Mapping, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.document.tree import Node

_LOGGED = frozenset(("_wandb", "wandb_version"))  # of what Weights & Biases keeps of a run
# Rates and times that somebody measured: no trainer or server is told them.
_MEASURED = re.compile(
    r"(?i)(?:\w+_)?(?:(?:samples|tokens|requests|steps|tok|req|it)_?(?:per_s(?:ec(?:ond)?)?|_?/_?s)|throughput"
    r"|(?:wall|elapsed|run)_?(?:time|s(?:ec(?:onds)?)?)|latency|elapsed)(?:_(?:m?s|sec|seconds|tok\w*))?"
)
_NUMBER = re.compile(r"-?\d+\.\d{2,}(?:[eE][-+]?\d+)?")
_FEW = 3  # of a list's entries that are looked at


def is_recorded(root: Node | None) -> bool:
    """Whether a document is a record of a run: a tracker's, or one with what was measured."""
    if not isinstance(root, Mapping):
        return False
    if not _LOGGED.isdisjoint(root.entries):
        return True
    return any(_measures(one) for one in (root, *_within(root)))


def _within(root: Mapping) -> Iterator[Mapping]:
    for entry in root.entries.values():
        items = entry.value.items[:_FEW] if isinstance(entry.value, Sequence) else [entry.value]
        yield from (item for item in items if isinstance(item, Mapping))


def _measures(mapping: Mapping) -> bool:
    return any(
        isinstance(entry.value, Scalar) and bool(_NUMBER.fullmatch(entry.value.text))
        for key, entry in mapping.entries.items()
        if _MEASURED.fullmatch(key)
    )
