"""What the search for fixes may cost: its steps do not come off those that judge the file."""

from __future__ import annotations

from cfglint.budget import BUDGET, REPAIR_STEPS
from cfglint.errors import OverBudgetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_AT_LEAST, _PER_CHARACTER = 2_000_000, 3_000  # steps; small configs take up to 4,000,000
TOO_LONG = "the search took too long"


class Searching:
    """``with Searching(…) as search:`` what is spent comes off what all searches of a file may take.

    That grows with the targets and with the ``size`` of the file, in characters: of a few keys, no search is
    long that finds anything. Where it is gone the block ends, and ``search.over`` says so. Inside another,
    the outer one ends.
    """

    over = False

    def __init__(self, targets: int = 1, size: int | None = None) -> None:
        most = REPAIR_STEPS if size is None else min(_AT_LEAST + _PER_CHARACTER * size, REPAIR_STEPS)
        self._kept = REPAIR_STEPS - most
        self._more = most * max(targets - 1, 0)

    def __enter__(self) -> Searching:  # noqa: PYI034 (Self came with Python 3.11)
        self._outer = BUDGET.repair is None
        if BUDGET.repair is not None:
            self._before = BUDGET.left, BUDGET.most, BUDGET.spent
            BUDGET.left, BUDGET.repair = BUDGET.repair - self._kept + self._more, None
            BUDGET.most, BUDGET.spent = REPAIR_STEPS - self._kept + self._more, {}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._outer:
            return False
        BUDGET.repair = max(BUDGET.left - self._more, 0) + self._kept
        BUDGET.left, BUDGET.most, BUDGET.spent = self._before
        self.over = isinstance(error, OverBudgetError) and not error.by_time
        return self.over
