"""The message of a finding: a rule's text with the values in its braces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cfglint.document.spoken import named
from cfglint.document.tree import dotted
from cfglint.engine.describe import show_value
from cfglint.engine.likelihood import as_shown, at_worst
from cfglint.lang import tree as t
from cfglint.lang.tree import KEY
from cfglint.lang.types import ANY, MEMORY, UNITS, Type
from cfglint.lang.values import INF, Interval, needs_of
from cfglint.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cfglint.engine.describe import Evaluator, Origins
    from cfglint.facts import Values

_LONGEST = 2_000  # characters of a message; a rule may repeat a value that is long
_LISTED = 16  # items of a list in a message
_NAMED = 3  # missing names in a sentence
_NEARLY_NOTHING = 10  # an upper bound this many times the lower one says all that a range would
_GIB = UNITS["GiB"][0]
_IN_GIB = 0.1  # GiB; from here on a memory is printed in GiB
_SHOWN = 0.005  # GiB; less is 0.00
_FEWEST = 3  # sizes in a row that are a list of parts
_CAPABILITY = "compute capability "
_FIRST = re.compile(r"(?s)(?P<before>|.*[.:;] |.*\()(?P<label>\w+(?: \w+)?) ")  # "…. Weights "
_NOT_SET = re.compile(r" \([^()]* not set\)")
_NEXT = re.compile(r"(?:,| and|, and) (?P<label>[a-z]\w*(?: \w+)?) ")  # ", gradients "


def message(
    rule: t.Rule,
    evaluator: Evaluator,
    origins: Origins,
    variables: Mapping[str, object] | None = None,
) -> str:
    """Return the first of a rule's messages that fits, with the values in its braces.

    Texts stand as they are, lists without brackets, and ``{key(fact)}`` is the key that a fact is read from,
    ``{key(item)}`` the one that an item of a list has.
    ``Weights {a}, gradients {b}, optimizer {c}``, three or more memories with labels, is a list of parts: it
    is printed in one unit, the largest part first, without the parts that are 0.
    A memory is its 90 % interval; where the rule would hold for that, the bound that it does not hold for is
    named, ``12.5-20.1 GiB, at worst 25 GiB``.
    """
    shown = _Shown(rule, evaluator, origins.values, variables)
    for say in rule.says:
        if say.when is None or evaluator(say.when, origins.values, variables)[0] is True:
            parts = [
                part if isinstance(part, str) else _told(part, evaluator, origins, variables, shown)
                for part in say.parts
            ]
            text = _NOT_SET.sub(_said_once(), "".join(_joined(parts)))
            return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return ""


def _said_once() -> Callable[[re.Match[str]], str]:
    """Return what leaves each reason why a number is open in a message once."""
    seen: set[str] = set()

    def once(match: re.Match[str]) -> str:
        known = match[0] in seen
        seen.add(match[0])
        return "" if known else match[0]

    return once


class _Told(Record):
    """A value of a message, its type, and what it is without a look at its neighbours."""

    value: object
    kind: Type
    text: str

    @property
    def size(self) -> float | None:
        """The upper bound of a known memory in GiB; None for what is none."""
        if self.kind.dimension != MEMORY or isinstance(self.value, bool) or needs_of(self.value):
            return None
        high = self.value.hi if isinstance(self.value, Interval) else self.value
        return high / _GIB if isinstance(high, (int, float)) and high < INF else None


class _Shown:
    """The memories of a rule as people see them, found out where a message has one."""

    def __init__(
        self, rule: t.Rule, evaluator: Evaluator, values: Values, variables: Mapping[str, object] | None
    ) -> None:
        self.rule, self.evaluator, self.values, self.variables = rule, evaluator, values, variables
        self._seen: tuple[Values | None, bool] | None = None

    def of(self, part: t.Expr, value: object) -> tuple[object, float | None]:
        """Return a memory's interval, and the bound above it where the rule rests on that."""
        if self._seen is None:
            seen = as_shown(self.values)
            holds = seen is not None and self._value(self.rule.requirement, seen) is True
            self._seen = seen, holds
        seen, holds = self._seen
        interval = value if seen is None else self._value(part, seen)
        return interval, at_worst(value, interval) if holds and isinstance(part, t.Name) else None

    def _value(self, node: t.Expr, values: Values) -> object:
        return self.evaluator(node, values, self.variables)[0]


