"""What one file may cost, counted in steps, so that every machine says the same of it.

A step is a node that is taken in or laid over another, a value that a reference leads to, an item that a rule
goes over, and the like: about a microsecond each. Configs take some thousand. The search for fixes has an
allowance of its own, so that a file is judged even if that takes too long.
"""

from __future__ import annotations

from cfglint.errors import CfglintError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

STEPS = 2_000_000  # of judging one file with all files that it names
REPAIR_STEPS = 1_000_000  # of all searches for fixes of one file
TOO_LONG = "the search took too long"


class OverBudgetError(CfglintError):
    """A file costs more than it may."""


class _Meter:
    """What is left for the file at hand; a process judges one file at a time."""

    __slots__ = ("deep", "left", "most", "repair", "searching", "spent")

    def __init__(self) -> None:
        self.deep = 0
        self.begin()

    def begin(self) -> None:
        self.left = self.most = STEPS
        self.repair = REPAIR_STEPS
        self.searching = False
        self.spent: dict[str, int] = {}


_METER = _Meter()


def spend(steps: int, what: str) -> None:
    """Count steps of ``what``, named in the plural; raises OverBudgetError where too few are left."""
    meter = _METER
    meter.spent[what] = meter.spent.get(what, 0) + steps
    meter.left -= steps
    if meter.left < 0:
        most = max(meter.spent, key=meter.spent.__getitem__)
        raise OverBudgetError(
            f"judging this file takes more than {meter.most:,} steps, most of them for {most}: "
            "it was not judged"
        )


def renew() -> None:
    """Give the file at hand its steps again, to tell that it had too few."""
    _METER.begin()


def used() -> int:
    """Return the steps that the file at hand, or the last one, took, without the search for fixes."""
    return _METER.most - _METER.left


class Judging:
    """``with Judging():`` one file has the whole budget; inside another, it shares that one's."""

    __slots__ = ()

    def __enter__(self) -> None:
        if not _METER.deep:
            _METER.begin()
        _METER.deep += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _METER.deep -= 1


class Searching:
    """``with Searching():`` what is spent comes off the allowance for fixes; `over` says that it is gone."""

    __slots__ = ("_before", "over")

    def __enter__(self) -> Searching:  # noqa: PYI034 (Self came with Python 3.11)
        meter = _METER
        self.over = False
        self._before = meter.left, meter.most, meter.spent, meter.searching
        if not meter.searching:
            meter.left, meter.most, meter.spent, meter.searching = meter.repair, REPAIR_STEPS, {}, True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        meter = _METER
        left, most, spent, before = self._before
        if before:
            return False  # the one around it ends the search
        meter.repair = max(meter.left, 0)
        meter.left, meter.most, meter.spent, meter.searching = left, most, spent, before
        self.over = isinstance(error, OverBudgetError) and not isinstance(error, OverTimeError)
        return self.over


class OverTimeError(OverBudgetError):
    """A file takes too long on this machine: the last resort where steps were not counted."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"judging this file takes more than {seconds} seconds: it was not judged")
