"""The page of a comparison: what matters first, then settings, memory and findings; and its JSON."""

from __future__ import annotations

from itertools import groupby

from cfglint.features.compare.reading import listed
from cfglint.record import Record
from cfglint.report import verdicts
from cfglint.report.blocks import (
    DASH,
    INF,
    Blank,
    Column,
    Details,
    Line,
    Markup,
    Paragraph,
    Table,
    about,
    few,
    gib,
    item,
    many,
    note,
    range_of,
    spread,
    verdict,
    with_capacity,
)
from cfglint.report.encode import encode
from cfglint.report.forms import escaped
from cfglint.report.verdicts import said
from cfglint.text import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from cfglint.engine.knobs import Effect
    from cfglint.engine.rows import FitRow
    from cfglint.features.compare.compute import CompareSide, Comparison, Difference, Ratio
    from cfglint.findings import Span
    from cfglint.report import Style
    from cfglint.report.blocks import AnyCell, Block

    Rows = Sequence[tuple[str, str, str]]  # names with the values of A and B

_GAP, _INDENT = "  ", "    "
_LONGEST = 30  # cells of a value that is in a column
_WIDEST = 28  # cells of the names' column
_WIDEST_KEY, _LEAST_KEY = 60, 12  # of a key's column
_TABLES = 3  # targets whose parts are shown without --verbose
_FEW = 6  # names listed one by one in a sentence
_FEW_KEYS = 12
_FEW_COSTS = 4
_COLORS = {"A": "cyan", "B": "magenta"}
_WAYS = {"b": "A to B", "a": "B to A"}


def page(comparison: Comparison, style: Style, *, verbose: bool) -> Iterator[Block]:
    """Yield the page; Markdown has settings and keys as tables, memory and keys to unfold.

    JSON (``as_data``) holds all of it, verbose or not.
    """
    for name, side in comparison.sides:
        title = about(side.path, side.framework, side.model)
        md = f"**{name}** {{}}{'<br>' * (name == 'A')}"
        yield Paragraph(title, "", f"{name}  ", f"bold {_COLORS[name]}", "   ", md)
    yield Blank()
    yield item(_differing(comparison), "bold")
    for line in (*_fitting(comparison), *_costs(comparison), *_arithmetic(comparison.ratios)):
        yield item(line)
    derived = [d for d in comparison.derived if verbose or not d.own]
    keys = listed(comparison.keys, whole=verbose)
    few_keys = keys if verbose else keys[:_FEW_KEYS]
    left = len(keys) - len(few_keys)
    if style.markdown:
        yield from _markdown(comparison, derived)
        yield from _markdown_keys(comparison, few_keys, left)
    else:
        if not comparison.same:
            yield from _settings(comparison, style, verbose=verbose)
            yield from _derived(comparison, derived, style) if derived else ()
            yield from _keys(comparison, few_keys, left, style)
        yield from _memory(comparison, verbose=verbose)
    lines = _findings(comparison)
    if lines:
        yield Blank()
    yield from (item(line, "" if i else "bold") for i, line in enumerate(lines))


# ── Markdown ────────────────────────────────────────────────────────────────────────────────────────────
def _markdown(comparison: Comparison, derived: Sequence[Difference]) -> Iterator[Block]:
    settings = comparison.stated
    if settings:
        names = [Markup(f"`{shown(d.name)}`<br>{escaped(shown(d.about))}") for d in settings]
        yield Table([
            Column("setting", names, left=True),
            *_values(settings),
            Column("where", [d.where for d in settings], left=True),
            Column("what the change does", [_linked(d) for d in settings], left=True),
        ])  # fmt: skip
    if derived:
        yield Table([
            Column("what follows", [Markup(f"`{shown(d.name)}`") for d in derived], left=True),
            *_values(derived),
            Column("B / A", [_factor(d.b_by_a) for d in derived]),
            Column("", [shown(d.about) for d in derived], left=True),
        ])  # fmt: skip
    tables = [_parts(a, b, markdown=True) for a, b in comparison.telling]
    yield Details("Memory by part, GiB on the most loaded GPU", tables)


def _markdown_keys(comparison: Comparison, lines: Rows, left: int) -> Iterator[Block]:
    if not comparison.alike:
        yield from (item(line) for line in _unread(comparison))
    elif lines:
        columns = zip(("key", "A", "B"), zip(*lines, strict=True), strict=True)
        more = [Paragraph(f"and {left} more")] if left else []
        table = Table([Column(head, cells, left=True) for head, cells in columns])
        yield Details("Other keys that differ", [table, *more])


