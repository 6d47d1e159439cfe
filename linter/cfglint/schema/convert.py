"""What each loader makes of a value that is not yet of the kind that a field wants.

A function returns the value that the field then has, or NO where the loader refuses it. What a loader lets
pass without a look comes back as it is.
"""

from __future__ import annotations

from cfglint.schema.table import BOOL, INT, LIST, MAP, NULL, NUMBER, TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NO = object()
_TRUE = ("y", "yes", "on", "true", "t", "1")
_FALSE = ("n", "no", "off", "false", "f", "0")


def _number(text: str, kinds: int) -> object:
    """Return the number that a text spells to Python's own int and float."""
    if kinds & INT:
        try:
            return int(text)
        except ValueError:
            pass
    if kinds & NUMBER & ~INT:
        try:
            return float(text)
        except ValueError:
            pass
    return NO


def _one_of(value: object, members: tuple[object, ...] | None) -> object:
    return value if members is not None and value in members else NO


def omegaconf(value: Any, kinds: int, node: Any) -> object:
    """Convert as a structured config does: texts to numbers and truths, scalars to texts."""
    if value is None or not isinstance(value, (bool, int, float, str)):
        return NO
    if kinds & TEXT:
        return str(value)
    if node[1] is not None and str(value) in node[1]:  # a member that YAML reads as a number
        return str(value)
    wanted = kinds & ~NULL
    if wanted not in (BOOL, INT, NUMBER):
        return value if wanted & (wanted - 1) and node[1] is None and not wanted & (LIST | MAP) else NO
    if wanted == BOOL:
        if isinstance(value, str):
            number = _number(value, INT)
            if number is not NO:
                return bool(number)
            word = value.lower()
            return NO if word in ("t", "f") or word not in (*_TRUE, *_FALSE) else word in _TRUE
        return bool(value) if isinstance(value, int) else NO
    if isinstance(value, bool) or (isinstance(value, float) and wanted == INT):
        return NO
    return _number(value, wanted) if isinstance(value, str) else value


def argparse(value: Any, kinds: int, node: Any) -> object:
    """Convert as transformers' HfArgumentParser does: texts alone are looked at, by the field's type."""
    if not isinstance(value, str):
        return (
            NO
            if node[1] is not None and not kinds & ~NULL and isinstance(value, (bool, int, float))
            else value
        )
    if kinds & (TEXT | LIST | MAP):
        return value
    if kinds & BOOL and value.lower() in (*_TRUE, *_FALSE):
        return value.lower() in _TRUE
    return _number(value, kinds)


def words(value: Any, kinds: int, node: Any) -> object:
    """Convert as a server does that makes its file's values words of its command line."""
    if value is None or not isinstance(value, (bool, int, float, str)):
        return value
    text = str(value)
    if kinds & (TEXT | LIST | MAP) or (node[1] is not None and text in node[1]):
        return text
    if kinds & BOOL and text.lower() in (*_TRUE, *_FALSE):
        return text.lower() in _TRUE
    return _number(text, kinds)


def pydantic(value: Any, kinds: int, node: Any) -> object:
    """Convert as a pydantic model does that is not strict; null stands for what the command line gives."""
    del node
    if value is None:
        return None
    if isinstance(value, str):
        if kinds & BOOL and value.lower() in (*_TRUE, *_FALSE):
            return value.lower() in _TRUE
        found = _number(value.strip(), kinds | (NUMBER if kinds & INT else 0))
        if isinstance(found, float) and kinds & NUMBER == INT:
            return int(found) if found.is_integer() else NO
        return found
    if isinstance(value, (bool, int, float)):
        if kinds & BOOL and value in (0, 1):
            return bool(value)
        if kinds & NUMBER and (kinds & NUMBER != INT or isinstance(value, int) or value.is_integer()):
            return value
    return NO


def deepspeed(value: Any, kinds: int, node: Any) -> object:
    """Convert as DeepSpeed's pydantic models do, to which "auto" is as good as absent."""
    return value if value == "auto" else pydantic(value, kinds, node)


def unchecked(value: Any, kinds: int, node: Any) -> object:
    """Take what a loader takes that looks at no value: only a text that is no number cannot be one."""
    if isinstance(value, str) and not kinds & ~(NUMBER | NULL):
        return value if not kinds or _number(value, NUMBER) is not NO else NO
    if isinstance(value, str) and node[1] is not None and not kinds & ~NULL:
        return NO
    return value


def pydantic_none(value: Any, kinds: int, node: Any) -> object:
    """Convert as pydantic does where the text None is null, as in TOML, which has no other."""
    return None if value == "None" else pydantic(value, kinds, node)


CONVERT: dict[str, Callable[[Any, int, Any], object]] = {
    "omegaconf": omegaconf,
    "argparse": argparse,
    "words": words,
    "pydantic": pydantic,
    "pydantic_none": pydantic_none,
    "deepspeed": deepspeed,
    "unchecked": unchecked,
}
