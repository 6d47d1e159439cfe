"""What a scalar means to the loader that the framework uses.

PyYAML and OmegaConf both read YAML 1.1, with its octal ``017``, sexagesimal ``12:30`` and ``on``/``off``;
they differ in floats: ``1e-5`` is a text to PyYAML.
"""

from __future__ import annotations

import re

from cfglint.document.tree import Missing, Scalar, Unresolved
from cfglint.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


# Beyond this, Python refuses to turn an int into digits or back.
_MOST_DIGITS = 4300
_MOST_CACHED = 20_000
_YAML = "tag:yaml.org,2002:"
_FIRST_OF_NUMBERS = "-+.0123456789"


class Dialect(Record):
    """How a loader reads plain scalars; ``interpolates`` says whether ``${…}`` means something to it."""

    name: str
    plain: Callable[[str], object]
    interpolates: bool = field(kw_only=True)
    cache: dict[str, object] = field(factory=dict, init=False)

    def __repr__(self) -> str:
        return f"<dialect {self.name}>"


# Texts, compiled on first use: most files need one or two of them.
# OmegaConf adds exponents without a dot or without a sign.
_OMEGACONF_FLOAT = (
    r"[-+]?[0-9]+(?:_[0-9]+)*(?:\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+|(?::[0-5]?[0-9])+\.[0-9_]*)\Z"
)
_JSON_NUMBER = r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z"
_JSON_WORDS: dict[str, object] = {
    "null": None,
    "true": True,
    "false": False,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
_TOML_NUMBER = (
    r"[-+]?(?:0x[0-9a-fA-F_]+|0o[0-7_]+|0b[01_]+"
    r"|(?:0|[1-9][0-9_]*)(?:(?P<float>(?:\.[0-9][0-9_]*)?(?:[eE][-+]?[0-9_]+)?)))\Z"
)
# A file cannot say null; `--set key=null` can.
_TOML_WORDS: dict[str, object] = {"": None, "null": None, "None": None, "true": True, "false": False}
for _word, _number_of in (("inf", float("inf")), ("nan", float("nan"))):
    _TOML_WORDS |= {_word: _number_of, f"+{_word}": _number_of, f"-{_word}": -_number_of}
_PYTHON_WORDS: dict[str, object] = {"None": None, "True": True, "False": False}
_HUMAN_FLOAT = r"[-+]?(?=\.?[0-9])[0-9]*(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?\Z"


def _number(text: str, build: Callable[[str], object]) -> object:
    if len(text) > _MOST_DIGITS:
        return Missing((), f"a number of {len(text)} characters is too long for Python")
    try:
        return build(text)
    except (ValueError, IndexError, OverflowError):
        # Such as `0b_`: it matches, and PyYAML itself fails on it.
        return Missing((), f"{text!r} is not a number to the loader")


def _pyyaml(text: str) -> object:
    """Read a plain scalar by PyYAML's own patterns, apart from most numbers, which need none."""
    if text and text[0] in _FIRST_OF_NUMBERS:
        whole, dot, places = text.partition(".")
        if whole.isascii() and whole.isdigit() and len(text) < _MOST_DIGITS:
            if not dot and whole[0] != "0":
                return int(whole)
            if places.isascii() and places.isdigit():
                return float(text)
    from yaml.resolver import Resolver

    for tag, pattern in Resolver.yaml_implicit_resolvers.get(text[:1], ()):
        if pattern.match(text):
            return _constructed(tag.removeprefix(_YAML), text)
    return text


def _constructed(kind: str, text: str) -> object:
    """Return what PyYAML makes of a text that is of a kind."""
    from yaml.constructor import SafeConstructor
    from yaml.nodes import ScalarNode

    if kind in ("int", "float"):
        construct = getattr(SafeConstructor, f"construct_yaml_{kind}")
        return _number(text, lambda digits: construct(SafeConstructor(), ScalarNode(kind, digits)))
    if kind == "bool" and text.lower() not in SafeConstructor.bool_values:
        return Missing((), f"{text!r} is tagged !!bool, but is not a boolean")
    meanings = {"null": None, "bool": SafeConstructor.bool_values.get(text.lower())}
    return meanings.get(kind, text)  # dates stay texts


def _omegaconf(text: str) -> object:
    value = _pyyaml(text)
    if value is text and text[0] in "-+0123456789" and re.match(_OMEGACONF_FLOAT, text):
        return _constructed("float", text)
    return value


def _shell(text: str) -> object:
    """Read a word as Hydra and argparse do: no octal, no sixties, ``1e-5`` a number."""
    if text in ("None", "none"):
        return None if text == "None" else text
    value = typed(text)
    return value if not isinstance(value, int) or isinstance(value, bool) or abs(value) < 2**63 else text


def _json(text: str) -> object:
    if text in _JSON_WORDS:
        return _JSON_WORDS[text]
    match = re.match(_JSON_NUMBER, text)
    if match is None:
        return text
    return _number(text, int if match.group(1) is match.group(2) is None else float)


def _toml(text: str) -> object:
    """Return a number or truth; dates stay texts, as they do in YAML."""
    if text in _TOML_WORDS:
        return _TOML_WORDS[text]
    match = re.match(_TOML_NUMBER, text)
    if match is None:
        return text
    return _number(text.replace("_", ""), float if match.group("float") else lambda digits: int(digits, 0))


def _python(text: str) -> object:
    """Return what a literal of Python is; anything else is a text."""
    if text in _PYTHON_WORDS:
        return _PYTHON_WORDS[text]
    return _number(text, _python_number) if text[:1] in _FIRST_OF_NUMBERS else text


def _python_number(text: str) -> object:
    try:
        return int(text, 0)
    except ValueError:
        return float(text)


def typed(text: str) -> object:
    """Return what an unquoted argument means to OmegaConf's grammar: null, a boolean, a number or a text."""
    lowered = text.lower()
    if lowered in ("null", "true", "false"):
        return {"null": None, "true": True, "false": False}[lowered]
    if lowered.lstrip("+-") in ("inf", "nan") and len(lowered) <= 4:
        return float(lowered)
    digits = r"(?:[0-9]|[1-9](?:_?[0-9])+)"
    if len(text) > _MOST_DIGITS:
        return text
    if re.fullmatch(rf"[-+]?{digits}", text):
        return int(text)
    fraction = r"\.[0-9](?:_?[0-9])*"
    point = rf"(?:{digits}?{fraction}|{digits}\.)"
    if re.fullmatch(rf"[-+]?(?:{point}|(?:{digits}|{point})[eE][-+]?[0-9](?:_?[0-9])*)", text):
        return float(text)
    return text


PYYAML = Dialect("pyyaml", _pyyaml, interpolates=False)
OMEGACONF = Dialect("omegaconf", _omegaconf, interpolates=True)
UNRESOLVED = Dialect("omegaconf", _omegaconf, interpolates=False)  # to_container leaves ${…} as it is
HYDRA = Dialect("hydra", _omegaconf, interpolates=False)  # of a program whose other files are not followed
JSON = Dialect("json", _json, interpolates=False)
TOML = Dialect("toml", _toml, interpolates=False)
PYTHON = Dialect("python", _python, interpolates=False)
SHELL = Dialect("shell", _shell, interpolates=False)

_UNSEEN = object()


def resolve_plain(text: str, dialect: Dialect) -> object:
    """Return what the plain scalar ``text`` means to ``dialect``."""
    cache = dialect.cache
    value = cache.get(text, _UNSEEN)
    if value is _UNSEEN:
        value = dialect.plain(text)
        if len(cache) >= _MOST_CACHED:
            cache.clear()
        cache[text] = value
    return value


def resolve(scalar: Scalar, dialect: Dialect) -> object:
    """Return the scalar's value: None, bool, int, float or str; Missing where its tag cannot be honoured."""
    if scalar.tag is not None:
        return _tagged(scalar, dialect)
    if scalar.style:
        return scalar.text
    text = scalar.text
    value = dialect.cache.get(text, _UNSEEN)
    return value if value is not _UNSEEN else resolve_plain(text, dialect)


def _tagged(scalar: Scalar, dialect: Dialect) -> object:
    tag = scalar.tag or ""
    text = scalar.text
    if isinstance(scalar, Unresolved):
        return Missing(scalar.needs, scalar.why, tail=scalar.tail)
    if tag == "!":  # read as if it had none, as libyaml does it, in quotes too
        return resolve_plain(text, dialect) if text or scalar.style else ""
    kind = tag.removeprefix(_YAML)
    if kind in ("str", "timestamp", "value", "null", "bool", "int", "float"):
        return _constructed(kind, text)
    return Missing((), f"the tag {tag.replace(_YAML, '!!')} is unknown: only its own loader reads it")


def is_float_like_string(scalar: Scalar, dialect: Dialect) -> bool:
    """Return whether a person reads a float where the loader reads a text, such as ``1e-5`` with PyYAML."""
    if scalar.style or scalar.tag is not None:
        return False
    text = scalar.text
    if not text or text[0] not in _FIRST_OF_NUMBERS or text.isdigit() or len(text) > _MOST_DIGITS:
        return False
    return type(resolve_plain(text, dialect)) is str and re.match(_HUMAN_FLOAT, text) is not None
