"""Files whose keys are the facts' own names: which names there are none of, and which values are none.

Imported only for such files (a framework with ``names are keys``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.document.scalars import Missing
from cfglint.document.view import Record, View, dotted
from cfglint.engine.judge import Mistake
from cfglint.errors import did_you_mean
from cfglint.facts import NO_KEYS, stated
from cfglint.lang.units import PLAIN, describe, digits
from cfglint.lang.values import INF, needs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.engine.judge import Subject
    from cfglint.lang.pack import Pack


def misfits(pack: Pack, subject: Subject) -> Iterator[Mistake]:
    """Yield what is no value of its fact's type; no rule would look at it."""
    assert subject.framework is not None
    bound = pack.frameworks[subject.framework]["bind"]
    for path in _keys(pack, subject.view, ()):
        name = ".".join(path)
        if not _is_fact(pack, name) or name in bound:
            continue
        value = subject.view.get(path)
        if type(value) is not Missing and needs_of(stated(pack, name, value)):
            span = subject.view.trace(path).span
            yield Mistake(_wanted(pack, name, value), *span, key=dotted(path), text=_told(value))


def unknown_names(pack: Pack, subject: Subject) -> Iterator[Mistake]:
    """Yield the keys that are no fact's name, nor read by the framework's block."""
    assert subject.framework is not None
    read = pack.frameworks[subject.framework]["keys"]
    for path in _keys(pack, subject.view, ()):
        name = ".".join(path)
        if _is_fact(pack, name) or any(path[: len(steps)] == steps[: len(path)] for steps in read):
            continue
        near = did_you_mean(name, [fact for fact in pack.facts if _is_fact(pack, fact)])
        note = near or "; rules/vocabulary.rules lists them"
        yield Mistake(note, *subject.view.trace(path).key_span, key=name)


def _is_fact(pack: Pack, name: str) -> bool:
    return name in pack.facts and name.partition(".")[0] not in NO_KEYS


def _keys(pack: Pack, view: View, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the keys of a file; those of a mapping for it where it stands for the first part of names."""
    for key in view.keys(path):
        inner = (*path, key)
        name = ".".join(inner)
        leads_on = any(fact.startswith(f"{name}.") for fact in pack.facts)
        if leads_on and isinstance(view.get(inner), Record):
            yield from _keys(pack, view, inner)
        else:
            yield inner


def _told(value: object) -> str:
    if isinstance(value, str):
        return f'the text "{value}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return str(value)
    return "a list" if isinstance(value, list) else "a mapping"


def _wanted(pack: Pack, name: str, value: object) -> str:
    """Say what a fact's value has to be, and which member was probably meant."""
    kind, factor, low, high, spellings = pack.facts[name]
    if spellings is not None:
        near = did_you_mean(value, spellings) if isinstance(value, str) else ""
        return f"one of {', '.join(dict.fromkeys(spellings.values()))}{near}"
    if kind != "number":
        return "true or false" if kind == "bool" else f"a {kind}"
    dimension, whole = pack.measures[name]
    told = "a whole number" if whole else describe(dimension).replace("plain ", "")
    if low == -INF or (low == 0 and dimension != PLAIN):
        return told
    upper = f" to {digits(high / factor)}" if high < INF else ""
    return f"{told} from {digits(low / factor)}{upper}"
