"""Numbers and sentences that the forms of a fit share. All memory is in GiB of 2^30 bytes."""

from __future__ import annotations

from cfglint.report.order import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cfglint.engine.memory import Estimate, Fit, FitRow, Remedy, Span, Trainer, Wanted

INF = float("inf")
DASH = "–"  # noqa: RUF001 (between two bounds; a minus sign is something else)
LETTERS = {
    "engine": "E", "weights": "W", "gradients": "G", "optimizer": "O", "activations": "A", "logits": "L",
    "overhead": "V",
}  # fmt: skip
_NAMED = 6  # facts of one kind that are named one by one


def gib(value: float) -> str:
    """Return a number of GiB with two decimals; ``?`` where nothing bounds it."""
    return f"{value:.2f}" if abs(value) < INF else "?"


def is_point(span: Span) -> bool:
    """Whether both bounds print alike."""
    return gib(span.low) == gib(span.high)


def spread(span: Span, *, dash: str = DASH) -> str:
    """Return ``12.69``, ``12.70-15.90``, or ``?`` where nothing is known."""
    if span.high == INF:
        return f"{gib(span.low)}{dash}?" if span.low > 0 else "?"
    return gib(span.high) if is_point(span) else f"{gib(span.low)}{dash}{gib(span.high)}"


def aligned(spans: Sequence[Span | None], *, dash: str = DASH) -> list[str]:
    """Return spans as the cells of a column whose right side is flush: upper bounds below upper bounds."""
    texts = [None if span is None else _bounds(span) for span in spans]
    high = max((len(text[1]) for text in texts if text is not None), default=0)
    cells = []
    for text in texts:
        if text is None:
            cells.append("?")
        elif text[0]:
            cells.append(f"{text[0]} {dash} {text[1]:>{high}}")
        else:
            cells.append(f"{text[1]:>{high}}")
    return cells


def _bounds(span: Span) -> tuple[str, str]:
    if (span.high == INF and span.low <= 0) or is_point(span):
        return "", gib(span.high)
    return gib(span.low), gib(span.high)


def headroom(row: FitRow) -> str:
    """Return what is left, ``-2.70 to +2.46``; ``?`` where that is not known."""
    left = row.headroom
    if left is None or left.high <= -INF or (left.low <= -INF and row.need.low <= 0):
        return "?"
    high = f"{left.high:+.2f}"
    if left.low <= -INF:
        return f"{high} at most"
    low = f"{left.low:+.2f}"
    return high if low == high else f"{low} to {high}"


def headline(fit: Fit) -> str:
    """Return what the numbers are about."""
    about = ", ".join(part for part in (fit.framework, fit.model) if part)
    return f"{shown(fit.path)} ({shown(about)})" if about else shown(fit.path)


def counts(fit: Fit) -> str:
    """Return ``9 fit, 2 tight, 53 oom; the smallest that fits is a40 (44.42 GiB)``; nothing for one row."""
    if len(fit.rows) < 2:
        return ""
    found = []
    for verdict, word in (("fits", "fit"), ("tight", "tight"), ("oom", "oom"), ("unknown", "unknown")):
        number = sum(row.verdict == verdict for row in fit.rows)
        if number:
            found.append(f"{number} {'fits' if word == 'fit' and number == 1 else word}")
    fitting = [row for row in fit.rows if row.verdict == "fits" and row.capacity is not None]
    smallest = min(fitting, key=lambda row: row.capacity or 0, default=None)
    if smallest is None or any(row.varied for row in fit.rows):
        return ", ".join(found)
    size = f"{shown(smallest.target)} ({gib(smallest.capacity or 0)} GiB)"
    return f"{', '.join(found)}; the smallest that fits is {size}"


def peak(trainer: Trainer, *, dash: str = DASH) -> str:
    """Return when the trainer needs most, and what PyTorch then holds."""
    when = f"peak at: {shown(trainer.moment)}; " if trainer.moment else "at its peak "
    allocated, reserved = spread(trainer.allocated, dash=dash), spread(trainer.reserved, dash=dash)
    return f"{when}PyTorch allocates {allocated} GiB, reserves {reserved}"


def peaks(rows: Iterable[FitRow], *, dash: str = DASH) -> list[str]:
    """Return the peak of the trainer, with its targets where they differ."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.trainer is not None and row.trainer.allocated.high < INF:
            found.setdefault(peak(row.trainer, dash=dash), []).append(shown(row.target))
    if len(found) == 1:
        return list(found)
    return [f"{', '.join(targets)}: {line}" for line, targets in found.items()]


def estimate(one: Estimate) -> str:
    """Return an estimate and what it is worth: ``slack 1..1.25 (…): 3.20 GiB``."""
    about = f" ({shown(one.about)})" if one.about else ""
    value = f" is {shown(one.value)}" if one.value else ""
    return f"{shown(one.name)}{value}{about}: {gib(one.width)} GiB of the range"


def names(one: Wanted) -> str:
    """Return the names of missing facts, some of many."""
    few = ", ".join(map(shown, one.names[:_NAMED]))
    return few + (f" and {len(one.names) - _NAMED} more" if len(one.names) > _NAMED else "")


def remedies(rows: Iterable[FitRow]) -> list[tuple[Remedy, list[str]]]:
    """Return the fixes of rows, one that several targets share once, with the targets."""
    found: dict[object, tuple[Remedy, list[str]]] = {}
    for row in rows:
        if row.remedy is not None:
            fix = row.remedy.fix
            key = fix.title, fix.effect, fix.applicability, row.remedy.verdict, row.remedy.need
            found.setdefault(key, (row.remedy, []))[1].append(shown(row.target))
    return list(found.values())


def remedy(one: Remedy, *, dash: str = DASH) -> str:
    """Return what to do and what that comes to."""
    effect = f" — {shown(one.fix.effect)}" if one.fix.effect else ""
    after = f"it then needs {spread(one.need, dash=dash)} GiB: {one.verdict}"
    return f"{shown(one.fix.title)}{effect}; {after}"


def label(one: Remedy) -> str:
    """Return the kind of a fix: ``safe``, or ``unsafe, may not suffice``."""
    return one.fix.applicability + (", may not suffice" if one.fix.certainty == "may" else "")
