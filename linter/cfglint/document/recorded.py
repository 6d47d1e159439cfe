"""Whether a file with names of settings starts nothing: what a run left behind, and what explains them."""

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
_PROSE = re.compile(r"(?s)(?=.{20})(?:[^\n]*\s\S+){3}|.*[\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3].*")
_TEXTS = 4  # of them, more than half of all, make a file one of words about settings


def is_recorded(root: Node | None) -> bool:
    """Whether a document starts nothing: a tracker's, one with what was measured, or texts about settings."""
    if not isinstance(root, Mapping):
        return False
    if not _LOGGED.isdisjoint(root.entries) or _explains(root):
        return True
    return any(_measures(one) for one in (root, *_within(root)))


def _explains(root: Mapping) -> bool:
    """Whether most values are sentences, as where an interface explains its fields."""
    texts = [entry.value.text for entry in root.entries.values() if isinstance(entry.value, Scalar)]
    told = sum(1 for text in texts if _PROSE.match(text[:200]))
    return told >= _TEXTS and 2 * told > len(root.entries)


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
