"""Sentences and numbers that the forms of a comparison share."""

from __future__ import annotations

from cfglint.features.fit.words import DASH, gib, spread
from cfglint.report.order import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cfglint.engine.knobs import Effect
    from cfglint.engine.memory import FitRow, Span
    from cfglint.features.compare.compute import Comparison, Difference, Found, Half, Ratio, Side
    from cfglint.features.compare.raw_keys import Key

NOT_SET = "-"
_FEW = 6  # names told one by one in a sentence
_FEW_KEYS = 12
_FEW_COSTS = 4
_TOGETHER = 3  # keys of a section that only one file has, from which on the section is told instead
_FULL = 4  # significant digits of a ratio


def few(names: Sequence[str], most: int = _FEW) -> str:
    """Return names, some of many."""
    told = ", ".join(map(shown, names[:most]))
    return told + (f" and {len(names) - most} more" if len(names) > most else "")


def who(half: Half) -> str:
    """Return ``a.yaml (areal, Qwen/Qwen2.5-0.5B-Instruct)``."""
    about = ", ".join(part for part in (half.framework, half.model) if part)
    return f"{shown(half.path)} ({shown(about)})" if about else shown(half.path)


def many(number: int, thing: str) -> str:
    """Return ``1 key`` or ``2 keys``."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def told(comparison: Comparison) -> tuple[Difference, ...]:
    """Return the settings that a file of the two says, or that both know."""
    return tuple(d for d in comparison.settings if not d.by_default)


# ── the first lines ─────────────────────────────────────────────────────────────────────────────────────
def differing(comparison: Comparison) -> str:
    """Say how much differs, and which of it is known to change results."""
    settings = told(comparison)
    if comparison.same:
        return "nothing differs" + ("" if comparison.alike else " in what cfglint knows of both")
    said = f"{many(len(settings), 'setting')} differ{'s' * (len(settings) == 1)}"
    if comparison.keys:
        said += f", and {many(len(comparison.keys), 'key')} that no setting stands for"
    altering = [d.name for d in settings if d.alters]
    if altering:
        said += f"; results change with {few(altering)}"
    return said


def fitting(comparison: Comparison, *, dash: str = DASH) -> list[str]:
    """Say where each fits: a line for each target, or what of the whole catalogue is enough."""
    if comparison.every:
        if same_memory(comparison):
            return [_smallest(("both", comparison.a))]
        return [*map(_smallest, (("A", comparison.a), ("B", comparison.b))), *_only(comparison)]
    lines = []
    for one, other in pairs(comparison):
        size = f" ({gib(one.capacity_gib)} GiB)" if one.capacity_gib is not None else ""
        if one == other:
            lines.append(f"{shown(one.target)}{size}: each {_verdict(one, dash)}")
            continue
        lines.append(f"{shown(one.target)}{size}: A {_verdict(one, dash)}; B {_verdict(other, dash)}")
    return lines


def same_memory(comparison: Comparison) -> bool:
    """Whether both need the same on every target."""
    return comparison.a.rows == comparison.b.rows


def pairs(comparison: Comparison) -> list[tuple[FitRow, FitRow]]:
    """Return both rows of each target."""
    return list(zip(comparison.a.rows, comparison.b.rows, strict=True))


def _verdict(row: FitRow, dash: str) -> str:
    word = {"fits": "fits", "tight": "is tight", "oom": "runs out of memory", "unknown": "is unknown"}
    return f"{word[row.verdict]}, needs {spread(row.need_gib, dash=dash)}"


def smallest(half: Half) -> FitRow | None:
    """Return the smallest GPU that a config surely fits on."""
    fitting = [row for row in half.rows if row.verdict == "fits" and row.capacity_gib is not None]
    return min(fitting, key=lambda row: row.capacity_gib or 0, default=None)


def _smallest(one: tuple[str, Half]) -> str:
    name, half = one
    row = smallest(half)
    fits = "fit" if name == "both" else "fits"
    if row is None:
        return f"{name} {fits} on no GPU of the catalogue"
    number = sum(row.verdict == "fits" for row in half.rows)
    size = f"{shown(row.target)} ({gib(row.capacity_gib or 0)} GiB)"
    return f"{name} {fits} on {number} of {len(half.rows)} GPUs; the smallest is {size}"


def _only(comparison: Comparison) -> list[str]:
    """Name the GPUs on which one fits and the other does not."""
    lines = []
    rows = pairs(comparison)
    for name, other, both in (("A", "B", rows), ("B", "A", [(b, a) for a, b in rows])):
        found = [one.target for one, two in both if one.verdict == "fits" and two.verdict != "fits"]
        if found:
            lines.append(
                f"{name} fits on {many(len(found), 'GPU')} where {other} does not surely: {few(found)}"
            )
    return lines


def telling(rows: list[tuple[FitRow, FitRow]]) -> list[tuple[FitRow, FitRow]]:
    """Return the GPU of a catalogue that tells the two apart, else the smallest that both fit on."""
    verdicts = [(a.verdict, b.verdict) for a, b in rows]
    apart = [i for i, both in enumerate(verdicts) if both[0] != both[1] and "fits" in both]
    fit = [i for i, both in enumerate(verdicts) if both == ("fits", "fits")]
    return [rows[i] for i in (apart or fit or [0])[:1]]


def arithmetic(ratios: Iterable[Ratio]) -> list[str]:
    """Say how much more the one does: ``on the same data B takes 2 times A's steps per epoch``."""
    by_value: dict[float, list[str]] = {}
    for one in ratios:
        by_value.setdefault(one.value, []).append(one.what)
    parts = []
    for value, whats in by_value.items():
        what = " and ".join(whats)
        if value == 1:
            parts.append(f"both have as many {what}")
            continue
        more, less, times = ("B", "A", value) if value > 1 else ("A", "B", 1 / value)
        parts.append(f"{more} has {factor(times)} times {less}'s {what}")
    return [f"on the same data {'; '.join(parts)}"] if parts else []


