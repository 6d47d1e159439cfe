"""What a knob says of a change from one value to another: its effect in words, and whether results differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfglint.engine.sensitivity import _literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cfglint.lang import tree as t
    from cfglint.lang.types import Type

    Holds = Callable[[t.Expr], bool]

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
    """Yield what the knob says of the way from ``one`` to ``other``, and of the way back.

    What it says under a condition is about a repair, not about two files, and is left out.
    """
    for old, new, to in ((one, other, "b"), (other, one, "a")):
        listed = [_literal(node, kind) for node in knob.values]
        if "none" in kind.members and old != "none" and old in listed:
            continue  # what full checkpointing costs is said against none, and not against selective
        move = _told(knob, old, new, kind)
        if move is not None and (move.effect or move.kind):
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
    ways = (_told(knob, one, other, kind), _told(knob, other, one, kind))
    return any(move is not None and move.unsafe for move in ways)


def _told(knob: t.Knob, old: object, new: object, kind: Type) -> t.Move | None:
    """Return the move that speaks of a change to a value which the knob would give."""
    if knob.domain == "values" and new not in [_literal(node, kind) for node in knob.values]:
        return None
    if {"halving": "up", "doubling": "down"}.get(knob.domain) == _direction(old, new):
        return None
    return move_of(knob, old, new, kind)


def never(_: t.Expr) -> bool:
    """Take no condition for fulfilled."""
    return False


def move_of(knob: t.Knob, old: object, new: object, kind: Type, holds: Holds = never) -> t.Move | None:
    """Return what moving a knob to this value, or in this direction, costs: the first move that fits."""
    direction = _direction(old, new)
    for move in knob.moves:
        fits = (
            new in [_literal(node, kind) for node in move.to]
            if move.to
            else move.direction in (direction, "any")
        )
        if fits and (move.when is None or holds(move.when)):
            return move
    return None


def _direction(old: object, new: object) -> str:
    if not _number(old) or not _number(new):
        return "any"
    return "down" if new < old else "up"  # type: ignore[operator]


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
