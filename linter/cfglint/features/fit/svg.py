"""The fit as an SVG chart that needs nothing else: bars by part, the capacity as a line, light and dark."""

from __future__ import annotations

from xml.sax.saxutils import escape

from cfglint.engine.rows import PARTS, Fit, FitRow
from cfglint.features.fit.page import counts, headroom, split
from cfglint.features.fit.sentences import peaks
from cfglint.report import Style
from cfglint.report.blocks import INF, about, cut, gib, spread
from cfglint.report.verdicts import said
from cfglint.text import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


_WIDTH = 960
_MARGIN = 24
_ROW, _BAR = 26, 16  # height of a row, and of the bar in it
_LETTER = 6.7  # width of a character of the labels, about
_LONGEST = 34  # characters of a label, and of the title
_TITLE = 96
_RIGHT = 218  # for the numbers and the verdict
_BEYOND = 1.6  # a capacity further right than this many needs is an arrow at the edge
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_TICKS = 9

# class: fill in light, and in dark surroundings; no CSS variables, which few renderers beside browsers know
_FILLS = {
    "ground": ("#ffffff", "#0d1117"), "ink": ("#1f2328", "#e6edf3"), "faint": ("#656d76", "#9198a1"),
    "part-": ("#c8ced5", "#4d555e"), "part-engine": ("#3b6fb6", "#6ea0e6"),
    "part-weights": ("#3f9a5b", "#5cbf78"), "part-gradients": ("#55b3ab", "#74d0c8"),
    "part-optimizer": ("#9a6bb0", "#bd93d3"), "part-activations": ("#d9a400", "#e8bf3a"),
    "part-logits": ("#e0732b", "#f0914f"), "part-overhead": ("#8c959f", "#848d97"),
    "fits": ("#1a7f37", "#3fb950"), "tight": ("#9a6700", "#d29922"), "oom": ("#cf222e", "#f85149"),
    "unknown": ("#8250df", "#ab7df8"),
}  # fmt: skip
_STROKES = {
    "halo": ("#ffffff", "#0d1117"), "grid": ("#d8dee4", "#30363d"), "capacity": ("#1f2328", "#e6edf3"),
}  # fmt: skip
_STYLE = """\
text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
.title { font-size: 16px; font-weight: 600; }
.number { text-anchor: end; font-variant-numeric: tabular-nums; }
.tick { text-anchor: middle; font-size: 11px; }
.verdict { font-weight: 600; }
.grid { stroke-width: 1; }
.capacity { stroke-width: 2; }
.halo { stroke-width: 5; stroke-opacity: 0.7; }
.maybe { opacity: 0.38; }
"""


def _colors(dark: int) -> str:
    fills = [f".{name} {{ fill: {pair[dark]}; }}" for name, pair in _FILLS.items()]
    strokes = [f".{name} {{ stroke: {pair[dark]}; }}" for name, pair in _STROKES.items()]
    return "\n".join((*fills, *strokes))


def as_svg(fit: Fit) -> str:
    """Return the chart, a row for each target."""
    return "\n".join(_Chart(fit).lines()) + "\n"


