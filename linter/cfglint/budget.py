"""What one file may cost, counted in steps, so that every machine says the same of it.

A step is a node that is taken in or laid over another, a value that a reference leads to, an item that a rule
goes over, and the like: about a microsecond each. Configs take some thousand. The search for fixes has an
allowance of its own (repair/allowance.py), so that a file is judged even if that takes too long.
"""

from __future__ import annotations

from cfglint.errors import OverBudgetError

STEPS = 2_000_000  # of judging one file with all files that it names
REPAIR_STEPS = 6_000_000  # of all searches for fixes of one file, for each target; large configs take 4.5


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
        if self.left < 0:
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
