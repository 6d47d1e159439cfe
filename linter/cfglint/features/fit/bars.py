"""One row's memory as a bar: solid up to what is certain, shaded up to the upper bound, with the capacity."""

from __future__ import annotations

from cfglint.report.blocks import INF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfglint.engine.memory import FitRow
    from cfglint.report import Style

LETTERS = {
    "engine": "E", "weights": "W", "gradients": "G", "optimizer": "O", "activations": "A", "logits": "L",
    "overhead": "V",
}  # fmt: skip
COLORS = {
    "engine": "blue", "weights": "green", "gradients": "cyan", "optimizer": "magenta",
    "activations": "yellow", "logits": "red", "overhead": "bright_black",
}  # fmt: skip
_UNSHARED = 0.02  # of a need; parts that add up to less by more than this leave a part without a name
_SHARE = 0.8  # of the bar's cells stand for the capacity; the others show what is over it


def bar(row: FitRow, cells: int, style: Style) -> list[tuple[str, str]]:
    """Return pieces of text with their colours, ``cells`` wide in all."""
    full = limit(cells)
    scale = row.capacity_gib or (row.need_gib.high if row.need_gib.high < INF else row.need_gib.low) or 1
    low, high = (_cells(bound, scale, full) for bound in (row.need_gib.low, row.need_gib.high))
    drawn = [*_stack(row, low, certain=True, style=style)]
    drawn += _stack(row, max(min(high, cells + 1) - low, 0), certain=False, style=style)
    line = "│" if style.unicode else "|"
    if row.capacity_gib is not None:
        drawn += [(" ", "")] * (full - len(drawn))
        drawn.insert(full, (line, "bold"))
    if len(drawn) > cells:
        drawn = [*drawn[: cells - 1], ("▶" if style.unicode else ">", "bold")]
    drawn += [(" ", "")] * (cells - len(drawn))
    return _joined(drawn)


def limit(cells: int) -> int:
    """Return how many cells of a bar stand for the capacity; its line comes behind them."""
    return max(int(cells * _SHARE), 1)


def _cells(bound: float, scale: float, full: int) -> int:
    """Return where a bound stands; one that is over the capacity is drawn over it, one that fits is not."""
    if bound == INF:
        return 10**6
    where = min(bound / scale, 1e3) * full
    return max(round(where), full + 1) if bound > scale else min(round(where), full)


def _sizes(row: FitRow, *, certain: bool) -> list[tuple[str, float]]:
    """Return the parts' lower bounds, or the widths of their ranges; what none of them has, has no name."""
    sizes = [(part, span.low if certain else min(span.width, 1e6)) for part, span in row.parts.items()]
    unshared = row.need_gib.low - sum(size for _, size in sizes) if certain else 0
    if unshared > _UNSHARED * row.need_gib.low:
        sizes.append(("", unshared))
    return sizes


def split(row: FitRow, most: float) -> list[tuple[str, float, bool]]:
    """Return part, GiB and certainty from left to right, at most ``most`` of what is uncertain."""
    found = []
    for certain, whole in ((True, row.need_gib.low), (False, min(row.need_gib.width, max(most, 0)))):
        sizes = _sizes(row, certain=certain)
        total = sum(size for _, size in sizes)
        found += [(part, size / total * whole, certain) for part, size in sizes if total > 0]
    return found


def _stack(row: FitRow, cells: int, *, certain: bool, style: Style) -> list[tuple[str, str]]:
    """Share ``cells`` among the parts."""
    sizes = _sizes(row, certain=certain)
    found = []
    for (part, _), share in zip(sizes, shares([size for _, size in sizes], cells), strict=True):
        found += _segment(part, share, certain=certain, style=style)
    return found


def shares(sizes: Sequence[float], cells: int) -> list[int]:
    """Return whole numbers in the proportion of ``sizes``, ``cells`` in all."""
    whole = sum(sizes)
    if whole <= 0:
        return [0] * (len(sizes) - 1) + [cells]
    found, sum_so_far, used = [], 0.0, 0
    for size in sizes:
        sum_so_far += size
        upto = round(sum_so_far / whole * cells)
        found.append(upto - used)
        used = upto
    return found


def _segment(part: str, cells: int, *, certain: bool, style: Style) -> list[tuple[str, str]]:
    fill = ("█░" if style.unicode else "#.")[not certain]
    color = COLORS.get(part, "") if style.color else ""
    drawn = [(fill, color)] * cells
    if drawn and part and not style.color:  # a letter where there is no colour to tell the parts apart
        drawn[0] = (LETTERS[part] if certain else LETTERS[part].lower(), "")
    return drawn


def swatch(part: str, style: Style) -> tuple[str, str]:
    """Return what stands for a part in the legend."""
    if not style.color:
        return LETTERS[part], ""
    return ("█" if style.unicode else "#"), COLORS[part]


def _joined(pieces: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Put neighbours of one colour together."""
    found: list[tuple[str, str]] = []
    for text, color in pieces:
        if found and found[-1][1] == color:
            found[-1] = (found[-1][0] + text, color)
        else:
            found.append((text, color))
    return found