def costs(comparison: Comparison) -> list[str]:
    """Say what the change costs in speed, with the settings that cost it."""
    by_way: dict[str, list[str]] = {"b": [], "a": []}
    for one in told(comparison):
        ways = [to for to in ("b", "a") if any(e.to == to for e in one.effects)][:1]
        for e in one.effects:
            if e.to in ways and e.notable:
                by_way[e.to].append(f"{effect(e)} ({shown(one.name)})")
    lines = []
    for to, way in (("b", "A to B"), ("a", "B to A")):
        some = by_way[to]
        more = f"; and {len(some) - _FEW_COSTS} more" if len(some) > _FEW_COSTS else ""
        lines += [f"{way}: {'; '.join(some[:_FEW_COSTS])}{more}"] if some else []
    return lines


def factor(value: float) -> str:
    """Return a ratio with as many digits as it takes."""
    return f"{value:.{_FULL}g}"


# ── a difference ────────────────────────────────────────────────────────────────────────────────────────
def value(side: Side) -> str:
    """Return a side's value, a dash where the config does not give the fact."""
    return shown(side.shown) if side.known else NOT_SET


def where(one: Difference) -> str:
    """Say which keys of the files give a fact."""
    a, b = one.a, one.b
    if a.key and a.key == b.key:
        return f"{shown(a.key)}: A {_at(a)}, B {_at(b)}"
    if a.kind == b.kind != "file" and a.source == b.source and a.key == b.key:
        return shown(a.source)
    return f"A {_place(a)}; B {_place(b)}"


def _place(side: Side) -> str:
    if side.kind == "missing":
        return "not set"
    if side.key and side.kind == "file":
        return f"{shown(side.key)} {_at(side)}"
    return shown(side.source)


def _at(side: Side) -> str:
    if side.kind != "file":
        return shown(side.source)
    return shown(side.source) if side.source else "this file"


def effects(one: Difference) -> list[str]:
    """Say what the change does: from A to B, else what the way back does, since then B is without it."""
    found: list[str] = []
    for to, name in (("b", "A to B"), ("a", "B to A")):
        lines = [effect(e) for e in one.effects if e.to == to]
        if lines and not (to == "a" and found):
            found.append(f"{name}: {'; '.join(lines)}")
    if one.alters:
        if found and "results change" in found[-1]:
            return found
        found.append("results change")
    return ["; ".join(found)] if found else []


