"""What a framework's blocks say, found out once for all files; a user's own block stands first, and wins."""

from __future__ import annotations

from cfglint.document.tree import dotted
from cfglint.lang import tree as t
from cfglint.record import remembered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from cfglint.facts import Steps
    from cfglint.lang.symbols import Symbols

    Blocks: TypeAlias = Sequence[t.Framework]


def blocks_of(symbols: Symbols, framework: str | None) -> Blocks:
    """Return the blocks of a framework."""
    return symbols.frameworks.get(framework or "", ())


def _entries(blocks: Blocks, kind: type[Any]) -> Iterator[Any]:
    return (entry for block in blocks for entry in block.entries if isinstance(entry, kind))


def _by_name(blocks: Blocks, kind: type[Any]) -> dict[str, list[Any]]:
    named: dict[str, list[Any]] = {}
    for entry in _entries(blocks, kind):
        named.setdefault(entry.name, []).append(entry)
    return named


@remembered
def bindings_in(blocks: Blocks) -> Mapping[str, list[t.Binding]]:
    """Return what reads each fact."""
    return _by_name(blocks, t.Binding)


@remembered
def lets_in(blocks: Blocks) -> Mapping[str, t.Let]:
    """Return what a framework derives for itself."""
    return {name: lets[0] for name, lets in _by_name(blocks, t.Let).items()}


@remembered
def writes_in(blocks: Blocks) -> Mapping[str, list[t.Write]]:
    """Return how each fact is written, where that is said."""
    return _by_name(blocks, t.Write)


@remembered
def ties_in(blocks: Blocks) -> Mapping[str, list[Steps]]:
    """Return the keys that move together with each fact's own."""
    return {name: [tie.path.steps for tie in ties] for name, ties in _by_name(blocks, t.Tie).items()}


@remembered
def has_words(blocks: Blocks) -> bool:
    """Whether a switch of the command line may have a word."""
    return any(entry.key == "switches" for entry in _entries(blocks, t.Setting))


@remembered
def reads_in(blocks: Blocks) -> Mapping[Steps, Mapping[str, None]]:
    """Return the facts whose bindings read, or ask for, each key or what is below it."""
    reads: dict[Steps, dict[str, None]] = {}
    for name, bindings in bindings_in(blocks).items():
        for binding in bindings:
            for part in t.walk((binding.source, binding.when)):
                if isinstance(part, t.Path):  # a name of a file stands for what is in it
                    for i in range(1, len(part.steps) + 1):
                        reads.setdefault(part.steps[:i], {})[name] = None
    return reads


@remembered
def facts_in(blocks: Blocks) -> Mapping[str, Mapping[str, None]]:
    """Return the facts that are read from each key as it is."""
    facts: dict[str, dict[str, None]] = {}
    for name, bindings in bindings_in(blocks).items():
        for binding in bindings:
            if isinstance(binding.source, t.Path):
                facts.setdefault(dotted(binding.source.steps), {})[name] = None
    return facts
