"""Measured memory in the place of estimates: facts by which the rules' numbers come out as measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfglint.engine.memory import Span, span_of
from cfglint.features.diagnose.attribution import ENGINE, TRAINER, Holder
from cfglint.hardware.target import Target
from cfglint.lang.values import INF, Interval, interval, needs_of, parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cfglint.facts import Values


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the rules say of a role before anything was measured; ``needs`` are the facts that they lack."""

    role: str
    span: Span
    needs: tuple[str, ...]


def predictions(values: Values) -> dict[str, Prediction]:
    """Return what the rules predict of engine and trainer; a role that the job does not have is left out."""
    found = {}
    for role, present in ((ENGINE, "generates"), (TRAINER, "trains")):
        if values[present] is False:
            continue
        value = values[f"{role}.estimate"]
        found[role] = Prediction(role, span_of(value), tuple(sorted(needs_of(value))))
    return found


def corrections(values: Values, held: Sequence[tuple[Holder, str]]) -> dict[str, tuple[object, str]]:
    """Return `engine.correction` and `trainer.correction` as facts with their sources.

    ``held`` are processes and where each was measured. What a living engine held is what it holds; what a
    process held when it died and what it asked for is the least that it needs, and the estimate above that
    stands. Nothing is returned where the estimate has no bounds.
    """
    facts: dict[str, tuple[object, str]] = {}
    for holder, at in held:
        if holder.role not in (ENGINE, TRAINER) or holder.held is None:
            continue
        name = f"{holder.role}.correction"
        value = values[f"{holder.role}.estimate"]
        low, high = _bounds(value)
        if high == INF:
            continue
        need = holder.needed if holder.died and holder.needed is not None else holder.held
        if holder.role == TRAINER:
            correction: object = need - low
            if need <= low:
                continue  # it died before its peak: the estimate stands
        elif holder.died:
            correction = interval(max(0, need - low), max(high, need) - low)
        else:
            correction = need - low
        if name in facts and _bounds(facts[name][0])[0] >= _bounds(correction)[0]:
            continue  # of several deaths the one that needed most
        facts[name] = (correction, f"measured in {at}")
    return facts


def _bounds(value: object) -> tuple[float, float]:
    if isinstance(value, (int, float, Interval)) and not isinstance(value, bool):
        low, high, _ = parts(value)
        return low, high
    return 0, INF


def measured_target(target: Target, facts: Mapping[str, tuple[object, str]]) -> Target:
    """Return a target that gives ``facts`` as well."""
    return Target(
        target.name,
        target.gpu,
        {**target.facts, **facts},
        count=target.count,
        nodes=target.nodes,
        notices=target.notices,
    )
