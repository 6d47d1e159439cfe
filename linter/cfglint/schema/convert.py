"""What each loader makes of a value that is not yet of the kind that a field needs.

A function is given a value, the kinds that the field takes, and the values that it takes besides. It returns
the value that the field then has, or NO where the loader refuses it. What a loader lets pass without a look
comes back as it is.
"""

from __future__ import annotations

from cfglint.schema.table import BOOL, INT, LIST, MAP, NULL, NUMBER, TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Members: TypeAlias = tuple[object, ...] | None

NO = object()
_TRUTHS = dict.fromkeys(("y", "yes", "on", "true", "t", "1"), True)
_TRUTHS |= dict.fromkeys(("n", "no", "off", "false", "f", "0"), False)


def _number(text: str, kinds: int) -> object:
    """Return the number that a text spells to Python's own int and float."""
    for kind, number in ((INT, int), (NUMBER & ~INT, float)):
        if kinds & kind:
            try:
                return number(text)
            except ValueError:
                continue
    return NO


def _truth_or_number(text: str, kinds: int) -> object:
    truth = _TRUTHS.get(text.lower(), NO) if kinds & BOOL else NO
    return _number(text, kinds) if truth is NO else truth


def omegaconf(value: Any, kinds: int, members: Members) -> object:
    """Convert as a structured config does: texts to numbers and truths, scalars to texts."""
    if value is None or not isinstance(value, (bool, int, float, str)):
        return NO
    if kinds & TEXT or (members is not None and str(value) in members):  # YAML may read a member as a number
        return str(value)
    wanted = kinds & ~NULL
    if wanted == BOOL:
        return _structured_truth(value)
    if wanted not in (INT, NUMBER):
        several = wanted & (wanted - 1)
        return value if several and members is None and not wanted & (LIST | MAP) else NO
    if isinstance(value, bool) or (isinstance(value, float) and wanted == INT):
        return NO
    return _number(value, wanted) if isinstance(value, str) else value


def _structured_truth(value: bool | float | str) -> object:
    if not isinstance(value, str):
        return bool(value) if isinstance(value, int) else NO
    number = _number(value, INT)
    if number is not NO:
        return bool(number)
    return NO if value.lower() in ("t", "f") else _TRUTHS.get(value.lower(), NO)


def argparse(value: Any, kinds: int, members: Members) -> object:
    """Convert as transformers' HfArgumentParser does: texts alone are looked at, by the field's type."""
    if not isinstance(value, str):
        listed = members is not None and not kinds & ~NULL
        return NO if listed and isinstance(value, (bool, int, float)) else value
    return value if kinds & (TEXT | LIST | MAP) else _truth_or_number(value, kinds)


def words(value: Any, kinds: int, members: Members) -> object:
    """Convert as a server does that makes its file's values words of its command line."""
    if value is None or not isinstance(value, (bool, int, float, str)):
        return value
    text = str(value)
    if kinds & (TEXT | LIST | MAP) or (members is not None and text in members):
        return text
    return _truth_or_number(text, kinds)


def pydantic(value: Any, kinds: int, members: Members) -> object:
    """Convert as a pydantic model does that is not strict; null stands for what the command line gives."""
    del members
    if value is None:
        return None
    if isinstance(value, str):
        return _lax_text(value, kinds)
    if isinstance(value, (bool, int, float)):
        if kinds & BOOL and value in (0, 1):
            return bool(value)
        if kinds & NUMBER and (kinds & NUMBER != INT or isinstance(value, int) or value.is_integer()):
            return value
    return NO


def _lax_text(text: str, kinds: int) -> object:
    if kinds & BOOL and text.lower() in _TRUTHS:
        return _TRUTHS[text.lower()]
    number = _number(text.strip(), kinds | (NUMBER if kinds & INT else 0))
    if isinstance(number, float) and kinds & NUMBER == INT:
        return int(number) if number.is_integer() else NO
    return number


def deepspeed(value: Any, kinds: int, members: Members) -> object:
    """Convert as DeepSpeed's pydantic models do, to which "auto" is as good as absent."""
    return value if value == "auto" else pydantic(value, kinds, members)


def pydantic_none(value: Any, kinds: int, members: Members) -> object:
    """Convert as pydantic does where the text None is null, as in TOML, which has no other."""
    return None if value == "None" else pydantic(value, kinds, members)


def unchecked(value: Any, kinds: int, members: Members) -> object:
    """Take what a loader takes that looks at no value: only a text that is not a number cannot be one."""
    if isinstance(value, str) and not kinds & ~(NUMBER | NULL):
        return value if not kinds or _number(value, NUMBER) is not NO else NO
    if isinstance(value, str) and members is not None and not kinds & ~NULL:
        return NO
    return value


CONVERT: dict[str, Callable[[Any, int, Members], object]] = {
    convert.__name__: convert
    for convert in (omegaconf, argparse, words, pydantic, pydantic_none, deepspeed, unchecked)
}
