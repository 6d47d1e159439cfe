"""What compiled rules call while they run: conversions of a file's values, patterns, quantifiers."""

from __future__ import annotations

from cfglint.budget import spend
from cfglint.lang.values import (
    INF,
    NOTHING,
    ODD,
    UNRULED,
    Interval,
    Open,
    Unknown,
    absolute,
    and_,
    binary_logarithm,
    ceiling,
    divide,
    divisors,
    equal,
    floor,
    highest,
    hull,
    if_,
    implies,
    interval,
    lowest,
    maximum,
    member,
    minimum,
    modulo,
    nearest_whole,
    needs_of,
    not_,
    or_,
    parts,
    square_root,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from cfglint.lang.values import Number, Truth

    Piece: TypeAlias = tuple[tuple[str, str], ...]  # ("=", literal), ("?", ""), ("int", name), ("word", name)


_ITEMS = "items that rules go over"
_ODD = frozenset({ODD})
_LARGE = 2**63  # whole numbers beyond it become floats, so that arithmetic stays cheap
_HUGE = 1e300  # nobody configures that; it would overflow sooner or later


def adapted(targets: object, parents: object, names: object, layers: object) -> Number:
    """Return in how many of a model's layers one of some modules has an adapter."""
    from cfglint.lang import modules  # patterns are for jobs with adapters

    return modules.adapted(targets, parents, names, layers)


def _lacking(value: object) -> frozenset[str]:
    return needs_of(value) or _ODD


def as_number(value: object) -> Number:
    """Return a value of the file as a number; a number in quotes counts, anything else is unknown."""
    kind = type(value)
    if kind is int or kind is float:
        if -_LARGE < value < _LARGE:  # type: ignore[operator]
            return value  # type: ignore[return-value]
        return float(value) if -_HUGE < value < _HUGE else Interval(-INF, INF, _ODD)  # type: ignore[operator, arg-type]
    if kind is Interval:
        return value  # type: ignore[return-value]
    if isinstance(value, str) and len(value) < 100:
        try:
            number = float(value)
        except ValueError:
            return Interval(-INF, INF, _ODD)
        if -_HUGE < number < _HUGE:
            return (
                int(number) if number == int(number) and "." not in value and abs(number) < 2**53 else number
            )
    return Interval(-INF, INF, _lacking(value))


def as_given(value: Number) -> Number:
    """Return a number without its history, so that comparisons take it for itself."""
    return Interval(value.lo, value.hi, value.needs) if type(value) is Interval else value


def as_bool(value: object) -> Truth:
    """Return a value of the file as a boolean."""
    if value is True or value is False or type(value) is Open:
        return value
    if isinstance(value, str):
        word = value[:6].lower()
        if word in ("true", "false"):
            return word == "true"
    if type(value) is int and value in (0, 1):
        return value == 1
    return Open(_lacking(value))


def as_text(value: object) -> object:
    """Return a value of the file as a string."""
    if isinstance(value, (str, Unknown)):
        return value
    if type(value) is float or (type(value) is int and -_LARGE < value < _LARGE):
        return str(value)
    return Unknown(_lacking(value))


_TRUTHS = {"0": "false", "1": "true"}  # as Python takes them, and parsers of flags


def as_member(value: object, spellings: Mapping[str, str]) -> object:
    """Return a value of the file as a member of an enumeration, by any of its spellings."""
    if isinstance(value, Unknown):
        return value
    if isinstance(value, str):
        word = value if len(value) > 100 else value.lower()
    elif value is None or type(value) is bool:
        word = "null" if value is None else str(value).lower()
    else:
        text = as_text(value)
        if not isinstance(text, str):
            return text
        word = text if text in spellings else _TRUTHS.get(text, text)
    return spellings.get(word) or Unknown(_ODD)


def as_list(value: object) -> object:
    """Return a value of the file as a list."""
    return value if isinstance(value, (list, tuple, Unknown)) else Unknown(_lacking(value))


def as_version(value: object) -> object:
    """Return a value of the file as a version: ``"0.4.1"`` is (0, 4, 1); zeros at the end do not count."""
    if isinstance(value, (tuple, Unknown)):
        return value
    text = as_text(value)
    if not isinstance(text, str):
        return text
    numbers = []
    for part in text[:100].strip().removeprefix("v").split("."):
        if not (part.isascii() and part.isdigit()):
            break
        numbers.append(int(part))
    if not numbers:
        return Unknown(_ODD)
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def older(a: object, b: object) -> Truth:
    """Whether version ``a`` comes before version ``b``."""
    a, b = as_version(a), as_version(b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return a < b
    return Open(needs_of(a) | needs_of(b))


def as_count(value: Truth) -> Number:
    """1 for true, 0 for false, between them while it is open."""
    return interval(0, 1, value.needs) if isinstance(value, Open) else int(value)


def nothing(names: frozenset[str], kind: str) -> object:
    """Return the unknown value of a type; ``needs`` are the names that would settle it."""
    if kind == "number":
        return Interval(-INF, INF, names)
    return Open(names) if kind == "bool" else Unknown(names)


_SIMPLE = 64  # numbers that one is derived from
_SANE = frozenset({"numbers of a sane size"})


def lost(kind: str) -> object:
    """Return the value of a function in which a number overflowed a float: unknown."""
    return nothing(_SANE, kind)


def field(value: object, name: str) -> object:
    """``x.name`` of a record: a dict, a mapping of a file, or an object that lists its fields in slots."""
    if hasattr(value, "needs"):
        return Unknown(_lacking(value))
    if hasattr(value, "get"):
        item = value.get(name)
        if (item is None or type(item) not in _PLAIN) and name not in value.keys():  # type: ignore[attr-defined]  # noqa: SIM118
            return Unknown(frozenset({name}))
        return item
    return (
        getattr(value, name) if name in getattr(type(value), "__slots__", ()) else Unknown(frozenset({name}))
    )


_SHORTER = frozenset({"a shorter text"})
_CHARACTERS = 16  # of a text, for one step
_PLAIN = frozenset({str, int, float, bool, list, dict, tuple})


def like(text: object, pieces: tuple[Piece, ...]) -> Truth:
    """Whether a text matches a pattern; null matches none."""
    if not isinstance(text, str):
        return Open(needs_of(text)) if text is not None else False
    if len(text) > MAX_TEXT:
        return Open(_SHORTER)
    spend(len(text) // _CHARACTERS, _ITEMS)
    return match(pieces, text) is not None


def capture(text: object, pieces: tuple[Piece, ...], default: object, kind: str) -> object:
    """Return what a capture matched; without a match ``default``, a value or the names of what is missing."""
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        return nothing(needs_of(text) or _SHORTER, kind)
    spend(len(text) // _CHARACTERS, _ITEMS)
    captures = match(pieces, text)
    if captures is None:
        return nothing(default, kind) if type(default) is frozenset else default
    return next(value for name, value in captures.items() if name)


def divided(text: object, separator: object, place: int) -> object:
    """Return the part of a string before (0) or after (2) the first separator; without one, all is before."""
    if not isinstance(text, str) or not isinstance(separator, str):
        return Unknown(needs_of(text) | needs_of(separator))
    return (text.partition(separator) if separator else (text, "", ""))[place]


def renumbered(text: object, letter: object, number: object) -> object:
    """Return a string with another number behind a letter, ``d2p1`` for ``d4p1``; or with both at its end."""
    if not isinstance(text, str) or not isinstance(letter, str) or not isinstance(number, int):
        return Unknown(needs_of(text) | needs_of(letter) | needs_of(number))
    start = 0
    while (at := text.find(letter, start)) >= 0:
        end = start = at + len(letter)
        while end < len(text) and text[end].isdigit():
            end += 1
        if end > start and not (at and text[at - 1].isalpha()):
            return f"{text[:start]}{number}{text[end:]}"
    return f"{text}{letter}{number}"


def length(items: object) -> Number:
    """How many items a list has."""
    return len(items) if isinstance(items, (list, tuple)) else Interval(0, INF, needs_of(items))


def chosen(arms: list[object], subject: object, settled: Truth, kind: str, label: str = "") -> object:
    """Return the value of a ``match``: its arm, or the hull of the arms that may still apply.

    ``settled`` says whether one of the arms is meant at all, ``label`` what the subject is, in words.
    """
    if settled is not True:
        if label and isinstance(subject, bool):
            said = label if subject else f"{label} false"
        else:
            said = f"the {label} {subject}" if label else f"{subject}"
        return nothing(needs_of(subject) or frozenset({UNRULED + said}), kind)
    return arms[0] if len(arms) == 1 else hull(arms, needs_of(subject))


def arm(subject: object, places: Mapping[str, int], other: int) -> int:
    """Which arm of a ``match`` over texts is meant; -1 where the subject is not known."""
    if hasattr(subject, "needs"):
        return -1
    return places.get(subject, other) if isinstance(subject, str) else other


def all_over(items: object, test: Callable[[object], Truth]) -> Truth:
    """Whether ``test`` holds for every item."""
    if isinstance(items, Unknown):
        return Open(items.needs)
    spend(len(items), _ITEMS)  # type: ignore[arg-type]
    result: Truth = True
    for item in items:  # type: ignore[attr-defined]
        result = and_(result, test(item))
        if result is False:
            break
    return result


def any_over(items: object, test: Callable[[object], Truth]) -> Truth:
    """Whether ``test`` holds for one item at least."""
    return not_(all_over(items, lambda item: not_(test(item))))


def count_over(items: object, test: Callable[[object], Truth]) -> Number:
    """For how many items ``test`` holds."""
    if isinstance(items, Unknown):
        return Interval(0, INF, items.needs)
    spend(len(items), _ITEMS)  # type: ignore[arg-type]
    total: Number = 0
    for item in items:  # type: ignore[attr-defined]
        total = total + as_count(test(item))
    return total


def sum_over(items: object, value: Callable[[object], Number]) -> Number:
    """Return the sum of ``value`` over a list."""
    if isinstance(items, Unknown):
        return Interval(-INF, INF, items.needs)
    spend(len(items), _ITEMS)  # type: ignore[arg-type]
    total: Number = 0
    for item in items:  # type: ignore[attr-defined]
        total = total + value(item)
    return total


def extreme_over(items: object, value: Callable[[object], Number], pick: Callable[..., Number]) -> Number:
    """Return the `minimum` or `maximum` (``pick``) of the values of a list."""
    if isinstance(items, Unknown):
        return Interval(-INF, INF, items.needs)
    spend(len(items), _ITEMS)  # type: ignore[arg-type]
    values = [value(item) for item in items]  # type: ignore[attr-defined]
    return pick(*values) if values else Interval(-INF, INF, frozenset({"an item"}))


def max_of_roles(roles: list[tuple[Truth, Number]]) -> Number:
    """Return the largest of the roles' values; a role that may be absent can only raise it."""
    lo = hi = -INF
    needs = NOTHING
    for present, value in roles:
        low, high, names = parts(value)
        lo, hi = max(lo, low if present is True else -INF), max(hi, high)
        needs |= names | needs_of(present)
    return interval(lo, hi, needs) if roles else Interval(-INF, INF, frozenset({"a role"}))


def min_of_roles(roles: list[tuple[Truth, Number]]) -> Number:
    """Return the smallest of the roles' values; a role that may be absent can only lower it."""
    return -max_of_roles([(present, -value) for present, value in roles])


def again(truth: Open, left: Number, operator: str, right: Number) -> Truth:
    """Decide an open comparison once more where its sides rest on one number more than once."""
    seen: set[int] = set()
    waiting: list[Number] = [left, right]
    while waiting and len(seen) < _SIMPLE:
        value = waiting.pop()
        if type(value) is Interval:
            if id(value) in seen:
                from cfglint.lang.rearrange import decide

                return decide(truth, left, operator, right)
            seen.add(id(value))
            waiting += value.made[1:] if value.made is not None else ()
    return truth


# ── text patterns ──────────────────────────────────────────────────────────────────────────────────────────
# ``*`` is any text, ``?`` one character, ``{name:int}`` a whole number, ``{name:word}`` a word.
# A capture takes as many characters as it can, and the pieces between stars match as far to the left as they
# can. So the time is bounded by text times pattern, whatever the pattern: there is nothing to backtrack into.
# The compiler takes patterns apart (emit.py).
MAX_TEXT = 100_000  # characters; a longer text is no engine name
_MAX_RUN = 18  # characters of a capture; whole numbers of that length are still exact


def _in_run(char: str, kind: str) -> bool:
    return char in "0123456789" if kind == "int" else char.isalnum() or char in "_-."


def _here(piece: Piece, text: str, at: int, captures: dict[str, int | str]) -> int:
    """Return where ``piece`` ends if it stands at ``at``, else -1."""
    for kind, what in piece:
        end = at
        if kind == "=":
            end += len(what) if text.startswith(what, at) else 0
        elif kind == "?":
            end += at < len(text)
        else:
            while end < len(text) and end - at <= _MAX_RUN and _in_run(text[end], kind):
                end += 1
            if not 0 < end - at <= _MAX_RUN:
                return -1
            captures[what] = int(text[at:end]) if kind == "int" else text[at:end]
        if end == at:
            return -1
        at = end
    return at


def _splits(piece: Piece, text: str, at: int) -> bool:
    """Whether a capture at ``at`` would begin in the middle of a number or a word."""
    kind = piece[0][0] if piece else "="
    return kind in ("int", "word") and _in_run(text[at - 1], kind)


def match(pieces: tuple[Piece, ...], text: str) -> dict[str, int | str] | None:
    """Return what the captures hold if the whole ``text`` matches, else None."""
    captures: dict[str, int | str] = {}
    at = _here(pieces[0], text, 0, captures)
    if at < 0 or len(pieces) == 1:
        return captures if at == len(text) else None
    for piece in pieces[1:-1]:
        first_text = piece[0][1] if piece and piece[0][0] == "=" else ""
        first = at
        while at <= len(text):
            if first_text:  # it can only stand where that does
                at = text.find(first_text, at)
                if at < 0:
                    return None
            end = -1 if at > first and _splits(piece, text, at) else _here(piece, text, at, captures)
            if end >= 0:
                break
            at += 1
        else:
            return None
        at = end
    last = pieces[-1]
    if len(last) == 1 and last[0][0] == "=":
        fits = len(text) - len(last[0][1]) >= at and text.endswith(last[0][1])
    else:  # the last piece has to end where the text ends
        fits = not last or any(
            (start == at or not _splits(last, text, start))
            and _here(last, text, start, captures) == len(text)
            for start in range(at, len(text) + 1)
        )
    return captures if fits else None


# What generated code sees; it gets no builtins, so a rule file can reach nothing else.
NAMESPACE: dict[str, object] = {
    "__builtins__": {},
    "str": str,
    "len": len,
    "type": type,
    "Interval": Interval,
    "PLAIN": frozenset({str, int, float, bool}),  # types of values that need nothing
    "Open": Open,
    **{
        function.__name__: function
        for function in (
            absolute, adapted, again, all_over, and_, any_over, arm, as_bool, as_count, as_given, as_list,
            as_member, as_number, as_text, as_version, binary_logarithm, capture, ceiling, chosen,
            count_over, divide, divided, divisors, equal, extreme_over, field, floor, highest, hull, if_,
            implies, length, like, lost, lowest, max_of_roles, maximum, member, min_of_roles, minimum,
            modulo, nearest_whole, needs_of, not_, nothing, older, or_, renumbered, square_root, sum_over,
        )
    },
    "INF": INF,
    "NAMES": frozenset,
    "OverflowError": OverflowError,
}  # fmt: skip
