"""What one file may cost, counted in steps, so that every machine says the same of it.

A step is a node that is taken in or laid over another, a value that a reference leads to, an item that a rule
goes over, and the like: about a microsecond each. Configs take some thousand. The search for fixes has an
allowance of its own (`Searching`), so that a file is judged even if that takes too long.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # what `signal` wraps into enums, at a price

from cfglint.errors import OverBudgetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, ClassVar

STEPS = 2_000_000  # of judging one file with all files that it names
REPAIR_STEPS = 6_000_000  # of all searches for fixes of one file, for each target; large configs take 4.5
_AT_LEAST, _PER_CHARACTER = (
    2_000_000,
    3_000,
)  # of them, by the file's size; small configs take up to 4,000,000
TOO_LONG = "the search took too long"
SECONDS = 30  # of the processor for one file, where steps are not counted


class Budget:
    """What is left for the file at hand; a process judges one file at a time.

    ``with BUDGET:`` one file has the whole; inside another, it shares that one's. ``repair`` is what searches
    for fixes may still take, and None while one does.
    """

    __slots__ = ("deep", "left", "most", "repair", "spent")

    def __init__(self) -> None:
        self.deep = 0
        self.renew()

    def renew(self) -> None:
        """Give the file at hand all its steps."""
        self.left = self.most = STEPS
        self.repair: int | None = REPAIR_STEPS
        self.spent: dict[str, int] = {}

    def spend(self, steps: int, what: str) -> None:
        """Count steps for ``what``, in the plural; raises OverBudgetError where too few are left."""
        self.spent[what] = self.spent.get(what, 0) + steps
        self.left -= steps
        if self.left < 0 and self.deep:  # else nobody says which file it is
            most = max(self.spent, key=self.spent.__getitem__)
            raise OverBudgetError(
                f"judging this file takes more than {self.most:,} steps, most of them for {most}: "
                "it was not judged"
            )

    def __enter__(self) -> None:
        if not self.deep:
            self.renew()
        self.deep += 1

    def __exit__(self, *_: object) -> None:
        self.deep -= 1


BUDGET = Budget()
spend = BUDGET.spend


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


class Alarm:
    """``with Alarm():`` has OverBudgetError raised where the steps that are counted do not end it in time.

    It is the processor's time, so that a busy machine says the same. Only the main thread can have one.
    ``Alarm.at`` names the file at hand, where there are several.
    """

    at: ClassVar[str] = ""

    def __init__(self, what: str = "judging this file", outcome: str = ": it was not judged") -> None:
        self.words = f"{what} takes more than {SECONDS} seconds{outcome}"
        self.before: Any = None
        self.rings = False

    def __enter__(self) -> None:
        Alarm.at = ""
        if not hasattr(signal, "setitimer"):
            return
        try:
            self.before = signal.signal(signal.SIGPROF, self._ring)
        except ValueError:  # not in the main thread
            return
        self.rings = True
        signal.setitimer(signal.ITIMER_PROF, SECONDS, 5)  # again, should one be swallowed

    def __exit__(self, *_: object) -> None:
        if self.rings:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, signal.SIG_DFL if self.before is None else self.before)

    def _ring(self, *_: object) -> None:
        error = OverBudgetError(f"{Alarm.at}: {self.words}" if Alarm.at else self.words)
        error.by_time = True
        raise error