def _values(differences: Sequence[Difference]) -> tuple[Column, Column]:
    return Column("A", [d.a.shown for d in differences]), Column("B", [d.b.shown for d in differences])


def _linked(difference: Difference) -> Markup:
    """Return what a change does, with links to where that comes from."""
    links = "".join(f" [source]({s})" for s in _sources(difference) if s.startswith("https://"))
    return Markup(escaped(_effects(difference)) + links)


# ── two columns of values ───────────────────────────────────────────────────────────────────────────────
class _Widths(Record):
    """The cells of the columns for names and values."""

    name: int
    a: int
    b: int

    def header(self, title: str, last: str = "") -> Iterator[Block]:
        """Yield the heads; a title may be longer than the names."""
        line = f"{title.ljust(self.name + len(_GAP))}{_GAP}"
        a = max(self.a - (len(line) - self.name - 2 * len(_GAP)), 1)
        pieces = [(line, "dim"), ("A".rjust(a), "cyan"), (_GAP + "B".rjust(self.b), "magenta")]
        yield Blank()
        yield Line([*pieces, *([(_GAP + last, "dim")] if last else [])])

    def lines(self, name: str, a: str, b: str, style: Style) -> list[Line]:
        """Return a name with its values; what is too long for a column is below."""
        if len(a) <= self.a and len(b) <= self.b and len(name) <= self.name:
            line = f"{_GAP}{name.ljust(self.name)}{_GAP}"
            return [Line([(line, ""), (a.rjust(self.a), "cyan"), (_GAP + b.rjust(self.b), "magenta")])]
        from cfglint.report.forms import paragraph  # rich is only for pages

        below = [Line([(_GAP + name, "")])]
        for side, text in (("A", a), ("B", b)):
            value = _indented(text, _COLORS[side], lead=f"{_INDENT}{side} ")
            below += map(Line, paragraph(value, style))
        return below


def _widths(differences: Sequence[Difference], style: Style) -> _Widths:
    """Return the widths; long values are below."""
    name = min(max(len(shown(d.name)) for d in differences), _WIDEST)
    room = (style.width - name - 3 * len(_GAP)) // 2 if style.width else _LONGEST
    most = max(min(_LONGEST, room), 8)
    a, b = ([d.a.shown for d in differences], [d.b.shown for d in differences])
    return _Widths(name, _widest(a, most), _widest(b, most))


def _widest(texts: Iterable[str], most: int) -> int:
    return max([1, *(len(text) for text in texts if len(text) <= most)])


def _settings(comparison: Comparison, style: Style, *, verbose: bool) -> Iterator[Block]:
    settings = comparison.stated
    if settings:
        widths = _widths(settings, style)
        yield from widths.header("what differs")
        for group, members in groupby(settings, key=lambda d: d.group):
            yield Line([(group, "bold")])
            for d in members:
                yield from widths.lines(shown(d.name), d.a.shown, d.b.shown, style)
                yield from _setting(d, verbose=verbose)
    silent = [d for d in comparison.settings if d.by_default]
    for name, facts in (("A", [(d, d.a) for d in silent]), ("B", [(d, d.b) for d in silent])):
        own = [f"{d.name} {side.shown}" for d, side in facts if side.value is not None]
        if own:
            yield Blank()
            yield note(f"only in {name}, by default: {few(own, len(own) if verbose else _FEW)}")


def _setting(difference: Difference, *, verbose: bool) -> Iterator[Block]:
    """Yield what is below the values of a setting."""
    if difference.about:
        yield _indented(shown(difference.about), "dim", rest=_INDENT)
    yield _indented(difference.where, "dim")
    effects = _effects(difference)
    if effects:
        yield _indented(effects, "yellow" if difference.alters_results else "green")
    for source in _sources(difference) if verbose else ():
        yield _indented(shown(source), "dim", lead=f"{_INDENT}source: ")


def _indented(text: str, color: str, *, lead: str = _INDENT, rest: str = "      ") -> Paragraph:
    return Paragraph(text, color, lead, color, rest)


