"""What a knob says of a change from one value to another: its effect in words, and whether results differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfglint.engine.moves import _literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cfglint.dsl import tree as t
    from cfglint.dsl.types import Type


_PERCENT = 100
_NOTABLE = 2  # points: a fifth of a training step's time (rules/knobs.rules)
_PLACES = 6


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change does; ``to`` is ``b`` for the way from A to B, ``a`` for the way back.

    ``kind`` (time, throughput, memory, quality, host), the percents ``low`` to ``high`` and the source
    ``see`` are there where the knob states them. ``notable`` says that it costs speed worth a first line.
    """

    to: str
    text: str
    kind: str = ""
    low: float | None = None
    high: float | None = None
    see: str = ""
    notable: bool = False


def effects(knob: t.Knob, one: object, other: object, kind: Type) -> Iterator[Effect]:
    """Yield what the knob says of the way from ``one`` to ``other``, and of the way back."""
    for old, new, to in ((one, other, "b"), (other, one, "a")):
        if "none" in kind.members and old in [_literal(node, kind) for node in knob.values]:
            continue  # what full checkpointing costs is said against none, and not against selective
        for move in _moves(knob, old, new, kind):
            if move.effect or move.kind:
                slow = move.kind == "time" and move.cost >= _NOTABLE
                yield Effect(
                    to,
                    move.effect,
                    move.kind,
                    _percent(move.low),
                    _percent(move.high),
                    move.see,
                    notable=move.kind == "throughput" or slow or move.low is not None,
                )


def _percent(share: float | None) -> float | None:
    return None if share is None else round(share * _PERCENT, _PLACES)


def alters_results(knob: t.Knob, one: object, other: object, kind: Type) -> bool:
    """Whether a way between two values is marked as changing results, in either direction."""
    ways = (*_moves(knob, one, other, kind), *_moves(knob, other, one, kind))
    return any(move.unsafe for move in ways)


def _moves(knob: t.Knob, old: object, new: object, kind: Type) -> Iterator[t.Move]:
    """Yield the moves that speak of a change: of its direction, to a value that the knob would give."""
    direction = "any"
    if _number(old) and _number(new):
        direction = "down" if new < old else "up"  # type: ignore[operator]
    if knob.domain == "values" and new not in [_literal(node, kind) for node in knob.values]:
        return
    if {"halving": "up", "doubling": "down"}.get(knob.domain) == direction:
        return
    for move in knob.moves:
        listed = [_literal(node, kind) for node in move.to]
        if new in listed if listed else move.direction in (direction, "any"):
            yield move


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