def effect(one: Effect) -> str:
    """Return an effect in words, with its range where it states one that the words do not."""
    said = shown(one.text)
    if one.low is None or one.high is None or "%" in said:
        return said
    size = f"{one.low:g} %" if one.low == one.high else f"{one.low:g}{DASH}{one.high:g} %"
    return f"{said} ({one.kind + ' ' if one.kind else ''}{size})" if said else f"{one.kind} {size}".strip()


def sources(one: Difference) -> list[str]:
    """Return where what is said of the effects comes from."""
    way = next((to for to in ("b", "a") if any(e.to == to for e in one.effects)), "")
    return list(dict.fromkeys(e.see for e in one.effects if e.see and e.to == way))


def groups(found: Iterable[Difference]) -> list[tuple[str, list[Difference]]]:
    """Return differences by the vocabulary's sections, in its order."""
    by_group: dict[str, list[Difference]] = {}
    for one in found:
        by_group.setdefault(one.group, []).append(one)
    return list(by_group.items())


# ── keys ────────────────────────────────────────────────────────────────────────────────────────────────
def listed(keys: Sequence[Key], *, verbose: bool) -> tuple[list[tuple[str, str, str]], int]:
    """Return keys with both values and how many are left out; a section of one file alone is one line."""
    found: dict[str, list[Key]] = {}
    for one in keys:
        found.setdefault(one.top or one.key, []).append(one)
    lines: list[tuple[str, str, str]] = []
    for top, together in found.items():
        if len(together) >= _TOGETHER and not verbose:
            number = many(len(together), "key")
            alone = together[0].a is None
            lines.append((shown(top), NOT_SET if alone else number, number if alone else NOT_SET))
            continue
        for one in together:
            a, b = (NOT_SET if v is None else shown(v) for v in (one.a, one.b))
            lines.append((shown(one.key), a, b))
    most = len(lines) if verbose else _FEW_KEYS
    return lines[:most], len(lines) - len(lines[:most])


def unread(half: Half, name: str) -> str:
    """Say how much of a config no name of the vocabulary stands for."""
    return f"{name}: {half.unread} of its {many(half.keys, 'key')} are in no name that cfglint knows"


# ── memory, findings ────────────────────────────────────────────────────────────────────────────────────
def change(a: Span, b: Span) -> str:
    """Return what B takes more than A, of the lower and of the upper bounds."""
    low, high = b.low - a.low, b.high - a.high
    if not abs(high) < float("inf"):
        return "?"
    texts = [f"{size:+.2f}".replace("-0.00", "+0.00") for size in (low, high)]
    if texts[0] == texts[1]:
        return "0" if texts[0] == "+0.00" else texts[0]
    return " to ".join("0" if text == "+0.00" else text for text in texts)


def counted(half: Half) -> str:
    """Return ``1 error, 2 warnings`` of a config's findings, by code."""
    parts = []
    for level, several in (("error", "errors"), ("warning", "warnings"), ("info", "info")):
        number = sum(one.level == level for one in half.found)
        if number:
            parts.append(f"{number} {level if number == 1 else several}")
    return ", ".join(parts) or "none"


def findings(comparison: Comparison) -> list[str]:
    """Say what is found in each, and what in one alone; nothing where nothing is found."""
    a, b = comparison.a, comparison.b
    if not (a.found or b.found):
        return []
    if a.found == b.found:
        return [f"findings: {counted(a)}, the same in both"]
    lines = [f"findings: A {counted(a)}; B {counted(b)}"]
    for name, one, other in (("A", a, b), ("B", b, a)):
        alone = [f for f in one.found if f not in other.found]
        if alone:
            lines.append(f"only {name}: {', '.join(map(_found, alone))}")
    return lines


def lacking(half: Half, row: FitRow, name: str) -> str:
    """Say why a need has no bound, and who tells more; nothing where it has one."""
    if not row.needs or row.need_gib.high < float("inf"):
        return ""
    return f"{name}: not known are {few(row.needs)}; cfglint fit {shown(half.path)} says what would tell"


def _found(one: Found) -> str:
    return f"{shown(one.code)} {shown(one.name)} ({one.level})"
