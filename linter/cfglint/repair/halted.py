"""Says what people have to change where a program of the checkout stops at its config."""

from __future__ import annotations

from cfglint.engine.halts import STOPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.engine.subject import Judged

HALTED = "CFG034"


def by_hand(judged: Judged) -> str:
    """Say which keys decide that a program stops, whose values only people know."""
    told = []
    for stop in judged.values[STOPS]:  # type: ignore[attr-defined]
        if stop.key:
            told.append(f"only people know which value {stop.key} should have: write +{stop.key}=… there")
        else:
            told.append(f"what the job is about decides: change {stop.note.replace(' and ', ' or ')} by hand")
    return "; ".join(told)
