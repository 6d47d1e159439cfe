"""The fact that widens a need most, and what to type to know it: asked where a verdict is tight."""

from __future__ import annotations

from cfglint.document.tree import split_key
from cfglint.engine.asks import answer
from cfglint.engine.estimates import estimates, middle, width
from cfglint.lang.types import UNITS
from cfglint.lang.values import Interval

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.facts import Values

_GIB = UNITS["GiB"][0]
_LIKELY = "need.likely"
_LEAST = 1 / 3  # of the range; what narrows it by less is not worth a question
_WIDE = 0.1  # of a need; one that is narrower is as well known as can be
_OWN = ("error.", "family.")  # what cfglint cannot know better, whatever is typed
_LENGTHS, _OBSERVED = "micro.tokens", "observed."
_ASSUMED = ("lengths.assumed", "prompts.assumed")
_SEVERAL = 12  # estimates to look at


def narrowing(values: Values, *, brief: bool = False) -> str | None:
    """Return ``40 of the range's 46 GiB: which version of TRL? add …``; None where nothing would.

    Each estimate that the need rests on is put at its middle in turn, with all else as it is. In ``brief`` it
    is the question alone, for a table of many targets, if there is one.
    """
    need = values[_LIKELY]
    whole, best, most = width(need), "", 0.0
    if not isinstance(need, Interval) or whole < _WIDE * need.hi:
        return None
    for name, value, _ in estimates(values, lambda facts: facts[_LIKELY], _SEVERAL):
        if name.startswith(_OWN) or (name == _LENGTHS and _is_told(values)):
            continue
        gain = whole - width(values.but({name: middle(value)})[_LIKELY])
        if gain > most and gain >= _LEAST * whole:
            best, most = name, gain
    if brief:
        return values.pack.asks.get(best)
    return _asking(best, f"{_short(most)} of the range's {_short(whole)} GiB", values) if best else None


def _is_told(values: Values) -> bool:
    """Whether lengths are asked for anyway, or were given."""
    assumed = any(values[name] is True for name in _ASSUMED)
    return assumed or values["trains"] is False or any(_OBSERVED in n for n in values.given)


def _asking(name: str, share: str, values: Values) -> str | None:
    """Return what a fact is asked by; of one that nobody can be expected to know, what it is."""
    pack, told = values.pack, answer(name, values)
    public = name.startswith("model.") or (name in pack.facts and "." not in name)
    keyed = name in values.bindings and bool(told.key)
    if (name in pack.asks or public or keyed) and told.do.startswith("add ") and not _says(told.key, values):
        return f"{share}: {told}"
    fact = pack.symbols().facts.get(name)
    return f"{share}: {fact.about}" if fact is not None and fact.about else None


def _says(key: str, values: Values) -> bool:
    """Whether the job has a key, and what it says is not enough."""
    return bool(key) and values.view is not None and values.view.has(tuple(split_key(key)))


def _short(memory: float) -> str:
    gib = memory / _GIB
    return f"{gib:.1f}" if gib < 9.95 else f"{gib:.0f}"