def _told(
    part: t.Expr,
    evaluator: Evaluator,
    origins: Origins,
    variables: Mapping[str, object] | None,
    shown: _Shown,
) -> _Told:
    if isinstance(part, t.Call) and part.function == KEY:
        name = part.arguments[0].name  # type: ignore[union-attr] # see check.py
        items = variables or {}
        return _Told(name, ANY, _key_of(items[name], name) if name in items else origins.key(name))
    value, kind = evaluator(part, origins.values, variables)
    if isinstance(value, (list, tuple)) and kind.kind != "version":
        return _Told(value, kind, ", ".join(_items(value)) or "none")
    if kind.dimension != MEMORY or not isinstance(value, Interval) or needs_of(value):
        return _Told(value, kind, spoken(value, kind))
    interval, worst = shown.of(part, value)
    more = "" if worst is None else f", at worst {show_value(worst, kind)}"
    return _Told(interval, kind, spoken(interval, kind) + more)


def _key_of(item: object, name: str) -> str:
    """Return the key of a mapping's item, ``quick_test``; of a list's item its place, ``servers[2]``."""
    path = getattr(item, "path", None)
    if not isinstance(path, tuple) or not path:
        return name
    return path[-1] if isinstance(path[-1], str) else dotted(path)


def _items(values: Sequence[object]) -> Iterator[str]:
    yield from (show_value(value, ANY) for value in values[:_LISTED])
    if len(values) > _LISTED:
        yield "…"


def _joined(parts: Sequence[str | _Told]) -> Iterator[str]:
    """Yield the texts of a message; a list of parts is one of them."""
    at = 0
    while at < len(parts):
        part = parts[at]
        listed = _labels(parts, at)
        if isinstance(part, str) and listed:
            start = _FIRST.fullmatch(part)
            yield start["before"] if start is not None else part
            yield _sizes(listed)
            at += 2 * len(listed)
            continue
        if isinstance(part, str):
            yield part
        elif at and str(parts[at - 1]).endswith(_CAPABILITY) and part.kind.kind == "number":
            yield show_value(part.value, replace(part.kind, tenths=True))
        else:
            yield part.text
        at += 1


def _labels(parts: Sequence[str | _Told], at: int) -> list[tuple[str, _Told]]:
    """Return the labels and memories of a list of parts that begins at ``at``; nothing if none does."""
    found: list[tuple[str, _Told]] = []
    form = _FIRST
    for text, told in zip(parts[at::2], parts[at + 1 :: 2], strict=False):
        label = form.fullmatch(text) if isinstance(text, str) else None
        if label is None or not isinstance(told, _Told) or told.size is None:
            break
        found.append((label["label"], told))
        form = _NEXT
    return found if len(found) >= _FEWEST else []


def _sizes(listed: Sequence[tuple[str, _Told]]) -> str:
    """Return a list of parts: ``Activations 12.50 GiB, weights 0.02 GiB``."""
    sizes = {label: told.size or 0 for label, told in listed}
    one_unit = max(sizes.values()) >= _IN_GIB
    kept = [each for each in listed if sizes[each[0]] >= (_SHOWN if one_unit else 1 / _GIB)] or list(listed)
    kept.sort(key=lambda each: -sizes[each[0]])
    texts = [f"{label} {spoken(d.value, d.kind, 'GiB' if one_unit else None)}" for label, d in kept]
    text = ", ".join(text[0].lower() + text[1:] for text in texts)
    return text[0].upper() + text[1:] if listed[0][0][0].isupper() else text


def spoken(value: object, kind: Type, unit: str | None = None) -> str:
    """Print a value for a sentence.

    What missing names leave open is a bound, or ``?``, with the names.
    """
    needs = needs_of(value)
    missing = f" ({_names(sorted(needs))} not set)" if needs else ""
    if not isinstance(value, Interval):
        return value if isinstance(value, str) else show_value(value, kind, unit=unit) + missing
    if not missing:
        return estimated(value, kind, unit)
    if value.hi <= 2 * value.lo:
        return show_value(value, kind, unit=unit)
    if value.lo > 0:
        return f"at least {show_value(value.lo, kind)}{missing}"
    return (f"at most {show_value(value.hi, kind)}" if 0 < value.hi < INF else "?") + missing


def estimated(value: object, kind: Type, unit: str | None = None) -> str:
    """Print an estimate; one from nearly nothing up to a bound is that bound."""
    if not isinstance(value, Interval) or kind.dimension != MEMORY:
        return show_value(value, kind, unit=unit)
    near = 0 <= value.lo < value.hi / _NEARLY_NOTHING < INF
    return "up to " + show_value(value.hi, kind, unit=unit) if near else show_value(value, kind, unit=unit)


def _names(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(named, names[:_NAMED])) + more
