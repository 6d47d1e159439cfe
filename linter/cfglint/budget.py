"""What one file may cost, counted in steps, so that every machine says the same of it.

A step is a node that is taken in or laid over another, a value that a reference leads to, an item that a rule
goes over, and the like: about a microsecond each. Configs take some thousand. The search for fixes has an
allowance of its own (repair/allowance.py), so that a file is judged even if that takes too long.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # what `signal` wraps into enums, at a price

from cfglint.errors import OverBudgetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

STEPS = 2_000_000  # of judging one file with all files that it names
REPAIR_STEPS = 6_000_000  # of all searches for fixes of one file, for each target; large configs take 4.5
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
