"""How a new value is written, so that it is read back as it was meant, in block and in flow context."""

from __future__ import annotations

import re
from math import isinf, isnan

from cfglint.document.scalars import JSON, OMEGACONF, PYYAML, TOML, resolve_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cfglint.document.scalars import Dialect
    from cfglint.document.tree import Scalar

# Safe as a plain scalar everywhere: no indicator at the start, no `: `, ` #` or flow bracket.
_PLAIN = re.compile(
    r"(?:[^\W_]|[_./\\(+]|-(?=\w))"
    r"(?:[\w./\\()+@%^~=*$;!<>|&'\"-]|#(?<!\s#)|:(?=[\w/])|[ ](?=[^\s#]))*\Z"
)
# Dates to PyYAML (which `resolve` keeps as texts), and the marks between documents.
_NOT_PLAIN = re.compile(r"[0-9]{4}-[0-9]|(?:---|\.\.\.)(?:\s|\Z)")
_DOTLESS = re.compile(r"[-+]?[0-9]+[eE]")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b"}
_BOOLEANS = {"true": "false", "yes": "no", "on": "off"}


def _double_quoted(text: str, *, json: bool) -> str:
    parts = []
    for char in text:
        if char in _ESCAPES:
            parts.append(_ESCAPES[char])
        elif char.isprintable() or (json and char >= " "):
            parts.append(char)
        elif ord(char) > 0xFFFF:
            parts.append(f"\\U{ord(char):08x}")
        else:
            parts.append(f"\\u{ord(char):04x}")
    return '"' + "".join(parts) + '"'


def _spell_text(text: str, like: Scalar | None, dialect: Dialect) -> str:
    if dialect is JSON:
        return _double_quoted(text, json=True)
    if dialect is TOML:
        if like is not None and like.style == "'" and "'" not in text and text.isprintable():
            return f"'{text}'"
        return _double_quoted(text, json=False)
    style = like.style if like is not None else ""
    # Both YAML dialects, so that a file keeps its meaning when another framework reads it.
    if (
        style not in ("'", '"')
        and _PLAIN.match(text)
        and not _NOT_PLAIN.match(text)
        and type(resolve_plain(text, PYYAML)) is str
        and type(resolve_plain(text, OMEGACONF)) is str
    ):
        return text
    if style == '"' or not text.isprintable():
        return _double_quoted(text, json=False)
    return "'" + text.replace("'", "''") + "'"


def _spell_bool(*, value: bool, like: Scalar | None, dialect: Dialect) -> str:
    if dialect in (JSON, TOML):
        return "true" if value else "false"
    old = like.text if like is not None and not like.style else ""
    spelled = "true" if value else "false"
    for yes, no in _BOOLEANS.items():
        if old.lower() in (yes, no):
            spelled = yes if value else no
    if old.lower() in ("true", "false", "yes", "no", "on", "off"):
        if old.isupper():
            return spelled.upper()
        if old[:1].isupper():
            return spelled.capitalize()
    return spelled


def _spell_float(value: float, like: Scalar | None, dialect: Dialect) -> str:
    if dialect is TOML and (isnan(value) or isinf(value)):
        return repr(value)
    if isnan(value):
        return "NaN" if dialect is JSON else ".nan"
    if isinf(value):
        word = "Infinity" if dialect is JSON else ".inf"
        return word if value > 0 else f"-{word}"
    mantissa, mark, exponent = repr(value).partition("e")
    if not mark:
        return mantissa
    sign = "-" if exponent[0] == "-" else "+"
    exponent = exponent.lstrip("+-").lstrip("0")
    dotless = dialect in (JSON, TOML) or (
        dialect is OMEGACONF and like is not None and _DOTLESS.match(like.text)
    )
    if "." not in mantissa and not dotless:
        mantissa += ".0"
    return f"{mantissa}e{sign}{exponent}"


def spell(value: object, like: Scalar | None, dialect: Dialect) -> str:
    """Return how to write ``value``; see `scalars.spell`."""
    if dialect is TOML:
        if value is None:
            raise TypeError("TOML has no null")
        if isinstance(value, list):
            return f"[{', '.join(spell(item, None, dialect) for item in value)}]"
    if value is None:
        if dialect is JSON:
            return "null"
        old = like.text if like is not None and not like.style else ""
        return old if old in ("~", "Null", "NULL") else "null"
    if isinstance(value, bool):
        return _spell_bool(value=value, like=like, dialect=dialect)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _spell_float(value, like, dialect)
    if isinstance(value, str):
        return _spell_text(value, like, dialect)
    raise TypeError(f"a {type(value).__name__} cannot be written as a scalar")