def _derived(comparison: Comparison, derived: Sequence[Difference], style: Style) -> Iterator[Block]:
    widths = _widths(derived, style)
    ratios = [_factor(d.b_by_a) for d in derived]
    room = max(*map(len, ratios), len("B / A"))
    several = len(comparison.a.rows) > 1 and not comparison.every
    target = f" [{shown(comparison.a.rows[0].target)}]" if several else ""
    yield from widths.header(f"derived values that differ{target}", "B / A")
    for d, ratio in zip(derived, ratios, strict=True):
        *above, line = widths.lines(shown(d.name), d.a.shown, d.b.shown, style)
        reason = shown(d.about)
        taken = sum(len(text) for text, _ in line.pieces) + len(_GAP) * 2 + room + len(reason)
        beside = not style.width or taken <= style.width
        cells = f"{_GAP}{ratio.ljust(room)}{_GAP}{reason if beside else ''}"
        yield from above
        yield Line([*line.pieces, (cells, "dim")])
        if reason and not beside:
            yield _indented(reason, "dim", rest=_INDENT)


def _keys(comparison: Comparison, lines: Rows, left: int, style: Style) -> Iterator[Block]:
    """Yield the keys outside the vocabulary."""
    if not comparison.alike:
        yield Blank()
        yield from map(note, _unread(comparison))
    elif lines:
        width = style.width
        most = max(min(_LONGEST, (width - _WIDEST) // 2), 8) if width else _LONGEST
        names, *values = zip(*lines, strict=True)
        a, b = (_widest(texts, most) for texts in values)
        room = max(width - a - b - 3 * len(_GAP), _LEAST_KEY) if width else _WIDEST_KEY
        widths = _Widths(min(max(map(len, names)), room), a, b)
        yield from widths.header("other keys")
        for line in lines:
            yield from widths.lines(*line, style)
        if left:
            yield _indented(f"and {left} more; --verbose lists them", "dim", lead=_GAP, rest=_GAP)


# ── memory ──────────────────────────────────────────────────────────────────────────────────────────────
def _memory(comparison: Comparison, *, verbose: bool) -> Iterator[Block]:
    rows = comparison.telling
    chosen = rows if verbose or comparison.every else rows[:_TABLES]
    for a, b in chosen:
        size = f"{gib(a.capacity_gib)} GiB" if a.capacity_gib is not None else "unstated capacity"
        yield Blank()
        yield Line([(f"{shown(a.target)} ({size}): GiB on the most loaded GPU", "bold")])
        yield _parts(a, b)
        for name, row in (("both", a),) if a == b else (("A", a), ("B", b)):
            if row.trainer is not None and row.trainer.allocated_gib.high < INF:
                allocated, reserved = spread(row.trainer.allocated_gib), spread(row.trainer.reserves)
                case = f" with {verdicts.case_of(row.cases[0])}," if row.cases else ""
                yield note(
                    f"{name}:{case} PyTorch allocates {allocated} GiB at its peak, reserves {reserved}"
                )
    if len(rows) > len(chosen):
        yield note(f"and {many(len(rows) - len(chosen), 'target')} more; --verbose shows the memory of all")


def _parts(a: FitRow, b: FitRow, *, markdown: bool = False) -> Table:
    """Return the parts that one of both has, the need, the verdict; on a page, when the trainer peaks."""
    names = [part for part, span in a.parts.items() if span.high > 0 or b.parts[part].high > 0]
    spans = [[*(row.parts[part] for part in names), row.need_of_parts] for row in (a, b)]
    heads: list[AnyCell] = [*names, "need" if markdown else "= need", "verdict"]
    columns: list[list[AnyCell]] = [
        [*map(range_of, own), verdict(row)] for row, own in zip((a, b), spans, strict=True)
    ]
    changes = [_change(before, after) for before, after in zip(*spans, strict=True)]
    moments = [
        "generation" if row.turns is not None and row.turns.generates
        else "" if row.trainer is None else row.trainer.moment or ""
        for row in (a, b)
    ]  # fmt: skip
    if any(moments) and not markdown:
        for column, text in zip((heads, *columns), ("peak at", *moments), strict=True):
            column.append(shown(text) or "-")
    first = Column(shown(a.target) if markdown else "", heads, left=True)
    if a == b and not markdown:
        return Table([first, Column("both", columns[0])], bold={len(names)})
    changes += [""] * (len(heads) - len(changes))
    both = (Column(name, cells) for name, cells in zip("AB", columns, strict=True))
    return Table([first, *both, Column("B - A", changes)], bold={len(names)})


def _change(a: Span, b: Span) -> str:
    """Return what B takes more than A, of the lower and of the upper bounds."""
    low, high = b.low - a.low, b.high - a.high
    if not abs(high) < INF:
        return "?"
    texts = [f"{size:+.2f}".replace("-0.00", "+0.00") for size in (low, high)]
    return " to ".join("0" if text == "+0.00" else text for text in dict.fromkeys(texts))


# ── the first sentences ─────────────────────────────────────────────────────────────────────────────────
def _differing(comparison: Comparison) -> str:
    """Say how much differs, and which of it is known to change results."""
    if comparison.same:
        return "nothing differs" + ("" if comparison.alike else " in what cfglint knows of both")
    number = sum(not d.by_default for d in comparison.settings)
    text = f"{many(number, 'setting')} differ{'s' * (number == 1)}"
    if comparison.keys:
        text += f", and {many(len(comparison.keys), 'key')} outside the vocabulary"
    altering = [d.name for d in comparison.settings if d.alters_results and not d.by_default]
    return f"{text}; these change results: {few(altering, _FEW)}" if altering else text


def _fitting(comparison: Comparison) -> Iterator[str]:
    """Say where each fits: a line for each target, or what of the whole catalogue is enough."""
    if comparison.every:
        same = comparison.a.rows == comparison.b.rows
        sides = (("both", comparison.a),) if same else comparison.sides
        yield from (_smallest(name, side) for name, side in sides)
        yield from _only(comparison.pairs)
        return
    for a, b in comparison.pairs:
        fits = f"each {_fits(a)}" if a == b else f"A {_fits(a)}; B {_fits(b)}"
        yield f"{with_capacity(a.target, a.capacity_gib)}: {fits}"


def _fits(row: FitRow) -> str:
    word = {
        "tight": f"is {said(row)}",
        "oom": "runs out of memory",
        "unknown": "could not be judged",
    }.get(row.verdict, row.verdict)
    note = verdicts.note(row)
    return f"{word}, needs {range_of(row.need_gib, 1)}{f', {note}' if note else ''}"


def _smallest(name: str, side: CompareSide) -> str:
    fits, row = "fit" if name == "both" else "fits", side.smallest
    if row is None:
        return f"{name} {fits} on no GPU of the catalogue"
    number = sum(row.verdict == "fits" for row in side.rows)
    size = with_capacity(row.target, row.capacity_gib)
    return f"{name} {fits} on {number} of {len(side.rows)} GPUs; the smallest is {size}"


def _only(pairs: Sequence[tuple[FitRow, FitRow]]) -> Iterator[str]:
    """Name the GPUs on which one config fits and not the other."""
    for name, lacking, rows in (("A", "B", pairs), ("B", "A", [(b, a) for a, b in pairs])):
        targets = [row.target for row, beside in rows if row.verdict == "fits" != beside.verdict]
        if targets:
            where = f"{many(len(targets), 'GPU')} where {lacking} may not"
            yield f"{name} fits on {where}: {few(targets, _FEW)}"


def _costs(comparison: Comparison) -> Iterator[str]:
    """Say what the change costs in speed, with the settings that cost it."""
    for to, way in _WAYS.items():
        costs = [
            f"{_effect(effect)} ({shown(d.name)})"
            for d in comparison.settings
            for effect in d.told_effects
            if not d.by_default and effect.notable and effect.to == to
        ]
        more = f"; and {len(costs) - _FEW_COSTS} more" if len(costs) > _FEW_COSTS else ""
        if costs:
            yield f"{way}: {'; '.join(costs[:_FEW_COSTS])}{more}"


def _arithmetic(ratios: Iterable[Ratio]) -> list[str]:
    """Say how much more the one does: ``on the same data: B takes 2 times A's steps per epoch``."""
    quantities: dict[float, list[str]] = {}
    for ratio in ratios:
        quantities.setdefault(ratio.b_by_a, []).append(ratio.what)
    parts = []
    for value, names in quantities.items():
        more, less, times = ("B", "A", value) if value > 1 else ("A", "B", 1 / value)
        what = " and ".join(names)
        has = f"{more} has {_factor(times)} times {less}'s {what}"
        parts.append(f"both have as many {what}" if value == 1 else has)
    return [f"on the same data: {'; '.join(parts)}"] if parts else []


# ── the sentences of a difference ───────────────────────────────────────────────────────────────────────
def _factor(ratio: float | None) -> str:
    """Return a ratio with as many digits as it takes, nothing where there is none."""
    return "" if ratio is None else f"{ratio:.4g}"


def _effects(difference: Difference) -> str:
    texts = "; ".join(map(_effect, difference.told_effects))
    line = f"{_WAYS[difference.way]}: {texts}" if difference.way else ""
    if difference.alters_results and "results change" not in line:
        return f"{line}; results change" if line else "results change"
    return line


def _effect(effect: Effect) -> str:
    """Return an effect in words, with its range where it states one that the words do not."""
    text = shown(effect.text)
    if effect.low is None or effect.high is None or "%" in text:
        return text
    size = f"{effect.low:g} %" if effect.low == effect.high else f"{effect.low:g}{DASH}{effect.high:g} %"
    figure = f"{effect.kind} {size}".strip()
    return f"{text} ({figure})" if text else figure


def _sources(difference: Difference) -> list[str]:
    """Return where what is said of the effects comes from."""
    return list(dict.fromkeys(effect.see for effect in difference.told_effects if effect.see))


# ── the last sentences ──────────────────────────────────────────────────────────────────────────────────
def _unread(comparison: Comparison) -> list[str]:
    """Say how much of each config no name of the vocabulary stands for."""
    return [
        f"{name}: {side.unread} of its {many(side.keys, 'key')} are outside cfglint's vocabulary"
        for name, side in comparison.sides
    ]


def _counted(side: CompareSide) -> str:
    """Return ``1 error, 2 warnings`` of a config's findings, by code."""
    numbers = {level: sum(rule.level == level for rule in side.findings) for level in _PLURALS}
    parts = [f"{n} {level if n == 1 else _PLURALS[level]}" for level, n in numbers.items() if n]
    return ", ".join(parts) or "none"


_PLURALS = {"error": "errors", "warning": "warnings", "info": "info"}


def _findings(comparison: Comparison) -> list[str]:
    """Say what is found in each, and what in one alone; nothing where nothing is found."""
    a, b = comparison.a, comparison.b
    if a.findings == b.findings:
        return [f"findings: {_counted(a)}, the same in both"] if a.findings else []
    lines = [f"findings: A {_counted(a)}; B {_counted(b)}"]
    for name, side, beside in (("A", a, b), ("B", b, a)):
        alone = [rule for rule in side.findings if rule not in beside.findings]
        if alone:
            rules = (f"{shown(rule.code)} {shown(rule.name)} ({rule.level})" for rule in alone)
            lines.append(f"only {name}: {', '.join(rules)}")
    return lines


# ── JSON ────────────────────────────────────────────────────────────────────────────────────────────────
_OF_TARGET = ("turns", "target", "capacity_gib", "fix", "varied")  # what no side has of its own


def as_data(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as ``schemas/compare.schema.json`` describes it."""
    sides: dict[str, Any] = {}
    for name, side in (("a", comparison.a), ("b", comparison.b)):
        smallest = {"smallest": side.smallest and side.smallest.target} if comparison.every else {}
        sides[name] = {**encode(side, omit=("rows",)), **smallest}
    return {
        "version": 1,
        **sides,
        "same": comparison.same,
        "settings": [_difference_data(d) for d in comparison.settings],
        "derived": [_difference_data(d) for d in comparison.derived],
        "keys": encode(comparison.keys, omit=("top",)),
        "ratios": [{**encode(ratio), "b_by_a": _rounded(ratio.b_by_a)} for ratio in comparison.ratios],
        "targets": [
            {
                "target": a.target,
                "capacity_gib": encode(a.capacity_gib),
                "a": encode(a, omit=_OF_TARGET),
                "b": encode(b, omit=_OF_TARGET),
            }
            for a, b in comparison.pairs
        ],
    }


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else float(f"{ratio:.6g}")


def _difference_data(difference: Difference) -> dict[str, Any]:
    data = encode(difference, omit=("effects", "uses", "own"))
    effects = [_effect_data(effect) for effect in difference.effects]
    return {**data, "b_by_a": _rounded(difference.b_by_a), "effects": effects}


def _effect_data(effect: Effect) -> dict[str, Any]:
    return {
        "from": "b" if effect.to == "a" else "a",
        "to": effect.to,
        "text": effect.text,
        "kind": effect.kind or None,
        "percent": None if effect.low is None or effect.high is None else [effect.low, effect.high],
        "see": effect.see or None,
    }