class _Chart:
    def __init__(self, fit: Fit) -> None:
        self.fit = fit
        self.labels = [_label(row) for row in fit.rows]
        self.left = _MARGIN + max(72, max(map(len, self.labels)) * _LETTER) + 10
        self.right = _WIDTH - _MARGIN - _RIGHT
        tops = [row.need_gib.high if row.need_gib.high < INF else row.need_gib.low for row in fit.rows]
        capacities = [row.capacity_gib or 0 for row in fit.rows]
        top = max(tops)
        self.most = max(top, min(max(capacities), _BEYOND * top if top > 0 else INF)) * 1.03 or 1
        self.head = 90 + 18 * len(self.notes())
        self.foot = self.head + _ROW * len(fit.rows)
        self.height = self.foot + 56

    def notes(self) -> list[str]:
        varied = any(row.varied for row in self.fit.rows)
        return [note for note in (counts(self.fit), *(() if varied else peaks(self.fit.telling)[:1])) if note]

    def x(self, value: float) -> float:
        return round(self.left + min(value / self.most, 1) * (self.right - self.left), 2)

    def lines(self) -> Iterator[str]:
        title = cut(
            f"GPU memory of {about(self.fit.path, self.fit.framework, self.fit.model)}", _TITLE, Style()
        )
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {self.height}" width="{_WIDTH}" '
            f'height="{self.height}" role="img" aria-labelledby="title about">'
        )
        yield f'<title id="title">{_text(title)}</title>'
        rows = "; ".join(
            f"{name} {said(row)}, {spread(row.need_gib)} GiB"
            for name, row in zip(self.labels, self.fit.rows, strict=True)
        )
        yield f'<desc id="about">{_text(rows)}</desc>'
        dark = f"@media (prefers-color-scheme: dark) {{\n{_colors(1)}\n}}"
        yield f"<style>\n{_STYLE}{_colors(0)}\n{dark}\n</style>"
        yield f'<rect class="ground" width="{_WIDTH}" height="{self.height}" rx="8"/>'
        yield f'<text class="title ink" x="{_MARGIN}" y="36">{_text(title)}</text>'
        for i, note in enumerate(self.notes()):
            yield f'<text class="faint" x="{_MARGIN}" y="{58 + 18 * i}">{_text(note)}</text>'
        yield from self.legend()
        yield from self.grid()
        for i, row in enumerate(self.fit.rows):
            yield from self.row(row, self.labels[i], self.head + _ROW * i)
        yield f'<text class="faint" x="{_MARGIN}" y="{self.height - 14}">GiB on the most loaded GPU</text>'
        yield "</svg>"

    def legend(self) -> Iterator[str]:
        y = self.head - 38
        used = [p for p in PARTS if any(row.parts[p].high > 0 for row in self.fit.rows)]
        entries = [(f"part-{part}", part) for part in used]
        if any(row.need_gib.width > 0 for row in self.fit.rows):
            entries.append(("part-overhead maybe", "estimate, at most"))
        x = float(_MARGIN)
        for kind, word in entries:
            yield f'<rect class="{kind}" x="{x:.0f}" y="{y - 10}" width="12" height="12" rx="2"/>'
            yield f'<text class="ink" x="{x + 17:.0f}" y="{y}">{word}</text>'
            x += 17 + len(word) * _LETTER + 16
        yield f'<path class="capacity" d="M{x + 6:.0f} {y - 11}v14"/>'
        yield f'<text class="ink" x="{x + 17:.0f}" y="{y}">capacity</text>'

    def grid(self) -> Iterator[str]:
        step = next((s for s in _STEPS if self.most / s <= _TICKS), self.most)
        for i in range(int(self.most / step) + 1):
            x = self.x(i * step)
            yield f'<path class="grid" d="M{x} {self.head - 6}V{self.foot + 4}"/>'
            yield f'<text class="tick faint" x="{x}" y="{self.foot + 19}">{i * step:g}</text>'

    def row(self, row: FitRow, label: str, y: int) -> Iterator[str]:
        middle = y + _ROW / 2 + 4
        yield f"<g><title>{_text(_explained(row, label))}</title>"
        yield f'<text class="number ink" x="{self.left - 10:.1f}" y="{middle}">{_text(label)}</text>'
        start = 0.0
        for part, size, certain in split(row, self.most - row.need_of_parts.low):
            x, end = self.x(start), self.x(start + size)
            start += size
            if end > x:
                kind = f"part-{part}" if certain else f"part-{part} maybe"
                yield (
                    f'<rect class="{kind}" x="{x}" y="{y + (_ROW - _BAR) // 2}" width="{end - x:.2f}" '
                    f'height="{_BAR}"/>'
                )
        yield from self.capacity(row, y)
        capacity = "?" if row.capacity_gib is None else gib(row.capacity_gib)
        numbers, verdict = _WIDTH - _MARGIN - 66, _WIDTH - _MARGIN - 54
        need, word = spread(row.need_gib), said(row).partition(",")[0]  # there is room for no more
        yield f'<text class="number ink" x="{numbers}" y="{middle}">{need} of {capacity}</text>'
        yield f'<text class="verdict {row.verdict}" x="{verdict}" y="{middle}">{word}</text>'
        yield "</g>"

    def capacity(self, row: FitRow, y: int) -> Iterator[str]:
        if row.capacity_gib is None:
            return
        if row.capacity_gib <= self.most:
            line = f'd="M{self.x(row.capacity_gib)} {y + 2}V{y + _ROW - 2}"'
            yield f'<path class="halo" {line}/><path class="capacity" {line}/>'
        else:
            yield f'<path class="capacity" d="M{self.right - 6} {y + 9}l5 4l-5 4z"/>'


def _label(row: FitRow) -> str:
    name = " ".join((shown(row.target), *(f"{shown(n)}={shown(v)}" for n, v in row.varied)))
    return cut(name, _LONGEST, Style())


def _explained(row: FitRow, label: str) -> str:
    parts = ", ".join(f"{part} {spread(span)}" for part, span in row.parts.items() if span.high > 0)
    return f"{label}: {said(row)}, headroom {headroom(row)} GiB; {parts}"


def _text(text: str) -> str:
    """Return a text for XML; characters that it cannot hold become a question mark."""
    return escape(text.translate({0xFFFE: "?", 0xFFFF: "?"}), {'"': "&quot;"})
