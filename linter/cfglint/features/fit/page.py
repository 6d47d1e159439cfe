"""The page of a fit: a table of targets, their memory by part, what the peak is, fixes, what is not known."""

from __future__ import annotations

from itertools import accumulate, pairwise

from cfglint.engine.memory import VERDICTS
from cfglint.engine.rows import FEW, Fit, FitRow, Remedy, Wanted, smallest
from cfglint.features.fit.sentences import cases_of_parts, is_open, machines, peaks, phases
from cfglint.findings import Job, Span
from cfglint.report import verdicts
from cfglint.report.blocks import (
    INF,
    Blank,
    Cell,
    Column,
    Details,
    Line,
    Paragraph,
    Range,
    Table,
    about,
    aligned,
    cut,
    few,
    gib,
    item,
    joined,
    kind_of,
    range_of,
    spread,
    title_of,
    verdict,
    with_capacity,
)
from cfglint.report.encode import encode, of_fix
from cfglint.report.forms import escaped
from cfglint.report.order import Lines
from cfglint.report.verdicts import said
from cfglint.text import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from cfglint.report import Style
    from cfglint.report.blocks import AnyCell, Block

_PIPE = 100  # cells of a bar's line where there is no terminal
_NARROWEST = 8  # cells of a name that is cut, and of a bar
_WIDEST_BAR = 72
_LONGEST = 24  # cells of a target's name above its numbers
_NAMED = 6  # facts of one kind that are named one by one
_ELSEWHERE = "this file does not name the model; try the file that starts the job, or a facts file"
_MOST_COLUMNS = 6  # targets side by side; more of them are below each other, and the values side by side
LETTERS = {
    "engine": "E", "weights": "W", "gradients": "G", "optimizer": "O", "activations": "A", "logits": "L",
    "overhead": "V",
}  # fmt: skip
COLORS = {
    "engine": "blue", "weights": "green", "gradients": "cyan", "optimizer": "magenta",
    "activations": "yellow", "logits": "red", "overhead": "bright_black",
}  # fmt: skip
_COUNTED = {"unknown": "not judged"}
_UNSHARED = 0.02  # of a need; parts that add up to less by more than this leave a part without a name
_SHARE = 0.8  # of the bar's cells stand for the capacity; the others show what is over it


def page(fit: Fit, style: Style) -> Iterator[Block]:
    """Yield the page, the verdicts first; Markdown folds the parts and puts them behind the sentences."""
    varied = any(row.varied for row in fit.rows)
    if style.markdown or varied or len(fit.rows) > FEW:
        unit = "GiB on the most loaded GPU"
        title = about(fit.path, fit.framework, fit.model)
        yield Paragraph(title if style.markdown else f"{title}: {unit}", md=f"**{{}}**: {unit}")
        yield Blank()
        yield _matrix(fit.rows) if varied else _table(fit.rows, style)
        yield from map(Paragraph, _noted(fit, style, varied=varied))
    else:
        jobs = [Job(fit.path, 0, fit.framework or "", fit.model, row) for row in fit.rows]
        title, *told = verdicts.block(jobs)
        yield Paragraph(title, "bold")
        yield from (
            Paragraph(line.lstrip(), "", " " * (len(line) - len(line.lstrip())), rest="    ") for line in told
        )
    count = Paragraph(counts(fit), "bold", md="{}.")
    if style.markdown:
        yield from _fixes(fit)
        if count.text:
            yield count
        if not varied:
            yield Details(
                "Memory by part",
                [
                    _parts(fit.telling, style, 0, 0),
                    *(
                        item(line)
                        for told in (cases_of_parts, phases, peaks, machines)
                        for line in told(fit.telling)
                    ),
                    *_estimates(fit),
                ],
            )
        yield from _wanted(fit, style)
        return
    if not varied:
        yield Blank()
        yield from _bars(fit, style)
    yield from _fixes(fit)
    if not varied:
        yield from map(Paragraph, cases_of_parts(fit.telling))
        yield from map(Paragraph, phases(fit.telling))
        yield from map(Paragraph, peaks(fit.telling))
        yield from map(Paragraph, machines(fit.telling))
    if fit.estimates:
        where = f" on {shown(fit.telling[0].target)}" if len(fit.rows) > 1 else ""
        yield Paragraph(f"why the need{where} is a range:")
        yield from _estimates(fit)
    yield from _wanted(fit, style)
    if count.text:
        yield count


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────
def _table(rows: Sequence[FitRow], style: Style) -> Table:
    title = "GPU" if style.markdown else "target"
    columns = [
        Column(title, [shown(row.target) for row in rows], left=True, cut=_NARROWEST),
        Column("capacity", ["?" if row.capacity_gib is None else gib(row.capacity_gib) for row in rows]),
        Column("need, 90 %", [_range(row, row.need_gib, 1) for row in rows]),
        Column("headroom", [headroom(row) for row in rows], drop=1),
        Column("verdict", [verdict(row) for row in rows], left=True),
    ]
    notes = [verdicts.note(row) for row in rows]
    if style.markdown and len(set(notes)) > 1:
        columns.append(Column("", notes, left=True))
    return Table(columns)


