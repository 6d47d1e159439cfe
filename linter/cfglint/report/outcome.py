"""What a fix does, in a line each: to memory and time, to what the run learns from, to comments beside it."""

from __future__ import annotations

from cfglint.report.verdicts import rounded
from cfglint.text import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.findings import Fix, MemoryChange, ResultChange, Stale

_MANY = 3  # of a step's time, from which on a step is told as so many times the other
_ROUGH = 0.1  # of a step's time, from which on a percentage is rounded to tens


def price_told(fix: Fix) -> str:
    """Say what a fix does to memory and time: ``engine 36–37 → 20–21 GiB, at worst 1.2 GiB free``."""
    memory = ", ".join(filter(None, map(_memory, fix.memory)))
    return "; ".join(filter(None, (memory, _time(fix.slower))))


def _memory(change: MemoryChange) -> str:
    if change.part == "headroom":
        left = change.after_gib[0]
        return f"at worst {rounded(abs(left))} GiB {'short' if left < 0 else 'free'}"
    old, new = (_span(*gib) for gib in (change.before_gib, change.after_gib))
    if change.part == "host":
        return f"each machine needs {new} GiB of its own memory"
    if change.on_more:  # nobody can have what is needed on GPUs that are not there
        return f"{change.part} {new} GiB"
    return f"{change.part} {old} → {new} GiB" if old != new else ""


def _span(low: float, high: float) -> str:
    least, most = rounded(low), rounded(high)
    return most if least == most else f"{least}–{most}"


def _time(share: tuple[float, float] | None) -> str:
    """Say how much longer a training step takes."""
    if share is None or share[0] < -_ROUGH < _ROUGH < share[1]:
        return ""
    if share[1] > _MANY:
        several = f"up to {rounded(1 + share[1])}" if share[0] < _ROUGH else _span(1 + share[0], 1 + share[1])
        return f"training steps {several} times as long"
    low, high = (round(100 * each, -1 if abs(each) >= _ROUGH else None) for each in share)
    word = "slower" if low + high > 0 else "faster"
    near, most = sorted((abs(low), abs(high)))
    if near != most and (low * high < 0 or _says_little(*share)):
        return f"training steps up to {most:.0f} % {word}"
    several = f"{near:.0f}–{most:.0f}" if near != most else f"{most:.0f}"
    return f"training steps about {several} % {word}"


def _says_little(low: float, high: float) -> bool:
    """Whether a step may take about as long as before, or longer."""
    return abs(low) < _ROUGH < high or (high <= 0 and abs(high) < _ROUGH < abs(low))


def results_told(changed: Sequence[ResultChange]) -> str:
    """Say what a run learns from: ``effective batch 64, longest sequence 2,048: unchanged``."""
    moved = [f"{each.name} {_moved(each)}" for each in changed if not each.same]
    same = [f"{each.name} {each.after}" if each.after else each.name for each in changed if each.same]
    return "; ".join(filter(None, (", ".join(moved), f"{', '.join(same)}: unchanged" if same else "")))


def _moved(change: ResultChange) -> str:
    return f"{change.before} → {change.after}" if change.before and change.after else "may change"


def stale_told(line: int, comment: Stale) -> str:
    """Say which comment a fix makes untrue: ``the comment on line 12 still says 8``."""
    return f"the comment on line {line} still says {shown(comment.says)}"
