"""A repair: the moves that reach some goals together, with their price and what they put at risk."""

from __future__ import annotations

from cfglint.record import Record, replace
from cfglint.repair.together import in_exchange
from cfglint.repair.tracks import worse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from cfglint.engine.subject import Judged
    from cfglint.repair.invert import Written
    from cfglint.repair.patch import Patch
    from cfglint.repair.tracks import Option
    from cfglint.repair.trials import Goal

    Price: TypeAlias = tuple[float, int, int, float, int]

DIGITS = 6  # of a weight: sums of floats are compared


class Repair(Record):
    """Options that together reach goals; ``sure`` is false where they only may.

    Once it is written and proven (solve.py), it has the ``goals`` that it reaches on all targets or on
    ``only`` one, its ``patch``: None where no edit can do it; and what its moves together put
    at risk of the ``results``.
    """

    options: tuple[Option, ...]
    sure: bool = True
    results: str | None = None
    goals: tuple[Goal, ...] = ()
    patch: Patch | None = None
    only: Judged | None = None

    def telling(self, effects: Sequence[str], risk: str) -> Repair:
        """Return the repair with more effects, and what they put at risk."""
        last = self.options[-1]
        last = replace(last, risk=worse(last.risk, risk), effects=[*last.effects, *effects])
        return replace(self, options=(*self.options[:-1], last))

    @property
    def cost(self) -> float:
        """What the moves cost together."""
        return round(sum(option.cost for option in self.options), DIGITS)

    @property
    def weight(self) -> float:
        """The cost, in which what may change results counts before all else."""
        return round(sum(option.weight for option in self.options), DIGITS)

    @property
    def unsafe(self) -> bool:
        """Whether results may change."""
        return self.risk != "none"

    @property
    def risk(self) -> str:
        """The worst that may change of the results: none, numerics, optimization or data."""
        own = [option.risk for option in self.options]
        if self.results is not None:
            return worse(*own, self.results)
        return worse(*own, *(option.results for option in self.options))

    @property
    def applicability(self) -> str:
        """``safe``, ``unsafe`` or ``display``."""
        if self.patch is None or self.patch.outside:
            return "display"
        return "unsafe" if self.unsafe else "safe"

    @property
    def knobs(self) -> frozenset[str]:
        """The knobs that are moved."""
        return frozenset(option.knob for option in self.options)

    @property
    def written(self) -> list[Written]:
        """What has to be in the file."""
        options = in_exchange(self.options) or self.options
        return [written for option in options for written in option.written]

    @property
    def price(self) -> Price:
        """What repairs are compared by: the weight, then fewer and safer edits, then the nearest values."""
        edits = len({key for option in self.options for key, _ in option.places})
        return (
            self.weight, edits, sum(option.unsafe for option in self.options),
            sum(option.steps for option in self.options), sum(not option.asked for option in self.options),
        )  # fmt: skip