def _noted(fit: Fit, style: Style, *, varied: bool) -> Iterator[str]:
    """Yield what holds of the rows of a table, where no column says it, then what to type."""
    notes = {verdicts.note(row) for row in fit.rows}
    if len(notes) == 1:
        yield from (f"all: {note}" for note in notes if note)
    elif not style.markdown and not varied:
        rows = [(row, verdicts.note(row)) for row in fit.telling]
        yield from (f"{shown(row.target)}: {note}" for row, note in rows if note)
    yield from dict.fromkeys(row.ask for row in fit.rows if row.ask is not None and row.verdict != "unknown")


def _matrix(rows: Sequence[FitRow]) -> Table:
    """Return what --vary asks for: verdict and need for every value and target, side by side."""
    names = [shown(name) for name, _ in rows[0].varied]
    cells = {(tuple(shown(value) for _, value in row.varied), shown(row.target)): row for row in rows}
    choices = list(dict.fromkeys(choice for choice, _ in cells))
    targets = list(dict.fromkeys(target for _, target in cells))
    turned = len(targets) > _MOST_COLUMNS  # then the targets are below each other
    if turned:
        heads = [Column(_crossed(names), targets, left=True)]
        columns = [_verdicts(_crossed(c), [cells[c, t] for t in targets]) for c in choices]
    else:
        heads = [Column(name, [c[i] for c in choices]) for i, name in enumerate(names)]
        columns = [_verdicts(t, [cells[c, t] for c in choices]) for t in targets]
    return Table([*heads, *columns], fixed=len(heads))


def _range(row: FitRow, span: Span, places: int | None = None) -> Range:
    """Return GiB as a cell."""
    return range_of(Span(span.low, INF) if is_open(row, span) else span, places)


def _crossed(words: Sequence[str]) -> str:
    return " × ".join(words)


def _verdicts(title: str, rows: Sequence[FitRow]) -> Column:
    """Return a column of verdicts, flush left, with the needs after them, flush right."""
    needs = [str(need) for need in aligned([_range(row, row.need_gib, 1) for row in rows])]
    need_width = max(map(len, needs))
    width = max(*(len(said(row)) for row in rows), len(title) - need_width - 1)
    cells = []
    for row, need in zip(rows, needs, strict=True):
        cell = verdict(row, f" {_range(row, row.need_gib, 1)}")
        ((word, color),) = cell.pieces
        cells.append(Cell([(word.ljust(width), color), (f" {need:>{need_width}}", "")], cell.md))
    return Column(title, cells)


