"""``--vary NAME=V1,V2``: the same config with other values of a fact, or of a key of the file."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from cfglint.document.tree import ABSENT, split_key
from cfglint.errors import UsageError, did_you_mean
from cfglint.facts import stated
from cfglint.hardware.target import Target
from cfglint.lang.values import needs_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.document.view import View
    from cfglint.engine.subject import Subject
    from cfglint.lang.pack import Pack

_DEEPEST = 6  # levels of keys that a misspelled name is compared with


@dataclass(frozen=True, slots=True)
class Axis:
    """A name and the values that it takes, as they were written."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One choice of values: facts to give beside the target's own, and overrides of the file."""

    varied: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, object], ...]
    overrides: tuple[str, ...]

    def target(self, target: Target) -> Target:
        """Return ``target`` with this case's facts beside its own."""
        if not self.facts:
            return target
        own = {name: (value, "--vary") for name, value in self.facts}
        return Target(
            target.name, target.gpu, {**target.facts, **own}, count=target.count, nodes=target.nodes
        )


def read_axis(text: str) -> Axis:
    """Read ``NAME=V1,V2``. Raises UsageError."""
    name, _, values = text.partition("=")
    several = tuple(dict.fromkeys(value.strip() for value in values.split(",")))
    if not name.strip() or not all(several):
        raise UsageError(
            f"--vary {text}: write NAME=V1,V2, such as --vary micro_batch_size=1,2,4; no value is empty"
        )
    return Axis(name.strip(), several)


def cases(pack: Pack, subject: Subject, axes: Sequence[Axis]) -> list[Case]:
    """Return every choice of values of all axes, the last axis moving first. Raises UsageError."""
    twice = next((a.name for i, a in enumerate(axes) if a.name in {b.name for b in axes[:i]}), None)
    if twice is not None:
        raise UsageError(f"--vary {twice} stands twice; write its values after one: --vary {twice}=V1,V2")
    found = []
    for choice in product(*([(axis.name, text) for text in axis.values] for axis in axes)):
        facts = tuple((name, _fact(pack, name, text)) for name, text in choice if name in pack.facts)
        keys = tuple(_override(pack, subject, name, text) for name, text in choice if name not in pack.facts)
        found.append(Case(choice, facts, keys))
    return found


def _fact(pack: Pack, name: str, text: str) -> object:
    kind, spellings = pack.facts[name][0], pack.facts[name][4]
    value = stated(pack, name, text)
    if value is ABSENT or needs_of(value):
        wanted = {"number": "a number in its range", "bool": "true or false"}.get(kind, f"a {kind}")
        if spellings:
            wanted = f"one of {', '.join(dict.fromkeys(spellings.values()))}"
        near = did_you_mean(text, spellings or ())
        raise UsageError(f"--vary {name}={text}: {name} takes {wanted}, not {text!r}{near}")
    return value


def _override(pack: Pack, subject: Subject, name: str, text: str) -> str:
    steps = tuple(int(key) if key.isdecimal() else key for key in split_key(name))
    if not subject.view.has(steps):
        near = did_you_mean(name, (*pack.facts, *_keys(subject.view, ())))
        raise UsageError(f"--vary {name}: no fact and no key of the file has this name{near}")
    return f"{name}={text}"


def _keys(view: View, path: tuple[str, ...]) -> Iterator[str]:
    for key in view.keys(path):
        yield ".".join((*path, key))
        if len(path) < _DEEPEST:
            yield from _keys(view, (*path, key))
