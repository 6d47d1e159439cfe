"""What pages share that are not made of blocks yet."""

from __future__ import annotations

from cfglint.report.blocks import _SIGNS, DASH, INF, VERDICT_COLORS, gib
from cfglint.report.encode import PLACES, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cfglint.engine.memory import Span

__all__ = ["DASH", "INF", "PLACES", "VERDICT_COLORS", "_SIGNS", "_rows", "aligned", "bounds", "gib", "spread"]


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


def bounds(span: Span) -> list[float | None]:
    """Return a span as JSON has it."""
    found: list[float | None] = encode(span)
    return found


def _rows(head: Sequence[str], right: Sequence[bool], body: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'|'.join('---:' if flush else '---' for flush in right)}|"
    for cells in body:
        yield f"| {' | '.join(cells)} |"