# ── the parts ────────────────────────────────────────────────────────────────────────────────────────────
def _bars(fit: Fit, style: Style) -> Iterator[Block]:
    rows = [row for row in fit.telling if row.need_of_parts.low > 0 or row.need_of_parts.high < INF]
    if not rows:
        return
    width = style.width or _PIPE
    room = max(*(len(shown(row.target)) for row in rows), len("activations") + 2)
    room = min(room, max(width // 3, _NARROWEST))
    cells = min(max(width - room - 2, _NARROWEST), _WIDEST_BAR)
    for row in rows:
        name = cut(shown(row.target), room, style)
        yield Line([(name.ljust(room) + "  ", ""), *bar(row, cells, style)])
    if any(row.capacity_gib is not None for row in rows):
        yield Line([(" " * (room + 2) + "0" + "capacity".rjust(limit(cells)), "dim")])
    yield Blank()
    yield _parts(rows, style, room, width)


def _parts(rows: Sequence[FitRow], style: Style, room: int, width: int) -> Table:
    """Return the parts' numbers, a column for each target; a part that nobody has is left out."""
    parts = [part for part in rows[0].parts if any(row.parts[part].high > 0 for row in rows)]
    names: list[AnyCell] = [
        part if style.markdown else Cell([swatch(part, style), (f" {part}", "")]) for part in parts
    ]
    off = [_off(row) for row in rows]
    if any(off):
        names.append("error" if style.markdown else "± error" if style.unicode else "+ error")
    columns = [Column("part", [*names, "need" if style.markdown else "= need"], left=True, least=room)]
    for row, error in zip(rows, off, strict=True):
        cells: list[AnyCell] = [_range(row, row.parts[part]) for part in parts]
        cells += [error or ""] * any(off)
        need: list[AnyCell] = [_range(row, row.need_of_parts)]
        cells = cells + need if style.markdown else aligned(cells) + aligned(need)
        name = shown(row.target)
        columns.append(Column(name if style.markdown else cut(name, _LONGEST, style), cells))
    return Table(columns, bold={len(parts) + any(off)}, fixed=1, width=width)


def _off(row: FitRow) -> Range | None:
    """Return what the parts lack of the need: the estimate's own error; None where that is little."""
    if is_open(row, row.need_of_parts) or any(is_open(row, span) for span in row.parts.values()):
        return None
    whole = row.turns.larger if row.turns is not None else row.need_of_parts
    low = whole.low - sum(span.low for span in row.parts.values())
    high = whole.high - sum(span.high for span in row.parts.values())
    if max(abs(low), abs(high)) <= _UNSHARED * row.need_of_parts.high:
        return None
    return Range(f"{low:+.2f}", f"{high:+.2f}")


# ── a row's memory as a bar: solid up to what is certain, shaded up to the upper bound ───────────────────
def bar(row: FitRow, cells: int, style: Style) -> list[tuple[str, str]]:
    """Return pieces of text with their colours, ``cells`` wide in all."""
    full = limit(cells)
    scale = (
        row.capacity_gib
        or (row.need_of_parts.high if row.need_of_parts.high < INF else row.need_of_parts.low)
        or 1
    )
    low, high = (_cells(bound, scale, full) for bound in (row.need_of_parts.low, row.need_of_parts.high))
    drawn = [*_stack(row, low, certain=True, style=style)]
    drawn += _stack(row, max(min(high, cells + 1) - low, 0), certain=False, style=style)
    line = "│" if style.unicode else "|"
    if row.capacity_gib is not None:
        drawn += [(" ", "")] * (full - len(drawn))
        drawn.insert(full, (line, "bold"))
    if len(drawn) > cells:
        drawn = [*drawn[: cells - 1], ("▶" if style.unicode else ">", "bold")]
    drawn += [(" ", "")] * (cells - len(drawn))
    return joined(drawn)


def limit(cells: int) -> int:
    """Return how many cells of a bar stand for the capacity; its line comes after them."""
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
    unshared = row.need_of_parts.low - sum(size for _, size in sizes) if certain else 0
    if unshared > _UNSHARED * row.need_of_parts.low:
        sizes.append(("", unshared))
    return sizes


def split(row: FitRow, most: float) -> list[tuple[str, float, bool]]:
    """Return part, GiB and certainty from left to right, at most ``most`` of what is uncertain."""
    pieces = []
    for certain, whole in (
        (True, row.need_of_parts.low),
        (False, min(row.need_of_parts.width, max(most, 0))),
    ):
        sizes = _sizes(row, certain=certain)
        total = sum(size for _, size in sizes)
        pieces += [(part, size / total * whole, certain) for part, size in sizes if total > 0]
    return pieces


def _stack(row: FitRow, cells: int, *, certain: bool, style: Style) -> list[tuple[str, str]]:
    """Share ``cells`` among the parts."""
    sizes = _sizes(row, certain=certain)
    drawn = []
    for (part, _), share in zip(sizes, shares([size for _, size in sizes], cells), strict=True):
        drawn += _segment(part, share, certain=certain, style=style)
    return drawn


def shares(sizes: Sequence[float], cells: int) -> list[int]:
    """Return whole numbers in the proportion of ``sizes``, ``cells`` in all."""
    whole = sum(sizes)
    if whole <= 0:
        return [0] * (len(sizes) - 1) + [cells]
    ends = [round(upto / whole * cells) for upto in accumulate(sizes)]
    return [end - start for start, end in pairwise((0, *ends))]


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


# ── the sentences ────────────────────────────────────────────────────────────────────────────────────────
def headroom(row: FitRow) -> str:
    """Return what is left or lacking, ``from 2.46 free to 2.70 short``; ``?`` where nothing bounds it."""
    left = row.headroom
    if left is None or left.high <= -INF or (left.low <= -INF and row.need_gib.low <= 0):
        return "?"
    low, high = left.low, left.high
    if low <= -INF or (row.verdict == "unknown" and low < 0):
        return f"at most {high:.2f} free" if high >= 0 else f"at least {-high:.2f} short"
    if low < 0 <= high:
        return f"from {high:.2f} free to {-low:.2f} short"
    small, large = sorted((abs(low), abs(high)))
    amount = f"{small:.2f}" if f"{small:.2f}" == f"{large:.2f}" else f"{small:.2f} to {large:.2f}"
    return f"{amount} {'free' if low >= 0 else 'short'}"


def counts(fit: Fit) -> str:
    """Return ``9 fit, 2 tight, 53 oom; the smallest that fits is a40 (44.42 GiB)``; nothing for one row."""
    if len(fit.rows) < 2:
        return ""
    numbers = {word: sum(row.verdict == word for row in fit.rows) for word in VERDICTS}
    parts = [
        f"{n} {'fit' if word == 'fits' and n > 1 else _COUNTED.get(word, word)}"
        for word, n in numbers.items()
        if n
    ]
    row = smallest(fit.rows)
    if row is None or row.varied:
        return ", ".join(parts)
    return f"{', '.join(parts)}; the smallest that fits is {with_capacity(row.target, row.capacity_gib)}"


def _estimates(fit: Fit) -> Iterator[Block]:
    """Yield what widens the need: ``slack is 1..1.25 (…): 3.20 GiB of the range``."""
    for estimate in fit.estimates:
        reason = f" ({shown(estimate.about)})" if estimate.about else ""
        value = f" {shown(estimate.value)}" if estimate.value else ""
        text = f"{shown(estimate.name)}{value}{reason}: {gib(estimate.width)} GiB of the range"
        yield item(text, lead="  ", rest="    ")
    advice = dict.fromkeys(estimate.advice for estimate in fit.estimates if estimate.advice)
    if advice:
        yield item(f"to narrow it: {'; '.join(map(shown, advice))}", lead="  ", rest="    ")


def missing(wanted: Wanted) -> str:
    """Return the names of missing facts, some of many."""
    return few(wanted.names, _NAMED)


def wanting(wanted: Wanted, *, tries: bool = True) -> str:
    """Say what is missing and what to type: ``num_gpus: how many GPUs? add :N to --gpu``.

    Without ``tries``, advice that names ``--vary`` is left out.
    """
    reason = f": {shown(wanted.about)}" if wanted.about else ""
    if not wanted.advice or ("--vary" in wanted.advice and not tries):
        return f"{missing(wanted)}{reason}"
    return f"{missing(wanted)}{reason}{'' if reason.endswith('?') else ';'} {wanted.advice}"


def _wanted(fit: Fit, style: Style) -> Iterator[Block]:
    if fit.wanted:
        lead = "Missing" if style.markdown else "missing"
        keyless = any("model_path" in w.names and not w.advice.startswith("set") for w in fit.wanted)
        yield Paragraph(f"{lead}: {_ELSEWHERE}" if keyless else f"{lead}:")
    for wanted in fit.wanted:
        yield item(wanting(wanted), lead="  ", rest="    ")


def _fixes(fit: Fit) -> Iterator[Block]:
    """Yield the fixes, one that several targets share once, with the targets."""
    shared: dict[object, tuple[Remedy, list[str]]] = {}
    for row in fit.rows:
        if row.fix is not None:
            fix = row.fix.fix
            key = fix.title, fix.effect, fix.applicability, row.fix.verdict, row.fix.need_gib
            shared.setdefault(key, (row.fix, []))[1].append(shown(row.target))
    for remedy, names in shared.values():
        kind, targets = kind_of(remedy.fix), ", ".join(names)
        several = len(fit.rows) > 1
        yield Paragraph(
            f"{title_of(remedy.fix)}; it then needs {spread(remedy.need_gib)} GiB: {remedy.verdict}",
            lead=f"fix ({kind}){f' [{targets}]' if several else ''}: ",
            lead_style="green",
            md=f"**Fix**{f' on {escaped(targets)}' if several else ''} ({kind}): {{}}",
        )


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────
def as_data(fit: Fit, text: str) -> dict[str, Any]:
    """Return the fit as ``schemas/fit.schema.json`` describes it."""
    lines = Lines({fit.path: text})
    numbers: dict[object, int] = {}
    rows = [_row_data(lines, fit.path, row, numbers) for row in fit.rows]
    return {"version": 1, "path": fit.path, "rows": rows}


def _row_data(lines: Lines, path: str, row: FitRow, numbers: dict[object, int]) -> dict[str, Any]:
    data: dict[str, Any] = encode(row, omit=("fix", "turns", "varied"))
    data["fix"] = None
    if row.fix is not None:
        # A fix that several targets share has one number, as in the report of check.
        row.fix.fix.number = numbers.setdefault(row.fix.fix.edits, len(numbers) + 1)
        data["fix"] = {**of_fix(lines, path, row.fix.fix), "then": encode(row.fix, omit=("fix",))}
    if row.varied:
        data["varied"] = {name: _value(text) for name, text in row.varied}
    return data


def _value(text: str) -> object:
    """Return a value of --vary as JSON knows it."""
    import json

    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, (int, float, bool)) else text
