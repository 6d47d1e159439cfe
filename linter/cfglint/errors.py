"""All errors that cfglint raises on purpose.

CfglintError                 what the user can fix: one line, exit status 2
├── UsageError               a flag, a path or a setting is wrong
├── RulesError               one or more rule files do not load; carries every complaint
├── HardwareError            a GPU name, a hardware sheet or NVML
├── OverBudgetError          a file that costs too much to judge; becomes CFG023
└── DocumentError            bytes that are not text, or a text that is not a document; becomes CFG001
"""

from __future__ import annotations

from cfglint.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class CfglintError(Exception):
    """Something that the user can fix; its text is one line that says what to do."""


class UsageError(CfglintError):
    """A flag, a path or a setting is wrong."""


class HardwareError(CfglintError):
    """An unknown GPU, an invalid hardware sheet, or NVML that does not answer."""


class DocumentError(CfglintError):
    """A config that cannot be read: where (an offset, or None for the whole file) and why."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


class OverBudgetError(CfglintError):
    """A file costs more steps than it may, or ``by_time`` more seconds; becomes CFG023."""

    by_time = False


class Complaint(Record):
    """One thing wrong in a rule file, at ``path:line:column``."""

    path: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.message}"


class RulesError(CfglintError):
    """Rule files that do not load."""

    SHOWN = 20

    def __init__(self, complaints: Sequence[Complaint]) -> None:
        once = {str(complaint): complaint for complaint in complaints}  # of a section, each rule may complain
        self.complaints = sorted(once.values(), key=lambda c: (c.path, c.line, c.column))
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """Return the first complaints, and how many there are besides."""
        more = len(self.complaints) - self.SHOWN
        shown = [str(complaint) for complaint in self.complaints[: self.SHOWN]]
        return [*shown, f"… and {more} more; fix these first"] if more > 0 else shown


def bug(error: Exception) -> str:
    """Return the line for an exception that should never have come this far."""
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    return f"internal error, a bug in cfglint: {what}; CFGLINT_TRACEBACK=1 shows where"


def nearest(name: str, known: Iterable[str], *, most: int = 3, cutoff: float = 0.6) -> list[str]:
    """Return up to ``most`` known names that look like ``name``, the nearest first."""
    from difflib import get_close_matches

    by_fold = {candidate.lower(): candidate for candidate in known}
    return [by_fold[m] for m in get_close_matches(name.lower(), by_fold, n=most, cutoff=cutoff)]


def did_you_mean(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return ``"; did you mean a, b or c?"``, or an empty text where nothing is near."""
    near = nearest(name, known, cutoff=cutoff)
    if not near:
        return ""
    *head, last = [repr(n) for n in near]
    return f"; did you mean {', '.join(head)} or {last}?" if head else f"; did you mean {last}?"
