"""Options made together: the facts that move, and what has to be in the file.

Two options contradict each other where they want two values of one fact or of one place. What was moved in
exchange is another matter: half the micro-batch doubles the accumulation steps, a quarter of the GPUs takes
four times as many, and both together take eight times as many.
"""

from __future__ import annotations

from collections import Counter
from math import prod

from cfglint.lang.types import is_number
from cfglint.record import Record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cfglint.repair.invert import Written
    from cfglint.repair.tracks import Option


class _Scaled(Record):
    """An option whose partner goes to ``value``, so that it makes up for other options, too."""

    partner: str
    value: object

    def applied(self, option: Option) -> Option | None:
        """Return an option with the partner's new value; None where a key cannot have it in proportion."""
        old = option.facts[self.partner]
        followed = {self.partner, *option.followers}
        keys = option.exchanged[self.partner][1]
        written: list[Written] = []
        places: list[tuple[object, object]] = []
        for each, (place, told) in zip(option.written, option.places, strict=True):
            if each.path not in keys:
                written.append(each)
                places.append((place, told))
                continue
            value = _in_proportion(each.value, old, self.value)
            if value is None:
                return None
            written.append(replace(each, value=value))
            places.append((place, value))
        facts = {name: self.value if name in followed else v for name, v in option.facts.items()}
        return replace(option, facts=facts, written=written, places=places)


def combined(options: Iterable[Option]) -> dict[str, object] | None:
    """Return the facts that options change together; None where they contradict each other."""
    facts: dict[str, object] = {}
    places: dict[object, object] = {}
    scaled = in_exchange(tuple(options))
    if scaled is None:
        return None
    for option in scaled:
        for name, value in option.facts.items():
            if name in facts and facts[name] != value:
                return None
            facts[name] = value
        for key, value in option.places:
            if places.setdefault(key, (type(value), value)) != (type(value), value):  # 1 is not true there
                return None
    return facts


def in_exchange(options: Sequence[Option]) -> Sequence[Option] | None:
    """Return options whose partners make up for all of them; None where no whole value does that."""
    counts = Counter(partner for option in options for partner in option.exchanged)
    for partner, count in counts.items():
        told = next((each for each in options if each.knob == partner), None) or _product(options, partner)
        if told is not None:
            options = _left_to(told, options, partner)
        if count < 2 or told is not None:
            continue
        own = [option for option in options if partner in option.exchanged]
        old = own[0].exchanged[partner][0]
        values = [option.facts[partner] for option in own]
        if not is_number(old) or not all(is_number(value) for value in values):
            return None
        value = _whole(old * prod(value / old for value in values if is_number(value)))
        if value is None:
            return None
        moved = [_Scaled(partner, value).applied(option) for option in own]
        if None in moved:
            return None
        changed = {id(option): new for option, new in zip(own, moved, strict=True) if new is not None}
        options = [changed.get(id(option), option) for option in options]
    return options


def _product(options: Sequence[Option], partner: str) -> Option | None:
    """Return the option that sets the product of what others move, from which the script makes a partner."""
    own = [option for option in options if partner in option.exchanged]
    for option in own:
        keys = {key for each in own for key, _ in each.places} - {key for key, _ in option.places}
        if option.factors and keys <= option.factors:
            return option
    return None


def _left_to(told: Option, options: Sequence[Option], partner: str) -> Sequence[Option]:
    """Return options of which those from which the script computes a partner leave it to another one."""
    value = told.facts[partner]
    return [
        replace(option, facts={**option.facts, partner: value})
        if option is not told and partner in option.exchanged and not option.exchanged[partner][1]
        else option
        for option in options
    ]


def _in_proportion(written: object, old: object, new: object) -> object | None:
    if not (is_number(written) and is_number(old) and is_number(new)) or not old:
        return None
    return _whole(written * new / old)


def _whole(value: float) -> int | None:
    near = round(value)
    return near if near >= 1 and abs(near - value) < 1e-9 * near else None


def distinct(options: Iterable[Option]) -> tuple[Option, ...]:
    """Return each move once; nothing where a knob would go to two values."""
    distinct: dict[str, Option] = {}
    for option in options:
        if option.knob in distinct and not option.says(distinct[option.knob].facts):
            return ()
        distinct[option.knob] = option
    return tuple(distinct.values())
