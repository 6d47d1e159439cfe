"""Why a memory is a range, in words for findings and for ``cfglint fit``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfglint.engine.asks import answer
from cfglint.engine.describe import show_value
from cfglint.engine.estimates import Estimate, estimates
from cfglint.engine.likelihood import BOUND, LIKELY, as_shown
from cfglint.lang import tree as t
from cfglint.lang.emit import CompileError
from cfglint.lang.types import ANY, MEMORY
from cfglint.lang.values import INF, Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cfglint.engine.describe import Evaluator, Origins
    from cfglint.facts import Values
    from cfglint.lang.types import Type

_WIDE = 2  # times the lower bound; a range up to there needs no reason
_LENGTHS = "observed."  # where these are given, the answer has been
_BILLION = 1_000_000_000
_MINOR = 0.2  # of what the first estimate adds; less is no reason beside it


def told(
    evaluator: Evaluator, origins: Origins, found: Iterable[tuple[str, Interval, float]]
) -> Iterator[Estimate]:
    """Yield estimates in words."""
    facts = evaluator.symbols.facts
    for name, value, gain in found:
        about = facts[name].about if name in facts else ""
        yield Estimate(name, _shown(value, evaluator.type_of(name)), about, gain, _advice(name, origins))


def _shown(value: Interval, kind: Type) -> str:
    """Print a range; numbers of parameters in billions."""
    if kind.whole and value.lo >= _BILLION and value.hi < INF:
        return f"{show_value(Interval(value.lo / _BILLION, value.hi / _BILLION), ANY)} billion"
    return show_value(value, kind)


def _advice(name: str, origins: Origins) -> str:
    """Return what to type to know an estimate for certain; nothing where no flag and no key gives it."""
    values = origins.values
    asks = name in values.pack.asks and not any(_LENGTHS in given for given in values.given)
    bound = any(isinstance(binding.source, t.Path) for binding in origins.bindings.get(name, ()))
    if not (asks or bound or name.startswith("model.")):
        return ""
    told = answer(name, values)
    return told.do if told.key or told.do.startswith("add ") else ""


# ── a finding's reason for a wide range ──────────────────────────────────────────────────────────────────
def reason(requirement: t.Expr, evaluator: Evaluator, origins: Origins) -> str:
    """Say what makes the widest memory that a requirement compares a wide range; nothing if none is wide."""
    seen = as_shown(origins.values) or origins.values
    wide = [
        (value.hi - value.lo, side)
        for part in t.walk(requirement)
        if isinstance(part, t.Compare)
        for side in part.operands
        if (value := _wide(side, evaluator, seen)) is not None
    ]
    if not wide:
        return ""
    _, side = max(wide, key=lambda each: each[0])
    found = estimates(seen, evaluator.compiled(side)[0])
    named = [(LIKELY if name == BOUND else name, value, gain) for name, value, gain in found]
    return _because(list(told(evaluator, origins, named)), origins)


def _wide(side: t.Expr, evaluator: Evaluator, values: Values) -> Interval | None:
    """Return a memory that is a range of more than a factor of two, and not for want of facts."""
    try:
        value, kind = evaluator(side, values)
    except CompileError:  # a member of an enumeration, which only the other side explains
        return None
    if kind.dimension != MEMORY or not isinstance(value, Interval) or value.needs:
        return None
    low, high = (value.lo, value.hi) if value.hi > 0 else (-value.hi, -value.lo)
    return value if _WIDE * low < high < INF else None


def _because(found: Sequence[Estimate], origins: Origins) -> str:
    """Return ``the range is wide because …``: what is not known, with what to type, and what is estimated."""
    missing: dict[str, list[str]] = {}
    guessed = []
    for each in found:
        if each.width < _MINOR * found[0].width:
            continue
        if each.advice or each.name.partition(".")[0] in origins.symbols.registries:
            key = origins.key(each.name)
            named = each.about if key == each.name and each.about else key
            missing.setdefault(each.advice, []).append(f"{named} ({each.value})")
        else:
            guessed.append(f"{each.about or each.name} ({each.value})")
    clauses = [
        f"{_listed(names)} {'is' if len(names) == 1 else 'are'} not known{advice and f': {advice}'}"
        for advice, names in missing.items()
    ]
    if guessed:
        clauses.append(f"cfglint can only estimate {_listed(guessed)}")
    return f"the range is wide because {'; and '.join(clauses)}" if clauses else ""


def _listed(texts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))
